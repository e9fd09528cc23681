"""Counts that grow part by part: the same as all at once, no part twice, and never half of one."""

import json
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from forging import forge
from hypothesis import given, strategies as st
from properties import fewer
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, AssumptionWarning, DataError, FileError
from causal_shaping.io.convert import logs_table
from causal_shaping.io.files import TEMPORARY, locked
from causal_shaping.logs import parts as module

SPACE = cs.Space(["a", "b", "end"], ["go", "stay"], complete=False)
BINS = cs.Bins(edges=(0.25, 1.0))
GOOD = {"source": "good", "state": ["x", "y"]}


def logs_of(episodes, source="s"):
    """Logs of episodes, each a list of (state, action, eighths of reward); the last row of an episode ends it."""
    rows = [(e, h, *row) for e, episode in enumerate(episodes) for h, row in enumerate(episode)]
    episode, step, state, action, reward = (np.array(column) for column in zip(*rows, strict=True))
    last = np.append(episode[1:] != episode[:-1], True)
    after = np.where(last, 2, np.append(state[1:], 2))
    return cs.Logs(SPACE, source, episode, step, state, action, reward / 8, after, last, np.zeros(len(rows), bool))


row = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-8, 16))
an_episode = st.lists(row, min_size=1, max_size=3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "counts.parquet"


@pytest.fixture(scope="module")
def days():
    """Three days of one source."""
    world = cs.load_world("lavacross-easy")
    return {f"2026-11-0{seed}": world.collect("good", 500, seed=seed) for seed in (1, 2, 3)}


def saved(folder, logs, name="day.csv"):
    """Open logs from a file."""
    logs.save(folder / name)
    return cs.open_logs(folder / name, **GOOD)


@given(data=st.data(), episodes=st.lists(an_episode, min_size=1, max_size=6), bins=st.sampled_from([None, BINS]))
@fewer(25)
def test_any_split_in_any_order_and_any_number_of_calls_gives_the_counts_of_all_at_once(data, episodes, bins):
    names = data.draw(st.lists(st.sampled_from("uvw"), min_size=len(episodes), max_size=len(episodes)))
    held = {name: [e for e, n in zip(episodes, names, strict=True) if n == name] for name in set(names)}
    order = data.draw(st.permutations(sorted(held)))
    calls = data.draw(st.lists(st.sets(st.sampled_from(order)), max_size=3))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # of parts that give the same counts
        path = Path(folder) / "counts.parquet"
        for call in [*calls, order]:
            if call:
                update = cs.update_counts(path, {name: logs_of(held[name]) for name in call}, reward_bins=bins)
                assert set(update.added) | set(update.known) == set(call)
        found = cs.Counts.load(path)
    whole = logs_of(episodes)
    wanted = cs.count(whole, reward_bins=bins)
    moved = found.to_space(wanted.space)
    for name in cs.Counts.COLUMNS:  # rewards are eighths: sums are exact in any order
        np.testing.assert_array_equal(getattr(moved, name), getattr(wanted, name))
    if bins is None:
        assert by_label(found) == counted(whole)


def test_sources_come_and_go_from_part_to_part(path):
    one, two = logs_of([[(0, 0, 1)]], "one"), logs_of([[(1, 1, 2)], [(0, 1, 3)]], "two")
    cs.update_counts(path, {"monday": [one, two], "tuesday": logs_of([[(0, 1, 4)]], "two")})
    assert by_label(cs.Counts.load(path)) == counted(one) | counted(two) | counted(logs_of([[(0, 1, 4)]], "two"))
    assert {name: (part.rows, part.sources) for name, part in cs.counted_parts(path).items()} == {
        "monday": (3, ("one", "two")),
        "tuesday": (1, ("two",)),
    }


def test_a_part_that_is_counted_already_changes_nothing_and_is_told(path, days):
    first = cs.update_counts(path, days)
    written = path.read_bytes()
    again = cs.update_counts(path, days)
    assert (first.added, first.known, again.added, again.known) == (tuple(days), (), (), tuple(days))
    assert path.read_bytes() == written
    assert "Counted before, and not again: 2026-11-01, 2026-11-02, 2026-11-03" in str(again)
    assert again.parts == first.parts == cs.counted_parts(path)
    assert again.to_pandas()["added"].tolist() == [False] * 3
    assert [file.name for file in path.parent.glob("[!.]*")] == [path.name]


def test_files_that_are_the_same_are_not_counted_again(path, tmp_path, days, monkeypatch):
    opened = {day: saved(tmp_path, logs, f"{day}.csv") for day, logs in days.items()}
    cs.update_counts(path, opened)
    monkeypatch.setattr(module, "count", None)
    renamed = Path(tmp_path / "2026-11-01.csv").rename(tmp_path / "other.csv")
    opened["2026-11-01"] = cs.open_logs(renamed, **GOOD)
    assert cs.update_counts(path, opened).known == tuple(days)


def test_a_part_may_come_in_another_format_and_order(path, tmp_path, days):
    day, logs = next(iter(days.items()))
    cs.update_counts(path, {day: saved(tmp_path, logs)})
    shuffled = logs_table(logs).take(np.random.default_rng(0).permutation(len(logs)))
    for same in (logs, shuffled, saved(tmp_path, logs, "day.parquet")):
        opened = same if isinstance(same, (cs.Logs, cs.LogTable)) else cs.open_logs(same, **GOOD)
        assert cs.update_counts(path, {day: opened}).known == (day,)


def test_a_part_that_has_changed_is_refused_before_any_other_is_added(path, tmp_path, days):
    (day, logs), (other, more), _ = days.items()
    cs.update_counts(path, {day: saved(tmp_path, logs)})
    written = path.read_bytes()
    table = logs_table(logs).slice(0, 0).to_pylist() or logs_table(logs).to_pylist()
    table[0]["reward"] = 7.0
    changed = cs.open_logs(pa.Table.from_pylist(table), **GOOD)
    for mended in (changed, cs.open_logs(pa.Table.from_pylist(table[: len(table) // 2]), **GOOD)):
        with pytest.raises(
            DataError, match=f"Part '{day}' is in .*counts.parquet already, with other counts: 500 rows of good"
        ):
            cs.update_counts(path, {other: more, day: mended}, check=False)
    assert path.read_bytes() == written


def test_a_file_that_is_read_in_another_way_is_refused(path, tmp_path, days):
    day, logs = next(iter(days.items()))
    pc.write_csv(pa.Table.from_pylist(logs_table(logs).to_pylist()), tmp_path / "day.csv")
    cs.update_counts(path, {day: cs.open_logs(tmp_path / "day.csv", **GOOD)})
    other = cs.open_logs(tmp_path / "day.csv", **GOOD, terminated={"terminated": [False]})
    with pytest.raises(DataError, match="or they are read in another way"):
        cs.update_counts(path, {day: other}, check=False)


def test_the_same_logs_under_two_names_are_refused_or_told(path, tmp_path, days):
    day, logs = next(iter(days.items()))
    opened = saved(tmp_path, logs)
    for call in ({day: opened, "again": opened}, {"again": opened}):
        with pytest.raises(ArgumentError, match=f"Part 'again' has the same files as part '{day}' of .*Leave it out"):
            cs.update_counts(path, call)
    assert list(cs.counted_parts(path)) == [day]
    with pytest.warns(AssumptionWarning, match=f"Part 'memory' and part '{day}' give exactly the same counts"):
        cs.update_counts(path, {"memory": logs})


def test_counts_without_a_list_of_parts_are_refused(path, days):
    logs = days["2026-11-01"]
    cs.count(logs).save(path)
    for call in (lambda: cs.update_counts(path, {"a": logs}), lambda: cs.counted_parts(path)):
        with pytest.raises(FileError, match="do not say which parts are in them"):
            call()
    logs.save(path)
    with pytest.raises(FileError, match="holds logs, not counts"):
        cs.update_counts(path, {"a": logs})
    with pytest.raises(ArgumentError, match="must name each part once"):
        cs.update_counts(path, {})
    assert cs.counted_parts(path.with_name("none.parquet")) == {}


@pytest.mark.parametrize("forged", [{"a": 1}, [], {"a": {"rows": 500}}, None])
def test_a_forged_list_is_refused_in_our_words(path, days, forged):
    cs.update_counts(path, {"a": days["2026-11-01"]})
    table = pq.read_table(path)
    held = json.loads(table.schema.metadata[b"causal_shaping"])
    if forged is None:  # a row less than was counted
        forged = {"a": held["parts"]["a"] | {"rows": 499}}
    keys = table.schema.metadata | {b"causal_shaping": json.dumps(held | {"parts": forged})}
    forge(table.replace_schema_metadata(keys), path)
    assert cs.Counts.load(path).n.sum() == 500
    with pytest.raises(FileError, match="is not a complete file of counts"):
        cs.counted_parts(path)


def test_rewards_are_cut_as_in_the_first_part(path):
    many = [
        logs_of([[(0, 0, int(r))] for r in np.random.default_rng(seed).integers(-900, 900, 200)]) for seed in (1, 2)
    ]
    cs.update_counts(path, {"one": many[0]})
    edges = cs.Counts.load(path).space.reward_bins
    cs.update_counts(path, {"two": many[1]})
    found = cs.Counts.load(path)
    assert found.space.reward_bins == edges
    wanted = cs.count(many[0]).merge(cs.count(many[1], reward_bins=edges))
    for name in cs.Counts.COLUMNS:
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    few = path.with_name("few.parquet")
    cs.update_counts(few, {"few": logs_of([[(0, 0, 1)]])})
    with pytest.raises(DataError, match="Part 'two' has rewards of many values, which need bins"):
        cs.update_counts(few, {"two": many[1]})


def test_what_is_declared_is_of_all_parts_together(path):
    """The first part shows one state, the second the other: neither is complete alone."""
    parts = {"one": logs_of([[(0, 0, 1)]]), "two": logs_of([[(1, 1, 1)]])}
    parts = {name: cs.open_logs(logs_table(logs), source="s") for name, logs in parts.items()}
    for name, logs in parts.items():
        found = cs.update_counts(path, {name: logs}, complete=True, admissible=lambda s, x: (s, x) != ("b", "go"))
    assert found.counts.space.complete
    assert found.counts.space.admissible == {"b": frozenset({"stay"})}
    assert found.counts.checksum == cs.Counts.load(path).checksum
    with pytest.raises(DataError, match="Counts by step and counts with steps pooled cannot be merged"):
        cs.update_counts(path, {"three": logs_of([[(0, 0, 3)]])}, step_indexed=True)


def test_messages_name_the_part(path, days):
    rows = logs_table(days["2026-11-01"]).to_pylist()
    rows[3]["reward"] = float("nan")
    with pytest.raises(DataError, match=r"the Table \(part 2026-11-01\), row 4, column 'reward'"):
        cs.update_counts(path, {"2026-11-01": cs.open_logs(pa.Table.from_pylist(rows), **GOOD)})
    assert not path.exists()


def test_two_processes_do_not_update_one_file(path, days):
    with (
        locked(path.with_name(f"{TEMPORARY}{path.name}.lock"), ""),
        pytest.raises(FileError, match="Another process updates"),
    ):
        cs.update_counts(path, days)
    cs.update_counts(path, days)


PROGRAM = """
import os, signal, sys
import causal_shaping as cs
replace = os.replace
def killed(*names):
    if sys.argv[2] == "after":
        replace(*names)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
cs.update_counts(sys.argv[1], {"new": cs.load_world("lavacross-easy").collect("good", 300, seed=9)})
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_leaves_the_old_counts_and_list_or_the_new_ones(path, days, moment):
    day, logs = next(iter(days.items()))
    cs.update_counts(path, {day: logs})
    ran = subprocess.run([sys.executable, "-c", PROGRAM, path, moment], check=False)
    assert ran.returncode == -signal.SIGKILL
    new = cs.load_world("lavacross-easy").collect("good", 300, seed=9)
    listed = [day] if moment == "before" else [day, "new"]
    assert list(cs.counted_parts(path)) == listed
    assert cs.Counts.load(path).n.sum() == 500 + 300 * (moment == "after")
    assert cs.update_counts(path, {"new": new}).counts.n.sum() == 800
