"""The agent's own data as a source: what was recorded is what happened, and ceilings tighten while it learns."""

import gymnasium as gym
import numpy as np
import pytest
from walk import Walk

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError
from causal_shaping.worlds import World

ID = "causal_shaping/LavaCrossEasy-v0"
EASY = cs.load_world("lavacross-easy")
ZERO = cs.Potential.zero(EASY)


def rows_of(logs):
    """The rows by label, without the number of the episode."""
    frame = logs.to_pandas().drop(columns=["source", "episode"])
    return [tuple(row) for row in frame.itertuples(index=False)]


def play(env, action, seed=0):
    """Repeat an action until the episode is over."""
    env.reset(seed=seed)
    over = False
    while not over:
        *_, over, _, _ = env.step(action)


def test_a_wrapper_records_what_happened_with_unshaped_rewards():
    phi = cs.Potential(np.random.default_rng(0).normal(size=len(EASY.states)), EASY)
    env, rng = cs.ShapeReward(gym.make(ID), phi, record=True), np.random.default_rng(1)
    expected = []
    for episode in range(30):
        state, _ = env.reset(seed=episode)
        if episode == 7:
            continue  # an episode without a step
        over, h = False, 0
        while not over and not (episode == 9 and h == 3):  # one that is left before its end
            action = int(rng.integers(5))
            after, _, terminated, truncated, info = env.step(action)
            labels = (*EASY.states[state], EASY.actions[action], info["unshaped_reward"], *EASY.states[after])
            expected.append((h, *labels, terminated, truncated))
            state, over, h = after, terminated or truncated, h + 1
    logs = env.logs()
    assert rows_of(logs) == expected
    assert (logs.source, logs.episodes, logs.space) == ("agent", 29, EASY.space)
    assert env.logs("second").source == "second"
    assert cs.count(logs).n.sum() == len(expected)


@pytest.mark.filterwarnings("ignore:The potential does not know")
def test_states_that_the_potential_does_not_know_are_added_and_ends_need_no_label():
    small = cs.Space([2, 0], range(3))
    env = cs.ShapeReward(Walk(), cs.Potential.zero(small), record=True)
    for seed in range(5):
        play(env, 2, seed)
    logs = env.logs()
    assert logs.space.states == (2, 0, 1, 3, 4)  # and not 5, where it ends
    assert (logs.next_state[logs.terminated] == -1).all()
    assert logs.terminated.sum() == 5
    counts = cs.count(walked([2, 0])) + cs.count(logs)
    assert set(counts.space.states) == {0, 1, 2, 3, 4}


def walked(states):
    """One row of somebody else's logs."""
    flags = {"terminated": [False], "truncated": [True]}
    row = {"episode": [0], "step": [0], "state": [1], "action": [0], "reward": [-1.0], "next_state": [0]}
    return cs.Logs(cs.Space(states, range(3)), "other", **row, **flags)


def test_a_label_of_ones_own_need_not_know_the_end():
    def label(observation):
        return {i: f"place {i}" for i in range(5)}[observation]

    space = cs.Space([f"place {i}" for i in range(5)], ["slow", "quick", "cheap"])
    env = cs.ShapeReward(Walk(), cs.Potential.zero(space), label=label, actions=space.actions, record=True)
    play(env, 1)
    frame = env.logs().to_pandas()
    assert set(frame["action"]) == {"quick"}
    assert frame["next_state"].iloc[-1] is None


def test_a_recording_wrapper_keeps_its_spec():
    env = cs.ShapeReward(gym.make(ID), ZERO, record=True)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    again.reset(seed=0)
    again.step(1)
    assert len(again.logs()) == 1


def test_what_cannot_be_recorded_is_told():
    env = cs.ShapeReward(gym.make(ID), ZERO)
    with pytest.raises(CausalShapingError, match="make the wrapper with record=True"):
        env.logs()
    with pytest.raises(CausalShapingError, match="The agent has not taken a step yet"):
        cs.ShapeReward(gym.make(ID), ZERO, record=True).logs()
    names = cs.Potential.zero(cs.Space(range(6), ["a", "b", "c", "d"]))
    with pytest.raises(CausalShapingError, match=r"name their actions \(a, b, c, d\).*give actions"):
        cs.ShapeReward(Walk(), names, record=True)
    with pytest.raises(CausalShapingError, match="actions= or --actions names 2 actions, but the environment has 3"):
        cs.ShapeReward(Walk(), names, actions=["a", "b"], record=True)


