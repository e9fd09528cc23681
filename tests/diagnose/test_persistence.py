"""The persistence test: it finds hidden causes that last, keeps its level where none do, and says what it means."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import expit

import causal_shaping as cs
from causal_shaping.diagnose import _persistence as inner
from causal_shaping.diagnose.persistence import MOST_ROWS
from causal_shaping.errors import ArgumentError, DataError
from studies.calibration.listed_tests import columns_of, p_value, random_world


def frame(columns, **changes):
    """A data frame of columns of a world; the last rows of episodes that go on are cut by a time limit."""
    table = pd.DataFrame(columns | changes)
    last = ~table.duplicated(["source", "episode"], keep="last")
    table["truncated"] = last & ~table.terminated.astype(bool)
    table["terminated"] = table.terminated.astype(bool)
    table["source"] = [f"source {i}" for i in table.source]
    return table


def drug_world(rng, episodes, strength, lasts=True):
    """Logs of two doctors who each prefer one of two drugs; which is right lasts for the stay.

    The right drug helps for a day with a chance of (1 + strength) / 2, the other with (1 - strength) / 2. Patients stay
    ill, so that both doctors show the same outcomes of both drugs.
    """
    source = np.repeat([0, 1], episodes // 2)
    right, ill, rows = rng.integers(2, size=len(source)), np.zeros(len(source), dtype=int), []
    for step in range(5):
        if not lasts:
            right = rng.integers(2, size=len(source))
        drug = np.where(rng.random(len(source)) < 0.8, source, 1 - source)
        helped = rng.random(len(source)) < (1 + strength * np.where(drug == right, 1, -1)) / 2
        rows.append((source, np.arange(len(source)), ill + step, ill, drug, ill, ill > 0, helped))
    return columns_of(rows)


def severity_world(rng, episodes, strength, lasts=True):
    """Logs of one ward: a patient's severity lasts, makes treatment likelier, and recovery less likely.

    Health is 0 (dead) to 4; treatment raises the log-odds of getting better by 0.6, severity lowers them by `strength`
    and raises those of being treated by as much. Dying ends the episode with a reward of -1.
    """
    episode, health, rows = np.arange(episodes), np.full(episodes, 2), []
    severe = rng.choice([-1, 1], size=episodes)
    for step in range(6):
        if not lasts:
            severe = rng.choice([-1, 1], size=len(health))
        treated = (rng.random(len(health)) < expit(strength * severe - 0.5 * (health - 2))).astype(int)
        better = rng.random(len(health)) < expit(-strength * severe + 0.6 * treated)
        following = np.minimum(health + np.where(better, 1, -1), 4)
        dead = following == 0
        rows.append((0 * episode, episode, 0 * episode + step, health, treated, following, dead, -1.0 * dead))
        episode, health, severe = episode[~dead], following[~dead], severe[~dead]
    return columns_of(rows)


def rows_of(columns):
    held = dict(columns)
    held["after"] = inner.codes(held.pop("next_state"), held.pop("terminated"))
    return inner.Rows(**held)


@pytest.fixture(scope="module")
def drugs():
    return frame(drug_world(np.random.default_rng(0), 600, 0.6))


@pytest.fixture(scope="module")
def tested(drugs):
    return cs.persistence_test(drugs)


def test_a_drug_that_stays_right_is_found_where_no_source_contradicts_another(drugs):
    found = cs.inspect(drugs)
    assert not found.contradictions.items
    assert found.persistence.p_value < 0.01
    assert found.persistence.rejected
    (sentence,) = found.persistence.findings()
    assert sentence in found.findings()
    assert sentence in found.summary()
    assert "confounded" not in sentence
    for words in ("hidden cause may last", "not Markov", "changed while the log", "several demonstrators", "remembers"):
        assert words in sentence
    for words in ("part of the state", "split by demonstrator"):
        assert words in sentence


def test_a_drug_that_is_right_for_a_day_is_not_found():
    found = cs.persistence_test(frame(drug_world(np.random.default_rng(0), 600, 0.6, lasts=False)))
    assert not found.rejected
    assert "That proves nothing" in found.summary()


@pytest.mark.parametrize("continuous", [False, True])
def test_severity_that_lasts_is_found(continuous):
    columns = severity_world(np.random.default_rng(1), 600, 1.0)
    if continuous:
        columns["reward"] = columns["reward"] + np.random.default_rng(2).standard_normal(len(columns["reward"]))
    assert p_value(columns, 99, 0) < 0.05
    assert p_value(severity_world(np.random.default_rng(1), 600, 1.0, lasts=False), 99, 0) > 0.05


def nothing_but(episodes, steps, **columns):
    """Episodes of one source in which nothing happens but what columns hold; a number stands for all rows."""
    episode, step = (part.ravel() for part in np.meshgrid(np.arange(episodes), np.arange(steps)))
    zero = 0 * episode
    nothing = {"source": zero, "episode": episode, "step": step, "state": zero, "action": zero, "next_state": zero}
    return nothing | {"terminated": zero > 0, "reward": zero} | columns


def test_a_continuous_reward_alone_tells_what_lasts():
    rng = np.random.default_rng(0)
    columns = nothing_but(200, 5, action=rng.integers(2, size=1000), reward=rng.standard_normal(1000))
    assert p_value(columns, 99, 0) > 0.05
    columns["reward"] = columns["reward"] + 0.6 * rng.standard_normal(200)[columns["episode"]]
    assert p_value(columns, 99, 0) < 0.01


def test_several_demonstrators_in_one_source_are_found_and_bounds_hold_all_the_same():
    # One doctor gives a drug where it will help, the other where it will not; whether it will is drawn afresh.
    helps, odd = np.random.default_rng(0).integers(2, size=1200), np.tile(np.arange(300) % 2, 4)
    treated = np.where(odd, helps, 1 - helps)
    mixed = frame(nothing_but(300, 4, action=treated, reward=1.0 * (helps * treated)))
    assert cs.persistence_test(mixed).rejected
    split = mixed.assign(source=np.where(mixed.episode % 2, "first", "second"))
    assert not cs.persistence_test(split).rejected
    assert cs.value_ceilings(cs.count(mixed, states=[0]), 4, 1.0, support="any").values[0, 0] >= 4 * 0.5


@pytest.mark.parametrize("kind", ["deterministic", "blind", "confounded", "time-varying"])
def test_the_level_holds_where_nothing_lasts(kind):
    # studies/calibration/figures/persistence.json has 1,000 repetitions; here few, within 3 standard errors.
    found = [p_value(random_world(np.random.default_rng(seed), kind, 60), 39, seed) for seed in range(40)]
    assert sum(p <= 0.05 for p in found) <= 40 * 0.05 + 3 * np.sqrt(40 * 0.05 * 0.95)


def test_given_the_past_all_arrangements_of_outcomes_give_a_valid_p_value():
    """Every way to deal the last outcomes within cells is equally likely: p <= t must hold in a share t of them."""
    rng = np.random.default_rng(3)
    episodes = 12
    first = {"state": np.zeros(episodes, dtype=int), "action": rng.integers(2, size=episodes)}
    after = rng.integers(2, size=episodes)  # the state at the second step
    cells = [np.flatnonzero(after == s) for s in range(2)]
    deals = []
    for parts in itertools.product(*(itertools.combinations(cell, len(cell) // 2) for cell in cells)):
        helped = np.zeros(episodes)
        helped[list(itertools.chain(*parts))] = 1.0
        deals.append(helped)
    found = []
    for seed, helped in enumerate(deals):
        columns = {
            "state": np.append(first["state"], after),
            "action": np.append(first["action"], 0 * after),
            "next_state": np.append(after, 0 * after),
            "reward": np.append(after, helped),
        }
        found.append(p_value(nothing_but(episodes, 2, **columns), 99, seed))
    assert len(found) >= 200
    extreme = 100 * np.array(found)  # of 99 permutations and the arrangement itself
    np.testing.assert_allclose(extreme, np.maximum(1, np.round(extreme)))
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        assert np.mean(np.array(found) <= level) <= level + 2 * np.sqrt(level * (1 - level) / len(found))
    assert min(found) < 0.1


def test_no_step_looks_at_later_ones():
    columns = severity_world(np.random.default_rng(4), 200, 1.0)
    whole = list(inner.step_tests(rows_of(columns), 39, 0))
    for last in (1, 2, 4):
        early = {name: column[columns["step"] <= last] for name, column in columns.items()}
        early["reward"] = early["reward"] / 2 + 3  # the range of rewards does not matter either
        assert list(inner.step_tests(rows_of(early), 39, 0)) == whole[:last]


@settings(max_examples=5)
@given(
    scale=st.floats(0.01, 100),
    offset=st.floats(-1000, 1000),
    seed=st.integers(0, 10),
    labels=st.permutations(range(5)),
    continuous=st.booleans(),
)
def test_units_of_rewards_names_and_the_order_of_sources_do_not_matter(scale, offset, seed, labels, continuous):
    rng = np.random.default_rng(seed)
    columns = random_world(rng, "confounded", 40)
    if not continuous:
        columns["reward"] = np.round(columns["reward"])
    plain = cs.persistence_test(frame(columns), permutations=39)
    names = np.array([f"name {i}" for i in labels])
    changed = {"state": names[columns["state"]], "next_state": names[columns["next_state"]]}
    changed |= {"action": np.array(["c", "a", "b"])[columns["action"]], "reward": columns["reward"] * scale + offset}
    other = frame(columns, **changed)
    parts = [cs.open_logs(part, source=name) for name, part in other.groupby("source")]
    again = cs.persistence_test(parts[::-1], permutations=39)
    np.testing.assert_array_equal(again.p_values, plain.p_values)
    assert again.p_value == plain.p_value
    assert again.sources == plain.sources[::-1]


def test_logs_can_be_files_frames_and_tables_and_sources_may_share_numbers_of_episodes(drugs, tested, tmp_path):
    drugs.to_parquet(tmp_path / "drugs.parquet")
    drugs.to_csv(tmp_path / "drugs.csv", index=False)
    shared = drugs.assign(episode=drugs.episode % 300)
    assert shared.groupby("episode").source.nunique().eq(2).all()
    logs = [cs.read_logs(drugs, source=name) for name in ("source 0", "source 1")]
    mixed = [logs[0], drugs[drugs.source == "source 1"]]
    for other in (tmp_path / "drugs.parquet", tmp_path / "drugs.csv", shared, logs, mixed, cs.open_logs(drugs)):
        again = cs.persistence_test(other)
        np.testing.assert_array_equal(again.p_values, tested.p_values)
        assert again.episodes == tested.episodes == {"source 0": 300, "source 1": 300}


def test_a_sample_holds_whole_episodes_and_is_told(drugs):
    one = cs.persistence_test(drugs, episodes=120, seed=3)
    assert one.episodes == {"source 0": 120, "source 1": 120}
    assert one.total_episodes == {"source 0": 300, "source 1": 300}
    assert "random sample: 120 of 300 episodes of source 0, 120 of 300 episodes of source 1." in one.summary()
    assert one.compared.max() <= 240
    again = cs.persistence_test(drugs.sample(frac=1, random_state=0), episodes=120, seed=3)
    np.testing.assert_array_equal(again.p_values, one.p_values)
    assert cs.persistence_test(drugs, episodes=120, seed=4).p_values.tolist() != one.p_values.tolist()


def test_long_episodes_are_fewer(monkeypatch, drugs):
    assert MOST_ROWS >= 100_000
    monkeypatch.setattr("causal_shaping.diagnose.persistence.MOST_ROWS", 1_000)
    assert cs.persistence_test(drugs).episodes == {"source 0": 100, "source 1": 100}  # 5 steps each


def test_rows_with_an_unknown_outcome_are_left_out_and_told(drugs, tested):
    ends = drugs.step == drugs.step.max()
    unknown = drugs.assign(truncated=False)
    unknown["next_state"] = unknown.next_state.astype("Int64").mask(ends)
    found = cs.persistence_test(unknown)
    assert found.unknown == ends.sum() == 600
    assert "600 rows without a known outcome were left out" in found.summary()
    np.testing.assert_array_equal(found.steps, tested.steps[:-1])
    np.testing.assert_array_equal(found.p_values, tested.p_values[:-1])
    assert tested.unknown == 0


def test_where_nothing_can_be_compared_it_says_so():
    logs = pd.DataFrame({"episode": np.arange(20), "step": 0, "state": 0, "action": 0, "reward": 1.0, "next_state": 0})
    one_step = cs.open_logs(logs.assign(terminated=True), source="ward")
    walk = pd.concat([logs.assign(step=h, state=h, next_state=h + 1, terminated=h == 3) for h in range(4)])
    unknown = cs.open_logs(logs.drop(columns="next_state"), source="ward")
    for log, left_out in ((one_step, 0), (cs.open_logs(walk, source="ward"), 0), (unknown, 20)):
        found = cs.persistence_test(log)
        assert (found.p_value, found.unknown) == (1.0, left_out)
        assert not found.rejected
        assert not len(found.steps)
        assert "cannot be tested" in found.summary()
        assert found.to_pandas().empty


def test_deterministic_demonstrators_can_be_tested():
    """The same action in a state, always; the drug suits a patient or not, and the next day tells."""
    rng = np.random.default_rng(0)
    suits, state, rows = rng.integers(2, size=400), np.zeros(400, dtype=int), []
    for step in range(4):
        better = (rng.random(400) < np.where(suits, 0.8, 0.2)).astype(int)
        rows.append(pd.DataFrame({"episode": np.arange(400), "step": step, "state": state, "next_state": better}))
        state = better
    log = pd.concat(rows).assign(reward=0.0, terminated=False)
    log["action"], log["truncated"] = log.state, log.step == 3
    assert cs.persistence_test(cs.open_logs(log, source="ward")).rejected


def test_it_is_a_result(tested):
    assert repr(tested) == "PersistenceTest(source 0, source 1: p < 0.0001 over 4 steps, rejected)"
    assert str(tested) == tested.summary()
    assert tested.summary().startswith("Persistence test of source 0 (300 episodes), source 1 (300 episodes): 4 steps")
    table = tested.to_pandas()
    assert table.step.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(table.p_value, tested.p_values)
    assert json.loads(tested.to_json())["rejected"] is True
    assert "<table" in tested._repr_html_()
    statistic = -2 * np.log(tested.p_values).sum()  # chi-squared of 8 degrees of freedom, in closed form
    half = statistic / 2
    assert tested.p_value == pytest.approx(np.exp(-half) * sum(half**i / np.prod(range(1, i + 1)) for i in range(4)))


def test_progress_reaches_its_end(drugs):
    told = []
    cs.persistence_test(drugs, progress=lambda *call: told.append(call))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]


def test_wrong_arguments_and_logs_are_refused(drugs):
    for name, value in (("permutations", 5), ("episodes", 1), ("level", 0)):
        with pytest.raises(ArgumentError, match=f"{name} is {value}; it must be"):
            cs.persistence_test(drugs, **{name: value})
    with pytest.raises(ArgumentError, match="Two logs are called 'source 0'"):
        cs.persistence_test([drugs, drugs])
    with pytest.raises(DataError, match="the reward must be finite"):
        cs.persistence_test(drugs.assign(reward=np.nan))
