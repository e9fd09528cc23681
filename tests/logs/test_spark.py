"""Counting where the logs live: a real local Spark session."""

import shutil

import ibis
import numpy as np
import pyarrow.parquet as pq
import pytest
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.errors import DataError
from causal_shaping.io.convert import logs_table
from causal_shaping.logs import check, check_logs
from causal_shaping.logs.summary import summarise

pytestmark = [
    pytest.mark.skipif(
        shutil.which("java") is None, reason="Spark needs Java 17: apt-get install openjdk-17-jre-headless"
    ),
    pytest.mark.xdist_group("spark"),  # one session for all
    pytest.mark.filterwarnings("ignore"),  # those of Spark and pandas
]
XY = {"state": ["x", "y"]}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield ibis.pyspark.connect(session)
    session.stop()


@pytest.fixture(scope="module")
def logs():
    return cs.load_world("lavacross-maze").collect("better", steps=5000, seed=3)


@pytest.fixture
def table(spark, logs, tmp_path):
    """The logs as a Spark table over several files."""
    rows = logs_table(logs)
    for i, part in enumerate(np.array_split(np.random.default_rng(0).permutation(len(logs)), 3)):
        pq.write_table(rows.take(part), tmp_path / f"part{i}.parquet")
    return spark.read_parquet(str(tmp_path))


@pytest.mark.parametrize("step_indexed", [False, True])
def test_spark_counts_what_duckdb_counts(table, logs, step_indexed, tmp_path_factory):
    opened = cs.open_logs(table, source="better", **XY)
    scratch = tmp_path_factory.mktemp("scratch")
    counts = cs.count(opened, step_indexed=step_indexed, scratch=str(scratch))
    assert by_label(counts) == counted(logs, step_indexed)
    ours = cs.count(logs, step_indexed=step_indexed)
    moved = counts.to_space(ours.space)
    for name in cs.Counts.COLUMNS:
        np.testing.assert_array_equal(getattr(moved, name), getattr(ours, name))
    assert not list(scratch.iterdir())  # what the cluster wrote is removed


def test_results_are_written_by_the_cluster_not_collected(table, monkeypatch):
    wrote = []
    backend = table.get_backend()
    write = type(backend).to_parquet
    monkeypatch.setattr(type(backend), "to_parquet", lambda self, *a, **k: wrote.append(a) or write(self, *a, **k))
    cs.count(cs.open_logs(table, source="better", **XY), check=False)
    assert len(wrote) == 1


def test_sums_of_rewards_agree_to_the_last_bits(spark, tmp_path):
    """Many distinct rewards: sums in another order are off by n * 2^-53 of the sum of sizes at most, to first order."""
    n = 3000
    rewards = np.random.default_rng(0).integers(-1000, 1000, n) / 10
    space = cs.Space(["a", "b"], ["go"])
    state = np.arange(n) % 2
    flags = {"terminated": np.zeros(n, bool), "truncated": np.arange(n) == n - 1}
    logs = cs.Logs(space, "s", np.zeros(n), np.arange(n), state, np.zeros(n), rewards, 1 - state, **flags)
    logs.save(tmp_path / "a.parquet")
    ours = cs.count(tmp_path / "a.parquet")
    theirs = cs.count(cs.open_logs(spark.read_parquet(str(tmp_path / "a.parquet")), source="s"))
    assert not ours.discrete_rewards
    assert ours.space.reward_bins == theirs.space.reward_bins
    for name in ("n", "reward_min", "reward_max"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    bound = 2 * n * 2**-53 * np.abs(rewards).sum()
    np.testing.assert_allclose(theirs.reward_sum, ours.reward_sum, rtol=0, atol=bound)


def test_missing_columns_checks_and_summaries_work_there_too(table, logs):
    bare = table.drop("next_x", "next_y", "terminated", "truncated")
    ours = cs.open_logs(
        logs_table(logs).drop_columns(["next_x", "next_y", "terminated", "truncated"]), source="better", **XY
    )
    opened = cs.open_logs(bare, source="better", **XY)
    assert by_label(cs.count(opened)) == by_label(cs.count(ours))
    ours, theirs = (
        summarise(cs.open_logs(logs_table(logs), source="better", **XY))[0],
        summarise(cs.open_logs(table, source="better", **XY))[0],
    )
    assert theirs.mean_return == pytest.approx(ours.mean_return)
    assert (theirs.episodes, theirs.terminated, theirs.longest) == (ours.episodes, ours.terminated, ours.longest)
    broken = table.mutate(reward=ibis.ifelse(table.step == 3, float("nan"), table.reward))
    with pytest.raises(
        DataError, match=r"column 'reward' \(episode \d+, step 3\): the reward must be finite; found (nan|nothing)"
    ):
        check_logs(cs.open_logs(broken, source="better", **XY))


def test_rows_are_told_to_be_sound_without_order(table):
    moved = table.mutate(x=ibis.ifelse(table.step == 3, table.x + 1, table.x))
    for rows, sound in ((table, True), (moved, False)):
        logs = cs.open_logs(rows, source="better", **XY)
        assert check._fits_without_order(logs, ["episode"], ["n0", "n1"]) == sound


def test_spark_samples_the_episodes_that_duckdb_samples(table, logs):
    found, wanted = (
        cs.persistence_test(log, episodes=60, permutations=19)
        for log in (cs.open_logs(table, source="better", **XY), logs)
    )
    np.testing.assert_array_equal(found.p_values, wanted.p_values)
    assert (found.episodes, found.total_episodes) == (wanted.episodes, wanted.total_episodes)
    assert wanted.episodes["better"] == 60 < wanted.total_episodes["better"]
