"""The joint backward pass: bounds from intervals of mass, all sources at once.

With w(s, x) = max over the allowed outcomes of r + discount * Vbar_{h+1}(s'), the best that unproven mass could do,

    Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
    Vbar_h(s)    = max over all declared actions x of Qbar_h(s, x),    Vbar_H = 0,    Vbar = 0 after termination.

Where masses have upper limits, the free mass fills the outcomes from the best downwards, each up to its limit: the
greedy solution of the linear program over all distributions between the limits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from causal_shaping._compile import njit
from causal_shaping.bounds._masses import Evidence, Masses, sampling_of
from causal_shaping.bounds._sweeps import Solution, fixed_point
from causal_shaping.bounds.support import Support, given_support, terminal_states, unrestricted_states
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ContradictionError

CEILING, FLOOR = 1.0, -1.0
"""Which way a bound errs. A floor is a ceiling of the negated values, but for the choice of the best action."""

ROUNDING = 1e-9
"""Masses of one (s, x) that contradict each other by more than this do so by more than rounding."""

CONTRADICTION_LEVEL = 1e-3
"""The chance of calling sources contradictory that are not."""

MANY_OUTCOMES = 100_000
"""With fewer outcomes than this one thread is as fast as several."""

Progress = Callable[[int, int], None]


def joint_bounds(
    counts: Counts,
    horizon: int,
    extreme: float,
    side: float,
    *,
    support: Support,
    gammas: FloatArray,
    confidence: float | None,
    discount: float,
    min_visits: float,
    stationary: bool,
    value_max: float | None = None,
    progress: Progress = lambda done, total: None,
) -> Solution:
    """Return bounds of the optimal interventional values on one side.

    Args:
        counts: of one or several sources, steps pooled or kept apart.
        horizon: the number of steps.
        extreme: the largest possible reward for ceilings, the smallest for floors.
        side: `CEILING` or `FLOOR`.
        support: what unproven mass may do.
        gammas: float64 [sources], the confounding of each.
        confidence: that all bounds hold at once; None takes shares as they are.
        discount: the factor on future reward.
        min_visits: states that all sources together left fewer times (at a step, for counts by step) get `any`.
        stationary: sweep to the fixed point instead of over the horizon.
        value_max: what no state is worth more than, for ceilings.
        progress: called with the number of steps done and in all.
    """
    allowed = given_support(counts, support)
    sampling = None if confidence is None else sampling_of(counts, confidence, horizon)
    evidence = Evidence(counts, gammas, extreme, side, sampling)
    terminal = terminal_states(counts)
    highest = np.inf if value_max is None else value_max
    unrestricted = unrestricted_states(counts, support)
    shape = (len(counts.space.states), len(counts.space.actions))

    def layer(step: int | None) -> _Layer:
        proven = evidence.masses(step)
        _refuse_contradiction(evidence, proven, step)
        return _Layer(proven, anything=unrestricted | (proven.visits < min_visits))

    def backup(current: _Layer, values: FloatArray) -> FloatArray:
        following = np.append(values, 0.0)  # and after the end
        # The best that could follow (the worst, for a floor): any state that can be gone on from, or the end. This is
        # what an action does that nobody tried, so that a state that nobody left gets the vacuous value.
        best = (side * values[~terminal]).max(initial=0.0)
        unproven: Any = best if allowed is None else allowed.best(side * following, best, shape)
        q_values = np.full(shape, extreme + discount * side * unproven)
        current.free(side * q_values, allowed is not None)
        current.backup(following, discount, side, q_values)
        np.minimum(q_values, highest, out=q_values)
        q_values[terminal] = 0.0
        return q_values

    def never_left(current: _Layer) -> BoolArray:
        result: BoolArray = (current.proven.visits == 0) & ~terminal
        if allowed is not None:
            result[allowed.pair // shape[1]] = False
        return result

    if stationary:
        pooled = layer(None)

        def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
            q_values = backup(pooled, values)
            return q_values.max(axis=-1), q_values

        # Without a highest value the fixed point is the limit of ever longer horizons, from 0. With one, sweeps fall
        # from there, and never below the optimum: it lies below every sweep of whatever it lies below.
        start = np.zeros(shape[0]) if value_max is None else np.where(terminal, 0.0, value_max)
        values, q_values, sweeps, contraction, remainder = fixed_point(sweep, start, counts.space.states, discount)
        values[~terminal] += side * remainder
        q_values[~terminal] += side * remainder
        return Solution(values, q_values, never_left(pooled), terminal, sweeps, contraction)

    values, q_values = np.zeros((horizon + 1, shape[0])), np.empty((horizon, *shape))
    vacuous = np.empty((horizon, shape[0]), dtype=bool)
    current = layer(None) if counts.step is None else None
    for h in reversed(range(horizon)):
        here = current or layer(h)
        q_values[h] = backup(here, values[h + 1])
        values[h] = q_values[h].max(axis=-1)
        vacuous[h] = never_left(here)
        progress(horizon - h, horizon)
    return Solution(values[:-1], q_values, vacuous, terminal)


class _Layer:
    """What is known of one step, or of all of them pooled, made ready for the kernel."""

    def __init__(self, proven: Masses, anything: BoolArray) -> None:
        self.proven = proven
        # The value of free mass in each cell; -inf for the best that was seen to follow the state.
        self.free_value = np.full(len(proven.state), -np.inf)
        self.anything = np.flatnonzero(anything[proven.state])
        outcomes = len(proven.lower)
        parts = numba.get_num_threads() if outcomes >= MANY_OUTCOMES else 1
        near = np.searchsorted(proven.first[1:], np.arange(1, parts) * (outcomes / parts))
        # Cut between states: all cells of a state are worked on together.
        edges = [0, *np.searchsorted(proven.state, proven.state[near]).tolist(), len(proven.state)]
        self.parts = list(itertools.pairwise(edges))
        self.total = np.add.reduceat(proven.lower, proven.first[:-1]) if outcomes else np.zeros(0)

    def free(self, unproven: FloatArray, everywhere: bool) -> None:
        """Set what free mass is worth, from the best that could follow each (s, x)."""
        which: Any = slice(None) if everywhere else self.anything
        self.free_value[which] = unproven[self.proven.state[which], self.proven.action[which]]

    def backup(self, following: FloatArray, discount: float, side: float, q_values: FloatArray) -> None:
        """Write the bound of one step for every cell."""
        proven = self.proven
        rest, upper, deficit = (array if len(array) else None for array in (proven.rest, proven.upper, proven.deficit))
        arguments = (
            *(proven.state, proven.action, proven.first, rest),
            *(proven.after, proven.reward, proven.lower, upper, deficit),
            *(self.total, self.free_value, side * proven.rewards, side * discount * following, side, q_values),
        )
        if len(self.parts) == 1:
            _backup(*self.parts[0], *arguments)
            return
        with ThreadPoolExecutor(len(self.parts)) as threads:
            for done in [threads.submit(_backup, *part, *arguments) for part in self.parts]:
                done.result()


def _refuse_contradiction(evidence: Evidence, proven: Masses, step: int | None) -> None:
    """Refuse intervals of mass that hold no distribution, beyond rounding and sampling error."""
    if not (_conflict(proven) > ROUNDING).any():
        return
    counts = evidence.counts
    if not counts.population:
        proven = evidence.allowing_for_chance(CONTRADICTION_LEVEL).masses(step)
    wrong = _conflict(proven)
    if wrong.max() > ROUNDING:
        cell = int(wrong.argmax())
        raise ContradictionError(
            f"The sources contradict each other on what {counts.space.actions[proven.action[cell]]!r} does in "
            f"{counts.space.states[proven.state[cell]]!r}{'' if step is None else f' at step {step}'}: no outcome "
            f"distribution fits what they prove, by a mass of {wrong[cell]:.3g}. At least one is more confounded than "
            "declared, or they did not watch the same world. Raise confounding, or leave a source out."
        )


def _conflict(proven: Masses) -> FloatArray:
    """Return by how much mass the intervals of each cell miss all distributions: float64 [cells]."""
    if not len(proven.state):
        return np.zeros(0)
    begins = proven.first[:-1]
    excess: FloatArray = np.add.reduceat(proven.lower, begins) - 1
    if not len(proven.upper):
        return excess
    crossed = np.maximum.reduceat(proven.lower - proven.upper, begins)
    missing = 1 - np.add.reduceat(proven.upper, begins) - proven.rest
    return np.maximum(np.maximum(excess, crossed), missing)


@njit(nogil=True)
def _backup(  # type: ignore[no-untyped-def]
    begin,
    end,
    state,
    action,
    first,
    rest,
    after,
    reward,
    lower,
    upper,
    deficit,
    total,
    free_value,
    rewards,
    following,
    side,
    q_values,
):
    """Write the bounds of cells begin .. end - 1.

    Arrays of `Masses` that are empty come as None: what needs them is then not even compiled. `rewards` and `following`
    come turned by `side`, so that the best is the largest, and `following` discounted.
    """
    cell = begin
    while cell < end:
        s, last = state[cell], cell
        seen = -np.inf  # the best outcome that was seen to follow s
        while last < end and state[last] == s:
            earned = 0.0
            for o in range(first[last], first[last + 1]):
                value = rewards[reward[o]] + following[after[o]]
                if value > seen:
                    seen = value
                earned += lower[o] * value
            if deficit is not None:
                for o in range(first[last], first[last + 1]):
                    earned -= deficit[o]
            q_values[s, action[last]] = earned
            last += 1
        for k in range(cell, last):
            earned, free = q_values[s, action[k]], 1 - total[k]
            w = seen if free_value[k] == -np.inf else free_value[k]
            if free <= 0:  # by sampling error: all mass is proven, scaled to 1
                earned /= total[k]
            elif upper is None:
                earned += free * w
            else:
                here = slice(first[k], first[k + 1])
                values = rewards[reward[here]] + following[after[here]]
                earned += _fill(values, lower[here], upper[here], free, rest[k], w)
            q_values[s, action[k]] = side * earned
        cell = last


@njit(nogil=True)
def _fill(value, lower, upper, free, rest, w):  # type: ignore[no-untyped-def]
    """Return the most that free mass earns: elsewhere first, as nothing is better, then the best outcomes down."""
    elsewhere = min(free, rest)
    earned = elsewhere * w
    free -= elsewhere
    for o in np.argsort(-value, kind="mergesort"):
        more = min(free, max(0.0, upper[o] - lower[o]))
        earned += more * value[o]
        free -= more
    return earned + free * w  # what is left beyond all limits, by sampling error alone
