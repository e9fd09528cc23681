"""Results that depend on a seed are distributed as those of version 0.2."""

import golden
import numpy as np
import pytest


@pytest.mark.parametrize("kind", golden.SEEDED)
def test_results_of_seeds_are_distributed_as_before(kind):
    compared, _, differing = golden.compare_seeded(kind, golden.SEEDS[kind])
    assert differing == []
    assert compared > 5


def test_the_comparison_notices_another_mean_and_another_spread():
    rng = np.random.default_rng(0)
    old = rng.normal(size=200)
    level = golden.LEVEL / 300
    assert golden.p_value(rng.normal(size=20), old) > level
    assert golden.p_value(rng.normal(3.0, size=20), old) < level
    assert golden.p_value(8 * rng.normal(size=20), old) < 0.01
    assert golden.p_value(np.ones(20), np.ones(200)) == 1
    assert golden.p_value(np.full(20, 1.1), np.ones(200)) == 0
