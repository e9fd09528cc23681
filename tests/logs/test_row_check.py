"""Whether rows are sound is told without order where that is possible, and never otherwise than with it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import DataError
from causal_shaping.logs import check, check_logs
from causal_shaping.logs.table import fetch


def episodes(rng, flagged=True):
    """Sound rows of a few short episodes of two sources, in any order."""
    rows = []
    for episode in range(rng.integers(1, 6)):
        length, state = int(rng.integers(1, 5)), int(rng.integers(3))
        for step in range(length):
            after, over = int(rng.integers(3)), flagged and step == length - 1
            row = {"source": "ab"[episode % 2], "episode": episode // 2, "step": step, "state": state, "action": 0}
            terminated = over and bool(rng.integers(2))
            flags = {"terminated": terminated, "truncated": over and not terminated}
            rows.append(row | {"reward": 0.5, "next_state": after} | flags)
            state = after
    rng.shuffle(rows)
    return rows


CHANGES = {
    "state": lambda rng, row: row | {"state": row["state"] + 1},
    "next_state": lambda rng, row: row | {"next_state": row["next_state"] + 1},
    "step": lambda rng, row: row | {"step": row["step"] + int(rng.integers(-1, 2))},
    "episode": lambda rng, row: row | {"episode": row["episode"] + int(rng.integers(-1, 2))},
    "source": lambda rng, row: row | {"source": "b"},
    "end": lambda rng, row: row | {"terminated": not row["terminated"]},
    "reward": lambda rng, row: row | {"reward": float("nan")},
    "action": lambda rng, row: row | {"action": None},
}


def table(rows):
    types = {"source": pa.string(), "reward": pa.float64(), "terminated": pa.bool_(), "truncated": pa.bool_()}
    return pa.table({name: pa.array([row[name] for row in rows], types.get(name, pa.int64())) for name in rows[0]})


def seen(logs):
    """What is said of rows that are not sound; None of those that are."""
    try:
        check_logs(logs)
    except DataError as error:
        return str(error)
    return None


@fewer(42)
@given(seed=st.integers(0, 2**32), flagged=st.booleans(), change=st.sampled_from([None, "twice", "gone", *CHANGES]))
def test_rows_are_sound_without_order_if_they_are_with_it(seed, flagged, change):
    rng = np.random.default_rng(seed)
    rows = episodes(rng, flagged)
    i = int(rng.integers(len(rows)))
    if change == "twice":
        rows += [row for row in rows if (row["source"], row["episode"]) == (rows[i]["source"], rows[i]["episode"])]
    elif change == "gone" and len(rows) > 1:
        del rows[i]
    elif change in CHANGES:
        rows[i] = CHANGES[change](rng, rows[i])
    logs = cs.open_logs(table(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "HASHED", ())
        in_order = seen(logs)
    assert seen(logs) == in_order
    alone = bool(check._fits_without_order(logs, ["episode", "source"], ["n0"]))
    assert not (alone and in_order)
    if change is None:
        assert in_order is None
        assert alone == flagged


def test_rows_whose_ends_are_flagged_are_never_put_in_order(monkeypatch):
    logs = cs.open_logs(table(episodes(np.random.default_rng(0))))
    monkeypatch.setattr(check, "_Ordered", None)
    assert check_logs(logs).sound


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("wrong", [True, False])
def test_numbers_are_compared_without_order(lists, wrong):
    rows = {"source": ["a"] * 3, "episode": [0] * 3, "step": [0, 1, 2], "action": [0] * 3, "reward": [0.0] * 3}
    here, there = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[2.0, 3.5 if wrong else 3.0], [4.0, 5.0], [6.0, 7.0]]
    flags = {"terminated": [False, False, True], "truncated": [False] * 3}
    if lists:
        states, names = {"state": here, "next_state": there}, ["state"]
    else:
        columns = {"x": 0, "y": 1}
        states, names = {name: [row[k] for row in here] for name, k in columns.items()}, list(columns)
        states |= {f"next_{name}": [row[k] for row in there] for name, k in columns.items()}
    logs = cs.open_logs(pa.table(rows | states | flags), state=names, numbers=True)
    followers = ["hash_n0"] if lists else ["n0", "n1"]
    assert bool(check._fits_without_order(logs, ["episode", "source"], followers)) != wrong
    if wrong:
        with pytest.raises(DataError, match="not the next state of the row before"):
            check_logs(logs)


def first_rows(numbers, kind, sources):
    """Episodes of one step each."""
    size = len(numbers)
    rows = {"source": sources, "episode": pa.array(numbers, kind), "step": [0] * size, "state": [0] * size}
    rows |= {"action": [0] * size, "reward": [0.0] * size, "next_state": [1] * size}
    return cs.open_logs(pa.table(rows | {"terminated": [True] * size, "truncated": [False] * size}))


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("numbers", "kind", "sources", "once", "gaps"),
    [
        ([2, 1, 3], pa.int64(), "aaa", True, False),
        ([126, 127], pa.int8(), "aa", True, False),
        ([0, 1, 1, 0], pa.int64(), "abab", True, False),
        ([-LARGEST - 1, -LARGEST], pa.int64(), "aa", True, False),
        ([1, 0, 3], pa.int64(), "aaa", True, True),
        ([-LARGEST - 1, LARGEST], pa.int64(), "aa", True, True),
        ([LARGEST - 1, LARGEST], pa.int64(), "aa", True, True),  # not certain: nothing follows the largest number
        ([0, LARGEST + 1], pa.uint64(), "aa", True, True),
        (["0", "1"], pa.string(), "aa", True, True),
        ([0, 0, 2], pa.int64(), "aaa", False, True),
        ([0, 0, 1, 1], pa.int64(), "aaaa", False, True),
        ([0, 1, 1, 3, 0, 2, 2, 3], pa.int64(), "aaaabbbb", False, True),  # together each number stands twice
        ([LARGEST - 1, LARGEST, LARGEST], pa.int64(), "aaa", False, True),
    ],
)
def test_an_episode_begins_once_whether_numbers_have_gaps_or_not(numbers, kind, sources, once, gaps):
    logs = first_rows(numbers, kind, list(sources))
    assert check._numbered_without_gaps(logs.rows, ["episode", "source"], "") != gaps
    assert check._fits_without_order(logs, ["episode", "source"], ["n0"]) == once * len(numbers)


def test_episodes_without_gaps_are_never_grouped(monkeypatch):
    asked = []
    monkeypatch.setattr(check, "fetch", lambda query, origin: asked.append(query) or fetch(query, origin))
    assert check_logs(first_rows([0, 1, 3], pa.int64(), list("aab"))).sound
    assert len(asked) == 2
    assert check_logs(first_rows([0, 1, 3], pa.int64(), list("aaa"))).sound
    assert len(asked) == 2 + 3
