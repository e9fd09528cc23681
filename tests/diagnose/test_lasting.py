"""The persistence test where states cannot be listed: its parts against plain loops, its level and power in samples."""

import numpy as np

from causal_shaping.diagnose._lasting import Steps, _near, find_lasting, parts_of
from causal_shaping.diagnose._predict import PENALTIES, Predictor, least_squares
from studies.calibration.continuous_tests import LEVEL, holds, logs_of, pair_of, pair_p_value, past_p_value


def some_steps(episodes: int = 12, length: int = 6) -> Steps:
    rng = np.random.default_rng(0)
    place = rng.normal(size=(episodes, length + 1, 2))
    size = episodes * length
    return Steps(
        state=place[:, :-1].reshape(size, 2),
        after=place[:, 1:].reshape(size, 2),
        action=rng.integers(2, size=size),
        step=np.tile(np.arange(length), episodes),
        episode=np.repeat(np.arange(episodes), length),
        ended=np.zeros(size, dtype=bool),
        outcome=np.column_stack([rng.normal(size=(size, 2)), np.zeros(size)]),
    )


def test_rows_that_can_follow_are_the_nearest_of_other_episodes_in_the_part():
    steps = some_steps()
    part = parts_of(steps.episode, 3, np.random.default_rng(1))
    near, unit = _near(steps, part, 4), steps.step.std()
    for i in range(len(part)):
        away = np.square(steps.state - steps.after[i]).sum(axis=1) + np.square((steps.step - steps.step[i] - 1) / unit)
        away[(part != part[i]) | (steps.episode == steps.episode[i])] = np.inf
        assert set(near[i]) == set(np.argsort(away)[:4])


def test_least_squares_have_the_penalty_with_the_least_error_by_cross_validation():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(40, 12)) * np.geomspace(1, 0.01, 12)
    wanted = np.column_stack([columns @ rng.normal(size=12) + 0.5 * rng.normal(size=40), rng.normal(size=40)])
    columns, wanted = columns - columns.mean(axis=0), wanted - wanted.mean(axis=0)
    gram = columns.T @ columns
    found = least_squares(gram, columns.T @ wanted, np.square(wanted).sum(axis=0), len(columns))
    for number, weights in zip(wanted.T, found.T, strict=True):
        tried = []
        for penalty in PENALTIES * np.trace(gram) / 12:
            inverse = np.linalg.inv(gram + penalty * np.eye(12))
            left = number - columns @ inverse @ columns.T @ number
            free = 1 - np.trace(columns @ inverse @ columns.T) / 40
            tried.append((np.mean(left**2) / free**2, inverse @ columns.T @ number))
        np.testing.assert_allclose(weights, min(tried, key=lambda one: one[0])[1], rtol=1e-6, atol=1e-9)


def test_lines_by_action_are_predicted_beyond_the_logs_within_the_numbers_seen():
    rng = np.random.default_rng(0)
    state, action = rng.uniform(-1, 1, size=(600, 2)), rng.integers(2, size=600)
    wanted = (state @ [1.0, -2.0] + action * state[:, 0])[:, None]
    fit = Predictor(state, action, wanted + 0.01 * rng.normal(size=wanted.shape), 2, rng)
    assert np.abs(fit(state, action) - wanted).max() < 0.1
    np.testing.assert_allclose(fit(np.array([[1.1, 1.1]]), np.array([1])), [[0.0]], atol=0.3)


def test_few_episodes_are_not_tested_and_outcomes_that_never_vary_prove_nothing():
    assert np.isnan(find_lasting(some_steps(episodes=6), 2, np.random.default_rng(0)).p_value)
    still = some_steps()
    still = still._replace(outcome=np.zeros_like(still.outcome))
    assert find_lasting(still, 2, np.random.default_rng(0)).p_value == 1.0


CLEAN = ("windy-field: good", "cart-pole: good", "mountain-car: good", "linear: 2 coordinates")


def test_small_logs_in_which_nothing_lasts_rarely_raise_an_alarm():
    """Two of 8 or more have a chance of 6%; forests alone alarmed in all logs of cart-pole and most of the car."""
    found = [past_p_value(logs_of(name, seed), seed) for name in CLEAN for seed in range(2)]
    assert sum(p <= LEVEL for p in found) < 2


def test_a_cause_that_lasts_is_found_in_small_logs():
    found = [past_p_value(logs_of("linear: 2 coordinates", seed, lasting=1.0), seed) for seed in range(4)]
    assert sum(p <= LEVEL for p in found) >= 3


def test_sources_of_small_logs_differ_if_one_of_them_sees_the_cause():
    found = [pair_p_value(pair_of("linear: 2", seed, 1.0), seed) for seed in range(4)]
    assert sum(p <= LEVEL for p in found) >= 3


def test_the_check_fails_if_clean_logs_alarm_too_often():
    assert holds({"clean; a": {"logs": 100, "alarms": 9}, "1; a": {"logs": 10, "alarms": 10}})
    assert not holds({"clean; a": {"logs": 100, "alarms": 10}})
    assert not holds({"clean; a": {"logs": 40, "alarms": 8}, "clean; b": {"logs": 400, "alarms": 0}})
