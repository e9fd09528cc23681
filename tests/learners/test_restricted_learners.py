"""Actions that do not exist in every state: no learner takes them, and environments that admit others are refused."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from models import restricted_world
from walk import Walk

import causal_shaping as cs
from causal_shaping.errors import ArgumentError
from causal_shaping.learners.rules import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
EASY = cs.load_world("lavacross-easy")


def restricted():
    """LavaCross in which two of five actions exist in odd states, and four in the others."""
    mask = np.ones((len(EASY.states), 5), dtype=bool)
    mask[1::2, [0, 2, 4]] = False
    mask[::2, 1] = False
    return restricted_world(EASY, mask)


WORLD = restricted()
MASK = WORLD.space.is_admissible


@pytest.fixture(scope="module")
def counts():
    return cs.count([WORLD.collect(name, 20_000) for name in WORLD.demonstrators])


@pytest.fixture(scope="module")
def ceilings(counts):
    """Ceilings, in which actions that do not exist have no value."""
    found = cs.value_ceilings(counts, WORLD.horizon, WORLD.model.reward_range[1])
    assert np.isnan(found.q_values[..., ~(MASK | WORLD.model.terminal[:, None])]).all()
    return found


@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("learner", PRESETS)
def test_no_learner_takes_an_action_that_does_not_exist_on_either_path(ceilings, learner, step_indexed):
    options = {"learner": learner, "steps": 1500, "seed": 3, "step_indexed": step_indexed, "checkpoints": [700]}
    run = cs.train(WORLD, ceilings, record=True, **options)
    played = cs.train(WORLD, ceilings, compiled=False, **options)  # whose environment refuses any other action
    for field in ("q_values", "values", "visits", "step_regret", "policies", "recommended"):
        np.testing.assert_array_equal(getattr(run, field), getattr(played, field), err_msg=field)
    assert (run.visits[..., ~MASK] == 0).all()
    assert np.isnan(run.q_values[..., ~MASK]).all()
    assert not np.isnan(run.q_values[..., MASK]).any()
    assert np.isfinite(run.step_regret).all()
    every = np.arange(len(WORLD.states))
    for policy in (run.policy, run.recommended, run.policies[0]):
        assert MASK[every, policy].all()
    assert cs.count(run.logs).space.admissible == WORLD.space.admissible


@pytest.mark.parametrize("compiled", [False, True])
def test_a_learner_needs_no_potential_to_leave_them_out(compiled):
    run = cs.train(WORLD, steps=500, compiled=compiled)
    assert (run.visits[~MASK] == 0).all()


def test_the_bonus_counts_the_pairs_that_exist():
    phi = cs.Potential(np.full(len(WORLD.states), 2.0), WORLD)
    from causal_shaping.learners._setting import prepare

    some, every = (
        prepare(cs.Rule(), world.space, 20, 1000, replace(phi, space=world.space)).constants.bonus
        for world in (WORLD, EASY)
    )
    alive = ~WORLD.model.terminal
    pairs = int(MASK[alive].sum())
    assert some == pytest.approx(4 * 2.0 * np.sqrt(20 * np.log(pairs * 1000 / 0.1)))
    assert every == pytest.approx(4 * 2.0 * np.sqrt(20 * np.log(alive.sum() * 5 * 1000 / 0.1)))


def test_a_world_that_admits_what_the_ceilings_exclude_is_refused(ceilings):
    env = gym.make("causal_shaping/LavaCrossEasy-v0")
    for make in (
        lambda: cs.train(EASY, ceilings, learner="q-ucb-shaping", steps=10),
        lambda: cs.train(env, ceilings, learner="q-ucb-shaping", steps=10),
        lambda: cs.ShapeReward(env, ceilings.potential()),
    ):
        with pytest.raises(
            ArgumentError, match=r"the environment admits .*excludes it there.*\(admissible\) when the logs are counted"
        ):
            make()


# Environments that tell it themselves -------------------------------------------------------------------------


def taxi_space(env, **options):
    return cs.Space(range(500), range(6), **options).restricted(env)


def claimed(space):
    return cs.Potential(np.zeros(len(space.states)), space, assumptions=("It is a ceiling.",))


def test_taxi_tells_its_admissible_actions_to_a_learner_and_to_the_space():
    env = gym.make("Taxi-v4")
    space = taxi_space(env)
    masks = np.array([env.unwrapped.action_mask(s) for s in range(500)], dtype=bool)
    assert space.is_admissible.tolist() == masks.tolist()
    for potential in (None, claimed(space)):
        run = cs.train(env, potential, learner="q-ucb-shaping", steps=2000, clip="none")
        met = run.visits.sum(-1) > 0
        assert (run.visits[~masks] == 0).all()
        assert np.isnan(run.q_values[met][~masks[met]]).all()


def test_wrappers_compare_what_an_environment_admits_with_the_space_at_each_state():
    """A space that wrongly excludes going south, wherever Taxi admits it."""
    env = gym.make("Taxi-v4")
    right = taxi_space(env)
    wrong = {state: actions - {0} for state, actions in right.admissible.items()}
    others = {s: set(range(1, 6)) for s in range(500) if s not in wrong}
    space = cs.Space(range(500), range(6), admissible=wrong | others)
    single, vector = cs.ShapeReward(env, claimed(right)), SyncVectorEnv([lambda: gym.make("Taxi-v4")] * 2)
    for mode in AutoresetMode:
        several = SyncVectorEnv([lambda: gym.make("Taxi-v4")] * 2, autoreset_mode=mode)
        cs.VectorShapeReward(several, claimed(right)).reset(seed=0)
    env.action_space.seed(0)
    _, info = single.reset(seed=0)
    states = set()
    for _ in range(200):
        state, *_, info = single.step(env.action_space.sample(info["action_mask"]))
        states.add(int(state))
    assert len(states) > 10  # each was compared, and none refused

    def play(env):
        rng = np.random.default_rng(0)
        env.reset(seed=0)
        for _ in range(100):
            env.step(rng.integers(4, size=2) if isinstance(env, cs.VectorShapeReward) else int(rng.integers(4)))

    for make in (
        lambda: play(cs.ShapeReward(env, claimed(space))),
        lambda: play(cs.VectorShapeReward(vector, claimed(space))),
        lambda: cs.train(env, claimed(space), learner="q-ucb-shaping", steps=200, clip="none"),
    ):
        with pytest.raises(ArgumentError, match=r"In state \d+ the environment admits 0, but.*excludes it there"):
            make()
    play(cs.ShapeReward(env, cs.Potential.zero(space)))  # which claims nothing


class Ward(Walk):
    """Tells the numbers of its admissible actions, as ICU-Sepsis does; the cheapest one exists in the last places."""

    def info(self):
        return {"admissible_actions": [0, 1] if self.place < 3 else [0, 1, 2]}

    def reset(self, **options):
        return super().reset(**options)[0], self.info()

    def step(self, action):
        assert action in self.info()["admissible_actions"]
        *rest, _ = super().step(action)
        return *rest, self.info()


def walk_on(env, action):
    for _ in range(30):
        env.step(action)


def test_lists_of_admissible_actions_are_read_too():
    options = {"steps": 300, "horizon": 30, "clip": "none"}
    run = cs.train(Ward(), **options)
    assert (run.visits[:3, 2] == 0).all()
    assert (run.visits[3:5, 2] > 0).all()
    narrow = cs.Space(range(6), range(3), admissible={s: [0, 1] for s in range(4)})  # wrong in 3
    with pytest.raises(ArgumentError, match="In state 3 the environment admits 2"):
        cs.train(Ward(), claimed(narrow), learner="q-ucb-shaping", **options)
    single = cs.ShapeReward(Ward(), claimed(narrow))
    several = cs.VectorShapeReward(SyncVectorEnv([Ward] * 2), claimed(narrow))
    for env, action in ((single, 0), (several, np.zeros(2, dtype=int))):
        env.reset(seed=0)  # the space is right in the first state
        with pytest.raises(ArgumentError, match="In state 3 the environment admits 2"):
            walk_on(env, action)


def test_a_space_reads_the_lists_of_an_environment():
    env = Ward()
    env.dynamics = {"admissible_actions": [[0, 1], [0, 1], [0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2]]}
    space = cs.Space([3, 1], range(3)).restricted(gym.wrappers.TimeLimit(env, 20))  # states as logs happen to show them
    assert space.admissible == {1: {0, 1}}


def test_an_inadmissible_action_is_not_recorded():
    space = cs.Space(range(6), ["slow", "quick", "cheap"], admissible={0: ["slow", "quick"]})
    phi = cs.Potential.zero(space)
    env = cs.ShapeReward(Walk(), phi, actions=space.actions, record=True)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="Action 'cheap' is not admissible in state 0 of"):
        env.step(2)
    env.step(1)
    assert env.logs().space.admissible == space.admissible
    vector = cs.VectorShapeReward(SyncVectorEnv([Walk] * 2), phi, actions=space.actions, record=True)
    vector.reset(seed=0)
    with pytest.raises(ArgumentError, match="Action 'cheap' is not admissible in state 0"):
        vector.step(np.array([0, 2]))
    cs.ShapeReward(Walk(), phi).reset(seed=0)


def test_an_agent_that_takes_an_action_which_ceilings_exclude_is_stopped():
    space = cs.Space(range(6), range(3), admissible={0: [0, 1]})
    env = cs.ShapeReward(Walk(), cs.Potential(np.zeros(6), space, assumptions=("It is a ceiling.",)))
    env.reset(seed=0)
    env.step(1)
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="Action 2 is not admissible in state 0 of the potential's space"):
        env.step(2)
    for mode in AutoresetMode:
        several = cs.VectorShapeReward(SyncVectorEnv([Walk], autoreset_mode=mode), env.potential)
        several.reset(seed=0)
        while True:  # back to where episodes begin, if environments begin anew by themselves
            _, _, terminated, truncated, _ = several.step(np.array([1]))
            if (terminated | truncated).any():
                break
        if mode == AutoresetMode.DISABLED:
            several.reset(seed=0)
        if mode == AutoresetMode.NEXT_STEP:
            several.step(np.array([2]))  # no action is taken in it
        with pytest.raises(ArgumentError, match="Action 2 is not admissible in state 0 of the potential's space"):
            several.step(np.array([2]))
