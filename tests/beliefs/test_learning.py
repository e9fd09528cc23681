"""The learner that samples: the compiled and the plain path agree, and neither scale nor offset of rewards matters."""

import numpy as np
import pytest
from cells import drawn_outcomes, model_of
from models import restricted_world

import causal_shaping as cs
from causal_shaping.beliefs import model as beliefs_model
from causal_shaping.beliefs._kernels import observe
from causal_shaping.beliefs.model import Model
from causal_shaping.bounds.settings import Settings
from causal_shaping.learners._posterior import plan_if_needed, sampler_of
from causal_shaping.worlds import World
from studies.worlds import hard as hard_worlds

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
EASY = cs.load_world("lavacross-easy")
FIELDS = ("q_values", "values", "visits", "step_regret", "policies", "recommended")


def restricted():
    """A world in which some actions do not exist in some states."""
    mask = np.ones((len(EASY.states), 5), dtype=bool)
    mask[1::2, [0, 4]] = False
    return restricted_world(EASY, mask)


def belief_of(world, **options):
    step_indexed = options.pop("step_indexed", False)
    logs = [world.collect(name, 3_000) for name in world.demonstrators]
    counts = cs.count(logs, step_indexed=step_indexed)
    return cs.posterior(counts, world.horizon, world.model.reward_range[1], **options)


WAYS = {
    "without logs": (EASY, None, {}),
    "without logs, by step": (EASY, None, {"step_indexed": True}),
    "with logs": (EASY, {}, {}),
    "with logs, by step": (EASY, {"step_indexed": True}, {"step_indexed": True}),
    "discount, anything may follow": (EASY, {"support": "any", "discount": 0.9}, {}),
    "limits, a trial": (EASY, {"confidence": 0.9, "confounding": {"random": 1.0}}, {}),
    "admissible actions": (restricted(), {}, {}),
}


@pytest.mark.parametrize("samples", [True, False], ids=["in drawn worlds", "in the mean"])
@pytest.mark.parametrize("way", WAYS)
def test_the_compiled_and_the_plain_path_learn_the_same_bit_for_bit(way, samples):
    world, logs, more = WAYS[way]
    belief = None if logs is None else belief_of(world, **logs)
    options = {"learner": "posterior", "steps": 500, "seed": 3, "checkpoints": [200], "samples": samples, **more}
    run = cs.train(world, belief, **options)
    played = cs.train(world, belief, compiled=False, **options)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(run, field), getattr(played, field), err_msg=field)
    if belief is not None:
        np.testing.assert_array_equal(run.trust.by_state, played.trust.by_state)
    assert (run.visits[..., ~world.space.is_admissible] == 0).all()


def test_a_run_tells_whom_the_learner_trusted_in_the_end_and_keeps_it_in_its_file(tmp_path):
    world = hard_worlds.KINDS["hostile"](3)
    belief = cs.posterior(hard_worlds.counts_of(world), world.horizon, max(hard_worlds.REWARDS))
    run = cs.train(world, belief, learner="posterior", steps=3_000)
    assert run.trust.sources == belief.counts.sources
    assert run.trust.everywhere.sum() < 0.5 * belief.trust.everywhere.sum()
    assert "None of this holds" in run.summary()
    run.save(tmp_path / "run.parquet")
    again = cs.Run.load(tmp_path / "run.parquet")
    np.testing.assert_array_equal(again.trust.by_state, run.trust.by_state)
    assert again.trust.summary() == run.trust.summary()
    assert cs.train(world, None, learner="posterior", steps=100).trust is None
    assert cs.train(world, None, learner="q-ucb", steps=100).trust is None


