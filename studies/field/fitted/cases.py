"""The worlds that are compared in: what is logged, where values are compared, and with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.logs.transitions import read_transitions
from causal_shaping.worlds.continuous import ContinuousWorld
from studies.worlds import load
from studies.worlds.optimum import GridValues, solve

FRESH_SEED, FRESH_ROWS, POINTS = 77, 20_000, 4_000
TRUTH = 24
"""The grid of the optimum that values are compared with in windy fields; at the points of a coarser one."""


@dataclass(frozen=True)
class Case:
    """A world to compare in.

    Attributes:
        world: its name for `load_world`.
        options: the other arguments.
        good: the demonstrator of the agents' good logs; that of the bad ones is `bad`.
        grid: of the optimum; in windy fields also that of the points where values are compared.
        on_grid: values are compared at the points of the grid; otherwise at states of fresh logs of all demonstrators,
            where a grid has many states that never occur.
        rows: logged steps a source.
        members: of the agents' fits.
    """

    world: str
    options: Mapping[str, Any] = field(default_factory=dict)
    good: str = "good"
    grid: int = 6
    on_grid: bool = False
    rows: int = 20_000
    members: int = 1

    def load(self) -> ContinuousWorld:
        """Return the world."""
        return load(self.world, **self.options)


CASES = {
    "windy-field": Case("windy-field", on_grid=True, rows=100_000, members=4),
    "windy-field, maze": Case("windy-field", {"map": "lavacross-maze"}, "better", on_grid=True, rows=30_000),
    "cart-pole": Case("cart-pole", grid=24),
    "mountain-car": Case("mountain-car", grid=151),
}


@dataclass(frozen=True)
class Study:
    """Logs to make values of, and the truth.

    Attributes:
        name: of the case.
        tables: the logs, a table for each source.
        rows: the same, read.
        horizon: steps of an episode.
        reward_max: the most that a step can pay.
        points: float32 [points, coordinates], where values are compared.
        truth: float64 [points], the optimal values of the first step there.
        discount: the factor on future reward.
    """

    name: str
    tables: Sequence[Any]
    rows: Transitions
    horizon: int
    reward_max: float
    points: npt.NDArray[np.float32]
    truth: FloatArray
    discount: float = 1.0

    @property
    def basics(self) -> dict[str, Any]:
        """The arguments that every fit takes."""
        return {"horizon": self.horizon, "discount": self.discount, "reward_max": self.reward_max}


def logs_of(name: str, sources: Sequence[str], discount: float) -> Study:
    """Return the logs of some demonstrators of a case, without a truth."""
    world = CASES[name].load()
    tables = [world.collect(source, CASES[name].rows) for source in sources]
    rows = read_transitions(tables, state=list(world.columns), actions=range(len(world.actions)))
    nowhere = np.zeros((0, len(world.columns)), dtype=np.float32)
    return Study(name, tables, rows, world.horizon, world.reward_max, nowhere, np.zeros(0), discount)


def where(world: ContinuousWorld, case: Case, optimum: GridValues) -> npt.NDArray[np.float32]:
    """Return the states at which values are compared."""
    if case.on_grid:
        return np.asarray(optimum.points[~optimum.terminal])
    tables = [world.collect(name, FRESH_ROWS, seed=FRESH_SEED) for name in world.demonstrators]
    seen = np.concatenate([np.stack([table[name].to_numpy() for name in world.columns], axis=1) for table in tables])
    return seen[np.random.default_rng(0).choice(len(seen), POINTS, replace=False)]


@lru_cache(maxsize=1)
def optimum_of(name: str) -> GridValues:
    """Return the optimal values of a case's world."""
    return solve(CASES[name].load(), CASES[name].grid)
