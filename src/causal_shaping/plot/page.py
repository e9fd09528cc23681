"""A page about one's own logs: one HTML file that anybody can open, print, and read without running anything.

- `render_inspection`: what the logs are worth.
- `render_ceilings`: that, and what can be proven from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.bounds.masks import refuse_crossing
from causal_shaping.bounds.results import Bounds, Ceilings, Floors
from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.data.result import state_parts
from causal_shaping.data.space import Space
from causal_shaping.data.words import part_text
from causal_shaping.diagnose.coverage import share_text
from causal_shaping.diagnose.hidden_columns import HiddenColumns
from causal_shaping.diagnose.inspection import Inspection
from causal_shaping.diagnose.small_cells import WITHHELD, count_text
from causal_shaping.errors import ArgumentError
from causal_shaping.plot import draw, inspection as inspection_figures, sensitivity as sensitivity_figures
from causal_shaping.plot._html import environment, figure_source
from causal_shaping.plot._panels import Panel, draw_panels
from causal_shaping.plot.by_state import is_grid, world_of

MOST_ROWS = 2_000
"""A table on a page has no more rows than this."""

Content = dict[str, Any]


def render_inspection(found: Inspection) -> str:
    """Return the page of an inspection."""
    title = f"What the logs of {' and '.join(found.counts.sources)} are worth"
    return _render({"title": title, "sources": found.counts.sources} | _inspected(found))


def render_ceilings(
    ceilings: Ceilings,
    *,
    floors: Floors | None,
    sensitivity: Sensitivity | None,
    hidden: HiddenColumns | None,
    inspection: Inspection | None,
) -> str:
    """Return the page of ceilings; see `Ceilings.save_html`."""
    for other in (floors, sensitivity, None if inspection is None else inspection.counts):
        if other is not None and other.space != ceilings.space:
            raise ArgumentError(
                f"The {type(other).__name__} on a page must be of the same states and actions as its ceilings. Compute "
                "both from the same counts."
            )
    if floors is not None and ceilings.method == "joint":
        refuse_crossing(ceilings, floors)
    title = f"What the logs of {' and '.join(ceilings.sources)} prove"
    content: Content = {"title": title, "sources": ceilings.sources}
    content |= {} if inspection is None else _inspected(inspection)
    content |= {} if sensitivity is None else _moved(sensitivity)
    content |= {} if hidden is None else _left_out(hidden)
    return _render(content | _bounded(ceilings, floors, inspection))


def _render(content: Content) -> str:
    """Return a page; what is not on it is None. The words are in the template."""
    parts = dict.fromkeys(("found", "ceilings", "floors", "sensitivity", "hidden", "smallest"))
    return environment().get_template("logs.html").render(parts | content, version=version("causal-shaping"))


def _picture(result: Any, caption: str, drawing: Callable[..., Any] = draw, **options: Any) -> Content:
    figure = Figure(layout="constrained")
    drawing(result, figure, **options)
    return {"source": figure_source(figure), "caption": caption}


def _panels(result: Any, captions: Sequence[str], parts: Sequence[Panel]) -> list[Content]:
    """Return the panels of a figure one by one, so that they find their place on a phone."""
    panels = zip(captions, parts, strict=True)
    return [_picture(result, caption, draw_panels, parts=(part,)) for caption, part in panels]


def _inspected(found: Inspection) -> Content:
    space = found.counts.space
    captions = (
        "How often each source acted in each state; the dotted line is what counts as few.",
        "How much of its time a source spends on one action: the mass that it can prove, however confounded it is.",
        "How much of what follows a state was probably never seen. Bounds from observed outcomes take it for zero.",
    )
    pictures: Content = {"map": None, "contradicting": None}
    pictures["figures"] = _panels(found, captions, inspection_figures.PANELS)
    if is_grid(space) and found.smallest_cell is None:
        pictures["map"] = _picture(found.counts, "How often all sources together acted in each state.")
    if found.contradictions:
        caption = "The confounding that it takes to reconcile two sources, for each contradiction."
        pictures["contradicting"] = _picture(found.contradictions, caption)
    return pictures | {
        "found": found,
        "smallest": found.smallest_cell,
        "count": count_text,
        "bins": {
            name: "; ".join(part_text(space, name, part) for part in range(len(bins.edges) + 1))
            for name, bins in space.bins.items()
        },
        "coverage_by_state": _coverage_by_state(found),
        "shares": {row[0]: row[-1] for row in found.coverage.rows()},
    }


def _state_cells(space: Space, state: int) -> list[tuple[str, Any]]:
    """Return the parts of a state's label as cells that sort by the label."""
    return [(part_text(space, name, part), part) for name, part in state_parts(space, state).items()]


