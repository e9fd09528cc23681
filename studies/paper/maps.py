"""Maps for the report: cells with their colours, signs and tooltips, ready for a template.

- `value_panels`, `policy_panels`: maps of one world, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from causal_shaping.plot.worlds import COLORS, ink_on
from causal_shaping.worlds import World
from causal_shaping.worlds.grid import CALM, DIRECTIONS, PUSHES, WINDS
from studies.paper.figures import value_limits

KINDS = {"#": "wall", ".": "free", "L": "lava", "c": "coin", "G": "goal"}
WRONG = 1e-3
"""An action that costs more than this is marked."""

Panel = dict[str, Any]


def map_panel(world: World) -> Panel:
    """Return the map of a world with its winds."""
    best = world.model.optimum()
    cells = _cells(world)
    for cell in cells.values():
        if cell["state"] is not None:
            noise = world.model.noise[cell["state"]]
            shares = {wind: float(share) for wind, share in zip(WINDS, noise, strict=True) if share > 0}
            cell["winds"] = [
                {"x": DIRECTIONS[PUSHES[wind]][0], "y": DIRECTIONS[PUSHES[wind]][1], "share": share}
                for wind, share in shares.items()
                if wind != CALM
            ]
            said = ", ".join(f"{'calm' if wind == CALM else wind} {share:g}" for wind, share in shares.items())
            cell["tip"] = (
                f"{_where(cell)}: the air pushes {said}. V* {best.values[cell['state']]:.3f} without time limit"
            )
    return _panel(world, "map and winds", cells)


def value_panels(world: World, values: Mapping[str, Any]) -> list[Panel]:
    """Return a map for each value function, on one colour scale; hovering tells all of them."""
    low, high = value_limits(world, values)
    palette = colormaps["viridis"]
    panels = []
    for title, shown in values.items():
        cells = _cells(world)
        for cell in cells.values():
            state = cell["state"]
            if state is None:
                continue
            share = (shown[state] - low) / (high - low) if high > low else 0.5
            color = palette(share)
            cell["fill"], cell["ink"] = to_hex(color), ink_on(color)
            cell["text"] = f"{shown[state]:.2f}"
            every = ", ".join(f"{name} {other[state]:.3f}" for name, other in values.items())
            cell["tip"] = f"{_where(cell)}: {every}"
        panels.append(_panel(world, title, cells))
    return panels


def policy_panels(world: World, policies: Mapping[str, Any]) -> list[Panel]:
    """Return a map for each policy as arrows; what is not optimal is marked, and hovering tells what it costs."""
    gaps = world.model.gaps()
    panels = []
    for title, policy in policies.items():
        cells = _cells(world)
        wrong = 0
        for cell in cells.values():
            state = cell["state"]
            if state is None:
                continue
            action = int(policy[state])
            name, cost = str(world.actions[action]), float(gaps[state, action])
            cell["arrow"] = DIRECTIONS.get(name, (0, 0))
            cell["wrong"] = cost > WRONG
            wrong += cell["wrong"]
            cell["tip"] = f"{_where(cell)}: {name}, " + (f"costs {cost:.3f}" if cell["wrong"] else "optimal")
        panels.append(_panel(world, f"{title}: {wrong} wrong" if wrong else title, cells))
    return panels


def _where(cell: Mapping[str, Any]) -> str:
    return f"({cell['x']}, {cell['y']})"


def _cells(world: World) -> dict[tuple[int, int], dict[str, Any]]:
    assert world.grid is not None
    starts = set(world.grid.starts)
    return {
        (x, y): {
            "x": x,
            "y": y,
            "kind": KINDS[mark],
            "fill": COLORS[mark],
            "winds": [],
            "state": world.state_at(x, y) if (x, y) in starts else None,
            "tip": f"({x}, {y}): {KINDS[mark]}",
        }
        for y, row in enumerate(world.grid.rows)
        for x, mark in enumerate(row)
    }


def _panel(world: World, title: str, cells: dict[tuple[int, int], dict[str, Any]]) -> Panel:
    assert world.grid is not None
    width, height = len(world.grid.rows[0]), len(world.grid.rows)
    return {"title": title, "width": width, "height": height, "cells": list(cells.values())}


def arrow_angle(direction: tuple[int, int]) -> float:
    """Return by how many degrees an arrow to the right turns to point a way."""
    return float(np.degrees(np.arctan2(direction[1], direction[0])))
