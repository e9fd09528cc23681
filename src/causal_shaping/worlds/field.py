"""The windy field: a windy grid world with real coordinates in place of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from causal_shaping._checks import check_finite, check_horizon, check_names
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.worlds import grid as grids
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import Moved, Numbers, SeeingRule, States
from causal_shaping.worlds.grid import (
    ACTIONS,
    COIN_REWARD,
    DIRECTIONS,
    LAVA_REWARD,
    PUSHES,
    STEP_REWARD,
    WINDS,
    GridMap,
    Wind,
    wind_rule,
)
from causal_shaping.worlds.published import GRID_WORLDS, UNIFORM, Demonstrator, table_of

MARKS = grids.WALL + grids.FREE + grids.LAVA + grids.COIN + grids.GOAL
WALL, FREE, LAVA, COIN, GOAL = range(len(MARKS))
HORIZON = 20
NOISE_SD = 0.05
STEP_LENGTH = 1.0
CHECKS = 2
"""Points of a leg, evenly spaced, at which a path is checked: its middle and its end."""
SMALLEST_DRAW = 1e-16
"""A uniform of 0 would be a step without end."""

_MOVES = np.array([DIRECTIONS.get(action, (0, 0)) for action in ACTIONS], dtype=np.float64)
_PUSHES = np.array([DIRECTIONS.get(PUSHES.get(wind, ""), (0, 0)) for wind in WINDS], dtype=np.float64)


class WindyField(ContinuousWorld):
    """A windy grid world with real coordinates: cell (x, y) covers [x - .5, x + .5) by [y - .5, y + .5).

    A step is a path of one or two legs, the action's and the wind's, by the rules of the grid worlds: `still` and a
    wind straight against do not move. Gaussian noise is added to the first leg. A leg is cut at the walls around the
    map; one that meets a wall inside is not made. The path is checked at the middle and the end of each leg: a cell
    with lava or the goal ends it there and the episode with it, a coin's cell pays when it is entered.

    Args:
        map: the name of a grid world of the paper, which also gives wind, horizon and demonstrators, or a map as
            text, which is calm, has a horizon of 20 and the demonstrator "random".
        wind: the distribution of the wind by the cell in which a step starts, as in `load_world`.
        noise_sd: the standard deviation of the Gaussian noise in each coordinate of a move.
        step_length: the length of a leg.
        horizon: the length of an episode.
        demonstrators: rules over the cell and the wind, beside or in place of the map's own. They round to the nearest
            cell.
    """

    name = "windy-field"
    columns = ("x", "y")
    actions = ACTIONS
    noises = WINDS
    start_draws = 3
    step_draws = 2

    def __init__(
        self,
        map: str = "lavacross-easy",
        *,
        wind: Wind | None = None,
        noise_sd: float = NOISE_SD,
        step_length: float = STEP_LENGTH,
        horizon: int | None = None,
        demonstrators: Mapping[str, Demonstrator] | None = None,
    ) -> None:
        if map in GRID_WORLDS:
            spec = GRID_WORLDS[map]
            text, own = spec.map, dict(spec.demonstrators)
            horizon, wind = horizon or spec.horizon, spec.wind if wind is None else wind
        else:
            text, own = map, {"random": UNIFORM}
            horizon, wind = horizon or HORIZON, (0, 0, 0, 0, 1) if wind is None else wind
        for what, value, least in (("noise_sd", noise_sd, 0.0), ("step_length", step_length, 1e-6)):
            check_finite(what, value)
            if value < least:
                raise ArgumentError(f"{what} is {value}; it must be {'above' if least else 'at least'} 0.")
        self.horizon = check_horizon(horizon)
        self.noise_sd, self.step_length, self.grid = noise_sd, step_length, GridMap.parse(text)
        self._marks, blows = np.array([[MARKS.index(mark) for mark in row] for row in self.grid.rows]), wind_rule(wind)
        self._wind = np.zeros((*self._marks.shape, len(WINDS)))
        for x, y in self.grid.cells:
            self._wind[y, x] = blows(x, y)
        self._starts = np.array(self.grid.starts)
        self.low = np.full(2, 0.5, np.float32)
        edge = np.array([self.grid.width - 1.5, self.grid.height - 1.5], np.float32)
        self.high = np.nextafter(edge, np.float32(0))  # the edge itself belongs to the wall
        legs = 2
        self.reward_min = STEP_REWARD + (LAVA_REWARD if self.grid.where(grids.LAVA) else 0.0)
        self.reward_max = STEP_REWARD + (COIN_REWARD * CHECKS * legs if self.grid.coins else 0.0)
        rules = own | dict(demonstrators or {})
        self.demonstrators = {name: _by_cell(self.grid, name, given) for name, given in rules.items()}

    def start(self, draws: FloatArray) -> States:
        """Start in a free cell, all of them and all places inside equally likely."""
        cells = self._starts[np.minimum((draws[:, 0] * len(self._starts)).astype(int), len(self._starts) - 1)]
        return self._inside(cells - 0.5 + draws[:, 1:])

    def noise(self, states: States) -> FloatArray:
        """Return the wind's distribution in the cell."""
        return np.asarray(self._wind[cell_of(states)])

    def terminal(self, states: States) -> BoolArray:
        """Lava, the goal and walls."""
        return np.isin(self._marks[cell_of(states)], (LAVA, GOAL, WALL))

    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Walk the action's leg and the wind's, and look where they pass."""
        move, push = _MOVES[actions], _PUSHES[noises]
        moves = np.any(move, axis=1, keepdims=True) & np.any(move + push, axis=1, keepdims=True)
        error = self.noise_sd * ndtri(np.maximum(draws, SMALLEST_DRAW))
        here, reward = states, np.full(len(states), STEP_REWARD)
        over = np.zeros(len(states), dtype=bool)
        for leg in (moves * (self.step_length * move + error), moves * self.step_length * push):
            path = [self._inside(here + leg * (check + 1) / CHECKS) for check in range(CHECKS)]
            walled = np.any([self._marks[cell_of(point)] == WALL for point in path], axis=0)
            for point in path:
                goes = ~over & ~walled & leg.any(axis=1)
                ahead = np.where(goes[:, None], point, here)
                row, column = cell_of(ahead)
                mark, before = self._marks[row, column], cell_of(here)
                entered = goes & ((row != before[0]) | (column != before[1]))
                reward += COIN_REWARD * (entered & (mark == COIN)) + LAVA_REWARD * (goes & (mark == LAVA))
                over |= goes & ((mark == LAVA) | (mark == GOAL))
                here = ahead
        return Moved(here, reward, over)

    def _inside(self, points: FloatArray) -> States:
        """Return points as states, cut at the walls around the map."""
        return np.clip(points.astype(np.float32), self.low, self.high)


def load_continuous_world(name: str, **options: Any) -> WindyField:
    """Return the windy field by its name; see `load_world`."""
    if name != WindyField.name:
        raise UnknownNameError(f"{name!r} is no world with real coordinates. There is {WindyField.name}.")
    given = {key: value for key, value in options.items() if value is not None}
    check_names(given, f"load_world({name!r})", WindyField)
    return WindyField(**given)


def cell_of(states: States) -> tuple[Numbers, Numbers]:
    """Return the rows and columns of the cells that states lie in: y, x."""
    cells = np.floor(states.astype(np.float64) + 0.5).astype(np.int64)
    return cells[..., 1], cells[..., 0]


def _by_cell(grid: GridMap, name: str, given: Demonstrator) -> SeeingRule:
    """Return a demonstrator of a grid world who rounds to the nearest cell."""
    table = np.full((grid.height, grid.width, len(WINDS), len(ACTIONS)), 1 / len(ACTIONS))
    for (x, y), probabilities in zip(grid.cells, table_of(name, given, grid.cells), strict=True):
        table[y, x] = probabilities
    return lambda states: np.asarray(table[cell_of(states)])
