"""Whether sources fit together: comparisons of what they show after the same action in the same state.

- `disagreements`: the (s, x) after which two sources show outcomes that differ by more than chance.
- `smallest_confounding`: the smallest Gamma at which two sources can both be right.
- `excess_masses`: the (s, x) of which sources prove more mass than there is, whatever their confounding.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, chdtrc, chdtri

from causal_shaping._compile import njit
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds._homogeneity import Pairs, Samples, pearson, permutation_p_values
from causal_shaping.bounds._limits import lower_limit, upper_limit
from causal_shaping.bounds._masses import known_next_state, reward_groups
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins, groups, ranges
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError

CANDIDATE = 0.05
"""Approximate p-values above this are kept; below, they are replaced by those of a permutation test."""

DEALS = 4
"""A permutation test has this many times the deals that the smallest p-value of interest needs."""

SURE = 1e-3
"""A bound of a p-value that is smaller than what would be reported by this factor needs no improvement."""

BATCH, FEW = 200_000, 500
"""How many pairs are compared, and how many permutation tests made, between two calls of `progress`."""

MANY_PAIRS = 1_000_000_000
"""With more pairs of sources than this, all (s, x) together, a warning says how long it takes."""

PAIRS_A_MINUTE = 600_000_000
"""About so many pairs are compared in a minute."""

MOST_CONFOUNDING = 1e6
"""Confounding beyond this is called infinite."""

EXCLUSIVE = 0.1
"""The part of a source's share of alpha that is kept for outcomes which no other source saw."""

SMALLEST = 1e-100
"""P-values of excess masses below this are not distinguished."""

MOST_DENSE = 10_000_000
"""So many numbers of a table by cell, source and bin of rewards are held at once."""

ROUNDING = 1e-12
"""Masses that add up to no more than 1 plus this add up to 1."""


class Entries(NamedTuple):
    """How often an outcome followed (s, x) in a source, ordered by cell, source and outcome.

    A cell is an (s, x), at one step if the counts are step-indexed. Outcomes that look different only because sources
    are logged differently are one.
    """

    cell: LongArray  # (step * states + state) * actions + action
    source: IntArray
    outcome: LongArray  # next state, end and reward in one number
    n: FloatArray
    known: BoolArray  # whether the outcome is known
    visits: FloatArray  # how often the source was in s, at that step
    first: LongArray  # position in the counts of an entry with this outcome


class Disagreements(NamedTuple):
    """The (s, x) after which two sources show outcomes that differ by more than chance, the surest first."""

    first: LongArray  # a source, by position
    second: LongArray  # the other
    step: LongArray  # 0 if steps are pooled
    state: LongArray
    action: LongArray
    p_value: FloatArray  # corrected for all comparisons (Holm)
    compared: int  # how many (pair of sources, [step,] s, x) were compared
    shared: int  # how many both sources of a pair took
    entries: Entries
    pairs: Pairs  # where in the entries what the two show stands


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
    order, first = groups([cell, counts.source, outcome])
    kept = order[first]
    n = np.add.reduceat(counts.n[order], first) if len(first) else counts.n
    _, of_visit = np.unique(counts.source * (place.max(initial=0) + 1) + place, return_inverse=True)
    visits = np.bincount(of_visit, weights=counts.n)[of_visit[kept]].astype(np.float64)
    return Entries(cell[kept], counts.source[kept], outcome[kept], n, counts.outcome_known[kept], visits, kept)


def outcome_codes(counts: Counts) -> LongArray:
    """Return a number per entry, equal for equal outcomes: next state, end and reward, or the reward's bin."""
    reward = _reward_codes(counts)
    after = known_next_state(counts).astype(np.int64) - UNKNOWN
    return np.asarray((after * 2 + counts.terminated) * (reward.max(initial=0) + 1) + reward)


