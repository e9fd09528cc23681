"""The rivals: their loops against slow and obvious ones, and what they take from logs against the true world."""

import math

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.worlds.simulate import tables_of
from studies.field import rivals
from studies.field.plan import Case

CASE = Case("random", "dense", 9_001, "good", "none", 40_000)


@pytest.fixture(scope="module")
def world():
    return CASE.world()


@pytest.fixture(scope="module")
def logs(world):
    return [world.collect(name, CASE.rows, 5) for name in world.demonstrators]


@pytest.fixture(scope="module")
def counts(world, logs):
    return cs.count(logs, states=world.states, actions=world.actions)


def test_logs_without_hidden_causes_show_the_world_as_it_is(world, counts):
    pool = rivals.pooled(world, counts)
    assert pool.visits.sum() == 2 * CASE.rows
    often = pool.visits > 300
    assert pool.rewards[often] == pytest.approx(world.model.rewards()[often], abs=0.12)
    true = world.model.transitions()[..., ~world.model.terminal]
    found = pool.following.toarray().reshape(true.shape[0], true.shape[1], -1)[..., ~world.model.terminal]
    assert found[often] == pytest.approx(true[often], abs=0.12)


def test_fitted_q_values_of_such_logs_are_nearly_optimal(world, counts):
    pool = rivals.pooled(world, counts)
    best = world.model.optimum(world.horizon)
    found = rivals.fitted_q(world, pool)
    assert found.max(axis=-1) == pytest.approx(best.values, abs=0.2)
    empty = pool._replace(visits=np.zeros_like(pool.visits))
    most, _ = rivals.vacuous(world)
    alive = ~world.model.terminal
    assert (rivals.fitted_q(world, empty)[:, alive] == most[:, None, None]).all()


def test_envelopes_hold_the_optimum_if_nothing_is_hidden(world, counts):
    best = world.model.optimum(world.horizon)
    upper, lower = rivals.envelopes(world, rivals.pooled(world, counts), 1.0)
    assert (upper >= best.q_values - 1e-9).all()
    assert (lower <= best.values + 1e-9).all()
    narrow, high = rivals.envelopes(world, rivals.pooled(world, counts), 0.1)
    assert (narrow <= upper + 1e-12).all()
    assert (high >= lower - 1e-12).all()


def plain_ucbvi(world, steps, seed, bonus, lower_order):
    """UCBVI with dictionaries."""
    model, horizon = world.model, world.horizon
    states, actions, _ = model.next_state.shape
    span = model.reward_range[1] - model.reward_range[0]
    most, gaps = rivals.vacuous(world)[0], model.gaps(horizon)
    rng, seen, regret = np.random.default_rng(seed), {}, []
    start, noise = model.start.cumsum(), model.noise.cumsum(axis=1)
    h = horizon
    for _ in range(steps):
        if h == horizon:
            h, s = 0, int(np.searchsorted(start, rng.random(), side="right"))
            values, plan = np.zeros(states), np.zeros((horizon, states, actions))
            for t in reversed(range(horizon)):
                for a in range(states):
                    for x in range(actions):
                        rows = seen.get((a, x), [])
                        plan[t, a, x] = most[t]
                        if rows:
                            n, left = len(rows), span * (horizon - t)
                            mean = sum(paid + values[after] for paid, after in rows) / n
                            extra = bonus * span / math.sqrt(n) + lower_order * left / n
                            plan[t, a, x] = min(most[t], mean + min(extra, left))
                values = np.where(model.terminal, 0.0, plan[t].max(axis=1))
        x = int(plan[h, s].argmax())
        regret.append(gaps[h, s, x])
        u = int(np.searchsorted(noise[s], rng.random(), side="right"))
        after = int(model.next_state[s, x, u])
        seen.setdefault((s, x), []).append((model.reward[s, x, u], after))
        h, s = (horizon, 0) if model.terminal[after] else (h + 1, after)
    return np.array(regret)


def test_ucbvi_does_what_a_plain_loop_does(world):
    setting = {"bonus": 0.3, "lower_order": 0.1}
    found = rivals.run_ucbvi(world, 400, 3, **setting)
    assert found == pytest.approx(plain_ucbvi(world, 400, 3, **setting), abs=1e-9)
    assert found.sum() > 0


def test_next_states_are_drawn_from_a_dirichlet():
    states, prior, rng = 12, 0.6, np.random.default_rng(2)
    seen = rivals.Seen(
        np.array([[4, 7, 0]], dtype=np.int32), np.array([[0.5, 0.2, 0.0]]), np.array([2]), np.array([0.7]), np.zeros(1)
    )
    drawn = np.zeros((40_000, states))
    after, chances = np.zeros(states, dtype=np.int32), np.zeros(states)
    for row in drawn:
        kinds = rivals.draw_next(rng, seen, 0, prior, states, after, chances)
        assert len(set(after[:kinds])) == kinds
        row[after[:kinds]] = chances[:kinds]
    assert drawn.sum(axis=1) == pytest.approx(np.ones(len(drawn)))
    alpha = np.full(states, prior / states) + 0.5 * (np.arange(states) == 4) + 0.2 * (np.arange(states) == 7)
    exact = rng.dirichlet(alpha, len(drawn))
    assert drawn.mean(axis=0) == pytest.approx(alpha / alpha.sum(), abs=0.01)
    assert drawn.std(axis=0) == pytest.approx(exact.std(axis=0), abs=0.01)
    others = np.delete(np.arange(states), [4, 7])
    assert drawn[:, others].max(axis=1).mean() == pytest.approx(exact[:, others].max(axis=1).mean(), abs=0.01)


def test_believing_logs_saves_nearly_everything_if_nothing_is_hidden(world, logs, counts):
    pool = rivals.pooled(world, counts)
    steps, without = 2_000, rivals.run_psrl(world, 2_000, 1, **rivals.SETTINGS["psrl"]).sum()
    assert rivals.run_psrl(world, steps, 1, counts, **rivals.SETTINGS["naive-model"]).sum() < 0.3 * without
    assert rivals.run_q(world, steps, 1, logs, pool, most=1e9).sum() < 0.1 * without
    assert rivals.run_q(world, steps, 1, logs, pool, **rivals.SETTINGS["replay"]).sum() < 0.5 * without
    assert rivals._seen(world, counts).visits.sum() == counts.n.sum()


def test_replay_learns_the_value_of_what_was_logged(world, logs, counts):
    """At constant rates, from nothing and with many replays, Q-values come to those of the logs' own model."""
    pool, exists = rivals.pooled(world, counts), world.space.is_admissible.copy()
    best = rivals.fitted_q(world, pool)
    q_values, visits = np.zeros((world.horizon + 1, *exists.shape)), np.zeros(exists.shape)
    agent = rivals.Replay(0.005, 1_500, sum(map(len, logs)), *rivals.replayed(logs, 400))
    streams, gaps = (np.random.default_rng(1), np.random.default_rng(2)), world.model.gaps(world.horizon)
    rivals.run_replay(streams, tables_of(world.model), gaps, agent, q_values, visits, np.zeros(400))
    often = pool.visits > 500
    assert q_values[:-1][:, often] == pytest.approx(best[:, often], abs=0.5)
    assert np.abs(q_values[:-1][:, often] - best[:, often]).mean() < 0.2  # half of what it learns from is its own
