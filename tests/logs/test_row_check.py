"""The row check refuses exactly the rows that a check by hand refuses."""

import math
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import DataError
from causal_shaping.logs import check, check_logs


def episodes(rng, flagged):
    """Sound rows of a few short episodes of two sources, in any order; without flags their ends are unknown."""
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


def sound_by_hand(rows):
    """Whether each episode counts its steps from 0, walks from state to next state, and ends only with its last row."""
    place = ("source", "episode", "step")
    ordered = sorted(rows, key=lambda row: [row[name] for name in place])
    for _, held in groupby(ordered, key=lambda row: (row["source"], row["episode"])):
        episode = list(held)
        if [row["step"] for row in episode] != list(range(len(episode))):
            return False
        for row, following in pairwise(episode):
            if row["terminated"] or row["truncated"] or row["next_state"] != following["state"]:
                return False
    return all(row["action"] is not None and math.isfinite(row["reward"]) for row in rows)


@fewer(60)
@given(
    seed=st.integers(0, 2**32),
    flagged=st.booleans(),
    change=st.sampled_from([None, "twice", "three times", "gone", "exchanged", *CHANGES]),
)
def test_rows_are_refused_exactly_if_a_check_by_hand_refuses_them(seed, flagged, change):
    rng = np.random.default_rng(seed)
    rows = episodes(rng, flagged)
    i = int(rng.integers(len(rows)))
    if change == "twice":
        rows += [row for row in rows if (row["source"], row["episode"]) == (rows[i]["source"], rows[i]["episode"])]
    elif change == "three times":
        rows += [rows[i]] * 2
    elif change == "exchanged":  # two episodes go on with the state of the other one
        others = [j for j, row in enumerate(rows) if row["step"] == rows[i]["step"]]
        j = others[int(rng.integers(len(others)))]
        one, other = rows[i]["next_state"], rows[j]["next_state"]
        rows[i], rows[j] = rows[i] | {"next_state": other}, rows[j] | {"next_state": one}
    elif change == "gone" and len(rows) > 1:
        del rows[i]
    elif change in CHANGES:
        rows[i] = CHANGES[change](rng, rows[i])
    types = {"source": pa.string(), "reward": pa.float64(), "terminated": pa.bool_(), "truncated": pa.bool_()}
    columns = {name: pa.array([row[name] for row in rows], types.get(name, pa.int64())) for name in rows[0]}
    logs = cs.open_logs(pa.table(columns))
    try:
        sound = check_logs(logs).sound
    except DataError:
        sound = False
    assert sound == sound_by_hand(rows)


def test_rows_are_checked_alike_however_many_episodes_are_doubtful(monkeypatch):
    rows = {"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": [1, 2, 1, 5], "action": [0] * 4}
    logs = cs.open_logs(pa.table(rows | {"reward": [0.0] * 4, "next_state": [2, 3, 2, 3]}), source="s")
    words = []
    for most in (10, 0):
        monkeypatch.setattr(check, "MOST_DOUBTFUL", most)
        with pytest.raises(DataError, match=r"row 4, column 'state'") as refused:
            check_logs(logs)
        words.append(str(refused.value))
    assert words[0] == words[1]


def test_episodes_without_flags_and_with_them_are_checked_alike():
    """An end without a flag is no reason to doubt a row; a jump beside it is found."""
    rows = {"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": [1, 2, 1, 2], "action": [0] * 4}
    rows |= {"reward": [0.0] * 4, "next_state": [2, 3, 2, 3]}
    rows |= {"terminated": [False, True, False, False], "truncated": [False] * 4}
    assert check_logs(cs.open_logs(pa.table(rows), source="s")).sound
    with pytest.raises(DataError, match=r"row 4, column 'state' \(episode 1, step 1\).*not the next state"):
        check_logs(cs.open_logs(pa.table(rows | {"next_state": [2, 3, 7, 3]}), source="s"))
    bare = {name: rows[name] for name in ("episode", "step", "state", "action", "reward")}
    assert check_logs(cs.open_logs(pa.table(bare), source="s")).sound
    with pytest.raises(DataError, match=r"row 2, column 'step'.*steps are missing"):
        check_logs(cs.open_logs(pa.table(bare | {"step": [0, 2, 0, 1]}), source="s"))
