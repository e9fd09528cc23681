"""Estimates over runs, with intervals: pure functions on arrays [runs] or [runs, tasks].

After Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of the Statistical Precipice". Random numbers come
from a generator of our own: the same data give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError

RESAMPLES = 4_000
LEVEL = 0.95

Interval = tuple[float, float, float]
"""An estimate, and the lower and upper end of its interval."""


def mean(values: FloatArray) -> FloatArray:
    """Return the mean over runs and tasks: float64 [...] of [..., runs, tasks]."""
    return np.asarray(values.mean(axis=(-2, -1)))


def bootstrap_interval(
    statistic: Callable[..., FloatArray], *samples: FloatArray, paired: bool = False, resamples: int = RESAMPLES
) -> Interval:
    """Return a statistic of samples and its 95% percentile interval over runs; a single run has no width.

    Args:
        statistic: a function of arrays [..., runs, tasks], one for each sample.
        samples: float64 [runs] or [runs, tasks]; runs are resampled within each task.
        paired: run i of one sample belongs to run i of the others, and is drawn with them.
        resamples: the number of resamples.

    Examples:
        >>> bootstrap_interval(mean, np.array([1.0, 2.0, 3.0]))
        (2.0, 1.0, 3.0)
    """
    tables = [np.asarray(sample, dtype=np.float64) for sample in samples]
    tables = [table[:, None] if table.ndim == 1 else table for table in tables]
    if any(table.size == 0 for table in tables) or (paired and len({table.shape for table in tables}) > 1):
        raise ArgumentError(f"Samples of shapes {[table.shape for table in tables]} have no interval.")
    estimate = float(statistic(*tables))
    if all(len(table) == 1 for table in tables):
        return estimate, estimate, estimate
    rng = np.random.default_rng(0)
    drawn, rows = [], None
    for table in tables:
        if rows is None or not paired:
            rows = rng.integers(len(table), size=(resamples, *table.shape))
        drawn.append(np.take_along_axis(table[None], rows, axis=1))
    low, high = np.quantile(statistic(*drawn), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return estimate, float(low), float(high)


def mean_interval(values: FloatArray) -> Interval:
    """Return a mean over runs and its interval."""
    return bootstrap_interval(mean, values)


def curve_intervals(curves: FloatArray, resamples: int = 2000) -> FloatArray:
    """Return means over runs along curves and the ends of their 95% intervals, point by point: float64 [3, points].

    Args:
        curves: float64 [runs, points]; a run is drawn with its complete curve.
        resamples: the number of resamples.
    """
    rng = np.random.default_rng(0)
    rows = rng.integers(len(curves), size=(resamples, len(curves)))
    weights = np.zeros((resamples, len(curves)))
    np.add.at(weights, (np.arange(resamples)[:, None], rows), 1 / len(curves))
    low, high = np.quantile(weights @ curves, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return np.stack([curves.mean(axis=0), low, high])
