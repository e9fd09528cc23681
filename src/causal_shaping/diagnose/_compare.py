"""Whether sources fit together: comparisons of what they show after the same action in the same state.

- `disagreements`: the (s, x) after which two sources show outcomes that differ by more than chance.
- `smallest_confounding`: the smallest Gamma at which two sources can both be right.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri

from causal_shaping._compile import njit
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds.agreement import cell_parts
from causal_shaping.bounds.limits import FixedTrials
from causal_shaping.bounds.outcomes import equal_rewards
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins, groups, ranges
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN
from causal_shaping.diagnose._homogeneity import Pairs, Samples, pearson, permutation_p_values
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
    step: IntArray  # 0 if steps are pooled
    state: IntArray
    action: IntArray
    p_value: FloatArray  # corrected for all comparisons (Holm)
    compared: int  # how many (pair of sources, [step,] s, x) were compared
    shared: int  # how many both sources of a pair took
    entries: Entries
    pairs: Pairs  # where in the entries what the two show stands


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


def known_next_state(counts: Counts) -> IntArray:
    """Return the next state of each entry; unknown for all that ended, if a source does not log where episodes end."""
    unlogged = (counts.terminated & (counts.next_state == UNKNOWN)).any()
    return np.where(counts.terminated, UNKNOWN, counts.next_state) if unlogged else counts.next_state


def _reward_codes(counts: Counts) -> LongArray:
    """Return a number per entry for its reward; rewards that differ by rounding have the same."""
    if counts.space.reward_bins is not None:
        return np.asarray(counts.space.reward_bins(counts.reward_min), dtype=np.int64)
    distinct, position = np.unique(counts.reward_min, return_inverse=True)
    return equal_rewards(distinct)[position]


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
    step, state, action = cell_parts(counts, entries.cell[pairs.begin])
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
    limits = FixedTrials(alpha)
    of_column = FixedTrials(alpha[table])
    low, high = of_column.lower(n, taken[:, table]), of_column.upper(n, taken[:, table])
    unseen = limits.upper(np.zeros_like(taken), taken)
    propensity = limits.lower(taken, visits)

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
