"""The joint backward pass: bounds from intervals of mass, all sources at once.

With w(s, x) = max over the allowed outcomes of r + discount * Vbar_{h+1}(s'), the best that unproven mass could do,

    Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
    Vbar_h(s)    = max over all declared actions x of Qbar_h(s, x),    Vbar_H = 0,    Vbar = 0 after termination.

Where masses have upper limits, the free mass fills the outcomes from the best downwards, each up to its limit: the
greedy solution of the linear program over all distributions between the limits.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from causal_shaping._compile import njit
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds._masses import Evidence, Masses
from causal_shaping.bounds._sweeps import Solution, fixed_point
from causal_shaping.bounds.settings import Settings
from causal_shaping.bounds.support import given_support, terminal_states, unrestricted_states
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ContradictionError

ROUNDING = 1e-9
"""Masses of one (s, x) that contradict each other by more than this do so by more than rounding."""

CONTRADICTION_LEVEL = 1e-3
"""The probability of calling sources contradictory that are not."""

MANY_OUTCOMES = 100_000
"""With fewer outcomes than this one thread is as fast as several."""


def joint_bounds(counts: Counts, settings: Settings, side: float, progress: Progress = no_progress) -> Solution:
    """Return bounds of the optimal interventional values on one side, with settings checked for these counts."""
    horizon, discount = settings.horizon, settings.discount
    allowed = given_support(counts, settings.support)
    evidence = Evidence(counts, settings, side)
    terminal = terminal_states(counts)
    highest = np.inf if settings.value_max is None else settings.value_max
    unrestricted = unrestricted_states(counts, settings.support)
    shape = (len(counts.space.states), len(counts.space.actions))

    def layer(step: int | None) -> Layer:
        masses = evidence.masses(step)
        _refuse_contradiction(evidence, masses, step)
        return Layer(masses, unrestricted | (masses.visits < settings.min_visits), side)

    def backup(current: Layer, values: FloatArray) -> FloatArray:
        following = np.append(side * values, 0.0)  # and after an end
        # The best that could follow (the worst, for a floor): any state that is not terminal, or the end. This is what
        # an action does that nobody tried, so that a state in which no source acted gets the vacuous value.
        best = following[:-1][~terminal].max(initial=0.0)
        unproven: Any = best if allowed is None else allowed.best(following, best, shape)
        turned = np.full(shape, side * settings.reward_bound + discount * unproven)
        current.set_free_values(turned, everywhere=allowed is not None)
        current.backup(discount * following, turned)
        q_values = np.minimum(side * turned, highest)
        q_values[terminal] = 0.0
        return q_values

    def vacuous_in(current: Layer) -> BoolArray:
        result: BoolArray = (current.masses.visits == 0) & ~terminal
        if allowed is not None:
            result[allowed.pair // shape[1]] = False
        return result

    if settings.stationary:
        pooled = layer(None)

        def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
            q_values = backup(pooled, values)
            return q_values.max(axis=-1), q_values

        # From 0 sweeps approach the limit of ever longer horizons. From a known upper bound they fall, and never below
        # the optimum: a sweep of values above it stays above it.
        start = np.zeros(shape[0]) if settings.value_max is None else np.where(terminal, 0.0, highest)
        values, q_values, sweeps, contraction, remainder = fixed_point(sweep, start, counts.space.states, discount)
        values[~terminal] += side * remainder
        q_values[~terminal] += side * remainder
        return Solution(values, q_values, vacuous_in(pooled), terminal, sweeps, contraction)

    values, q_values = np.zeros((horizon + 1, shape[0])), np.empty((horizon, *shape))
    vacuous = np.empty((horizon, shape[0]), dtype=bool)
    every = layer(None) if counts.step is None else None
    for h in reversed(range(horizon)):
        current = every or layer(h)
        q_values[h] = backup(current, values[h + 1])
        values[h] = q_values[h].max(axis=-1)
        vacuous[h] = vacuous_in(current)
        progress(horizon - h, horizon, "Bounding values")
    return Solution(values[:-1], q_values, vacuous, terminal)


class Layer:
    """The masses of one step or of all, made ready for the kernel; in `unrestricted` states free mass does anything."""

    def __init__(self, masses: Masses, unrestricted: BoolArray, side: float) -> None:
        self.masses = masses._replace(rewards=side * masses.rewards)
        self.free_value = np.full(len(masses.state), -np.inf)
        self.unrestricted = np.flatnonzero(unrestricted[masses.state])
        outcomes = len(masses.lower)
        parts = numba.get_num_threads() if outcomes >= MANY_OUTCOMES else 1
        near = np.searchsorted(masses.first[1:], np.arange(1, parts) * (outcomes / parts))
        # Cut between states: all cells of a state are worked on together.
        edges = [0, *np.searchsorted(masses.state, masses.state[near]).tolist(), len(masses.state)]
        self.parts = list(itertools.pairwise(edges))

    def set_free_values(self, unproven: FloatArray, everywhere: bool) -> None:
        """Set the value of free mass, from the best that could follow each (s, x)."""
        which: Any = slice(None) if everywhere else self.unrestricted
        self.free_value[which] = unproven[self.masses.state[which], self.masses.action[which]]

    def backup(self, following: FloatArray, q_values: FloatArray) -> None:
        """Write the bound of one step for every cell; see `backup_state`."""
        arguments = (self.masses, following, self.free_value, q_values)
        if len(self.parts) == 1:
            _backup(*self.parts[0], *arguments)
            return
        with ThreadPoolExecutor(len(self.parts)) as threads:
            for done in [threads.submit(_backup, *part, *arguments) for part in self.parts]:
                done.result()


def _refuse_contradiction(evidence: Evidence, masses: Masses, step: int | None) -> None:
    """Refuse intervals of mass that hold no distribution, beyond rounding and sampling error."""
    if not (_conflict(masses) > ROUNDING).any():
        return
    counts = evidence.counts
    if not counts.population:
        masses = evidence.allowing_for_chance(CONTRADICTION_LEVEL).masses(step)
    conflict = _conflict(masses)
    cell = int(conflict.argmax())
    if conflict[cell] > ROUNDING:
        raise ContradictionError(
            f"The sources contradict each other on what {counts.space.actions[masses.action[cell]]!r} does in "
            f"{counts.space.states[masses.state[cell]]!r}{'' if step is None else f' at step {step}'}: no outcome "
            f"distribution fits what they prove, by a mass of {conflict[cell]:.3g}. At least one is more confounded "
            "than declared, or they did not watch the same world. Raise confounding, or leave a source out."
        )


def _conflict(masses: Masses) -> FloatArray:
    """Return by how much mass the intervals of each cell miss all distributions: float64 [cells]."""
    excess = masses.total - 1
    if not len(masses.upper):
        return excess
    begins = masses.first[:-1]
    crossed = np.maximum.reduceat(masses.lower - masses.upper, begins)
    missing = 1 - np.add.reduceat(masses.upper, begins) - masses.rest
    return np.maximum(np.maximum(excess, crossed), missing)


@njit(nogil=True)
def _backup(begin, end, masses, following, free_value, q_values):  # type: ignore[no-untyped-def]
    """Write the bounds of cells begin .. end - 1 into `q_values` [states, actions]; see `backup_state`."""
    # Unpacked once: each use of a tuple counts references to all of its arrays.
    rewards, _, state, action, first, rest, after, reward, lower, upper, deficit, total = masses
    cell = begin
    while cell < end:
        s, last = state[cell], cell + 1
        while last < end and state[last] == s:
            last += 1
        seen = backup_state(s, cell, last, action, first, after, reward, lower, deficit, rewards, following, q_values)
        for k in range(cell, last):
            x, w = action[k], seen if free_value[k] == -np.inf else free_value[k]
            if len(upper) == 0 or total[k] >= 1:
                q_values[s, x] = add_free_mass(q_values[s, x], total[k], w)
            else:
                here = slice(first[k], first[k + 1])
                values = rewards[reward[here]] + following[after[here]]
                q_values[s, x] += _fill(values, lower[here], upper[here], 1 - total[k], rest[k], w)
        cell = last


@njit(nogil=True, inline="always")
def backup_state(  # type: ignore[no-untyped-def]
    s, begin, end, action, first, after, reward, lower, deficit, rewards, following, out
):
    """Write what proven mass earns, for cells begin .. end - 1 of one state, and return the best outcome seen there.

    Arrays as in `Masses`, but turned, so that the best is the largest: rewards and `following` are negated for a floor.
    `following` comes discounted, and ends with the value after an end. What is earned goes to `out[s, action]`.
    """
    seen = -np.inf
    for k in range(begin, end):
        earned = 0.0
        for o in range(first[k], first[k + 1]):
            value = rewards[reward[o]] + following[after[o]]
            if value > seen:
                seen = value
            earned += lower[o] * value
        if len(deficit):
            for o in range(first[k], first[k + 1]):
                earned -= deficit[o]
        out[s, action[k]] = earned
    return seen


@njit(nogil=True, inline="always")
def add_free_mass(earned, total, w):  # type: ignore[no-untyped-def]
    """Return what a cell earns if free mass earns w; masses that add to more than 1, by sampling error, are scaled."""
    return earned / total if total >= 1 else earned + (1 - total) * w


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
