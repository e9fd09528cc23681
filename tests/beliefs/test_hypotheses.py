"""Whom to trust, and where: what is believed before anything is seen, and how a cell loses trust."""

import numpy as np
import pytest

from causal_shaping.beliefs._kernels import chance_of_trust
from causal_shaping.beliefs.model import hypotheses


@pytest.mark.parametrize("components", [1, 3])
def test_half_of_the_prior_says_nobody_and_components_share_the_rest(components):
    held = hypotheses(components, components)
    chance = np.exp(held.prior)
    assert chance.sum() == pytest.approx(1)
    assert held.component[0] == -1
    assert chance[0] == pytest.approx(0.5)
    for c in range(components):
        its = held.component == c
        assert chance[its].sum() == pytest.approx(0.5 / components)
        assert held.doubt[its].min() < 1e-3 < 0.05 < np.sort(held.doubt[its])[1], "everywhere, or in some cells"
    np.testing.assert_array_equal(held.blunt[1:], held.doubt[1:] > 1e-3)


def test_nobody_is_trusted_without_logs():
    held = hypotheses(0, 0)
    np.testing.assert_array_equal(held.component, [-1])
    np.testing.assert_allclose(held.prior, [0.0])


@pytest.mark.parametrize("doubt", [1e-6, 0.1, 0.3])
def test_a_cell_loses_trust_by_what_it_shows_and_gains_none(doubt):
    for ratio in (0.0, 0.5, 5.0, 800.0):
        assert chance_of_trust(ratio, doubt) == pytest.approx(1 - doubt)
    for ratio in (-0.5, -5.0, -50.0):
        trust = (1 - doubt) * np.exp(ratio)
        assert chance_of_trust(ratio, doubt) == pytest.approx(trust / (trust + doubt))
    assert chance_of_trust(-np.inf, doubt) == 0
