"""What sources prove about do(x): intervals of mass for each outcome.

Fix a state s and an action x. Source i shows its propensity p_i(x | s), how often it took x, and p_i(o | s, x), how
often outcome o followed. Under confounding Gamma_i (marginal sensitivity model) do(x) gives o a mass between

    L_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) / Gamma_i)    and
    U_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) Gamma_i),

and since all sources watch the same world, between max_i L_i(o) and min_i U_i(o). With Gamma_i = inf the lower one is
Manski's p_i(x, o | s) and there is no upper one. A row whose outcome is unknown proves that x was taken; its outcome
may have been anything, so it adds to no L, and a source with such rows sets no U there.

**Rewards** are part of an outcome: as they are, or as the bin that they fall into. A bin has a *safe edge* e, for a
ceiling the largest reward that it can hold (`reward_max` in the top one), for a floor the smallest. Let source i have
the mean m_i(o) within the bin. Rewards under do(x) have a density against those that source i shows of at least
L_i(o) / p_i(o), reward by reward, as the marginal sensitivity model limits the odds given the whole outcome; so of the
mass M(o) of an outcome a part L_i(o) earns m_i(o) on average, the rest e at most, and

    sum of rewards in o  <=  M(o) e - max_i L_i(o) (e - m_i(o)).

The last term is the *deficit* of o. With one source and Gamma = 1 the bound is the mean itself. And finer bins never
loosen it: with w >= E the value of free mass, E the edge of a bin and e_b those of its parts, what the whole bin takes
off w, max_i L_i (w - E) + max_j L_j (E - m_j), is at most the sum over its parts of

    max_i L_i(b) (w - E) + max_i L_i(b) (E - e_b) + max_j L_j(b) (e_b - m_j(b)),

which is what the parts take off it. So it is never looser than one mean reward for all outcomes with the same end.

With finite samples, shares are replaced by confidence limits on the side that widens the interval; see `sampling_of`.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import njit
from causal_shaping.bounds._limits import Sampling, lower_limit, upper_limit
from causal_shaping.bounds._parts import parts_of
from causal_shaping.bounds.settings import Settings
from causal_shaping.bounds.support import reward_keys
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.data.space import UNKNOWN, Bins

SAME_REWARD = 2.0**-22
"""Rewards within this of each other, relative to the largest, are one: single precision cannot distinguish them."""


class Masses(NamedTuple):
    """Intervals of mass for the outcomes of do(x), for one step or all steps pooled.

    A cell is an (s, x) of which some source shows an outcome. Outcomes are ordered by cell; those of cell k are
    `first[k]` .. `first[k + 1]` - 1. `rest`, `upper` and `deficit` are empty if all of their entries have the default.
    """

    rewards: FloatArray  # [distinct rewards, or bins], rising: the reward, or the safe edge of the bin
    visits: FloatArray  # [states], how often all sources together acted in a state
    state: IntArray  # [cells]
    action: IntArray  # [cells]
    first: LongArray  # [cells + 1]
    rest: FloatArray  # [cells], the most mass that all other outcomes can have together, by default 1
    after: IntArray  # [outcomes], the next state; the number of states if the episode ended
    reward: npt.NDArray[Any]  # uint16 or wider [outcomes], a position in `rewards`
    lower: FloatArray  # [outcomes], max_i L_i
    upper: FloatArray  # [outcomes], min_i U_i, by default 1
    deficit: FloatArray  # [outcomes], max_i L_i(o) |safe edge - mean reward of i there|, by default 0
    total: FloatArray  # [cells], the sum of `lower`


def sampling_of(counts: Counts, error: float, horizon: int, rewards: int = 0) -> Sampling:
    """Return limits of which any is wrong with a probability of `error` at most.

    The union bound runs over all limits that could ever be asked for, seen or not: per source, step, state and action
    one for p(x | s), and per outcome a lower one for p(x, o | s), a lower and an upper one for p(o | s, x), and, where
    rewards are in bins, four more for deficits, two for a ceiling and two for a floor. So the same limits serve both.
    Outcomes are a next state, ended or not, or an end without a next state; times the bins, or the discrete rewards,
    taken to be `MAX_REWARDS` or the number of those seen, `rewards`. Every limit is wrong with probability at most
    `error` divided by their number.

    Counts by step have exact limits: given how often a step began in s, what follows is binomial. This takes the
    number of episodes as fixed beforehand. With steps pooled, how often s was visited depends on what followed
    earlier visits, so limits are time-uniform; they hold for logs of any length, however it was chosen. Bins are taken
    as chosen beforehand: edges that were found in the same logs make the limits approximate, and so does, slightly, a
    number of states that was read off them.
    """
    steps = horizon if counts.step_indexed else 1
    states, actions, bins = len(counts.space.states), len(counts.space.actions), counts.space.reward_bins
    distinct, each = (max(MAX_REWARDS, rewards), 3) if bins is None else (len(bins.edges) + 1, 7)
    outcomes = (2 * states + 1) * distinct
    limits = len(counts.sources) * steps * states * actions * (1 + outcomes * each)
    return Sampling(alpha=error / limits, exact=counts.step_indexed)


def _edges(bins: Bins, extreme: float, side: float) -> tuple[FloatArray, FloatArray]:
    """Return the safe edge of each bin, and its width: infinite where nobody knows the far edge, in an outer bin."""
    cuts = np.array(bins.edges)
    low, high = np.append(-np.inf, cuts), np.append(cuts, np.inf)
    safe, far = (np.minimum(high, extreme), low) if side > 0 else (np.maximum(low, extreme), high)
    return safe, np.maximum(side * (safe - far), 0.0)


def _harmonise_outcomes(counts: Counts, distinct: FloatArray, side: float) -> tuple[Counts, FloatArray]:
    """Return counts in which equal outcomes of different sources look equal, and their distinct rewards.

    If one source does not record where its episodes end, none does. And rewards that differ by rounding become one, the
    largest of them for a ceiling, else the smallest; those in bins stay as they are.
    """
    changed: dict[str, Any] = {}
    after, first = known_next_state(counts), reward_groups(distinct)
    if after is not counts.next_state:
        changed["next_state"] = after
    if counts.discrete_rewards and (first < np.arange(len(first))).any():
        last = np.searchsorted(first, first, side="right") - 1
        representative = distinct[last if side > 0 else first]
        changed["reward_min"] = representative[np.searchsorted(distinct, counts.reward_min)]
        changed["reward_max"] = changed["reward_min"]
        distinct = np.unique(representative)
    if not changed:
        return counts, distinct
    columns = {name: getattr(counts, name) for name in counts.COLUMNS} | changed
    return Counts.combined(counts.space, counts.sources, columns, population=counts.population), distinct


def known_next_state(counts: Counts) -> IntArray:
    """Return the next state of each entry; unknown for all that ended, if a source does not log where episodes end."""
    unlogged = (counts.terminated & (counts.next_state == UNKNOWN)).any()
    return np.where(counts.terminated, UNKNOWN, counts.next_state) if unlogged else counts.next_state


def reward_groups(distinct: FloatArray) -> LongArray:
    """Return, of rising rewards, the position of the first that differs from each by rounding alone."""
    width, first = SAME_REWARD * np.abs(distinct).max(initial=0.0), np.arange(len(distinct))
    if (np.diff(distinct) <= width).any():
        for i in range(1, len(distinct)):
            first[i] = first[i - 1] if distinct[i] <= distinct[first[i - 1]] + width else i
    return first


class _Entries(NamedTuple):
    """The entries of one step, or of all pooled, source by source: columns of `Counts`; `reward` as `reward_keys`."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    terminated: BoolArray
    n: FloatArray
    reward_sum: FloatArray
    reward: FloatArray


