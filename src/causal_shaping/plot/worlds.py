"""Pictures of a world: its map and winds, and on top a policy as arrows and values as colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrow, Polygon, Rectangle
from matplotlib.patheffects import withStroke

from causal_shaping.errors import ArgumentError
from causal_shaping.plot._panels import panels
from causal_shaping.worlds.grid import CALM, COIN, DIRECTIONS, FREE, GOAL, LAVA, PUSHES, WALL, Cell
from causal_shaping.worlds.world import World

COLORS = {WALL: "#5b5f66", FREE: "#ffffff", COIN: "#ffffff", LAVA: "#f58b2b", GOAL: "#bfe3b4"}
LINE, INK, WIND, GOLD, GOLD_EDGE, FLAG = "#c9ccd1", "#1f2328", "#2f6fb2", "#f5c542", "#a87b00", "#2e7d32"
CELL_INCHES = 0.65
EDGE = 0.6
"""How much of the wall around a map is left out of the picture."""


def draw_world(
    world: World,
    *,
    values: npt.ArrayLike | None = None,
    policy: npt.ArrayLike | None = None,
    winds: bool = True,
    limits: tuple[float, float] | None = None,
    scale: bool = True,
    title: str | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw a world's map with its winds, and if given a policy and a value function on top.

    A wind is an arrow in the lower right of a cell, as long as it is likely, a ring if the air may be calm.
    Where coins pay once, the picture shows the states with all coins left.

    Args:
        world: a grid world, or the walking robot.
        values: float [states], shown as colours and numbers.
        policy: actions as integers [states], or probabilities [states, actions]; arrows, a dot for `still`.
        winds: whether to draw the winds.
        limits: the values at the ends of the colour scale, by default the smallest and largest.
        scale: whether to draw the colour scale beside the map.
        title: the text above, by default the world's title.
        axes: where to draw; by default a figure of its own.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> best = world.model.optimum()
        >>> figure = draw_world(world, values=best.values, policy=best.greedy())
    """
    cells = _cells(world)
    rows = _rows(world)
    width, height = len(rows[0]), len(rows)
    if axes is None:
        axes = _panel(world, Figure(layout="constrained"), 1.0 if values is not None else 0.3)
    figure = axes.get_figure(root=True)
    assert figure is not None

    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            line = COLORS[WALL] if mark == WALL else LINE
            axes.add_artist(Rectangle((x, y), 1, 1, facecolor=COLORS[mark], edgecolor=line, linewidth=0.8))
    if values is not None:
        _draw_values(axes, world, cells, values, limits, scale)
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            _draw_thing(axes, x, y, mark)
    if winds and world.grid is not None:
        for cell, state in cells.items():
            _draw_wind(axes, cell, world.model.noise[state])
    if policy is not None:
        _draw_policy(axes, world, cells, policy)

    edge = EDGE if world.grid else 0.0
    axes.set(xlim=(edge, width - edge), ylim=(height - edge, edge), aspect="equal")
    axes.set_title(world.title if title is None else title, fontsize=11, color=INK)
    if world.grid is None:
        axes.set_xticks(np.arange(width) + 0.5, [str(i) for i in range(width)])
        axes.set_yticks([0.5, 1.5], ["stable", "unstable"])
        axes.set_xlabel("place L")
        axes.tick_params(length=0)
    else:
        axes.set_axis_off()
    return figure


def draw_map(world: World, ax: Any = None, **options: Any) -> Axes:
    """Draw a world for `world.plot()`; for the options see `draw_world`."""
    axes = _panel(world, ax, 0.6)
    draw_world(world, axes=axes, **options)
    return axes


def _panel(world: World, ax: Any, beside: float) -> Axes:
    """Return axes for a world, with so many inches beside its map."""
    rows, above = _rows(world), 0.4 if world.grid else 1.2
    return panels(ax, size=(len(rows[0]) * CELL_INCHES + beside, len(rows) * CELL_INCHES + above))[0]


