"""The study of fitted ceilings, on small settings: it runs, and its rivals compute what they claim."""

import numpy as np
import pytest
import torch
from stable_baselines3.common.buffers import ReplayBuffer

import causal_shaping as cs
from causal_shaping.logs.transitions import read_transitions
from studies.field.fitted import agents, bounds, cases, rivals
from studies.field.fitted.buffers import HalfLogged

torch.set_num_threads(1)
SMALL = cases.Case("windy-field", {"horizon": 3}, grid=2, rows=1_000)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(cases.CASES, "small", SMALL)


# Rivals ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    """A small table world as a study, in which every state is a cell of its own; and counts [source, s, x, outcome]."""
    world = cs.load_world("windy-empty", horizon=3)
    rows = read_transitions([world.collect(name, 4_000) for name in ("good", "random")])
    points, first = np.unique(rows.observations[rows.state], axis=0, return_index=True)
    return cases.Study("table", [], rows, 3, -0.1, points, np.zeros(len(first)))


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

    found = rivals.swept(table, naive=True, leaf=1)
    np.testing.assert_allclose(found, by_hand(table, naive), atol=1e-6)


def test_the_papers_formula_takes_the_least_over_sources_and_the_best_value_of_all_states(table):
    def paper(shown, best):
        rows = [sum(map(len, of_source)) for of_source in shown]
        return max(
            min((one[x].sum() + (n - len(one[x])) * (-0.1 + best)) / n for one, n in zip(shown, rows, strict=True) if n)
            for x in range(len(shown[0]))
        )

    found = rivals.swept(table, naive=False, leaf=1)
    np.testing.assert_allclose(found, by_hand(table, paper), atol=1e-6)


def test_behaviour_values_are_returns_as_logged(table):
    rows = table.rows
    returns = rivals.returns_of(rows, 0.5)
    last = np.append(rows.episode[1:] != rows.episode[:-1], True)
    np.testing.assert_allclose(returns[last], rows.reward[last])
    first = np.flatnonzero(~last)
    np.testing.assert_allclose(returns[first], rows.reward[first] + 0.5 * returns[first + 1])


def test_measures_tell_values_that_are_too_low():
    found = bounds.compare(np.array([0.0, 0.9, 2.5]), np.array([0.0, 1.0, 2.0]))
    assert found["distance"] == pytest.approx(0.2)
    assert found["below"] == pytest.approx(1 / 3)
    assert found["above"] == pytest.approx(0.4 / 3)


# Agents ----------------------------------------------------------------------------------------------------------


def test_half_of_a_batch_comes_from_the_logs(table):
    rows, space = table.rows, cs.worlds.continuous_environments.ContinuousEnv(SMALL.load())
    spaces = (space.observation_space, space.action_space)
    buffer = HalfLogged(100, *spaces, device="cpu", n_envs=1, logs=rows, scaled=lambda states: states)
    plain = np.full((1, 2), 0.123, dtype=np.float32)
    for _ in range(10):
        buffer.add(plain, plain, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
    batch = buffer.sample(64)
    own = (batch.observations == plain[0, 0]).all(dim=1).numpy()
    assert own.sum() == 32
    assert len(batch.rewards) == len(batch.actions) == len(batch.next_observations) == len(batch.dones) == 64
    assert (batch.rewards[~torch.as_tensor(own)] < 0).all()
    assert isinstance(buffer, ReplayBuffer)


@pytest.mark.parametrize(("logs", "arm"), [agents.ARMS[0], *agents.ARMS[1:6]])
def test_every_kind_of_arm_trains_and_is_evaluated(small, logs, arm):
    found = agents.train("small", logs, arm, seed=0, steps=640, every=320)
    assert len(found["returns"]) == 3
    assert all(3 * SMALL.load().reward_min <= one <= 0 for one in found["returns"])


def test_scores_are_between_acting_at_random_and_the_optimum():
    runs = {f"a; {logs}; {arm}; {seed}": 2.0 + 2 * seed for logs, arm in agents.ARMS for seed in range(2)}
    done = {
        name: {"returns": [9.0] + [5 * one] * 3 + [one] * 4, "seconds": 1.0, "date": "2026-01-02"}
        for name, one in runs.items()
    }
    lines = agents.tables({"a; scale": {"random": 0.0, "best": 20.0}} | done)
    assert "0 is acting at random, 1 the optimum; 2 seeds" in lines[0]
    assert lines[4].startswith("| no logs | none | 0.60 (0.40 to 0.80)")
    assert "Run on 2026-01-02." in lines


# Bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["zero potential", "forest, observed (default)", "best guess", "10 bins, tabular"])
def test_methods_are_compared_in_a_world(small, method):
    part = f"small; {method}"
    figures = bounds.run_part(part)
    assert 0 <= figures["distance"] < 1
    assert any(line.startswith(f"| {method} |") for line in bounds.tables({part: figures}))
