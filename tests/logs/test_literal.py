"""Files are what they are called, and nothing else can be reached: patterns, folders, addresses, swaps, odd columns."""

import gzip
import json
import os
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.logs import check_logs

ROWS = {
    "episode": [0, 0, 1],
    "step": [0, 1, 0],
    "state": ["a", "b", "a"],
    "action": ["go", "go", "stay"],
    "reward": [0.5, 1.0, 0.0],
    "next_state": ["b", "end", "a"],
    "terminated": [False, True, False],
    "truncated": [False, False, True],
}
LOGS = cs.load_world("lavacross-easy").collect("good", 200, seed=1)


def write(path, **changes):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(ROWS | changes), path)
    return path


def write_csv(path, *lines):
    path.write_text("\n".join(lines))
    return path


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["reward=7", "source=evil", "state=x", "action=go", "terminated=true"])
def test_a_folder_called_column_and_value_changes_nothing(tmp_path, folder):
    logs = cs.read_logs(write(tmp_path / folder / "good.parquet"))
    assert logs.reward.tolist() == [0.5, 1.0, 0.0]
    assert (logs.source, logs.space.states) == ("good", ("a", "b", "end"))
    LOGS.save(tmp_path / folder / "ours.parquet")
    assert cs.read_logs(tmp_path / folder / "ours.parquet").checksum == LOGS.checksum
    phi = cs.Potential.zero(cs.Space(["a"], ["go"]))
    phi.save(tmp_path / folder / "phi.parquet")
    assert cs.load_potential(tmp_path / folder / "phi.parquet").checksum == phi.checksum


def test_partitions_that_are_asked_for_become_columns(tmp_path):
    held = "ward=a%20b/logs.parquet"
    parts = [write(tmp_path / f"day={day}" / held, episode=[day] * 2 + [9 + day]) for day in (1, 2)]
    states = {"state": ["day", "state"], "next_state": ["day", "next_state"]}
    found = cs.open_logs(parts, source="ward", **states, partitions="day")
    assert cs.count(found).space.states[0] == (1, "a")
    assert cs.read_logs(parts[0], source="ward", hidden="ward", partitions=["ward"]).reward[1] == 1.0
    rows = cs.open_logs(parts[0], source="ward", state="ward", partitions=["ward"], next_state=["ward"]).rows
    assert set(rows.s0.to_pyarrow().to_pylist()) == {"a b"}
    with pytest.raises(ArgumentError, match="no folder"):
        cs.open_logs(parts, partitions=["month"])
    with pytest.raises(ArgumentError, match="has a column 'reward'"):
        cs.open_logs(write(tmp_path / "reward=7" / "a.parquet"), partitions=["reward"])
    with pytest.raises(ArgumentError, match="give files"):
        cs.open_logs(pa.table(ROWS), source="a", partitions=["day"])


