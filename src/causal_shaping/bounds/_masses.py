"""What sources prove about do(x): intervals of mass for each outcome.

Fix a state s and an action x. Source i shows p_i(x | s), how often it took x, and p_i(o | s, x), how often outcome o
followed. Under confounding Gamma_i (marginal sensitivity model) do(x) gives o a mass between

    L_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) / Gamma_i)    and
    U_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) Gamma_i),

and since all sources watch the same world, between max_i L_i(o) and min_i U_i(o). With Gamma_i = inf the lower one is
Manski's p_i(x, o | s) and there is no upper one. A row whose outcome is unknown proves that x was taken; its outcome
may have been anything, so it adds to no L, and a source with such rows sets no U there.

With finite samples, shares are replaced by confidence limits on the side that widens the interval; see `sampling_of`.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import njit
from causal_shaping.bounds._limits import Sampling
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError

SAME_REWARD = 2.0**-22
"""Rewards within this of each other, relative to the largest, are one: single precision cannot tell them apart."""

FEW_REWARDS = 1000
"""Beyond this many distinct rewards, sorting finds them faster."""


@dataclass(frozen=True, eq=False)
class Masses:
    """Intervals of mass for the outcomes of do(x), (s, x) by (s, x), for one step or all steps pooled.

    A cell is an (s, x) that some source shows an outcome of. Outcomes lie in one row of arrays, ordered by cell; those
    of cell k are `first[k]` .. `first[k + 1]` - 1. Arrays that would hold nothing but their default are empty.

    Attributes:
        rewards: float64 [distinct rewards], rising.
        visits: float64 [states], how often all sources left a state.
        state: int32 [cells].
        action: int32 [cells].
        first: int64 [cells + 1].
        rest: float64 [cells], the most mass that all other outcomes can have together, by default 1.
        after: int32 [outcomes], the next state; the number of states if it ended.
        reward: uint16 or wider [outcomes], which of `rewards`; if they are not told apart, that is the extreme one.
        lower: float64 [outcomes], max_i L_i.
        upper: float64 [outcomes], min_i U_i, by default 1.
        deficit: float64 [outcomes], max_i L_i(o) |extreme - mean reward of i there|, by default 0.
    """

    rewards: FloatArray
    visits: FloatArray
    state: IntArray
    action: IntArray
    first: LongArray
    rest: FloatArray
    after: IntArray
    reward: npt.NDArray[Any]
    lower: FloatArray
    upper: FloatArray
    deficit: FloatArray


def source_confounding(counts: Counts, confounding: float | Mapping[str, float]) -> FloatArray:
    """Return Gamma of each source: one number for all, or a mapping by name in which the others are unlimited."""
    if isinstance(confounding, Mapping):
        for name in confounding:
            if name not in counts.sources:
                raise ArgumentError(f"confounding names {name!r}, but the sources are {', '.join(counts.sources)}.")
        given = [confounding.get(name, math.inf) for name in counts.sources]
    else:
        given = [confounding] * len(counts.sources)
    try:
        gammas = np.array([float(gamma) for gamma in given])
    except (TypeError, ValueError):
        raise ArgumentError(f"confounding is {confounding!r}; give a number from 1 to inf, or one by source.") from None
    for name, gamma in zip(counts.sources, gammas, strict=True):
        if not gamma >= 1:
            raise ArgumentError(f"The confounding of {name!r} is {gamma}; it must be 1 (none) or more, up to inf.")
    return gammas


def sampling_of(counts: Counts, confidence: float, horizon: int) -> Sampling:
    """Return limits that all hold at once with the given confidence.

    The union bound runs over all limits that could ever be asked for, seen or not: per source, step, state and action
    one for p(x | s), and per outcome a lower one for p(x, o | s), a lower and an upper one for p(o | s, x), and four
    more for mean rewards where outcomes do not tell rewards apart, two for a ceiling and two for a floor. Outcomes are
    a next state, ended or not, or an end with no word on where; times the rewards that are told apart, taken to be
    `MAX_REWARDS` or as many as were seen. Every limit is wrong with a chance of at most (1 - confidence) divided by
    their number.

    Counts by step have exact limits: given how often a step began in s, what follows is binomial. This takes the
    number of episodes as fixed beforehand. With steps pooled, how often s was visited depends on what followed
    earlier visits, so limits are time-uniform; they hold however the logs came to their length.
    """
    steps = horizon if counts.step_indexed else 1
    states, actions = len(counts.space.states), len(counts.space.actions)
    discrete = all(counts.discrete_rewards)
    rewards = max(MAX_REWARDS, len(distinct_rewards(counts))) if discrete else 1
    outcomes = (2 * states + 1) * rewards
    limits = len(counts.sources) * steps * states * actions * (1 + outcomes * (3 if discrete else 7))
    return Sampling(alpha=(1 - confidence) / limits, exact=counts.step_indexed)


def distinct_rewards(counts: Counts) -> FloatArray:
    """Return the rewards that occur, rising."""
    found = _distinct(counts.reward_min, FEW_REWARDS)
    return np.asarray(found if len(found) <= FEW_REWARDS else np.unique(counts.reward_min))


def harmonise_outcomes(counts: Counts, side: float) -> Counts:
    """Return counts in which equal outcomes of different sources look equal.

    If one source does not tell rewards apart, none does. If one does not say where its episodes end, none does. And
    rewards that differ by rounding are one, the largest of them for a ceiling (`side` above 0), else the smallest.
    """
    discrete = all(counts.discrete_rewards)
    columns: dict[str, Any] = {name: getattr(counts, name) for name in counts.COLUMNS}
    if (counts.terminated & (counts.next_state == UNKNOWN)).any():
        columns["next_state"] = np.where(counts.terminated, UNKNOWN, counts.next_state)
    if discrete:
        distinct = distinct_rewards(counts)
        width = SAME_REWARD * np.abs(distinct).max(initial=0.0)
        if (np.diff(distinct) <= width).any():
            first = np.zeros(len(distinct), dtype=np.int64)  # of the group of each: none is wider than `width`
            for i in range(1, len(distinct)):
                first[i] = first[i - 1] if distinct[i] <= distinct[first[i - 1]] + width else i
            last = np.searchsorted(first, first, side="right") - 1
            name = distinct[last if side > 0 else first][np.searchsorted(distinct, counts.reward_min)]
            columns["reward_min"] = columns["reward_max"] = name
    if all(columns[name] is getattr(counts, name) for name in counts.COLUMNS) and (
        discrete or not any(counts.discrete_rewards)
    ):
        return counts
    every = [discrete] * len(counts.sources)
    most = np.iinfo(np.int64).max  # what is told apart stays so
    return Counts.combined(counts.space, counts.sources, every, columns, population=counts.population, max_rewards=most)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The entries of one step, or of all of them pooled, source by source."""

    parts: list[slice]
    state: IntArray
    action: IntArray
    next_state: IntArray
    terminated: BoolArray
    n: FloatArray
    reward_sum: FloatArray
    reward: FloatArray