class _Proven(NamedTuple):
    """What each entry's source proves of it: L, U, U of an outcome that it did not see, U of all those, the deficit."""

    lower: FloatArray
    upper: FloatArray
    unseen: FloatArray
    rest: FloatArray
    deficit: FloatArray


class Evidence:
    """What sources show, and how checked settings want it to be read."""

    def __init__(self, counts: Counts, settings: Settings, side: float) -> None:
        bins, self.side = counts.space.reward_bins, side
        self.binned = bins is not None
        # What distinguishes rewards (they themselves, or the numbers of the bins), what each counts as, and widths.
        keys = np.unique(counts.reward_min) if bins is None else np.arange(len(bins.edges) + 1.0)
        self.sampling = None
        if settings.confidence is not None:
            self.sampling = sampling_of(counts, settings.limits_error, settings.horizon, len(keys))
        self.gammas = [settings.gamma(name) for name in counts.sources]
        self.counts, self.keys = _harmonise_outcomes(counts, keys, side)
        self.reward = reward_keys(self.counts)
        self.rewards, self.widths = self.keys, np.zeros(len(keys))
        if bins is not None:
            self.rewards, self.widths = _edges(bins, settings.reward_bound, side)

    def allowing_for_chance(self, level: float) -> Evidence:
        """Return the same evidence, read with limits of which any is wrong with a probability of about `level`.

        Unlike those of `sampling_of`, these are as many as there are entries, which makes a test of them stronger.
        """
        result = copy.copy(self)
        result.sampling = Sampling(alpha=level / (4 * len(self.counts)), exact=self.counts.step_indexed)
        return result

    def as_plug_in(self) -> Evidence:
        """Return the same evidence with shares as they are."""
        result = copy.copy(self)
        result.sampling = None
        return result

    def masses(self, step: int | None = None) -> Masses:
        """Return what the sources prove together of a step; of all steps for counts that pool them."""
        parts, entries = self._entries(step)
        capped, size = any(map(math.isfinite, self.gammas)), len(entries.n)
        upper, unseen, rest = (np.ones(size if capped else 0) for _ in range(3))
        proven = _Proven(np.zeros(size), upper, unseen, rest, np.zeros(size if self.binned else 0))
        for here, gamma in zip(parts, self.gammas, strict=True):
            source = _Source(entries, here, gamma, self.sampling)
            n = entries.n[here]
            proven.lower[here] = source.at_least(n)
            if self.binned:
                proven.deficit[here] = self._deficits(source, proven.lower[here], entries, here)
            if math.isfinite(gamma):
                proven.upper[here], proven.unseen[here], proven.rest[here] = source.at_most(n)
        begin, end = (np.array([getattr(here, edge) for here in parts]) for edge in ("start", "stop"))
        visits = np.bincount(entries.state, entries.n, minlength=len(self.counts.space.states)).astype(np.float64)
        cells, outcomes = _merge(entries, proven, begin, end, self.keys, self._room(visits, 0, 0, capped), False)
        room = self._room(visits, cells, outcomes, capped)
        _merge(entries, proven, begin, end, self.keys, room, True)
        return room._replace(total=np.add.reduceat(room.lower, room.first[:-1]) if cells else np.zeros(0))

    def _deficits(self, source: _Source, lower: FloatArray, entries: _Entries, here: slice) -> FloatArray:
        """Return L (e - m) of each entry, with e the safe edge of its bin and m the mean reward; a limit of it."""
        n, reward = entries.n[here], entries.reward[here].astype(np.int64)
        gap = np.maximum(self.side * (self.rewards[reward] - entries.reward_sum[here] / n), 0.0)
        if self.sampling is None:
            return np.asarray(lower * gap)
        # Each visit is a trial that lies between 0 and 1: by how much of the bin's width its reward misses the edge.
        # Of the outer bin that is not known.
        width = np.where(np.isfinite(self.widths) & (self.widths > 0), self.widths, 0.0)[reward]
        share = np.clip(np.divide(gap, width, out=np.zeros(len(gap)), where=width > 0), 0.0, 1.0)
        return np.asarray(width * source.at_least(n * share, fractional=True))

    def _room(self, visits: FloatArray, cells: int, outcomes: int, capped: bool) -> Masses:
        """Return masses with arrays that `_merge` writes."""
        return Masses(
            rewards=self.rewards,
            visits=visits,
            state=np.empty(cells, dtype=np.int32),
            action=np.empty(cells, dtype=np.int32),
            first=np.zeros(cells + 1, dtype=np.int64),
            rest=np.empty(cells if capped else 0),
            after=np.empty(outcomes, dtype=np.int32),
            reward=np.zeros(outcomes, dtype=np.min_scalar_type(max(256, len(self.rewards)))),
            lower=np.empty(outcomes),
            upper=np.empty(outcomes if capped else 0),
            deficit=np.empty(outcomes if self.binned else 0),
            total=np.empty(0),
        )

    def _entries(self, step: int | None) -> tuple[list[slice], _Entries]:
        """Return where the entries of each source stand, and the entries."""
        counts, here = self.counts, parts_of(self.counts, step)
        entries = _Entries(**{name: getattr(counts, name) for name in _Entries._fields[:-1]}, reward=self.reward)
        if counts.step is None:
            return here, entries
        ends = np.cumsum([0, *(part.stop - part.start for part in here)]).tolist()
        columns: Any = (np.concatenate([column[part] for part in here]) for column in entries)
        return [slice(a, b) for a, b in itertools.pairwise(ends)], _Entries(*columns)


