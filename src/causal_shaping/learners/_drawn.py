"""Runs of the learner that samples in a drawn world, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.beliefs import _kernels as beliefs
from causal_shaping.beliefs.wide import Outcomes
from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.learners._kernels import Step
from causal_shaping.learners._posterior import learn_sampled, plan_if_needed
from causal_shaping.worlds.simulate import pick


@njit(nogil=True)
def _position(sums, first, last, uniform):  # type: ignore[no-untyped-def]
    """Return the first position from `first` to before `last` whose running sum exceeds a uniform number."""
    while last - first > 1:
        middle = (first + last - 1) // 2
        if sums[middle] > uniform:
            last = middle + 1
        else:
            first = middle + 1
    return first


@njit(nogil=True)
def run_drawn(rng, shape, world, terminal, start, gaps, sampler):  # type: ignore[no-untyped-def]
    """Let a learner act in a drawn world for as many steps as `gaps` are asked for, see `run_in`."""
    regret, costs = gaps
    first, after_of, paid, _, sums = world
    horizon, steps = len(sampler.values) - 1, len(regret)
    ends, episodes, h, total = np.empty(steps, dtype=np.int64), 0, 0, 0.0
    s = pick(start, rng.random())
    for done in range(steps):
        plan_if_needed(sampler, h, h, s)
        x = sampler.q_values[h, s].argmax()
        total += costs[h, s, x]
        regret[done] = total
        cell = ((h if shape.steps > 1 else 0) * shape.states + s) * shape.actions + x
        at = _position(sums, first[cell], first[cell + 1], rng.random())
        after = int(after_of[at])
        terminated = after == shape.states or terminal[after]
        step = Step(h, h + 1, s, x, paid[at], after, terminated, h, terminated, h + 1 == horizon)
        learn_sampled(sampler, step)
        h += 1
        if terminated or h == horizon or done == steps - 1:
            ends[episodes] = done + 1
            episodes, h = episodes + 1, 0
            s = pick(start, rng.random())
        else:
            s = after
    return ends[:episodes].copy()


def run_in(
    world: Outcomes, sampler: Any, start: FloatArray, costs: FloatArray, steps: int, seed: int
) -> tuple[FloatArray, LongArray]:
    """Return the regret after each step of a learner's run in a drawn world, and the step at which episodes ended.

    Args:
        world: what follows each cell.
        sampler: the learner, with a plan for each step.
        start: running sums of where episodes start.
        costs: V* - Q*: float64 [horizon, states, actions].
        steps: the budget.
        seed: that of the world's randomness.
    """
    regret, rng = np.zeros(steps), np.random.default_rng([seed, 2])
    return regret, run_drawn(rng, sampler.shape, world, sampler.terminal, start, (regret, costs), sampler)


@njit(nogil=True)
def add_trial(rng, sampler, world, rows):  # type: ignore[no-untyped-def]
    """Let a learner see so many rows of each action that exists: what a randomised source would have logged."""
    shape, (first, after, paid, _, sums) = sampler.shape, world
    sampler.memory.against[2] = -1.0  # the agent has not begun
    for cell in range(len(first) - 1):
        s, x = cell // shape.actions % shape.states, cell % shape.actions
        if sampler.terminal[s] or not sampler.admissible[s, x]:
            continue
        seen = np.zeros(first[cell + 1] - first[cell])
        for _ in range(rows):
            seen[_position(sums, first[cell], first[cell + 1], rng.random()) - first[cell]] += 1.0
        for i in range(len(seen)):
            if seen[i] > 0.0:
                at = first[cell] + i
                beliefs.observe(shape, sampler.guess, sampler.memory, cell, after[at], paid[at], seen[i])
    sampler.memory.against[2] = 0.0
