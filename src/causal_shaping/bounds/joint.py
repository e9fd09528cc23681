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


CEILING, FLOOR = 1.0, -1.0
"""Which way a bound errs. A floor is a ceiling of the negated values, but for the choice of the best action."""


def joint_ceilings(counts: Counts, horizon: int, reward_max: float, **options: Any) -> Values:
    """Return upper bounds of the optimal interventional values, h = 0 the first step; see `joint_bounds`."""
    if len(counts) and counts.reward_max.max() > reward_max:
        source = counts.sources[counts.source[counts.reward_max.argmax()]]
        raise DataError(
            f"reward_max is {reward_max}, but source {source!r} holds a reward of {counts.reward_max.max()}. A ceiling "
            f"needs a true upper bound of the reward: pass reward_max={counts.reward_max.max()} or more."
        )
    return joint_bounds(counts, horizon, reward_max, CEILING, **options)


def joint_floors(counts: Counts, horizon: int, reward_min: float, **options: Any) -> Values:
    """Return lower bounds of the optimal interventional values, h = 0 the first step; see `joint_bounds`."""
    if len(counts) and counts.reward_min.min() < reward_min:
        source = counts.sources[counts.source[counts.reward_min.argmin()]]
        raise DataError(
            f"reward_min is {reward_min}, but source {source!r} holds a reward of {counts.reward_min.min()}. A floor "
            f"needs a true lower bound of the reward: pass reward_min={counts.reward_min.min()} or less."
        )
    return joint_bounds(counts, horizon, reward_min, FLOOR, **options)


def joint_bounds(
    counts: Counts,
    horizon: int,
    extreme: float,
    side: float,
    *,
    support: str = "observed",
    confounding: float | Mapping[str, float] = math.inf,
    discount: float = 1.0,
    min_visits: float = 0.0,
) -> Values:
    """Return bounds of the optimal interventional values on one side.

    Args:
        counts: of one or several sources, steps pooled.
        horizon: the number of steps.
        extreme: the largest possible reward for ceilings, the smallest for floors.
        side: `CEILING` or `FLOOR`.
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
        raise DataError("These counts are kept apart by step; pool the steps first.")
    proven = masses(counts, source_confounding(counts, confounding), extreme)
    if counts.population:
        _refuse_contradiction(counts, proven)
    states, actions = len(counts.space.states), len(counts.space.actions)
    visits = np.bincount(counts.state, counts.n, minlength=states)
    terminal = only_ends(counts)
    anything = np.full(states, support == "any") | (visits < min_visits)
    values, q_values = np.zeros((horizon + 1, states)), np.zeros((horizon, states, actions))
    for h in reversed(range(horizon)):
        following = values[h + 1]
        # The best that could follow (the worst, for a floor): any state that can be gone on from, or the end. This is
        # what an action does that nobody tried, so that a state that nobody left gets the vacuous value.
        after = (side * following[~terminal]).max(initial=0.0)
        q_values[h] = best = extreme + discount * side * after
        _backup(proven.arrays(), anything, following, discount, best, side, q_values[h])
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
    side: float,
    q_values: FloatArray,
) -> None:
    """Write the bound of one step for every (s, x) that some source shows outcomes of; values are turned by `side`."""
    state, action, first, capped, next_state, ended, reward, lower, upper, deficit = arrays
    cells = len(state)
    value = np.empty(len(lower))
    for o in range(len(lower)):
        value[o] = side * (reward[o] if ended[o] else reward[o] + discount * following[next_state[o]])
    cell = 0
    while cell < cells:
        s, last = state[cell], cell
        while last < cells and state[last] == s:
            last += 1
        w = side * best
        if not anything[s]:  # the best outcome that was seen to follow s
            w = -np.inf
            for o in range(first[cell], first[last]):
                w = max(w, value[o])
        for k in range(cell, last):
            q_values[s, action[k]] = side * _fill(
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
