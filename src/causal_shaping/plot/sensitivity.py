"""How bounds move with confounding, drawn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.data.arrays import FloatArray
from causal_shaping.plot._panels import CEILING, FLOOR, INK, draw_panels, tidy


def draw_sensitivity(found: Sensitivity, ax: Any = None) -> Any:
    """Draw how bounds, provably suboptimal actions and singled out best actions move with Gamma."""
    return draw_panels(found, ax, PANELS)


def _bounds(found: Sensitivity, axes: Axes) -> None:
    possible, places, end = _places(found)
    for values, color, name in ((found.ceilings, CEILING, "ceiling"), (found.floors, FLOOR, "floor")):
        shown = values[possible][:, found.bounded]
        _line(axes, places, shown.mean(axis=1), end, color, f"{name}, mean over states")
        low, high = np.quantile(shown, (0.1, 0.9), axis=1)
        axes.fill_between(places, low, high, color=color, alpha=0.15, linewidth=0)
    axes.legend(frameon=False)
    _over_confounding(found, axes, end, "Bounds of the first step (10% to 90% of states)")


def _suboptimal(found: Sensitivity, axes: Axes) -> None:
    possible, places, end = _places(found)
    _line(axes, places, 100 * found.suboptimal[possible], end, INK)
    _over_confounding(found, axes, end, "Provably suboptimal", "% of (step, state, action)")


def _singled_out(found: Sensitivity, axes: Axes) -> None:
    _, _, end = _places(found)
    levels = np.nan_to_num(found.breakdown[found.bounded], nan=0.0, posinf=np.inf)
    steps = np.geomspace(1.0, end, 400)
    left = [100 * (levels >= (np.inf if level == steps[-1] else level)).mean() for level in steps]
    axes.plot(steps[:-1], left[:-1], drawstyle="steps-post", color=INK)
    axes.plot(steps[-1], left[-1], marker="o", color=INK, clip_on=False)
    _over_confounding(found, axes, end, "Best action singled out", "% of states")


PANELS = (_bounds, _suboptimal, _singled_out)


def _places(found: Sensitivity) -> tuple[list[int], FloatArray, float]:
    """Return which Gammas are possible, where they are drawn, and where inf is."""
    end = 3 * max([*_finite(found), 1.0])
    possible = [i for i, why in enumerate(found.contradictions) if why is None]
    return possible, np.minimum(found.confounding, end)[possible], end


def _finite(found: Sensitivity) -> list[float]:
    return [gamma for gamma in found.confounding if math.isfinite(gamma)]


def _over_confounding(found: Sensitivity, axes: Axes, end: float, title: str, share: str = "") -> None:
    """Finish a panel over Gamma; one of shares begins at 0."""
    finite = _finite(found)
    axes.set(xscale="log", xlabel="confounding")
    axes.set_xticks([*finite, end], [f"{gamma:g}" for gamma in finite] + ["inf"])
    axes.minorticks_off()
    axes.set_xlim(0.95, end * 1.05)
    axes.set_title(title, fontsize=10)
    if share:
        axes.set_ylabel(share)
        axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
    tidy(axes)


def _line(axes: Axes, places: FloatArray, values: FloatArray, end: float, color: str, label: str | None = None) -> None:
    """Draw values over Gamma, dotted towards inf, which stands at the end."""
    within = places < end
    axes.plot(places[within], values[within], marker="o", color=color, label=label, clip_on=False)
    if not within.all():
        axes.plot(places[-2:], values[-2:], marker="o", color=color, linestyle=":", clip_on=False)
