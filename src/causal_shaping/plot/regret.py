"""Figures of runs: regret over steps, or returns where the optimum is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.errors import ArgumentError
from causal_shaping.learners import Run, Seeds
from causal_shaping.learners.intervals import curve_intervals
from causal_shaping.learners.worth import COVERED, Worth
from causal_shaping.plot import style

SMOOTHED = 50
"""Returns are means over 1/50 of the episodes: single ones vary too much to be read."""


def draw_curve(axes: Axes, steps: LongArray, curves: FloatArray, label: str, **line: Any) -> None:
    """Draw the mean of curves [seeds, points] with its 95% interval."""
    middle, low, high = curve_intervals(curves)
    (drawn,) = axes.plot(steps, middle, label=style.text(label), **line)
    style.band(axes, steps, low, high, drawn.get_color())


def draw_seeds(seeds: Seeds, ax: Any = None, *, label: str | None = None, **line: Any) -> Axes:
    """Draw the regret of a learner: mean over seeds, with its 95% interval.

    Args:
        seeds: what `train_seeds` returned.
        ax: see `draw`; give that of another learner to compare them.
        label: the name in the legend, by default the learner's.
        line: for matplotlib's line.
    """
    steps, curves = seeds.curves()
    if curves.size == 0:
        world = seeds.settings["world"]
        raise ArgumentError(f"The optimum of {world} is not known: there is no regret to draw.")
    (axes,) = style.panels(ax)
    draw_curve(axes, steps, curves, label or str(seeds.settings["learner"]), **line)
    return _over_steps(axes, "regret", "Regret: mean over seeds, 95% interval")


def draw_run(run: Run, ax: Any = None, *, label: str | None = None, **line: Any) -> Axes:
    """Draw the regret of a run, or its returns where the optimum is not known.

    Args:
        run: what `train` returned.
        ax: see `draw`.
        label: the name in the legend.
        line: for matplotlib's line.
    """
    (axes,) = style.panels(ax)
    name = style.text(label or f"{run.name}, seed {run.seed}")
    if not np.isnan(run.step_regret[-1]):
        axes.plot(np.arange(1, run.steps + 1), run.step_regret, label=name, **line)
        return _over_steps(axes, "regret", "Regret")
    width = max(1, len(run.returns) // SMOOTHED)
    means = np.convolve(run.returns, np.full(width, 1 / width), mode="valid")
    axes.plot(run.episode_end[width - 1 :], means, label=name, **line)
    return _over_steps(axes, "return of an episode", f"Return, mean over {width} episodes")


def draw_worth(worth: Worth, ax: Any = None) -> Any:
    """Draw regret with and without logs in the simulated worlds, and the episodes saved in each."""
    return style.draw_panels(worth, ax, WORTH_PANELS, size=(5.0, 3.8))


def _regret(worth: Worth, axes: Axes) -> None:
    steps, without, with_logs = worth.curves()
    tails = ((1 - COVERED) / 2, (1 + COVERED) / 2)
    scale = max(float(without[:, -1].mean()), float(with_logs[:, -1].mean())) or 1.0
    both = ((without, style.SOFT, "without logs"), (with_logs, style.FLOOR, "with logs"))
    for curves, color, name in both:
        low, high = np.quantile(curves / scale, tails, axis=0)
        axes.plot(steps, curves.mean(axis=0) / scale, color=color, label=name)
        style.band(axes, steps, low, high, color)
    title = f"Regret: mean, and {COVERED:.0%} of the simulated worlds"
    _over_steps(axes, "regret, as a share of the largest mean", title)


def _saved(worth: Worth, axes: Axes) -> None:
    kinds = (
        (False, style.FLOOR, "where they mislead, they say nothing"),
        (True, style.CEILING, "where they mislead, the opposite"),
    )
    for against, color, name in kinds:
        worlds = [world for world in worth.worlds if world.against == against]
        doubts, saved = [world.doubt for world in worlds], [world.saved for world in worlds]
        axes.plot(doubts, saved, "o", color=color, label=name)
    axes.axhline(0.0, color=style.INK, linewidth=0.8)
    title = f"Episodes saved, of about {worth.episodes:,.0f}"
    xlabel = "how far the logs mislead: 0 nowhere, 1 everywhere"
    style.finish(
        axes, True, title=title, xlabel=xlabel, ylabel="episodes saved", xlim=(-0.03, 1.03)
    )


WORTH_PANELS = (_regret, _saved)
"""The panels of `draw_worth`."""


def _over_steps(axes: Axes, ylabel: str, title: str) -> Axes:
    """Finish axes over the agent's steps; regret begins at 0, returns may be negative."""
    axes.set_xlim(left=0)
    if ylabel.startswith("regret"):
        axes.set_ylim(bottom=0)
    return style.finish(axes, True, title=title, xlabel="environment steps", ylabel=ylabel)