def fixed_length(factor=1.0, offset=0.0):
    """A world without ends: every episode has the same length."""
    rng = np.random.default_rng(4)
    states, actions, noises = 4, 3, 3
    next_state = rng.integers(0, states, (states, actions, noises))
    reward = rng.integers(0, 9, (states, actions, noises)) / 8 * factor + offset
    noise, beta = rng.dirichlet(np.ones(noises), states), rng.dirichlet(np.full(actions, 0.5), (states, noises))
    model = cs.TabularCMDP(next_state, reward, noise, np.zeros(states, bool), np.full(states, 1 / states))
    return World("random", "Random", model, 6, ("a", "b", "c"), {"demonstrator": beta})


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize(("factor", "offset"), [(64.0, 0.0), (1 / 64, 0.0), (0.37, 0.0), (1.0, -3.0), (1.0, 8.0)])
def test_scale_and_offset_of_rewards_do_not_change_what_the_learner_does(factor, offset, logs):
    runs = []
    for world in (fixed_length(), fixed_length(factor, offset)):
        belief = belief_of(world) if logs else None
        runs.append(cs.train(world, belief, learner="posterior", steps=2_000, record=True))
    for column in ("state", "action"):
        np.testing.assert_array_equal(getattr(runs[0].logs, column), getattr(runs[1].logs, column))
    left = 6 * offset
    if factor in (64.0, 1 / 64):
        np.testing.assert_array_equal(runs[1].q_values, factor * runs[0].q_values)
    np.testing.assert_allclose(runs[1].q_values, factor * runs[0].q_values + left, rtol=1e-9)


def many_outcomes(seed):
    """A world in which each action can do forty things, so that few logs show few of them."""
    rng, states = np.random.default_rng(seed), 12
    next_state, reward = rng.integers(0, states - 1, (states, 3, 40)), rng.choice([0.0, 0.5, 1.0], (states, 3, 40))
    next_state[:, :, 0] = next_state[-1] = states - 1
    reward[-1], ends = 0.0, np.arange(states) == states - 1
    noise, start = rng.dirichlet(np.ones(40), states), np.where(ends, 0.0, 1 / (states - 1))
    betas = {name: rng.dirichlet(np.ones(3), (states, 40)) for name in ("one", "other")}
    return World("many", "Many", cs.TabularCMDP(next_state, reward, noise, ends, start), 10, tuple("u" * 40), betas)


def test_sparse_logs_are_not_taken_for_wrong_ones():
    for seed in range(6):
        world = many_outcomes(seed)
        logs = [world.collect(name, 100, seed) for name in world.demonstrators]
        counts = cs.count(logs, states=world.states, actions=world.actions)
        belief = cs.posterior(counts, 10, 1.0, support="any")
        assert cs.train(world, belief, steps=1_000, seed=seed).alarm is None


def chain(length, moves=1.0):
    """States in a row; only the end pays, but staying at the start pays a little. Logs hardly leave the start."""
    states = np.arange(length)
    next_state = np.empty((length, 2, 2), dtype=int)
    next_state[:, 0], next_state[:, 1] = np.maximum(states - 1, 0)[:, None], states[:, None]
    next_state[:, 1, 0] = np.minimum(states + 1, length - 1)
    reward = np.zeros((length, 2, 2))
    reward[0, 0], reward[-1, 1] = 0.01, 1.0
    noise = np.tile([moves, 1 - moves], (length, 1))
    model = cs.TabularCMDP(next_state, reward, noise, np.zeros(length, bool), np.eye(length)[0])
    log = np.broadcast_to([0.9, 0.1], (length, 2, 2))
    return World("chain", "Chain", model, 3 * length, ("current", "calm"), {"log": log})


def test_states_that_no_log_holds_are_no_reason_to_drop_the_logs():
    world = chain(7)
    logs = world.collect("log", 2_000, seed=1)
    assert logs.state.max() < 5
    belief = cs.posterior(cs.count(logs, states=world.states, actions=world.actions), world.horizon, 1.0)
    run = cs.train(world, belief, steps=2_000, seed=2)
    assert run.alarm is None
    assert run.visits[-1].sum() > 100


def test_an_agent_looks_beyond_what_a_few_visits_have_shown(monkeypatch):
    world = chain(4, moves=0.3)
    for seed in range(1_000):
        logs = world.collect("log", 500, seed)
        here = logs.state == 1
        if logs.state.max() == 1 and {0, 1} == set(logs.action[here]) and here.sum() < 50:
            break
    belief = cs.posterior(cs.count(logs, states=world.states, actions=world.actions), world.horizon, 1.0)
    assert cs.train(world, belief, steps=2_000, seed=2).visits[-1].sum() > 100
    monkeypatch.setattr(beliefs_model, "ENOUGH_VISITS", 0.0)
    assert cs.train(world, belief, steps=2_000, seed=2).visits[2:].sum() == 0, "what nobody saw is taken for impossible"


