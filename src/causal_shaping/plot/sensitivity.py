"""Figures of a sensitivity analysis: how bounds and best actions change with confounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.data.arrays import FloatArray
from causal_shaping.plot import style

POINTS = 400
"""Points of a curve over confounding: more than a screen tells apart."""


def draw_sensitivity(analysis: Sensitivity, ax: Any = None) -> Any:
    """Draw bounds, provably suboptimal actions and best actions over confounding."""
    return style.draw_panels(analysis, ax, PANELS)


def _bounds(analysis: Sensitivity, axes: Axes) -> None:
    possible, places, end = _places(analysis)
    both = ((analysis.ceilings, style.CEILING, "ceiling"), (analysis.floors, style.FLOOR, "floor"))
    for values, color, name in both:
        shown = values[possible][:, analysis.bounded]
        label = f"{name}, mean over states"
        _line(axes, places, shown.mean(axis=1), end, color=color, label=label)
        low, high = np.quantile(shown, (0.1, 0.9), axis=1)
        style.band(axes, places, low, high, color)
    axes.legend(frameon=False)
    _finish(analysis, axes, "Bounds of the first step (10% to 90% of states)")


def _suboptimal(analysis: Sensitivity, axes: Axes) -> None:
    possible, places, end = _places(analysis)
    _line(axes, places, 100 * analysis.suboptimal[possible], end, color=style.INK)
    _finish(analysis, axes, "Provably suboptimal", "% of (step, state, action)")


def _singled_out(analysis: Sensitivity, axes: Axes) -> None:
    _, _, end = _places(analysis)
    levels = np.nan_to_num(analysis.breakdown[analysis.bounded], nan=0.0, posinf=np.inf)
    gammas = np.geomspace(1.0, end, POINTS)
    # The last point stands for inf.
    shares = [100 * (levels >= gamma).mean() for gamma in (*gammas[:-1], np.inf)]
    axes.plot(gammas[:-1], shares[:-1], drawstyle="steps-post", color=style.INK)
    axes.plot(end, shares[-1], marker="o", color=style.INK, clip_on=False)
    _finish(analysis, axes, "Best action singled out", "% of states")


PANELS = (_bounds, _suboptimal, _singled_out)
"""The panels of `draw_sensitivity`."""


def _places(analysis: Sensitivity) -> tuple[list[int], FloatArray, float]:
    """Return which Gammas are possible, where they are drawn, and where inf is drawn."""
    end = 3 * max([*_finite(analysis), 1.0])
    possible = [i for i, why in enumerate(analysis.contradictions) if why is None]
    return possible, np.minimum(analysis.confounding, end)[possible], end


def _finite(analysis: Sensitivity) -> list[float]:
    return [gamma for gamma in analysis.confounding if math.isfinite(gamma)]


def _line(axes: Axes, places: FloatArray, values: FloatArray, end: float, **line: Any) -> None:
    """Draw values over Gamma, dotted towards inf, which is drawn at the end."""
    finite = places < end
    line |= {"marker": "o", "clip_on": False}
    axes.plot(places[finite], values[finite], **line)
    if not finite.all():
        axes.plot(places[-2:], values[-2:], **line | {"linestyle": ":", "label": None})


def _finish(analysis: Sensitivity, axes: Axes, title: str, share: str = "") -> None:
    """Finish a panel over Gamma; an axis of shares begins at 0."""
    end = _places(analysis)[2]
    style.log_ticks(axes, _finite(analysis), end)
    style.finish(axes, xlabel="confounding", xlim=(0.95, end * 1.05), ylabel=share)
    axes.set_title(title, fontsize=10)
    if share:
        axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
