"""How figures and pages look: every colour and line, where panels come from, and labels.

Labels can hold anything, so `text` keeps matplotlib from reading them as formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

INK, SOFT = "#1f2328", "#8b949e"
"""Text and main lines; reference lines and whatever is less important."""

CEILING, FLOOR = "#b2452f", "#2f6fb2"
"""Warm for upper bounds and warnings, cool for lower bounds and what helps."""

EMPTY = "#eceff2"
"""Cells of a grid without a value."""

BEYOND: Any = {"facecolor": "#e4e7ea", "edgecolor": "#b4bac1", "hatch": "////", "linewidth": 0.0}
"""The patch for places that no log reaches."""

VALUES = "viridis"
"""The colour map of values: readable without colours, too."""

WALL, LAVA, LAVA_WAVES, GOAL = "#5b5f66", "#f58b2b", "#8a4300", "#bfe3b4"
GRID_LINE, WIND, GOLD, GOLD_EDGE, FLAG = "#c9ccd1", "#2f6fb2", "#f5c542", "#a87b00", "#2e7d32"
"""The map of a world."""

PAGE = {
    "ink": INK,
    "soft": "#59636e",  # darker than SOFT, as it colours text
    "line": "#d8dce1",
    "accent": "#1f5fa8",
    "good": "#2e7d32",
    "doubt": "#b26a00",
    "bad": CEILING,
}
"""The variables of the style sheet in `templates/base.html`."""

WITHOUT: Any = {"color": "#8a9099", "linestyle": "--"}
BELIEVING: Any = {"color": "#e07b00", "linestyle": "-."}
OURS: Any = {"color": "#123f73", "linestyle": "-"}
"""Lines of agents without logs, that believe them, and ours: dashes tell them apart in print."""

FAILURE, PALE = "#b2182b", "#9db8d6"
"""What fails, and bars that are only there for comparison."""

SMALL = 8
"""The size of text that names bars."""

BAND = 0.2
"""How opaque the band around a line is."""

Panel = Callable[[Any, Axes], None]
"""Draws one panel of a result."""


def panels(ax: Any, columns: int = 1, size: tuple[float, float] = (6.0, 4.0)) -> list[Axes]:
    """Return axes to draw panels into, side by side.

    Args:
        ax: axes, which take the first panel only; an empty figure, which takes the size; or None
            for a new figure.
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


def draw_panels(
    result: Any, ax: Any, parts: Sequence[Panel], size: tuple[float, float] = (4.0, 3.6)
) -> Any:
    """Draw the panels of a result side by side, or its first one into axes; return the axes."""
    places = panels(ax, len(parts), size)
    for place, part in zip(places, parts, strict=False):
        part(result, place)
    if len(places) == 1:
        return places[0]
    return np.array(places)


def finish(axes: Axes, legend: bool = False, **settings: Any) -> Axes:
    """Set properties of axes, such as the title, and leave out the lines above and right."""
    axes.set(**settings)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False)
    return axes


def named_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a figure, the first at the top."""
    axes.set_yticks(range(len(names)), list(map(text, names)), fontsize=SMALL)
    axes.set_ylim(len(names) - 0.5, -0.5)


def log_ticks(axes: Axes, ticks: Sequence[float], infinity: float | None = None) -> None:
    """Put ticks on a logarithmic x axis; `infinity` is the place that stands for inf."""
    labels = [f"{tick:g}" for tick in ticks]
    places = list(ticks)
    if infinity is not None:
        labels.append("inf")
        places.append(infinity)
    axes.set_xscale("log")
    axes.set_xticks(places, labels)
    axes.minorticks_off()


def band(axes: Axes, x: Any, low: Any, high: Any, color: Any) -> None:
    """Draw a band, such as an interval around a line."""
    axes.fill_between(x, low, high, color=color, alpha=BAND, linewidth=0)


def colour_bar(axes: Axes, drawn: Any, **options: Any) -> Any:
    """Draw the colour scale beside axes, and return it."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.colorbar(drawn, ax=axes, **options)


def text(label: Any) -> str:
    """Return a label as text that matplotlib shows as it is: a dollar begins a formula."""
    return str(label).replace("$", r"\$")
