"""Figures of an inspection: visits, what can be proven, what was never seen, contradictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.diagnose._compare import MOST_CONFOUNDING
from causal_shaping.diagnose.contradictions import Contradictions
from causal_shaping.diagnose.coverage import Coverage
from causal_shaping.diagnose.hidden_columns import HiddenColumns
from causal_shaping.diagnose.inspection import Inspection
from causal_shaping.diagnose.persistence import PersistenceTest
from causal_shaping.plot import style

MOST_DRAWN = 30
"""More contradictions than a page has room for are not drawn; the surest come first."""

WIDE_TICKS = (1, 2, 5, 10, 100, 1000, 10_000, 100_000)
NARROW_TICKS = (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)
"""Ticks of confounding: for contradictions, and for columns."""


def draw_inspection(inspection: Inspection, ax: Any = None) -> Any:
    """Draw visits for each state, the mass that can be proven, and what was probably never seen."""
    return style.draw_panels(inspection, ax, PANELS)


def draw_coverage(coverage: Coverage, ax: Any = None) -> Any:
    """Draw visits for each state, and the mass that each source can prove."""
    return style.draw_panels(coverage, ax, (_visits, _provable))


def draw_contradictions(contradictions: Contradictions, ax: Any = None) -> Any:
    """Draw the least confounding that reconciles two sources, for each contradiction."""
    shown = min(len(contradictions), MOST_DRAWN)
    size = (7.0, max(1.6, 1.0 + 0.26 * shown))
    return style.draw_panels(contradictions, ax, (_reconciling,), size)


def draw_persistence(test: PersistenceTest, ax: Any = None) -> Any:
    """Draw the p-value of each step that was tested."""
    return style.draw_panels(test, ax, (_by_step,))


def draw_hidden_columns(columns: HiddenColumns, ax: Any = None) -> Any:
    """Draw a bar for each column and source: its confounding; a line marks chance alone."""
    return style.draw_panels(columns, ax, (_hidden,), (6.4, max(1.6, 1.1 + 0.28 * len(columns))))


def _visits(coverage: Coverage, axes: Axes) -> None:
    for item, visits in zip(coverage, coverage.visits.tolist(), strict=True):
        # Text stands for counts that are hidden.
        shown = sorted((n for n in visits if not isinstance(n, str) and n), reverse=True)
        states = np.arange(1, len(shown) + 1)
        axes.plot(states, shown, drawstyle="steps-mid", label=style.text(item.source))
    axes.axhline(coverage.limit, color=style.SOFT, linewidth=0.8, linestyle=":")
    labels: Any = {"xlabel": "states, most visited first", "ylabel": "visits"}
    style.finish(axes, True, title="Visits per state", yscale="log", **labels)


def _provable(coverage: Coverage, axes: Axes) -> None:
    for item, shares in zip(coverage, coverage.action_shares, strict=True):
        share = np.sort(shares[~np.isnan(shares)])
        states = np.linspace(0, 1, len(share))
        axes.plot(share, states, drawstyle="steps-post", label=style.text(item.source))
    labels: Any = {"xlabel": "share of the most frequent action", "ylabel": "share of states"}
    style.finish(axes, True, title="Mass that a source can prove", xlim=(0, 1.02), **labels)


def _unseen(inspection: Inspection, axes: Axes) -> None:
    unseen = np.sort(inspection.unseen[~np.isnan(inspection.unseen)])[::-1]
    axes.plot(np.arange(1, len(unseen) + 1), unseen, color=style.INK, clip_on=False)
    top = max(0.01, 1.05 * unseen.max(initial=0.0))
    labels: Any = {"xlabel": "states, worst first", "ylabel": "share of what follows a state"}
    style.finish(axes, title="Outcomes never seen (estimate)", ylim=(0, top), **labels)


PANELS = (
    lambda inspection, axes: _visits(inspection.coverage, axes),
    lambda inspection, axes: _provable(inspection.coverage, axes),
    _unseen,
)
"""The panels of `draw_inspection`."""


def _reconciling(contradictions: Contradictions, axes: Axes) -> None:
    items = contradictions.items[:MOST_DRAWN]
    gammas = [item.confounding for item in items]
    finite = [gamma for gamma in gammas if gamma and gamma < MOST_CONFOUNDING]
    end = 3 * max([*finite, 1.0])
    names = []
    for row, item in enumerate(items):
        # None: no confounding reconciles the two; it is drawn as a cross where inf is.
        gamma, mark = item.confounding, "o"
        if gamma is None:
            mark = "x"
        if gamma is None or math.isinf(gamma):
            gamma = end
        axes.plot([1, gamma], [row, row], color=style.SOFT, linewidth=1)
        axes.plot([gamma], [row], mark, color=style.CEILING, clip_on=False)
        where = f"{item.action} in {item.where}"
        if item.step is not None:
            where += f", step {item.step}"
        names.append(f"{where}: {item.first}, {item.second}")
    style.named_rows(axes, names)
    style.log_ticks(axes, [tick for tick in WIDE_TICKS if tick < end / 1.5], end)
    title = "Contradictions between sources"
    if not items:
        title = f"No {title.lower()}"
    xlabel = "confounding that reconciles the sources (x: none does)"
    style.finish(axes, title=title, xlabel=xlabel, xlim=(1, end * 1.02))


def _by_step(test: PersistenceTest, axes: Axes) -> None:
    table = test.as_plain()
    steps = [row["step"] for row in table["steps"]]
    p_values = [row["p_value"] for row in table["steps"]]
    axes.plot(steps, p_values, "o", color=style.INK, markersize=4, clip_on=False)
    axes.axhline(test.level, color=style.SOFT, linewidth=0.8, linestyle=":")
    axes.locator_params(axis="x", integer=True)
    title = f"Dependence on the episode's past (p = {table['p_value']:.2g})"
    lowest = 0.5 / (test.permutations + 1)
    style.finish(axes, title=title, yscale="log", ylim=(lowest, 1), xlabel="step", ylabel="p-value")


def _hidden(columns: HiddenColumns, axes: Axes) -> None:
    several = len({item.source for item in columns}) > 1
    names, most = [], 2.0
    for row, item in enumerate(columns):
        names.append(item.column + f", {item.source}" * several)
        if np.isnan(item.confounding):
            unknown: Any = {"va": "center", "fontsize": style.SMALL, "color": style.SOFT}
            axes.text(1.0, row, " cannot be measured", **unknown)
            continue
        color = {True: style.CEILING, False: style.SOFT}[bool(item.distinguishable)]
        axes.barh(row, item.confounding - 1, left=1.0, height=0.6, color=color)
        axes.plot([item.by_chance] * 2, [row - 0.4, row + 0.4], color=style.INK, linewidth=1.2)
        most = max(most, item.confounding, item.by_chance)
    style.named_rows(axes, names)
    style.log_ticks(axes, [tick for tick in NARROW_TICKS if tick <= most])
    xlabel = "confounding (grey: not above 1; line: by chance alone)"
    style.finish(axes, title="If a column had been hidden", xlabel=xlabel, xlim=(1.0, most * 1.1))