def _table(heads: Sequence[str], rows: list[Any]) -> Content:
    left_out = f"The first {MOST_ROWS:,} of {len(rows):,} rows." if len(rows) > MOST_ROWS else ""
    return {"heads": heads, "rows": rows[:MOST_ROWS], "left_out": left_out}


def _coverage_by_state(found: Inspection) -> Content:
    space, covered, rows = found.counts.space, found.coverage, []
    for i, s in np.argwhere(covered.actions_tried).tolist():
        unseen = found.unseen[s]
        less = "" if found.smallest_cell is None or unseen == 0 else " or less"
        row = [covered[i].source, *_state_cells(space, s), count_text(covered.visits[i, s])]
        row += [f"{covered.actions_tried[i, s]} of {len(space.actions)}", share_text(covered.action_shares[i, s])]
        rows.append([*row, (WITHHELD if np.isnan(unseen) else f"{unseen:.1%}{less}", unseen)])
    heads = ["source", *space.columns, "visits", "actions tried", "most frequent action", "never seen (estimate)"]
    return _table(heads, rows)


def _bounded(ceilings: Ceilings, floors: Floors | None, found: Inspection | None) -> Content:
    world = None if found is None else world_of(ceilings.space, found.metadata)
    sides: list[Bounds] = [ceilings, *([floors] if floors is not None else [])]
    values, _, vacuous = ceilings.first_step
    return {
        "ceilings": ceilings,
        "floors": floors,
        "bounded": values[~vacuous & ~ceilings.terminal],
        "vacuous_value": float(np.ravel(ceilings.vacuous_values)[0]),
        "vacuous_states": int(vacuous.sum()),
        "bound_figures": [
            _picture(side, f"{side.KIND.title()} of the best possible sum of rewards, at the first step.", world=world)
            for side in sides
            if not (side.first_step[2] | side.terminal).all()
        ],
        "bounds_by_state": _bounds_by_state(sides, None if found is None else _total_visits(found)),
        "assumptions": list(dict.fromkeys(sentence for side in sides for sentence in side.assumptions)),
    }


def _total_visits(found: Inspection) -> list[str]:
    """Return the visits of all sources to each state; hidden where those of one source are."""
    return [
        WITHHELD if any(isinstance(n, str) for n in visits) else count_text(sum(visits))
        for visits in found.coverage.visits.T.tolist()
    ]


def _bounds_by_state(sides: Sequence[Bounds], visits: list[str] | None) -> Content:
    space = sides[0].space
    columns = {side.KIND.removesuffix("s"): [f"{value:.4g}" for value in side.first_step[0]] for side in sides}
    columns |= {} if visits is None else {"visits": visits}
    remarks = np.where(sides[0].first_step[2], "no source acted here", "")
    columns["remark"] = np.where(sides[0].terminal, "terminal", remarks).tolist()
    rows = [[*_state_cells(space, s), *texts] for s, texts in enumerate(zip(*columns.values(), strict=True))]
    return _table([*space.columns, *columns], rows)


def _moved(found: Sensitivity) -> Content:
    captions = (
        "Ceilings and floors, mean over states; the band holds 80% of the states.",
        "How many actions are proven to be worse than another one.",
        "In how many states the logs single out one best action.",
    )
    rows: list[Any] = []
    for row in found.rows():
        gamma = (f"{row['confounding']:g}", "Infinity" if math.isinf(row["confounding"]) else row["confounding"])
        numbers = ["the sources contradict each other", "-", "-", "-"]
        if not row["contradiction"]:
            numbers = [f"{row['ceiling']:.4f}", f"{row['floor']:.4f}", f"{row['suboptimal']:.1%}"]
            numbers.append(f"{row['singled_out']} of {found.bounded.sum()}")
        rows.append([gamma, *numbers])
    pictures = _panels(found, captions, sensitivity_figures.PANELS)
    return {"sensitivity": found, "gammas": rows, "gamma_figures": pictures}


def _left_out(found: HiddenColumns) -> Content:
    caption = "The confounding that leaving out each column would amount to; bars end where chance alone ends."
    return {"hidden": found, "hidden_figure": _picture(found, caption)}