class _Source:
    """What one source shows of the (s, x) of each of its entries, and what that proves."""

    def __init__(self, entries: _Entries, here: slice, gamma: float, sampling: Sampling | None) -> None:
        self.state, self.action = entries.state[here], entries.action[here]
        visits, taken, self.known = _totals(entries, here.start, here.stop)
        self.visits, self.taken, self.gamma, self.sampling = visits, taken, gamma, sampling
        self.propensity = taken / visits if sampling is None else lower_limit(taken, visits, *sampling)

    def at_least(self, happened: FloatArray, fractional: bool = False) -> FloatArray:
        """Return L of what happened that often after x was taken; `fractional` for a sum of shares."""
        factor = self.propensity + (1 - self.propensity) / self.gamma
        if self.sampling is None:
            return np.asarray(happened / self.taken * factor)
        sampling = self.sampling._replace(exact=False) if fractional else self.sampling
        manski = lower_limit(happened, self.visits, *sampling)  # one limit instead of a product of two
        if math.isinf(self.gamma):
            return manski
        return np.maximum(manski, lower_limit(happened, self.taken, *sampling) * factor)

    def at_most(self, happened: FloatArray) -> list[FloatArray]:
        """Return U of what happened, of any one outcome that did not, and of all those together."""
        factor = self.propensity + (1 - self.propensity) * self.gamma
        nothing = np.zeros(len(happened))
        if self.sampling is None:
            shares = [happened / self.taken, nothing, nothing]
        else:
            shares = [upper_limit(times, self.taken, *self.sampling) for times in (happened, nothing)]
            shares.append(_unseen(self.state, self.action, lower_limit(happened, self.taken, *self.sampling)))
        # A source that does not know all its outcomes limits none: the unknown ones may have been anything.
        limits = self.known == self.taken
        return [np.where(limits, np.minimum(share * factor, 1.0), 1.0) for share in shares]


