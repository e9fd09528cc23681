"""The container: what was saved comes back, and everything else is refused by name."""

import json
import os
import random

import forked
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import causal_shaping as cs
from causal_shaping.errors import FileError
from causal_shaping.io import container
from causal_shaping.io.container import METADATA_KEY, VERSIONS, kind_of, load, save, seal

SPACE = cs.Space(["a", "b"], ["go"])


def rows(contents):
    return contents.table.to_pydict()


def rewrite(path, table=None, **changes):
    """Change a file as somebody else might: its rows, or what its metadata say."""
    held = pq.read_table(path)
    metadata = json.loads(held.schema.metadata[METADATA_KEY]) | changes
    kept = {key: value for key, value in metadata.items() if value is not None}
    pq.write_table((table or held).replace_schema_metadata({METADATA_KEY: json.dumps(kept)}), path)


@pytest.fixture
def path(tmp_path):
    save(tmp_path / "a.parquet", "sensitivity", {"x": [1.5, 2.5], "name": ["a", None]}, {"level": 3}, space=SPACE)
    return tmp_path / "a.parquet"


def test_rows_metadata_and_space_come_back(path):
    assert load(path, "sensitivity", rows) == {"x": [1.5, 2.5], "name": ["a", None]}
    assert load(path, "sensitivity", lambda contents: [contents.metadata["level"]]) == [3]
    assert load(path, "sensitivity", lambda contents: [contents.space]) == [SPACE]
    assert kind_of(path) == "sensitivity"


def test_another_kind_is_refused(path):
    with pytest.raises(FileError, match="holds sensitivity, not counts"):
        load(path, "counts", rows)


def test_a_newer_version_is_refused(path):
    rewrite(path, version=VERSIONS["sensitivity"][1] + 1)
    with pytest.raises(FileError, match="newer version of this package"):
        load(path, "sensitivity", rows)


def test_a_version_that_is_no_longer_read_is_refused_by_name(path, monkeypatch):
    monkeypatch.setattr(container, "VERSIONS", {"sensitivity": (4, 5)})
    with pytest.raises(FileError, match=r"written by version \d of the format of sensitivity.* Compute it again"):
        load(path, "sensitivity", rows)


@pytest.mark.parametrize("changed", [{"x": [1.5, 2.6], "name": ["a", None]}, {"x": [1.5, 2.5], "name": ["a", "b"]}])
def test_changed_rows_are_refused(path, changed):
    rewrite(path, pa.table(changed))
    with pytest.raises(FileError, match="was changed after it was written"):
        load(path, "sensitivity", rows)


def test_changed_bytes_are_refused(path):
    content = bytearray(path.read_bytes())
    at = content.index(b"\x00\x00\x00\x00\x00\x00\xf8\x3f")  # 1.5
    content[at + 6] = 0xF9
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match=r"a\.parquet"):
        load(path, "sensitivity", rows)


def test_a_removed_checksum_is_refused(path):
    rewrite(path, checksum=None)
    with pytest.raises(FileError, match="lack a checksum"):
        load(path, "sensitivity", rows)


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


def test_counts_of_the_first_format_are_read_and_changed_ones_refused(tmp_path):
    path = tmp_path / "counts.parquet"
    counts = cs.count(cs.load_world("walking-robot").collect("competent", 100))
    counts.save(path)
    assert cs.Counts.load(path).checksum == counts.checksum
    rewrite(path, version=1, checksum=None)
    assert cs.Counts.load(path).checksum == counts.checksum
    counts.save(path)
    table = pq.read_table(path)
    n = table.column_names.index("n")
    rewrite(path, table.set_column(n, "n", pa.array(table["n"].to_numpy() + 1)))
    with pytest.raises(FileError, match=r"counts\.parquet"):
        cs.Counts.load(path)


@pytest.fixture(scope="module")
def made():
    world = cs.load_world("lavacross-easy")
    logs = world.collect("good", 50)
    counts = cs.count(logs)
    ceilings = cs.value_ceilings(counts, 5, 1.0, support="any")
    held = {"logs": logs, "counts": counts, "ceilings": ceilings, "potential": ceilings.potential()}
    return held | {"run": cs.train(world, None, steps=20, seed=0)}


