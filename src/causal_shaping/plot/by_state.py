"""Figures with a number for each state: visits, bounds and potentials.

States of two whole numbers are a grid, and states of a known world its map. All others are bars,
sorted and without names if there are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.bounds.results import Bounds
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import Space
from causal_shaping.data.words import part_text, state_text
from causal_shaping.errors import ArgumentError, CausalShapingError
from causal_shaping.plot import style
from causal_shaping.plot.worlds import draw_map
from causal_shaping.worlds import World, load_world

LONGEST_NAME = 32
"""Longer names of states are cut, as they would leave no room for the bars."""

NAMED_BARS = 40
"""With more states bars have no names: a page has room for about so many lines."""

NAMED_TICKS = 24
"""With more values a side of a grid has only some names, which matplotlib chooses."""

LARGEST_GRID = 12.0
"""Inches: the largest grid that a screen shows."""


def draw_visits(counts: Counts, ax: Any = None, *, source: str | None = None) -> Axes:
    """Draw how often sources acted in each state, all of them together or one.

    Args:
        counts: the counts of logs.
        ax: see `draw`.
        source: the name of one source.
    """
    shown = np.ones(len(counts), dtype=bool)
    if source is not None:
        check_source(source, counts.sources)
        shown = counts.source == counts.sources.index(source)
    states = len(counts.space.states)
    visits: Any = np.bincount(counts.state[shown], counts.n[shown], minlength=states)
    title = f"Visits per state: {source or ', '.join(counts.sources)}"
    return draw_states(counts.space, visits, visits == 0, title, ax)


def check_source(source: str, sources: Sequence[str]) -> None:
    """Refuse the name of an unknown source."""
    if source not in sources:
        raise ArgumentError(f"There is no source {source!r}. The sources are {', '.join(sources)}.")


def draw_bounds(
    bounds: Bounds,
    ax: Any = None,
    *,
    world: World | None = None,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """Draw the bounds of the first step.

    Terminal states, and states without a better bound than without logs, stay empty.

    Args:
        bounds: ceilings or floors.
        ax: see `draw`.
        world: a world with these states, to draw them on its map; see `world_of`.
        limits: the values at the ends of the colour scale.
    """
    values, _, vacuous = bounds.first_step
    title = type(bounds).__name__
    if not bounds.stationary:
        title += " of the first step"
    color = {"ceilings": style.CEILING, "floors": style.FLOOR}[bounds.KIND]
    empty = vacuous | bounds.terminal
    return draw_states(bounds.space, values, empty, title, ax, world, limits, color)


def draw_potential(
    potential: Potential, ax: Any = None, *, world: World | None = None, step: int = 0
) -> Axes:
    """Draw a potential, a step-indexed one at one step; terminal states stay empty.

    Args:
        potential: what shapes the reward.
        ax: see `draw`.
        world: a world with these states, to draw it on its map.
        step: which step, counted from 0.
    """
    values, title = potential.values, "Potential"
    if potential.step_indexed:
        values, title = values[step], f"Potential at step {step}"
    return draw_states(potential.space, values, potential.space.is_terminal, title, ax, world)


def world_of(space: Space, metadata: Sequence[Mapping[str, str]]) -> World | None:
    """Return the world that all metadata of logs name, if it can be loaded and has these states."""
    if not metadata or len({(one.get("world"), one.get("coins")) for one in metadata}) > 1:
        return None
    name, coins = metadata[0].get("world", ""), metadata[0].get("coins", "standing")
    try:
        world = load_world(name, coins=coins)
    except CausalShapingError:
        return None
    if set(world.states) != set(space.states):
        return None
    return world


def is_grid(space: Space) -> bool:
    """Whether the states are two whole numbers each."""
    return all(
        isinstance(label, tuple) and len(label) == 2 and str not in map(type, label)
        for label in space.states
    )


def draw_states(
    space: Space,
    values: FloatArray,
    empty: BoolArray,
    title: str,
    ax: Any = None,
    world: World | None = None,
    limits: tuple[float, float] | None = None,
    color: str = style.FLOOR,
) -> Axes:
    """Draw a number for each state: on a map, as a grid, or as bars."""
    if world is not None:
        order, _ = space.positions(world.space)
        title = f"{world.title}: {title.lower()}"
        return draw_map(world, ax, values=values[order], limits=limits, title=title)
    values = np.where(empty, np.nan, values)
    if is_grid(space):
        axes = _draw_grid(space, values, ax, limits)
    else:
        axes = _draw_bars(space, values, ax, color)
    axes.set_title(style.text(title))
    return axes


def _draw_grid(
    space: Space, values: FloatArray, ax: Any, limits: tuple[float, float] | None
) -> Axes:
    """Draw a cell for each state, the first number to the right and the second downwards."""
    places = np.array(space.states, dtype=np.int64)
    corner = places.min(axis=0)
    sides = (places.max(axis=0) - corner + 1).tolist()
    picture = np.full(sides[::-1], np.nan)
    picture[places[:, 1] - corner[1], places[:, 0] - corner[0]] = values
    size = (min(LARGEST_GRID, 2.0 + 0.5 * sides[0]), min(LARGEST_GRID, 1.2 + 0.5 * sides[1]))
    (axes,) = style.panels(ax, size=size)
    (left, top), (width, height) = (corner - 0.5).tolist(), sides
    extent = (left, left + width, top + height, top)
    low, high = limits or (None, None)
    drawn = axes.imshow(picture, extent=extent, interpolation="nearest", vmin=low, vmax=high)
    if not np.isnan(picture).all():
        style.colour_bar(axes, drawn, shrink=0.8)
    for axis, name, least, count in zip("xy", space.columns, corner.tolist(), sides, strict=True):
        axes.set(**{f"{axis}label": style.text(name)})
        if count <= NAMED_TICKS:
            ticks = range(least, least + count)
            names = [style.text(part_text(space, name, tick)) for tick in ticks]
            # Ranges of numbers below the grid are long: slanted, they do not overlap.
            slanted = 30 * (axis == "x" and name in space.bins)
            getattr(axes, f"set_{axis}ticks")(ticks, names, rotation=slanted)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_facecolor(style.EMPTY)
    return axes


def _draw_bars(space: Space, values: FloatArray, ax: Any, color: str) -> Axes:
    """Draw a bar with a name for each state, or a line without names if there are many."""
    shown = np.flatnonzero(~np.isnan(values))
    if len(shown) > NAMED_BARS:
        (axes,) = style.panels(ax)
        axes.plot(np.sort(values[shown])[::-1], drawstyle="steps-mid", color=color)
        axes.axhline(0, color=style.SOFT, linewidth=0.8)
        return style.finish(axes, xlabel=f"{len(shown):,} states, largest first")
    (axes,) = style.panels(ax, size=(6.0, max(2.0, 0.8 + 0.22 * len(shown))))
    names = [state_text(space, state) for state in shown.tolist()]
    for i, name in enumerate(names):
        if len(name) > LONGEST_NAME:
            names[i] = f"{name[: LONGEST_NAME - 3]}..."
    axes.barh(range(len(shown)), values[shown], color=color, height=0.7)
    axes.set_yticks(range(len(shown)), list(map(style.text, names)), fontsize=style.SMALL)
    axes.invert_yaxis()
    axes.axvline(0, color=style.SOFT, linewidth=0.8)
    return style.finish(axes)
