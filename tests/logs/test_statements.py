"""What a count asks of the engine: few statements, one query for all logs, and the same result."""

from itertools import pairwise

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.data.columns import logs_table
from causal_shaping.errors import DataError, FileError
from causal_shaping.logs import counting


class Noting:
    """A connection that notes the statements that it is asked to run."""

    def __init__(self, connection, noted):
        self.connection, self.noted = connection, noted

    def __getattr__(self, name):
        found = getattr(self.connection, name)
        if name == "cursor":
            return lambda: Noting(found(), self.noted)
        if name not in ("execute", "sql", "query"):
            return found

        def run(statement, *arguments, **options):
            self.noted.append(str(statement))
            result = found(statement, *arguments, **options)
            return Noting(result, self.noted) if isinstance(result, duckdb.DuckDBPyConnection) else result

        return run


@pytest.fixture
def statements(monkeypatch):
    noted, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *args, **options: Noting(connect(*args, **options), noted))
    return noted


@pytest.fixture
def two(tmp_path):
    """Two small CSVs, and the logs that they hold."""
    logs, files = [], []
    for seed, name in enumerate(["one", "two"]):
        rng = np.random.default_rng(seed)
        state, flags = rng.integers(4, size=61), np.arange(60) % 20 == 19
        columns = {"episode": np.arange(60) // 20, "step": np.arange(60) % 20, "state": state[:-1]}
        columns |= {"action": rng.integers(2, size=60), "reward": rng.integers(3, size=60) / 2}
        columns |= {"next_state": state[1:], "terminated": flags, "truncated": ~flags & False}
        logs.append(cs.Logs(cs.Space(range(4), range(2)), name, **columns))
        files.append(tmp_path / f"{name}.csv")
        pa.csv.write_csv(logs_table(logs[-1]).drop_columns("source"), files[-1])
    return files, logs


def test_two_small_csvs_take_few_statements_and_one_query_counts_both(two, statements):
    files, logs = two
    counts = cs.count(files)
    assert by_label(counts) == counted(logs[0]) | counted(logs[1])
    assert len(statements) <= 17, statements
    assert sum("COUNT(*)" in statement for statement in statements) == 1
    assert sum(statement.startswith("SET ") for statement in statements) <= 5  # one engine for both


def test_one_counts_is_made_of_all_sources(two, monkeypatch):
    made, combined = [], cs.Counts.combined.__func__
    monkeypatch.setattr(
        cs.Counts, "combined", classmethod(lambda cls, *args, **more: made.append(1) or combined(cls, *args, **more))
    )
    files, _ = two
    assert len(cs.count(files).sources) == 2
    assert made == [1]


def test_a_csv_is_read_once_to_learn_its_types(two, statements):
    (file, _), _ = two
    cs.open_logs(file)
    assert sum("bit_or" in statement for statement in statements) == 1
    assert not any("sample_size" in statement for statement in statements)


def test_logs_of_several_engines_and_kinds_of_labels_count_as_if_apart(two, tmp_path):
    """Files, rows in memory, a table of another engine; labels of numbers beside labels of text."""
    rows = {"episode": [0, 0], "step": [0, 1], "action": ["go", "go"], "reward": [0.5, 1.0]}
    texts = pa.table(rows | {"state": ["a", "b"], "source": ["text"] * 2})
    numbers = pa.table(rows | {"state": [1, 2], "source": ["number"] * 2})
    pq.write_table(texts.set_column(5, "source", pa.array(["file"] * 2)), tmp_path / "file.parquet")
    engine = ibis.duckdb.connect()
    engine.con.register("elsewhere", texts.set_column(5, "source", pa.array(["elsewhere"] * 2)))
    parts = [numbers, texts, tmp_path / "file.parquet", engine.table("elsewhere")]
    together = cs.count(parts)
    assert by_label(together) == {key: n for part in parts for key, n in by_label(cs.count(part)).items()}
    assert together.space.states == (1, 2, "a", "b")


def test_many_logs_are_counted_in_several_statements(statements, tmp_path):
    rows = {"episode": [0], "step": [0], "state": ["a"], "action": ["go"], "reward": [1.0]}
    files = [tmp_path / f"s{i}.parquet" for i in range(40)]
    for file in files:
        pq.write_table(pa.table(rows), file)
    assert cs.count(files, check=False).n.tolist() == [1.0] * 40
    assert 1 < sum("COUNT(*)" in statement for statement in statements) < 10


def test_an_empty_log_among_others_is_named(tmp_path):
    rows = {"episode": [0], "step": [0], "state": ["a"], "action": ["go"], "reward": [1.0], "source": ["s"]}
    pq.write_table(pa.table(rows).slice(0, 0), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match=r"empty\.parquet has no rows"):
        cs.count([pa.table(rows), tmp_path / "empty.parquet"])


def test_a_file_that_changes_is_refused_by_a_count_of_several(two, monkeypatch):
    files, _ = two
    check = counting.check_logs

    def change(table, **options):
        files[0].write_text(files[0].read_text() + "\n")
        return check(table, **options)

    monkeypatch.setattr(counting, "check_logs", change)
    with pytest.raises(FileError, match="was changed while it was read"):
        cs.count(files)


def test_a_batch_of_arrow_is_counted_and_batches_add_up():
    """What a map step of another system does with the episodes that it gets."""
    world = cs.load_world("lavacross-easy")
    logs = world.collect("good", 2000, seed=1)
    rows = logs_table(logs)
    whole = cs.count(cs.open_logs(rows, source="good", state=["x", "y"]))
    ends = np.flatnonzero(np.append(np.diff(logs.episode) != 0, True)) + 1
    starts = [0, *ends[: len(ends) // 2].tolist()[-1:], len(logs)]
    parts = []
    for start, end in pairwise(starts):
        (batch,) = rows.slice(start, end - start).combine_chunks().to_batches()
        parts.append(cs.count(cs.open_logs(batch, source="good", state=["x", "y"])))
    assert len(parts) == 2
    assert by_label(sum(parts)) == by_label(whole)


def test_nan_is_found_in_an_engine_of_the_user_whose_settings_stay(tmp_path):
    """DuckDB would answer "is this NaN?" from the statistics of the file, which leave NaN out."""
    n = 4000
    rows = {"episode": np.arange(n), "step": np.zeros(n, int), "state": ["a"] * n, "action": ["go"] * n}
    rows |= {"reward": np.where(np.arange(n) % 2, np.nan, 0.1)}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=100)
    engine = ibis.duckdb.connect()
    engine.raw_sql("SET disabled_optimizers = 'join_order'")
    table = engine.read_parquet(tmp_path / "a.parquet", table_name="ward")
    with pytest.raises(DataError, match=r"column 'reward'.*must be finite"):
        cs.count(table)
    assert engine.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall() == [("join_order",)]
