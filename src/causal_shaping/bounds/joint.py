"""The joint backward pass: ceilings from intervals of mass, all sources at once.

With w(s, x) = max over the allowed outcomes of r + discount * Vbar_{h+1}(s'), the best that unproven mass could do,

    Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
    Vbar_h(s)    = max over all declared actions x of Qbar_h(s, x),    Vbar_H = 0,    Vbar = 0 after termination.

Where masses have upper limits, the free mass fills the outcomes from the best downwards, each up to its limit: the
greedy solution of the linear program over all distributions between the limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from causal_shaping.bounds.masses import Masses, masses, source_confounding
from causal_shaping.cmdp import Values, whole
from causal_shaping.data import UNKNOWN, BoolArray, Counts, FloatArray, frozen
from causal_shaping.errors import DataError

SUPPORTS = ("any", "observed")
CONTRADICTION = 1e-9
"""Proven masses of one (s, x) that add to more than 1 by more than this contradict each other, at population level."""


def vacuous(reward_max: float, steps: int, discount: float) -> float:
    """Return the most that `steps` steps can earn: every one the largest reward, or an end after the first."""
    if reward_max < 0:
        return reward_max if steps else 0.0
    return reward_max * (float(steps) if discount == 1 else (1 - discount**steps) / (1 - discount))


def joint_ceilings(
    counts: Counts,
    horizon: int,
    reward_max: float,
    support: str = "observed",
    confounding: float | Mapping[str, float] = math.inf,
    discount: float = 1.0,
    min_visits: float = 0.0,
) -> Values:
    """Return upper bounds of the optimal interventional values, h = 0 the first step.

    Args:
        counts: of one or several sources, steps pooled.
        horizon: the number of steps.
        reward_max: the largest possible reward.
        support: what unproven mass may do: "any" thing, or only what was "observed" to follow the state in some source
            after some action. An action that nobody tried in a state may do anything.
        confounding: Gamma of all sources, or by name.
        discount: the factor on future reward.
        min_visits: states that all sources together left fewer times get "any" support.
    """
    horizon = whole("horizon", horizon, least=1)
    if support not in SUPPORTS:
        raise DataError(f"support is {support!r}; use {' or '.join(map(repr, SUPPORTS))}.")
    if counts.step_indexed:
        raise DataError("These counts are kept apart by step; the pass over them is by step.")
    if len(counts) and counts.reward_max.max() > reward_max:
        source = counts.sources[counts.source[counts.reward_max.argmax()]]
        raise DataError(
            f"reward_max is {reward_max}, but source {source!r} holds a reward of {counts.reward_max.max()}. A ceiling "
            "needs a true upper bound of the reward."
        )
    proven = masses(counts, source_confounding(counts, confounding), reward_max)
    if counts.population:
        _refuse_contradiction(counts, proven)
    states, actions = len(counts.space.states), len(counts.space.actions)
    visits = np.bincount(counts.state, counts.n, minlength=states)
    left = visits > 0
    terminal = only_ends(counts)
    anything = np.full(states, support == "any") | (visits < min_visits)
    values, q_values = np.zeros((horizon + 1, states)), np.zeros((horizon, states, actions))
    for h in reversed(range(horizon)):
        following = values[h + 1]
        best = reward_max + discount * max(0.0, following[~terminal].max(initial=-math.inf) if h + 1 < horizon else 0.0)
        q_values[h] = best
        _backup(proven.arrays(), anything, following, discount, best, q_values[h])
        q_values[h, ~left] = vacuous(reward_max, horizon - h, discount)
        q_values[h, terminal] = 0.0
        values[h] = q_values[h].max(axis=-1)
    return Values(frozen(values[:-1], np.float64), frozen(q_values, np.float64))


def only_ends(counts: Counts) -> BoolArray:
    """Whether a state was entered, only to end there, and never left: a terminal state."""
    states = len(counts.space.states)
    ends, goes_on = np.zeros(states, dtype=bool), np.zeros(states, dtype=bool)
    entered = counts.next_state != UNKNOWN
    ends[counts.next_state[entered & counts.terminated]] = True
    goes_on[counts.next_state[entered & ~counts.terminated]] = True
    goes_on[counts.state] = True
    return ends & ~goes_on


def _refuse_contradiction(counts: Counts, proven: Masses) -> None:
    """Refuse intervals of mass that hold no distribution, which at population level is no sampling error."""
    if not len(proven.state):
        return
    begins = proven.first[:-1]
    excess = np.add.reduceat(proven.lower, begins) - 1
    crossed = np.maximum.reduceat(proven.lower - proven.upper, begins)
    missing = np.where(proven.capped, 1 - np.add.reduceat(proven.upper, begins), 0.0)
    wrong = np.maximum(np.maximum(excess, crossed), missing)
    if wrong.max() > CONTRADICTION:
        cell = int(wrong.argmax())
        raise DataError(
            f"The sources contradict each other on what {counts.space.actions[proven.action[cell]]!r} does in "
            f"{counts.space.states[proven.state[cell]]!r}: no outcome distribution fits what they prove, by a mass of "
            f"{wrong[cell]:.3g}. At least one is more confounded than declared, or they did not watch the same world."
        )


@njit(cache=True)
def _backup(
    arrays: Any,
    anything: BoolArray,
    following: FloatArray,
    discount: float,
    best: float,
    q_values: FloatArray,
) -> None:
    """Write Qbar of one step for every (s, x) that some source shows outcomes of."""
    state, action, first, capped, next_state, ended, reward, lower, upper, deficit = arrays
    cells = len(state)
    value = np.empty(len(lower))
    for o in range(len(lower)):
        value[o] = reward[o] if ended[o] else reward[o] + discount * following[next_state[o]]
    cell = 0
    while cell < cells:
        s, last = state[cell], cell
        while last < cells and state[last] == s:
            last += 1
        w = best
        if not anything[s]:  # the best outcome that was seen to follow s
            w = -np.inf
            for o in range(first[cell], first[last]):
                w = max(w, value[o])
        for k in range(cell, last):
            q_values[s, action[k]] = _fill(
                value[first[k] : first[k + 1]],
                lower[first[k] : first[k + 1]],
                upper[first[k] : first[k + 1]],
                deficit[first[k] : first[k + 1]],
                capped[k],
                w,
            )
        cell = last


@njit(cache=True)
def _fill(value: Any, lower: Any, upper: Any, deficit: Any, capped: bool, w: float) -> Any:
    """Return the most that a distribution between the limits earns; free mass without a limit earns w."""
    total = lower.sum()
    if total >= 1:  # by sampling error: all mass is proven, scaled to 1
        return (lower * value - deficit).sum() / total
    earned, free = (lower * value - deficit).sum(), 1.0 - total
    if not capped:
        return earned + free * w
    for o in np.argsort(-value):
        more = min(free, max(0.0, upper[o] - lower[o]))
        earned += more * value[o]
        free -= more
    return earned + free * w  # what is left beyond all limits, by sampling error alone
