"""Whether sources fit together: comparisons of what they show after the same action in the same state.

- `excess_masses`: the (s, x) of which sources prove more mass than there is, whatever their confounding.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from causal_shaping.bounds._masses import SAME_REWARD
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray, groups
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError

EXCLUSIVE = 0.1
"""The part of a source's share of alpha that is kept for outcomes which no other source saw."""

SMALLEST = 1e-100
"""P-values of excess masses below this are not distinguished."""


class Entries(NamedTuple):
    """How often an outcome followed (s, x) in a source, ordered by cell, outcome and source.

    A cell is an (s, x), at one step if the counts are step-indexed. Outcomes that look different only because sources
    are logged differently are one.
    """

    cell: LongArray  # (step * states + state) * actions + action
    outcome: LongArray  # next state, end and reward in one number
    source: IntArray
    n: FloatArray
    known: npt.NDArray[np.bool_]  # whether the outcome is known
    visits: FloatArray  # how often the source was in s, at that step
    first: LongArray  # position in the counts of an entry with this outcome


class Excess(NamedTuple):
    """The (s, x) whose proven masses add up to more than 1, the largest total first."""

    step: IntArray  # 0 if steps are pooled
    state: IntArray
    action: IntArray
    total: FloatArray  # sum over o of max over i of p_i(x, o | s)
    p_value: FloatArray  # of the hypothesis that this is chance, corrected for all (step,) s, x


def compared_entries(counts: Counts) -> Entries:
    """Return the entries of counts in a form in which sources can be compared."""
    states, actions = len(counts.space.states), len(counts.space.actions)
    step = np.zeros(len(counts), dtype=np.int64) if counts.step is None else counts.step.astype(np.int64)
    place = step * states + counts.state
    cell = place * actions + counts.action
    outcome = outcome_codes(counts)
    order, first = groups([cell, outcome, counts.source])
    kept = order[first]
    n = np.add.reduceat(counts.n[order], first) if len(first) else counts.n
    _, of_visit = np.unique(counts.source * (place.max(initial=0) + 1) + place, return_inverse=True)
    visits = np.bincount(of_visit, weights=counts.n)[of_visit[kept]].astype(np.float64)
    return Entries(cell[kept], outcome[kept], counts.source[kept], n, counts.outcome_known[kept], visits, kept)


def outcome_codes(counts: Counts) -> LongArray:
    """Return a number per entry, equal for equal outcomes: next state, end and reward, or the reward's bin."""
    reward = _reward_codes(counts)
    after = known_next_state(counts).astype(np.int64) - UNKNOWN
    return np.asarray((after * 2 + counts.terminated) * (reward.max(initial=0) + 1) + reward)


def _reward_codes(counts: Counts) -> LongArray:
    """Return a number per entry for its reward; rewards that differ by rounding have the same."""
    if counts.space.reward_bins is not None:
        return counts.space.reward_bins(counts.reward_min)
    distinct, position = np.unique(counts.reward_min, return_inverse=True)
    width = SAME_REWARD * np.abs(distinct).max(initial=0.0)
    group, begin = np.zeros(len(distinct), dtype=np.int64), 0
    for i in range(1, len(distinct)):
        apart = distinct[i] > distinct[begin] + width
        begin = i if apart else begin
        group[i] = group[i - 1] + apart
    return np.asarray(group[position])


def known_next_state(counts: Counts) -> IntArray:
    """Return the next state of each entry; unknown for all that ended, if a source does not log where episodes end."""
    unlogged = (counts.terminated & (counts.next_state == UNKNOWN)).any()
    return np.where(counts.terminated, UNKNOWN, counts.next_state) if unlogged else counts.next_state


