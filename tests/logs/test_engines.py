"""Counting where the logs live: a real local Spark session gives what DuckDB gives."""

import shutil
import sys
from collections import Counter

import engines
import numpy as np
import pyarrow as pa
import pytest
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.data.columns import logs_table
from causal_shaping.diagnose import inspection
from causal_shaping.errors import DataError
from causal_shaping.logs import check_logs
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.summary import summarise

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of Spark and pandas
    pytest.mark.skipif(
        shutil.which("java") is None, reason="Spark needs Java: apt-get install openjdk-17-jre-headless"
    ),
]
XY = {"source": "better", "state": ["x", "y"]}


@pytest.fixture(scope="module")
def engine():
    with engines.spark() as table:
        yield table


@pytest.fixture(scope="module")
def duckdb():
    with engines.duckdb() as table:
        yield table


@pytest.fixture(scope="module")
def logs():
    return cs.load_world("lavacross-maze").collect("better", steps=5000, seed=3)


@pytest.fixture(scope="module")
def rows(logs):
    return logs_table(logs)


def assert_equal(found, wanted):
    """The same entries, to the last bit, whatever the order of labels."""
    moved = found.to_space(wanted.space)
    for name in cs.Counts.COLUMNS:
        np.testing.assert_array_equal(getattr(moved, name), getattr(wanted, name))


def clinic(n=600, seed=5):
    """Rows with what logs can have: text, numbers with gaps, flags by value, episodes of text, unknown ends."""
    random = np.random.default_rng(seed)
    length = 6
    step = np.arange(n) % length
    age = random.normal(60, 15, n)
    return pa.table(
        {
            "patient": [f"p{i // length}" for i in range(n)],
            "day": step + 1,
            "stage": random.choice(["mild", 'it\'s "bad"', "näve"], n),
            "ward": [str(i) for i in random.integers(0, 3, n)],
            "age": pa.array([None if i % 11 == 0 else a for i, a in enumerate(age)], pa.float64()),
            "beds": pa.array([None if i % 13 == 0 else int(b) for i, b in enumerate(random.integers(0, 4, n))]),
            "ventilated": random.random(n) < 0.3,
            "drug": random.integers(0, 3, n).astype(np.int32),
            "score": random.choice([0.0, -0.1, 1.5], n),
            "outcome": [
                None if s < length - 1 else str(o)
                for s, o in zip(step, random.choice(["died", "left"], n), strict=True)
            ],
            "code": pa.array([None if s < length - 1 else float(s % 2) for s in step], pa.float64()),
            "cut": (step == length - 1) & (random.random(n) < 0.5),
        }
    )


COLUMNS = {"source": "clinic", "episode": "patient", "step": "day", "first_step": 1, "action": "drug"}
COLUMNS |= {"reward": "score"}
BOTH = {"state": ["stage", "ward"]}
WAYS = {
    "unknown ends": {"state": "stage"},
    "ends by text": BOTH | {"terminated": {"outcome": ["died"]}, "truncated": {"outcome": ["left"]}},
    "costs": {"state": "stage", "reward": "-score"},
    "ends by number": {"state": ["ventilated", "stage"], "terminated": {"code": [1]}, "truncated": "cut"},
    "declared": {"state": "ward", "states": [2, 0, 1], "actions": ["0", "1", "2", "3"], "terminated": {"cut": [True]}},
    "bins by edges": {"state": ["age", "stage"], "bins": {"age": cs.Bins(edges=(50.0, 65.0))}, "missing": "unknown"},
    "bins by quantiles": {"state": ["age", "beds"], "bins": {"age": cs.Bins(quantiles=5)}, "missing": "unknown"},
}


@pytest.mark.parametrize("step_indexed", [False, True])
def test_an_engine_counts_what_duckdb_counts(engine, logs, rows, step_indexed):
    counts = cs.count(cs.open_logs(engine(rows), **XY), step_indexed=step_indexed)
    assert by_label(counts) == counted(logs, step_indexed)
    assert_equal(counts, cs.count(logs, step_indexed=step_indexed))


@pytest.mark.parametrize("way", WAYS)
def test_labels_bins_gaps_and_flags_mean_the_same_on_every_engine(engine, duckdb, way):
    found, wanted = (cs.count(cs.open_logs(table(clinic()), **COLUMNS | WAYS[way])) for table in (engine, duckdb))
    assert found.space == wanted.space
    assert_equal(found, wanted)


def test_sums_of_rewards_agree_to_the_last_bits(engine, tmp_path):
    """Many distinct rewards: sums in another order are off by n * 2^-53 of the sum of sizes at most, to first order."""
    n = 3000
    rewards = np.random.default_rng(0).integers(-1000, 1000, n) / 10
    space = cs.Space(["a", "b"], ["go"])
    state = np.arange(n) % 2
    flags = {"terminated": np.zeros(n, bool), "truncated": np.arange(n) == n - 1}
    logs = cs.Logs(space, "s", np.zeros(n), np.arange(n), state, np.zeros(n), rewards, 1 - state, **flags)
    ours = cs.count(logs)
    theirs = cs.count(cs.open_logs(engine(logs_table(logs)), source="s"))
    assert not ours.discrete_rewards
    assert ours.space.reward_bins == theirs.space.reward_bins
    for name in ("n", "reward_min", "reward_max"):
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))
    bound = 2 * n * 2**-53 * np.abs(rewards).sum()
    np.testing.assert_allclose(theirs.reward_sum, ours.reward_sum, rtol=0, atol=bound)


