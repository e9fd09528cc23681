"""A rule made ready for a problem: its tables and numbers for the compiled functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.errors import ArgumentError
from causal_shaping.learners._kernels import Constants, Setting, Watch
from causal_shaping.learners.rules import Rule
from causal_shaping.shaping.monitor import Monitor


def prepare(
    rule: Rule,
    space: Space,
    horizon: int,
    steps: int,
    potential: Potential | Ceilings | None = None,
    step_indexed: bool = False,
) -> Setting:
    """Return a rule with its numbers for the states and actions, in the order of `space`, and the budget of `steps`."""
    if isinstance(potential, Ceilings):
        if not potential.stationary and potential.horizon != horizon:
            raise ArgumentError(f"The ceilings are of {potential.horizon} steps, but episodes last {horizon}.")
        phi: Potential | None = potential.potential(step_indexed=step_indexed)
    else:
        phi = potential
    layers, terminal = horizon if step_indexed else 1, space.is_terminal
    table = np.zeros((layers + 1, len(space.states)))
    if phi is not None:
        if phi.step_indexed and not step_indexed:
            raise ArgumentError(
                "The potential has steps and the learner has not: pass step_indexed=True or --step-indexed, or pool "
                "its steps."
            )
        if phi.horizon is not None and phi.horizon != horizon:
            raise ArgumentError(f"The potential has {phi.horizon} steps, but episodes last {horizon}.")
        table[:] = phi.at(phi.match(space, stacklevel=3), np.arange(layers + 1)[:, None])
        if step_indexed:
            table[-1] = 0.0
        table[:, terminal] = 0.0
    number = rule.initial if isinstance(rule.initial, float) else {"horizon": float(horizon), "zero": 0.0}[rule.initial]
    initial = np.full((layers, len(space.states), len(space.actions)), number)
    initial[:, terminal] = 0.0
    initial = np.where(space.is_admissible, initial, -np.inf)  # so that it is never the best
    values = initial.max(axis=-1)
    clip: Any = {"horizon": float(horizon), "potential": table[:layers], "zero": 0.0, "none": np.inf}[rule.clip]
    if isinstance(rule.bonus, float):
        bonus = rule.bonus
    else:
        # phi_m as printed; a terminal state counts 0.
        scale = {"horizon": float(horizon), "phi-max": float(max(table.max(), 0.0))}[rule.bonus]
        iota = math.log(max(int(space.is_admissible[~terminal].sum()) * steps / rule.p, 1.0))
        bonus = rule.c * scale * math.sqrt(horizon * iota)
    constants = Constants(
        discount=1.0 if phi is None else phi.discount,
        potential=table if rule.shaped else np.zeros_like(table),
        clip=np.array(np.broadcast_to(clip, values.shape)),
        bonus=bonus,
        horizon=horizon,
    )
    # Nothing follows the last step; without step index, a table follows itself.
    initial_values = np.concatenate([values, np.zeros_like(values[:1]) if step_indexed else values])
    return Setting(constants, initial, initial_values, rule.time_limit == "bootstrap", step_indexed)


def watched(potential: Potential | Ceilings | None, space: Space, rule: Rule) -> tuple[Monitor | None, Watch | None]:
    """Return a monitor of ceilings that say the least reward, and what the kernels need of it; None if there is none.

    Ceilings are tested as they are, step by step, also where the learner has no step index.
    """
    phi = potential.potential() if isinstance(potential, Ceilings) else potential
    if phi is None or phi.kind != "ceiling" or phi.reward_min is None or not rule.shaped:
        return None, None
    actions = np.array([phi.space.find_action(label) for label in space.actions], dtype=np.int64)
    by_action = bool((actions != UNKNOWN).all())
    monitor = Monitor(phi, by_action=by_action)
    return monitor, Watch(monitor.tables, phi.space.find_all(space), actions if by_action else np.zeros_like(actions))