@pytest.mark.parametrize("name", ["g[1]", "g*", "g?", "{a,b}", "a'b", "g[!x]", "**", "a b;--", "ä[é]", "[[]"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_signs_of_patterns_in_names_are_signs(tmp_path, name, suffix):
    for other in ("g1", "gx", "a", "b", "other"):
        write(tmp_path / f"{other}.parquet", reward=[9.0, 9.0, 9.0])
        write_csv(tmp_path / f"{other}.csv", "episode,step,state,action,reward", "0,0,a,go,9.0")
    path = tmp_path / f"{name}{suffix}"
    if suffix == ".parquet":
        write(path)
    else:
        write_csv(path, "episode,step,state,action,reward", "0,0,a,go,0.5", "0,1,b,go,1.0", "1,0,a,stay,0.0")
    assert cs.read_logs(path, source="ward").reward.tolist() == [0.5, 1.0, 0.0]


def test_a_pattern_is_no_file(tmp_path):
    write(tmp_path / "a.parquet")
    with pytest.raises(FileError, match="does not exist"):
        cs.read_logs(tmp_path / "*.parquet")


@pytest.mark.parametrize("read", [cs.read_logs, cs.load_potential])
def test_only_regular_files_are_opened(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "zero.parquet").symlink_to("/dev/zero")
    for path, why in (
        (tmp_path / "pipe.parquet", "not a regular file"),
        (tmp_path / "zero.parquet", "not a regular file"),
        ("a\0b.parquet", "cannot be read"),
        ("http://localhost/a.parquet", "is an address"),
        ("s3://bucket/a.parquet", "is an address"),
    ):
        with pytest.raises(FileError, match=why):
            read(path)


# The engine -------------------------------------------------------------------------------------------------------


def test_the_engine_reaches_nothing_but_the_files(tmp_path):
    own, other = write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet")
    secret = pa.table({"x": [1]})  # noqa: F841 - variables of the program are no tables
    duckdb = cs.open_logs(own).rows.get_backend()
    for statement in (
        f"SELECT * FROM read_parquet('{other}')",
        f"SELECT * FROM read_text('{other}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'c.csv'}'",
        f"ATTACH '{tmp_path / 'd.duckdb'}'",
        "SELECT * FROM read_csv('http://localhost/a.csv')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        f"SET allowed_paths = ['{other}']",
        f"SET temp_directory = '{tmp_path / 'e'}'",
        "SET memory_limit = '1TB'",
        "SELECT * FROM secret",
    ):
        with pytest.raises(Exception, match=r"disabled|locked|Cannot|secret does not exist"):
            duckdb.raw_sql(statement).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_memory_limit_is_blamed_for_itself_alone(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet")
    with pytest.raises(ArgumentError, match="memory_limit is 'much'"):
        cs.open_logs(path, memory_limit="much")

    def fail(*_, **__):
        raise OSError("no threads left")

    monkeypatch.setattr("causal_shaping.logs.engine.duckdb.connect", fail)
    with pytest.raises(FileError, match="no threads left") as told:
        cs.open_logs(path, memory_limit="1GB")
    assert "1GB" not in str(told.value)


# Changes ----------------------------------------------------------------------------------------------------------


def test_a_log_of_ours_that_was_changed_is_refused_by_all_who_open_it(tmp_path):
    path = tmp_path / "good.parquet"
    LOGS.save(path)
    held = pq.read_table(path)
    reward = held.column_names.index("reward")
    other = held.set_column(reward, "reward", pa.array(held["reward"].to_numpy() + 0.25))
    pq.write_table(other, path)  # keeps the metadata, and the old seal
    for use in (cs.count, cs.inspect, cs.read_logs, cs.open_logs, cs.read_transitions):
        with pytest.raises(FileError, match="changed after it was written"):
            use(path)


def test_a_compressed_csv_must_fit_its_own_checksum(tmp_path):
    text = b"episode,step,state,action,reward\n0,0,1,go,0.5\n0,1,2,go,1.0\n"
    path, held = tmp_path / "a.csv.gz", gzip.compress(text)
    path.write_bytes(held)
    assert cs.count(path, check=False).n.sum() == 2
    for changed in (held[:-8] + bytes([held[-8] ^ 1]) + held[-7:], held[:-3], gzip.compress(text)[:40]):
        path.write_bytes(changed)
        with pytest.raises(FileError, match=r"a\.csv\.gz cannot be read"):
            cs.count(path, check=False)


def test_a_file_that_is_swapped_between_check_and_count_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet")
    checked = check_logs(cs.open_logs(path))
    write(tmp_path / "b.parquet", reward=[9.0, 9.0, 9.0]).replace(path)
    with pytest.raises(FileError, match=r"a\.parquet was changed while it was read"):
        cs.count(checked)


def test_a_file_that_grows_while_it_is_streamed_is_refused(tmp_path):
    path = write_csv(tmp_path / "a.csv", "episode,step,state,action,reward", "0,0,1,go,0.5", "0,1,2,go,1.0")
    opened = cs.open_logs(path, numbers=True)
    with path.open("a") as file:
        file.write("\n1,0,1,go,7.0\n")
    with pytest.raises(FileError, match="changed while it was read"):
        cs.read_transitions(opened)


# Columns ----------------------------------------------------------------------------------------------------------


def test_whole_numbers_written_in_other_ways_are_other_labels(tmp_path):
    header = "episode,step,state,action,reward"
    for odd in ("0x10", "0b10000", "016", "+16"):
        path = write_csv(tmp_path / "a.csv", header, f"0,0,{odd},1,0.5", "0,1,16,1,1.0", "0,2,3,1,0.0")
        assert set(cs.read_logs(path).space.states) == {odd, "16", "3"}
    path = write_csv(tmp_path / "a.csv", header, "0,-0,16,1,5", "0,0x1,7,1,-0")
    logs = cs.read_logs(path)  # steps and rewards are numbers, however they are written
    assert (logs.space.states, logs.step.tolist(), logs.reward.tolist()) == ((7, 16), [0, 1], [5.0, 0.0])


def test_episodes_that_are_written_differently_are_different(tmp_path):
    path = write_csv(tmp_path / "a.csv", "episode,step,state,action,reward", "7,0,1,1,0.5", "007,0,1,1,1.0")
    assert cs.read_logs(path).episodes == 2


def test_blanks_around_numbers_do_not_matter(tmp_path):
    path = write_csv(tmp_path / "a.csv", "episode,step,state,action,reward", "0, 0, 16, 1, 0.5", "0, 1, 7, 1, 1.0")
    assert cs.read_logs(path).space.states == (7, 16)


def test_a_flag_that_was_cut_short_is_told(tmp_path):
    header = "episode,step,state,action,reward,terminated"
    path = write_csv(tmp_path / "a.csv", header, "0,0,a,go,0.5,false", "0,1,a,go,0.5,true", "1,0,a,go,0.5,f")
    with pytest.raises(DataError, match="'terminated' holds text: 'f', 'false', 'true'"):
        cs.read_logs(path)
    path = write_csv(tmp_path / "a.csv", header, "0,0,a,go,0.5,F", "0,1,a,go,0.5,T")
    assert cs.read_logs(path).terminated.tolist() == [False, True]
    path = write_csv(tmp_path / "a.csv", header, "0,0,a,go,0.5,False", "0,1,a,go,0.5,true")
    assert cs.read_logs(path).terminated.tolist() == [False, True]


def labels_of(path, *values):
    rows = [f"{i},0,{value},go,1" for i, value in enumerate(values)]
    return cs.read_logs(write_csv(path, "episode,step,state,action,reward", *rows)).space.states


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["7", "-3"], (-3, 7)),
        (["7", "x"], ("7", "x")),
        (["7", "99999999999999999999x"], ("7", "99999999999999999999x")),
        (["7", "1.5x"], ("1.5x", "7")),
        (["true", "false"], (0, 1)),
        (["yes", "true"], ("true", "yes")),
        (["2026-01-02", "2026-01-01"], ("2026-01-01", "2026-01-02")),
        (['"a,b"', '"say ""a"""', "c"], ("a,b", "c", 'say "a"')),
        (['5" pipe', "it's"], ('5" pipe', "it's")),
    ],
)
def test_the_type_of_a_column_is_the_narrowest_that_all_its_values_are_written_as(tmp_path, values, labels):
    assert labels_of(tmp_path / "a.csv", *values) == labels
    # The same if rows before, more than the first glance sees, show nothing of it.
    late = labels_of(tmp_path / "b.csv", *[values[0]] * 30_000, *values)
    assert late == labels


