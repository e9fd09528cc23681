"""A number for each state: visits and bounds, on a map, as a grid, or as bars.

States of two whole numbers are a grid, those of a known world its map; all others are bars, sorted and without names
if they are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.bounds.results import Bounds
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Space
from causal_shaping.data.words import part_text, state_text
from causal_shaping.errors import CausalShapingError
from causal_shaping.plot._panels import CEILING, FLOOR, SOFT, panels, text, tidy
from causal_shaping.plot.worlds import draw_map
from causal_shaping.worlds import World, load_world

LONGEST_NAME = 32
"""Names of states that are longer than this are cut in figures."""

NAMED_BARS = 40
"""More states than this are bars without names."""

NAMED_TICKS = 24
"""A side of a grid with more values than this has no name for each of them."""


def draw_visits(counts: Counts, ax: Any = None) -> Axes:
    """Draw how often the sources acted in each state, all of them together."""
    visits: Any = np.bincount(counts.state, counts.n, minlength=len(counts.space.states))
    return draw_states(counts.space, visits, visits == 0, f"Visits per state: {', '.join(counts.sources)}", ax)


def draw_bounds(bounds: Bounds, ax: Any = None, *, world: World | None = None) -> Axes:
    """Draw the bounds of the first step; states with the vacuous value or that are terminal stay empty.

    Args:
        bounds: ceilings or floors.
        ax: see `draw`.
        world: a world with these states, to draw them on its map; see `world_of`.
    """
    values, _, vacuous = bounds.first_step
    title = f"{type(bounds).__name__}{'' if bounds.stationary else ' of the first step'}"
    if world is not None:
        order, _ = bounds.space.positions(world.space)
        return draw_map(world, ax, values=values[order], title=f"{world.title}: {title.lower()}")
    color = CEILING if bounds.KIND == "ceilings" else FLOOR
    return draw_states(bounds.space, values, vacuous | bounds.terminal, title, ax, color)


def world_of(space: Space, metadata: Sequence[Mapping[str, str]]) -> World | None:
    """Return the world that the metadata of all logs name, if it can be loaded and has these states."""
    if not metadata or len({(one.get("world"), one.get("coins")) for one in metadata}) > 1:
        return None
    try:
        world = load_world(metadata[0].get("world", ""), coins=metadata[0].get("coins", "standing"))
    except CausalShapingError:
        return None
    return world if set(world.states) == set(space.states) else None


def is_grid(space: Space) -> bool:
    """Whether the states are two whole numbers each."""
    return all(isinstance(label, tuple) and len(label) == 2 and str not in map(type, label) for label in space.states)


def draw_states(
    space: Space, values: FloatArray, empty: BoolArray, title: str, ax: Any = None, color: str = FLOOR
) -> Axes:
    """Draw a number for each state: as a grid where states are two whole numbers, else as bars."""
    values = np.where(empty, np.nan, values)
    drawn = _draw_grid(space, values, ax) if is_grid(space) else _draw_bars(space, values, ax, color)
    drawn.set_title(text(title))
    return drawn


def _draw_grid(space: Space, values: FloatArray, ax: Any) -> Axes:
    places = np.array(space.states, dtype=np.int64)
    corner = places.min(axis=0)
    width, height = (places.max(axis=0) - corner + 1).tolist()
    picture = np.full((height, width), np.nan)
    picture[places[:, 1] - corner[1], places[:, 0] - corner[0]] = values
    (axes,) = panels(ax, size=(min(12.0, 2.0 + 0.5 * width), min(12.0, 1.2 + 0.5 * height)))
    left, top = (corner - 0.5).tolist()
    drawn = axes.imshow(picture, extent=(left, left + width, top + height, top), interpolation="nearest")
    figure = axes.get_figure(root=True)
    assert figure is not None
    if not np.isnan(picture).all():
        figure.colorbar(drawn, ax=axes, shrink=0.8)
    axes.set(xlabel=text(space.columns[0]), ylabel=text(space.columns[1]))
    for side, name, least, count in zip("xy", space.columns, corner.tolist(), (width, height), strict=True):
        if count <= NAMED_TICKS:
            ticks, rotation = range(least, least + count), 30 if side == "x" and name in space.bins else 0
            names = [text(part_text(space, name, tick)) for tick in ticks]
            getattr(axes, f"set_{side}ticks")(ticks, names, rotation=rotation)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_facecolor("#eceff2")
    return axes


def _draw_bars(space: Space, values: FloatArray, ax: Any, color: str) -> Axes:
    shown = np.flatnonzero(~np.isnan(values))
    named = len(shown) <= NAMED_BARS
    (axes,) = panels(ax, size=(6.0, max(2.0, 0.8 + 0.22 * len(shown))) if named else (6.0, 4.0))
    if named:
        axes.barh(range(len(shown)), values[shown], color=color, height=0.7)
        axes.set_yticks(range(len(shown)), [text(_cut(state_text(space, s))) for s in shown.tolist()], fontsize=8)
        axes.invert_yaxis()
    else:
        axes.plot(np.sort(values[shown])[::-1], drawstyle="steps-mid", color=color)
        axes.set_xlabel(f"{len(shown):,} states, largest first")
    (axes.axvline if named else axes.axhline)(0, color=SOFT, linewidth=0.8)
    tidy(axes)
    return axes


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
