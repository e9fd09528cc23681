"""Queries are translated to SQL once for all files and frames with the same columns, and never one for another."""

import gc
import weakref
from dataclasses import replace

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ibis.backends.duckdb import Backend

import causal_shaping as cs
from causal_shaping.logs import _translation, counting, table
from causal_shaping.logs._translation import key_of, sql_of

WORLD = cs.load_world("lavacross-easy")


@pytest.fixture(autouse=True)
def nothing_translated(monkeypatch):
    monkeypatch.setattr(_translation, "_translations", {})


@pytest.fixture
def translated(monkeypatch):
    """The expressions that Ibis translates."""
    expressions, compiled = [], Backend.compile

    def compile_(self, expression, **options):
        expressions.append(expression)
        return compiled(self, expression, **options)

    monkeypatch.setattr(Backend, "compile", compile_)
    return expressions


def frame(**columns):
    rows = {"episode": [0, 0, 1], "step": [0, 1, 0], "state": ["a", "b", "a"], "action": [0, 1, 1], "reward": [0, 1, 2]}
    ends = {"next_state": ["b", "a", "b"], "terminated": [False, True, True]}
    return pd.DataFrame(rows | ends | columns)


def write(path, **columns):
    frame(**columns).to_parquet(path)
    return path


def test_a_second_file_with_the_same_columns_needs_no_translation(tmp_path, translated):
    first, second = (WORLD.collect(name, 300) for name in ("good", "good"))
    second = replace(second, reward=second.reward + 1)
    for name, logs in (("first", first), ("second", second)):
        logs.save(tmp_path / f"{name}.parquet")
    wanted = [cs.count(logs).checksum for logs in (first, second)]
    translated.clear()
    found = cs.count(tmp_path / "first.parquet").checksum
    assert translated
    translated.clear()
    assert [found, cs.count(tmp_path / "second.parquet").checksum] == wanted
    assert not translated


def test_a_second_frame_needs_none_either_and_each_is_read_by_itself(translated):
    first = cs.open_logs(frame(), source="ward")
    found = [cs.count(first).reward_sum.sum()]
    assert translated
    translated.clear()
    second = cs.open_logs(frame(reward=[0, 1, 30]), source="ward")
    found += [cs.count(logs).reward_sum.sum() for logs in (second, first)]
    assert found == [3, 31, 3]
    assert not translated


def test_a_frame_and_its_engine_are_let_go_with_the_logs():
    held = pa.table({name: column.to_numpy() for name, column in frame().items()})
    logs = cs.open_logs(held, source="ward")
    alive = [weakref.ref(one) for one in (held, logs.rows.get_backend())]
    assert cs.count(logs).n.sum() == 3
    del held, logs
    gc.collect()
    assert [one() for one in alive] == [None, None]


def test_every_translation_is_the_one_that_ibis_would_give(tmp_path, monkeypatch):
    asked = []

    def checked(expression, backend):
        sql = sql_of(expression, backend)
        assert sql == backend.compile(expression)
        asked.append(sql)
        return sql

    monkeypatch.setattr(table, "sql_of", checked)
    files = [
        write(tmp_path / "plain.parquet"),
        write(tmp_path / "numbers.parquet", state=[0, 1, 0], next_state=[1, 0, 1]),
        write(tmp_path / "narrow.parquet", step=np.array([0, 1, 0], "int8"), reward=np.array([0, 1, 2], "float32")),
        write(tmp_path / "texts.parquet", episode=["x", "x", "y"]),
    ]
    settings = [
        {},
        {"reward": "-reward"},
        {"source": "ward"},
        {"source": "other"},
        {"terminated": {"action": [1]}},
        {"terminated": {"action": [0, 1]}},
        {"missing": "unknown"},
        {"missing": "none"},
        {"hidden": "reward2"},
        {"states": ["a", "b"]},
        {"states": ["b", "a", "c"]},
    ]
    frame(reward2=[5, 6, 7]).to_csv(tmp_path / "text.csv", index=False)
    frame(state=[0.5, 1.5, 0.7], next_state=[1.5, 0.2, 1.0]).to_parquet(tmp_path / "real.parquet")
    for _ in range(2):
        for path in files:
            for setting in settings[:2]:
                cs.count(cs.open_logs(path, **setting))
        for setting in settings:
            cs.count(cs.open_logs(tmp_path / "text.csv", **setting), check="terminated" not in setting)
        for edge in (0.6, 0.75, 1.0, 1):
            cs.count(cs.open_logs(tmp_path / "real.parquet", bins={"state": cs.Bins(edges=(edge,))}), check=False)
    assert len(set(asked)) < len(asked) / 2


