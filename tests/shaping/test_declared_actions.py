"""Ceilings are maxima over the actions of their space: an environment that has others is refused."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from walk import Walk

import causal_shaping as cs
from causal_shaping.errors import ArgumentError
from causal_shaping.shaping.actions import compare_admissible

EASY = cs.load_world("lavacross-easy")


def claimed(actions, states=range(6), **options):
    """A potential that comes from ceilings, over some actions."""
    return cs.Potential(np.zeros(len(states)), cs.Space(states, actions), assumptions=("It is a ceiling.",), **options)


def walk_logs(actions):
    """Logs of `Walk` in which only some of its three actions are taken."""
    steps, zeros, ones = 20, np.zeros(20), np.ones(20)
    space, action = cs.Space(range(6), actions), np.arange(steps) % len(actions)
    return cs.Logs(space, "old controller", range(steps), zeros, zeros, action, -ones, ones, zeros, ones)


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_an_action_that_nobody_declared_is_refused_by_wrappers_and_learners():
    """Undeclared actions: ceilings over two of three actions, of which the third is the best."""
    two, three = (cs.count(walk_logs(actions)) for actions in ([0, 1], [0, 1, 2]))
    ceilings, complete = (cs.value_ceilings(counts, 10, -0.1) for counts in (two, three))
    options = {"learner": "q-ucb-shaping", "steps": 10, "horizon": 10}
    for make in (
        lambda given: cs.ShapeReward(Walk(), given.potential(step_indexed=False)),
        lambda given: cs.VectorShapeReward(SyncVectorEnv([Walk] * 2), given.potential(step_indexed=False)),
        lambda given: cs.train(Walk(), given, **options),
        lambda given: cs.train(Walk(), given.potential(step_indexed=False), **options),
    ):
        make(complete)
        with pytest.raises(ArgumentError, match=r"has 3 actions, 2 among them.*count\(\.\.\., actions=range\(3\)\)"):
            make(ceilings)


def test_a_file_keeps_the_claim(tmp_path):
    claimed([0, 1]).save(tmp_path / "phi.parquet")
    with pytest.raises(ArgumentError, match="has 3 actions, 2 among them"):
        cs.ShapeReward(Walk(), tmp_path / "phi.parquet")


def test_a_potential_of_ones_own_claims_nothing_of_actions():
    cs.ShapeReward(Walk(), cs.Potential(np.zeros(6), cs.Space(range(6), [0])))
    cs.ShapeReward(Walk(), cs.Potential.zero(cs.Space(range(6), ["go"])))


@pytest.mark.parametrize("actions", [[2, 0, 1], [1, 2, 3], ["a", "b", "c"], range(5), ["a", "b", "c", "d"]])
def test_actions_may_have_names_other_numbers_or_be_more(actions):
    cs.ShapeReward(Walk(), claimed(actions))


@pytest.mark.parametrize("actions", [[0, 1, 7], ["a", "b"], [0]])
def test_actions_that_are_not_all_there_are_refused(actions):
    with pytest.raises(ArgumentError, match="The environment has 3 actions"):
        cs.ShapeReward(Walk(), claimed(actions))


def test_actions_are_compared_by_name_where_the_environment_has_names():
    space = EASY.space
    others = cs.Space(space.states, ["up", "down", "left", "right", "jump"], space.columns, terminal=space.terminal)
    phi = cs.Potential(np.zeros(len(space.states)), others, assumptions=("It is a ceiling.",))
    env = gym.make("causal_shaping/LavaCrossEasy-v0")
    options = {"learner": "q-ucb-shaping", "steps": 10}
    for make in (cs.ShapeReward, lambda env, phi: cs.train(env, phi, **options)):
        with pytest.raises(ArgumentError, match=r"has 5 actions, 'still' among them.*actions=\['"):
            make(env, phi)
    with pytest.raises(ArgumentError, match="has 5 actions, 'still' among them"):
        cs.train(EASY, phi, **options)


def test_actions_of_several_parts_are_counted():
    class Doses(Walk):
        def __init__(self):
            super().__init__()
            self.action_space = gym.spaces.MultiDiscrete([5, 5])

    cs.ShapeReward(Doses(), claimed(range(25)))
    with pytest.raises(ArgumentError, match="The environment has 25 actions, 24 among them"):
        cs.ShapeReward(Doses(), claimed(range(24)))

    class Switches(Walk):
        def __init__(self):
            super().__init__()
            self.action_space = gym.spaces.MultiBinary(90)  # so many that they cannot be listed

    cs.ShapeReward(Switches(), cs.Potential.zero(cs.Space(range(6), [0])))
    with pytest.raises(ArgumentError, match="actions, 2 among them"):
        cs.ShapeReward(Switches(), claimed([0, 1]))


def test_observations_that_need_a_label_say_which():
    class Pair(Walk):
        def __init__(self, observations):
            super().__init__()
            self.observation_space = observations

    places = gym.spaces.Discrete(6)
    for observations in (gym.spaces.Tuple([places, places]), gym.spaces.Text(1)):
        with pytest.raises(ArgumentError, match=r"Pass label=potential\.space\.label, a function"):
            cs.ShapeReward(Pair(observations), claimed(range(3)))
    with pytest.raises(ArgumentError, match=r"such as lambda seen: potential\.space\.label\(\[seen\[name\]"):
        cs.ShapeReward(Pair(gym.spaces.Dict({"place": places})), claimed(range(3)))
    blackjack = gym.make("Blackjack-v1")
    phi = claimed(range(2), [(sum_, card, ace) for sum_ in range(4, 32) for card in range(1, 11) for ace in (0, 1)])
    env = cs.ShapeReward(blackjack, phi, label=phi.space.label)  # the hint works: an unknown state would be a warning
    for seed in range(20):
        env.reset(seed=seed)


def test_a_learner_says_that_it_takes_no_label():
    with pytest.raises(ArgumentError, match="A learner takes no label=: the observations of its environment must be"):
        cs.train(Walk(), horizon=5, label=int)


def test_states_that_a_potential_does_not_know_or_that_end_are_not_compared():
    known = cs.Space(["a", "b"], [0, 1], admissible={"b": [0]})
    compare_admissible(known, cs.Space(["elsewhere", "a"], [0, 1]))
    compare_admissible(known, cs.Space(["a", "b"], [0, 1], terminal=["b"]))
    with pytest.raises(ArgumentError, match="In state 'b' the environment admits 1"):
        compare_admissible(known, cs.Space(["elsewhere", "b"], [0, 1]))
