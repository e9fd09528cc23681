"""Measures of runs and of potentials; exact, since the worlds are known.

- `run_facts`: regret and its curve, optimal ratios, the return of the policy, steps until it is nearly optimal.
- `deployed_facts`: the same for a policy that is followed without learning.
- `potential_facts`, `bound_facts`: distance to V*, validity and verdict.
- `returns_of`: exact returns of many policies at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping.bounds import Ceilings
from causal_shaping.bounds.results import Bounds
from causal_shaping.bounds.settings import CEILING
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray
from causal_shaping.data.potential import Potential
from causal_shaping.learners import Run
from causal_shaping.learners.seeds import curve_points, optimal_ratios
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds import World
from studies.paper.materials import Materials
from studies.paper.theory.shaped import ROUNDING

NEARLY_OPTIMAL = 0.95
"""A policy is nearly optimal from this score on, which is 0 for acting at random and 1 for the optimal policy."""


def returns_of(model: TabularCMDP, policies: IntArray, horizon: int) -> FloatArray:
    """Return the expected return of an episode under each policy: float64 [policies].

    Args:
        model: a stationary model.
        policies: int [policies, states], an action for each state.
        horizon: the number of steps of an episode.
    """
    states = np.arange(len(model.terminal))
    after, reward = model.next_state[states, policies], model.reward[states, policies]  # [policies, states, noises]
    rows = np.arange(len(policies))[:, None, None]
    values = np.zeros(policies.shape)
    for _ in range(horizon):
        values = ((reward + values[rows, after]) * model.noise).sum(axis=-1)
    return np.asarray(values @ model.start)


def steps_until(checkpoints: LongArray, returns: FloatArray, target: float) -> int | None:
    """Return the first checkpoint from which on all returns reach a target; None if the last one does not."""
    short = np.flatnonzero(returns < target)
    first = 0 if len(short) == 0 else int(short[-1]) + 1
    return int(checkpoints[first]) if first < len(checkpoints) else None


def policy_facts(materials: Materials, policy: IntArray) -> dict[str, Any]:
    """Return both optimal ratios of a policy, its exact return and its score."""
    world = materials.world
    match, optimal = optimal_ratios(world.model, policy)
    lowest, best = materials.scale
    earned = float(returns_of(world.model, policy[None], world.horizon)[0])
    return {
        "argmax_match": match,
        "optimal": optimal,
        "final_return": earned,
        "score": (earned - lowest) / (best - lowest),
        "policy": policy.tolist(),
    }


def run_facts(materials: Materials, run: Run) -> dict[str, Any]:
    """Return the measures of an online run as plain values."""
    world = materials.world
    lowest, best = materials.scale
    target = lowest + NEARLY_OPTIMAL * (best - lowest)
    last = max(1, len(run.returns) // 10)
    return {
        "steps": run.steps,
        "episodes": len(run.returns),
        "regret": float(run.step_regret[-1]),
        "curve": run.step_regret[curve_points(run.steps) - 1].tolist(),
        "steps_until": steps_until(run.checkpoints, returns_of(world.model, run.policies, world.horizon), target),
        "mean_return": float(run.returns[-last:].mean()),
        **policy_facts(materials, run.recommended),
    }


def deployed_facts(materials: Materials, policy: IntArray, budget: int, counted_in: str) -> dict[str, Any]:
    """Return the same measures for a policy that is followed for a budget without learning; its regret is expected."""
    world = materials.world
    visits = world.model.occupancy(policy, world.horizon)
    length = float(visits.sum())  # the expected number of steps of an episode
    per_step = float((visits.sum(axis=0) * materials.best.gaps()).sum()) / length
    steps = budget if counted_in == "steps" else round(budget * length)
    facts = policy_facts(materials, policy)
    return {
        "steps": steps,
        "episodes": round(steps / length),
        "regret": per_step * steps,
        "curve": (per_step * curve_points(steps)).tolist(),
        "steps_until": None,
        "mean_return": facts["final_return"],
        **facts,
    }


def potential_facts(materials: Materials, name: str) -> dict[str, Any]:
    """Return the facts of a potential by name: see `bound_facts`."""
    # The paper's potential is that of one step; its bound has all steps, and a verdict.
    return bound_facts(materials, materials.bound(name) if name == "paper" else materials.potential(name))


def bound_facts(materials: Materials, found: Potential | Bounds) -> dict[str, Any]:
    """Return the distance of a potential to the optimum, the number of states on the wrong side, and its verdict.

    Distances are to V* of the first step, for a stationary bound to V* over an infinite horizon, over the states in
    which episodes can start. Violations are states where a ceiling lies below V*, or a floor above: at the first step,
    over all steps, and against V* over an infinite horizon.
    """
    world = materials.world
    best, alive = world.model.optimum(world.horizon).values, ~world.model.terminal
    start = world.model.start > 0
    side = found.SIDE if isinstance(found, Bounds) else CEILING
    values = _in_order(found, world)
    if isinstance(found, Bounds) and found.stationary:
        best = materials.best.values[None]
    first = values[0]
    distance = np.abs(first - best[0])[start]
    flat = np.ptp(first[start]) < ROUNDING

    def violations(bound: FloatArray, truth: FloatArray) -> int:
        return int((side * (bound - truth) < -ROUNDING)[..., alive].sum())

    return {
        "values": first.tolist(),
        "mean_distance": float(distance.mean()),
        "largest_distance": float(distance.max()),
        "correlation": None if flat else float(np.corrcoef(first[start], best[0][start])[0, 1]),
        "violations": violations(first, best[0]),
        "violations_all_steps": violations(values, best) if len(values) > 1 else None,
        "violations_stationary": violations(first, materials.best.values),
        "states": int(alive.sum()),
        "guaranteed": found.guaranteed if isinstance(found, Bounds) else None,
        "informative": found.informative if isinstance(found, Ceilings) else None,
        "verdict": found.verdict if isinstance(found, Ceilings) else "",
    }


def _in_order(found: Potential | Bounds, world: World) -> FloatArray:
    """Return values in the order of the world's states: float64 [steps, states], a single step if they have none."""
    order, _ = found.space.positions(world.space)
    return np.where(world.model.terminal, 0.0, np.atleast_2d(found.values)[:, order])
