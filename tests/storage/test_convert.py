"""Logs on disk: labels in the columns, the rest in the metadata."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import causal_shaping as cs
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import CausalShapingError
from causal_shaping.storage import METADATA_KEY


def test_a_written_log_holds_labels_that_any_tool_can_read(tmp_path):
    world = cs.load_world("lavacross-easy")
    logs = world.collect("good", steps=500, seed=1)
    logs.save(tmp_path / "good.parquet")
    table = pq.read_table(tmp_path / "good.parquet")
    assert table.column_names == [
        "source", "episode", "step", "x", "y", "action", "reward", "next_x", "next_y", "terminated", "truncated",
    ]  # fmt: skip
    rows = table.to_pydict()
    assert list(zip(rows["x"], rows["y"], strict=True)) == [world.states[s] for s in logs.state]
    assert list(zip(rows["next_x"], rows["next_y"], strict=True)) == [world.states[s] for s in logs.next_state]
    assert rows["action"] == [world.actions[x] for x in logs.action]
    assert set(rows["source"]) == {"good"}
    for name in ("episode", "step", "reward", "terminated", "truncated"):
        np.testing.assert_array_equal(rows[name], getattr(logs, name))


def test_the_metadata_says_where_the_logs_come_from(tmp_path):
    logs = cs.load_world("walking-robot").collect("competent", steps=50, seed=7)
    logs.save(tmp_path / "a.parquet")
    about = json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[METADATA_KEY])
    assert (about["kind"], about["version"], about["source"]) == ("logs", 2, "competent")
    assert about["metadata"]["world"] == "walking-robot"
    assert (about["metadata"]["demonstrator"], about["metadata"]["seed"]) == ("competent", "7")
    assert cs.Space.from_plain(about["space"]) == logs.space


def small(states, next_state):
    space = cs.Space(states, ["a"])
    flags = {"terminated": [False], "truncated": [True]}
    return cs.Logs(space, "s", [0], [0], [0], [0], [0.5], [next_state], **flags)


@pytest.mark.parametrize("states", [["a", "b"], [10, 20], [("a", 1), ("b", 2)]])
def test_an_unknown_next_state_is_null(tmp_path, states):
    logs = small(states, UNKNOWN)
    logs.save(tmp_path / "a.parquet")
    rows = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert [rows[name] for name in logs.space.next_columns] == [[None]] * len(logs.space.columns)
    first = states[0] if isinstance(states[0], tuple) else (states[0],)
    assert tuple(rows[name][0] for name in logs.space.columns) == first


def test_labels_of_mixed_type_are_refused(tmp_path):
    with pytest.raises(CausalShapingError, match="'state' would hold integers and strings"):
        small(["a", 1], 1).save(tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.txt", "must end in .parquet"), ("no/a.parquet", "does not exist"), ("folder.parquet", "is a folder")],
)
def test_a_file_that_cannot_be_written_is_refused(tmp_path, name, message):
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(CausalShapingError, match=message):
        small([1, 2], 1).save(tmp_path / name)