def _reward_codes(counts: Counts) -> LongArray:
    """Return a number per entry for its reward; rewards that differ by rounding have the same."""
    if counts.space.reward_bins is not None:
        return np.asarray(counts.space.reward_bins(counts.reward_min), dtype=np.int64)
    distinct, position = np.unique(counts.reward_min, return_inverse=True)
    return (np.cumsum(begins(reward_groups(distinct))) - 1)[position]


def disagreements(
    counts: Counts, level: float = 0.05, seed: int = 0, progress: Progress = no_progress
) -> Disagreements:
    """Return where two sources show different outcomes after the same action in the same state.

    Per pair of sources and (s, x) that both took, Pearson's test of homogeneity; p-values by `_homogeneity`, corrected
    by Holm's method, so that the chance of any false report is at most `level`. A (s, x) with unknown outcomes of
    either source is left out: whether an outcome is known can depend on what it was. Takes time in proportion to the
    number of such pairs.

    Args:
        counts: of a sample.
        level: the chance of any false report.
        seed: of the permutations.
        progress: told how many pairs are compared.
    """
    if counts.population:
        raise ArgumentError("The test is for samples; population counts can be compared as they are.")
    entries = compared_entries(counts)
    samples, pairs, shared, compared = _candidates(entries, max(CANDIDATE, level), progress)
    rng, deals = np.random.default_rng(seed), math.ceil(DEALS * compared / level)
    p_value = np.ones(len(pairs.begin))
    for begin in range(0, len(p_value), FEW):
        progress(0.5 + 0.5 * begin / len(p_value), 1.0, "Comparing sources")
        here = slice(begin, begin + FEW)
        part = Pairs(*(column[here] for column in pairs))
        # Holm compares the last of the candidates, if all before it are reported, with the largest level of all.
        largest = level / (compared - len(p_value) + 1)
        p_value[here] = permutation_p_values(samples, part, rng, deals, SURE * level / compared, largest)
    order = np.argsort(p_value, kind="stable")
    corrected = np.minimum(1.0, p_value[order] * (compared - np.arange(len(order))))
    corrected = np.maximum.accumulate(corrected)
    found = order[corrected <= level]
    pairs = Pairs(*(column[found] for column in pairs))
    step, state, action = unravelled(counts, entries.cell[pairs.begin])
    first, second = (entries.source[begin].astype(np.int64) for begin in (pairs.begin, pairs.other_begin))
    progress(1.0, 1.0, "Comparing sources")
    return Disagreements(first, second, step, state, action, corrected[: len(found)], compared, shared, entries, pairs)


def _candidates(entries: Entries, level: float, progress: Progress) -> tuple[Samples, Pairs, int, int]:
    """Return the pairs whose approximate p-value is `level` or less, how many there are, and how many were compared."""
    samples = Samples(entries.outcome, entries.n)
    begin = np.flatnonzero(begins(entries.cell, entries.source))  # of what one source shows after one (s, x)
    end = np.append(begin[1:], len(entries.n))
    known = np.logical_and.reduceat(entries.known, begin) if len(begin) else np.zeros(0, dtype=bool)
    first = np.append(np.flatnonzero(begins(entries.cell[begin])), len(begin))  # of each cell
    cumulative = np.cumsum(np.diff(first) * (np.diff(first) - 1) // 2)
    shared, compared = int(cumulative[-1]) if len(cumulative) else 0, 0
    if shared > MANY_PAIRS:
        warnings.warn(
            f"{shared:,} pairs of sources are compared, state by state and action by action, which takes about "
            f"{math.ceil(shared / PAIRS_A_MINUTE):,} min: with twice the sources it takes four times as long. Put "
            "sources together that acted alike, or compare some of them.",
            RuntimeWarning,
            stacklevel=4,
        )
    ends = np.searchsorted(cumulative, np.arange(BATCH, shared, BATCH)) + 1
    parts = []
    for a, b in itertools.pairwise(np.unique([0, *ends.tolist(), len(cumulative)]).tolist()):
        progress(0.5 * a / len(cumulative), 1.0, "Comparing sources")
        one, two = _pairs_within(first[a : b + 1])
        both = known[one] & known[two]
        one, two = one[both], two[both]
        compared += len(one)
        pairs = Pairs(begin[one], end[one], begin[two], end[two])
        statistic, columns = pearson(samples, pairs)
        unlikely = (columns > 1) & _is_unlikely(statistic, np.maximum(columns - 1, 1), level)
        parts.append([column[unlikely] for column in pairs])
    chosen = Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True))) if parts else Pairs(*[begin] * 4)
    return samples, chosen, shared, compared


