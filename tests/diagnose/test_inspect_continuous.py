import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import causal_shaping as cs
from causal_shaping.diagnose._clusters import clusters_of, holm, means_of
from causal_shaping.diagnose.continuous import _flip_signs
from studies.worlds.cart_pole import CartPole

STATE = ["x", "y"]
ROWS = 1000


@pytest.fixture(scope="module")
def world():
    return cs.load_world("windy-field")


@pytest.fixture(scope="module")
def inspected(world):
    logs = [world.collect(name, ROWS, seed=0) for name in world.demonstrators]
    return cs.inspect_continuous(logs, state=STATE)


def logs_of_patients(lasts: bool, episodes: int = 150, seed: int = 0) -> pd.DataFrame:
    """A severity that moves the state and is drawn once an episode, or afresh at each step."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        x, cause = rng.normal(), rng.choice([-1.0, 1.0])
        for step in range(8):
            cause = cause if lasts else rng.choice([-1.0, 1.0])
            action = int(rng.random() < 0.5)
            after = 0.5 * x + 0.5 * action + 0.5 * cause + 0.3 * rng.normal()
            rows.append((episode, step, x, action, -abs(x), after, False, step == 7))
            x = after
    names = ["episode", "step", "x", "action", "reward", "next_x", "terminated", "truncated"]
    return pd.DataFrame(rows, columns=names)


def test_a_demonstrator_who_sees_the_push_contradicts_one_who_does_not():
    world = CartPole(horizon=20)
    logs = [world.collect(name, 2000, seed=0) for name in ("bad", "random")]
    found = cs.inspect_continuous(logs, state=list(world.columns))
    assert [(pair.first, pair.second) for pair in found.contradictions()] == [("bad", "random")]
    assert "bad and random show different outcomes" in found.summary()


def test_sources_that_never_do_the_same_cannot_be_compared():
    rng = np.random.default_rng(0)
    logs = []
    for name, action in (("left", 0), ("right", 1)):
        x = rng.normal(size=(100, 6))
        frame = pd.DataFrame({"episode": np.repeat(np.arange(100), 5), "step": np.tile(np.arange(5), 100)})
        frame["x"], frame["next_x"] = x[:, :-1].ravel(), x[:, 1:].ravel()
        logs.append(frame.assign(source=name, action=action, reward=0.0, terminated=False, truncated=frame.step == 4))
    found = cs.inspect_continuous(logs, state=["x"])
    assert found.pairs[0].p_value is None
    assert "Too little to tell whether these contradict each other: left and right." in found.summary()


def test_a_cell_without_its_rare_event_does_not_accuse():
    """Half the episodes pass through a cell where nothing happened: small products, all of one sign."""
    rng = np.random.default_rng(0)
    sums = np.column_stack([rng.normal(size=100), np.where(np.arange(100) < 50, 1e-3, 0.0)])
    assert _flip_signs(csr_array(sums), 1, rng)[0] > 0.05
    assert _flip_signs(csr_array(sums + np.array([0.5, 0.0])), 1, rng)[0] <= 0.002


def test_two_logs_of_one_demonstrator_do_not_contradict_each_other(world):
    logs = [world.collect("good", 2000, seed=0, source=name) for name in ("first", "second")]
    assert not cs.inspect_continuous(logs, state=STATE).contradictions()


def test_two_policies_that_see_nothing_do_not_contradict_each_other(world):
    def by_cell(states):
        cell = np.floor(np.asarray(states) + 0.5).astype(int)
        shares = np.full((len(cell), 5), 0.1)
        shares[np.arange(len(cell)), (cell[:, 0] + 2 * cell[:, 1]) % 5] += 0.5
        return np.repeat(shares[:, None], len(world.noises), axis=1)

    logs = [world.collect("random", 2000), world.collect(by_cell, 2000, source="by cell")]
    assert not cs.inspect_continuous(logs, state=STATE).contradictions()


def test_wind_that_is_drawn_afresh_hardly_counts_as_lasting(inspected, world):
    """At a level of 5% two alarms in two logs have a probability of 0.3%; `make calibrate` has many more logs."""
    more = [world.collect(name, 1000, seed=1) for name in ("good", "random")]
    found = [inspected, cs.inspect_continuous(more, state=STATE)]
    quiet = [one for one in found if not one.lasting()]
    assert quiet
    assert all("tells nothing" in one.summary() for one in quiet)


@pytest.mark.parametrize("lasts", [True, False])
def test_a_cause_that_lasts_over_the_episode_is_found(lasts):
    found = cs.inspect_continuous(logs_of_patients(lasts), source="ward", state=["x"])
    assert bool(found.lasting()) == lasts


def test_clusters_hold_all_rows_and_name_actions_that_nobody_took(inspected, world):
    frame = inspected.to_pandas()
    assert frame["rows"].sum() == 3 * ROWS
    assert frame.filter(like="action_").sum().sum() == 3 * ROWS
    never = sum((frame.groupby("cluster").sum(numeric_only=True).filter(like="action_") == 0).any(axis=1))
    assert never == sum(bool(cluster.never_taken()) for cluster in inspected.clusters)


def test_one_source_with_few_episodes_is_told_as_untested(world):
    found = cs.inspect_continuous(world.collect("good", 30), state=STATE)
    assert not found.pairs
    assert found.persistence[0].p_value is None
    assert "could not be tested" in found.summary()


def test_inspection_can_be_written_as_json_and_equal_seeds_give_equal_results(world):
    logs = world.collect("bad", 500)
    first, second = (cs.inspect_continuous(logs, state=STATE, seed=1).to_json() for _ in range(2))
    assert first == second
    assert json.loads(first)["rows"] == {"bad": 500}


def test_holm_corrects_by_the_number_of_finite_p_values():
    np.testing.assert_allclose(holm([0.01, np.nan, 0.5, 0.02]), [0.03, np.nan, 0.5, 0.04])


def test_variance_of_a_mean_counts_episodes_not_rows():
    values = np.repeat([1.0, -1.0, 3.0, 1.0], 10)
    found = means_of(values, np.zeros(40, dtype=np.int64), np.repeat(np.arange(4), 10), 1)
    assert found.mean[0] == 1.0
    np.testing.assert_allclose(found.variance[0], np.var([1, -1, 3, 1], ddof=1) / 4)


def test_images_are_put_into_clusters_that_repeat_with_the_seed():
    images = np.random.default_rng(0).integers(0, 256, size=(300, 9, 9), dtype=np.uint8)
    first, second = (clusters_of(images, seed=3) for _ in range(2))
    assert (first == second).all()
    assert set(first) == set(range(first.max() + 1))