def test_missing_columns_and_summaries_work_there_too(engine, duckdb, rows):
    bare = rows.drop_columns(["next_x", "next_y", "terminated", "truncated"])
    found, wanted = (cs.open_logs(table(bare), **XY) for table in (engine, duckdb))
    assert_equal(cs.count(found), cs.count(wanted))
    assert summarise(found) == summarise(wanted)


def changed(rows, column, where, value):
    """Return rows with another value in a column, where a step is reached."""
    place = rows.schema.get_field_index(column)
    held = zip(rows["step"].to_pylist(), rows[column].to_pylist(), strict=True)
    values = [value if step == where else old for step, old in held]
    return rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))


BAD = {
    "a reward that is infinite": ("reward", 3, float("inf")),
    "a reward that is not a number": ("reward", 3, float("nan")),
    "a state that is missing": ("x", 2, None),
    "a step that stands twice": ("step", 3, 2),
    "a step that is missing": ("step", 0, 100_000),
    "a flag that is missing": ("truncated", 1, None),
    "an end before the end": ("terminated", 1, True),
    "a jump": ("next_x", 1, 77),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_rows_are_refused_with_the_same_words(engine, duckdb, logs, bad):
    broken, words = changed(engines.plain(logs_table(logs)).sort_by("episode"), *BAD[bad]), []
    for table in (duckdb, engine):
        with pytest.raises(DataError) as refused:
            check_logs(cs.open_logs(table(broken), **XY))
        words.append(str(refused.value))
    assert words[0] == words[1]


def test_bad_episodes_are_left_out_alike(engine, duckdb, rows):
    broken = changed(rows, "reward", 7, None)
    found, wanted = (
        check_logs(cs.open_logs(table(broken), **XY), skip_bad_episodes=True) for table in (engine, duckdb)
    )
    assert found.dropped == wanted.dropped
    assert_equal(cs.count(found), cs.count(wanted))


def test_the_same_episodes_are_sampled(engine, rows, logs):
    opened = cs.open_logs(engine(rows), **XY)
    found, wanted = (cs.persistence_test(log, episodes=60, permutations=19) for log in (opened, logs))
    np.testing.assert_array_equal(found.p_values, wanted.p_values)
    assert (found.episodes, found.total_episodes) == (wanted.episodes, wanted.total_episodes)
    assert wanted.episodes["better"] == 60 < wanted.total_episodes["better"]


def test_parts_of_a_table_add_up_to_the_whole(engine, logs, rows):
    table = engine(rows)
    parts = [cs.open_logs(table.filter(table.episode % 3 == i), **XY) for i in range(3)]
    assert_equal(sum(map(cs.count, parts)), cs.count(logs))


@pytest.fixture
def arrived(monkeypatch):
    """How many rows each query of an engine brings back."""
    sizes, whole = [], fetch

    def noted(found):
        sizes.append(found.num_rows)
        return found

    for module in [module for module in sys.modules.values() if getattr(module, "fetch", None) is whole]:
        monkeypatch.setattr(module, "fetch", lambda *given: noted(whole(*given)))
    return sizes


def test_an_inspection_is_that_of_duckdb_and_only_tables_and_a_sample_come_back(engine, duckdb, arrived, monkeypatch):
    world, episodes = cs.load_world("lavacross-easy"), 20
    monkeypatch.setattr(inspection, "TESTED_EPISODES", episodes)
    rows = pa.concat_tables([engines.plain(logs_table(world.collect(name, 4000))) for name in ("good", "random")])
    wanted = cs.inspect(cs.open_logs(duckdb(rows), state=["x", "y"]))
    arrived.clear()
    found = cs.inspect(cs.open_logs(engine(rows), state=["x", "y"]))
    assert found.to_json() == wanted.to_json()
    assert_equal(found.counts, wanted.counts)
    assert found.persistence.episodes == {"good": episodes, "random": episodes}
    largest, *others = sorted(arrived, reverse=True)
    assert largest == len(found.counts) < len(rows) / 10
    assert max(others) <= episodes * world.horizon * 2


def test_what_else_reads_logs_reads_the_same_there(engine, duckdb):
    rows = logs_table(cs.load_world("lavacross-easy").collect("random", 1000))
    rows = rows.append_column("age", pa.array(np.random.default_rng(0).normal(size=len(rows))))
    found, wanted = [], []
    for table, results in ((engine(rows), found), (duckdb(rows), wanted)):
        opened = cs.open_logs(table, source="random", state=["x", "y"], hidden="age")
        results.append(cs.confounding_of(opened, ["age"]).to_json())
        results.append(cs.read_logs(table, source="random", state=["x", "y"]).checksum)
        bare = table.drop("next_x", "next_y")
        numbers = cs.read_transitions(bare, source="random", state=["x", "age"])
        results.append(numbers.observations.tolist())
    assert found == wanted


def test_whole_numbers_with_gaps_and_nan_arrive_as_they_are(engine):
    held = {"id": [2**62 + 1, None, 3], "number": [float("nan"), None, float("inf")]}
    found = fetch(engine(pa.table(held | {"step": [0, 1, 2]})).order_by("step"), "it").to_pydict()
    assert found["id"] == held["id"]
    assert [str(number) for number in found["number"]] == ["nan", "None", "inf"]


def test_episodes_are_spread_over_partitions(engine, rows):
    query = "SELECT DISTINCT episode, spark_partition_id() AS place FROM steps"
    held = Counter(row.episode for row in engine(rows).get_backend().raw_sql(query).collect())
    assert max(held.values()) > 4
