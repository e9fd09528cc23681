"""What a learner does with a step, compiled: `update`, `greedy`, `record` and `plan`, and the `Constants` they read."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray

PLANNING_SWEEPS, PLANNING_TOLERANCE, RECOMMENDING_TOLERANCE = 1000, 1e-5, 1e-9
"""Sweeps of a plan without step index end when nothing changes by more than this, or after so many; an episode changes
little, so that sweeps from the last plan's values are few. The plan that is recommended in the end is more exact."""


class Constants(NamedTuple):
    """What the kernels know of a rule; arrays have a leading axis of 1 without step index, of H with it.

    Attributes:
        discount: the factor on future reward.
        potential: float64 [steps + 1, states], the last row 0 with step index, else the same as the first; 0 where an
            episode has ended, and everywhere if the reward is not shaped.
        initial: float64 [steps, states, actions].
        clip: float64 [steps, states].
        bonus: B of b_t = B / sqrt(t).
        rate_offset: the k of the learning rate (k + 1) / (k + t).
        cap_at_initial: see `Rule`.
    """

    discount: float
    potential: FloatArray
    initial: FloatArray
    clip: FloatArray
    bonus: float
    rate_offset: float
    cap_at_initial: bool


@njit(nogil=True)
def update(learned, layer, below, s, x, reward, after, going_on, constants):  # type: ignore[no-untyped-def]
    """Learn from one step.

    `layer` is the table of the step and `below` that of the next one; both 0 without step index. `going_on` says
    whether anything follows s': not after the end, and not at a time limit that counts as one.
    """
    q_values, values, visits = learned
    discount, potential, initial, clip, bonus, rate_offset, cap_at_initial = constants
    visits[layer, s, x] += 1
    t = visits[layer, s, x]
    alpha = (rate_offset + 1.0) / (rate_offset + t)
    shaped = reward - potential[layer, s]
    following = 0.0
    if going_on:
        shaped += discount * potential[below, after]
        following = discount * values[below, after]
    new = (1.0 - alpha) * q_values[layer, s, x] + alpha * (shaped + following + bonus / math.sqrt(t))
    if cap_at_initial:
        new = min(new, initial[layer, s, x])
    q_values[layer, s, x] = new
    values[layer, s] = min(clip[layer, s], q_values[layer, s].max())


@njit(nogil=True)
def greedy(q_values, visits, least_tried):  # type: ignore[no-untyped-def]
    """Return the best action: among equals the one that was tried least, or else the lowest number."""
    best = 0
    for x in range(1, len(q_values)):
        if q_values[x] > q_values[best] or (least_tried and q_values[x] == q_values[best] and visits[x] < visits[best]):
            best = x
    return best


@njit(nogil=True)
def record(counted, visits, layer, s, x, reward, after):  # type: ignore[no-untyped-def]
    """Count a step for a model-based rule; `after` is the number of states if it ended. False if there is no room."""
    paid, successors, times = counted
    visits[layer, s, x] += 1
    paid[layer, s, x] += reward
    for i in range(successors.shape[-1]):
        if successors[layer, s, x, i] == after or times[layer, s, x, i] == 0:
            successors[layer, s, x, i] = after
            times[layer, s, x, i] += 1
            return True
    return False


@njit(nogil=True)
def plan(learned, counted, proven, terminal, step_indexed, constants, recommending):  # type: ignore[no-untyped-def]
    """Plan optimistically with what was counted: backwards over the steps, or sweeps that start from the last plan.

    `values` ends with a column for the end, which stays 0. `proven` is what logs prove of one step. `recommending` asks
    for what to do when all is learned: an action that was never tried does not count where another one was.
    """
    q_values, values, visits = learned
    paid, successors, times = counted
    discount, _, initial, clip, bonus, _, _ = constants
    known, cell, first, after, reward, lower, unproven, scale, deficit, anything, reward_max = proven
    layers, states, actions = q_values.shape
    for _sweep in range(1 if step_indexed else PLANNING_SWEEPS):
        change = 0.0
        for layer in range(layers - 1, -1, -1):
            below = layer + 1 if step_indexed else 0
            highest = 0.0
            if known:
                for s in range(states):
                    if not terminal[s]:
                        highest = max(highest, values[below, s])
            for s in range(states):
                if terminal[s]:
                    continue
                tried = recommending and visits[layer, s].max() > 0
                best = -np.inf  # what mass that nobody has proven could do
                if known and anything[s]:
                    best = reward_max + discount * highest
                elif known:
                    for x in range(actions):
                        k = cell[s, x]
                        for o in range(first[k] if k >= 0 else 0, first[k + 1] if k >= 0 else 0):
                            best = max(best, reward[o] + discount * values[below, after[o]])
                for x in range(actions):
                    n = visits[layer, s, x]
                    if tried and n == 0:
                        q_values[layer, s, x] = -np.inf
                        continue
                    most = initial[layer, s, x]
                    if known and cell[s, x] < 0:
                        most = min(most, reward_max + discount * highest)
                    elif known:
                        k, earned = cell[s, x], 0.0
                        for o in range(first[k], first[k + 1]):
                            earned += lower[o] * (reward[o] + discount * values[below, after[o]])
                        earned = (earned - deficit[k]) / scale[k]
                        most = min(most, earned + unproven[k] * best if unproven[k] > 0 else earned)
                    if n > 0:
                        following = 0.0
                        for i in range(successors.shape[-1]):
                            if times[layer, s, x, i] == 0:
                                break
                            following += times[layer, s, x, i] * values[below, successors[layer, s, x, i]]
                        most = min(most, (paid[layer, s, x] + discount * following) / n + bonus / math.sqrt(n))
                    q_values[layer, s, x] = most
                new = min(clip[layer, s], q_values[layer, s].max())
                change = max(change, abs(new - values[layer, s]))
                values[layer, s] = new
        if change < (RECOMMENDING_TOLERANCE if recommending else PLANNING_TOLERANCE):
            break
