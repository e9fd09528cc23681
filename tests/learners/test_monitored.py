"""Learners and the monitor: ceilings that hold are kept, those that do not are dropped, in both paths alike."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import AssumptionWarning
from causal_shaping.shaping.monitor import Monitor

WORLD = cs.load_world("windy-empty")
LEAST, MOST = (float(bound) for bound in (WORLD.model.reward.min(), WORLD.model.reward.max()))
CEILINGS = cs.value_ceilings(
    [WORLD.model.observe(beta, source=name) for name, beta in WORLD.demonstrators.items()],
    WORLD.horizon,
    MOST,
    reward_min=LEAST,
)
LEARNER = {"learner": "q-ucb-shaping"}
LOW = replace(CEILINGS, values=CEILINGS.values - 0.6 * ~CEILINGS.terminal)


def low_potential(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return LOW.potential(**options)


@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("given", ["ceilings", "potential"])
def test_both_paths_drop_ceilings_at_the_same_step_and_learn_alike(given, step_indexed):
    ceilings = LOW if given == "ceilings" else low_potential(step_indexed=step_indexed)
    options = {"steps": 1_500, "seed": 3, "step_indexed": step_indexed, "checkpoints": [1_000]}
    options |= LEARNER
    with pytest.warns(AssumptionWarning, match=r"(?s)The agent earns more.*The learner dropped them and began again"):
        compiled = cs.train(WORLD, ceilings, **options)
    with pytest.warns(AssumptionWarning):
        played = cs.train(WORLD, ceilings, compiled=False, **options)
    assert 0 < compiled.alarm == played.alarm < 1_500
    for name in ("step_regret", "q_values", "values", "visits", "policies", "returns"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(played, name))
    assert f"contradicted after {compiled.alarm:,} steps" in compiled.summary()
    assert compiled.visits.sum() == 1_500 - compiled.alarm + 1


def test_after_the_alarm_the_learner_begins_again_with_a_potential_of_0_and_no_clip(tmp_path):
    with pytest.warns(AssumptionWarning):
        run = cs.train(WORLD, LOW, steps=4_000, seed=1, record=True, **LEARNER)
    logs, alarm = run.logs, run.alarm - 1
    table = np.zeros((len(WORLD.states), len(WORLD.actions)))
    values, visits = np.zeros(len(table)), np.zeros(table.shape)
    for row in range(alarm, 4_000):
        s, x, after = logs.state[row], logs.action[row], logs.next_state[row]
        if row > alarm:
            assert x == table[s].argmax()
        visits[s, x] += 1
        rate = (WORLD.horizon + 1) / (WORLD.horizon + visits[s, x])
        target = logs.reward[row] + (0.0 if logs.terminated[row] else values[after])
        table[s, x] = (1 - rate) * table[s, x] + rate * target
        values[s] = table[s].max()
    np.testing.assert_allclose(run.q_values, table, atol=1e-12)
    run.save(tmp_path / "run.parquet")
    assert cs.Run.load(tmp_path / "run.parquet").alarm == run.alarm


def test_ceilings_that_hold_are_kept_and_without_reward_min_nothing_is_tested():
    options = {"steps": 5_000, "seed": 2} | LEARNER
    kept = cs.train(WORLD, CEILINGS, **options)
    untested = cs.train(WORLD, replace(CEILINGS, reward_min=None), **options)
    assert kept.alarm is None
    np.testing.assert_array_equal(kept.q_values, untested.q_values)
    assert cs.train(WORLD, replace(LOW, reward_min=None), **options).alarm is None
    assert cs.train(WORLD, LOW, learner="q-ucb", steps=2_000, seed=2).alarm is None  # it does not use them


def test_the_learner_tests_what_the_wrapper_tests():
    with pytest.warns(AssumptionWarning):
        run = cs.train(WORLD, LOW, steps=3_000, seed=5, record=True, **LEARNER)
    monitor, logs = Monitor(LOW.potential()), run.logs
    for row in range(run.alarm):
        assert not monitor.alarmed
        step = (logs.step[row], logs.state[row], logs.action[row])
        followed = (float(logs.reward[row]), int(logs.next_state[row]))
        monitor.step(0, *map(int, step), *followed, bool(logs.terminated[row]), bool(logs.truncated[row]))
    assert monitor.alarmed
