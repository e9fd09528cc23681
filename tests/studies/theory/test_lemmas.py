"""The small lemmas hold for all inputs, and are not slack where they are used."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from studies.paper.theory.lemmas import clip, clip_lemma, clipped_sum, deviation, learning_rates

SIZES = st.floats(0, 1e3)


@pytest.mark.parametrize("horizon", [1, 2, 5, 20])
def test_learning_rates_have_the_properties_of_the_lemma(horizon):
    for visits in (*range(1, 30), 100, 1000):
        weights = learning_rates(horizon, visits)
        assert weights.sum() == pytest.approx(1)
        assert weights[0] == 0
        shared = (weights[1:] / np.sqrt(np.arange(1, visits + 1))).sum() * math.sqrt(visits)
        assert 1 - 1e-12 <= shared <= 2
        assert weights[1:].max() <= 2 * horizon / visits + 1e-12
        assert (weights[1:] ** 2).sum() <= 2 * horizon / visits + 1e-12
    for first in (1, 2, 10):  # print says i > 1; it is true of 1, too
        tail = sum(learning_rates(horizon, visits)[first] for visits in range(first, 2000))
        left_out = 10 * first**2 * horizon / 2000  # the terms that follow fall at least like 1 / t^2
        assert 1 + 1 / horizon - left_out <= tail <= 1 + 1 / horizon + 1e-9


@given(SIZES, SIZES, st.floats(1e-6, 1e3), st.floats(1e-6, 1))
def test_the_clip_lemma_holds(a, b, c, x):
    assume(a + b >= c)
    assert clip_lemma(a, b, c, x) >= -1e-9 * (a + b)


@given(st.floats(0.01, 30), st.floats(0.3, 5), st.integers(0, 400))
def test_clipped_sums_are_bounded_by_the_lemma_and_by_half_of_it(scale, threshold, most):
    terms = clip(scale / np.sqrt(np.arange(1, most + 1)), threshold)
    assert terms.sum() <= clipped_sum(scale, threshold, most) + 1e-9
    assert clipped_sum(scale, threshold) <= 2 * scale**2 / threshold + 1e-9  # print has 4


def exceeding(horizon, visits, chance, size):
    """The exact chance that a weighted mean of coins with this probability strays below its mean by at least `size`."""
    weights = learning_rates(horizon, visits)[1:]
    total = 0.0
    for coins in itertools.product((0, 1), repeat=visits):
        tossed = np.array(coins)
        if (weights * (chance - tossed)).sum() >= size - 1e-12:
            total += chance ** tossed.sum() * (1 - chance) ** (visits - tossed.sum())
    return total


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_the_concentration_lemma_holds_by_enumeration(chance):
    for horizon, visits, iota in itertools.product((1, 3), (1, 4, 9), (0.02, 0.1, 0.5, 1.5)):
        size = float(deviation(1.0, horizon, iota, visits))
        assert exceeding(horizon, visits, chance, size) <= math.exp(-iota) + 1e-12
