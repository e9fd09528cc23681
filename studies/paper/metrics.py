"""Measures of runs and of potentials; exact, since the worlds are known.

- `run_facts`: regret and its curve, optimal ratios.
- `deployed_facts`: the same for a policy that is followed without learning.
- `potential_facts`: distance to V*, validity and verdict.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping.bounds import Ceilings
from causal_shaping.bounds.results import Bounds
from causal_shaping.bounds.settings import CEILING
from causal_shaping.data.arrays import FloatArray, IntArray
from causal_shaping.data.potential import Potential
from causal_shaping.learners import Run
from causal_shaping.learners.seeds import curve_points, optimal_ratios
from causal_shaping.worlds import World
from studies.paper.materials import Materials
from studies.paper.theory.shaped import ROUNDING


def policy_facts(world: World, policy: IntArray) -> dict[str, Any]:
    """Return both optimal ratios of a policy, and the policy."""
    match, optimal = optimal_ratios(world.model, policy)
    return {"argmax_match": match, "optimal": optimal, "policy": policy.tolist()}


def run_facts(materials: Materials, run: Run) -> dict[str, Any]:
    """Return the measures of an online run as plain values."""
    return {
        "steps": run.steps,
        "episodes": len(run.returns),
        "regret": float(run.step_regret[-1]),
        "curve": run.step_regret[curve_points(run.steps) - 1].tolist(),
        **policy_facts(materials.world, run.recommended),
    }


def deployed_facts(materials: Materials, policy: IntArray, budget: int, counted_in: str) -> dict[str, Any]:
    """Return the same measures for a policy that is followed for a budget without learning; its regret is expected."""
    world = materials.world
    visits = world.model.occupancy(policy, world.horizon)
    length = float(visits.sum())  # the expected number of steps of an episode
    per_step = float((visits.sum(axis=0) * materials.best.gaps()).sum()) / length
    steps = budget if counted_in == "steps" else round(budget * length)
    return {
        "steps": steps,
        "episodes": round(steps / length),
        "regret": per_step * steps,
        "curve": (per_step * curve_points(steps)).tolist(),
        **policy_facts(world, policy),
    }


def potential_facts(materials: Materials, name: str) -> dict[str, Any]:
    """Return the distance of a potential to the optimum, the number of states on the wrong side, and its verdict.

    Distances are to V* of the first step, for a stationary bound to V* over an infinite horizon, over the states in
    which episodes can start. Violations are states where a ceiling lies below V*, or a floor above: at the first step,
    over all steps, and against V* over an infinite horizon.
    """
    # The paper's potential is that of one step; its bound has all steps, and a verdict.
    found = materials.bound(name) if name == "paper" else materials.potential(name)
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
