"""A page about one's own logs: one HTML file that anybody can open, print, and read without running anything.

- `render_inspection`: what the logs are worth.
- `render_ceilings`: that, and what can be proven from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.bounds.results import Bounds, Ceilings, Floors
from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.data.result import state_parts
from causal_shaping.data.space import Space
from causal_shaping.data.words import part_text
from causal_shaping.diagnose.inspection import Inspection
from causal_shaping.diagnose.small_cells import WITHHELD, SmallCells
from causal_shaping.errors import ArgumentError
from causal_shaping.plot import draw, inspection as inspection_figures, sensitivity as sensitivity_figures
from causal_shaping.plot._html import environment, figure_source
from causal_shaping.plot._panels import Panel, draw_panels
from causal_shaping.plot.by_state import is_grid, world_of

MOST_ROWS = 2_000
"""A table on a page has no more rows than this."""

Content = dict[str, Any]

VERDICTS: Mapping[bool | None, Content] = {
    True: {"mark": "good", "head": "These logs can guide a learner."},
    None: {"mark": "doubt", "head": "It is doubtful whether these logs can guide a learner."},
    False: {"mark": "bad", "head": "These logs say too little to guide a learner."},
}
"""What `Ceilings.informative` means on a page."""


def render_inspection(found: Inspection) -> str:
    """Return the page of an inspection."""
    title = f"What the logs of {_listed(found.counts.sources)} are worth"
    return _render(
        title, found.counts.sources, _proves(found, None), found=_inspected(found), cells=found.smallest_cell
    )


def render_ceilings(
    ceilings: Ceilings,
    *,
    floors: Floors | None,
    sensitivity: Sensitivity | None,
    inspection: Inspection | None,
    smallest_cell: int | None,
) -> str:
    """Return the page of ceilings; see `Ceilings.save_html`."""
    for other in (floors, sensitivity, None if inspection is None else inspection.counts):
        if other is not None and other.space != ceilings.space:
            raise ArgumentError(
                f"The {type(other).__name__} on a page must be of the same states and actions as its ceilings. Compute "
                "both from the same counts."
            )
    if inspection is not None and smallest_cell is not None:
        inspection = inspection.without_small_cells(smallest_cell)
    smallest_cell = inspection.smallest_cell if inspection is not None else smallest_cell
    return _render(
        f"What the logs of {_listed(ceilings.sources)} prove",
        ceilings.sources,
        _proves(inspection, ceilings),
        found=None if inspection is None else _inspected(inspection),
        bounds=_bounded(ceilings, floors, inspection),
        sensitivity=None if sensitivity is None else _moved(sensitivity),
        cells=smallest_cell,
    )


def _render(
    title: str,
    sources: Sequence[str],
    proves: Content,
    *,
    found: Content | None = None,
    bounds: Content | None = None,
    sensitivity: Content | None = None,
    cells: int | None = None,
) -> str:
    content: Content = {"title": title, "sources": sources, "proves": proves, "found": found, "bounds": bounds}
    content |= {"sensitivity": sensitivity, "smallest_cell": cells, "version": version("causal-shaping")}
    return environment().get_template("logs.html").render(content)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _picture(result: Any, caption: str, **options: Any) -> Content:
    figure = Figure(layout="constrained")
    draw(result, figure, **options)
    return {"source": figure_source(figure), "caption": caption}


def _panels(result: Any, parts: Mapping[str, Panel]) -> list[Content]:
    """Return the panels of a figure one by one, so that they find their place on a phone."""
    shown = []
    for caption, part in parts.items():
        figure = Figure(layout="constrained")
        draw_panels(result, figure, (part,))
        shown.append({"source": figure_source(figure), "caption": caption})
    return shown


def _inspected(found: Inspection) -> Content:
    space, cells = found.counts.space, SmallCells(found.smallest_cell)
    figure_captions = (
        "How often each source acted in each state; the dotted line is what counts as few.",
        "How much of its time a source spends on one action: the mass that it can prove, however confounded it is.",
        "How much of what follows a state was probably never seen. Bounds from observed outcomes take it for zero.",
    )
    more = len(found.contradictions) > 1
    return {
        "findings": found.findings()[: -len(found.contradictions.findings())] + found.contradictions.findings()[:1],
        "episodes": {"heads": found.HEADS, "rows": found.rows()},
        "space": _space(space),
        "dropped": [
            f"{origin}: {cells.count(item.episodes)} episodes with {cells.count(item.rows)} rows were left out: "
            + "; ".join(f"{text} ({cells.count(n)} rows)" for text, n in item.reasons.items())
            + ". Leaving episodes out selects on outcomes: bounds can fail where bad rows follow some outcomes more "
            "often than others."
            for origin, item in found.dropped.items()
        ],
        "covered": found.findings()[0],
        "coverage": {"heads": found.coverage.HEADS, "rows": found.coverage.rows()},
        "figures": _panels(found, dict(zip(figure_captions, inspection_figures.PANELS, strict=True))),
        "map": _picture(found.counts, "How often all sources together acted in each state.")
        if is_grid(space) and found.smallest_cell is None
        else None,
        "states": _coverage_by_state(found),
        "contradictions": found.contradictions.findings(),
        "contradicting": _picture(
            found.contradictions, "The confounding that it takes to reconcile two sources, for each contradiction."
        )
        if more
        else None,
    }


def _space(space: Space) -> list[tuple[str, str]]:
    cut = [
        (f"{name}, in bins", "; ".join(part_text(space, name, part) for part in range(len(bins.edges) + 1)))
        for name, bins in space.bins.items()
    ]
    return [
        ("State", f"{', '.join(space.columns)}: {len(space.states):,} states"),
        *cut,
        ("Actions", ", ".join(map(str, space.actions))),
    ]


def _state_cells(space: Space, state: int) -> list[tuple[str, Any]]:
    """Return the parts of a state's label as cells that sort by the label."""
    return [(part_text(space, name, part), part) for name, part in state_parts(space, state).items()]


