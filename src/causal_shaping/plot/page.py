"""A page about somebody's logs: one HTML file that people can read without running anything.

`render_inspection` tells what logs cover, and `render_ceilings` also what they prove. The sentences
are in `templates/logs.html`; this file computes what they name, and draws the figures.
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
from causal_shaping.diagnose.inspection import Inspection
from causal_shaping.diagnose.small_cells import WITHHELD, count_text
from causal_shaping.errors import ArgumentError
from causal_shaping.plot import draw, inspection as on_logs, sensitivity as on_gamma
from causal_shaping.plot._html import environment, figure_source
from causal_shaping.plot.by_state import is_grid, world_of
from causal_shaping.plot.style import Panel, draw_panels

Content = dict[str, Any]
"""What the template names: by name, a result, a table, a figure or text."""


def render_inspection(inspection: Inspection) -> str:
    """Return the page of an inspection."""
    sources = inspection.counts.sources
    title = f"What the logs of {' and '.join(sources)} are worth"
    return _render({"title": title, "sources": sources} | _inspected(inspection))


def render_ceilings(ceilings: Ceilings, **parts: Any) -> str:
    """Return the page of ceilings; see `Ceilings.save_html` for the parts, any of them None."""
    floors, inspection = parts["floors"], parts["inspection"]
    title = f"What the logs of {' and '.join(ceilings.sources)} prove"
    content: Content = {"title": title, "sources": ceilings.sources}
    if inspection is not None:
        content |= _inspected(inspection)
    for other in (floors, parts["sensitivity"], getattr(inspection, "counts", None)):
        if other is not None and other.space != ceilings.space:
            raise ArgumentError(
                f"The {type(other).__name__} on a page must be of the same states and actions as "
                "its ceilings. Compute both from the same counts."
            )
    if floors is not None and ceilings.method == "joint":
        refuse_crossing(ceilings, floors)
    if parts["sensitivity"] is not None:
        content |= _analysed(parts["sensitivity"])
    if parts["hidden"] is not None:
        content |= {"hidden": parts["hidden"], "hidden_figure": _picture(parts["hidden"])}
    return _render(content | _bounded(ceilings, floors, inspection))


def _render(content: Content) -> str:
    """Return a page; parts that are not on it are None."""
    names = ("inspection", "ceilings", "floors", "sensitivity", "hidden", "smallest")
    template = environment().get_template("logs.html")
    return template.render(dict.fromkeys(names) | content, version=version("causal-shaping"))


def _picture(result: Any, drawing: Callable[..., Any] = draw, **options: Any) -> str:
    """Return the figure of a result as the address of an image."""
    figure = Figure(layout="constrained")
    drawing(result, figure, **options)
    return figure_source(figure)


def _panels(result: Any, parts: Sequence[Panel]) -> list[str]:
    """Return the panels of a figure one by one, so that they stand below each other on a phone."""
    return [_picture(result, draw_panels, parts=(part,)) for part in parts]


# Tables ------------------------------------------------------------------------------------------


def _state_cells(space: Space, state: int) -> list[tuple[str, Any]]:
    """Return the parts of a state's label as cells that sort by the label."""
    parts = state_parts(space, state)
    return [(part_text(space, name, part), part) for name, part in parts.items()]


def _coverage_by_state(inspection: Inspection) -> Content:
    """Return a row for each source and state."""
    space, coverage, rows = inspection.counts.space, inspection.coverage, []
    for i, s in np.argwhere(coverage.actions_tried).tolist():
        unseen = inspection.unseen[s]
        unseen_text = f"{unseen:.1%}"
        if np.isnan(unseen):
            unseen_text = WITHHELD
        elif inspection.smallest_cell is not None and unseen > 0:
            unseen_text += " or less"
        cells = [coverage[i].source, *_state_cells(space, s), count_text(coverage.visits[i, s])]
        cells.append(f"{coverage.actions_tried[i, s]} of {len(space.actions)}")
        rows.append([*cells, share_text(coverage.action_shares[i, s]), (unseen_text, unseen)])
    measures = ["visits", "actions tried", "most frequent action", "never seen (estimate)"]
    return {"heads": ["source", *space.columns, *measures], "rows": rows}


