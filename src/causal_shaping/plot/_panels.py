"""What all figures share: where panels come from, how axes look, and labels that stay text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

CEILING, FLOOR, INK, SOFT = "#b2452f", "#2f6fb2", "#1f2328", "#8b949e"

Panel = Callable[[Any, Axes], None]
"""Draws one panel of a result."""


def panels(ax: Any, columns: int = 1, size: tuple[float, float] = (6.0, 4.0)) -> list[Axes]:
    """Return axes to draw panels into, side by side: the given ones, those of an empty figure, or of a new one.

    Args:
        ax: axes, which take the first panel only; an empty figure, which takes the size; or None.
        columns: how many panels.
        size: of one panel, in inches.
    """
    if isinstance(ax, Axes):
        return [ax]
    figure, (width, height) = ax, size
    if figure is None:
        from matplotlib import pyplot  # so that notebooks and pyplot.show() find the figure

        figure = pyplot.figure(layout="constrained")
    figure.set_size_inches(width * columns, height)
    return list(figure.subplots(1, columns, squeeze=False)[0])


def draw_panels(result: Any, ax: Any, parts: Sequence[Panel], size: tuple[float, float] = (4.0, 3.6)) -> Any:
    """Draw the panels of a result side by side, or its first one into given axes; return the axes."""
    places = panels(ax, len(parts), size)
    for place, part in zip(places, parts, strict=False):
        part(result, place)
    return places[0] if len(places) == 1 else np.array(places)


def tidy(axes: Axes) -> None:
    """Leave out the lines above and to the right."""
    axes.spines[["top", "right"]].set_visible(False)


def text(label: Any) -> str:
    """Return a label as text that matplotlib shows as it is: a dollar sign would begin a formula."""
    return str(label).replace("$", r"\$")
