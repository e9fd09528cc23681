"""What logs are worth, drawn: visits, what can be proven, what was never seen, where sources contradict each other."""

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
from causal_shaping.plot._panels import CEILING, INK, SOFT, draw_panels, text, tidy

MOST_DRAWN = 30
"""So many contradictions are drawn, the surest ones."""


def draw_inspection(found: Inspection, ax: Any = None) -> Any:
    """Draw visits per state, how decided each source is, and what was probably never seen."""
    return draw_panels(found, ax, PANELS)


def draw_coverage(found: Coverage, ax: Any = None) -> Any:
    """Draw visits per state and how decided each source is."""
    return draw_panels(found, ax, (_visits, _provable))


def draw_contradictions(found: Contradictions, ax: Any = None) -> Any:
    """Draw the confounding that reconciles two sources, for each contradiction."""
    shown = min(len(found), MOST_DRAWN)
    return draw_panels(found, ax, (_reconciling,), size=(7.0, max(1.6, 1.0 + 0.26 * shown)))


def draw_persistence(found: PersistenceTest, ax: Any = None) -> Any:
    """Draw the p-value of each step that was tested."""
    return draw_panels(found, ax, (_by_step,))


def _visits(found: Coverage, axes: Axes) -> None:
    for item, of_source in zip(found, found.visits.tolist(), strict=True):
        visits = sorted((n for n in of_source if not isinstance(n, str) and n), reverse=True)
        axes.plot(np.arange(1, len(visits) + 1), visits, drawstyle="steps-mid", label=text(item.source))
    axes.axhline(found.limit, color=SOFT, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", xlabel="states, most visited first", ylabel="visits", title="Visits per state")
    axes.legend(frameon=False)
    tidy(axes)


def _provable(found: Coverage, axes: Axes) -> None:
    for item, shares in zip(found, found.action_shares, strict=True):
        share = np.sort(shares[~np.isnan(shares)])
        axes.plot(share, np.linspace(0, 1, len(share)), drawstyle="steps-post", label=text(item.source))
    axes.set(xlim=(0, 1.02), xlabel="share of the most frequent action", ylabel="share of states")
    axes.set_title("Mass that a source can prove")
    axes.legend(frameon=False)
    tidy(axes)


def _unseen(found: Inspection, axes: Axes) -> None:
    unseen = np.sort(found.unseen[~np.isnan(found.unseen)])[::-1]
    axes.plot(np.arange(1, len(unseen) + 1), unseen, color=INK, clip_on=False)
    axes.set(xlabel="states, worst first", ylabel="share of what follows a state")
    axes.set(ylim=(0, max(0.01, 1.05 * unseen.max(initial=0.0))), title="Outcomes never seen (estimate)")
    tidy(axes)


def _reconciling(found: Contradictions, axes: Axes) -> None:
    items = found.items[:MOST_DRAWN]
    finite = [item.confounding for item in items if item.confounding and item.confounding < MOST_CONFOUNDING]
    end = 3 * max([*finite, 1.0])
    for place, item in enumerate(items):
        at = end if item.confounding is None or math.isinf(item.confounding) else item.confounding
        axes.plot([1, at], [place, place], color=SOFT, linewidth=1)
        axes.plot([at], [place], "x" if item.confounding is None else "o", color=CEILING, clip_on=False)
    names = [
        text(f"{item.action} in {item.where}{'' if item.step is None else f', step {item.step}'}: {item.first}, ")
        + text(item.second)
        for item in items
    ]
    axes.set_yticks(range(len(items)), names, fontsize=8)
    axes.set_ylim(len(items) - 0.5, -0.5)
    axes.set(xscale="log", xlabel="confounding that reconciles the sources (x: none does)")
    ticks = [tick for tick in (1, 2, 5, 10, 100, 1000, 10_000, 100_000) if tick < end / 1.5]
    axes.set_xticks([*ticks, end], [*map(str, ticks), "inf"])
    axes.minorticks_off()
    axes.set_xlim(1, end * 1.02)
    axes.set_title("Contradictions between sources" if items else "No contradictions between sources")
    tidy(axes)


def _by_step(found: PersistenceTest, axes: Axes) -> None:
    table = found.as_plain()
    steps = [row["step"] for row in table["steps"]]
    axes.plot(steps, [row["p_value"] for row in table["steps"]], "o", color=INK, markersize=4, clip_on=False)
    axes.axhline(found.level, color=SOFT, linewidth=0.8, linestyle=":")
    axes.set(yscale="log", ylim=(0.5 / (found.permutations + 1), 1), xlabel="step", ylabel="p-value")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(f"Dependence on the episode's past (p = {table['p_value']:.2g})")
    tidy(axes)


PANELS = (
    lambda found, axes: _visits(found.coverage, axes),
    lambda found, axes: _provable(found.coverage, axes),
    _unseen,
)
"""The panels of an inspection."""


def draw_hidden_columns(found: HiddenColumns, ax: Any = None) -> Any:
    """Draw a bar per column and source: its confounding, and a tick where chance alone would be."""
    return draw_panels(found, ax, (_hidden_bars,), size=(6.4, max(1.6, 1.1 + 0.28 * len(found))))


def _hidden_bars(found: HiddenColumns, axes: Axes) -> None:
    for place, item in enumerate(found):
        if np.isnan(item.confounding):
            axes.text(1.0, place, " cannot be measured", va="center", fontsize=8, color=SOFT)
            continue
        color = CEILING if item.distinguishable else SOFT
        axes.barh(place, item.confounding - 1, left=1.0, height=0.6, color=color)
        axes.plot([item.by_chance] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.2)
    several = len({item.source for item in found}) > 1
    names = [text(f"{item.column}, {item.source}" if several else item.column) for item in found]
    axes.set_yticks(range(len(found)), names, fontsize=8)
    axes.set_ylim(len(found) - 0.5, -0.5)
    most = max([2.0, *(max(item.confounding, item.by_chance) for item in found if not np.isnan(item.confounding))])
    axes.set(xscale="log", xlim=(1.0, most * 1.1), xlabel="confounding (grey: not above 1; line: by chance alone)")
    ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000) if tick <= most]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title("If a column had been hidden")
    tidy(axes)