@njit(nogil=True)
def _totals(entries: Any, start: int, stop: int) -> Any:
    """Return, for each entry of a source: visits to s, times x was taken there, and times with a known outcome."""
    state, action, n = entries.state[start:stop], entries.action[start:stop], entries.n[start:stop]
    next_state, terminated = entries.next_state[start:stop], entries.terminated[start:stop]
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
def _unseen(state: Any, action: Any, low: Any) -> Any:
    """Return, for each entry, what the lower limits of its (s, x) leave to outcomes that were not seen."""
    left = np.empty(len(low))
    begin = 0
    while begin < len(low):
        end, total = begin, 0.0
        while end < len(low) and state[end] == state[begin] and action[end] == action[begin]:
            total += low[end]
            end += 1
        left[begin:end] = max(0.0, 1.0 - total)
        begin = end
    return left


@njit(nogil=True)
def _merge(entries: Any, proven: Any, begin: Any, end: Any, keys: Any, masses: Any, write: Any) -> Any:
    """Merge the sources' entries, each sorted by (s, x, outcome), into masses; return how many cells and outcomes.

    The entries of source i are `begin[i]` .. `end[i]` - 1. With `write` false nothing is written: a first run to learn
    the sizes.
    """
    # Unpacked once: inside loops every use of a tuple would count references to its arrays.
    state, action, next_state, terminated, _, _, reward = entries
    lower, upper, unseen, rest, deficit = proven
    _, visits, to_state, to_action, to_first, to_rest, to_after, to_reward, to_lower, to_upper, to_deficit, _ = masses
    sources, cells, outcomes = len(begin), 0, 0
    at, last = begin.copy(), begin.copy()  # where each source stands, and where its entries of the cell end
    capped, binned = len(upper) > 0, len(deficit) > 0
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
                to_first[cells] = outcomes
            return cells, outcomes
        most = 1.0
        for i in range(sources):
            last[i] = at[i]
            while last[i] < end[i] and state[last[i]] == s and action[last[i]] == x:
                last[i] += 1
            if capped and last[i] > at[i]:
                most = min(most, rest[at[i]])
        if write:
            to_state[cells], to_action[cells], to_first[cells] = s, x, outcomes
            if capped:
                to_rest[cells] = most
        cells += 1
        while True:
            best = -1  # an entry with the smallest outcome
            for i in range(sources):
                if at[i] < last[i] and (best < 0 or _before(at[i], best, next_state, terminated, reward)):
                    best = at[i]
            if best < 0:
                break
            low, high, short = 0.0, 1.0, 0.0
            for i in range(sources):
                entry = at[i]
                if entry < last[i] and not _before(best, entry, next_state, terminated, reward):
                    low = max(low, lower[entry])
                    if capped:
                        high = min(high, upper[entry])
                    if binned:
                        short = max(short, deficit[entry])
                    at[i] += 1
                elif capped and last[i] > begin[i] and state[last[i] - 1] == s and action[last[i] - 1] == x:
                    high = min(high, unseen[last[i] - 1])  # the source took x in s and did not see this
            if write:
                to_after[outcomes] = len(visits) if terminated[best] else next_state[best]
                to_lower[outcomes] = low
                to_reward[outcomes] = np.searchsorted(keys, reward[best])
                if binned:
                    to_deficit[outcomes] = short
                if capped:
                    to_upper[outcomes] = high
            outcomes += 1


@njit(nogil=True)
def _before(first: Any, second: Any, next_state: Any, terminated: Any, reward: Any) -> Any:
    """Whether the outcome of one entry comes before that of another."""
    if next_state[first] != next_state[second]:
        return next_state[first] < next_state[second]
    if terminated[first] != terminated[second]:
        return terminated[second]
    return reward[first] < reward[second]