def _bounds_by_state(sides: Sequence[Bounds], inspection: Inspection | None) -> Content:
    """Return a row for each state: its bounds, visits, and a remark."""
    space = sides[0].space
    columns: dict[str, list[str]] = {}
    for side in sides:
        columns[side.KIND.removesuffix("s")] = [f"{value:.4g}" for value in side.first_step[0]]
    if inspection is not None:
        columns["visits"] = _total_visits(inspection)
    remarks = np.where(sides[0].first_step[2], "no source acted here", "")
    columns["remark"] = np.where(sides[0].terminal, "terminal", remarks).tolist()
    cells = zip(*columns.values(), strict=True)
    rows = [[*_state_cells(space, s), *texts] for s, texts in enumerate(cells)]
    return {"heads": [*space.columns, *columns], "rows": rows}


def _total_visits(inspection: Inspection) -> list[str]:
    """Return the visits of all sources to each state, hidden where those of one source are."""
    texts = []
    for visits in inspection.coverage.visits.T.tolist():
        if any(isinstance(n, str) for n in visits):
            texts.append(WITHHELD)
        else:
            texts.append(count_text(sum(visits)))
    return texts


# Sections ----------------------------------------------------------------------------------------


def _inspected(inspection: Inspection) -> Content:
    """Return what the sections on the logs name."""
    space = inspection.counts.space
    content: Content = {"inspection": inspection, "smallest": inspection.smallest_cell}
    content |= {"count": count_text, "map": None, "contradicting": None, "bins": {}}
    content["figures"] = _panels(inspection, on_logs.PANELS)
    if is_grid(space) and inspection.smallest_cell is None:
        content["map"] = _picture(inspection.counts)
    if inspection.contradictions:
        content["contradicting"] = _picture(inspection.contradictions)
    for name, bins in space.bins.items():
        ranges = [part_text(space, name, part) for part in range(len(bins.edges) + 1)]
        content["bins"][name] = "; ".join(ranges)
    content["coverage_by_state"] = _coverage_by_state(inspection)
    content["shares"] = {row[0]: row[-1] for row in inspection.coverage.rows()}
    return content


def _bounded(ceilings: Ceilings, floors: Floors | None, inspection: Inspection | None) -> Content:
    """Return what the sections on bounds name."""
    sides: list[Bounds] = [side for side in (ceilings, floors) if side is not None]
    world = None
    if inspection is not None:
        world = world_of(ceilings.space, inspection.metadata)
    figures = {}
    for side in sides:
        if not (side.first_step[2] | side.terminal).all():
            figures[side.KIND] = _picture(side, world=world)
    values, _, vacuous = ceilings.first_step
    return {
        "ceilings": ceilings,
        "floors": floors,
        "bounded": values[~vacuous & ~ceilings.terminal],
        "vacuous_value": float(np.ravel(ceilings.vacuous_values)[0]),
        "vacuous_states": int(vacuous.sum()),
        "bound_figures": figures,
        "bounds_by_state": _bounds_by_state(sides, inspection),
        "assumptions": list(dict.fromkeys(one for side in sides for one in side.assumptions)),
    }


def _analysed(analysis: Sensitivity) -> Content:
    """Return what the section on sensitivity names."""
    rows: list[Any] = []
    for row in analysis.rows():
        gamma = row["confounding"]
        numbers = ["the sources contradict each other", "-", "-", "-"]
        if not row["contradiction"]:
            numbers = [f"{row['ceiling']:.4f}", f"{row['floor']:.4f}", f"{row['suboptimal']:.1%}"]
            numbers.append(f"{row['singled_out']} of {analysis.bounded.sum()}")
        # The second of the pair is what a browser sorts by.
        sorted_by = {math.inf: "Infinity"}.get(gamma, gamma)
        rows.append([(f"{gamma:g}", sorted_by), *numbers])
    figures = _panels(analysis, on_gamma.PANELS)
    return {"sensitivity": analysis, "gammas": rows, "gamma_figures": figures}
