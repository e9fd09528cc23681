"""Clusters of states that cannot be listed (extra `fitted`), and tests in which episodes are the independent units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import FloatArray, LongArray

Number = TypeVar("Number", np.float32, np.float64)

CLUSTERS, ROWS_IN_CLUSTER = 50, 60
"""So many clusters of states are made, fewer where these would hold fewer rows on average."""

MOST_COORDINATES, PROJECTED = 64, 16
"""Observations of more numbers than the first are projected at random onto so many coordinates."""

AT_ONCE = 1000
"""So many observations are projected at a time; images are large."""

LEAST_EPISODES = 5
"""A mean over fewer episodes is not tested."""

ROUNDING = 1e-9
"""A coordinate whose spread is a smaller share of its size is constant."""


def few_coordinates(observations: npt.NDArray[Any], seed: int) -> FloatArray:
    """Return observations as standardised coordinates, projected at random if these are many."""
    numbers = math.prod(observations.shape[1:])
    if numbers > MOST_COORDINATES:
        seen = projected(observations, np.random.default_rng([seed, 1]).normal(size=(numbers, PROJECTED)))
    else:
        seen = np.asarray(observations, dtype=np.float64).reshape(len(observations), numbers)
    centre, spread = seen.mean(axis=0), seen.std(axis=0)
    return np.asarray((seen - centre) / np.where(spread > ROUNDING * np.abs(centre), spread, 1.0))


def projected(observations: npt.NDArray[Any], matrix: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return observations, as rows of numbers, times a matrix [numbers, coordinates]."""
    found = np.empty((len(observations), matrix.shape[1]), dtype=matrix.dtype)
    for begin in range(0, len(found), AT_ONCE):
        part = np.asarray(observations[begin : begin + AT_ONCE], dtype=matrix.dtype)
        found[begin : begin + AT_ONCE] = part.reshape(len(part), len(matrix)) @ matrix
    return found


def clusters_of(observations: npt.NDArray[Any], seed: int, clusters: int = CLUSTERS) -> LongArray:
    """Return the cluster of each observation, by k-means: 0, 1, 2, ..., none of them empty."""
    with needs_extra("Clusters of states", "fitted"):
        from sklearn.cluster import MiniBatchKMeans

    if not len(observations):
        return np.zeros(0, dtype=np.int64)
    seen = few_coordinates(observations, seed)
    most = min(clusters, max(1, len(seen) // ROWS_IN_CLUSTER), len(np.unique(seen, axis=0)))
    found = MiniBatchKMeans(most, random_state=seed, n_init=1).fit_predict(seen)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


class Means(NamedTuple):
    """Means of groups of rows, each array [groups]."""

    mean: FloatArray  # NaN without rows
    variance: FloatArray  # of the mean, with episodes as units; inf with fewer than two of them
    rows: LongArray
    episodes: LongArray

    def p_values(self) -> FloatArray:
        """Return one-sided p-values of a mean above 0; NaN with too few episodes."""
        result = np.full(len(self.mean), np.nan)
        for k in np.flatnonzero(self.episodes >= LEAST_EPISODES):
            mean, variance = self.mean[k], self.variance[k]
            alike = 0.0 if mean > 0 else 1.0  # all rows have the same value
            result[k] = stdtr(self.episodes[k] - 1, -mean / np.sqrt(variance)) if variance > 0 else alike
        return result


def means_of(values: FloatArray, group: LongArray, episode: LongArray, groups: int) -> Means:
    """Return the mean of each group's rows. Rows of one episode may depend on each other, episodes do not."""
    rows = np.bincount(group, minlength=groups)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(group, values, minlength=groups) / rows
    _, first, unit = np.unique(
        group * (int(episode.max(initial=0)) + 1) + episode, return_index=True, return_inverse=True
    )
    sums = np.bincount(unit, values - mean[group], minlength=len(first))
    episodes = np.bincount(group[first], minlength=groups)
    squares = np.bincount(group[first], sums**2, minlength=groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(episodes > 1, squares * episodes / (episodes - 1) / rows**2, np.inf)
    return Means(mean, variance, rows, episodes)


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return p-values corrected for their number by Holm's method; those that are NaN do not count, and stay."""
    given = np.asarray(p_values, dtype=np.float64).ravel()
    order = np.argsort(given)[: int(np.isfinite(given).sum())]
    result = np.full(len(given), np.nan)
    result[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)))
    return result.reshape(np.shape(p_values))