def test_actions_that_logs_name_are_never_matched_by_their_order():
    """Names that were read off logs are sorted; the environment's numbers need not be."""
    phi = cs.Potential.zero(cs.Space(range(6), ["left", "right", "wait"]))
    with pytest.raises(CausalShapingError, match="Say which is which"):
        cs.ShapeReward(Walk(), phi, record=True)
    env = cs.ShapeReward(Walk(), phi, actions=["wait", "right", "left"], record=True)
    env.reset(seed=0)
    env.step(0)
    assert env.logs().to_pandas()["action"].tolist() == ["wait"]


# What it is for -------------------------------------------------------------------------------------------


def clinic():
    """A small world whose doctor sees what an agent does not: each of three treatments suits another patient."""
    rng = np.random.default_rng(0)
    next_state, reward = rng.integers(0, 4, size=(4, 3, 3)), rng.integers(0, 5, size=(4, 3, 3)) / 4
    next_state[3], reward[3] = 3, 0.0
    noise = np.tile([0.5, 0.3, 0.2], (4, 1))
    model = cs.TabularCMDP(next_state, reward, noise, [False, False, False, True], [1.0, 0.0, 0.0, 0.0])
    doctor = np.full((4, 3, 3), 0.1) + 0.7 * np.eye(3)
    return World("clinic", "Clinic", model, 6, ("a", "b", "c"), {"doctor": doctor})


CLINIC = clinic()


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_ceilings_stay_valid_and_tighten_while_the_agent_learns():
    """Ten rounds: learn under the ceilings, add what the agent saw, compute them again."""
    optimum, alive = CLINIC.model.optimum(6).values, ~CLINIC.model.terminal
    logs = cs.count(CLINIC.collect("doctor", 20_000))
    options = {"horizon": 6, "reward_max": 1.0, "confidence": 0.95}
    learner = {"learner": "q-ucb-shaping", "bonus": 0.0, "clip": "zero"}
    learner |= {"steps": 1500, "step_indexed": True, "record": True}
    first = cs.value_ceilings(logs, **options)
    distance = [first.values[0, 0] - optimum[0, 0]]
    counts, ceilings = logs, first
    for seed in range(10):
        run = cs.train(CLINIC, ceilings, seed=seed, **learner)
        counts = counts + cs.count(run.logs)
        ceilings = cs.value_ceilings(counts, confounding={"agent": 1.0}, **options)
        assert (ceilings.values >= optimum - 1e-9)[:, alive].all()
        distance.append(ceilings.values[0, 0] - optimum[0, 0])
    assert counts.sources == ("doctor", "agent")
    assert counts.n.sum() == 20_000 + 10 * 1500
    assert max(np.diff(distance)) < 0.02 * distance[0]  # one more source: each limit is a little wider
    assert distance[-1] < 0.4 * distance[0]


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_an_agent_that_hardly_acted_costs_little():
    logs = cs.count(CLINIC.collect("doctor", 20_000))
    options = {"horizon": 6, "reward_max": 1.0, "confidence": 0.95}
    before = cs.value_ceilings(logs, **options)
    run = cs.train(CLINIC, before, learner="q-ucb-shaping", steps=3, record=True)
    after = cs.value_ceilings(logs + cs.count(run.logs), confounding={"agent": 1.0}, **options)
    assert (after.values <= before.values + 0.02).all()


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_the_population_that_an_agent_shows_proves_its_values_exactly():
    """At population level an agent that tries everything leaves nothing to the ceilings."""
    uniform = np.full((4, 3, 3), 1 / 3)
    doctor = CLINIC.model.observe(CLINIC.demonstrators["doctor"], "doctor")
    both = doctor + CLINIC.model.observe(uniform, "agent")
    ceilings = cs.value_ceilings(both, 6, 1.0, confounding={"agent": 1.0})
    np.testing.assert_allclose(ceilings.values, CLINIC.model.optimum(6).values, atol=1e-9)
