"""Confidence limits of a probability, from how often an event happened.

- `lower_limit`, `upper_limit`: one-sided limits, wrong with probability at most alpha.
- `Sampling`: which kind of limit, and the alpha that makes all of them hold at once.

Two kinds. *Exact* (Clopper and Pearson 1934) is for a number of trials that was fixed beforehand. *Time-uniform* holds
for all numbers of trials at once, so also where what happened decides how many trials there are, as with visits to a
state. It is the beta-binomial mixture of Robbins (1970): for the true p, with k of n trials,

    M_n = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k))

is a martingale that starts at 1, so by Ville's inequality it ever reaches 1 / alpha with probability alpha at most; the
limits are the smallest and largest p with M_n < 1 / alpha. Trials may also lie anywhere in [0, 1]: since a^z b^(1 - z)
is convex in z, M_n is then a supermartingale, and k is the sum of the trials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray

NOTHING = 1e-100
"""A sum of trials below this counts as 0, so that nothing overflows."""

MOST_TRIALS = 2.0**36
"""More trials than this tighten a time-uniform limit no further: its terms grow like n log n, and at 2^50 trials their
rounding would exceed the evidence that is asked for."""


class Sampling(NamedTuple):
    """How limits are taken."""

    alpha: float  # the probability that a limit is wrong
    exact: bool  # for a number of trials fixed beforehand; otherwise time-uniform


def lower_limit(count: npt.ArrayLike, n: npt.ArrayLike, alpha: npt.ArrayLike, exact: bool = True) -> FloatArray:
    """Return lower limits of the probability of events that happened `count` times in n trials.

    Examples:
        >>> lower_limit(10, 10, 0.05).round(4), lower_limit(10, 10, 0.05, exact=False).round(4)
        (np.float64(0.7411), np.float64(0.623))
    """
    count, n = np.asarray(count, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if exact:
        return np.where(count > 0, betaincinv(np.maximum(count, 1), n - count + 1, alpha), 0.0)[()]
    share = np.minimum(1.0, MOST_TRIALS / np.maximum(n, 1.0))
    k, trials, evidence = map(np.array, np.broadcast_arrays(share * count, share * n, -np.log(alpha)))
    return np.asarray(_uniform_lowers(k.ravel(), trials.ravel(), evidence.ravel()).reshape(k.shape))[()]


def upper_limit(count: npt.ArrayLike, n: npt.ArrayLike, alpha: npt.ArrayLike, exact: bool = True) -> FloatArray:
    """Return upper limits: what happens is limited from above as what does not happen is from below."""
    return 1.0 - lower_limit(np.asarray(n) - np.asarray(count), n, alpha, exact)


@njit(nogil=True)
def _uniform_lowers(k, n, evidence):  # type: ignore[no-untyped-def]
    """Return `_uniform_lower` of each."""
    result = np.empty(len(k))
    for i in range(len(k)):
        result[i] = _uniform_lower(k[i], n[i], evidence[i])
    return result


@njit(nogil=True)
def _uniform_lower(k, n, evidence):  # type: ignore[no-untyped-def]
    """Return the p below k / n at which log M_n is `evidence`, by Newton's method in t = log p.

    The log-likelihood k t + (n - k) log(1 - e^t) is concave and rises up to k / n. From a point left of the solution,
    Newton's steps rise towards it and never pass it, so that stopping early errs to the safe side.
    """
    if k < NOTHING:
        return 0.0
    mixture = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1.0) - math.log(math.pi)
    wanted = mixture - evidence
    t = wanted / k  # the first term alone: the second is negative
    for _ in range(100):
        p = math.exp(t)
        if p >= 1.0 or n * p >= k:
            break
        step = (wanted - k * t - (n - k) * math.log1p(-p)) / (k - (n - k) * p / (1.0 - p))
        if step <= 1e-13:
            break
        t += step
    return math.exp(t)
