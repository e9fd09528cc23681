"""Logs of states that cannot be listed: every format gives what a plain loop over the rows gives."""

import gc
import itertools
import tempfile
import warnings
from dataclasses import replace

import gymnasium as gym
import minari
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from minari.data_collector import EpisodeBuffer

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, DataError, DroppedEpisodesWarning
from causal_shaping.logs import read_transitions, transitions

ARRAYS = ("observations", "state", "next_state", "action", "reward", "terminated", "truncated", "source")
ARRAYS += ("episode", "step")


def episodes(seed, shape=(2,), kind=np.float32, sources=("b", "a"), text=False, actions=("go", "stay", "up")):
    """Some episodes of 1 to 5 rows, as lists of rows."""
    rng = np.random.default_rng(seed)
    made = []
    for source in sources:
        for number in range(4):
            size = int(rng.integers(1, 6))
            seen = rng.integers(0, 256, (size + 1, *shape)) / (1 if kind == np.uint8 else 8)
            ends = [(True, False), (False, True), (False, False)][rng.integers(3)]
            made.append(
                [
                    {
                        "source": source,
                        "episode": f"e{9 - number}" if text else 7 * number - 3,
                        "step": step,
                        "state": seen[step].astype(kind),
                        "action": actions[rng.integers(len(actions))],
                        "reward": float(rng.normal()),
                        "next_state": seen[step + 1].astype(kind),
                        "terminated": ends[0] and step == size - 1,
                        "truncated": ends[1] and step == size - 1,
                    }
                    for step in range(size)
                ]
            )
    return made


def expected(made, without=()):
    """What a plain loop makes of episodes: a list for each array."""
    result = {name: [] for name in ARRAYS}
    sources = sorted({rows[0]["source"] for rows in made})
    actions = sorted({row["action"] for rows in made for row in rows})
    for number, rows in enumerate(sorted(made, key=lambda rows: (rows[0]["source"], rows[0]["episode"]))):
        for row in rows:
            last = row is rows[-1]
            told = "terminated" not in without or ("truncated" not in without and row["truncated"])
            known = not last or ("next_state" not in without and told)
            result["state"].append(len(result["observations"]))
            result["observations"].append(row["state"])
            result["next_state"].append(len(result["observations"]) if known else -1)
            if last and known:
                result["observations"].append(row["next_state"])
            result["action"].append(actions.index(row["action"]))
            result["reward"].append(row["reward"])
            result["terminated"].append("terminated" not in without and row["terminated"])
            result["truncated"].append("truncated" not in without and row["truncated"])
            result["source"].append(sources.index(row["source"]))
            result["episode"].append(number)
            result["step"].append(row["step"])
    return result


def lists(values, depth):
    """Arrays as a column of lists that are nested so deep."""
    if depth == 0:
        return pa.array(np.asarray(values).reshape(-1))
    values = np.asarray(values)
    inner = lists(values.reshape(-1, *values.shape[2:]), depth - 1)
    return pa.ListArray.from_arrays(np.arange(len(values) + 1, dtype=np.int32) * values.shape[1], inner)


def as_lists(name, states):
    return {name: lists(states, states.ndim - 1)}


def as_flat(name, states):
    flat = states.reshape(len(states), -1)
    return {name: pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])}


def as_tensors(name, states):
    return {name: pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(states))}


def as_numbers(name, states):
    prefix = name.removesuffix("state")
    return {f"{prefix}{part}": states[:, i] for i, part in enumerate("xyz"[: states.shape[1]])}


def table(made, write=as_lists, without=(), seed=0):
    """Episodes as an Arrow table, its rows in any order."""
    rows = [row for one in made for row in one]
    rows = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    columns = {}
    for name in rows[0]:
        if name in without:
            continue
        if name in ("state", "next_state"):
            columns |= write(name, np.stack([row[name] for row in rows]))
        else:
            columns[name] = [row[name] for row in rows]
    return pa.table(columns)


def check_equal(found, wanted):
    for name in ARRAYS:
        held = getattr(found, name)
        np.testing.assert_array_equal(held, np.array(wanted[name]), err_msg=name)
        assert not held.flags.writeable, name