class Evidence:
    """What sources show, and how it is to be read.

    Args:
        counts: of one or several sources.
        gammas: float64 [sources], see `source_confounding`.
        extreme: the largest possible reward for a ceiling, the smallest for a floor.
        side: above 0 for a ceiling, below for a floor.
        sampling: how limits are taken; None takes shares as they are.
    """

    def __init__(
        self, counts: Counts, gammas: FloatArray, extreme: float, side: float, sampling: Sampling | None = None
    ) -> None:
        self.counts = counts = harmonise_outcomes(counts, side)
        self.gammas, self.extreme, self.sampling = gammas, extreme, sampling
        self.discrete = all(counts.discrete_rewards)
        self.rewards = distinct_rewards(counts) if self.discrete else np.array([extreme])
        # The max_reward_gap that a reward can be from the extreme one, as far as anybody saw.
        seen = (counts.reward_min.min(initial=extreme), counts.reward_max.max(initial=extreme))
        self.max_reward_gap = float(np.abs(extreme - np.array(seen)).max())

    def allowing_for_chance(self, level: float) -> Evidence:
        """Return the same evidence, read with limits of which any is wrong with a chance of about `level`.

        Unlike those of `sampling_of`, these are as many as there are entries, which makes a test of them stronger.
        """
        result = copy.copy(self)
        result.sampling = Sampling(alpha=level / (4 * len(self.counts)), exact=self.counts.step_indexed)
        return result

    def masses(self, step: int | None = None) -> Masses:
        """Return what the sources prove together of a step; of all steps for counts that pool them."""
        entries, capped = self._entries(step), bool(np.isfinite(self.gammas).any())
        size = len(entries.n)
        lower, deficit = np.zeros(size), np.zeros(0 if self.discrete else size)
        upper, unseen, rest = (np.ones(size if capped else 0) for _ in range(3))
        for here, gamma in zip(entries.parts, self.gammas.tolist(), strict=True):
            source = _Source(entries, here, gamma, self.sampling)
            n = entries.n[here]
            lower[here] = source.at_least(n)
            if not self.discrete and self.max_reward_gap > 0:
                mean = entries.reward_sum[here] / n
                share = np.clip(np.abs(self.extreme - mean) / self.max_reward_gap, 0.0, 1.0)
                deficit[here] = self.max_reward_gap * source.at_least(n * share, whole=False)
            if math.isfinite(gamma):
                upper[here], unseen[here], rest[here] = source.at_most(n)
        arrays = (
            np.array([here.start for here in entries.parts]),
            np.array([here.stop for here in entries.parts]),
            len(self.counts.space.states),
            *(entries.state, entries.action, entries.next_state, entries.terminated, entries.reward),
            *(lower, upper, unseen, rest, deficit, self.rewards),
        )
        cells, outcomes = _merge(*arrays, False, *self._room(0, 0, capped))
        room = self._room(cells, outcomes, capped)
        _merge(*arrays, True, *room)
        return Masses(self.rewards, _visits(entries.state, entries.n, len(self.counts.space.states)), *room)

    def _room(self, cells: int, outcomes: int, capped: bool) -> tuple[Any, ...]:
        """Return arrays for what `_merge` writes."""
        return (
            np.empty(cells, dtype=np.int32),
            np.empty(cells, dtype=np.int32),
            np.zeros(cells + 1, dtype=np.int64),
            np.empty(cells if capped else 0),
            np.empty(outcomes, dtype=np.int32),
            np.zeros(outcomes, dtype=np.min_scalar_type(max(256, len(self.rewards)))),
            np.empty(outcomes),
            np.empty(outcomes if capped else 0),
            np.empty(0 if self.discrete else outcomes),
        )

    def _entries(self, step: int | None) -> _Entries:
        counts, here = self.counts, parts_of(self.counts, step)
        columns: list[Any] = [counts.state, counts.action, counts.next_state, counts.terminated, counts.n]
        columns += [counts.reward_sum, counts.reward_min if self.discrete else np.zeros(0)]
        if counts.step is None:
            return _Entries(here, *columns)
        ends = np.cumsum([0, *(part.stop - part.start for part in here)]).tolist()
        return _Entries(
            [slice(a, b) for a, b in itertools.pairwise(ends)],
            *(np.concatenate([column[part] for part in here]) if len(column) else column for column in columns),
        )


