"""How bounds move with confounding, drawn."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.data.arrays import FloatArray


def draw_sensitivity(found: Sensitivity) -> Figure:
    """Draw how bounds, provably suboptimal actions and singled out best actions move with Gamma."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    bounds_axes, masked_axes, broken_axes = figure.subplots(1, 3)
    finite = [gamma for gamma in found.confounding if math.isfinite(gamma)]
    end = 3 * max([*finite, 1.0])  # where inf is drawn
    possible = [i for i, why in enumerate(found.contradictions) if why is None]
    places = np.minimum(found.confounding, end)[possible]
    for values, color, name in ((found.ceilings, "#b2452f", "ceiling"), (found.floors, "#2f6fb2", "floor")):
        shown = values[possible][:, found.bounded]
        _line(bounds_axes, places, shown.mean(axis=1), end, color=color, label=f"{name}, mean over states")
        low, high = np.quantile(shown, (0.1, 0.9), axis=1)
        bounds_axes.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0)
    bounds_axes.set(title="Bounds of the first step (10% to 90% of states)", xlabel="confounding")
    bounds_axes.legend(frameon=False)
    _line(masked_axes, places, 100 * found.suboptimal[possible], end, color="black")
    masked_axes.set(title="Provably suboptimal", ylabel="% of (step, state, action)", xlabel="confounding")
    levels = np.nan_to_num(found.breakdown[found.bounded], nan=0.0, posinf=np.inf)
    steps = np.geomspace(1.0, end, 400)
    left = [100 * (levels >= (np.inf if level == steps[-1] else level)).mean() for level in steps]
    broken_axes.plot(steps[:-1], left[:-1], drawstyle="steps-post", color="black")
    broken_axes.plot(steps[-1], left[-1], marker="o", color="black", clip_on=False)
    broken_axes.set(title="Best action singled out", ylabel="% of states", xlabel="confounding")
    for axes in (bounds_axes, masked_axes, broken_axes):
        axes.set_xscale("log")
        axes.set_xticks([*finite, end], [f"{gamma:g}" for gamma in finite] + ["inf"])
        axes.minorticks_off()
        axes.set_xlim(0.95, end * 1.05)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (masked_axes, broken_axes):
        axes.set_ylim(bottom=0)
    return figure


def _line(axes: Axes, places: FloatArray, values: FloatArray, end: float, color: str, label: str | None = None) -> None:
    """Draw values over Gamma, dotted towards inf, which stands at the end."""
    within = places < end
    axes.plot(places[within], values[within], marker="o", color=color, label=label, clip_on=False)
    if not within.all():
        axes.plot(places[-2:], values[-2:], marker="o", color=color, linestyle=":", clip_on=False)
