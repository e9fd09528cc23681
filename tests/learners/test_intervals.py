"""Estimates over runs against scipy, and what intervals must be whatever the data are."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from properties import fewer
from scipy import stats

from causal_shaping.errors import ArgumentError
from causal_shaping.learners.intervals import (
    bootstrap_interval,
    curve_intervals,
    mean,
    mean_interval,
)
from studies.statistics import interquartile_mean, ratio_of_means

NUMBERS = st.integers(-5, 5).map(float)
TABLES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=NUMBERS)


@given(TABLES)
def test_the_interquartile_mean_is_the_mean_without_the_outer_quarters(values):
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=None))


def test_the_interval_of_a_mean_is_scipys_percentile_bootstrap():
    values = np.random.default_rng(1).lognormal(size=25)
    ours = mean_interval(values)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=2).confidence_interval
    assert ours[0] == pytest.approx(values.mean())
    assert ours[1:] == pytest.approx([theirs.low, theirs.high], rel=0.03)


@fewer(50)
@given(TABLES)
def test_an_interval_holds_its_estimate_and_lies_within_the_data(values):
    estimate, low, high = bootstrap_interval(mean, values, resamples=200)
    assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9
    assert (low, high) == bootstrap_interval(mean, values, resamples=200)[1:]
    if len(values) == 1:
        assert estimate == low == high


def test_runs_are_drawn_anew_within_each_task():
    """Two tasks, each constant over its runs: the mean has no spread, however different the tasks are."""
    values = np.tile([1.0, 100.0], (6, 1))
    assert bootstrap_interval(mean, values) == (50.5, 50.5, 50.5)
    low, high = bootstrap_interval(mean, values.T)[1:]  # now runs differ within each task
    assert low < 30 < 70 < high


def test_pairs_stay_together():
    values = np.random.default_rng(3).random(12)
    assert bootstrap_interval(ratio_of_means, 2 * values, values, paired=True) == pytest.approx((2, 2, 2))
    _, low, high = bootstrap_interval(ratio_of_means, 2 * values, values)
    assert low < 1.8
    assert high > 2.2
    with pytest.raises(ArgumentError, match="no interval"):
        bootstrap_interval(ratio_of_means, values, values[:5], paired=True)
    with pytest.raises(ArgumentError, match="no interval"):
        mean_interval(np.zeros(0))


def test_intervals_along_curves_are_those_of_each_point():
    curves = np.random.default_rng(5).normal(size=(15, 4)).cumsum(axis=1)
    middle, low, high = curve_intervals(curves, 20_000)
    for point in range(4):
        estimate, below, above = mean_interval(curves[:, point])
        assert middle[point] == pytest.approx(estimate)
        assert (low[point], high[point]) == pytest.approx((below, above), abs=0.05)
