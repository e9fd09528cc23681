"""The study of fitted ceilings, on small settings: it runs, it resumes, and its rivals compute what they claim."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import ReplayBuffer

import causal_shaping as cs
from causal_shaping.logs.transitions import read_transitions
from causal_shaping.worlds.continuous_environments import ContinuousEnv
from studies.field.fitted import agents, bounds, cases, rivals
from studies.field.fitted.buffers import HalfLogged
from studies.field.fitted.vectors import ForStableBaselines, WorldVector

torch.set_num_threads(1)
SMALL = cases.Case("small", "windy-field", {"horizon": 3}, grid=2, rows=1_000, members=1)


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setitem(cases.CASES, "small", SMALL)
    monkeypatch.setattr(agents, "WORK", tmp_path)


# Rivals ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """A small table world as a study, in which every state is a cell of its own; and counts [source, s, x, outcome]."""
    world = cs.load_world("windy-empty", horizon=3)
    rows = read_transitions([world.collect(name, 4_000) for name in ("good", "random")])
    points, first = np.unique(rows.observations[rows.state], axis=0, return_index=True)
    return cases.Study("table", rows, 3, -0.1, -0.1, points, np.zeros(len(first)), members=1)


def by_hand(study, back_up):
    """Values at the study's points, by a plain loop over the rows: back_up(targets by source and action, best)."""
    rows = study.rows
    place = {tuple(point): k for k, point in enumerate(study.points)}
    at = np.array([place.get(tuple(seen), -1) for seen in rows.observations])
    values, best = np.zeros(len(study.points)), 0.0
    for _ in range(study.horizon):
        follows = np.where(rows.terminated | (at[rows.next_state] < 0), 0.0, values[at[rows.next_state]])
        targets = np.asarray(rows.reward) + follows
        now = np.empty_like(values)
        for k in range(len(now)):
            own = at[rows.state] == k
            shown = [
                [targets[own & (rows.source == i) & (rows.action == x)] for x in range(len(rows.actions))]
                for i in range(len(rows.sources))
            ]
            now[k] = back_up(shown, best)
        values, best = now, max(now.max(), 0.0)
    return values


def test_naive_fitted_q_is_the_best_mean_target_of_all_rows(table):
    def naive(shown, best):
        pooled = [np.concatenate(of_action) for of_action in zip(*shown, strict=True)]
        return max(one.mean() for one in pooled if len(one))

    found = rivals.swept(table, rivals.NAIVE, leaf=1)
    np.testing.assert_allclose(found, by_hand(table, naive), atol=1e-6)


def test_the_papers_formula_takes_the_least_over_sources_and_the_best_value_of_all_states(table):
    def paper(shown, best):
        rows = [sum(map(len, of_source)) for of_source in shown]
        return max(
            min((one[x].sum() + (n - len(one[x])) * (-0.1 + best)) / n for one, n in zip(shown, rows, strict=True) if n)
            for x in range(len(shown[0]))
        )

    found = rivals.swept(table, rivals.PAPER, leaf=1)
    np.testing.assert_allclose(found, by_hand(table, paper), atol=1e-6)


# Agents ----------------------------------------------------------------------------------------------------------


def test_a_vector_of_one_goes_where_the_environment_goes():
    world = SMALL.load()
    one, vector = ContinuousEnv(world), WorldVector(world, 1)
    seen, _ = one.reset(seed=3)
    all_seen, _ = vector.reset(seed=3)
    np.testing.assert_array_equal(all_seen[0], seen)
    for action in np.random.default_rng(0).integers(len(world.actions), size=50):
        seen, reward, terminated, truncated, _ = one.step(action)
        all_seen, rewards, ended, cut, info = vector.step([action])
        assert (rewards[0], ended[0], cut[0]) == (reward, terminated, truncated)
        over = terminated or truncated
        np.testing.assert_array_equal(info["final_obs"][0] if over else all_seen[0], seen)
        if over:
            np.testing.assert_array_equal(all_seen[0], one.reset()[0])


def test_half_of_a_batch_comes_from_the_logs(table):
    world = SMALL.load()
    rows = cases.logged(world, ("good",), 500)
    env = ForStableBaselines(WorldVector(world, 1), 0)
    space = (env.observation_space, env.action_space)
    buffer = HalfLogged(100, *space, device="cpu", n_envs=1, logs=rows, env=env)
    plain = np.full((1, 2), 0.123, dtype=np.float32)
    for _ in range(10):
        buffer.add(plain, plain, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    batch = buffer.sample(64)
    own = (batch.observations == plain[0, 0]).all(dim=1).numpy()
    assert own.sum() == 32
    assert len(batch.rewards) == len(batch.actions) == len(batch.next_observations) == len(batch.dones) == 64
    assert (batch.rewards[~torch.as_tensor(own)] < 0).all()
    assert isinstance(buffer, ReplayBuffer)


@pytest.mark.parametrize("arm", [agents.WITHOUT, "ceiling", "naive fitted Q", agents.FILLED])
def test_every_kind_of_arm_trains_and_is_evaluated(small, arm):
    agents.logs_of.cache_clear()
    found = agents.train("small", "good", arm, seed=0, steps=640, every=320)
    assert len(found["returns"]) == 3
    assert all(3 * SMALL.load().reward_min <= one <= 0 for one in found["returns"])
    assert agents.tables(
        {f"small; good; {arm}; 0": found} if arm != agents.WITHOUT else {f"small; none; {arm}; 0": found}
    )


# Bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["zero potential", "forest, observed (default)", "best guess", "10 bins, tabular"])
def test_methods_are_compared_in_a_world(small, method):
    part = f"small; {method}"
    figures = bounds.run_part(part)
    assert 0 <= figures["distance"] < 1
    assert any(line.startswith(f"| {method} |") for line in bounds.tables({part: figures}))