def _is_unlikely(statistic: FloatArray, freedom: LongArray, level: float) -> BoolArray:
    """Return whether the p-value of a chi-squared statistic is `level` or less; it is computed only where it may be."""
    needed = chdtri(np.arange(freedom.max(initial=0) + 1), level)[freedom]
    result: BoolArray = statistic >= needed * (1 - 1e-6)
    result[result] = chdtrc(freedom[result], statistic[result]) <= level
    return result


@njit(nogil=True)
def _pairs_within(first: Any) -> Any:
    """Return all pairs of positions within each range; range i is `first[i]` .. `first[i + 1]` - 1."""
    size = 0
    for i in range(len(first) - 1):
        size += (first[i + 1] - first[i]) * (first[i + 1] - first[i] - 1) // 2
    one, two = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    at = 0
    for i in range(len(first) - 1):
        for a in range(first[i], first[i + 1]):
            for b in range(a + 1, first[i + 1]):
                one[at], two[at] = a, b
                at += 1
    return one, two


class Tables(NamedTuple):
    """Tables of two sources, their columns one after another."""

    begin: LongArray  # [tables], where the columns of each begin
    table: LongArray  # [columns], which table
    first: LongArray  # [columns], an entry of the counts with this outcome
    n: FloatArray  # [2, columns], how often the outcome followed in each of the two sources
    visits: FloatArray  # [2, tables], how often each was in the state


def tables_of(found: Disagreements) -> Tables:
    """Return the outcomes that disagreeing sources show."""
    entries, pairs = found.entries, found.pairs
    lengths = np.stack([pairs.end - pairs.begin, pairs.other_end - pairs.other_begin])
    row = np.repeat([0, 1], lengths.sum(axis=1))
    table = np.concatenate([np.repeat(np.arange(len(pairs.begin)), length) for length in lengths])
    entry = np.concatenate(
        [ranges(first, size) for first, size in zip((pairs.begin, pairs.other_begin), lengths, strict=True)]
    )
    order, begin = groups([table, entries.outcome[entry]])
    column = np.empty(len(order), dtype=np.int64)
    column[order] = np.cumsum(begins(table[order], entries.outcome[entry[order]])) - 1
    n = np.zeros((2, len(begin)))
    n[row, column] = entries.n[entry]
    of_column = table[order][begin]
    visits = np.stack([entries.visits[pairs.begin], entries.visits[pairs.other_begin]])
    return Tables(np.flatnonzero(begins(of_column)), of_column, entries.first[entry[order][begin]], n, visits)