def test_queries_that_differ_in_anything_have_keys_of_their_own():
    def of(kind="int64", name="rows"):
        return ibis.table({"a": kind, "b": "string"}, name=name)

    rows = of()
    queries = [
        rows,
        of("int32"),
        of("float64"),
        of(name="logs"),
        ibis.table({"b": "string", "a": "int64"}, name="rows"),
        *(
            rows.select(c=ibis.literal(value))
            for value in (0, 1, 2**40, 0.0, -0.0, 1.0, 0.1, float(np.nextafter(0.1, 1)))
        ),
        *(rows.select(c=ibis.literal(value)) for value in (False, True, "", "0", "1", "a", "A", "True")),
        rows.filter(rows.a == 1),
        rows.filter(rows.a < 1),
        rows.filter(rows.a > 1),
        rows.limit(1),
        rows.limit(2),
        rows.distinct(),
        rows.select("a"),
        rows.select("b"),
        rows.select(b="a"),
        rows.order_by("a"),
        rows.order_by(ibis.desc("a")),
        rows.select(c=table.md5(rows.b)),
        rows.select(c=rows.b.upper()),
        rows.group_by("b").aggregate(n=rows.a.sum()),
        rows.group_by("b").aggregate(n=rows.a.max()),
        rows.group_by("b").aggregate(m=rows.a.max()),
    ]
    keys = [key_of(query) for query in queries]
    assert None not in keys
    assert len(set(keys)) == len(keys)


@ibis.udf.scalar.python
def one_more(number: int) -> int:
    return number + 1


def test_what_needs_more_than_the_tables_of_an_engine_is_translated_each_time():
    rows = ibis.table({"a": "int64"}, name="rows")
    assert key_of(rows.select(b=one_more(rows.a))) is None
    assert key_of(ibis.memtable(pd.DataFrame({"a": [1]}))) is None
    assert key_of(rows.join(ibis.memtable(pd.DataFrame({"a": [1]})), "a")) is None


def test_translations_keep_no_engine_alive_and_are_not_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(_translation, "MAX_QUERIES", 5)
    opened = cs.open_logs(write(tmp_path / "a.parquet"))
    cs.count(opened)
    engine = weakref.ref(opened.rows.get_backend())
    for number in range(12):
        table.fetch(opened.rows.filter(opened.rows.step == number), "")
        assert 0 < len(_translation._translations) <= 5
    del opened
    gc.collect()
    assert engine() is None


def test_tables_of_two_files_are_never_taken_for_one(tmp_path):
    one, other = (cs.open_logs(write(tmp_path / f"{name}.parquet")) for name in "ab")
    assert not one.rows.equals(other.rows)
    with pytest.raises(ibis.common.exceptions.IbisError, match="Multiple backends"):
        one.rows.union(other.rows).to_pyarrow()


def test_rows_of_a_file_can_be_opened_again_as_a_table(tmp_path):
    opened = cs.open_logs(write(tmp_path / "a.parquet"))
    again = cs.open_logs(opened.rows, source="a", state="s0", next_state="n0")
    assert again.origin == "the Ibis table"
    assert cs.count(again).n.sum() == 3


@pytest.mark.parametrize("step_indexed", [False, True])
def test_small_logs_are_counted_without_a_sample_to_the_same_counts(monkeypatch, step_indexed):
    logs = WORLD.collect("good", 400)
    few, many = logs, replace(logs, reward=np.linspace(-1, 1, 400), source="many")
    samples = []
    monkeypatch.setattr(counting, "_samples_many_rewards", lambda *given: samples.append(given))
    small = [cs.count(given, step_indexed=step_indexed) for given in (few, many, [few, many])]
    checksums = [one.checksum for one in small]
    assert not samples
    monkeypatch.undo()
    monkeypatch.setattr(counting, "_is_small", lambda _: False)
    assert checksums == [cs.count(given, step_indexed=step_indexed).checksum for given in (few, many, [few, many])]
    assert [one.discrete_rewards for one in small] == [True, False, False]
