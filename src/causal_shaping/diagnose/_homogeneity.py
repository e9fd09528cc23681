"""Whether two samples come from one distribution: Pearson's test of 2 x k tables, compiled, for many tables at once.

- `pearson`: statistic and number of columns of each table.
- `permutation_p_values`: p-values of the permutation test, valid at any count.

Given the margins of a table, the permutation test deals the outcomes to the two samples at random: the first row is
then multivariate hypergeometric. Dealing takes about 1 / p deals, too many for the small p-values that matter among
many tables. So what a thousand deals do not decide is decided in one of two ways. With X2 = sum over o of c_o(a_o) the
statistic, t the one found, T_o the column totals, N their sum, and k columns:

- Each column is hypergeometric, and P(X2 >= t) <= sum over o of P(c_o >= t (1 - T_o / N) / (k - 1)), since these
  shares of t add up to t. With two columns this is exact: each determines the other.
  If a single column is so far from its mean that c_o >= t (1 - T_o / N), then X2 >= t, as the others have to make up
  for it. So the largest of these chances is at most P(X2 >= t): if it exceeds what could be reported, nothing is dealt.
- Otherwise deals are drawn from the law that gives large statistics exp(lambda X2) times the weight, and weighed by
  exp(-lambda X2) E[exp(lambda X2)]: importance sampling. The expectation is that of independent binomials given their
  sum, a convolution of k columns, and at the best lambda half of all such deals are as extreme as what was found. The
  p-value is the estimate plus three standard errors, or Chernoff's bound E[exp(lambda X2)] exp(-lambda t) if smaller;
  plus the chance of deals with a column so far out that they are left aside, a small part of what would be reported.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray, LongArray

EXCEEDANCES = 20
"""Dealing stops when this many deals were at least as extreme (Besag and Clifford 1991)."""

GIVEN_UP = 1e-3
"""Dealing stops at the first deal that is at least as extreme, if a p-value small enough to be reported shows one with
at most this chance."""

FEW_DEALS, MANY_DEALS = 1000, 100_000
"""Dealing stops after this many deals: few if importance sampling can go on, else many."""

WEIGHTED_DEALS = 1000
"""How many deals importance sampling takes."""

MOST_WORK = 2e7
"""A convolution of more multiplications than this takes too long."""

NEVER = 1e-30
"""A chance that nobody needs to distinguish from none."""

STEEPEST = 400.0
"""The most that a convolution's largest terms may exceed its central ones, as a logarithm: nothing underflows."""

SURELY = 1.001
"""More than the rounding of a sum of tails, as a factor."""

TIE = 1 - 1e-12
"""Statistics that reach this share of the one found count as ties."""


LOG_FACTORIALS = np.array([math.lgamma(k + 1.0) for k in range(64)])
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Samples(NamedTuple):
    """Outcomes in rising order, and how often each occurred; a sample is a range of them."""

    outcome: LongArray
    n: FloatArray


class Pairs(NamedTuple):
    """Pairs of samples: the ranges of the first and of the second."""

    begin: LongArray
    end: LongArray
    other_begin: LongArray
    other_end: LongArray


@njit(nogil=True)
def _merged(samples: Any, begin: int, end: int, other_begin: int, other_end: int, first: Any, total: Any) -> Any:
    """Write the table of two samples, its first row and its column totals; return the number of columns."""
    outcome, n = samples
    i, j, columns = begin, other_begin, 0
    while i < end or j < other_end:
        one = j == other_end or (i < end and outcome[i] <= outcome[j])
        two = i == end or (j < other_end and outcome[j] <= outcome[i])
        first[columns] = n[i] if one else 0.0
        total[columns] = first[columns] + (n[j] if two else 0.0)
        i += one
        j += two
        columns += 1
    return columns


@njit(nogil=True)
def _statistic(first: Any, total: Any, columns: int, share: float) -> Any:
    result = 0.0
    for o in range(columns):
        expected = total[o] * share
        result += (first[o] - expected) ** 2 / (expected * (1 - share))
    return result


