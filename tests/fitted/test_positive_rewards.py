"""Fits with rewards above 0: no ceiling exceeds what can be paid."""

import numpy as np
import pyarrow as pa
import pytest
from point_robot import LARGEST_RETURN, STATE, STEPS, logs_of

import causal_shaping as cs

pytest.importorskip("sklearn")

ROWS = 2000
BASICS = {"state": STATE, "horizon": STEPS, "discount": 0.99}
SMALL = {"members": 1, "trees": 2}


@pytest.fixture(scope="module")
def logs():
    return [logs_of(operator, ROWS) for operator in ("skilled", "random")]


@pytest.fixture(scope="module")
def fitted(logs):
    return cs.fit_ceilings(logs, reward_max=LARGEST_RETURN, **BASICS, **SMALL)


def logged_states(logs):
    return np.concatenate([np.column_stack([log[name] for name in STATE]) for log in logs])


def within_reach(fitted, logs):
    states = logged_states(logs)
    return states[~fitted.is_beyond(states)]


def test_no_ceiling_exceeds_what_the_goal_pays(fitted, logs):
    states = within_reach(fitted, logs)
    assert len(states) > 0.99 * 2 * ROWS
    for step in (0, STEPS // 2, STEPS - 1):
        assert fitted(states, step).max() <= LARGEST_RETURN + 1e-5


def test_no_floor_falls_below_what_an_episode_can_cost(logs):
    floors = cs.fit_floors(logs, reward_min=-5.3, **BASICS, **SMALL)
    states = within_reach(floors, logs)
    assert floors(states).min() >= -5.3 - sum(0.3 * 0.99**k for k in range(STEPS))


def corridor_log(goal, cost, rows=3000):
    """Single steps along a corridor, by somebody who steps at random; only its end pays."""
    rng = np.random.default_rng(0)
    place = rng.uniform(size=rows)
    action = rng.integers(2, size=rows)
    after = np.maximum(place + 0.1 * (2 * action - 1) + 0.05 * rng.normal(size=rows), 0)
    arrived = after >= 1
    numbers = {"episode": np.arange(rows), "step": np.zeros(rows, int), "x": place, "next_x": after}
    ends = {"terminated": arrived, "truncated": ~arrived}
    log = numbers | ends | {"action": action, "reward": goal * arrived - cost}
    return pa.table(log | {"source": ["walker"] * rows})


@pytest.mark.parametrize("cost", [0.0, 0.05])
def test_no_ceiling_exceeds_what_the_end_of_a_corridor_pays(cost):
    log = corridor_log(1.0, cost)
    largest = 1.0 - cost
    found = cs.fit_ceilings(log, state=["x"], horizon=STEPS, reward_max=largest, **SMALL)
    states = np.asarray(log["x"])[:, None]
    assert found(states[~found.is_beyond(states)]).max() <= largest + 1e-5
