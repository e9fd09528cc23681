"""The joint backup: backward induction over the masses that all sources prove together.

With w(s, x) the best allowed outcome, which is what unproven mass may earn,

    Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
    Vbar_h(s)    = max over all declared actions x of Qbar_h(s, x),

where Vbar is 0 after an end and after the last step. Where anything may follow, the best outcome
is also a state of vacuous value that no log holds, unless the space is complete. If every mass has
an upper limit, unproven mass instead fills the outcomes from the best downwards, each up to its
limit: the greedy solution of the linear program over all distributions within the limits.

*Example.* After x in s, the logs prove .3 of an outcome that pays 1 and ends, and the best that was
seen to follow s pays 2 and ends. Then w = 2 and Qbar = 2 - .3 * (2 - 1) = 1.7.

Floors are ceilings of the negated rewards. All rewards and values of outcomes in this module are
*signed* in that sense: multiplied by the side, so that the best is the largest on both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_shaping._compile import njit
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds.agreement import check_agreement
from causal_shaping.bounds.masses import Masses, mass_intervals, simultaneous_limits
from causal_shaping.bounds.outcomes import (
    Outcomes,
    find_outcomes,
    place_of_rows,
    with_equal_outcomes,
)
from causal_shaping.bounds.settings import Settings, vacuous_values
from causal_shaping.bounds.solution import Solution, best_of, fixed_point
from causal_shaping.bounds.support import (
    OwnSupport,
    anything_may_follow,
    own_support,
    terminal_states,
)
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError


def joint_bounds(
    counts: Counts, settings: Settings, side: float, progress: Progress = no_progress
) -> Solution:
    """Return the bounds of one side, with settings that were checked for these counts."""
    own = own_support(counts, settings.support)
    # What do the sources prove, and can one world have shown it?
    equal = with_equal_outcomes(counts, side)
    outcomes = find_outcomes(equal, side, settings.reward_bound)
    gammas = [settings.gamma(name) for name in counts.sources]
    masses = mass_intervals(outcomes, gammas, simultaneous_limits(counts, settings))
    agreement = check_agreement(equal, settings, outcomes, masses)

    # What may unproven mass do?
    free = anything_may_follow(counts, settings)
    by_action = settings.support == "observed-action"
    layers = [
        Layer.of_step(step, outcomes, masses, free[step], side, by_action)
        for step in range(len(free))
    ]
    problem = Problem(counts.space, settings, side, terminal_states(counts), own)
    unknown, no_other_states = problem.values_of_unknown_states(layers)

    # Which states did nobody act in?
    vacuous = np.ones(free.shape[:2], dtype=bool)
    vacuous.ravel()[place_of_rows(counts)] = False
    vacuous &= ~problem.terminal
    if own is not None:
        vacuous[:, own.pair // free.shape[2]] = False
    unrestricted = np.array([layer.states_with_anything(free.shape[1:]) for layer in layers])

    solve: Any = _solve_finite_horizon
    if settings.stationary:
        solve = _solve_infinite_horizon
        vacuous, unrestricted = vacuous[0], unrestricted[0]
    values, q_values, sweeps, contraction = solve(problem, layers, unknown, progress)
    return Solution(
        values=values,
        q_values=q_values,
        vacuous=np.broadcast_to(vacuous, values.shape),
        unrestricted=np.broadcast_to(unrestricted, values.shape),
        terminal=problem.terminal,
        sweeps=sweeps,
        contraction=contraction,
        caveats=agreement.caveats,
        no_other_states=no_other_states,
        scaled=agreement.scaled,
        largest_total=agreement.largest_total,
    )


@dataclass(frozen=True, eq=False)
class Caps:
    """How unproven mass is limited where every mass has an upper limit."""

    room: FloatArray  # [outcomes], how much more mass the outcome can have
    mass: FloatArray  # [cells], unproven mass that fills the outcomes up to their limits


@dataclass(frozen=True, eq=False)
class Layer:
    """The masses of one step, or of all steps, as the backup needs them; cells are in rising order.

    The outcomes of cell c are `first[c]` to `first[c + 1] - 1`.
    """

    pair: LongArray  # [cells], state * actions + action
    anything: BoolArray  # [cells], whether unproven mass may do anything
    unproven: FloatArray  # [cells], unproven mass that may have the best outcome
    deficit: FloatArray  # [cells], what rewards in bins lack to the best of their bins
    group: LongArray  # [cells], the cells whose outcomes a cell's unproven mass may have
    group_first: LongArray  # [groups], the first cell of each group
    first: LongArray  # [cells + 1]
    after: Any  # int32 [outcomes], the next state; the number of states after an end
    reward: FloatArray  # [outcomes], signed
    lower: FloatArray  # [outcomes], the proven mass
    caps: Caps | None

    @classmethod
    def of_step(
        cls,
        step: int,
        outcomes: Outcomes,
        masses: Masses,
        anything: BoolArray,
        side: float,
        by_action: bool,
    ) -> Layer:
        """Return the masses of a step.

        Args:
            step: 0 for counts that pool the steps.
            outcomes: of all steps.
            masses: of all steps.
            anything: bool [states, actions], where unproven mass may do anything at the step.
            side: `CEILING` or `FLOOR`.
            by_action: whether only what followed an action may follow it again.
        """
        # Cells are ordered by step, so those of one step stand side by side.
        begin, end = np.searchsorted(
            outcomes.cell, [step * anything.size, (step + 1) * anything.size]
        )
        first = outcomes.first[begin : end + 1]
        cells, rows = slice(begin, end), slice(first[0], first[-1])

        # Unproven mass has the best outcome seen in the state, or after the action. Both kinds of
        # group are runs of cells.
        pair = outcomes.cell[cells] - step * anything.size
        group = pair // anything.shape[1]
        if by_action:
            group = pair
        _, group_first, group = np.unique(group, return_index=True, return_inverse=True)

        unproven, caps = np.maximum(1.0 - masses.proven[cells], 0.0), None
        beyond = unproven - masses.unseen[cells]
        if (beyond > 0).any():
            room = np.maximum(masses.upper - masses.lower, 0.0)[rows]
            caps = Caps(room, np.maximum(beyond, 0.0))
            unproven = unproven - caps.mass
        return cls(
            pair=pair,
            anything=anything.ravel()[pair],
            unproven=unproven,
            deficit=masses.deficit[cells],
            group=group.astype(np.int64),
            group_first=group_first.astype(np.int64),
            first=first - first[0],
            after=outcomes.after[rows],
            reward=side * outcomes.rewards[outcomes.level[rows]],
            lower=masses.lower[rows],
            caps=caps,
        )

    def backup(self, following: FloatArray, anything: FloatArray, own: bool) -> FloatArray:
        """Return the signed bound of each cell.

        Args:
            following: discounted signed values of the next states, and at the end 0 for an end.
            anything: the best that may follow each pair of state and action, float64 [pairs], where
                the logs do not limit it.
            own: whether `anything` holds everywhere, as under a support of the user's own.
        """
        # What proven mass earns, and the best outcome that unproven mass may have.
        bound, seen = _earned_and_best(self.first, self.after, self.reward, self.lower, following)
        bound -= self.deficit
        best = anything[self.pair]
        if not own and len(seen):
            best_of_group = np.maximum.reduceat(seen, self.group_first)
            best = np.where(self.anything, best, best_of_group[self.group])
        # What unproven mass may earn.
        bound += self.unproven * best
        if self.caps is not None:
            room, mass = self.caps.room, self.caps.mass
            _fill_from_the_best(
                self.first, self.after, self.reward, following, room, mass, best, bound
            )
        return np.asarray(bound)

    def states_with_anything(self, shape: tuple[int, int]) -> BoolArray:
        """Return the states in which anything may follow an action that was tried."""
        result = np.zeros(shape[0], dtype=bool)
        result[self.pair[self.anything] // shape[1]] = True
        return result

    def anything_matters(self, shape: tuple[int, int], own: OwnSupport | None) -> BoolArray:
        """Return where some mass may do anything: bool [states, actions]."""
        result = np.ones(shape, dtype=bool)
        some_unproven = self.unproven > 0
        if self.caps is not None:
            some_unproven |= self.caps.mass > 0
        result.ravel()[self.pair] = some_unproven & (self.anything | (own is not None))
        if own is not None:
            result.ravel()[own.pair] = False
        return result


@njit(nogil=True)
def _earned_and_best(first: Any, after: Any, reward: Any, lower: Any, following: Any) -> Any:
    """Return what the proven mass of each cell earns, and its best outcome."""
    earned, best = np.zeros(len(first) - 1), np.full(len(first) - 1, -np.inf)
    for cell in range(len(first) - 1):
        for o in range(first[cell], first[cell + 1]):
            value = reward[o] + following[after[o]]
            earned[cell] += lower[o] * value
            best[cell] = max(best[cell], value)
    return earned, best


@njit(nogil=True)
def _fill_from_the_best(
    first: Any, after: Any, reward: Any, following: Any, room: Any, mass: Any, rest: Any, bound: Any
) -> None:
    """Add to `bound` what mass earns that fills the outcomes of its cell from the best downwards.

    Mass that exceeds all limits, by sampling error alone, earns `rest`. The next best outcome is
    searched for each time, as mostly one or two take all the mass; sorting would take longer.
    """
    for cell in range(len(mass)):
        left, last, last_value = mass[cell], -1, np.inf
        while left > 0:
            best, best_value = -1, -np.inf
            for o in range(first[cell], first[cell + 1]):
                value = reward[o] + following[after[o]]
                not_filled = value < last_value or (value == last_value and o > last)
                if room[o] > 0 and not_filled and value > best_value:
                    best, best_value = o, value
            if best < 0:
                break
            more = min(left, room[best])
            bound[cell] += more * best_value
            left -= more
            last, last_value = best, best_value
        bound[cell] += max(left, 0.0) * rest[cell]


@dataclass(frozen=True, eq=False)
class Problem:
    """What a backup needs beside the masses."""

    space: Space
    settings: Settings
    side: float
    terminal: BoolArray
    own: OwnSupport | None

    def backup(self, layer: Layer, values: FloatArray, unknown: float) -> FloatArray:
        """Return the bounds of all actions: float64 [states, actions].

        Args:
            layer: the masses of the step.
            values: the bounds of the next states' values, float64 [states].
            unknown: the signed value of a next state that no log holds.
        """
        settings, shape = self.settings, self.space.is_admissible.shape
        following = np.append(self.side * values, 0.0)
        # Where anything may follow, that is the best state, an end, or an unknown state. So an
        # action that nobody tried, and a state in which nobody acted, get the vacuous value.
        best: Any = following[:-1][~self.terminal].max(initial=max(0.0, unknown))
        if self.own is not None:
            best = self.own.best(following, best, shape)
        anything = self.side * settings.reward_bound + settings.discount * best
        signed = np.array(np.broadcast_to(anything, shape)).ravel()
        signed[layer.pair] = layer.backup(
            settings.discount * following, signed, self.own is not None
        )

        q_values = self.side * signed.reshape(shape)
        if settings.value_max is not None:
            q_values = np.minimum(q_values, settings.value_max)
        q_values[~self.space.is_admissible] = np.nan
        q_values[self.terminal] = 0.0
        return q_values

    def values_of_unknown_states(self, layers: list[Layer]) -> tuple[FloatArray, bool]:
        """Return the signed values of a state that no log holds, by step and after the last.

        They are the vacuous ones, or 0 if no such state exists. Also return whether the bound
        relies on that: somewhere anything may follow, and such a state would be worth most.
        """
        unknown = np.append(self.side * vacuous_values(self.settings, self.side), 0.0)
        used = layers
        if not self.settings.stationary:  # what follows the last step is worth nothing
            used = [layers[min(h, len(layers) - 1)] for h in range(self.settings.horizon - 1)]
        relevant = self.space.is_admissible & ~self.terminal[:, None]
        matters = unknown[0] > 0 and any(
            (layer.anything_matters(relevant.shape, self.own) & relevant).any()
            for layer in dict.fromkeys(used)
        )
        if self.space.complete or (self.settings.stationary and not matters and unknown[0] > 0):
            unknown[:] = 0.0
        return unknown, bool(matters and self.space.complete)


def _solve_finite_horizon(
    problem: Problem, layers: list[Layer], unknown: FloatArray, progress: Progress
) -> tuple[FloatArray, FloatArray, None, None]:
    """Return values [steps, states] and action values [steps, states, actions]."""
    horizon, shape = problem.settings.horizon, problem.space.is_admissible.shape
    values, q_values = np.zeros((horizon + 1, shape[0])), np.empty((horizon, *shape))
    for h in reversed(range(horizon)):
        layer = layers[min(h, len(layers) - 1)]
        q_values[h] = problem.backup(layer, values[h + 1], unknown[h + 1])
        values[h] = best_of(q_values[h])
        progress(horizon - h, horizon, "Bounding values")
    return values[:-1], q_values, None, None


def _solve_infinite_horizon(
    problem: Problem, layers: list[Layer], unknown: FloatArray, _progress: Progress
) -> tuple[FloatArray, FloatArray, int, float]:
    """Return values [states], action values [states, actions], the sweeps and their contraction."""
    settings, space, [layer] = problem.settings, problem.space, layers
    if math.isinf(unknown[0]):
        raise ArgumentError(
            "There is no infinite-horizon bound: the states were read off the logs, and one that "
            "no log holds may pay for ever. Set complete if no other states exist, or discount to "
            "0.99, or value_max to a known upper bound on values, or bound a finite horizon."
        )

    def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        q_values = problem.backup(layer, values, unknown[0])
        return best_of(q_values), q_values

    # From 0, sweeps approach the limit of ever longer horizons. From a known upper bound they fall,
    # and never below the optimum.
    start = np.zeros(len(space.states))
    if settings.value_max is not None:
        start = np.where(problem.terminal, 0.0, settings.value_max)
    found = fixed_point(sweep, start, space.states, settings.discount)
    found.values[~problem.terminal] += problem.side * found.remainder
    found.q_values[~problem.terminal] += problem.side * found.remainder
    return found.values, found.q_values, found.sweeps, found.contraction
