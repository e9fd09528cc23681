"""Actions that do not exist in every state: values, policies and demonstrators of a model leave them out."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import cmdps, demonstrators, enumerated_value, restricted_world
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, ModelError
from causal_shaping.worlds.environments import WorldEnv


@st.composite
def masked(draw, **sizes):
    """A CMDP and a mask of its actions; at least one exists in each state."""
    model = draw(cmdps(**sizes))
    shape = (len(model.states), len(model.actions))
    mask = np.array(draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    mask = mask.reshape(shape)
    mask[~mask.any(axis=1), 0] = True
    return model, mask


def restricted(model, mask):
    tables = (model.next_state, model.reward, model.noise, model.terminal, model.start)
    return cs.TabularCMDP(*tables, admissible=mask)


def impossible(model, mask, penalty=-1e6):
    """The same with an end that costs a fortune in place of each action that does not exist."""
    next_state, reward = model.next_state.copy(), model.reward.copy()
    states, outside = len(model.states), ~mask & ~model.terminal[:, None]
    next_state = np.concatenate([next_state, np.full((1, *next_state.shape[1:]), states)])
    reward = np.concatenate([reward, np.zeros((1, *reward.shape[1:]))])
    next_state[:-1][outside], reward[:-1][outside] = states, penalty
    noise = np.concatenate([model.noise, np.eye(1, model.noise.shape[1])])
    return cs.TabularCMDP(next_state, reward, noise, [*model.terminal, True], [*model.start, 0.0])


@given(masked(states=(1, 3), actions=(2, 3)), st.sampled_from([1.0, 0.8]))
@fewer(60)
def test_the_optimum_is_that_of_a_model_whose_other_actions_are_ruinous(given_model, discount):
    model, mask = given_model
    known, alive = restricted(model, mask), ~model.terminal
    mask = mask | model.terminal[:, None]
    horizons = (3,) if discount == 1 else (3, None)
    for horizon in horizons:
        found = known.optimum(horizon, discount)
        expected = impossible(model, mask).optimum(horizon, discount)
        np.testing.assert_allclose(found.values[..., alive], expected.values[..., :-1][..., alive], atol=1e-6)
        inside = mask & alive[:, None]
        np.testing.assert_allclose(found.q_values[..., inside], expected.q_values[..., :-1, :][..., inside], atol=1e-6)
        assert np.isnan(found.q_values[..., ~known.space.is_admissible]).all()
        best = found.greedy()
        assert known.space.is_admissible[np.arange(len(model.states)), best].all()
        np.testing.assert_allclose(known.evaluate(best, horizon, discount).values, found.values, atol=1e-6)


@given(masked(states=(1, 3), actions=(2, 3)))
@fewer(30)
def test_tables_by_step_have_the_optimum_of_the_tables_that_they_repeat(given_model):
    model, mask = given_model
    one = restricted(model, mask)
    repeated = [np.repeat(table[None], 3, axis=0) for table in (model.next_state, model.reward, model.noise)]
    repeated[1] = repeated[1] * np.array([1.0, 2.0, 4.0])[:, None, None, None]
    by_step = cs.TabularCMDP(*repeated, model.terminal, model.start, admissible=mask)
    np.testing.assert_array_equal(by_step.optimum(3).q_values[2], 4.0 * one.optimum(1).q_values[0])


@given(masked(states=(1, 3), actions=(2, 3)), st.data())
@fewer(40)
def test_demonstrators_of_admissible_actions_earn_and_show_what_they_did_before(given_model, data):
    model, mask = given_model
    mask = mask | model.terminal[:, None]
    beta = data.draw(demonstrators(model)) * mask[:, None, :]
    beta[beta.sum(-1) == 0] = (mask / mask.sum(-1, keepdims=True))[np.nonzero(beta.sum(-1) == 0)[0]]
    beta /= beta.sum(-1, keepdims=True)
    known = restricted(model, mask)
    shown, before = known.observe(beta, "good"), model.observe(beta, "good")
    assert shown.space.is_admissible.tolist() == mask.tolist()
    assert (shown.n.tolist(), shown.action.tolist()) == (before.n.tolist(), before.action.tolist())
    policy = beta[:, 0]
    value = known.evaluate(policy, 2).values[0, 0]
    assert value == pytest.approx(enumerated_value(model, lambda h, s, u: policy[s], 2, 0))


def small(**options):
    """Two states and the end; in the first, the second action does not exist, and would pay most."""
    return cs.TabularCMDP(
        next_state=[[[1], [1]], [[2], [2]], [[2], [2]]],
        reward=[[[1.0], [9.0]], [[1.0], [2.0]], [[0.0], [0.0]]],
        noise=[[1.0]] * 3,
        terminal=[False, False, True],
        start=[1.0, 0.0, 0.0],
        states=["home", "road", "end"],
        actions=["walk", "ride"],
        **options,
    )


def test_a_model_takes_admissible_actions_in_every_form_and_its_rewards_leave_the_others_out():
    mask = np.array([[True, False], [True, True], [True, True]])
    for given_as in (mask, {"home": ["walk"]}, lambda state, action: state != "home" or action == "walk"):
        model = small(admissible=given_as)
        assert model.space.is_admissible.tolist() == mask.tolist()
        assert model.space.complete
        assert model.optimum(2).values[0].tolist() == [3.0, 2.0, 0.0]
        assert model.reward_range == (1.0, 2.0)
    assert small().reward_range == (1.0, 9.0)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.evaluate([1, 0, 0], 2), r"policy\[0, 1\] is 1.0: the action is not admissible"),
        (lambda model: model.evaluate(np.full((3, 2), 0.5), 2), r"policy\[0, 1\] is 0.5: the action is not adm"),
        (lambda model: model.observe(np.full((3, 1, 2), 0.5), "a"), r"beta\[0, 0, 1\] is 0.5: the action is not adm"),
        (
            lambda model: cs.worlds.World("w", "W", model, 2, ("u",), {"a": np.full((3, 1, 2), 0.5)}),
            r"beta\[0, 0, 1\] is 0.5: the action is not admissible",
        ),
    ],
)
def test_policies_and_demonstrators_of_inadmissible_actions_are_refused(ask, message):
    with pytest.raises(ModelError, match=message):
        ask(small(admissible={"home": ["walk"]}))


def test_an_environment_tells_its_admissible_actions_and_takes_no_others():
    world = cs.load_world("lavacross-easy")
    model = world.model
    moves = np.ones((len(model.states), len(model.actions)), dtype=bool)
    moves[:, 1] = [x != 1 for x, *_ in model.states]  # in the first column, the second action does not exist
    known = restricted_world(world, moves)
    env = WorldEnv(known)
    _, info = env.reset(seed=0, options={"state": (1, 1)})
    assert info["action_mask"].tolist() == moves[world.state_at(1, 1)].astype(int).tolist()
    assert info["action_mask"].dtype == np.int8
    assert env.action_space.sample(info["action_mask"]) in env.action_space
    with pytest.raises(ArgumentError, match=r"is not admissible in state \(1, 1\).*info\['action_mask'\]"):
        env.step(1)
    *_, info = env.step(0)
    assert "action_mask" in info
    for one in (env, env.world, gym.wrappers.TimeLimit(env, 20)):  # and to a space that was read off logs
        assert cs.Space(model.states[:10], model.actions).restricted(one).is_admissible.tolist() == moves[:10].tolist()
    assert cs.check_potential(env, cs.Potential.zero(known.space), episodes=5).episodes == 5
    assert "action_mask" not in gym.make("causal_shaping/LavaCrossEasy-v0").reset(seed=0)[1]
