"""The container: what was saved comes back, and everything else is refused by name."""

import json
import os

import forked
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import forge

import causal_shaping as cs
from causal_shaping import storage
from causal_shaping.errors import FileError
from causal_shaping.storage import BLANK, FORMATS, METADATA_KEY, kind_of, load, save

SPACE = cs.Space(["a", "b"], ["go"])


def rows(contents):
    return contents.table.to_pydict()


@pytest.fixture
def path(tmp_path):
    header = {"level": 3, "space": SPACE.as_plain()}
    save(tmp_path / "a.parquet", "sensitivity", {"x": [1.5, 2.5], "name": ["a", None]}, header)
    return tmp_path / "a.parquet"


def test_rows_metadata_and_space_come_back(path):
    assert load(path, "sensitivity", rows) == {"x": [1.5, 2.5], "name": ["a", None]}
    assert load(path, "sensitivity", lambda contents: [contents.metadata["level"]]) == [3]
    assert load(path, "sensitivity", lambda contents: [contents.space]) == [SPACE]
    assert kind_of(path) == "sensitivity"


def test_another_kind_is_refused(path):
    with pytest.raises(FileError, match="holds sensitivity, not counts"):
        load(path, "counts", rows)


def test_what_cannot_be_built_is_no_complete_file(path):
    with pytest.raises(FileError, match="not a complete file of sensitivity: it lacks 'steps'"):
        load(path, "sensitivity", lambda contents: contents.metadata["steps"])


def test_a_file_of_another_program_and_no_file_are_refused(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FileError, match="holds no counts of this package"):
        cs.Counts.load(tmp_path / "other.parquet")
    with pytest.raises(FileError, match="does not exist"):
        cs.Counts.load(tmp_path / "none.parquet")
    assert kind_of(tmp_path / "other.parquet") is None
    assert kind_of(tmp_path / "none.parquet") is None


@pytest.mark.parametrize(("step", "age"), [(1, "a newer"), (-1, "an older")])
def test_another_version_is_refused_by_name(path, step, age):
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[METADATA_KEY]) | {"version": FORMATS["sensitivity"].newest + step}
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(about)}), path)
    with pytest.raises(
        FileError, match=f"written by {age} version of this package.* Make it again with causal-shaping sensitivity"
    ):
        load(path, "sensitivity", rows)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_refusal_of_an_older_file_names_what_makes_it_again(tmp_path, kind):
    path = tmp_path / "a.parquet"
    header = {METADATA_KEY: json.dumps({"kind": kind, "version": FORMATS[kind].oldest - 1})}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(header), path)
    with pytest.raises(FileError, match="Make it again with") as refusal:
        load(path, kind, rows)
    assert FORMATS[kind].command in str(refusal.value)


@pytest.mark.parametrize("key", [METADATA_KEY, storage.CHECKSUM_KEY])
def test_a_file_that_lost_its_metadata_or_its_checksum_is_refused(tmp_path, key):
    path = tmp_path / "logs.parquet"
    cs.load_world("lavacross-easy").collect("good", 60, seed=1).save(path)
    table = pq.read_table(path)
    left = {name: held for name, held in table.schema.metadata.items() if name != key}
    pq.write_table(table.replace_schema_metadata(left), path)
    for use in (cs.count, cs.read_logs, cs.open_logs):
        with pytest.raises(FileError, match="was changed after it was written"):
            use(path)
    pq.write_table(table.replace_schema_metadata({}), path)  # now it is like any other table
    assert cs.count(cs.open_logs(path, state=["x", "y"])).n.sum() == 60


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "null", '{"kind": "sensitivity", "version": []}', "{", '{"kind": 3}']
)
def test_metadata_that_cannot_be_read_are_told(path, text):
    forge(pq.read_table(path), path, text)
    with pytest.raises(FileError, match=r"a\.parquet was changed .* its metadata"):
        load(path, "sensitivity", rows)


def test_more_steps_than_rows_take_no_memory(tmp_path):
    path = tmp_path / "phi.parquet"
    cs.Potential([[1.0, 2.0]], SPACE).save(path)
    table = pq.read_table(path)
    forge(table, path, json.dumps(json.loads(table.schema.metadata[METADATA_KEY]) | {"steps": 10**14}))
    with pytest.raises(FileError, match="each step and state once"):
        cs.Potential.load(path)


def test_far_more_rows_than_bytes_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "phi.parquet"
    cs.Potential([[0.0, 0.0]] * 20_000, SPACE).save(path)
    monkeypatch.setattr(storage, "MAX_RATIO", 0.05)
    with pytest.raises(FileError, match="far more values than its size"):
        cs.Potential.load(path)


def test_metadata_may_be_as_long_as_the_file(path, monkeypatch):
    arrow, limits = pq.ParquetFile, []

    def opened(file, thrift_string_size_limit=100_000_000, **how):  # Arrow's own limit, a million states exceed it
        limits.append(thrift_string_size_limit)
        return arrow(file, thrift_string_size_limit=thrift_string_size_limit, **how)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    assert load(path, "sensitivity", rows)["x"] == [1.5, 2.5]
    assert set(limits) == {path.stat().st_size}


def test_labels_that_look_like_the_place_of_a_checksum_do_no_harm(tmp_path):
    phi = cs.Potential([1.0, 2.0], cs.Space([BLANK.decode(), "b"], ["go"]), origin=BLANK.decode())
    phi.save(tmp_path / "phi.parquet")
    assert cs.Potential.load(tmp_path / "phi.parquet").checksum == phi.checksum


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted by /proc")
def test_reading_starts_no_thread(path):
    # A thread of Arrow's that lets go of Python's bytes while Python ends can abort the process: one in twenty did.
    code = """if True:
        import os, sys
        from causal_shaping.storage import load
        before = os.listdir("/proc/self/task")
        load(sys.argv[1], "sensitivity", lambda contents: contents)
        print(len(os.listdir("/proc/self/task")) - len(before))
    """
    assert forked.run(code, path, prepared=forked.REQUIRED).stdout == "0\n"
