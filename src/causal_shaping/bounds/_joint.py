"""The joint backward pass: bounds from intervals of mass, all sources at once.

With w(s, x) = max over the allowed outcomes of r + discount * Vbar_{h+1}(s'), the best that unproven mass could do,

    Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
    Vbar_h(s)    = max over all declared actions x of Qbar_h(s, x),    Vbar_H = 0,    Vbar = 0 after termination.

Where anything is allowed, the best successor is also an unknown state of vacuous value, unless the space is complete:
the agent can meet a state that no log holds.

Where masses have upper limits, the free mass fills the outcomes from the best downwards, each up to its limit: the
greedy solution of the linear program over all distributions between the limits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from causal_shaping._compile import njit
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds._compare import excess_masses
from causal_shaping.bounds._masses import Evidence, Masses
from causal_shaping.bounds._sweeps import Solution, best_of, fixed_point
from causal_shaping.bounds.settings import Settings, vacuous_values
from causal_shaping.bounds.support import Given, given_support, terminal_states, unrestricted_cells
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ArgumentError, ContradictionError

ROUNDING = 1e-9
"""Masses of one (s, x) that contradict each other by more than this do so by more than rounding."""

CONTRADICTION_LEVEL = 1e-3
"""The probability of calling sources contradictory that are not."""

DOUBTFUL_LEVEL = 0.05
"""Sources that look this unlikely to have watched one world void the guarantee."""


def joint_bounds(counts: Counts, settings: Settings, side: float, progress: Progress = no_progress) -> Solution:
    """Return bounds of the optimal interventional values on one side, with settings checked for these counts."""
    horizon, discount = settings.horizon, settings.discount
    allowed = given_support(counts, settings.support)
    evidence = Evidence(counts, settings, side)
    terminal = terminal_states(counts)
    highest = np.inf if settings.value_max is None else settings.value_max
    unrestricted = unrestricted_cells(counts, settings)
    admissible, shape = counts.space.is_admissible, counts.space.is_admissible.shape
    agreement = Agreement(counts, evidence)

    def layer(step: int | None) -> Layer:
        masses = evidence.masses(step)
        agreement.check(masses, step)
        return Layer(masses, unrestricted.at(step), side, unrestricted.by_action)

    def backup(current: Layer, values: FloatArray, unknown: float) -> FloatArray:
        following = np.append(side * values, 0.0)  # and after an end
        # The best that could follow (the worst, for a floor): any state that is not terminal, an unknown one, or the
        # end. This is what an action does that nobody tried, so that a state in which no source acted gets the vacuous
        # value.
        best = following[:-1][~terminal].max(initial=max(0.0, unknown))
        unproven: Any = best if allowed is None else allowed.best(following, best, shape)
        turned = np.full(shape, side * settings.reward_bound + discount * unproven)
        current.set_free_values(turned, everywhere=allowed is not None)
        current.backup(discount * following, turned)
        q_values = np.minimum(side * turned, highest)
        if counts.space.admissible:
            q_values[~admissible] = np.nan
        q_values[terminal] = 0.0
        return q_values

    def vacuous_in(current: Layer) -> BoolArray:
        result: BoolArray = (current.masses.visits == 0) & ~terminal
        if allowed is not None:
            result[allowed.pair // shape[1]] = False
        return result

    def anything_in(current: Layer) -> bool:
        """Whether anything may follow some (s, x)."""
        return bool((current.anything(shape, allowed) & admissible & ~terminal[:, None]).any())

    # What an unknown state is worth at each step, and after the last: no more than an end if the space is complete.
    unknown = np.append(side * vacuous_values(settings, side), 0.0)
    matters, unrestrained = bool(unknown[0] > 0), False
    if counts.space.complete:
        unknown[:] = 0.0
    if settings.stationary:
        pooled = layer(None)
        unrestrained = matters and anything_in(pooled)
        if unrestrained:
            _refuse_endless(unknown)
        elif matters:
            unknown[:] = 0.0

        def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
            q_values = backup(pooled, values, unknown[0])
            return best_of(q_values), q_values

        # From 0 sweeps approach the limit of ever longer horizons. From a known upper bound they fall, and never below
        # the optimum: a sweep of values above it stays above it.
        start = np.zeros(shape[0]) if settings.value_max is None else np.where(terminal, 0.0, highest)
        values, q_values, sweeps, contraction, remainder = fixed_point(sweep, start, counts.space.states, discount)
        values[~terminal] += side * remainder
        q_values[~terminal] += side * remainder
        return Solution(
            values,
            q_values,
            vacuous_in(pooled),
            pooled.unrestricted_states,
            terminal,
            sweeps,
            contraction,
            no_other_states=unrestrained and counts.space.complete,
            **agreement.found(),
        )

    values, q_values = np.zeros((horizon + 1, shape[0])), np.empty((horizon, *shape))
    vacuous, free = (np.empty((horizon, shape[0]), dtype=bool) for _ in range(2))
    every = layer(None) if counts.step is None else None
    for h in reversed(range(horizon)):
        current = every or layer(h)
        q_values[h] = backup(current, values[h + 1], unknown[h + 1])
        values[h] = best_of(q_values[h])
        vacuous[h], free[h] = vacuous_in(current), current.unrestricted_states
        if matters and h < horizon - 1 and (h == horizon - 2 or not (unrestrained or every)):
            unrestrained = anything_in(current)
        progress(horizon - h, horizon, "Bounding values")
    told = {"no_other_states": unrestrained and counts.space.complete, **agreement.found()}
    return Solution(values[:-1], q_values, vacuous, free, terminal, **told)


def _refuse_endless(unknown: FloatArray) -> None:
    """Refuse an infinite-horizon bound in which an unknown state of endless value can follow."""
    if math.isinf(unknown[0]):
        raise ArgumentError(
            "There is no infinite-horizon bound: the states were read off the logs, and one that no log holds may pay "
            "for ever. Set complete if no other states exist, or discount to 0.99, or value_max to a known upper bound "
            "on values, or bound a finite horizon."
        )


class Layer:
    """The masses of one step or of all, made ready for the kernel.

    In `unrestricted` (s, x), bool [states, actions], free mass does anything. Elsewhere it does what was seen in the
    state, `by_action` what was seen after the action.
    """

    def __init__(self, masses: Masses, unrestricted: BoolArray, side: float, by_action: bool = False) -> None:
        self.by_action = by_action
        self.masses = masses._replace(rewards=side * masses.rewards)
        self.free_value = np.full(len(masses.state), -np.inf)
        self.unrestricted = np.flatnonzero(unrestricted[masses.state, masses.action])
        self.unrestricted_states = np.zeros(len(masses.visits), dtype=bool)
        self.unrestricted_states[masses.state[self.unrestricted]] = True

    def anything(self, shape: tuple[int, int], allowed: Given | None) -> BoolArray:
        """Return in which (s, x) some mass may do anything: bool [states, actions]."""
        masses, result = self.masses, np.ones(shape, dtype=bool)
        result[masses.state, masses.action] = False
        free = np.arange(len(masses.state)) if allowed is not None else self.unrestricted
        free = free[masses.total[free] < 1]
        result[masses.state[free], masses.action[free]] = True
        if allowed is not None:
            result.ravel()[allowed.pair] = False
        return result

    def set_free_values(self, unproven: FloatArray, everywhere: bool) -> None:
        """Set the value of free mass, from the best that could follow each (s, x)."""
        which: Any = slice(None) if everywhere else self.unrestricted
        self.free_value[which] = unproven[self.masses.state[which], self.masses.action[which]]

    def backup(self, following: FloatArray, q_values: FloatArray) -> None:
        """Write the bound of one step for every cell; see `_backup`."""
        _backup(self.masses, following, self.free_value, self.by_action, q_values)


class Agreement:
    """Whether all sources can have watched one world, and what was scaled where they differ within sampling error.

    At any confounding the masses that sources prove of one (s, x) add to at most 1. In a sample they may add to more by
    chance (see `excess_masses`): they are scaled then, and counted; beyond chance they are refused. With finite
    confounding, intervals of mass that hold no distribution are refused in the same way.
    """

    def __init__(self, counts: Counts, evidence: Evidence) -> None:
        self.counts, self.evidence = counts, evidence
        self.limited = any(map(math.isfinite, evidence.gammas))
        self.scaled, self.largest_total, self.p_value = 0, 1.0, 1.0

    def check(self, masses: Masses, step: int | None) -> None:
        """Count what is scaled, and refuse what is contradictory; masses are those of a step or of all."""
        over = masses.total > 1 + ROUNDING
        self.scaled += int(over.sum())
        self.largest_total = float(masses.total.max(initial=self.largest_total, where=over))
        # Whether sources fit together is asked of their shares: it does not depend on the confidence of the bounds.
        shares = masses if self.evidence.sampling is None else self.evidence.as_plug_in().masses(step)
        tested = len(self.counts.sources) == 1 or self.counts.population or self.p_value < 1.0
        if not tested and (shares.total > 1 + ROUNDING).any():
            self._refuse_excess()
        conflict = _conflict(shares)
        if not (conflict > ROUNDING).any() or not (self.limited or self.counts.population):
            return
        if not self.counts.population:
            masses = self.evidence.allowing_for_chance(CONTRADICTION_LEVEL).masses(step)
            conflict = _conflict(masses)
        cell = int(conflict.argmax())
        if conflict[cell] > ROUNDING:
            where = self._where(masses.state[cell], masses.action[cell], step)
            confounded = "at least one is more confounded than declared, or " if self.limited else ""
            raise ContradictionError(
                f"The sources contradict each other on what {where}: no outcome distribution fits what they prove, by "
                f"a mass of {conflict[cell]:.3g}. Either {confounded}they did not watch the same world, or a hidden "
                "cause lasts over the episode. "
                f"{'Raise confounding, or leave' if self.limited else 'Leave'} a source out."
            )

    def _refuse_excess(self) -> None:
        """Refuse masses that add to more than 1 beyond chance, whatever the confounding and as declared; once."""
        trials = tuple(i for i, gamma in enumerate(self.evidence.gammas) if gamma == 1)
        tests = [()] if not trials else [(), trials]
        for unconfounded in tests:
            excess = excess_masses(self.counts, unconfounded=unconfounded)
            if not len(excess.p_value):
                continue
            cell = int(excess.p_value.argmin())
            p_value = min(float(excess.p_value[cell]) * len(tests), 1.0 - ROUNDING)
            self.p_value = min(self.p_value, p_value)
            if p_value < CONTRADICTION_LEVEL:
                step = int(excess.step[cell]) if self.counts.step_indexed else None
                where = self._where(excess.state[cell], excess.action[cell], step)
                names = ", ".join(self.counts.sources[i] for i in unconfounded)
                declared = f"with {names} unconfounded" if names else "whatever their confounding"
                confounded = f"{'one of ' * (len(unconfounded) > 1)}{names} is confounded, or " if names else ""
                raise ContradictionError(
                    f"The sources contradict each other on what {where}, {declared}: they prove a mass of "
                    f"{excess.total[cell]:.4g}, more than 1 and more than chance allows (p = {p_value:.1g} over all "
                    f"states and actions). Either {confounded}they did not watch "
                    "the same world, or a hidden cause lasts over the episode. Leave a source out."
                )

    def _where(self, state: int, action: int, step: int | None) -> str:
        space = self.counts.space
        return f"{space.actions[action]!r} does in {space.states[state]!r}{'' if step is None else f' at step {step}'}"

    def found(self) -> dict[str, Any]:
        """Return what a solution says of it."""
        caveats: tuple[str, ...] = ()
        if self.p_value < DOUBTFUL_LEVEL:
            caveats = (
                f"the sources prove more mass than 1 of an action in a state, which chance hardly explains (p = "
                f"{self.p_value:.1g}): they did not watch the same world, or a hidden cause lasts over the episode.",
            )
        if self.scaled and self.evidence.sampling is not None:
            caveats = (
                *caveats,
                "limits that hold at this confidence prove more mass than 1 of an action in a state: the sources "
                "did not watch the same world, or a hidden cause lasts over the episode, or this sample is a rare one.",
            )
        return {"scaled": self.scaled, "largest_total": self.largest_total, "caveats": caveats}


def _conflict(masses: Masses) -> FloatArray:
    """Return by how much mass the intervals of each cell miss all distributions: float64 [cells]."""
    excess = masses.total - 1
    if not len(masses.upper):
        return excess
    begins = masses.first[:-1]
    crossed = np.maximum.reduceat(masses.lower - masses.upper, begins)
    missing = 1 - np.add.reduceat(masses.upper, begins) - masses.rest
    return np.maximum(np.maximum(excess, crossed), missing)


@njit()
def _backup(masses, following, free_value, by_action, q_values):  # type: ignore[no-untyped-def]
    """Write the bound of every cell into `q_values` [states, actions].

    Arrays as in `Masses`, but turned, so that the best is the largest: rewards and `following` are negated for a floor.
    `following` comes discounted, and ends with the value after an end.
    """
    # Unpacked once: each use of a tuple counts references to all of its arrays.
    rewards, _, state, action, first, rest, after, reward, lower, upper, deficit, total = masses
    most = 0
    for k in range(len(state)):
        most = max(most, first[k + 1] - first[k])
    values, room = np.empty(most), np.empty(most)
    begin = 0
    while begin < len(state):
        s, end, seen = state[begin], begin + 1, -np.inf
        while not by_action and end < len(state) and state[end] == s:  # free mass does the same in all cells of a state
            end += 1
        # What proven mass earns, and the best outcome seen.
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
            q_values[s, action[k]] = earned
        # What free mass earns.
        for k in range(begin, end):
            x, w, free = action[k], seen if free_value[k] == -np.inf else free_value[k], 1 - total[k]
            if free <= 0:  # masses that add to more than 1, by sampling error, are scaled
                q_values[s, x] /= total[k]
                continue
            if len(upper) and free > rest[k]:
                # Nothing is better than outcomes that nobody has seen, which are worth w: they take all they can.
                limited, size = free - rest[k], 0
                for o in range(first[k], first[k + 1]):
                    if upper[o] > lower[o]:
                        values[size], room[size] = rewards[reward[o]] + following[after[o]], upper[o] - lower[o]
                        size += 1
                # Then the best outcome is filled, again and again: mostly one or two take all, so sorting is slower.
                while limited > 0 and size > 0:
                    best = 0
                    for i in range(1, size):
                        if values[i] > values[best]:
                            best = i
                    more = min(limited, room[best])
                    q_values[s, x] += more * values[best]
                    limited -= more
                    size -= 1
                    values[best], room[best] = values[size], room[size]
                free = rest[k] + limited  # what exceeds all limits, by sampling error, earns w, too
            q_values[s, x] += free * w
        begin = end
