"""What runs came to: regret over steps, or returns where the optimum is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.errors import ArgumentError
from causal_shaping.learners import Run, Seeds
from causal_shaping.learners.intervals import curve_intervals
from causal_shaping.learners.worth import COVERED, Worth
from causal_shaping.plot._panels import CEILING, FLOOR, INK, SOFT, draw_panels, panels, text, tidy

SMOOTHED = 50
"""Returns are means over this share of the episodes: one of so many parts."""


def draw_curve(axes: Axes, steps: LongArray, curves: FloatArray, label: str, **style: Any) -> None:
    """Draw the mean of curves [seeds, points] with its 95% interval."""
    middle, low, high = curve_intervals(curves)
    (line,) = axes.plot(steps, middle, label=text(label), **style)
    axes.fill_between(steps, low, high, alpha=0.2, color=line.get_color(), linewidth=0)


def draw_seeds(found: Seeds, ax: Any = None, *, label: str | None = None, **style: Any) -> Axes:
    """Draw the regret of a learner: mean over seeds, with its 95% interval.

    Args:
        found: what `train_seeds` returned.
        ax: see `draw`; give that of another learner to compare them.
        label: the name in the legend, by default the learner's.
        style: for matplotlib's line.
    """
    steps, curves = found.curves()
    if curves.size == 0:
        raise ArgumentError(f"The optimum of {found.settings['world']} is not known: there is no regret to draw.")
    (axes,) = panels(ax)
    draw_curve(axes, steps, curves, label or str(found.settings["learner"]), **style)
    return _over_steps(axes, "regret", "Regret: mean over seeds, 95% interval")


def draw_run(run: Run, ax: Any = None, *, label: str | None = None, **style: Any) -> Axes:
    """Draw the regret of a run, or its returns where the optimum is not known.

    Args:
        run: what `train` returned.
        ax: see `draw`.
        label: the name in the legend.
        style: for matplotlib's line.
    """
    (axes,) = panels(ax)
    name = text(label or f"{run.name}, seed {run.seed}")
    if not np.isnan(run.step_regret[-1]):
        axes.plot(np.arange(1, run.steps + 1), run.step_regret, label=name, **style)
        return _over_steps(axes, "regret", "Regret")
    width = max(1, len(run.returns) // SMOOTHED)
    means = np.convolve(run.returns, np.full(width, 1 / width), mode="valid")
    axes.plot(run.episode_end[width - 1 :], means, label=name, **style)
    return _over_steps(axes, "return of an episode", f"Return, mean over {width} episodes")


def _over_steps(axes: Axes, what: str, title: str) -> Axes:
    axes.set(xlabel="environment steps", ylabel=what, title=title)
    if what == "regret":
        axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    tidy(axes)
    return axes


def draw_worth(found: Worth, ax: Any = None) -> Any:
    """Draw regret with and without logs over the simulated worlds, and the episodes that they save in each."""
    return draw_panels(found, ax, WORTH_PANELS, size=(5.0, 3.8))


def _regret(found: Worth, axes: Axes) -> None:
    steps, without, with_logs = found.curves()
    tails = ((1 - COVERED) / 2, (1 + COVERED) / 2)
    scale = max(float(without[:, -1].mean()), float(with_logs[:, -1].mean())) or 1.0
    for curves, color, name in ((without, SOFT, "without logs"), (with_logs, FLOOR, "with logs")):
        low, high = np.quantile(curves / scale, tails, axis=0)
        axes.plot(steps, curves.mean(axis=0) / scale, color=color, label=name)
        axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="environment steps", ylabel="regret, as a share of the largest mean")
    axes.set_title(f"Regret: mean, and {COVERED:.0%} of the simulated worlds")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    tidy(axes)


def _saved(found: Worth, axes: Axes) -> None:
    colors = {True: CEILING, False: FLOOR}
    for against, name in ((False, "where they mislead, they say nothing"), (True, "where they mislead, the opposite")):
        some = [world for world in found.worlds if world.against == against]
        axes.plot(
            [world.doubt for world in some],
            [world.saved for world in some],
            linestyle="none",
            marker="o",
            color=colors[against],
            label=name,
        )
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="how far the logs mislead: 0 nowhere, 1 everywhere", ylabel="episodes saved")
    axes.set_title(f"Episodes saved, of about {found.episodes:,.0f}")
    axes.set_xlim(-0.03, 1.03)
    axes.legend(frameon=False)
    tidy(axes)


WORTH_PANELS = (_regret, _saved)