@njit(nogil=True)
def pearson(samples: Any, pairs: Any) -> Any:
    """Return Pearson's statistic of each table, and how many columns it has."""
    begin, end, other_begin, other_end = pairs
    statistic, columns = np.zeros(len(begin)), np.zeros(len(begin), dtype=np.int64)
    longest = 0
    for i in range(len(begin)):
        longest = max(longest, end[i] - begin[i] + other_end[i] - other_begin[i])
    first, total = np.empty(longest), np.empty(longest)
    for i in range(len(begin)):
        k = _merged(samples, begin[i], end[i], other_begin[i], other_end[i], first, total)
        columns[i] = k
        if k > 1:
            statistic[i] = _statistic(first, total, k, first[:k].sum() / total[:k].sum())
    return statistic, columns


@njit(nogil=True)
def permutation_p_values(samples: Any, pairs: Any, rng: Any, deals: int, enough: float, largest: float = 1.0) -> Any:
    """Return the p-value of each table, given at most `deals` deals.

    Bounds of `enough` or less are not improved, and no p-value above `largest` is of interest.
    """
    begin, end, other_begin, other_end = pairs
    result = np.ones(len(begin))
    longest = 0
    for i in range(len(begin)):
        longest = max(longest, end[i] - begin[i] + other_end[i] - other_begin[i])
    first, total, dealt = np.empty(longest), np.empty(longest), np.empty(longest)
    for i in range(len(begin)):
        k = _merged(samples, begin[i], end[i], other_begin[i], other_end[i], first, total)
        result[i] = _p_value(first[:k], total[:k], dealt[:k], rng, deals, enough, largest)
    return result


@njit(nogil=True)
def _p_value(first: Any, total: Any, dealt: Any, rng: Any, deals: int, enough: float, largest: float) -> Any:
    columns = len(total)
    if columns < 2:
        return 1.0
    size, row = total.sum(), first.sum()
    if 2 * row > size:  # the test treats both rows alike: take the smaller one
        for o in range(columns):
            first[o] = total[o] - first[o]
        row = size - row
    # The largest columns first, so that a deal is soon over.
    order = np.argsort(-total)
    first[:], total[:] = first[order], total[order]
    share = row / size
    found = _statistic(first, total, columns, share) * TIE
    bound = _tails(total, row, size, found, columns - 1)
    if bound <= enough:
        return bound
    if columns == 2:
        return min(1.0, bound)
    work = 0.0
    for o in range(columns):
        work += min(total[o], row) * row
    deals = min(deals, FEW_DEALS if work <= MOST_WORK else MANY_DEALS)
    exceedances = 1 if largest * deals <= GIVEN_UP else EXCEEDANCES
    if exceedances == 1 and _tails(total, row, size, found, 1) > SURELY * columns * largest:
        return min(1.0, bound)
    extreme, done = 0, 0
    while done < deals and extreme < exceedances:
        _deal(total, row, size, rng, dealt)
        extreme += _statistic(dealt, total, columns, share) >= found
        done += 1
    result = min(bound, (extreme + 1) / (done + 1))
    if extreme < exceedances and work <= MOST_WORK and result > enough:
        weighted = _weighted_deals(total, row, size, found, rng, dealt, max(enough, NEVER))
        return min(bound, weighted) if weighted < 1 else result
    return result


# Small p-values ------------------------------------------------------------------------------------------------------


@njit(nogil=True)
def _tails(total: Any, row: float, size: float, found: float, shares: int) -> Any:
    """Return the sum over columns of the chance that one is so far from its mean as its share of the statistic asks."""
    columns, share, result = len(total), row / size, 0.0
    for o in range(columns):
        part = found * (1 - total[o] / size) / shares
        expected = total[o] * share
        far = math.sqrt(part * expected * (1 - share))
        result += _tail(math.ceil(expected + far - 1e-9), total[o], size - total[o], row)
        # The lower tail: what is not dealt to the first row is dealt to the second.
        result += _tail(math.ceil(total[o] - expected + far - 1e-9), total[o], size - total[o], size - row)
        if columns == 2:
            return result  # the second column mirrors the first
    return result


