"""The small lemmas hold for all inputs, and are not slack where they are used."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from causal_shaping import CausalShapingError
from studies.paper.theory import clip, clip_lemma, clipped_sum, deviation, learning_rates, log_term

SIZES = st.floats(0, 1e3)


def exact_rates(horizon, visits):
    """alpha_t^i by the definition, in fractions."""
    rate = [Fraction(horizon + 1, horizon + t) for t in range(1, visits + 1)]
    result = [math.prod((1 - a for a in rate), start=Fraction(1))]
    result += [rate[i] * math.prod((1 - a for a in rate[i + 1 :]), start=Fraction(1)) for i in range(visits)]
    return result


@pytest.mark.parametrize("horizon", [1, 2, 5, 20])
def test_learning_rates_are_those_of_the_definition(horizon):
    for visits in (0, 1, 2, 7, 40):
        assert learning_rates(horizon, visits) == pytest.approx([float(a) for a in exact_rates(horizon, visits)])


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


def test_no_visits_leave_the_initial_value():
    assert learning_rates(3, 0).tolist() == [1.0]


@given(SIZES, SIZES, st.floats(1e-6, 1e3), st.floats(1e-6, 1))
def test_the_clip_lemma_holds(a, b, c, x):
    assume(a + b >= c)
    assert clip_lemma(a, b, c, x) >= -1e-9 * (a + b)


def test_the_clip_lemma_breaks_as_printed_and_with_a_larger_threshold():
    assert clip_lemma(1, 3, 4, 0.1, printed=True) == pytest.approx(-0.7)
    assert clip_lemma(1, 3, 4, 0.1) == pytest.approx(0.3)
    # Twice the threshold, x c: a just below it is clipped, and x b is not enough to make up for it.
    a, c, x = 0.19, 1.0, 0.2
    assert clip(a, x * c) + (1 + x) * (c - a) < c
    assert clip_lemma(a, c - a, c, x) == pytest.approx(x * (c - a))
    assert clip(2.0, 2.0) == 2


def test_the_clip_lemma_refuses_what_it_is_not_about():
    for bad in ((1, 1, 3, 0.5), (-1, 5, 3, 0.5), (1, 3, 4, 0), (1, 3, 4, 1.5), (0, 0, 0, 0.5)):
        with pytest.raises(CausalShapingError, match="clip lemma"):
            clip_lemma(*bad)


@given(st.floats(0.01, 30), st.floats(0.3, 5), st.integers(0, 400))
def test_clipped_sums_are_bounded_by_the_lemma_and_by_half_of_it(scale, threshold, most):
    terms = clip(scale / np.sqrt(np.arange(1, most + 1)), threshold)
    assert terms.sum() <= clipped_sum(scale, threshold, most) + 1e-9
    assert clipped_sum(scale, threshold) <= 2 * scale**2 / threshold + 1e-9  # print has 4


def test_clipped_sums_come_near_their_bound():
    terms = clip(50 / np.sqrt(np.arange(1, 300_000)), 0.1)
    assert terms.sum() > 0.99 * clipped_sum(50, 0.1)
    assert clip(50 / np.sqrt(np.arange(1, 101)), 0.0).sum() > 0.92 * clipped_sum(50, 0.0, 100)
    assert clipped_sum(0.0, 0.0) == 0
    assert clipped_sum(3.0, 0.0, 4) == 12
    assert clipped_sum(3.0, 1.0, 0) == 0
    with pytest.raises(CausalShapingError, match="would clip nothing"):
        clipped_sum(1.0, -1.0)


def test_iota_is_the_logarithm_of_all_events_over_the_chance():
    assert log_term(3, 2, 100, 0.1) == pytest.approx(math.log(6000))
    with pytest.raises(CausalShapingError, match="p is 1"):
        log_term(3, 2, 100, 1.0)


def test_the_radius_is_that_of_the_lemma():
    assert deviation(3.0, 5, 2.0, 10) == pytest.approx(3.0 * math.sqrt(5 * 2.0 / 10))


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


def test_the_concentration_lemma_breaks_with_a_quarter_of_the_radius():
    size = float(deviation(1.0, 1, 1.5, 9))
    assert exceeding(1, 9, 0.5, size) <= math.exp(-1.5) < exceeding(1, 9, 0.5, size / 4)
