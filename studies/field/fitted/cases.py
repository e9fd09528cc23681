"""The worlds that are compared in: what is logged, where values are compared, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.logs.transitions import read_transitions
from causal_shaping.worlds.continuous import ContinuousWorld
from studies.worlds import load
from studies.worlds.optimum import solve

FRESH_SEED, FRESH_ROWS, POINTS = 77, 20_000, 4_000
TRUTH = 24
"""The grid of the optimum that values are compared with in windy fields; at the points of a coarser one."""
LEAST_BELOW = 0.02
"""Values count as too low if they are below the optimum by more than this share of the values' range."""


@dataclass(frozen=True)
class Case:
    """A world to compare in.

    Attributes:
        name: what it is called.
        world: its name for `load_world`.
        options: the other arguments.
        sets: demonstrators by set of logs, for the agents.
        grid: of the optimum; in windy fields also that of the points where values are compared.
        on_grid: values are compared at the points of the grid; otherwise at states of fresh logs of all demonstrators,
            where a grid has many states that never occur.
        rows: logged steps a source.
        members: of the agents' fits; None for several.
        discount: the agents'.
        images: whether the world is one of tables, and is seen as images; only agents are compared there.
    """

    name: str
    world: str
    options: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"good": ("good",), "bad": ("bad",)})
    grid: int = 6
    on_grid: bool = False
    rows: int = 100_000
    members: int | None = None
    discount: float = 0.99
    images: bool = False

    def load(self) -> ContinuousWorld:
        """Return the world; one of images has all that is asked of it."""
        if self.images:
            from studies.field.fitted.images import ImageWorld

            return ImageWorld(self.world, **self.options)  # type: ignore[return-value]
        return load(self.world, **self.options)


CASES = {
    case.name: case
    for case in (
        Case("windy-field", "windy-field", on_grid=True),
        Case(
            "windy-field, maze",
            "windy-field",
            {"map": "lavacross-maze"},
            {"good": ("better",), "bad": ("bad",)},
            on_grid=True,
            rows=30_000,
            members=1,
        ),
        Case("cart-pole", "cart-pole", grid=24, rows=20_000, members=1),
        Case("mountain-car", "mountain-car", grid=151, rows=20_000, members=1),
        Case(
            "lavacross-hard, images",
            "lavacross-hard",
            {"coins": "once"},
            rows=20_000,
            images=True,
        ),
    )
}


def available(*, images: bool = False) -> list[str]:
    """Return the cases whose states are vectors, or all."""
    return [name for name, case in CASES.items() if images or not case.images]


@dataclass(frozen=True)
class Study:
    """Logs to compare on, and the truth.

    Attributes:
        name: of the case.
        rows: the logs.
        horizon: steps of an episode.
        reward_max: the most that a step can pay.
        reward_min: the least.
        points: float32 [points, coordinates], where values are compared.
        truth: float64 [points], the optimal values of the first step there.
        discount: the factor on future reward.
        members: of a fit.
        world: the world, None for one that is a table.
    """

    name: str
    rows: Transitions
    horizon: int
    reward_max: float
    reward_min: float
    points: npt.NDArray[np.float32]
    truth: FloatArray
    discount: float = 1.0
    members: int = 3
    world: ContinuousWorld | None = None

    @property
    def basics(self) -> dict[str, Any]:
        """The arguments that every fit takes."""
        return {"horizon": self.horizon, "discount": self.discount, "reward_max": self.reward_max}

    @cached_property
    def fitted(self) -> tuple[cs.FittedCeilings, float]:
        """Ceilings with the defaults, and the CPU seconds that they took."""
        from studies.field.fitted.measure import cpu_seconds

        observe = flat if len(self.rows.shape) > 1 else None
        return cpu_seconds(lambda: cs.fit_ceilings(self.rows, members=self.members, observe=observe, **self.basics))


def flat(observations: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return observations as vectors: the pixels of images."""
    return np.ascontiguousarray(observations, dtype=np.float32).reshape(len(observations), -1)


def logged(world: ContinuousWorld, sources: tuple[str, ...], rows: int, seed: int = 0) -> Transitions:
    """Return the logs of some demonstrators."""
    tables = [world.collect(name, rows, seed=seed) for name in sources]
    return read_transitions(tables, state=list(world.columns), actions=range(len(world.actions)))


def where(world: ContinuousWorld, case: Case, optimum: Any) -> npt.NDArray[np.float32]:
    """Return the states at which values are compared."""
    if case.on_grid:
        return np.asarray(optimum.points[~optimum.terminal])
    tables = [world.collect(name, FRESH_ROWS, seed=FRESH_SEED) for name in world.demonstrators]
    seen = np.concatenate([np.stack([table[name].to_numpy() for name in world.columns], axis=1) for table in tables])
    return seen[np.random.default_rng(0).choice(len(seen), POINTS, replace=False)]


def best_values(world: Any, grid: int) -> Any:
    """Return the optimal values of a world; those of an image world need no grid."""
    return solve(world, grid) if isinstance(world, ContinuousWorld) else world.optimum()


@lru_cache(maxsize=1)
def optimum_of(name: str) -> Any:
    """Return the optimal values of a case's world."""
    return best_values(CASES[name].load(), CASES[name].grid)


@lru_cache(maxsize=1)
def study(name: str) -> Study:
    """Return the logs of all demonstrators of a case, and the truth."""
    case = CASES[name]
    world, optimum = case.load(), optimum_of(name)
    points = where(world, case, optimum)
    return Study(
        name,
        logged(world, tuple(world.demonstrators), case.rows),
        world.horizon,
        world.reward_max,
        world.reward_min,
        points,
        (solve(world, TRUTH) if case.on_grid else optimum)(points),
        world=world,
    )
