"""Bounds on a map: the first step's values of states that lie on a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.bounds.results import Bounds
from causal_shaping.errors import ArgumentError, CausalShapingError
from causal_shaping.plot.worlds import draw_world
from causal_shaping.worlds import World, load_world


def draw_values(bounds: Bounds, origins: Sequence[Mapping[str, str]] = ()) -> Figure:
    """Draw bounds of the first step: on the map of the world that the logs come from, else as a plain grid.

    Args:
        bounds: ceilings or floors.
        origins: the metadata of the logs; see `Logs.metadata`.

    Raises:
        ArgumentError: if the states are neither those of a known world nor pairs of whole numbers.
    """
    values = bounds.values if bounds.stationary else bounds.values[0]
    title = f"{type(bounds).__name__} of the first step"
    world = _world_of(bounds, origins)
    if world is not None:
        order, _ = bounds.space.positions(world.space)
        return draw_world(world, values=values[order], title=f"{world.title}: {title.lower()}")
    labels = [label for label in bounds.space.states if isinstance(label, tuple)]
    if len(labels) < len(bounds.space.states) or any(len(label) != 2 or str in map(type, label) for label in labels):
        raise ArgumentError(
            "A picture needs states on a grid, two whole numbers each, but the states are made of "
            f"{', '.join(bounds.space.columns)}. Open the saved file with a tool of your own instead."
        )
    places = np.array(labels, dtype=np.int64)
    corner = places.min(axis=0)
    width, height = places.max(axis=0) - corner + 1
    picture = np.full((height, width), np.nan)
    picture[places[:, 1] - corner[1], places[:, 0] - corner[0]] = values
    figure = Figure(figsize=(min(12.0, 1.5 + 0.5 * width), min(12.0, 1.0 + 0.5 * height)), layout="constrained")
    axes = figure.add_subplot()
    left, top = corner - 0.5
    drawn = axes.imshow(picture, extent=(left, left + width, top + height, top), interpolation="nearest")
    figure.colorbar(drawn, ax=axes, shrink=0.8)
    axes.set(title=title, xlabel=bounds.space.columns[0], ylabel=bounds.space.columns[1])
    return figure


def _world_of(bounds: Bounds, origins: Sequence[Mapping[str, str]]) -> World | None:
    """Return the world that all logs name, if it is one that can be loaded and has these states."""
    if not origins or len({(origin.get("world"), origin.get("coins")) for origin in origins}) > 1:
        return None
    try:
        world = load_world(origins[0].get("world", ""), coins=origins[0].get("coins", "standing"))
    except CausalShapingError:
        return None
    return world if set(world.states) == set(bounds.space.states) else None
