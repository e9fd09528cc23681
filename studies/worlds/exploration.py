"""Standard problems of exploration in which a gust is hidden: demonstrators see it, the agent does not.

The tables are those of `studies.field.problems`, in other sizes than the field study has.

Letters: s, x, u are state, action and hidden noise; beta[s, u, x] is a demonstrator.
"""

from __future__ import annotations

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import World
from studies.field.problems import deep_sea, frozen_lake, river_swim

DISCOUNT = 0.97
"""Demonstrators look ahead with this discount, so that their tables do not depend on the step."""


def exploration_worlds() -> list[World]:
    """Return the problems as worlds, with two demonstrators each."""
    problems = {"river-swim": river_swim(), "deep-sea": deep_sea(), "frozen-lake": frozen_lake()}
    return [World(name, name, *problem, demonstrators_of(problem.model)) for name, problem in problems.items()]


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