@njit(nogil=True)
def _tail(least: float, good: float, bad: float, drawn: float) -> Any:
    """Return an upper bound of the chance to draw `least` good ones or more: terms fall at least geometrically."""
    if least > min(good, drawn):
        return 0.0
    if least <= max(0.0, drawn - bad):
        return 1.0
    term = math.exp(_log_choose(good, least) + _log_choose(bad, drawn - least) - _log_choose(good + bad, drawn))
    result, count = 0.0, least
    while True:
        result += term
        ratio = (good - count) * (drawn - count) / ((count + 1) * (bad - drawn + count + 1))
        if ratio < 1 and term * ratio <= 1e-6 * result * (1 - ratio):  # what is left is less than a geometric series
            return min(1.0, result + term * ratio / (1 - ratio))
        term *= ratio
        count += 1


@njit(nogil=True)
def _weighted_deals(total: Any, row: float, size: float, found: float, rng: Any, dealt: Any, aside: float) -> Any:
    """Return an estimate of a small p-value by importance sampling; 1 if that is not possible."""
    columns, share, m = len(total), row / size, int(row)
    layers, terms = np.zeros((columns + 1, m + 1)), np.zeros((columns, m + 1))
    most = np.empty(columns, dtype=np.int64)  # more is left aside: the chance is at most that of the upper tails
    for o in range(columns):
        top = math.ceil(total[o] * share) + 1.0
        while _tail(top + 1, total[o], size - total[o], row) > aside / columns:
            top += 1
        most[o] = int(min(top, total[o], row))
    # Near the best lambda, from that of a chi-squared distribution downwards or upwards.
    tilt = 0.5 * max(0.1, 1 - (columns - 1) / found)
    best = _log_expectation(total, most, row, size, tilt, layers, terms) - tilt * found
    for factor in (1 / 1.5, 1.5):
        while 1e-6 < tilt * factor < 10:
            log_mean = _log_expectation(total, most, row, size, tilt * factor, layers, terms)
            log_bound = log_mean - tilt * factor * found
            if log_bound >= best and math.isfinite(best):
                break
            tilt, best = tilt * factor, log_bound
    log_mean = _log_expectation(total, most, row, size, tilt, layers, terms)
    if not math.isfinite(log_mean):
        return 1.0
    first, second = 0.0, 0.0
    for _ in range(WEIGHTED_DEALS):
        left = m
        for o in range(columns - 1, -1, -1):
            until, a = rng.random() * layers[o + 1, left], 0
            end = min(left, most[o])
            while a < end:
                until -= layers[o, left - a] * terms[o, a]
                if until < 0:
                    break
                a += 1
            dealt[o] = a
            left -= a
        statistic = _statistic(dealt, total, columns, share)
        if statistic >= found:
            weight = math.exp(tilt * (found - statistic))
            first += weight
            second += weight * weight
    mean = first / WEIGHTED_DEALS
    error = math.sqrt(max(0.0, second / WEIGHTED_DEALS - mean * mean) / WEIGHTED_DEALS)
    share_of_bound = min(1.0, mean + 3 * error + 1 / WEIGHTED_DEALS)
    return min(1.0, aside + math.exp(min(0.0, log_mean - tilt * found)) * share_of_bound)


@njit(nogil=True)
def _log_expectation(total: Any, most: Any, row: float, size: float, tilt: float, layers: Any, terms: Any) -> Any:
    """Return log E[exp(tilt X2)] of deals with no column above `most`, inf if it cannot be had.

    Write the terms of each column and their convolutions.
    """
    columns, share, m = len(total), row / size, int(row)
    scale, steepness, reach = 0.0, 0.0, 0
    layers[:] = 0.0
    layers[0, 0] = 1.0
    for o in range(columns):
        end, expected = most[o], total[o] * share
        largest = -np.inf
        for a in range(end + 1):
            square = (a - expected) ** 2 / (expected * (1 - share))
            terms[o, a] = _log_binomial(a, total[o], share) + tilt * square
            largest = max(largest, terms[o, a])
        steepness += largest - terms[o, int(expected)]
        if steepness > STEEPEST:
            return np.inf
        for a in range(end + 1):
            terms[o, a] = math.exp(terms[o, a] - largest)
        for before in range(reach + 1):
            for a in range(min(end, m - before) + 1):
                layers[o + 1, before + a] += layers[o, before] * terms[o, a]
        reach = min(m, reach + end)
        top = layers[o + 1].max()
        # The scale of a layer goes into the terms, so that a layer is the convolution of the one before and the terms.
        layers[o + 1] /= top
        terms[o, : end + 1] /= top
        scale += largest + math.log(top)
    if layers[columns, m] <= 0:
        return np.inf
    return scale + math.log(layers[columns, m]) - _log_binomial(row, size, share)