@pytest.mark.parametrize("kind", ["logs", "counts", "potential", "ceilings", "run"])
def test_every_changed_byte_is_refused(made, tmp_path, kind):
    path = tmp_path / "a.parquet"
    made[kind].save(path)
    read = {"logs": cs.read_logs, "counts": cs.Counts.load, "run": cs.Run.load}.get(kind, cs.load_potential)
    read(path)
    held, rng = path.read_bytes(), random.Random(0)
    for at in (0, len(held) - 1, *(rng.randrange(len(held)) for _ in range(30))):
        path.write_bytes(held[:at] + bytes([held[at] ^ (1 << rng.randrange(8))]) + held[at + 1 :])
        with pytest.raises(FileError, match=r"a\.parquet"):
            read(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "null", '{"kind": "sensitivity", "version": []}', "{", '{"kind": 3}']
)
def test_metadata_that_cannot_be_read_are_told(path, text):
    pq.write_table(pq.read_table(path).replace_schema_metadata({METADATA_KEY: text}), path)
    with pytest.raises(FileError, match=r"a\.parquet"):
        load(path, "sensitivity", rows)
    assert kind_of(path) is None or text == '{"kind": 3}' or "sensitivity" in text


def test_more_steps_than_rows_take_no_memory(tmp_path):
    path = tmp_path / "phi.parquet"
    cs.Potential([[1.0, 2.0]], SPACE).save(path)
    rewrite(path, version=1, steps=10**14)
    with pytest.raises(FileError, match="each step and state once"):
        cs.Potential.load(path)


def test_far_more_rows_than_bytes_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "phi.parquet"
    cs.Potential([[0.0, 0.0]] * 20_000, SPACE).save(path)
    monkeypatch.setattr(container, "MAX_RATIO", 0.5)
    with pytest.raises(FileError, match="far more values than its size"):
        cs.Potential.load(path)


def test_metadata_may_be_as_long_as_the_file(path, monkeypatch):
    arrow, limits = pq.ParquetFile, []

    def opened(file, thrift_string_size_limit=100_000_000, **how):  # Arrow's own limit, a million states exceed it
        limits.append(thrift_string_size_limit)
        return arrow(file, thrift_string_size_limit=thrift_string_size_limit, **how)

    monkeypatch.setattr(pq, "ParquetFile", opened)
    assert load(path, "sensitivity", rows)["x"] == [1.5, 2.5]
    assert kind_of(path) == "sensitivity"
    assert set(limits) == {path.stat().st_size}


def test_metadata_that_no_file_can_hold_are_refused_before_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MAX_METADATA", 1000)
    with pytest.raises(FileError, match="do not fit"):
        save(tmp_path / "a.parquet", "sensitivity", {"x": [1.0]}, {"text": "x" * 1000})
    assert not list(tmp_path.iterdir())


def test_labels_that_look_like_a_seal_do_no_harm(tmp_path):
    text = container.SEAL_START.decode("latin-1") + "0" * 64
    phi = cs.Potential([1.0, 2.0], cs.Space([text, "b"], ["go"]), origin=text)
    phi.save(tmp_path / "phi.parquet")
    assert cs.Potential.load(tmp_path / "phi.parquet").checksum == phi.checksum


def test_a_seal_that_is_removed_is_missed(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(container.SEAL_KEY, b"x" * len(container.SEAL_KEY)))
    with pytest.raises(FileError, match="it lacks its seal"):
        load(path, "sensitivity", rows)


def test_metadata_that_are_removed_are_missed(tmp_path):
    path = tmp_path / "logs.parquet"
    cs.load_world("lavacross-easy").collect("good", 60, seed=1).save(path)
    table = pq.read_table(path)
    seal = {container.SEAL_KEY: table.schema.metadata[container.SEAL_KEY]}
    pq.write_table(table.replace_schema_metadata(seal), path)
    for use in (cs.count, cs.read_logs, cs.open_logs):
        with pytest.raises(FileError, match="has a seal, but lacks its metadata"):
            use(path)
    pq.write_table(table.replace_schema_metadata({}), path)  # now it is like any other table
    assert cs.count(cs.open_logs(path, state=["x", "y"])).n.sum() == 60


def test_only_files_with_a_place_for_a_seal_are_sealed(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="no place for a seal"):
        seal(tmp_path / "a.parquet")


def test_counts_with_mean_rewards_of_an_older_version_are_refused_by_name(tmp_path):
    path = tmp_path / "a.parquet"
    world = cs.load_world("walking-robot")
    cs.count(world.collect(next(iter(world.demonstrators)), 50)).save(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[METADATA_KEY])
    about["sources"] = dict.fromkeys(about["sources"], False)
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | {METADATA_KEY: json.dumps(about)}), path)
    seal(path)
    with pytest.raises(FileError, match="counted by an older version, with mean rewards; count the logs again"):
        cs.Counts.load(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted by /proc")
def test_reading_starts_no_thread(path):
    # A thread of Arrow's that lets go of a file of Python's while Python ends aborts the process: one in twenty did.
    code = """if True:
        import os, sys
        from causal_shaping.io.container import load
        before = os.listdir("/proc/self/task")
        load(sys.argv[1], "sensitivity", lambda contents: contents)
        print(len(os.listdir("/proc/self/task")) - len(before))
    """
    ran = forked.run(code, path, prepared=forked.REQUIRED)
    assert ran.stdout == "0\n"
