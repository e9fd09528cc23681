"""Pictures of a world: its map and winds; on top a policy as arrows, and values as colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrow, Polygon, Rectangle
from matplotlib.patheffects import withStroke

from causal_shaping.errors import ArgumentError
from causal_shaping.plot import style
from causal_shaping.plot.style import INK, WIND, colour_bar, panels
from causal_shaping.worlds.grid import CALM, COIN, DIRECTIONS, FREE, GOAL, LAVA, PUSHES, WALL
from causal_shaping.worlds.world import World

COLORS = {WALL: style.WALL, LAVA: style.LAVA, GOAL: style.GOAL}
"""The colour of a cell by its mark; others are white."""

CELL_INCHES = 0.65
"""A cell has room for a value and an arrow."""

EDGE = 0.6
"""How much of the wall around a map is left out, as it says nothing."""

LIKELY, SURE = 0.01, 0.99
"""Less likely actions are not drawn; an arrow of a surer one is drawn through the middle."""


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

    A wind is an arrow in the lower right of a cell, the longer the likelier; calm air is a ring.
    Where coins pay once, the picture shows the states with all coins left.

    Args:
        world: a grid world, or the walking robot.
        values: float [states], shown as colours and numbers.
        policy: actions as integers [states], or probabilities [states, actions]; arrows, a dot for
            `still`.
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
    if axes is None:
        beside = {True: 1.0, False: 0.3}[values is not None]
        axes = _panel(world, Figure(layout="constrained"), beside)
    cells, rows = _cells(world), _rows(world)
    marks = [(x, y, mark) for y, row in enumerate(rows) for x, mark in enumerate(row)]
    # From the back to the front: cells, values, what lies on the cells, winds, the policy.
    for x, y, mark in marks:
        line = {WALL: style.WALL}.get(mark, style.GRID_LINE)
        axes.add_artist(_cell(x, y, facecolor=COLORS.get(mark, "white"), edgecolor=line))
    if values is not None:
        _draw_values(axes, world, cells, np.asarray(values), limits, scale)
    for x, y, mark in marks:
        _draw_thing(axes, x, y, mark)
    if winds and world.grid is not None:
        for (x, y), state in cells.items():
            _draw_wind(axes, x + 0.8, y + 0.8, world.model.noise[state])
    if policy is not None:
        table = world.model.check_policy(policy)
        for (x, y), state in cells.items():
            for action, probability in zip(world.actions, table[state], strict=True):
                if probability >= LIKELY:
                    _draw_action(axes, x + 0.5, y + 0.5, str(action), probability)
    edge = EDGE * (world.grid is not None)
    width, height = len(rows[0]), len(rows)
    axes.set(xlim=(edge, width - edge), ylim=(height - edge, edge), aspect="equal")
    if title is None:
        title = world.title
    axes.set_title(title, fontsize=11, color=INK)
    if world.grid is not None:
        axes.set_axis_off()
    else:
        axes.set_xticks(np.arange(width) + 0.5, [str(i) for i in range(width)])
        axes.set_yticks([0.5, 1.5], ["stable", "unstable"])
        axes.set_xlabel("place L")
        axes.tick_params(length=0)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def draw_map(world: World, ax: Any = None, **options: Any) -> Axes:
    """Draw a world for `world.plot()`; for the options see `draw_world`."""
    axes = _panel(world, ax, 0.6)
    draw_world(world, axes=axes, **options)
    return axes


def _panel(world: World, ax: Any, beside: float) -> Axes:
    """Return axes for a world, with room beside its map, in inches."""
    rows, above = _rows(world), 0.4
    if world.grid is None:
        above = 1.2
    return panels(ax, size=(len(rows[0]) * CELL_INCHES + beside, len(rows) * CELL_INCHES + above))[
        0
    ]


def _cells(world: World) -> dict[tuple[int, int], int]:
    """Return the state that each cell of the picture stands for; terminal states have none."""
    if world.grid is not None:
        return {cell: world.state_at(*cell) for cell in world.grid.starts}
    places = range(len(world.states) // 2 - 1)
    return {(at, 1 - stable): world.state_at(at, stable) for at in places for stable in (0, 1)}


def _rows(world: World) -> Sequence[str]:
    """Return the marks of a map; the robot's hallway has a row for stable and for unstable."""
    if world.grid is not None:
        return world.grid.rows
    return (FREE * (len(world.states) // 2 - 1) + GOAL,) * 2


def _cell(x: int, y: int, **look: Any) -> Rectangle:
    return Rectangle((x, y), 1, 1, linewidth=0.8, **look)


def _draw_values(
    axes: Axes,
    world: World,
    cells: dict[tuple[int, int], int],
    values: npt.NDArray[Any],
    limits: tuple[float, float] | None,
    with_scale: bool,
) -> None:
    """Colour each cell by its value, and write the value into it."""
    if values.shape != (len(world.states),):
        raise ArgumentError(
            f"values has shape {values.shape}, but the picture needs one entry for each of the "
            f"{len(world.states)} states. Pass one step of step-indexed values."
        )
    shown = values[list(cells.values())]
    low, high = limits or (float(shown.min()), float(shown.max()))
    if high <= low:
        high = low + 1
    scale, palette = Normalize(low, high), colormaps[style.VALUES]
    for (x, y), state in cells.items():
        color = palette(scale(values[state]))
        axes.add_artist(_cell(x, y, facecolor=color, edgecolor=style.GRID_LINE, alpha=0.85))
        corner: Any = {"ha": "left", "va": "top", "fontsize": 6.5, "color": ink_on(color)}
        axes.text(x + 0.06, y + 0.06, f"{values[state]:.2f}", **corner)
    if with_scale:
        shrink = {True: 0.8, False: 0.6}[world.grid is not None]
        look: Any = {"fraction": 0.04, "pad": 0.02, "alpha": 0.85, "shrink": shrink}
        bar = colour_bar(axes, ScalarMappable(scale, palette), **look)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, length=2)


def ink_on(color: tuple[float, float, float, float]) -> str:
    """Return the colour of text that can be read on another colour."""
    red, green, blue, _ = color
    if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5:  # the brightness that people perceive
        return INK
    return "white"


def _draw_thing(axes: Axes, x: int, y: int, mark: str) -> None:
    """Draw waves of lava, a coin, or the flag of the goal."""
    if mark == LAVA:
        along = np.linspace(0.18, 0.82, 40)
        for level in (0.35, 0.5, 0.65):
            waves = y + level + 0.035 * np.sin(along * 24)
            axes.plot(x + along, waves, color=style.LAVA_WAVES, linewidth=0.9)
    elif mark == COIN:
        coin: Any = {"facecolor": style.GOLD, "edgecolor": style.GOLD_EDGE, "linewidth": 1}
        axes.add_artist(Circle((x + 0.5, y + 0.5), 0.2, **coin))
    elif mark == GOAL:
        axes.plot([x + 0.36, x + 0.36], [y + 0.18, y + 0.84], color=INK, linewidth=1.4)
        flag = [(x + 0.37, y + 0.18), (x + 0.37, y + 0.5), (x + 0.76, y + 0.34)]
        axes.add_artist(Polygon(flag, facecolor=style.FLAG, edgecolor=style.FLAG))


def _draw_wind(axes: Axes, x: float, y: float, distribution: Any) -> None:
    """Draw where the air pushes, and how likely."""
    for wind, probability in zip((*PUSHES, CALM), distribution, strict=True):
        if wind == CALM and probability > 0:
            ring: Any = {"facecolor": "white", "edgecolor": WIND, "linewidth": 0.8, "zorder": 4}
            axes.add_artist(Circle((x, y), 0.02 + 0.03 * probability, **ring))
        elif probability > 0:
            length, width = 0.11 + 0.08 * probability, 0.012 + 0.012 * probability
            look: Any = {"color": WIND, "linewidth": 0.2, "zorder": 3}
            _arrow(axes, x, y, DIRECTIONS[PUSHES[wind]], length, width, **look)


def _draw_action(axes: Axes, x: float, y: float, action: str, probability: float) -> None:
    """Draw an action around the middle of its cell."""
    if action in DIRECTIONS:
        dx, dy = DIRECTIONS[action]
        begin, length, look = 0.04, 0.08 + 0.28 * probability, {"edgecolor": INK, "linewidth": 0.2}
        if probability > SURE:  # the only arrow: through the middle
            begin, length, look = -0.18, 0.36, {"edgecolor": "white", "linewidth": 0.6}
        look |= {"facecolor": INK, "zorder": 5}
        width = 0.045 * probability**0.5
        _arrow(axes, x + dx * begin, y + dy * begin, (dx, dy), length, width, **look)
    elif action == "still":
        dot: Any = {"facecolor": INK, "edgecolor": "white", "zorder": 5}
        axes.add_artist(Circle((x, y), 0.07 * probability**0.5, **dot))
    elif probability >= 0.5:
        name = axes.text(x, y + 0.1, action.split("-")[0], ha="center", va="center", fontsize=8)
        name.set_path_effects([withStroke(linewidth=2.5, foreground="white")])


def _arrow(
    axes: Axes, x: float, y: float, way: tuple[int, int], length: float, width: float, **look: Any
) -> None:
    look |= {"width": width, "head_width": 4 * width, "head_length": 3.2 * width}
    dx, dy = (part * length for part in way)
    axes.add_artist(FancyArrow(x, y, dx, dy, length_includes_head=True, **look))