def smallest_confounding(tables: Tables, confidence: float = 0.95) -> FloatArray:
    """Return, per table, the smallest Gamma at which two sources can both be right about one (s, x).

    Under Gamma, do(x) gives outcome o a mass between L = p(o | x) (p(x) + (1 - p(x)) / Gamma) and
    U = p(o | x) (p(x) + (1 - p(x)) Gamma), for each source. The sources agree if some distribution lies within all of
    these. Probabilities are replaced by simultaneous exact binomial limits, so that chance alone does not separate the
    sources; an outcome that neither saw is allowed for. Inf if only unlimited confounding will do, NaN if not even
    that.

    Args:
        tables: what the sources show.
        confidence: of all limits of a table together.
    """
    begin, table, _, n, visits = tables
    taken = np.add.reduceat(n, begin, axis=1)
    outcomes = np.diff(np.append(begin, len(table))) + 1  # and one that nobody saw
    alpha = (1 - confidence) / (4 * outcomes + 2)
    low, high = (limit(n, taken[:, table], alpha[table]) for limit in (lower_limit, upper_limit))
    unseen = upper_limit(np.zeros_like(taken), taken, alpha)
    propensity = lower_limit(taken, visits, alpha)

    def agree(gamma: FloatArray) -> BoolArray:
        least = propensity + (1 - propensity) / gamma
        with np.errstate(invalid="ignore"):  # a propensity of 1 and a Gamma of inf
            most = propensity + np.where(np.isinf(gamma), np.inf, (1 - propensity) * gamma)
        floor = (low * least[:, table]).max(axis=0)
        ceiling = np.minimum(1.0, high * most[:, table]).min(axis=0)
        rest = np.minimum(1.0, unseen * most).min(axis=0)
        least_mass, most_mass = np.add.reduceat(floor, begin), np.add.reduceat(ceiling, begin) + rest
        fits: BoolArray = np.logical_and.reduceat(floor <= ceiling, begin)
        return np.asarray(fits & (least_mass <= 1) & (most_mass >= 1))

    below, above = np.zeros(len(begin)), np.full(len(begin), math.log(MOST_CONFOUNDING))
    for _ in range(40):
        middle = (below + above) / 2
        reached = agree(np.exp(middle))
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
    result: FloatArray = np.exp(above)
    result[agree(np.ones(len(begin)))] = 1.0
    beyond = ~agree(np.full(len(begin), MOST_CONFOUNDING))
    result[beyond] = np.where(agree(np.full(len(begin), np.inf)), np.inf, np.nan)[beyond]
    return result


