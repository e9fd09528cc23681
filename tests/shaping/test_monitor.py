"""The monitor of ceilings: false alarms are rare whatever the agent does, and what contradicts them is found."""

import copy
import itertools
import pickle
import warnings
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings, strategies as st
from models import cmdps, demonstrators
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, AssumptionWarning, ShapingWarning
from causal_shaping.shaping.monitor import ALARM, FRACTIONS, TESTED, CeilingEvidence, Monitor

EASY = cs.load_world("lavacross-easy")
ID = "causal_shaping/LavaCrossEasy-v0"
LEAST, MOST = (float(bound) for bound in (EASY.model.reward.min(), EASY.model.reward.max()))


def population_ceilings(model, betas, horizon=2, scale=1.0, **options):
    """Ceilings from exact counts of demonstrators who sometimes act at random, so that every outcome was seen."""
    model = cs.TabularCMDP(model.next_state, scale * model.reward, model.noise, model.terminal, model.start)
    counts = [model.observe((beta + 1 / len(model.actions)) / 2, source=str(i)) for i, beta in enumerate(betas)]
    bounds = (float(bound) for bound in (model.reward.max(), model.reward.min()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # one source, rewards of both signs
        return model, cs.value_ceilings(counts, horizon, next(bounds), reward_min=next(bounds), **options)


def potential_of(ceilings, shift=0.0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return ceilings.potential(**options).shifted(shift)


def largest_mean(model, monitor, steps, horizon, state=None, h=0):
    """The mean of the evidence after so many steps under the agent that maximises it, which may know the world."""
    if steps == 0:
        assert not monitor.alarmed or monitor.report().evidence < np.inf
        return monitor.report().evidence
    if state is None:
        starts = np.flatnonzero(model.start)
        return sum(model.start[s] * largest_mean(model, monitor, steps, horizon, int(s)) for s in starts)
    means = []
    for x in range(len(model.actions)):
        mean = 0.0
        for u in np.flatnonzero(model.noise[state]):
            after = int(model.next_state[state, x, u])
            ended, truncated, other = bool(model.terminal[after]), h + 1 == horizon, copy.deepcopy(monitor)
            other.step(0, h, state, x, float(model.reward[state, x, u]), after, ended, truncated)
            over = ended or truncated
            following = (None, 0) if over else (after, h + 1)
            mean += model.noise[state, u] * largest_mean(model, other, steps - 1, horizon, *following)
        means.append(mean)
    return max(means)


KINDS = {
    "steps": ({}, {}, 2),
    "any": ({"support": "any"}, {}, 2),
    "by action": ({"support": "observed-action"}, {}, 2),
    "first step": ({}, {"step_indexed": False}, 2),
    "first step, cut": ({}, {"step_indexed": False}, 1),
    "discount": ({"discount": 0.5}, {}, 2),
    "stationary": ({"stationary": True, "discount": 0.9}, {}, 2),
    "value_max": ({"value_max": 0.4}, {}, 2),
    "raised": ({}, {"shift": 0.3}, 2),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), model=cmdps())
def test_evidence_is_at_most_1_in_the_mean_for_the_agent_that_maximises_it(kind, data, model):
    options, shape, cut = KINDS[kind]
    betas = [data.draw(demonstrators(model)) for _ in range(2)]
    model, ceilings = population_ceilings(model, betas, **options)
    if kind == "value_max" and model.optimum(horizon=2).values.max() > 0.4:
        return  # it is no upper bound of values
    monitor = Monitor(potential_of(ceilings, **shape))
    assert largest_mean(model, monitor, 3, cut) <= 1 + 1e-9


@fewer(20)
@given(data=st.data(), model=cmdps(states=(2, 3)), rewards=st.sampled_from([64.0, 1 / 64, 0.3, 700.0, 1e-6]))
def test_other_units_of_reward_change_nothing(data, model, rewards):
    betas = [data.draw(demonstrators(model))]
    found = []
    for scale in (1.0, rewards):
        scaled, ceilings = population_ceilings(model, betas, scale=scale)
        phi = potential_of(ceilings)
        monitor = Monitor(replace(phi, values=phi.values - 0.05 * scale))
        found.append(played(scaled, monitor, 40, 2))
    exact = rewards in (64.0, 1 / 64)
    assert found[0] == found[1] if exact else np.allclose(found[0], found[1], rtol=1e-6)


def played(model, monitor, steps, horizon, seed=0):
    """The evidence after each step of an agent that acts at random."""
    rng, evidence, s, h = np.random.default_rng(seed), [], None, 0
    for _ in range(steps):
        s = int(rng.choice(len(model.start), p=model.start)) if s is None else s
        x, u = int(rng.integers(len(model.actions))), rng.choice(model.noise.shape[1], p=model.noise[s])
        after = int(model.next_state[s, x, u])
        ended, truncated = bool(model.terminal[after]), h + 1 == horizon
        evidence.append(monitor.step(0, h, s, x, float(model.reward[s, x, u]), after, ended, truncated))
        s, h = (None, 0) if ended or truncated else (after, h + 1)
    return evidence


def test_evidence_is_what_the_text_says():
    """Computed anew: gains over the largest possible loss, wealth by cell and of all, weights by number of cells."""
    rng = np.random.default_rng(3)
    values = rng.uniform(size=(3, 4))
    space = cs.Space(["a", "b", "c", "d"], ["x", "y"])
    phi = cs.Potential(values, space, discount=0.9, kind="ceiling", reward_min=-1.0, reward_max=1.0)
    monitor, table = Monitor(phi), np.concatenate([phi.values, np.zeros((1, 4))])
    by_cell, everything = {}, []
    for _ in range(30):
        h, s, x, after = (int(rng.integers(n)) for n in (3, 4, 2, 4))
        reward, ended = float(rng.uniform(-1, 1)), bool(rng.random() < 0.2)
        shaped = reward + 0.9 * (0.0 if ended else table[h + 1, after]) - table[h, s]
        unseen = phi.unseen[h + 1] if h < 2 else 0.0
        worst = -1.0 + 0.9 * min(0.0, unseen, *table[h + 1]) - table[h, s]
        gain = shaped / -worst
        everything.append(gain)
        by_cell.setdefault((s, x), []).append(gain)
        found = monitor.step(0, h, s, x, reward, after, ended, False)

        def wealth(gains):
            return np.mean([np.prod([1 + f * gain for gain in gains]) for f in FRACTIONS])

        weights = (0.5 / 9, 0.5 / np.sqrt(9))
        products = [np.prod([1 - w + w * wealth(gains) for gains in by_cell.values()]) for w in weights]
        assert found == pytest.approx((wealth(everything) + np.mean(products)) / 2, rel=1e-6)
        if found >= ALARM:
            break


@given(
    rewards=st.lists(st.floats(-1, 1), min_size=1, max_size=4),
    discount=st.floats(0.5, 1),
    ceiling=st.floats(0.5, 4),
    reward_min=st.sampled_from([-1.0, -2.5, 0.25]),
    end=st.sampled_from(["terminated", "truncated", "given up"]),
    environment=st.integers(0, 2),
)
def test_evidence_after_an_episode_is_what_was_bet_on_its_return(
    rewards, discount, ceiling, reward_min, end, environment
):
    """By hand: what an episode that did not end may still have paid is the least; then one bet on the return."""
    most = 4
    bounds = {"reward_min": reward_min, "reward_max": 1.0, "episode_steps": most, "discount": discount}
    phi = cs.Potential([ceiling, 0.0], cs.Space(["a", "b"], ["x"]), kind="ceiling", **bounds)
    monitor = Monitor(phi, environments=3)
    rewards = [max(reward, reward_min) for reward in rewards]
    for h, reward in enumerate(rewards):
        last = h + 1 == len(rewards)
        flags = (last and end == "terminated", last and end == "truncated")
        monitor.step(environment, h, 0, 0, reward, 0, *flags)
    if end == "given up" and len(rewards) < most:  # the last step that counts is an end
        monitor.step(environment, 0, 0, 0, max(reward_min, 0.0), 0, False, False)
    # Where every step pays, ending is the least: after one step, or before any that was not seen.
    paid = rewards + ([] if end == "terminated" else [min(reward_min, 0.0)] * (most - len(rewards)))
    lowest = [reward_min] * (1 if reward_min > 0 else most)
    earned, least = (sum(discount**h * r for h, r in enumerate(each)) for each in (paid, lowest))
    mean = np.mean([1 + fraction * (earned - ceiling) / (ceiling - least) for fraction in FRACTIONS])
    weights = np.array([0.5 / 3, 0.5 / np.sqrt(3)])  # two cells, and one more
    assert monitor.evidence == pytest.approx((mean + np.mean(1 - weights + weights * mean)) / 2, rel=1e-6)


def test_what_a_ceiling_excludes_is_an_alarm_at_once():
    space = cs.Space(["a", "b", "c"], ["x", "y"], admissible={"a": ["x"]})
    row = [[0, 0], [-1, 1], [-1, -1]]
    allowed = cs.data.successors.AllowedSuccessors(row, [0, 2, 3], [1, 3, 2], [0.5, 0.2, 1.0])
    phi = cs.Potential([1.0, 1.0, 1.0], space, kind="ceiling", reward_max=1.0, successors=allowed)
    fine = [(0, 0, 0.5, 1, False), (0, 0, 0.2, 2, True), (1, 1, 1.0, 2, False), (1, 0, 1.0, 0, False)]
    excluded = {
        (0, 0, 0.0, 2, False): "action 'x' in state 'a' paid 0 and led to state 'c', but this cannot follow",
        (1, 1, 0.0, 2, True): "action 'y' in state 'b' paid 0 and led to an end, but this cannot follow",
        (0, 0, 0.6, 1, False): "paid 0.6 and led to state 'b', but this is more than was ever paid",
        (1, 0, 1.1, 2, False): "paid 1.1 and led to state 'c', but this is more than their reward_max",
        (1, 0, 0.0, -1, False): "led to a state that they do not know, but they say that no other states exist",
        (-1, 0, 0.0, 1, False): "in a state that they do not know paid 0 and led to state 'b', but they say",
        (1, -1, 0.0, 1, False): "but they do not count this action",
        (0, 1, 0.0, 1, False): "action 'y' in state 'a' paid 0 and led to state 'b', but they do not count",
    }
    for step, words in excluded.items():
        monitor = Monitor(phi)
        for s, x, reward, after, ended in fine:
            assert monitor.step(0, 0, s, x, reward, after, ended, False) == 1.0
        s, x, reward, after, ended = step
        assert monitor.step(0, 0, s, x, reward, after, ended, False) == np.inf
        report = monitor.report()
        assert words in report.alarm
        assert (report.alarm_step, report.steps, report.tested) == (5, 5, "exclusions")
        with pytest.warns(AssumptionWarning, match="too low here"):
            monitor.tell()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            monitor.tell()  # once
    unknown = Monitor(replace(phi, space=replace_complete(space)))
    assert unknown.step(0, 0, 1, 0, 0.0, -1, False, False) == 1.0
    assert unknown.step(0, 0, 0, 0, 0.0, -1, False, False) == np.inf  # outside of the support


def replace_complete(space):
    return cs.Space(space.states, space.actions, admissible=space.admissible, complete=False)


def test_a_reward_below_reward_min_ends_the_bets_and_is_told():
    space = cs.Space(["a", "b"], ["x"])
    monitor = Monitor(cs.Potential([1.0, 1.0], space, kind="ceiling", reward_min=0.0, reward_max=1.0))
    before = monitor.step(0, 0, 0, 0, 1.0, 1, False, False)
    assert monitor.step(0, 0, 0, 0, -0.5, 1, False, False) == before
    assert monitor.step(0, 0, 0, 0, 1.0, 1, False, False) == before
    assert not monitor.alarmed
    with pytest.warns(AssumptionWarning, match=r"paid -0\.5, less than reward_min, 0"):
        monitor.tell()
    assert monitor.step(0, 0, 0, 0, 2.0, 1, False, False) == np.inf


def test_ceilings_that_are_tight_and_certain_give_no_alarm_by_rounding():
    space = cs.Space(["a"], ["x"])
    values = np.cumsum([0.1] * 30)[::-1]
    phi = cs.Potential(values[:, None], space, kind="ceiling", reward_min=0.1, reward_max=0.1)
    monitor = Monitor(phi)
    for _ in range(200):
        for h in range(30):
            assert monitor.step(0, h, 0, 0, 0.1, 0, False, h == 29) <= 1.0


# Which potentials claim what --------------------------------------------------------------------------------


def easy_ceilings(**options):
    counts = [EASY.model.observe(beta, source=name) for name, beta in EASY.demonstrators.items()]
    options = {"reward_min": LEAST, **options}
    return cs.value_ceilings(counts, EASY.horizon, MOST, **options)


CEILINGS = easy_ceilings()


def test_ceilings_say_what_their_potential_bounds():
    phi = CEILINGS.potential()
    assert (phi.kind, phi.reward_min, phi.reward_max, phi.episode_steps) == ("ceiling", LEAST, MOST, None)
    assert CEILINGS.potential(step_indexed=False).episode_steps == EASY.horizon
    assert CEILINGS.potential().shifted(0.5).kind == "ceiling"
    assert CEILINGS.potential().shifted(-0.5).kind == "other"
    assert easy_ceilings(support="any").potential().successors is None
    assert easy_ceilings(value_max=-0.3).potential().episode_steps == EASY.horizon
    assert easy_ceilings(value_max=0.0).potential().episode_steps is None
    assert easy_ceilings(reward_min=None).potential().reward_min is None
    with pytest.warns(AssumptionWarning):
        assert easy_ceilings(method="paper").potential().episode_steps == EASY.horizon
    assert cs.Potential.zero(EASY).kind == "other"
    with pytest.raises(ArgumentError, match=r"reward_min is -0\.05, but source"):
        easy_ceilings(reward_min=-0.05)
    with pytest.raises(ArgumentError, match="kind"):
        cs.Potential([0.0], cs.Space(["a"], ["x"]), kind="upper")


@pytest.mark.parametrize("support", ["observed", "observed-action"])
def test_the_support_is_what_was_seen(support):
    counts = cs.count([EASY.collect(name, 300, seed=1) for name in ("good", "bad")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        allowed = cs.value_ceilings(counts, 20, 0.0, support=support).successors
    states, actions = len(counts.space.states), len(counts.space.actions)
    for s, x in itertools.product(range(states), range(actions)):
        here = (counts.state == s) & counts.outcome_known
        tried = here & (counts.action == x)
        if not tried.any() or (~counts.outcome_known & (counts.state == s)).any():
            continue
        here = tried if support == "observed-action" else here
        seen = {}
        for entry in np.flatnonzero(here):
            to = states if counts.terminated[entry] else int(counts.next_state[entry])
            seen[to] = max(seen.get(to, -np.inf), counts.reward_max[entry])
        row = allowed.row[s, x]
        held = slice(allowed.first[row], allowed.first[row + 1])
        assert dict(zip(allowed.after[held].tolist(), allowed.highest[held].tolist(), strict=True)) == seen
    untried = np.ones((states, actions), dtype=bool)
    untried[counts.state, counts.action] = False
    assert (allowed.row[untried] == -1).all()


def test_files_and_specs_keep_the_claims(tmp_path):
    phi = CEILINGS.potential()
    phi.save(tmp_path / "phi.parquet")
    CEILINGS.save(tmp_path / "ceilings.parquet")
    loaded = [cs.load_potential(tmp_path / name) for name in ("phi.parquet", "ceilings.parquet")]
    for other in (*loaded, cs.Potential.from_json(phi.to_json())):
        assert other.checksum == phi.checksum
        assert other.metadata == phi.metadata
        assert (other.kind, other.reward_min, other.reward_max) == ("ceiling", LEAST, MOST)
    old = cs.Potential(phi.values, phi.space)  # a potential that claims nothing is written as it always was
    assert "claims" not in old.metadata


# Wrappers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", [False, True])
def test_a_wrapper_warns_of_a_reward_below_reward_min_at_once(vector):
    space = cs.Space(range(16), range(4))
    phi = cs.Potential(np.ones(16), space, kind="ceiling", reward_min=0.5, reward_max=1.0)
    env = gym.make_vec("FrozenLake-v1", num_envs=2) if vector else gym.make("FrozenLake-v1")  # pays 0 on the way
    shaped = (cs.VectorShapeReward if vector else cs.ShapeReward)(env, phi)
    shaped.reset(seed=0)
    with pytest.warns(AssumptionWarning, match=r"paid 0, less than reward_min, 0\.5"):
        shaped.step(np.zeros(2, dtype=int) if vector else 0)
    assert shaped.monitor.evidence == 1.0


def stepped(env, steps, seed=0):
    """The last info after so many steps at random."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        *_, terminated, truncated, info = env.step(int(rng.integers(5)))
        if terminated or truncated:
            env.reset()
    return info


def test_the_wrapper_tells_the_evidence_and_no_other_potential_is_monitored():
    phi = CEILINGS.potential()
    env = cs.ShapeReward(gym.make(ID), phi)
    info = stepped(env, 300)
    assert 0 < info["ceiling_evidence"] == env.monitor.evidence < ALARM
    assert (env.monitor.steps, env.monitor.alarm, env.monitor.tested) == (300, None, "steps")
    assert "nothing happened that the ceilings exclude" in env.monitor.summary()
    assert len(env.monitor.to_pandas()) == 1
    for other in (replace(phi, kind="guess"), cs.Potential.zero(EASY)):
        quiet = cs.ShapeReward(gym.make(ID), other)
        assert "ceiling_evidence" not in stepped(quiet, 5)
        assert quiet.monitor is None
    assert cs.ShapeReward(gym.make(ID), phi, monitor=False).monitor is None


@pytest.mark.parametrize("step_indexed", [True, False])
def test_ceilings_that_are_too_low_are_found_and_told_once(step_indexed):
    phi = CEILINGS.potential(step_indexed=step_indexed)
    low = replace(phi, values=phi.values - 3.0)
    env = cs.ShapeReward(gym.make(ID), low)
    with pytest.warns(AssumptionWarning, match="The agent earns more than the ceilings allow") as told:
        stepped(env, 2_000)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert env.monitor.evidence >= ALARM
    assert env.monitor.alarm_step == env.monitor.steps < 2_000


def test_a_truncated_step_is_tested_with_the_state_that_followed():
    phi, found = CEILINGS.potential(), []
    for rule in ("bootstrap", "terminal"):
        with pytest.warns(ShapingWarning, match="an episode lasts up to 7"):
            found.append(cs.ShapeReward(gym.make(ID, max_episode_steps=7), phi, time_limit=rule))
    assert stepped(found[0], 200)["ceiling_evidence"] == stepped(found[1], 200)["ceiling_evidence"]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("rule", ["bootstrap", "terminal"])
def test_a_vector_has_one_process_over_all_environments(mode, rule):
    phi = CEILINGS.potential()
    parts = SyncVectorEnv([lambda: gym.make(ID)] * 2, autoreset_mode=mode)
    env, rng = cs.VectorShapeReward(parts, phi, time_limit=rule), np.random.default_rng(0)
    singles = [gym.make(ID) for _ in range(2)]
    monitor = Monitor(phi, environments=2)
    env.reset(seed=[0, 1])
    states = [int(single.reset(seed=i)[0]) for i, single in enumerate(singles)]
    h, over = [0, 0], np.zeros(2, dtype=bool)
    for _ in range(120):
        if mode == AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
        actions = rng.integers(5, size=2)
        skipped = over if mode == AutoresetMode.NEXT_STEP else np.zeros(2, dtype=bool)
        for i, single in enumerate(singles):
            if over[i]:
                states[i], h[i] = int(single.reset()[0]), 0
            if not skipped[i]:
                after, reward, terminated, truncated, _ = single.step(int(actions[i]))
                step = (h[i], states[i], int(actions[i]), float(reward), int(after), bool(terminated), bool(truncated))
                monitor.step(i, *step)
                states[i], h[i] = int(after), h[i] + 1
        _, _, ended, cut, info = env.step(actions)
        over = (ended | cut) & ~skipped
        assert info["ceiling_evidence"].tolist() == [monitor.report().evidence] * 2
    assert env.monitor.steps == monitor.report().steps


def test_a_step_outside_of_the_support_is_told_by_the_wrapper():
    counts = cs.count([EASY.collect("good", 400, seed=0), EASY.collect("bad", 400, seed=0)])
    phi = cs.value_ceilings(counts, 20, MOST).potential()
    env = cs.ShapeReward(gym.make(ID), phi)
    with pytest.warns(AssumptionWarning, match="or they are plug-in estimates"):
        info = stepped(env, 500)
    assert info["ceiling_evidence"] == np.inf


def test_without_names_of_actions_the_support_of_a_state_is_tested():
    space = cs.Space([0, 1, 2], ["stay", "go"])
    allowed = cs.data.successors.AllowedSuccessors([[0, 0], [-1, 0], [0, 0]], [0, 1], [1], [1.0])
    phi = cs.Potential([1.0, 1.0, 1.0], space, kind="ceiling", reward_min=0.0, reward_max=1.0, successors=allowed)
    monitor = Monitor(phi, by_action=False)
    assert monitor.step(0, 0, 1, 0, 0.0, 2, False, False) < 1.0  # something else may follow some action
    assert monitor.step(0, 0, 0, 0, 0.0, 2, False, False) == np.inf
    assert "state 0 paid 0 and led to state 2" in monitor.report().alarm


def test_a_summary_says_what_was_tested():
    nothing = "nothing happened that the ceilings exclude"
    assert CeilingEvidence(1.0, 30, "exclusions").summary() == f"In 30 steps {nothing}. Nothing else was tested."
    for tested in ("steps", "episodes"):
        summary = CeilingEvidence(1.5, 30, tested).summary()
        told = f"{nothing}. Evidence against them from {TESTED[tested]}: 1.5; the alarm is at {ALARM:g}."
        assert summary.endswith(told)
    assert CeilingEvidence(20.0, 30, "exclusions", "It cannot be.", 7).summary() == "It cannot be."


def test_a_terminal_state_ends_an_episode_whatever_its_number():
    """The return of one step, 1, is all that is tested: had the episode gone on, it might have cost 2 more."""
    for states in (["end", "a"], ["a", "end"]):
        space = cs.Space(states, ["x"], terminal=["end"])
        end, a = states.index("end"), states.index("a")
        values = [1.0 if state == "a" else 0.0 for state in states]
        bounds = {"reward_min": -1.0, "reward_max": 2.0, "episode_steps": 3}
        monitor = Monitor(cs.Potential(values, space, kind="ceiling", **bounds))
        assert monitor.step(0, 0, a, 0, 1.0, end, False, True) == pytest.approx(1.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda monitor: pickle.loads(pickle.dumps(monitor))])
def test_a_copy_of_a_monitor_goes_on_alone(copied):
    space = cs.Space(["a", "b"], ["x"])
    monitor = Monitor(cs.Potential([1.0, 1.0], space, kind="ceiling", reward_min=0.0, reward_max=1.0))
    monitor.step(0, 0, 0, 0, 0.5, 1, False, False)
    other = copied(monitor)
    assert other.step(0, 1, 1, 0, 0.5, 0, False, False) == other.evidence
    assert (monitor.report().steps, other.report().steps) == (1, 2)