# Random deals --------------------------------------------------------------------------------------------------------


@njit(nogil=True)
def _deal(total: Any, row: float, size: float, rng: Any, dealt: Any) -> Any:
    """Deal `row` of all outcomes, at random, to the first row."""
    left, rest = row, size
    for o in range(len(total)):
        rest -= total[o]
        dealt[o] = left if rest <= 0 else _hypergeometric(total[o], rest, left, rng)
        left -= dealt[o]


@njit(nogil=True)
def _hypergeometric(good: float, bad: float, drawn: float, rng: Any) -> Any:
    """Return how many of those drawn without replacement are good."""
    size = good + bad
    if drawn == 0 or good == 0:
        return 0.0
    # By symmetry: draw the smaller part, and count the rarer kind.
    few, rare = min(drawn, size - drawn), min(good, bad)
    if few < 10 or rare < 10:
        count = _one_by_one(min(few, rare), max(few, rare), size, rng)
    else:
        count = _ratio_of_uniforms(rare, size - rare, few, rng)
    if good > bad:
        count = few - count
    return good - count if few < drawn else count


@njit(nogil=True)
def _one_by_one(fewer: float, marked: float, size: float, rng: Any) -> Any:
    """Draw one after another from `size`, of which some are marked; the two numbers can be exchanged."""
    count = 0.0
    for i in range(int(fewer)):
        count += rng.random() * (size - i) < marked - count
    return count


@njit(nogil=True)
def _ratio_of_uniforms(rare: float, common: float, few: float, rng: Any) -> Any:
    """Stadlober's algorithm HRUA (1989), as in NumPy."""
    size = rare + common
    mean = few * rare / size
    centre = mean + 0.5
    width = math.sqrt((size - few) * few * (rare / size) * (common / size) / (size - 1) + 0.5)
    spread = 1.7155277699214135 * width + 0.8989161620588988
    mode = math.floor((few + 1) * (rare + 1) / (size + 2))
    top = _log_ways(mode, rare, common, few)
    end = min(min(few, rare) + 1, math.floor(centre + 16 * width))
    while True:
        u, v = rng.random(), rng.random()
        if u == 0.0:
            continue
        x = centre + spread * (v - 0.5) / u
        if x < 0.0 or x >= end:
            continue
        count = math.floor(x)
        gap = top - _log_ways(count, rare, common, few)
        if u * (4.0 - u) - 3.0 <= gap:
            return count
        if u * (u - gap) < 1 and 2.0 * math.log(u) <= gap:
            return count


@njit(nogil=True)
def _log_ways(count: float, rare: float, common: float, few: float) -> Any:
    dealt = _log_factorial(count) + _log_factorial(rare - count)
    return dealt + _log_factorial(few - count) + _log_factorial(common - few + count)


@njit(nogil=True)
def _log_choose(n: float, k: float) -> Any:
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)


@njit(nogil=True)
def _log_factorial(k: float) -> Any:
    """Return log k!, by Stirling's series beyond the table."""
    if k < len(LOG_FACTORIALS):
        return LOG_FACTORIALS[int(k)]
    inverse = 1 / k
    series = inverse * (1 / 12 - inverse * inverse * (1 / 360 - inverse * inverse / 1260))
    return (k + 0.5) * math.log(k) - k + HALF_LOG_TWO_PI + series


@njit(nogil=True)
def _log_binomial(k: float, n: float, p: float) -> Any:
    return _log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p)
