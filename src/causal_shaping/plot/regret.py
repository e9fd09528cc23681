"""What runs came to: regret over steps."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.errors import ArgumentError
from causal_shaping.learners import Seeds
from causal_shaping.learners.intervals import curve_intervals
from causal_shaping.plot._panels import panels, text, tidy


def draw_curve(axes: Axes, steps: LongArray, curves: FloatArray, label: str, **style: Any) -> None:
    """Draw the mean of curves [seeds, points] with its 95% interval."""
    middle, low, high = curve_intervals(curves)
    (line,) = axes.plot(steps, middle, label=text(label), **style)
    axes.fill_between(steps, low, high, alpha=0.2, color=line.get_color(), linewidth=0)


def draw_seeds(found: Seeds, ax: Any = None, *, label: str | None = None) -> Axes:
    """Draw the regret of a learner: mean over seeds, with its 95% interval.

    Args:
        found: what `train_seeds` returned.
        ax: see `draw`; give that of another learner to compare them.
        label: the name in the legend, by default the learner's.
    """
    steps, curves = found.curves()
    if curves.size == 0:
        raise ArgumentError(f"The optimum of {found.settings['world']} is not known: there is no regret to draw.")
    (axes,) = panels(ax)
    draw_curve(axes, steps, curves, label or str(found.settings["learner"]))
    axes.set(xlabel="environment steps", ylabel="regret", title="Regret: mean over seeds, 95% interval")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    tidy(axes)
    return axes
