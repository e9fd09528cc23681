"""The formula: for numbers, for arrays, and compiled."""

import itertools

import numpy as np
import pytest

from causal_shaping.learners import _kernels
from causal_shaping.shaping.formula import is_final, shaped_reward


def test_a_step_pays_the_reward_plus_the_discounted_potential_minus_the_one_before():
    assert shaped_reward(1.0, 0.5, 2.0, 3.0) == 0.5
    assert shaped_reward(0.0, 0.5, 2.0, 3.0) == -0.5  # the shaping alone
    assert shaped_reward(np.ones(2), 0.5, np.array([2.0, 0.0]), np.array([3.0, 0.0])).tolist() == [0.5, 1.0]


@pytest.mark.parametrize("bootstrap", [True, False])
def test_nothing_follows_termination_and_by_rule_a_time_limit(bootstrap):
    cases = list(itertools.product([False, True], repeat=2))
    expected = [terminated or (truncated and not bootstrap) for terminated, truncated in cases]
    assert [is_final(*case, bootstrap) for case in cases] == expected
    assert is_final(*np.array(cases).T, bootstrap).tolist() == expected
    assert [_kernels._is_final(*case, bootstrap) for case in cases] == expected


def test_the_compiled_formula_gives_the_same_bits():
    for numbers in np.random.default_rng(0).normal(size=(200, 4)):
        assert _kernels._shaped_reward(*numbers) == shaped_reward(*numbers)