def _table(heads: Sequence[str], rows: list[Any]) -> Content:
    left_out = f"The first {MOST_ROWS:,} of {len(rows):,} rows." if len(rows) > MOST_ROWS else ""
    return {"heads": heads, "rows": rows[:MOST_ROWS], "left_out": left_out}


def _coverage_by_state(found: Inspection) -> Content:
    space, cells = found.counts.space, SmallCells(found.smallest_cell)
    rows = []
    for item, taken, visits in zip(found.coverage, found.coverage.taken, found.coverage.visits, strict=True):
        for s in np.flatnonzero(taken.sum(axis=1)).tolist():
            unseen = found.unseen_shown[s]
            limit = "" if found.smallest_cell is None or unseen == 0 else "at most "
            rows.append(
                [
                    item.source,
                    *_state_cells(space, s),
                    _count(visits[s]),
                    f"{(taken[s] > 0).sum()} of {len(space.actions)}",
                    cells.share(0, taken[s].max(), taken[s].sum()),
                    (WITHHELD if np.isnan(unseen) else f"{limit}{unseen:.1%}", unseen),
                ]
            )
    heads = ["source", *space.columns, "visits", "actions tried", "most frequent action", "never seen (estimate)"]
    return _table(heads, rows)


def _proves(found: Inspection | None, ceilings: Ceilings | None) -> Content:
    sources = ceilings.sources if ceilings is not None else found.counts.sources if found is not None else ()
    shares = {} if found is None else {row[0]: row[-1] for row in found.coverage.rows()}
    heads = ["source", *(["allowed confounding"] if ceilings else []), "what it proves"]
    rows = []
    for source in sources:
        gamma = ceilings.confounding[source] if ceilings is not None else math.inf
        if gamma == 1:
            words = "Taken as unconfounded: what followed an action is what the action does."
        elif math.isfinite(gamma):
            words = (
                f"Hidden causes may have changed the odds of an action by a factor of at most {gamma:g}. It proves "
                "what it did, and a part of the rest."
            )
        else:
            words = "It may have seen anything, and so proves only what it did."
        if source in shares:
            words += f" It takes its most frequent action in {shares[source]} of its steps."
        rows.append(
            [source, *([(f"{gamma:g}", "Infinity" if math.isinf(gamma) else gamma)] if ceilings else []), words]
        )
    return {"heads": heads, "rows": rows}


