"""Fitted values over one or two coordinates; what lies beyond the logs is grey and hatched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.fitted.results import FittedCeilings
from causal_shaping.plot._panels import CEILING, FLOOR, SOFT, panels, text, tidy

POINTS = {1: 400, 2: 160}
"""Points along each side, of a line and of a map."""

BEYOND: dict[str, Any] = {"facecolor": "#e4e7ea", "edgecolor": "#b4bac1", "hatch": "////", "linewidth": 0.0}
"""What lies beyond the logs."""


def draw_fitted(fitted: FittedCeilings, ax: Any = None, *, x: str | None = None, y: str | None = None) -> Axes:
    """Draw values of the first step as a map over two coordinates, or as a line over one; others at their medians.

    Args:
        fitted: ceilings or floors of vectors.
        ax: see `draw`.
        x: the coordinate to the right; by default the first.
        y: the coordinate upwards; by default the next one, unless only `x` is given.
    """
    names = fitted.columns
    if fitted.shape != (len(names),) or fitted.observe is not None:
        raise ArgumentError(
            f"Observations of shape {list(fitted.shape)} have no coordinates to draw values over. Draw values of "
            "observations of your own: fitted(observations)."
        )
    shown = [name for name in (x, y) if name is not None] or list(names[:2])
    for name in shown:
        if name not in names:
            raise ArgumentError(f"There is no coordinate {name!r}. The coordinates are {', '.join(names)}.")
    if shown.count(shown[0]) > 1:
        raise ArgumentError(f"The coordinate {shown[0]!r} is named twice.")
    places = [names.index(name) for name in shown]
    sides = [np.linspace(fitted.low[d], fitted.high[d], POINTS[len(shown)]) for d in places]
    seen = np.tile(fitted.middle, (POINTS[len(shown)] ** len(shown), 1))
    for d, grid in zip(places, np.meshgrid(*sides), strict=True):
        seen[:, d] = grid.ravel()
    beyond = fitted.is_beyond(seen)
    found = np.where(beyond, np.nan, fitted(seen))
    others = ", ".join(f"{name} = {fitted.middle[d]:.3g}" for d, name in enumerate(names) if name not in shown)
    when = "" if fitted.settings.horizon is None else " at step 0"
    title = f"Fitted {fitted.WHAT}{when}{f', {others}' if others else ''}"
    color = CEILING if fitted.settings.side > 0 else FLOOR
    axes = _draw_line(ax, sides[0], found, color) if len(shown) == 1 else _draw_map(ax, sides, found)
    axes.set_title(text(title))
    axes.set_xlabel(text(shown[0]))
    axes.set_ylabel(text(shown[1]) if len(shown) > 1 else "value")
    if beyond.any():
        axes.legend([Patch(**BEYOND)], ["beyond the logs"], loc="upper left", bbox_to_anchor=(0, -0.14), frameon=False)
    return axes


def _draw_map(ax: Any, sides: Sequence[FloatArray], found: FloatArray) -> Axes:
    (axes,) = panels(ax, size=(6.4, 5.0))
    axes.add_patch(Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=1, **BEYOND))
    drawn = axes.imshow(
        found.reshape(len(sides[1]), len(sides[0])),
        extent=_limits(sides[0]) + _limits(sides[1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=2,
    )
    figure = axes.get_figure(root=True)
    assert figure is not None
    if not np.isnan(found).all():
        figure.colorbar(drawn, ax=axes, label="value")
    return axes


def _draw_line(ax: Any, side: FloatArray, found: FloatArray, color: str) -> Axes:
    (axes,) = panels(ax)
    axes.plot(side, found, color=color, zorder=2)
    axes.set_xlim(*_limits(side))
    empty = np.isnan(found)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]]).astype(int)))
    for begin, end in edges.reshape(-1, 2):
        axes.axvspan(side[begin], side[end - 1], zorder=1, **BEYOND)
    axes.axhline(0, color=SOFT, linewidth=0.8)
    tidy(axes)
    return axes


def _limits(side: FloatArray) -> tuple[float, float]:
    """Return the limits of an axis, also for a coordinate that never changes."""
    low, high = float(side[0]), float(side[-1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)
