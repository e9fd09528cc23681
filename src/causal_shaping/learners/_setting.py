"""A rule made ready for a problem: its tables and numbers for the compiled functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from causal_shaping.bounds.ceilings import provably_suboptimal
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError
from causal_shaping.learners._kernels import Constants, Setting
from causal_shaping.learners.rules import Rule


def prepare(
    rule: Rule,
    space: Space,
    horizon: int,
    steps: int,
    potential: Potential | Ceilings | None = None,
    floors: Floors | None = None,
    step_indexed: bool = False,
) -> Setting:
    """Return a rule with its numbers for the states and actions, in the order of `space`, and the budget of `steps`."""
    ceilings = potential if isinstance(potential, Ceilings) else None
    if ceilings is not None and not ceilings.stationary and ceilings.horizon != horizon:
        raise ArgumentError(f"The ceilings are of {ceilings.horizon} steps, but episodes last {horizon}.")
    if not isinstance(floors, (Floors, type(None))):
        raise ArgumentError("floors must come from value_floors.")
    phi = potential.potential(step_indexed=step_indexed) if isinstance(potential, Ceilings) else potential
    layers, terminal = horizon if step_indexed else 1, space.is_terminal
    table = np.zeros((layers + 1, len(space.states)))
    if phi is not None:
        if phi.step_indexed and not step_indexed:
            raise ArgumentError("The potential has steps and the learner has not: use potential(step_indexed=False).")
        if phi.horizon is not None and phi.horizon != horizon:
            raise ArgumentError(f"The potential has {phi.horizon} steps, but episodes last {horizon}.")
        table[:] = phi.at(phi.match(space, stacklevel=3), np.arange(layers + 1)[:, None])
        if step_indexed:
            table[-1] = 0.0
        table[:, terminal] = 0.0
    initial = _initial(rule, table, ceilings, space, horizon)
    initial[:, terminal] = 0.0
    initial = np.where(space.is_admissible, initial, -np.inf)  # so that it is never the best
    if rule.prune and ceilings is not None and floors is not None:
        initial = np.where(_pruned(ceilings, floors, space, step_indexed), -np.inf, initial)
    values = initial.max(axis=-1)
    clip: Any = {"horizon": float(horizon), "potential": table[:layers], "zero": 0.0, "none": np.inf}[rule.clip]
    if isinstance(rule.bonus, float):
        bonus = rule.bonus
    else:
        iota = math.log(max(int(space.is_admissible[~terminal].sum()) * steps / rule.p, 1.0))
        bonus = rule.c * _scale(rule.bonus, table, ceilings, floors, horizon) * math.sqrt(horizon * iota)
    constants = Constants(
        discount=1.0 if phi is None else phi.discount,
        potential=table if rule.shaped else np.zeros_like(table),
        initial=initial,
        clip=np.array(np.broadcast_to(clip, values.shape)),
        bonus=bonus,
        rate_offset=float(horizon if rule.rate_offset is None else rule.rate_offset),
        cap_at_initial=rule.cap_at_initial,
    )
    # Nothing follows the last step; without step index, a table follows itself.
    initial_values = np.concatenate([values, np.zeros_like(values[:1]) if step_indexed else values])
    return Setting(constants, initial_values, horizon, rule.time_limit == "bootstrap", step_indexed, rule.model_based)


def _pruned(ceilings: Ceilings, floors: Floors, space: Space, step_indexed: bool) -> BoolArray:
    """Return which actions are provably suboptimal: bool [steps, states, actions], one step without step index."""
    if step_indexed == ceilings.stationary:
        raise ArgumentError(
            "A table without steps is pruned by ceilings and floors without a time limit (stationary=True), a "
            "step-indexed table by those of the horizon."
        )
    states, actions = ceilings.space.positions(space)
    mask = provably_suboptimal(ceilings, floors).reshape(-1, *ceilings.q_values.shape[-2:])
    return np.asarray(mask[:, states][:, :, actions])


def _initial(rule: Rule, table: FloatArray, ceilings: Ceilings | None, space: Space, horizon: int) -> FloatArray:
    """Return the Q-values that learning starts from: float64 [steps, states, actions]."""
    layers, shape = len(table) - 1, (len(table) - 1, table.shape[1], len(space.actions))
    if rule.initial == "potential":
        return np.array(np.broadcast_to(0.0 if rule.shaped else table[:layers, :, None], shape))
    if rule.initial != "ceilings":
        number = {"horizon": horizon, "zero": 0}[rule.initial] if isinstance(rule.initial, str) else rule.initial
        return np.full(shape, float(number))
    if ceilings is None:
        raise ArgumentError(
            "This learner starts from ceilings per action: pass the ceilings. Without any, or with a potential alone, "
            "choose where it starts: initial='zero' if no value is above 0, or initial='potential'."
        )
    q_values = ceilings.q_values[None] if ceilings.stationary else ceilings.q_values[:layers]
    states, names = ceilings.space.positions(space)
    moved = q_values[:, states][:, :, names]
    if np.isnan(moved[:, space.is_admissible]).any():
        raise ArgumentError("The ceilings skip actions (method='paper'); compute them with method='joint'.")
    return np.broadcast_to(moved - (table[:layers, :, None] if rule.shaped else 0.0), shape).copy()


def _scale(name: str, table: FloatArray, ceilings: Ceilings | None, floors: Floors | None, horizon: int) -> float:
    """Return the scale of the bonus."""
    if name == "horizon":
        return float(horizon)
    if name == "phi-max":
        return float(max(table.max(), 0.0))  # as printed; a terminal state counts 0
    if ceilings is None or floors is None:
        raise ArgumentError("bonus='span' needs the ceilings and floors= of the optimal value.")
    # After the end, and after the last step, the value is 0.
    return float(max(ceilings.values.max(), 0.0) - min(floors.values.min(), 0.0))