def test_real_numbers_are_real_however_they_are_written(tmp_path):
    rows = [f"{i},0,a,go,{reward}" for i, reward in enumerate(["1", "-0.5", "+2", "1e3", " 7"])]
    logs = cs.read_logs(write_csv(tmp_path / "a.csv", "episode,step,state,action,reward", *rows))
    assert logs.reward.tolist() == [1.0, -0.5, 2.0, 1000.0, 7.0]
    rows.append("9,0,a,go,inf")
    path = write_csv(tmp_path / "a.csv", "episode,step,state,action,reward", *rows)
    with pytest.raises(DataError, match=r"row 6 after the header, column 'reward'.*finite; found inf"):
        cs.read_logs(path)


def test_two_columns_of_one_name_are_refused(tmp_path):
    names = ["episode", "step", "state", "action", "reward", "reward"]
    table = pa.table([[0], [0], ["a"], ["go"], [0.5], [0.7]], names=names)
    pq.write_table(table, tmp_path / "a.parquet")
    write_csv(tmp_path / "a.csv", "episode,step,state,action,reward,reward", "0,0,a,go,0.5,0.7")
    for logs in (tmp_path / "a.parquet", tmp_path / "a.csv", table):
        with pytest.raises(DataError, match="more than one column 'reward'"):
            cs.open_logs(logs, source="ward")


def test_quoted_names_with_signs_are_columns(tmp_path):
    header = '"epi,sode",step,"sta\'te;",action,reward'
    path = write_csv(tmp_path / "a.csv", header, "0,0,a,go,0.5", "0,1,b,go,1.0")
    assert cs.read_logs(path, episode="epi,sode", state="sta'te;").space.states == ("a", "b")


def test_many_columns_make_a_short_message(tmp_path):
    table = pa.table(ROWS | {f"column_{i}": [0, 0, 0] for i in range(10_000)})
    with pytest.raises(ArgumentError, match=r"no column 'nothing'.*in all") as told:
        cs.open_logs(table, source="ward", state="nothing")
    assert len(str(told.value)) < 2_000


def test_a_column_of_shapes_on_maps_that_nobody_uses_does_not_matter(tmp_path):
    point = struct.pack("<BIdd", 1, 1, 1.0, 2.0)
    place = {"place": {"encoding": "WKB", "geometry_types": []}}
    about = {"version": "1.0.0", "primary_column": "place", "columns": place}
    table = pa.table(ROWS | {"place": [point] * 3}).replace_schema_metadata({"geo": json.dumps(about)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert by_label(cs.count(tmp_path / "a.parquet")) == counted(cs.read_logs(write(tmp_path / "a.parquet")))


def test_the_engine_is_one_for_each_log(tmp_path):
    first, second = (cs.open_logs(write(tmp_path / f"{name}.parquet")) for name in "ab")
    write(tmp_path / "a.parquet", reward=[1.0, 1.0, 1.0])
    assert cs.count(second).n.sum() == 3  # only the other file was changed
    with pytest.raises(FileError, match=r"a\.parquet was changed"):
        cs.count(first)


def test_a_log_that_mentions_our_checksum_is_anybodys(tmp_path):
    rows = {"episode": [0], "step": [0], "state": ["a"], "action": ["go"], "reward": [1.0], "terminated": [True]}
    pq.write_table(pa.table(rows | {"note": ["see causal_shaping_checksum"]}), tmp_path / "a.parquet")
    assert cs.count(tmp_path / "a.parquet").n.sum() == 1