def excess_masses(counts: Counts, step: int | None = None) -> Excess:
    """Return the (s, x) of which sources prove more mass than there is, even with unlimited confounding.

    Whatever its confounding, source i proves that do(x) gives outcome o a mass of at least p_i(x, o | s), Manski's
    mass. If all sources watch one world, with hidden causes that are drawn afresh at each step, then for every (s, x)

        sum over o of  max over i of  p_i(x, o | s)  <=  1.

    In a sample the sum can be larger by chance. The p-value of a cell is the smallest alpha at which lower confidence
    limits of these masses, all of which hold with probability 1 - alpha, still add up to more than 1. The limits are
    exact (Clopper and Pearson 1934), one for each source that was in s and each outcome.

    *Proof.* Fix how often each source was in s, n_i. Alpha is divided among the sources in proportion to 1 / sqrt(n_i).
    Given what the other sources show, which is independent of source i, 90% of its part is divided equally among the
    outcomes that they saw, and 10% equally among all outcomes that the space allows. Both lists are fixed before source
    i is looked at, so by the union bound all limits hold at once with probability 1 - alpha. While they hold, and the
    sources watch one world, they add up to at most 1. Hence the probability that the p-value is alpha or less is at
    most alpha. Each is multiplied by the number of cells: those (step,) s in which two sources acted, times actions,
    also a number that does not depend on what was done there. So the probability of any corrected p-value of alpha or
    less is at most alpha.

    Rows with an unknown outcome add to no mass. With steps pooled, how often s was visited can depend on what followed
    earlier visits; it is taken as given, so that p-values are approximate there.

    Args:
        counts: of a sample.
        step: of step-indexed counts, return cells of this step only; corrected for all steps all the same.
    """
    if counts.population:
        raise ArgumentError("The test is for samples; masses of population counts can be added up as they are.")
    states, actions = len(counts.space.states), len(counts.space.actions)
    entries = compared_entries(counts)
    place, of_place = np.unique(entries.cell // actions, return_inverse=True)
    # Of each source that was in s: where, and the weight of its limits, which are about as wide as that.
    visiting, at = np.unique(of_place * len(counts.sources) + entries.source, return_index=True)
    weight = np.bincount(visiting // len(counts.sources), entries.visits[at] ** -0.5, minlength=len(place))
    sources = np.bincount(visiting // len(counts.sources), minlength=len(place))
    tests = max(1, int((sources >= 2).sum()) * actions)
    cell, total, kept = _totals_above_one(entries)
    chosen = np.searchsorted(cell, entries.cell[kept])
    visits = entries.visits[kept]
    share = _shares_of_alpha(counts, entries, kept) * visits**-0.5 / weight[of_place[kept]]
    p_value = _p_values(_Candidates(chosen, entries.outcome[kept], entries.n[kept], visits, share), tests)
    order = np.argsort(-total, kind="stable")
    if step is not None:
        order = order[cell[order] // (states * actions) == step]
    h, s, x = (part.astype(np.int32) for part in unravelled(counts, cell[order]))
    return Excess(h, s, x, total[order], p_value[order])


def unravelled(counts: Counts, cell: LongArray) -> tuple[LongArray, LongArray, LongArray]:
    """Return step, state and action of cells."""
    place, action = np.divmod(cell, len(counts.space.actions))
    step, state = np.divmod(place, len(counts.space.states))
    return step, state, action


def _totals_above_one(entries: Entries) -> tuple[LongArray, FloatArray, LongArray]:
    """Return the cells whose proven masses add up to more than 1, their totals, and where their entries stand."""
    known = np.flatnonzero(entries.known)
    if not len(known):
        return np.zeros(0, dtype=np.int64), np.zeros(0), known
    cell, outcome = entries.cell[known], entries.outcome[known]
    total = _sum_of_maxima(cell, outcome, entries.n[known] / entries.visits[known])
    found = cell[_begins(cell)]
    above = total > 1 + 1e-12  # more than rounding
    return found[above], total[above], known[np.isin(cell, found[above])]


def _begins(*key: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Whether a group of equal keys begins at an entry; entries are ordered by the key."""
    result = np.zeros(len(key[0]), dtype=bool)
    result[:1] = True
    for column in key:
        result[1:] |= column[1:] != column[:-1]
    return result


def _sum_of_maxima(cell: LongArray, outcome: LongArray, mass: FloatArray) -> FloatArray:
    """Return, per cell, the sum over outcomes of the maximum over sources; entries are ordered by cell and outcome."""
    begin = np.flatnonzero(_begins(cell, outcome))
    return np.asarray(np.add.reduceat(np.maximum.reduceat(mass, begin), np.flatnonzero(_begins(cell)[begin])))


def _shares_of_alpha(counts: Counts, entries: Entries, kept: LongArray) -> FloatArray:
    """Return the part of its source's alpha that the limit of each of the entries `kept` gets."""
    cell, outcome, source = entries.cell[kept], entries.outcome[kept], entries.source[kept]
    new_outcome, of_cell = _begins(cell, outcome), np.cumsum(_begins(cell)) - 1
    of_outcome = np.cumsum(new_outcome) - 1
    exclusive = np.bincount(of_outcome)[of_outcome] == 1
    _, of_own = np.unique(of_cell * len(counts.sources) + source, return_inverse=True)
    own = np.bincount(of_own, exclusive)[of_own]
    seen_by_others = np.bincount(of_cell, new_outcome)[of_cell] - own
    rewards = len(np.unique(_reward_codes(counts)))
    possible = (2 * len(counts.space.states) + 1) * max(MAX_REWARDS, rewards)
    return np.where(exclusive, EXCLUSIVE / possible, (1 - EXCLUSIVE) / np.maximum(seen_by_others, 1))


class _Candidates(NamedTuple):
    """Entries of cells whose proven masses add up to more than 1."""

    chosen: LongArray  # which of the cells, rising
    outcome: LongArray
    n: FloatArray
    visits: FloatArray
    share: FloatArray  # of a cell's alpha

    def exceed(self, log_alpha: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the lower limits of each cell, given its alpha, add up to more than 1."""
        limits = betaincinv(self.n, self.visits - self.n + 1, np.exp(log_alpha)[self.chosen] * self.share)
        return _sum_of_maxima(self.chosen, self.outcome, limits) > 1

    def of(self, which: npt.NDArray[np.bool_]) -> _Candidates:
        """Return those of some cells."""
        here = which[self.chosen]
        chosen = np.cumsum(which)[self.chosen[here]] - 1
        return _Candidates(chosen, self.outcome[here], self.n[here], self.visits[here], self.share[here])


def _p_values(candidates: _Candidates, tests: int) -> FloatArray:
    """Return the smallest alpha, times the number of tests, at which the limits of a cell add up to more than 1."""
    cells = int(candidates.chosen.max(initial=-1)) + 1
    result = np.ones(cells)
    if not cells:
        return result
    notable = candidates.exceed(np.full(cells, -math.log(tests)))  # the others get 1
    candidates, left = candidates.of(notable), int(notable.sum())
    if left:
        below, above = np.full(left, math.log(SMALLEST)), np.full(left, -math.log(tests))
        for _ in range(30):
            middle = (below + above) / 2
            exceed = candidates.exceed(middle)
            below, above = np.where(exceed, below, middle), np.where(exceed, middle, above)
        result[notable] = np.exp(above) * tests
    return result
