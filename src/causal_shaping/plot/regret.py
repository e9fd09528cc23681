"""Regret over steps, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.errors import ArgumentError
from causal_shaping.learners.intervals import curve_intervals
from causal_shaping.learners.seeds import Seeds


def draw_curve(axes: Axes, steps: LongArray, curves: FloatArray, label: str, **style: Any) -> None:
    """Draw the mean of curves [seeds, points] with its 95% interval."""
    middle, low, high = curve_intervals(curves)
    (line,) = axes.plot(steps, middle, label=label, **style)
    axes.fill_between(steps, low, high, alpha=0.2, color=line.get_color(), linewidth=0)


def draw_regret(found: Mapping[str, Seeds]) -> Figure:
    """Draw the regret of one or several learners: mean over seeds, with its 95% interval."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for label, seeds in found.items():
        steps, curves = seeds.curves()
        if curves.size == 0:
            raise ArgumentError(f"The optimum of {seeds.settings['world']} is not known: there is no regret to draw.")
        draw_curve(axes, steps, curves, label)
    axes.set(xlabel="environment steps", ylabel="regret", title="Regret: mean over seeds, 95% interval")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