def excess_masses(counts: Counts, unconfounded: Sequence[int] = (), entries: Entries | None = None) -> Excess:
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
    most alpha. Each is multiplied by the number of cells: those (step,) s in which two sources acted, times admissible
    actions, also a number that does not depend on what was done there. So the probability of any corrected p-value of
    alpha or less is at most alpha.

    Limits of single outcomes say little where rewards are in many bins. There, rewards are also divided in two: for
    each edge of the bins and each ordered pair of sources i, j, do(x) gives rewards below the edge a mass of
    p_i(x, below | s) or more, and the others p_j(x, not below | s) or more. The p-value of such a pair is the smallest
    alpha at which lower limits of these two, which share it, add up to more than 1; it is multiplied by the number of
    edges and of ordered pairs of sources. The cell gets twice the smaller of the two kinds of p-values. (Edges are
    taken as fixed; those that `count` finds are quantiles of all rows together, whatever their source and action.)

    Rows with an unknown outcome add to no mass. With steps pooled, how often s was visited can depend on what followed
    earlier visits; it is taken as given, so that p-values are approximate there.

    Args:
        counts: of a sample.
        unconfounded: sources, by position, that are declared unconfounded. They prove p_i(o | s, x) instead of
            p_i(x, o | s); their limits are of n_i(s, x) rows, which is taken as given.
        entries: the `compared_entries` of the counts, if they are there.
    """
    if counts.population:
        raise ArgumentError("The test is for samples; masses of population counts can be added up as they are.")
    states, actions = len(counts.space.states), len(counts.space.actions)
    entries = compared_entries(counts) if entries is None else entries
    trial = np.isin(entries.source, np.asarray(unconfounded, dtype=np.int64))
    if trial.any():
        entries = entries._replace(visits=np.where(trial, _taken(entries), entries.visits))
    place, of_place = np.unique(entries.cell // actions, return_inverse=True)
    # Of each source that was in s: where, and the weight of its limits, which are about as wide as that.
    visiting, at = np.unique(of_place * len(counts.sources) + entries.source, return_index=True)
    wide = np.where(trial[at], 0.0, entries.visits[at] ** -0.5)
    weight = np.bincount(visiting // len(counts.sources), wide, minlength=len(place))[of_place]
    if trial.any():  # of an unconfounded source: that it took x
        of_cell = np.cumsum(begins(entries.cell)) - 1
        one = begins(entries.cell, entries.source) & trial
        weight = weight + np.bincount(of_cell, np.where(one, entries.visits**-0.5, 0.0))[of_cell]
    sources = np.bincount(visiting // len(counts.sources), minlength=len(place))
    tests = max(1, int(counts.space.is_admissible.sum(axis=1)[place % states][sources >= 2].sum()))
    cell, total, kept = _totals_above_one(entries)
    chosen = np.searchsorted(cell, entries.cell[kept])
    visits = entries.visits[kept]
    share = _shares_of_alpha(counts, entries, kept) * visits**-0.5 / weight[kept]
    p_value = _p_values(_Candidates(chosen, entries.outcome[kept], entries.n[kept], visits, share), tests)
    if counts.space.reward_bins is not None:
        rows = _RewardBins(chosen, entries.source[kept], _reward_codes(counts)[entries.first[kept]], entries.n[kept])
        sizes = len(counts.sources), len(counts.space.reward_bins.edges)
        p_value = np.minimum(1.0, 2 * np.minimum(p_value, _p_values_by_reward(rows, visits, *sizes, tests)))
    order = np.argsort(-total, kind="stable")
    h, s, x = (part.astype(np.int32) for part in unravelled(counts, cell[order]))
    return Excess(h, s, x, total[order], p_value[order])


def unravelled(counts: Counts, cell: LongArray) -> tuple[LongArray, LongArray, LongArray]:
    """Return step, state and action of cells."""
    place, action = np.divmod(cell, len(counts.space.actions))
    step, state = np.divmod(place, len(counts.space.states))
    return step, state, action


def _totals_above_one(entries: Entries) -> tuple[LongArray, FloatArray, LongArray]:
    """Return the cells whose proven masses add up to more than 1, their totals, and where their entries stand.

    Entries are in the order of cell and outcome.
    """
    begin = np.flatnonzero(begins(entries.cell))
    mass = np.where(entries.known, entries.n / entries.visits, 0.0)
    most = np.add.reduceat(mass, begin) if len(begin) else np.zeros(0)  # a limit: sums instead of maxima
    possible = np.repeat(most > 1 + ROUNDING, np.diff(np.append(begin, len(mass))))
    kept = np.flatnonzero(possible & entries.known)
    kept = kept[np.lexsort((entries.outcome[kept], entries.cell[kept]))]
    if not len(kept):
        return np.zeros(0, dtype=np.int64), np.zeros(0), kept
    cell = entries.cell[kept]
    total = _sum_of_maxima(cell, entries.outcome[kept], mass[kept])
    above = total > 1 + ROUNDING
    return cell[begins(cell)][above], total[above], kept[above[np.cumsum(begins(cell)) - 1]]


def _taken(entries: Entries) -> FloatArray:
    """Return how often the source of each entry took x in s."""
    new = begins(entries.cell, entries.source)
    return np.asarray(np.add.reduceat(entries.n, np.flatnonzero(new))[np.cumsum(new) - 1])


def _sum_of_maxima(cell: LongArray, outcome: LongArray, mass: FloatArray) -> FloatArray:
    """Return, per cell, the sum over outcomes of the maximum over sources; entries are ordered by cell and outcome."""
    begin = np.flatnonzero(begins(cell, outcome))
    return np.asarray(np.add.reduceat(np.maximum.reduceat(mass, begin), np.flatnonzero(begins(cell)[begin])))


def _shares_of_alpha(counts: Counts, entries: Entries, kept: LongArray) -> FloatArray:
    """Return the part of its source's alpha that the limit of each of the entries `kept` gets."""
    cell, outcome, source = entries.cell[kept], entries.outcome[kept], entries.source[kept]
    new_outcome, of_cell = begins(cell, outcome), np.cumsum(begins(cell)) - 1
    of_outcome = np.cumsum(new_outcome) - 1
    exclusive = np.bincount(of_outcome)[of_outcome] == 1
    _, of_own = np.unique(of_cell * len(counts.sources) + source, return_inverse=True)
    own = np.bincount(of_own, exclusive)[of_own]
    seen_by_others = np.bincount(of_cell, new_outcome)[of_cell] - own
    rewards = max(MAX_REWARDS, int(_reward_codes(counts).max(initial=0)) + 1)
    possible = (2 * len(counts.space.states) + 1) * rewards
    return np.where(exclusive, EXCLUSIVE / possible, (1 - EXCLUSIVE) / np.maximum(seen_by_others, 1))