def parts_of(counts: Counts, step: int | None = None) -> list[slice]:
    """Return where the entries of each source stand, for counts by step those of one step."""
    parts = [slice(*_range(counts.source, i)) for i in range(len(counts.sources))]
    if counts.step is None:
        return parts
    inside = [_range(counts.step[part], 0 if step is None else step) for part in parts]
    return [slice(part.start + a, part.start + b) for part, (a, b) in zip(parts, inside, strict=True)]


def _range(column: IntArray, value: int) -> tuple[int, int]:
    """Return where a value stands in a sorted column."""
    wanted = np.int32(value)
    return int(np.searchsorted(column, wanted)), int(np.searchsorted(column, wanted, side="right"))


class _Source:
    """What one source shows of the (s, x) of each of its entries, and what that proves."""

    def __init__(self, entries: _Entries, here: slice, gamma: float, sampling: Sampling | None) -> None:
        self.state, self.action = entries.state[here], entries.action[here]
        self.visits, self.taken, self.known = _totals(
            self.state, self.action, entries.next_state[here], entries.terminated[here], entries.n[here]
        )
        self.gamma, self.sampling = gamma, sampling
        self.propensity = self.taken / self.visits if sampling is None else sampling.lower(self.taken, self.visits)

    def at_least(self, happened: FloatArray, whole: bool = True) -> FloatArray:
        """Return L of what happened that often after x was taken; not in whole numbers, if it is a sum of shares."""
        factor = self.propensity + (1 - self.propensity) / self.gamma
        if self.sampling is None:
            return np.asarray(happened / self.taken * factor)
        sampling = self.sampling if whole else replace(self.sampling, exact=False)
        manski = sampling.lower(happened, self.visits)  # one limit instead of a product of two
        if math.isinf(self.gamma):
            return manski
        return np.maximum(manski, sampling.lower(happened, self.taken) * factor)

    def at_most(self, happened: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U of what happened, of any one outcome that did not, and of all those together."""
        factor = self.propensity + (1 - self.propensity) * self.gamma
        if self.sampling is None:
            often, never, others = happened / self.taken, np.zeros(len(happened)), np.zeros(len(happened))
        else:
            often = self.sampling.upper(happened, self.taken)
            never = self.sampling.upper(np.zeros(len(happened)), self.taken)
            others = _others(self.state, self.action, self.sampling.lower(happened, self.taken))
        # A source that does not know all its outcomes limits none: the unknown ones may have been anything.
        limits = self.known == self.taken
        often, never, others = (np.where(limits, np.minimum(top * factor, 1.0), 1.0) for top in (often, never, others))
        return often, never, others


@njit()
def _distinct(values: Any, most: int) -> Any:
    """Return the distinct values of an array that holds few, rising, without sorting it; more than `most` if many."""
    found = np.empty(16)
    size, last = 0, np.nan
    for value in values:
        if value == last:
            continue
        last = value
        place = np.searchsorted(found[:size], value)
        if place < size and found[place] == value:
            continue
        if size == len(found):
            found = np.append(found, np.empty(size))
        for i in range(size, place, -1):
            found[i] = found[i - 1]
        found[place] = value
        size += 1
        if size > most:
            break
    return found[:size].copy()


@njit()
def _visits(state: Any, n: Any, states: int) -> Any:
    """Return how often each state was left; as np.bincount does, without a copy of the states."""
    visits = np.zeros(states)
    for entry in range(len(n)):
        visits[state[entry]] += n[entry]
    return visits


@njit(nogil=True)
def _totals(state: Any, action: Any, next_state: Any, terminated: Any, n: Any) -> Any:
    """Return, for each entry of a source: visits to s, times x was taken there, and times with a known outcome."""
    visits, taken, known = np.empty(len(n)), np.empty(len(n)), np.empty(len(n))
    begin = 0
    while begin < len(n):
        end, total = begin, 0.0
        while end < len(n) and state[end] == state[begin]:
            first, both, sure = end, 0.0, 0.0
            while end < len(n) and state[end] == state[begin] and action[end] == action[first]:
                both += n[end]
                if next_state[end] != UNKNOWN or terminated[end]:
                    sure += n[end]
                end += 1
            taken[first:end] = both
            known[first:end] = sure
            total += both
        visits[begin:end] = total
        begin = end
    return visits, taken, known


@njit(nogil=True)
def _others(state: Any, action: Any, low: Any) -> Any:
    """Return, for each entry, what the lower limits of its (s, x) leave to outcomes that were not seen."""
    others = np.empty(len(low))
    begin = 0
    while begin < len(low):
        end, total = begin, 0.0
        while end < len(low) and state[end] == state[begin] and action[end] == action[begin]:
            total += low[end]
            end += 1
        others[begin:end] = max(0.0, 1.0 - total)
        begin = end
    return others


@njit(nogil=True)
def _merge(  # type: ignore[no-untyped-def]
    begin,
    end,
    states,
    state,
    action,
    next_state,
    terminated,
    reward,
    lower,
    upper,
    unseen,
    rest,
    deficit,
    rewards,
    write,
    cell_state,
    cell_action,
    cell_first,
    cell_rest,
    out_after,
    out_reward,
    out_lower,
    out_upper,
    out_deficit,
):
    """Merge the sources' entries, each sorted by (s, x, outcome), into one row of outcomes; return the sizes.

    The sources stand at `begin` .. `end`. With `write` false nothing is written: a first run to learn the sizes.
    """
    sources, cells, outcomes = len(begin), 0, 0
    at, last = begin.copy(), begin.copy()  # where each source stands, and where its entries of the cell end
    capped, discrete = len(upper) > 0, len(reward) > 0
    while True:
        s, x = -1, -1
        for i in range(sources):
            while at[i] < end[i] and next_state[at[i]] == UNKNOWN and not terminated[at[i]]:
                at[i] += 1  # an unknown outcome
            if at[i] < end[i]:
                here, there = state[at[i]], action[at[i]]
                if s < 0 or here < s or (here == s and there < x):
                    s, x = here, there
        if s < 0:
            if write:
                cell_first[cells] = outcomes
            return cells, outcomes
        top = 1.0
        for i in range(sources):
            last[i] = at[i]
            while last[i] < end[i] and state[last[i]] == s and action[last[i]] == x:
                last[i] += 1
            if capped and last[i] > at[i]:
                top = min(top, rest[at[i]])
        if write:
            cell_state[cells], cell_action[cells], cell_first[cells] = s, x, outcomes
            if capped:
                cell_rest[cells] = top
        cells += 1
        while True:
            best = -1  # an entry with the smallest outcome
            for i in range(sources):
                if at[i] < last[i] and (best < 0 or _before(at[i], best, next_state, terminated, reward, discrete)):
                    best = at[i]
            if best < 0:
                break
            low, high, short = 0.0, 1.0, 0.0
            for i in range(sources):
                entry = at[i]
                if entry < last[i] and not _before(best, entry, next_state, terminated, reward, discrete):
                    low = max(low, lower[entry])
                    if capped:
                        high = min(high, upper[entry])
                    if not discrete:
                        short = max(short, deficit[entry])
                    at[i] += 1
                elif capped and last[i] > begin[i] and state[last[i] - 1] == s and action[last[i] - 1] == x:
                    high = min(high, unseen[last[i] - 1])  # the source took x in s and did not see this
            if write:
                out_after[outcomes] = states if terminated[best] else next_state[best]
                out_lower[outcomes] = low
                if discrete:
                    out_reward[outcomes] = np.searchsorted(rewards, reward[best])
                else:
                    out_deficit[outcomes] = short
                if capped:
                    out_upper[outcomes] = high
            outcomes += 1


@njit(nogil=True)
def _before(first: Any, second: Any, next_state: Any, terminated: Any, reward: Any, discrete: Any) -> Any:
    """Whether the outcome of one entry comes before that of another."""
    if next_state[first] != next_state[second]:
        return next_state[first] < next_state[second]
    if terminated[first] != terminated[second]:
        return terminated[second]
    return discrete and reward[first] < reward[second]
