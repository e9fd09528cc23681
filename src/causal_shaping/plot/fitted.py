"""Figures of fitted values over one or two coordinates; places that no log reaches are hatched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.fitted.results import FittedCeilings
from causal_shaping.plot import style

POINTS = {1: 400, 2: 160}
"""Points along each side of a line and of a map: more than a screen tells apart."""


def draw_fitted(
    fitted: FittedCeilings,
    ax: Any = None,
    *,
    x: str | None = None,
    y: str | None = None,
    at: Mapping[str, float] | None = None,
    step: int = 0,
) -> Axes:
    """Draw values of one step as a map over two coordinates, or as a line over one.

    Args:
        fitted: ceilings or floors of vectors.
        ax: see `draw`.
        x: the coordinate to the right; by default the first.
        y: the coordinate upwards; by default the next one, unless only `x` is given.
        at: the values of other coordinates; by default their medians in the logs.
        step: which step, counted from 0.
    """
    names, fixed = fitted.columns, dict(at or {})
    shown = [name for name in (x, y) if name is not None] or list(names[:2])
    _check_coordinates(fitted, shown, fixed)
    places = [names.index(name) for name in shown]
    # Every point of a grid over the coordinates that are shown; the others have one value.
    points = POINTS[len(shown)]
    sides = [np.linspace(fitted.low[d], fitted.high[d], points) for d in places]
    middle = [fixed.get(name, fitted.middle[d]) for d, name in enumerate(names)]
    observations = np.tile(np.array(middle), (points ** len(shown), 1))
    for d, grid in zip(places, np.meshgrid(*sides), strict=True):
        observations[:, d] = grid.ravel()
    beyond = fitted.is_beyond(observations)
    values = np.where(beyond, np.nan, fitted(observations, step))
    if len(shown) == 1:
        color = {True: style.CEILING, False: style.FLOOR}[fitted.settings.side > 0]
        axes = _draw_line(ax, sides[0], values, color)
    else:
        axes = _draw_map(ax, sides, values)
    title = f"Fitted {fitted.WHAT}"
    if fitted.settings.horizon is not None:
        title += f" at step {step}"
    for name, value in zip(names, middle, strict=True):
        if name not in shown:
            title += f", {name} = {value:.3g}"
    # Of a line, the second label is that of its values.
    xlabel, ylabel = map(style.text, [*shown, "value"][:2])
    axes.set(title=style.text(title), xlabel=xlabel, ylabel=ylabel)
    if beyond.any():
        below: Any = {"loc": "upper left", "bbox_to_anchor": (0, -0.14), "frameon": False}
        axes.legend([Patch(**style.BEYOND)], ["beyond the logs"], **below)
    return axes


def _check_coordinates(
    fitted: FittedCeilings, shown: Sequence[str], fixed: Mapping[str, float]
) -> None:
    """Refuse images, unknown coordinates, and coordinates that are named twice."""
    names = fitted.columns
    if fitted.shape != (len(names),) or fitted.observe is not None:
        raise ArgumentError(
            f"Observations of shape {list(fitted.shape)} have no coordinates to draw values over. "
            "Draw values of observations of your own: fitted(observations)."
        )
    for name in (*shown, *fixed):
        if name not in names:
            raise ArgumentError(
                f"There is no coordinate {name!r}. The coordinates are {', '.join(names)}."
            )
    for name in shown:
        if shown.count(name) > 1 or name in fixed:
            raise ArgumentError(
                f"The coordinate {name!r} is named twice; each is either drawn or has one value."
            )


def _draw_map(ax: Any, sides: Sequence[FloatArray], values: FloatArray) -> Axes:
    """Draw values [points * points] over two coordinates."""
    (axes,) = style.panels(ax, size=(6.4, 5.0))
    behind: Any = {"transform": axes.transAxes, "zorder": 1, **style.BEYOND}
    axes.add_patch(Rectangle((0, 0), 1, 1, **behind))
    drawn = axes.imshow(
        values.reshape(len(sides[1]), len(sides[0])),
        extent=_limits(sides[0]) + _limits(sides[1]),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        zorder=2,
    )
    if not np.isnan(values).all():
        style.colour_bar(axes, drawn, label="value")
    return axes


def _draw_line(ax: Any, side: FloatArray, values: FloatArray, color: str) -> Axes:
    """Draw values over one coordinate."""
    (axes,) = style.panels(ax)
    axes.plot(side, values, color=color, zorder=2)
    # Hatch each stretch without values: where it begins and ends the difference is 1 and -1.
    empty = np.concatenate([[False], np.isnan(values), [False]])
    for begin, end in np.flatnonzero(np.diff(empty.astype(int))).reshape(-1, 2):
        axes.axvspan(side[begin], side[end - 1], zorder=1, **style.BEYOND)
    axes.axhline(0, color=style.SOFT, linewidth=0.8)
    return style.finish(axes, xlim=_limits(side))


def _limits(side: FloatArray) -> tuple[float, float]:
    """Return the limits of an axis, also for a coordinate that never changes."""
    low, high = float(side[0]), float(side[-1])
    if high > low:
        return low, high
    return low - 0.5, high + 0.5
