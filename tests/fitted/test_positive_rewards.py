"""Fits with rewards above 0: no ceiling exceeds what can be paid, and the fit says it is coarse."""

import json

import numpy as np
import pyarrow as pa
import pytest
from point_robot import LARGEST_RETURN, STATE, STEPS, logs_of

import causal_shaping as cs
from causal_shaping.fitted import FittedCeilings
from causal_shaping.fitted.results import COARSE

pytest.importorskip("sklearn")

ROWS = 2000
BASICS = {"state": STATE, "horizon": STEPS, "discount": 0.99}
SMALL = {"members": 1, "trees": 2}
VERDICT = "Do not use it as a potential for a deep agent yet: fits with rewards above 0 are coarse"


@pytest.fixture(scope="module")
def logs():
    return [logs_of(operator, ROWS) for operator in ("skilled", "random")]


@pytest.fixture(scope="module")
def fitted(logs):
    return cs.fit_ceilings(logs, reward_max=LARGEST_RETURN, **BASICS, **SMALL)


def without_rewards_above_0(log):
    costs = pa.array(np.minimum(log["reward"], 0.0))
    return log.set_column(log.column_names.index("reward"), "reward", costs)


def test_no_ceiling_within_reach_exceeds_what_the_goal_pays(fitted, logs):
    states = np.concatenate([np.column_stack([log[name] for name in STATE]) for log in logs])
    states = states[~fitted.is_beyond(states)]
    assert len(states) > 0.99 * 2 * ROWS
    for step in (0, STEPS // 2, STEPS - 1):
        assert fitted(states, step).max() <= LARGEST_RETURN + 1e-5


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


@pytest.mark.parametrize("support", ["observed", "observed-action", "any"])
def test_the_result_says_that_it_is_coarse(logs, support, tmp_path):
    basics = BASICS | {"horizon": 2}
    found = cs.fit_ceilings(logs, reward_max=LARGEST_RETURN, support=support, **basics, **SMALL)
    assert COARSE in found.summary()
    assert found.potential().assumptions[0] == COARSE
    told = json.loads(found.to_json())
    assert told["verdict"] == found.diagnostics.verdict
    assert told["verdict"].startswith(VERDICT)
    assert told["assumptions"] == list(found.assumptions)
    found.save(tmp_path)
    loaded = FittedCeilings.load(tmp_path)
    assert loaded.summary() == found.summary()
    assert loaded.diagnostics.verdict == found.diagnostics.verdict


def test_fits_without_rewards_above_0_do_not_say_that_they_are_coarse(logs):
    costs_only = [without_rewards_above_0(log) for log in logs]
    costs = cs.fit_ceilings(costs_only, reward_max=0.0, **BASICS | {"horizon": 2}, **SMALL)
    floors = cs.fit_floors(logs, reward_min=-5.3, **BASICS | {"horizon": 2}, **SMALL)
    for found in (costs, floors):
        assert "coarse" not in found.summary()
        assert "coarse" not in found.to_json()
