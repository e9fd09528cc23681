"""The windy field: a windy grid world with real coordinates in place of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtri

from causal_shaping._checks import check_finite, check_horizon, check_names
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.worlds import constants, grid as grids
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import Moved, Numbers, SeeingRule, States
from causal_shaping.worlds.grid import ACTIONS, DIRECTIONS, PUSHES, WINDS, GridMap, Wind, wind_rule
from causal_shaping.worlds.published import GRID_WORLDS, Demonstrator, GridWorld, tables_of

_NOWHERE = (0, 0)
_MOVES = np.array([DIRECTIONS.get(action, _NOWHERE) for action in ACTIONS], float)
_PUSHES = np.array([DIRECTIONS.get(PUSHES.get(wind, ""), _NOWHERE) for wind in WINDS], float)


class WindyField(ContinuousWorld):
    """A windy grid world with real coordinates.

    Cell (x, y) covers [x - .5, x + .5) by [y - .5, y + .5). A step is a path of one or two legs,
    the action's and the wind's, by the rules of the grid worlds: `still` and a wind straight
    against do not move. Gaussian noise is added to the first leg. A leg is cut at the walls around
    the map; one that meets a wall inside is not made. The path is checked at the middle and the end
    of each leg: a cell with lava or the goal ends it there and the episode with it, a coin's cell
    pays when it is entered.

    Args:
        map: the name of a grid world of the paper, which also gives wind, horizon and
            demonstrators, or a map as text, which is calm, has a horizon of 20 and the demonstrator
            "random".
        wind: the distribution of the wind by the cell in which a step starts, as in `load_world`.
        noise_sd: the standard deviation of the Gaussian noise in each coordinate of a move.
        step_length: the length of a leg.
        horizon: the length of an episode.
        demonstrators: rules over the cell and the wind, beside or in place of the map's own. They
            round to the nearest cell.
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
        noise_sd: float = constants.NOISE_SD,
        step_length: float = constants.STEP_LENGTH,
        horizon: int | None = None,
        demonstrators: Mapping[str, Demonstrator] | None = None,
    ) -> None:
        check_finite("noise_sd", noise_sd)
        check_finite("step_length", step_length)
        if noise_sd < 0:
            raise ArgumentError(f"noise_sd is {noise_sd}; it must be at least 0.")
        if step_length < constants.SMALLEST_STEP_LENGTH:
            raise ArgumentError(f"step_length is {step_length}; it must be above 0.")
        self.noise_sd, self.step_length = noise_sd, step_length
        spec = GRID_WORLDS.get(map) or GridWorld(title=map, map=map)
        spec = spec.varied(horizon, wind, demonstrators)
        self.horizon, self.grid = check_horizon(spec.horizon), GridMap.parse(spec.map)

        # Marks, winds and demonstrators by the row y and the column x of a cell.
        self._marks = np.array([list(row) for row in self.grid.rows])
        self._starts = np.array(self.grid.starts)
        blowing = wind_rule(spec.wind)
        self._wind = self._by_cell(np.array([blowing(x, y) for x, y in self.grid.cells]))
        tables = tables_of(spec, self.grid.cells)
        self.demonstrators = {name: self._rule(table) for name, table in tables.items()}

        # The edge itself belongs to the wall.
        edge = np.array([self.grid.width - 1.5, self.grid.height - 1.5], np.float32)
        self.low, self.high = np.full(2, 0.5, np.float32), np.nextafter(edge, np.float32(0))
        # The worst step ends in lava; the best enters a coin's cell at each check of both legs.
        lava, coins = constants.LAVA_REWARD, constants.COIN_REWARD * constants.CHECKS * 2
        worst, best = lava * bool(self.grid.where(grids.LAVA)), coins * bool(self.grid.coins)
        self.reward_range = (constants.STEP_REWARD + worst, constants.STEP_REWARD + best)

    def start(self, draws: FloatArray) -> States:
        """Start in a free cell, all of them and all places inside equally likely."""
        number = (draws[:, 0] * len(self._starts)).astype(int)
        cells = self._starts[np.minimum(number, len(self._starts) - 1)]
        return self._inside(cells - 0.5 + draws[:, 1:])

    def noise(self, states: States) -> FloatArray:
        """Return the wind's distribution in the cell."""
        return np.asarray(self._wind[cell_of(states)])

    def terminal(self, states: States) -> BoolArray:
        """Return whether states lie in lava, in the goal or in a wall."""
        return np.isin(self._marks[cell_of(states)], (grids.LAVA, grids.GOAL, grids.WALL))

    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Walk the action's leg and the wind's, and look at the cells that they pass."""
        move, push = _MOVES[actions], _PUSHES[noises]
        moves = np.any(move, axis=1, keepdims=True) & np.any(move + push, axis=1, keepdims=True)
        error = self.noise_sd * ndtri(np.maximum(draws, constants.SMALLEST_DRAW))
        here, reward = states, np.full(len(states), constants.STEP_REWARD)
        over = np.zeros(len(states), dtype=bool)
        for leg in (moves * (self.step_length * move + error), moves * self.step_length * push):
            fractions = [(check + 1) / constants.CHECKS for check in range(constants.CHECKS)]
            path = [self._inside(here + leg * fraction) for fraction in fractions]
            # A leg that meets a wall inside the map is not made.
            walled = np.any([self._marks[cell_of(point)] == grids.WALL for point in path], axis=0)
            for point in path:
                goes = ~over & ~walled & leg.any(axis=1)
                ahead = np.where(goes[:, None], point, here)
                mark = self._marks[cell_of(ahead)]
                entered = goes & np.any(np.not_equal(cell_of(ahead), cell_of(here)), axis=0)
                reward += constants.COIN_REWARD * (entered & (mark == grids.COIN))
                reward += constants.LAVA_REWARD * (goes & (mark == grids.LAVA))
                over |= goes & ((mark == grids.LAVA) | (mark == grids.GOAL))
                here = ahead
        return Moved(here, reward, over)

    def _inside(self, points: FloatArray) -> States:
        """Return points as states, cut at the walls around the map."""
        return np.clip(points.astype(np.float32), self.low, self.high)

    def _by_cell(self, values: FloatArray, elsewhere: float = 0.0) -> FloatArray:
        """Return values of cells [cells, ...] as [height, width, ...], filled up for walls."""
        table = np.full((self.grid.height, self.grid.width, *values.shape[1:]), elsewhere)
        x, y = np.transpose(self.grid.cells)
        table[y, x] = values
        return table

    def _rule(self, table: FloatArray) -> SeeingRule:
        """Return a demonstrator of a grid world who rounds to the nearest cell."""
        by_cell = self._by_cell(table, 1 / len(ACTIONS))
        return lambda states: np.asarray(by_cell[cell_of(states)])


def load_continuous_world(name: str, **options: Any) -> WindyField:
    """Return the windy field by its name; see `load_world`."""
    if name != WindyField.name:
        known = f"There is {WindyField.name}."
        raise UnknownNameError(f"{name!r} is no world with real coordinates. {known}")
    chosen = {key: value for key, value in options.items() if value is not None}
    check_names(chosen, f"load_world({name!r})", WindyField)
    return WindyField(**chosen)


def cell_of(states: States) -> tuple[Numbers, Numbers]:
    """Return the rows and columns of the cells that states lie in: y, x."""
    cells = np.floor(states.astype(np.float64) + 0.5).astype(np.int64)
    return cells[..., 1], cells[..., 0]
