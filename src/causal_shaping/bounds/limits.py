"""One-sided confidence limits of a probability, from how often an event happened.

A bound on values reads many probabilities off counts. Each class below says how one probability is
read off the count of an event that happened `count` times in `trials` trials:

- `PlugIn`: the observed share itself, without allowance for sampling error.
- `FixedTrials`: Clopper and Pearson (1934), for a number of trials that was fixed beforehand.
- `AnyTrials`: limits that hold at all sample sizes at once (Robbins, 1970), for a number of trials
  that depends on what happened, as the number of visits to a state does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray

MAX_TRIALS = 2.0**36
"""`AnyTrials` scales larger samples down to this size. Its terms grow like n log n, and at 2**50
trials their rounding error would exceed the evidence that decides."""

SMALLEST_COUNT = 1e-100
"""Fractional counts below this are treated as 0, so that nothing overflows."""

NEWTON_STEPS = 100
"""The most steps of Newton's method; about ten are usual."""

NEWTON_TOLERANCE = 1e-13
"""Newton's method stops when log p changes by less than this."""


@dataclass(frozen=True)
class PlugIn:
    """The observed shares."""

    def lower(self, count: FloatArray, trials: FloatArray) -> FloatArray:
        """Return count / trials, 0 where there were no trials."""
        return np.divide(count, trials, out=np.zeros(np.shape(count)), where=trials > 0)

    def upper(self, count: FloatArray, trials: FloatArray) -> FloatArray:
        """Return count / trials, 1 where there were no trials."""
        return np.divide(count, trials, out=np.ones(np.shape(count)), where=trials > 0)


@dataclass(frozen=True)
class FixedTrials:
    """Clopper-Pearson limits, each wrong with probability `alpha` at most: a number or an array."""

    alpha: Any

    def lower(self, count: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
        """Return the p at which `count` or more events have probability alpha.

        Examples:
            >>> FixedTrials(0.05).lower(10, 10).round(4)
            np.float64(0.7411)
        """
        count, trials = np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64)
        limit = betaincinv(np.maximum(count, 1.0), trials - count + 1.0, self.alpha)
        return np.where(count > 0, limit, 0.0)[()]

    def upper(self, count: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
        """Return one minus the lower limit of the complement."""
        return 1.0 - self.lower(np.subtract(trials, count), trials)


@dataclass(frozen=True)
class AnyTrials:
    """Time-uniform limits: with probability 1 - `alpha` a limit holds at every sample size.

    For the true probability p and k events in n trials, the beta-binomial mixture

        M_n = B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k))

    is a martingale that starts at 1. By Ville's inequality it ever reaches 1 / alpha with
    probability alpha at most. The lower limit is the smallest p with M_n < 1 / alpha.

    Trials may also be fractional, anywhere in [0, 1], with k their sum: p^z (1 - p)^(1 - z) is
    convex in z, so M_n is then a supermartingale.
    """

    alpha: float

    def lower(self, count: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
        """Return the smallest p that the evidence does not reject.

        Examples:
            >>> AnyTrials(0.05).lower(10, 10).round(4)
            np.float64(0.623)
        """
        given, tried = np.broadcast_arrays(
            np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64)
        )
        limits = np.zeros(given.shape)
        some = given >= SMALLEST_COUNT
        scale = np.minimum(1.0, MAX_TRIALS / np.maximum(tried[some], 1.0))
        k, n = scale * given[some], scale * tried[some]
        limits[some] = _time_uniform_limits(k, n, math.log(self.alpha))
        return limits[()]

    def upper(self, count: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
        """Return one minus the lower limit of the complement."""
        return 1.0 - self.lower(np.subtract(trials, count), trials)


Limits: TypeAlias = PlugIn | FixedTrials | AnyTrials


@njit(nogil=True)
def _time_uniform_limits(k: Any, n: Any, log_alpha: float) -> Any:
    """Return the p below k / n at which log M_n = -log alpha, by Newton's method in t = log p.

    That is k log p + (n - k) log(1 - p) = target. The left side is concave in t and rises up to
    p = k / n. Newton's steps from the left of the solution rise towards it and never pass it, so
    stopping early errs to the safe side.
    """
    solution = np.empty(len(k))
    for i in range(len(k)):
        log_beta = (
            math.lgamma(k[i] + 0.5) + math.lgamma(n[i] - k[i] + 0.5) - math.lgamma(n[i] + 1.0)
        )
        target = log_beta - math.log(math.pi) + log_alpha
        t = target / k[i]  # the first term alone: the second one is negative
        for _ in range(NEWTON_STEPS):
            p = math.exp(t)
            if p >= 1.0 or n[i] * p >= k[i]:
                break
            slope = k[i] - (n[i] - k[i]) * p / (1.0 - p)
            step = (target - k[i] * t - (n[i] - k[i]) * math.log1p(-p)) / slope
            if step <= NEWTON_TOLERANCE:
                break
            t += step
        solution[i] = math.exp(t)
    return solution
