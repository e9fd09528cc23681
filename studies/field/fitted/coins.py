"""LavaCross worlds whose coins are paid once, as vectors (x, y, coin bits): tables that are large enough to fail."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from causal_shaping.logs.transitions import read_transitions
from studies.field.fitted.cases import Study

ROWS = 30_000
COIN_CASES = {"coins once, hard": "lavacross-hard", "coins once, maze": "lavacross-maze"}


def _bits(world: Any, labels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return (x, y, number of coins left) as (x, y, a bit for each coin)."""
    count = int(max(state[2] for state in world.states)).bit_length()
    left = labels[:, 2].astype(np.int64)
    return np.column_stack([labels[:, :2], *((left >> i) & 1 for i in range(count))]).astype(np.float32)


@lru_cache(maxsize=1)
def coin_study(name: str) -> Study:
    """Return logs with coins as bits, and the exact optimum in the states that can occur."""
    world = cs.load_world(COIN_CASES[name], coins="once")
    rows = read_transitions([world.collect(source, ROWS) for source in world.demonstrators])
    seen = _bits(world, np.asarray(rows.observations))
    columns = ("x", "y", *(f"coin_{i}" for i in range(seen.shape[1] - 2)))
    rows = replace(rows, observations=seen, shape=(seen.shape[1],), columns=columns)
    alive = ~world.model.terminal
    points = _bits(world, np.array(world.states, dtype=np.float32))[alive]
    truth = world.model.optimum(world.horizon).values[0][alive]
    low, high = world.model.reward_range
    return Study(name, rows, world.horizon, high, low, points, truth)


def population_of(name: str) -> FloatArray:
    """Return the tabular ceilings of exact shares."""
    world = cs.load_world(COIN_CASES[name], coins="once")
    counts = [world.model.observe(beta, source) for source, beta in world.demonstrators.items()]
    return _ceilings(world, counts)


def table_of(name: str) -> FloatArray:
    """Return the tabular ceilings of the same logs; vacuous in states that no log holds."""
    world = cs.load_world(COIN_CASES[name], coins="once")
    return _ceilings(world, cs.count([world.collect(source, ROWS) for source in world.demonstrators]))


def _ceilings(world: Any, counts: Any) -> FloatArray:
    found = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
    order, _ = found.space.positions(world.space)
    return np.asarray(found.values[0][order][~world.model.terminal])