def _bounded(ceilings: Ceilings, floors: Floors | None, found: Inspection | None) -> Content:
    space = ceilings.space
    world = None if found is None else world_of(space, found.metadata)
    sides: list[Bounds] = [ceilings, *([floors] if floors is not None else [])]
    name = "Ceilings" if floors is None else "Ceilings and floors"
    what = "the best possible sum of rewards from each state on"
    captions = (f"Ceilings of {what}, at the first step.", f"Floors of {what}, at the first step.")
    pictures = [
        _picture(side, caption, world=world)
        for side, caption in zip(sides, captions, strict=False)
        if _bounds_any(side)
    ]
    return {
        "name": name,
        "verdict": ceilings.verdict,
        **VERDICTS[ceilings.informative],
        "caveats": ceilings.caveats,
        "floors": floors is not None,
        "settings": _settings(ceilings),
        "range": _range(ceilings),
        "figures": pictures,
        "states": _bounds_by_state(sides, None if found is None else _total_visits(found)),
        "assumptions": list(dict.fromkeys(sentence for side in sides for sentence in side.assumptions)),
    }


def _first(bounds: Bounds) -> tuple[Any, Any]:
    return (bounds.values, bounds.vacuous) if bounds.stationary else (bounds.values[0], bounds.vacuous[0])


def _bounds_any(bounds: Bounds) -> bool:
    return bool((~_first(bounds)[1] & ~bounds.terminal).any())


def _settings(bounds: Bounds) -> list[tuple[str, str]]:
    sure = f"{bounds.confidence:.4g}, of all at once" if bounds.confidence else "a plug-in estimate, without confidence"
    return [
        ("Length", "without time limit" if bounds.stationary else f"{bounds.horizon} steps"),
        ("Largest reward of a step", f"{bounds.reward_bound:g}"),
        ("Discount", f"{bounds.discount:g}"),
        ("Support", bounds.support),
        ("Confidence", "exact masses" if bounds.population else sure),
    ]


def _range(ceilings: Ceilings) -> str:
    values, vacuous = _first(ceilings)
    shown = values[~vacuous & ~ceilings.terminal]
    without = float(np.ravel(ceilings.vacuous_values)[0])
    if not len(shown):
        return f"No state is bounded better than without logs, which is {without:.4g}."
    rest = f"; {vacuous.sum():,} states, in which no source acted, have that one" if vacuous.any() else ""
    return (
        f"{len(shown):,} states are bounded, from {shown.min():.4g} to {shown.max():.4g}. Without any logs the ceiling "
        f"would be {without:.4g} everywhere{rest}."
    )


def _count(shown: int | str) -> str:
    return shown if isinstance(shown, str) else f"{shown:,}"


def _total_visits(found: Inspection) -> list[str]:
    """Return the visits of all sources to each state; hidden where those of one source are."""
    result = []
    for shown in zip(*found.coverage.visits, strict=True):
        counts = [n for n in shown if isinstance(n, int)]
        result.append(WITHHELD if len(counts) < len(shown) else _count(sum(counts)))
    return result


def _bounds_by_state(sides: Sequence[Bounds], visits: Sequence[str] | None) -> Content:
    space = sides[0].space
    heads = [*space.columns, *(side.KIND.removesuffix("s") for side in sides)]
    heads += [*(["visits"] if visits is not None else []), "remark"]
    rows = []
    for s in range(len(space.states)):
        row: list[Any] = _state_cells(space, s)
        row += [f"{_first(side)[0][s]:.4g}" for side in sides]
        row += [visits[s]] if visits is not None else []
        vacuous = _first(sides[0])[1][s]
        row.append("terminal" if sides[0].terminal[s] else "no source acted here" if vacuous else "")
        rows.append(row)
    return _table(heads, rows)


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
    return {
        "heads": [
            "confounding",
            "mean ceiling",
            "mean floor",
            "provably suboptimal",
            "best action singled out in states",
        ],
        "rows": rows,
        "findings": found.findings(),
        "figures": _panels(found, dict(zip(captions, sensitivity_figures.PANELS, strict=True))),
    }
