"""Backward induction over plain sparse arrays, against enumeration and against the model of the same tables."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import cmdps, deterministic_policies, enumerated_value
from properties import fewer
from scipy.sparse import csr_array

from causal_shaping.errors import ModelError
from causal_shaping.models.backward import (
    backward_induction,
    best_values,
    endless_values,
    optimal_values,
    outcome_matrix,
)

HORIZON = 3


def plain(model):
    """The outcomes of a model as flat arrays, terminal states as ends: matrices and mean rewards."""
    states, actions, noises = model.next_state.shape[-3:]
    first = np.arange(0, states * actions * noises + 1, noises)
    matrices, rewards = [], []
    for h in range(model.steps or 1):
        step = () if model.steps is None else (h,)
        after = model.next_state[step]
        after = np.where(model.terminal[after], states, after)
        chance = np.repeat(model.noise[step], actions, axis=0).ravel()
        matrices.append(outcome_matrix(first, after.ravel(), chance, states))
        rewards.append((chance.reshape(after.shape) * model.reward[step]).sum(axis=-1))
    return matrices, np.stack(rewards)


@fewer(40)
@given(st.one_of(cmdps(), cmdps(steps=HORIZON)), st.sampled_from([1.0, 0.5]))
def test_optimal_values_are_those_of_the_best_of_all_policies(model, discount):
    matrices, rewards = plain(model)
    values, q_values = optimal_values(matrices, rewards, horizon=2, discount=discount)
    for s in range(len(model.states)):
        earned = [
            enumerated_value(model, lambda h, s, u, p=policy: np.eye(len(model.actions))[p[h, s]], 2, s, 0, discount)
            for policy in deterministic_policies(model, 2)
        ]
        assert values[0, s] == pytest.approx(max(earned), abs=1e-12)
    np.testing.assert_array_equal(values, q_values.max(axis=-1))


@fewer(40)
@given(cmdps(ending=True), st.sampled_from([1.0, 0.9]))
def test_without_a_horizon_they_are_the_limit_of_long_ones(model, discount):
    matrices, rewards = plain(model)
    values, q_values = optimal_values(matrices, rewards, discount=discount)
    # Each step ends an episode with probability 0.2 or more: what is left after 200 is 0.8^200 < 1e-19.
    long, _ = optimal_values(matrices, rewards, horizon=200, discount=discount)
    np.testing.assert_allclose(values, long[0], atol=1e-11)
    policy = np.eye(q_values.shape[1])[q_values.argmax(axis=-1)]
    followed = endless_values(matrices[0], rewards[0], policy, discount, model.states)
    np.testing.assert_allclose(followed, values, atol=1e-8)


def test_actions_that_are_not_admissible_are_nan_and_never_taken():
    matrix, rewards = csr_array((4, 2)), np.array([[[1.0, 9.0], [2.0, 3.0]]])
    admissible = np.array([[True, False], [True, True]])
    for horizon in (1, None):
        values, q_values = optimal_values([matrix], rewards, horizon=horizon, admissible=admissible)
        assert values.ravel().tolist() == [1.0, 3.0]
        np.testing.assert_array_equal(q_values.reshape(2, 2), [[1.0, np.nan], [2.0, 3.0]])


@pytest.mark.parametrize(("stay", "value"), [(0.5, 2.0), (0.999, 1000.0), (1 - 1e-6, 1e6)])
def test_mass_that_a_row_lacks_ends_the_episode(stay, value):
    values, _ = optimal_values([csr_array([[stay]])], np.array([[[1.0]]]))
    assert values[0] == pytest.approx(value)


def test_endless_reward_is_refused_with_the_name_of_the_state():
    matrix, rewards = csr_array([[0.0, 1.0], [0.0, 1.0]]), np.array([[[0.0], [0.1]]])
    with pytest.raises(ModelError, match=r"no optimum without a horizon.*state 'here'"):
        optimal_values([matrix], rewards, states=["here", "there"])
    with pytest.raises(ModelError, match="from state 1 it never ends and keeps being paid"):
        endless_values(matrix, rewards[0], np.ones((2, 1)), 1.0, range(2))


def test_arrays_of_the_caller_are_left_as_they_are():
    first, after, chance = np.array([0, 3]), np.array([0, 1, 0]), np.array([0.5, 0.5, 0.0])
    matrix = outcome_matrix(first, after, chance, 1)
    assert matrix.toarray().tolist() == [[0.5]]
    assert (first.tolist(), after.tolist(), chance.tolist()) == ([0, 3], [0, 1, 0], [0.5, 0.5, 0.0])
    policy = np.array([[0.0, 1.0]])
    endless_values(csr_array((2, 1)), np.ones((1, 2)), policy, 1.0, [0])
    assert policy.tolist() == [[0.0, 1.0]]


def test_any_backup_can_be_repeated_over_the_steps():
    """Two states that pay h, and what follows half; the policy takes the worst action."""

    def backup(h, following):
        return np.stack([following / 2 + h, following / 2 + h - 1], axis=1)

    values, q_values = backward_induction(backup, 3, (2, 2), lambda h, q: q.min(axis=1))
    assert values[:, 0].tolist() == [-0.75, 0.5, 1.0]
    assert q_values[0, 0].tolist() == [0.25, -0.75]
    best, _ = backward_induction(backup, 3, (2, 2))
    assert best[:, 1].tolist() == [1.0, 2.0, 2.0]


def test_the_best_value_leaves_out_what_is_nan():
    assert best_values(np.array([[np.nan, -1.0, -2.0], [3.0, np.nan, np.nan]])).tolist() == [-1.0, 3.0]
