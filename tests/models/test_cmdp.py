"""The exact computations against enumeration of policies and of noise sequences."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import (
    cmdps,
    demonstrators,
    deterministic_policies,
    enumerated_rows,
    enumerated_value,
    policies,
    trajectories,
)
from properties import fewer

from causal_shaping import TabularCMDP, Values
from causal_shaping.errors import ArgumentError, ModelError

HORIZON = 2
any_cmdp = st.one_of(cmdps(), cmdps(steps=HORIZON))
discounts = st.sampled_from([1.0, 0.9, 0.5])


def one_hot(model, policy):
    return lambda h, s, u: np.eye(len(model.actions))[policy[h, s]]


@given(any_cmdp, discounts)
def test_optimum_and_gaps_equal_brute_force_over_all_policies(model, discount):
    best = model.optimum(HORIZON, discount)
    gaps = model.gaps(HORIZON, discount)
    for h in range(HORIZON):
        for s in range(len(model.states)):
            values, first = [], defaultdict(list)
            for policy in deterministic_policies(model, HORIZON):
                decide = one_hot(model, policy)
                values.append(enumerated_value(model, decide, HORIZON, s, h, discount))
                for x in range(len(model.actions)):
                    first[x].append(enumerated_value(model, decide, HORIZON, s, h, discount, first=x))
            assert best.values[h, s] == pytest.approx(max(values), abs=1e-12)
            for x, found in first.items():
                assert best.q_values[h, s, x] == pytest.approx(max(found), abs=1e-12)
                assert gaps[h, s, x] == pytest.approx(max(values) - max(found), abs=1e-12)


@fewer(40)
@given(st.data(), any_cmdp, st.booleans(), discounts)
def test_evaluate_equals_enumeration_of_noise_sequences(data, model, by_step, discount):
    policy = data.draw(policies(model, HORIZON if by_step else None))
    result = model.evaluate(policy, HORIZON, discount)

    def decide(h, s, u):
        return policy[h, s] if by_step else policy[s]

    for h in range(HORIZON):
        for s in range(len(model.states)):
            value = enumerated_value(model, decide, HORIZON, s, h, discount)
            assert result.values[h, s] == pytest.approx(value, abs=1e-12)
            for x in range(len(model.actions)):
                q_value = enumerated_value(model, decide, HORIZON, s, h, discount, first=x)
                assert result.q_values[h, s, x] == pytest.approx(q_value, abs=1e-12)


@fewer(40)
@given(st.data(), any_cmdp, st.booleans(), discounts)
def test_occupancy_equals_enumeration_of_noise_sequences(data, model, by_step, discount):
    policy = data.draw(policies(model, HORIZON if by_step else None))
    expected = np.zeros((HORIZON, len(model.states), len(model.actions)))
    rows = enumerated_rows(model, lambda h, s, u: policy[h, s] if by_step else policy[s], HORIZON)
    for (h, s, x, _, _), mass in rows.items():
        expected[h, s, x] += discount**h * mass
    np.testing.assert_allclose(model.occupancy(policy, HORIZON, discount), expected, atol=1e-12)


def masses_of(counts, *more):
    """{(*more, state, action, next state, reward): mass}."""
    columns = [getattr(counts, name) for name in (*more, "state", "action", "next_state", "reward_min")]
    return dict(zip(zip(*columns, strict=True), counts.n, strict=True))


@fewer(40)
@given(st.data(), any_cmdp, st.booleans())
def test_observe_equals_enumeration_of_noise_sequences(data, model, by_step):
    beta = data.draw(demonstrators(model, HORIZON if by_step else None))
    rows = enumerated_rows(model, lambda h, s, u: beta[h, s, u] if by_step else beta[s, u], HORIZON)
    counts = model.observe(beta, "watched", HORIZON, step_indexed=True)
    assert masses_of(counts, "step") == pytest.approx(rows, abs=1e-12)
    assert (counts.terminated == model.terminal[counts.next_state]).all()
    np.testing.assert_allclose(counts.reward_sum, counts.n * counts.reward_max)

    pooled = defaultdict(float)
    for (_, *key), mass in rows.items():
        pooled[tuple(key)] += mass
    counts = model.observe(beta, "watched", HORIZON)
    assert counts.step is None
    assert masses_of(counts) == pytest.approx(dict(pooled), abs=1e-12)


@given(st.data(), cmdps())
def test_observe_without_horizon_gives_every_state_a_mass_of_one(data, model):
    beta = data.draw(demonstrators(model))
    counts, rows = model.observe(beta, "watched"), defaultdict(float)
    for s in np.flatnonzero(~model.terminal):
        for probability, ((_, *row), *_) in trajectories(model, lambda h, s, u: beta[s, u], 1, int(s)):
            rows[tuple(row)] += probability
        assert counts.n[counts.state == s].sum() == pytest.approx(1.0)
    assert masses_of(counts) == pytest.approx(dict(rows), abs=1e-12)


@given(st.data(), any_cmdp)
def test_transitions_and_rewards_of_do_x_are_sums_over_the_noise(data, model):
    h = data.draw(st.integers(0, 1))
    step = () if model.steps is None else (h,)
    transitions, rewards = model.transitions(), model.rewards()
    for s in range(len(model.states)):
        for x in range(len(model.actions)):
            reach, pay = np.zeros(len(model.states)), defaultdict(float)
            for u, p in enumerate(model.noise[(*step, s)]):
                reach[model.next_state[(*step, s, x, u)]] += p
                if p > 0:
                    pay[float(model.reward[(*step, s, x, u)])] += p
            np.testing.assert_allclose(transitions[(*step, s, x)], reach, atol=1e-15)
            assert rewards[(*step, s, x)] == pytest.approx(sum(y * p for y, p in pay.items()))


@fewer(40)
@given(st.data(), any_cmdp, st.sampled_from([None, HORIZON]))
def test_a_demonstrated_model_earns_what_enumeration_says(data, model, steps):
    beta = data.draw(demonstrators(model, steps))
    follow = np.zeros(len(model.states), dtype=int)
    watched = model.demonstrated(beta).evaluate(follow, HORIZON).values
    for s in range(len(model.states)):
        expected = enumerated_value(model, lambda h, s, u: beta[(s, u) if steps is None else (h, s, u)], HORIZON, s)
        assert watched[0, s] == pytest.approx(expected, abs=1e-12)


@fewer(40)
@given(cmdps(ending=True), discounts)
def test_stationary_optimum_is_the_best_stationary_policy(model, discount):
    found = [model.evaluate(policy[0], discount=discount).values for policy in deterministic_policies(model, 1)]
    best = model.optimum(discount=discount)
    np.testing.assert_allclose(best.values, np.max(found, axis=0), atol=1e-11)
    np.testing.assert_allclose(model.evaluate(best.greedy(), discount=discount).values, best.values, atol=1e-8)


@fewer(40)
@given(st.data(), cmdps(ending=True), discounts)
def test_a_stationary_value_is_the_limit_of_long_horizons(data, model, discount):
    policy = data.draw(policies(model))
    # Each step ends an episode with probability 0.2 or more: what is left after 200 is 0.8^200 < 1e-19.
    long = 200
    value = model.evaluate(policy, discount=discount)
    np.testing.assert_allclose(value.values, model.evaluate(policy, long, discount).values[0], atol=1e-12)
    visits = model.occupancy(policy, long, discount).sum(axis=0)
    assert (visits * model.rewards()).sum() == pytest.approx(float(model.start @ value.values), abs=1e-12)


@given(st.data(), cmdps())
def test_relabelling_the_states_changes_no_value(data, model):
    order = np.array(data.draw(st.permutations(range(len(model.states)))))
    back = np.argsort(order)
    moved = TabularCMDP(
        back[model.next_state[order]],
        model.reward[order],
        model.noise[order],
        model.terminal[order],
        model.start[order],
        states=[model.states[s] for s in order],
    )
    np.testing.assert_allclose(moved.optimum(4).values, model.optimum(4).values[:, order], atol=1e-12)


# Models without a limit ------------------------------------------------------------------------------


def loop(reward, ends=False):
    """One state that can be stayed in for ever, at a reward; optionally a second action that ends."""
    return TabularCMDP(
        next_state=[[[0], [1 if ends else 0]], [[1], [1]]],
        reward=[[[reward], [-2.0]], [[0.0], [0.0]]],
        noise=[[1.0], [1.0]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )


def test_endless_reward_has_no_stationary_optimum():
    with pytest.raises(ModelError, match=r"no optimum without a horizon.*state 0.*Set a horizon"):
        loop(0.1).optimum()
    assert loop(0.1).optimum(discount=0.9).values[0] == pytest.approx(1.0)
    assert loop(0.1).optimum(horizon=7).values[0, 0] == pytest.approx(0.7)


def test_endless_policy_is_refused_where_its_sum_has_no_limit():
    with pytest.raises(ModelError, match="never ends and keeps being paid"):
        loop(0.1).evaluate([0, 0])
    assert loop(0.0).evaluate([0, 0]).values[0] == 0.0


def test_staying_for_nothing_beats_a_costly_end():
    assert loop(0.0, ends=True).optimum().values[0] == 0.0
    assert loop(-0.1, ends=True).optimum().values[0] == pytest.approx(-2.0)


def test_reward_range_counts_only_noise_that_can_happen():
    model = TabularCMDP(
        next_state=[[[1, 1]], [[1, 1]]],
        reward=[[[0.1, 99.0]], [[0.0, 0.0]]],
        noise=[[1.0, 0.0], [0.5, 0.5]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )
    assert model.reward_range == (0.1, 0.1)


def leaky(exit_probability):
    """A state that costs 1 a step and is left with a small probability; its value is -1 / that."""
    return TabularCMDP(
        next_state=[[[0, 1]], [[1, 1]]],
        reward=[[[-1.0, -1.0]], [[0.0, 0.0]]],
        noise=[[1 - exit_probability, exit_probability], [1.0, 0.0]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )


@pytest.mark.parametrize("exit_probability", [0.5, 1e-2, 1e-4, 1e-6])
def test_a_limit_that_sweeps_reach_slowly_is_found_exactly(exit_probability):
    assert leaky(exit_probability).optimum().values[0] == pytest.approx(-1 / exit_probability)


@pytest.mark.parametrize("discount", [0.5, 0.9999, 0.9999999])
def test_a_discount_close_to_one_is_no_problem(discount):
    assert loop(0.1).optimum(discount=discount).values[0] == pytest.approx(0.1 / (1 - discount))


def test_swinging_between_gain_and_loss_has_no_stationary_optimum():
    swing = TabularCMDP(
        next_state=[[[1]], [[0]]],
        reward=[[[0.1]], [[-0.1]]],
        noise=[[1.0], [1.0]],
        terminal=[False, False],
        start=[1, 0],
    )
    with pytest.raises(ModelError, match="no optimum without a horizon"):
        swing.optimum()


def test_greedy_takes_the_first_of_actions_that_differ_by_rounding():
    q_values = np.array([[0.3 - 1e-16, 0.1 + 0.2, 0.3 + 1e-10], [0.0, 0.0, 1e-8]])
    assert Values(q_values.max(axis=-1), q_values).greedy().tolist() == [0, 2]


# Bad tables ----------------------------------------------------------------------------------------

GOOD = {
    "next_state": [[[1, 1], [0, 1]], [[1, 1], [1, 1]]],
    "reward": [[[0.0, 1.0], [0.5, 0.0]], [[0.0, 0.0], [0.0, 0.0]]],
    "noise": [[0.5, 0.5], [1.0, 0.0]],
    "terminal": [False, True],
    "start": [1.0, 0.0],
}


def changed(name, where, value):
    table = np.array(GOOD[name])
    table[where] = value
    return {**GOOD, name: table}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (changed("next_state", (0, 1, 0), 2), r"next_state\[0, 1, 0\] is 2: a state must be in 0 .. 1"),
        (changed("next_state", (0, 1, 0), -1), r"next_state\[0, 1, 0\] is -1"),
        (changed("next_state", (1, 0, 1), 0), r"next_state\[1, 0, 1\] is 0: a terminal state must lead to itself"),
        (changed("reward", (1, 1, 0), 0.5), r"reward\[1, 1, 0\] is 0.5: a terminal state must pay 0"),
        (changed("reward", (0, 0, 1), np.nan), r"reward\[0, 0, 1\] is nan: a reward must be finite"),
        (changed("noise", (0, 0), 0.6), r"the sum of noise\[0\] is 1.1: it must be 1"),
        (changed("noise", (0, 0), -0.5), r"noise\[0, 0\] is -0.5: a probability must be 0 or more"),
        (changed("noise", (1, 1), np.nan), r"noise\[1, 1\] is nan"),
        (changed("start", 0, 0.25), r"the sum of start\[\] is 0.25"),
        (changed("start", slice(None), [0.5, 0.5]), r"start\[1\] is 0.5: an episode cannot start at its end"),
        ({**GOOD, "reward": [[0.0]]}, r"reward has shape \(1, 1\), but next_state asks for \(2, 2, 2\)"),
        ({**GOOD, "noise": [[1.0], [1.0]]}, r"noise has shape \(2, 1\)"),
        ({**GOOD, "next_state": [0, 1]}, r"next_state has shape \(2,\); it must be \[states, actions, noises\]"),
        ({**GOOD, "next_state": np.zeros((0, 2, 2), int)}, "and not empty"),
        ({**GOOD, "next_state": np.full((2, 2, 2), 0.5)}, "next_state must hold int32 numbers, but holds 0.5"),
        ({**GOOD, "reward": [["a", "b"]]}, "reward must hold float64 numbers, but holds 'a'"),
        ({**GOOD, "next_state": [[[0, 1], [0]]]}, "next_state is not a table"),
        ({**GOOD, "next_state": None}, "next_state must hold int32 numbers, but holds None"),
        ({**GOOD, "terminal": [0.0, np.nan]}, "terminal must hold bool numbers, but holds nan"),
        ({**GOOD, "states": ["a"]}, "2 states and 2 actions, but 1 state and 2 action labels"),
    ],
)
def test_bad_tables_are_named(tables, message):
    with pytest.raises(ModelError, match=message):
        TabularCMDP(**tables)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.optimum(horizon=0), "horizon is 0; it must be at least 1"),
        (lambda m: m.optimum(horizon=2.0), "horizon is 2.0; it must be a whole number"),
        (lambda m: m.optimum(discount=0.0), "discount is 0.0"),
        (lambda m: m.optimum(discount=1.1), "discount is 1.1"),
        (lambda m: m.evaluate([0, 2], 3), r"policy\[1\] is 2: an action must be in 0 .. 1"),
        (lambda m: m.evaluate([0, 0, 0], 3), r"not \(3,\)"),
        (lambda m: m.evaluate([[0.5, 0.6], [1.0, 0.0]], 3), r"the sum of policy\[0\] is 1.1"),
        (lambda m: m.evaluate(np.ones((4, 2, 2)) / 2, 3), r"policy has shape \(4, 2, 2\)"),
        (lambda m: m.observe(np.ones((2, 2)) / 2, "a"), r"beta has shape \(2, 2\); it must be \[2, 2, 2\]"),
        (lambda m: m.observe(np.ones((2, 2, 2)) / 2, "a", step_indexed=True), "set a horizon"),
    ],
)
def test_bad_questions_are_answered_with_an_error(ask, message):
    with pytest.raises(ArgumentError, match=message):
        ask(TabularCMDP(**GOOD))


def test_a_model_with_steps_needs_a_horizon_within_them():
    tables = {name: [GOOD[name]] * 3 for name in ("next_state", "reward", "noise")}
    model = TabularCMDP(**{**GOOD, **tables})
    assert model.steps == 3
    with pytest.raises(ModelError, match="changes over its 3 steps; optimum needs a horizon"):
        model.optimum()
    with pytest.raises(ModelError, match="at most 3"):
        model.optimum(horizon=4)
    stationary = TabularCMDP(**GOOD)
    np.testing.assert_allclose(model.optimum(3).values, stationary.optimum(3).values)


def test_tables_are_copied_and_cannot_be_written_to():
    reward = np.array(GOOD["reward"])
    model = TabularCMDP(**{**GOOD, "reward": reward})
    reward[0, 0, 0] = 5.0
    assert model.reward[0, 0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        model.reward[0, 0, 0] = 5.0