# Formats


def parquet(rows, tmp_path):
    pq.write_table(rows, tmp_path / "logs.parquet", row_group_size=7)
    return tmp_path / "logs.parquet"


def csv(rows, tmp_path):
    pc.write_csv(rows, tmp_path / "logs.csv")
    return tmp_path / "logs.csv"


def one(rows, tmp_path):
    return rows


FORMATS = {
    "Parquet": (parquet, as_lists),
    "fixed sizes in Parquet": (parquet, as_flat),
    "tensors in Parquet": (parquet, as_tensors),
    "numbers in Parquet": (parquet, as_numbers),
    "numbers in CSV": (csv, as_numbers),
    "Arrow": (one, as_lists),
    "fixed sizes in Arrow": (one, as_flat),
    "tensors in Arrow": (one, as_tensors),
    "pandas": (lambda rows, _: rows.to_pandas(), as_lists),
    "numbers in pandas": (lambda rows, _: rows.to_pandas(), as_numbers),
    "Polars": (lambda rows, _: polars.from_arrow(rows), as_lists),
    "fixed sizes in Polars": (lambda rows, _: polars.from_arrow(rows), as_flat),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_what_a_plain_loop_gives(name, tmp_path):
    make, write = FORMATS[name]
    made = episodes(1, text=write is as_numbers)
    found = read_transitions(make(table(made, write), tmp_path), state=["x", "y"] if write is as_numbers else "state")
    check_equal(found, expected(made))
    assert found.observations.dtype == np.float32
    assert (found.sources, found.actions, found.shape) == (("a", "b"), ("go", "stay", "up"), (2,))
    assert found.columns == (("x", "y") if write is as_numbers else ("state",))
    assert (found.mask, found.episodes) == (None, 8)


@pytest.mark.parametrize("without", [[], ["next_state"], ["terminated"], ["truncated"], ["terminated", "truncated"]])
@given(seed=st.integers(0, 10**6), bytes_at_once=st.integers(1, 1000))
@settings(max_examples=2, deadline=None)
def test_missing_columns_and_batches_of_any_size(without, seed, bytes_at_once):
    made = episodes(seed, shape=(3,), text=bool(seed % 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transitions, "BATCH_BYTES", bytes_at_once)
        found = read_transitions(table(made, without=without, seed=seed))
    check_equal(found, expected(made, without))


def test_next_states_may_be_missing_where_a_row_follows(tmp_path):
    made = episodes(4)
    rows = table(made).to_pylist()
    lasting = {(row["source"], row["episode"], row["step"] - 1) for row in rows}
    for row in rows:
        if (row["source"], row["episode"], row["step"]) in lasting:
            row["next_state"] = None
    check_equal(read_transitions(pa.Table.from_pylist(rows)), expected(made))


def in_polars(rows, _):
    return polars.from_arrow(rows)


@pytest.mark.parametrize(
    ("make", "write"),  # Polars knows no tensors
    [*itertools.product([parquet, one, in_polars], [as_lists, as_flat]), (parquet, as_tensors), (one, as_tensors)],
)
def test_images_stay_bytes(make, write, tmp_path):
    made = episodes(5, shape=(4, 3, 2), kind=np.uint8)
    found = read_transitions(make(table(made, write), tmp_path), shape=(4, 3, 2) if write is as_flat else None)
    check_equal(found, expected(made))
    assert (found.observations.dtype, found.shape, found.columns) == (np.uint8, (4, 3, 2), ("state",))


def test_lists_of_integers_become_floats_and_those_of_bytes_stay(tmp_path):
    made = episodes(6, kind=np.int64)
    found = read_transitions(table(made))
    check_equal(found, expected(made))
    assert found.observations.dtype == np.float32
    made = episodes(6, kind=np.uint8)
    assert read_transitions(table(made)).observations.dtype == np.uint8


def test_several_logs_are_read_one_after_another(tmp_path):
    one, other = episodes(7, sources=("a",)), episodes(8, sources=("b",))
    pq.write_table(table(one), tmp_path / "one.parquet")
    found = read_transitions([tmp_path / "one.parquet", table(other)])
    check_equal(found, expected([*one, *other]))


def test_one_of_several_sources():
    found = read_transitions(table(episodes(9)), source="b")
    check_equal(found, expected([rows for rows in episodes(9) if rows[0]["source"] == "b"]))


@pytest.mark.parametrize("most", [0, 500])  # from the first batch on, and after some
def test_arrays_in_files_are_those_in_memory(most, monkeypatch):
    monkeypatch.setattr(transitions, "IN_MEMORY", most)
    rows = table(episodes(10), seed=1)
    found = read_transitions(rows, mask=every)
    assert isinstance(found.observations, np.memmap)
    check_equal(found, expected(episodes(10)))
    assert found.mask.shape == (len(found.observations), 3)
    folder = found.files.path
    assert folder.is_dir()
    del found
    gc.collect()
    assert not folder.exists()


def test_labels_of_integers_are_numbers():
    world = cs.load_world("lavacross-easy")
    logs = world.collect("good", 300, seed=0)
    found = read_transitions(logs)
    labels = np.array(logs.space.states, dtype=np.float32)
    order = np.lexsort((logs.step, logs.episode))
    np.testing.assert_array_equal(found.observations[found.state], labels[logs.state[order]])
    known = found.next_state >= 0
    np.testing.assert_array_equal(found.observations[found.next_state[known]], labels[logs.next_state[order][known]])
    assert (found.actions, found.sources) == (logs.space.actions, ("good",))


def test_labels_of_text_are_refused():
    rows = {"episode": [0], "step": [0], "state": ["a"], "action": [0], "reward": [0.0]}
    logs = cs.read_logs(pa.table(rows), source="s")
    with pytest.raises(DataError, match="'state'"):
        read_transitions(logs)


def test_progress_tells_the_rows_read(monkeypatch):
    monkeypatch.setattr(transitions, "BATCH_BYTES", 300)
    told = []
    numbers = np.arange(10_000)
    rows = {"episode": numbers // 10, "step": numbers % 10, "x": numbers, "action": numbers % 2, "reward": numbers}
    read_transitions(pa.table(rows), source="s", state="x", progress=lambda *given: told.append(given))
    done = [number for number, total, what in told if what.startswith("Reading") and total == len(numbers)]
    assert len(done) > 2
    assert done == sorted(set(done))
    assert done[-1] == len(numbers)


def test_an_error_in_between_leaves_the_engine_free():
    def stop(done, total, what):
        raise KeyboardInterrupt

    for broken in ({"progress": stop}, {"mask": lambda seen: 1 / 0}):
        with pytest.raises((KeyboardInterrupt, ZeroDivisionError)):
            read_transitions(table(episodes(11)), **broken)
        check_equal(read_transitions(table(episodes(11))), expected(episodes(11)))


# Minari


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def written(made, space, dataset="test/logs-v0"):
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.stack([*(row["state"] for row in rows), rows[-1]["next_state"]]),
            actions=np.array([row["action"] for row in rows], dtype=np.int64),
            rewards=np.array([row["reward"] for row in rows]),
            terminations=np.array([row["terminated"] for row in rows]),
            truncations=np.array([row["truncated"] for row in rows]),
            infos={},
        )
        for i, rows in enumerate(made)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice for those who publish a data set
        minari.create_dataset_from_buffers(
            dataset, buffers, observation_space=space, action_space=gym.spaces.Discrete(3), data_format="hdf5"
        )
    return f"minari:{dataset}"


@pytest.mark.parametrize(("shape", "kind"), [((3,), np.float32), ((2,), np.float64), ((4, 5, 3), np.uint8)])
@pytest.mark.parametrize("at_once", [1, 2**25])
def test_boxes_of_minari(shape, kind, at_once, home, monkeypatch):
    monkeypatch.setattr("causal_shaping.logs.minari.MINARI_BYTES", at_once)
    made = episodes(12, shape, kind, sources=("",), actions=(0, 1, 2))
    for rows in made:  # Minari closes every episode
        rows[-1]["truncated"] = not rows[-1]["terminated"]
    where = written(made, gym.spaces.Box(0, 255, shape, kind))
    found = read_transitions(where)
    check_equal(found, expected(made))
    assert (found.shape, found.sources) == (shape, ("test/logs-v0",))
    assert found.observations.dtype == (np.uint8 if kind == np.uint8 else np.float32)
    if len(shape) == 1:  # and number by number
        found = read_transitions(where, state=[f"state_{i}" for i in range(*shape)])
        check_equal(found, expected(made))


def test_the_files_of_a_minari_data_set_are_removed_with_its_table(home, tmp_path, monkeypatch):
    where = written(episodes(12, sources=("",), actions=(0, 1)), gym.spaces.Box(0, 99, (2,)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    logs = cs.open_logs(where, numbers=True)
    assert list(tmp_path.glob("causal_shaping_*/rows.parquet"))
    del logs
    gc.collect()
    assert not list(tmp_path.glob("causal_shaping_*/rows.parquet"))


# Admissible actions


def every(observations):
    return np.ones((len(observations), 3), dtype=bool)


def some(observations):
    """Whether an action is admissible, by the parity of the first number; never all of them."""
    odd = observations.reshape(len(observations), -1)[:, 0].astype(int) % 2 == 1
    return np.stack([odd, ~odd, np.ones(len(odd), dtype=bool)], axis=1)


def obedient(seed):
    """Episodes that take admissible actions only."""
    made = episodes(seed, kind=np.uint8, actions=(0, 1, 2))
    for rows in made:
        for row in rows:
            row["action"] = int(np.argmax(some(row["state"][None])[0]))
    made[0][0]["action"] = 2
    return made


def test_a_function_says_which_actions_are_admissible(monkeypatch):
    monkeypatch.setattr(transitions, "BATCH_BYTES", 300)
    found = read_transitions(table(obedient(13)), mask=some)
    np.testing.assert_array_equal(found.mask, some(found.observations))


@pytest.mark.parametrize("with_next", [False, True])
def test_a_column_says_which_actions_are_admissible(with_next, tmp_path):
    made = obedient(14)
    for rows in made:
        for row in rows:
            row["legal"] = some(row["state"][None])[0].tolist()
            if with_next:
                row["next_legal"] = some(row["next_state"][None])[0].tolist()
    found = read_transitions(parquet(table(made), tmp_path), mask="legal")
    logged = np.isin(np.arange(len(found.observations)), found.state)
    np.testing.assert_array_equal(found.mask[logged], some(found.observations[logged]))
    np.testing.assert_array_equal(found.mask[~logged], some(found.observations[~logged]) if with_next else True)


def test_labels_keep_their_admissible_actions():
    rows = {"episode": [0, 0], "step": [0, 1], "state": [4, 6], "action": ["go", "up"], "reward": [0.0, 1.0]}
    logs = cs.read_logs(pa.table({**rows, "next_state": [6, 4], "terminated": [False, True]}), source="s")
    logs = replace(logs, space=logs.space.restricted({6: ["up"]}))
    assert read_transitions(logs).mask.tolist() == [[True, True], [False, True], [True, True]]


def legal(length, action=0):
    return {"episode": [5], "step": [0], "state": [[1.0]], "action": [action], "reward": [0.0], "m": [[True] * length]}


@pytest.mark.parametrize(
    ("rows", "options", "error", "named"),
    [
        (legal(3), {"mask": "m", "actions": [0, 1]}, DataError, ["'m'", "episode 5", "3 instead of 2", "them all"]),
        (legal(2) | {"m": [[False, True]]}, {"mask": "m", "actions": [0, 1]}, DataError, ["'action'", "episode 5"]),
        (legal(2) | {"m": [[True, None]]}, {"mask": "m", "actions": [0, 1]}, DataError, ["'m'", "nothing at [1]"]),
        (legal(2) | {"m": [1.5]}, {"mask": "m", "actions": [0, 1]}, DataError, ["'m'", "float64"]),
        (legal(2, "up"), {"mask": "m"}, ArgumentError, ["'m'", "Declare actions in that order"]),
        (legal(2), {"mask": "nothing"}, ArgumentError, ["'nothing'", "in mask"]),
        (legal(2), {"mask": lambda seen: np.ones((len(seen), 7), bool)}, ArgumentError, ["(1, 7)", "(1, 1)"]),
        (legal(2), {"mask": lambda seen: np.ones((len(seen), 1))}, ArgumentError, ["float64", "bool"]),
        (legal(2), {"mask": lambda seen: np.zeros((len(seen), 1), bool)}, DataError, ["'action'", "episode 5"]),
    ],
)
def test_masks_that_do_not_fit_are_refused(rows, options, error, named):
    with pytest.raises(error) as caught:
        read_transitions(pa.table(rows), source="s", **options)
    assert all(text in str(caught.value) for text in named), str(caught.value)


# Bad input

GOOD = {
    "episode": ["p", "p", "q"],
    "step": [0, 1, 0],
    "x": [0.5, 1.0, 2.0],
    "v": [[0.5, 1.0], [1.0, 2.0], [2.0, 3.0]],
    "i": pa.array([[[1], [2]], [[3], [4]], [[5], [6]]], pa.list_(pa.list_(pa.uint8()))),
    "action": [1, 0, 1],
    "reward": [0.0, 1.0, 2.0],
}
LIST = {"state": "v"}
BAD = {
    "NaN": ({"x": [0.5, np.nan, 2.0]}, {"state": "x"}, ["'x'", "row 2", "'p', step 1", "finite"]),
    "infinite": ({"x": [0.5, np.inf, 2.0]}, {"state": "x"}, ["'x'", "row 2", "finite"]),
    "no number": ({"x": [0.5, None, 2.0]}, {"state": "x"}, ["'x'", "row 2"]),
    "text": ({"x": ["a", "b", "c"]}, {"state": "x"}, ["'x'", "string", "Encode"]),
    "lists of text": ({"v": [["a"], ["b"], ["c"]]}, LIST, ["'v'", "string", "Encode"]),
    "a short list": ({"v": [[0.5, 1.0], [1.0], [2.0, 3.0]]}, LIST, ["'v'", "row 2", "'p', step 1", "1 instead of 2"]),
    "NaN in a list": ({"v": [[0.5, 1.0], [1.0, 2.0], [np.nan, 3.0]]}, LIST, ["'v'", "row 3", "'q'", "nan at [0]"]),
    "infinite in a list": ({"v": [[0.5, 1.0], [1.0, -np.inf], [2.0, 3.0]]}, LIST, ["'v'", "row 2", "-inf at [1]"]),
    "too large for 32 bits": ({"v": [[0.5, 1.0], [1.0, 1e300], [2.0, 3.0]]}, LIST, ["'v'", "row 2", "1e+300 at [1]"]),
    "a gap in a list": ({"v": [[0.5, 1.0], [1.0, None], [2.0, 3.0]]}, LIST, ["'v'", "row 2", "nothing at [1]"]),
    "no list": ({"v": [[0.5, 1.0], None, [2.0, 3.0]]}, LIST, ["'v'", "row 2", "nothing"]),
    "only empty lists": ({"v": pa.array([[], [], []], pa.list_(pa.float64()))}, LIST, ["'v'", "empty list"]),
    "a ragged image": ({"i": pa.array([[[1], [2]], [[3, 4], []], [[5], [6]]], pa.list_(pa.list_(pa.uint8())))},
                       {"state": "i"}, ["'i'", "row 2", "2 instead of 1 entries at [0]"]),
    "an image of another shape": ({}, {"state": "i", "shape": (2, 3)}, ["'i'", "row 1", "1 instead of 3 entries"]),
    "an image that is nested otherwise": ({}, {"state": "i", "shape": (2, 1, 1)}, ["'i'", "2 deep", "(2, 1, 1)"]),
    "a list that has no such shape": ({}, {"state": "v", "shape": (2, 2)}, ["'v'", "row 1", "2 instead of 4"]),
    "a shape of nothing": ({}, {"state": "v", "shape": (2, 0)}, ["shape is (2, 0)"]),
    "a shape of numbers": ({}, {"state": "x", "shape": (1,)}, ["shape", "leave it out"]),
    "an image and a number": ({}, {"state": ["x", "i"]}, ["'i'", "'x'", "whole state"]),
    "an action that is not declared": ({}, {"state": "x", "actions": [1]}, ["'action'", "row 2", "action 0"]),
    "a step twice": ({"step": [0, 0, 0]}, LIST, ["'step'", "'p', step 0", "twice"]),
    "a jump": ({"next_v": [[9.0, 9.0], None, None]}, LIST, ["'v'", "row 2", "next state of the row before"]),
    "a short next list": ({"next_v": [None, [1.0], None]}, LIST, ["'next_v'", "row 2", "1 instead of 2"]),
    "a next state of another type": ({"next_v": [1.0, 1.0, 1.0]}, LIST, ["'next_v'", "float64"]),
    "no rows": ({name: pa.array(column)[:0] for name, column in GOOD.items()}, {"state": "x"}, ["no rows"]),
    "no lists": ({name: pa.array(column)[:0] for name, column in GOOD.items()}, LIST, ["'v'", "no rows"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_file_row_and_column(name, tmp_path):
    changes, options, named = BAD[name]
    where = parquet(pa.table(GOOD | changes), tmp_path)
    with pytest.raises((DataError, ArgumentError)) as caught:
        read_transitions(where, **options)
    assert all(text in str(caught.value) for text in [*named, *([] if "shape is" in named[0] else ["logs.parquet"])])


@pytest.mark.parametrize(
    "name", [name for name, (_, options, named) in BAD.items() if "row 2" in named and "actions" not in options]
)
def test_episodes_that_would_break_arrays_are_left_out_on_demand(name):
    changes, options, _ = BAD[name]
    rows = pa.table(GOOD | changes)
    with pytest.warns(DroppedEpisodesWarning):
        found = read_transitions(rows, source="s", **options, skip_bad_episodes=True)
    assert found.reward.tolist() == [2.0]


def test_two_logs_with_different_states_are_refused():
    rows = pa.table(GOOD)
    other = cs.open_logs(rows, source="other", state="v", numbers=True)
    with pytest.raises(DataError, match=r"x of shape \(1,\) and type float32 against v of shape \(2,\)"):
        read_transitions([cs.open_logs(rows, source="s", state="x", numbers=True), other])
    bytes_ = pa.table(GOOD | {"v": pa.array([[0, 1], [1, 2], [2, 3]], pa.list_(pa.uint8()))})
    with pytest.raises(DataError, match=r"float32 against v of shape .* and type uint8"):
        read_transitions([other, cs.open_logs(bytes_, source="s", state="v", numbers=True)])


def test_arrays_of_several_dimensions_in_a_pandas_column_are_refused_with_what_to_do():
    frame = pandas.DataFrame({"state": [np.zeros((2, 2), np.uint8)] * 2})
    with pytest.raises(DataError, match="shape says how"):
        read_transitions(frame, source="s")


def test_constant_columns_one_action_and_one_source_are_no_errors():
    found = read_transitions(pa.table(GOOD | {"x": [1.0] * 3, "action": ["go"] * 3}), source="s", state="x")
    assert (found.actions, found.sources, found.observations.tolist()) == (("go",), ("s",), [[1.0]] * 3)


@pytest.mark.parametrize("options", [{"shape": (2, 1)}, {"mask": "m"}])
def test_shape_and_mask_are_of_states_that_are_numbers(options):
    with pytest.raises(ArgumentError, match="numbers=True"):
        cs.open_logs(pa.table(GOOD), source="s", state="x", **options)


def test_a_misspelt_column_is_refused_even_where_all_logs_are_open():
    opened = cs.open_logs(table(episodes(3)), numbers=True)
    with pytest.raises(ArgumentError, match=r"read_transitions takes no sorce=\. Did you mean source=\?"):
        read_transitions(opened, sorce="a")