def _cells(world: World) -> dict[Cell, int]:
    """Return the state that each cell of the picture stands for; terminal states have none."""
    if world.grid is not None:
        return {cell: world.state_at(*cell) for cell in world.grid.starts}
    places = range(len(world.states) // 2 - 1)
    return {(place, 1 - stable): world.state_at(place, stable) for place in places for stable in (0, 1)}


def _rows(world: World) -> Sequence[str]:
    """Return the marks of a map; the hallway of the walking robot has a row for each stability."""
    return world.grid.rows if world.grid else (FREE * (len(world.states) // 2 - 1) + GOAL,) * 2


def _draw_values(
    axes: Axes,
    world: World,
    cells: dict[Cell, int],
    given: npt.ArrayLike,
    limits: tuple[float, float] | None,
    with_scale: bool,
) -> None:
    values = np.asarray(given)
    if values.shape != (len(world.states),):
        raise ArgumentError(
            f"values has shape {values.shape}, but the picture needs one entry for each of the "
            f"{len(world.states)} states. Pass one step of step-indexed values."
        )
    shown = values[list(cells.values())]
    low, high = limits if limits is not None else (float(shown.min()), float(shown.max()))
    scale = Normalize(low, high if high > low else low + 1)
    palette: Colormap = colormaps["viridis"]
    for (x, y), state in cells.items():
        color = palette(scale(values[state]))
        axes.add_artist(Rectangle((x, y), 1, 1, facecolor=color, edgecolor=LINE, linewidth=0.8, alpha=0.85))
        axes.text(x + 0.06, y + 0.06, f"{values[state]:.2f}", ha="left", va="top", fontsize=6.5, color=ink_on(color))
    if not with_scale:
        return
    bar = axes.get_figure(root=True).colorbar(  # type: ignore[union-attr]
        ScalarMappable(scale, palette), ax=axes, fraction=0.04, pad=0.02, alpha=0.85, shrink=0.8 if world.grid else 0.6
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=2)


def ink_on(color: tuple[float, float, float, float]) -> str:
    """Return the colour of text that can be read on another colour."""
    red, green, blue, _ = color
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"


def _draw_thing(axes: Axes, x: int, y: int, mark: str) -> None:
    if mark == LAVA:
        along = np.linspace(0.18, 0.82, 40)
        for level in (0.35, 0.5, 0.65):
            axes.plot(x + along, y + level + 0.035 * np.sin(along * 24), color="#8a4300", linewidth=0.9)
    elif mark == COIN:
        axes.add_artist(Circle((x + 0.5, y + 0.5), 0.2, facecolor=GOLD, edgecolor=GOLD_EDGE, linewidth=1))
    elif mark == GOAL:
        axes.plot([x + 0.36, x + 0.36], [y + 0.18, y + 0.84], color=INK, linewidth=1.4)
        flag = [(x + 0.37, y + 0.18), (x + 0.37, y + 0.5), (x + 0.76, y + 0.34)]
        axes.add_artist(Polygon(flag, facecolor=FLAG, edgecolor=FLAG))


def _draw_wind(axes: Axes, cell: Cell, distribution: Any) -> None:
    x, y = cell[0] + 0.8, cell[1] + 0.8
    for wind, probability in zip((*PUSHES, CALM), distribution, strict=True):
        if probability == 0:
            continue
        if wind == CALM:
            radius = 0.02 + 0.03 * probability
            axes.add_artist(Circle((x, y), radius, facecolor="white", edgecolor=WIND, linewidth=0.8, zorder=4))
        else:
            length, width = 0.11 + 0.08 * probability, 0.012 + 0.012 * probability
            _arrow(axes, x, y, DIRECTIONS[PUSHES[wind]], length, width, color=WIND, linewidth=0.2, zorder=3)


def _draw_policy(axes: Axes, world: World, cells: dict[Cell, int], policy: npt.ArrayLike) -> None:
    table = world.model.check_policy(policy)
    for (x, y), state in cells.items():
        for action, probability in zip(world.actions, table[state], strict=True):
            if probability < 0.01:
                continue
            if action in DIRECTIONS:
                dx, dy = DIRECTIONS[str(action)]
                sure = probability > 0.99  # then the arrow goes through the middle, else it starts there
                begin, length = (-0.18, 0.36) if sure else (0.04, 0.08 + 0.28 * probability)
                middle, thick = (x + 0.5 + dx * begin, y + 0.5 + dy * begin), 0.045 * probability**0.5
                edge: dict[str, Any] = {"edgecolor": "white" if sure else INK, "linewidth": 0.6 if sure else 0.2}
                _arrow(axes, *middle, (dx, dy), length, thick, facecolor=INK, zorder=5, **edge)
            elif action == "still":
                radius = 0.07 * probability**0.5
                axes.add_artist(Circle((x + 0.5, y + 0.5), radius, facecolor=INK, edgecolor="white", zorder=5))
            elif probability >= 0.5:
                name = axes.text(x + 0.5, y + 0.6, str(action).split("-")[0], ha="center", va="center", fontsize=8)
                name.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _arrow(
    axes: Axes, x: float, y: float, direction: tuple[int, int], length: float, width: float, **style: Any
) -> None:
    dx, dy = (part * length for part in direction)
    style |= {"width": width, "head_width": 4 * width, "head_length": 3.2 * width, "length_includes_head": True}
    axes.add_artist(FancyArrow(x, y, dx, dy, **style))
