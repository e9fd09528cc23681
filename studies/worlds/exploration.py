"""Standard problems of exploration in which a gust is hidden: demonstrators see it, the agent does not.

The tables are those of `studies.field.problems`, in other sizes than the field study has.

Letters: s, x, u are state, action and hidden noise; beta[s, u, x] is a demonstrator.
"""

from __future__ import annotations

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import World
from studies.field import problems

DISCOUNT = 0.97
"""Demonstrators look ahead with this discount, so that their tables do not depend on the step."""


def demonstrators_of(model: cs.TabularCMDP) -> dict[str, np.ndarray]:
    """Return two demonstrators who see the noise.

    "seeing" does what is best in it, and acts at random in a tenth of its steps; of equally good actions each has the
    same chance. "wanderer" leans towards what is good in it, by exp of the worth in standard deviations over actions.
    The worth is what the action pays in this noise, and the optimal value, with `DISCOUNT`, of where it leads.
    """
    values = model.optimum(discount=DISCOUNT).values
    worth = (model.reward + DISCOUNT * values[model.next_state]).transpose(0, 2, 1)  # [s, u, x]
    best = worth >= worth.max(axis=-1, keepdims=True) - 1e-9
    seeing = 0.9 * best / best.sum(axis=-1, keepdims=True) + 0.1 / worth.shape[-1]
    spread = worth.std(axis=-1, keepdims=True)
    tilt = np.exp(np.divide(worth - worth.mean(axis=-1, keepdims=True), spread + 1e-12))
    return {"seeing": seeing, "wanderer": tilt / tilt.sum(axis=-1, keepdims=True)}


def _world(name: str, problem: problems.Problem) -> World:
    return World(name, name, *problem, demonstrators_of(problem.model))


def river_swim(length: int = 6, horizon: int = 20) -> World:
    return _world("river-swim", problems.river_swim(length, horizon))


def deep_sea(size: int = 10, seed: int = 0) -> World:
    return _world("deep-sea", problems.deep_sea(size, seed))


def frozen_lake(horizon: int = 40) -> World:
    return _world("frozen-lake", problems.frozen_lake(horizon))


def cliff_walking(gust: float = 0.15, horizon: int = 40) -> World:
    return _world("cliff-walking", problems.cliff_walking(gust, horizon))


def taxi(gust: float = 0.1, horizon: int = 40) -> World:
    return _world("taxi", problems.taxi(gust, horizon))


PROBLEMS = {
    "RiverSwim": river_swim,
    "DeepSea": deep_sea,
    "FrozenLake": frozen_lake,
    "CliffWalking": cliff_walking,
    "Taxi": taxi,
}