def test_a_budget_too_short_to_try_all_actions_is_spent_on_the_mean():
    """Plans in the mean draw nothing, so that the learner's own stream stays where it was."""
    model = model_of([[[5, 3], [2, 2], [1, 4]]], rewards=(0.0, 1.0))
    exists = np.array([[True, True, False]])
    for steps, samples in ((2 * 50 - 1, False), (2 * 50, True)):
        sampler = sampler_of(model, steps, 0, exists, False)
        before = sampler.rng.bit_generator.state
        plan_if_needed(sampler, 0, 0, 0)
        assert (sampler.rng.bit_generator.state != before) == samples
        assert sampler.plans[0] == 1
        assert sampler_of(model, steps, 0, exists, False, samples=not samples).samples is not samples


def test_without_logs_worlds_are_drawn_however_short_the_budget():
    """In a maze whose coins pay once the mean has no reason to leave its place: regret of 5,800 instead of 330."""
    model = Model(EASY.space, None, Settings(horizon=20, reward_bound=-0.1))
    exists = EASY.space.is_admissible.copy()
    assert sampler_of(model, 10, 0, exists, False).samples
    assert not sampler_of(belief_of(EASY).model, 10, 0, exists, False).samples
    with pytest.raises(cs.ArgumentError, match="samples is for the learner 'posterior', not 'q-ucb'"):
        cs.train(EASY, cs.Potential.zero(EASY), steps=10, learner="q-ucb", samples=True)


def first_or_second(pays):
    """One state, in which an action ends the episode and pays what it is given; logs mostly hold the first."""
    model = cs.TabularCMDP(
        np.ones((2, 2, 1), dtype=int), [[[pays[0]], [pays[1]]], [[0.0], [0.0]]], [[1.0], [1.0]], [False, True], [1, 0]
    )
    beta = np.broadcast_to([0.95, 0.05], (2, 1, 2))
    return World("pair", "Pair", model, 1, ("calm",), {"log": beta})


def test_logs_of_another_world_are_dropped_and_the_learner_goes_on_alone():
    logged, online = first_or_second((1.0, 0.0)), first_or_second((0.0, 1.0))
    belief = cs.posterior(cs.count(logged.collect("log", 2_000)), 1, 1.0)
    run = cs.train(logged, belief, steps=300)
    assert run.alarm is None
    assert run.step_regret[-1] == 0
    with pytest.warns(cs.ShapingWarning, match=r"in its first \d+ steps contradicts the logs.*The learner dropped"):
        run = cs.train(online, belief, steps=300, record=True)
    assert 0 < run.alarm < 30
    assert f"contradicted after {run.alarm:,} steps" in run.summary()
    assert run.recommended[0] == 1
    np.testing.assert_array_equal(run.logs.action[-200:], 1)
    np.testing.assert_array_equal(run.values, np.nanmax(run.q_values, axis=-1))
    assert run.logs.terminated.all()
    assert not run.logs.truncated.any()


def test_after_logs_are_dropped_only_the_agents_own_visits_count():
    """Logs prove nine tenths of the one outcome; the agent sees the other alone, thirty times after the alarm."""
    model = model_of([[[950, 0], [25, 25]]], rewards=(0.0, 1.0))
    memory, visits = model.memory(100), 0
    while not memory.against[1] or visits < memory.against[1] + 30:
        observe(model.shape, model.guess, memory, 0, 1, 1.0, 1.0)
        visits += 1
        assert visits < 90, "no alarm"
    drawn = drawn_outcomes(model, 2_000, rewards=(0.0, 1.0), memory=memory)
    assert drawn.mean(axis=0)[1] == pytest.approx(visits / (visits + 1), abs=0.02)
    assert drawn.mean(axis=0)[0] < 0.02