class _RewardBins(NamedTuple):
    """Entries of cells whose proven masses add up to more than 1, by the bin of their reward."""

    chosen: LongArray  # which of the cells, rising
    source: IntArray
    reward: LongArray  # which bin
    n: FloatArray


def _p_values_by_reward(rows: _RewardBins, visits: FloatArray, sources: int, edges: int, tests: int) -> FloatArray:
    """Return the p-values of cells for rewards divided in two: of the edge and pair of sources that look worst."""
    cells = int(rows.chosen.max(initial=-1)) + 1
    result = np.ones(cells)
    ordered = sources * (sources - 1)
    size = max(1, MOST_DENSE // (sources * (edges + 1)))
    for begin in range(0, cells, size):
        here = slice(*np.searchsorted(rows.chosen, (begin, begin + size)))
        cell, source = rows.chosen[here] - begin, rows.source[here]
        held = np.zeros((min(size, cells - begin), sources, edges + 1))
        np.add.at(held, (cell, source, rows.reward[here]), rows.n[here])
        total = np.ones(held.shape[:2])  # 1 where a source was never seen: it proves nothing
        total[cell, source] = visits[here]
        below = held.cumsum(axis=2)[..., :-1]
        above = held.sum(axis=2, keepdims=True) - below
        worst, most = np.zeros((4, len(held))), np.zeros(len(held))
        for i, j in itertools.permutations(range(sources), 2):
            one, two = below[:, i] / total[:, i, None], above[:, j] / total[:, j, None]
            error = np.sqrt(one * (1 - one) / total[:, i, None] + two * (1 - two) / total[:, j, None])
            excess = np.where((one > 0) & (two > 0), (one + two - 1) / np.maximum(error, 1e-9), 0.0)
            edge = excess.argmax(axis=1)
            at = np.flatnonzero(excess[np.arange(len(held)), edge] > most)
            most[at] = excess[at, edge[at]]
            worst[:, at] = below[at, i, edge[at]], above[at, j, edge[at]], total[at, i], total[at, j]
        found = np.flatnonzero(most > 0)
        if len(found):
            weight = worst[2:, found] ** -0.5
            share = (weight / weight.sum(axis=0)).T.ravel()
            chosen, outcome = np.repeat(np.arange(len(found)), 2), np.tile([0, 1], len(found))
            pair = _Candidates(chosen, outcome, worst[:2, found].T.ravel(), worst[2:, found].T.ravel(), share)
            result[begin + found] = _p_values(pair, tests * edges * ordered)
    return result


class _Candidates(NamedTuple):
    """Entries of cells whose proven masses add up to more than 1."""

    chosen: LongArray  # which of the cells, rising
    outcome: LongArray
    n: FloatArray
    visits: FloatArray
    share: FloatArray  # of a cell's alpha

    def exceed(self, log_alpha: FloatArray) -> BoolArray:
        """Whether the lower limits of each cell, given its alpha, add up to more than 1."""
        limits = betaincinv(self.n, self.visits - self.n + 1, np.exp(log_alpha)[self.chosen] * self.share)
        return _sum_of_maxima(self.chosen, self.outcome, limits) > 1

    def of(self, which: BoolArray) -> _Candidates:
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
