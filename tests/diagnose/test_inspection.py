"""Inspections: what they say, that they are complete without the command, and that small cells stay hidden."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import causal_shaping as cs
from causal_shaping.data.words import state_text
from causal_shaping.diagnose.small_cells import SmallCells
from causal_shaping.errors import ArgumentError


@pytest.fixture(scope="module")
def logs():
    world = cs.load_world("lavacross-easy")
    return [world.collect(name, 20_000) for name in ("bad", "random")]


@pytest.fixture(scope="module")
def found(logs):
    return cs.inspect(logs)


def test_an_inspection_prints_tables_and_findings(found):
    text = str(found)
    assert text == found.summary()
    assert re.search(r"^bad +2,137 +20,000 +9\.4 \(longest 20\) +1,549 +588 +0 ", text, re.MULTILINE)
    assert "bad takes its most frequent action in 91% of its steps" in text
    assert "- 4 contradictions between sources. Where two disagree: at least one of them is confounded" in text
    assert "- bad and random disagree on what right does in (3, 1): it leads to (4, 1) in 95% against 16%." in text
    assert repr(found) == "Inspection(bad, random: 49 states, 4 contradictions)"
    assert "<table" in found._repr_html_()


def test_parts_of_an_inspection_are_those_of_the_library(logs, found):
    counts = cs.count(logs)
    assert found.counts.checksum == counts.checksum
    assert found.coverage.items == cs.coverage(counts).items
    assert found.contradictions.items == cs.contradictions(counts).items
    np.testing.assert_array_equal(found.unseen, cs.unseen_mass(counts))


def test_json_holds_everything(found):
    held = json.loads(found.to_json())
    assert [source["source"] for source in held["sources"]] == ["bad", "random"]
    assert held["sources"][0] | {"episodes": 2137, "steps": 20_000, "unknown": 0} == held["sources"][0]
    assert held["findings"] == found.findings()
    assert json.loads(found.contradictions.to_json()) == held["contradictions"]
    assert [row["source"] for row in json.loads(found.coverage.to_json())] == ["bad", "random"]


def test_the_table_has_a_row_per_source_and_state(found, logs):
    frame = found.to_pandas()
    assert frame.groupby("source").visits.sum().to_dict() == {"bad": 20_000, "random": 20_000}
    row = frame[(frame.source == "bad") & (frame.x == 3) & (frame.y == 1)].iloc[0]
    taken = [x for s, x in zip(logs[0].state, logs[0].action, strict=True) if logs[0].space.states[s] == (3, 1)]
    assert row.visits == len(taken)
    assert row.action_share == pytest.approx(np.bincount(taken).max() / len(taken))
    assert len(found.contradictions.to_pandas()) == 4


def test_logs_can_be_files_and_frames_and_progress_tells_what_is_done(logs, found, tmp_path):
    logs[0].save(tmp_path / "bad.parquet")
    logs[1].save(tmp_path / "random.csv")
    told = []
    table = cs.open_logs(tmp_path / "random.csv", source="random", state=["x", "y"])
    again = cs.inspect([tmp_path / "bad.parquet", table], progress=lambda *call: told.append(call))
    assert again.findings() == found.findings()
    assert [(done, total) for done, total, _ in told[:4]] == [(0, 5), (1, 5), (2, 5), (3, 5)]
    assert [done for done, *_ in told] == sorted(done for done, *_ in told)
    assert len(told) > 5  # also while sources are compared
    assert told[-1][:2] == (5, 5)
    assert told[0][2].startswith("Checking ")
    assert again.metadata[0]["world"] == "lavacross-easy"
    one = cs.inspect(tmp_path / "bad.parquet")
    assert "With one source there is nothing to compare" in one.summary()


def test_wrong_arguments_are_refused_before_the_logs_are_read():
    with pytest.raises(ArgumentError, match="smallest_cell is 1; it must be at least 2"):
        SmallCells(1)
    with pytest.raises(ArgumentError, match="level is 2"):
        cs.contradictions(cs.count(cs.load_world("lavacross-easy").collect("bad", 10)), level=2)


def ward(patients, rare, seed):
    """Patients with a stage and a drug; `rare` of them have a stage of their own."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"episode": np.arange(patients), "step": 0})
    frame["state"] = np.where(frame.episode < rare, "rare", "common")
    frame["action"] = rng.choice(["none", "drug"], patients)
    frame["next_state"] = frame.state
    frame["reward"] = rng.integers(2, size=patients).astype(float)
    frame["terminated"] = frame.episode >= rare
    frame["truncated"] = ~frame.terminated
    return frame


@pytest.fixture(scope="module")
def small():
    return [cs.open_logs(ward(200, 7, 0), source="three"), cs.open_logs(ward(300, 40, 1), source="seven")]


def test_no_small_count_is_shown_and_none_can_be_computed(small):
    open_to_all = cs.inspect(small)
    assert re.search(r"^three +200 +200 .* 193 +7 +0 ", open_to_all.summary(), re.MULTILINE)
    hidden = cs.inspect(small).without_small_cells(11)
    row = next(line for line in hidden.summary().splitlines() if line.startswith("three"))
    assert re.search(r"^three +200 +200 +1\.0 +withheld +fewer than 11 +0 ", row)  # 193 would give the 7 away
    row = next(line for line in hidden.summary().splitlines() if line.startswith("seven"))
    assert re.search(r"^seven +300 +300 +1\.0 +260 +40 +0 ", row)
    held = json.loads(hidden.to_json())["sources"][0]
    assert (held["terminated"], held["truncated"], held["unknown"]) == ("withheld", "fewer than 11", 0)
    assert held["longest"] is held["highest_return"] is None
    frame = hidden.to_pandas().set_index(["source", "state"])
    assert pd.isna(frame.visits["three", "rare"])
    assert pd.isna(frame.action_share["three", "rare"])
    assert pd.isna(frame.visits["three", "common"])  # 200 steps less 193 would give the 7 away
    assert (frame.visits["seven", "rare"], frame.visits["seven", "common"]) == (40, 260)


def test_hidden_cells_bound_the_unseen_mass_from_above(small):
    hidden, shown = cs.inspect(small).without_small_cells(11), cs.inspect(small)
    known = ~np.isnan(hidden.unseen)
    assert (hidden.unseen[known] >= shown.unseen[known]).all()
    # 47 visits to the rare stage are hidden, and the others with them: all visits are known.
    assert np.isnan(shown.without_small_cells(100).unseen).all()


def test_numbers_with_many_digits_tell_no_small_count():
    # Each of these gave a hidden count away: 11 / 97 visits, 58 / 97 actions, 157 / 197 outcomes, 3 / 600 deaths.
    rng = np.random.default_rng(0)

    def rows(states, actions, deaths):
        frame = pd.DataFrame({"episode": np.arange(len(states)), "step": 0, "state": states, "action": actions})
        frame["next_state"] = rng.choice(["x", "y", "z"], len(frame), p=(0.8, 0.19, 0.01))
        frame.loc[len(frame) - 1, "next_state"] = "seen once"
        frame["terminated"] = frame.episode < deaths
        frame["reward"], frame["truncated"] = -1.0 * frame.terminated, ~frame.terminated
        return frame

    states = ["A"] * 3 + ["B"] * 97 + ["C"] * 500
    logs = cs.open_logs(rows(states, rng.choice(["none", "drug"], 600), 3), source="ward")
    hidden = cs.inspect(logs).without_small_cells(11)
    held = json.loads(hidden.to_json())
    assert held["sources"][0]["mean_return"] is None
    assert held["sources"][0]["terminated"] == "fewer than 11"
    masses = [item["mass"] for item in held["unseen_outcome_mass"]]
    assert 0.03 in masses  # 11 of 500 is .022: rounded up
    shares = [share for share in hidden.to_pandas()["action_share"] if not pd.isna(share)]
    assert all(number == round(number, 2) for number in [*masses, *shares, held["sources"][0]["action_share"] or 0])
    frame = hidden.to_pandas().set_index("state")
    assert pd.isna(frame.visits["B"])
    assert pd.isna(frame.action_share["B"])
    assert pd.isna(frame.unseen_mass["B"])


def test_what_hidden_counts_add_up_to_tells_nothing_of_them():
    cells = SmallCells(11)
    assert cells.parts([2, 11, 427]) == ["fewer than 11", 11, "withheld"]  # not the 11: 13 less 11 would be known
    assert cells.parts([8, 9, 423]) == ["fewer than 11", "fewer than 11", "withheld"]
    assert cells.parts([2, 11, 12]) == ["fewer than 11", "withheld", "withheld"]
    assert cells.parts([0, 11, 12]) == [0, 11, 12]


def test_a_contradiction_with_a_withheld_share_tells_no_confounding(found):
    hidden = found.without_small_cells(5_000).contradictions
    assert all(np.isnan(row[name]) for row in hidden.as_plain() for name in ("confounding", "p_value"))
    assert all("some confounding reconciles them" in str(row["text"]) for row in hidden.as_plain())


def test_state_columns_may_be_called_as_ours_are():
    frame = pd.DataFrame({"episode": [0, 1, 2], "step": 0, "visits": [7, 8, 8], "action": "go", "reward": 0.0})
    frame["next_visits"], frame["terminated"] = frame.visits, True
    table = cs.inspect(cs.open_logs(frame, source="ward", state="visits")).to_pandas()
    assert table["visits"].tolist() == [7, 8]
    assert table["_visits"].tolist() == [1, 2]


def test_a_missing_value_of_a_binned_column_is_called_missing():
    frame = pd.DataFrame({"episode": [0, 1, 2], "step": 0, "age": [50.0, None, 70.0], "action": "go", "reward": 0.0})
    frame["next_age"], frame["terminated"] = frame.age, True
    logs = cs.open_logs(frame, source="ward", state="age", bins={"age": cs.Bins(edges=(65,))}, missing="unknown")
    found = cs.inspect(logs)
    assert "age missing" in [state_text(found.counts.space, s) for s in range(3)]
    assert "Coverage" in found.summary()


def test_a_contradiction_withholds_shares_of_small_counts(found):
    item = replace(found.contradictions[0], first_share=0.99, second_share=0.5, visits=(300, 300))
    found = replace(found, contradictions=replace(found.contradictions, items=(item,)))
    assert "in 99% against 50%" in str(item)
    (hidden,) = found.without_small_cells(11).contradictions  # 3 of 300 are left
    assert "in a share that is withheld against 50%" in str(hidden)
    assert "in 99% against 50%" in str(found.without_small_cells(3).contradictions[0])


def test_no_support_is_called_believable_and_limits_stand_beside_estimates():
    """Two sources that miss an outcome of 2.5%: the estimate is 0, and what the visits exclude is said."""
    rng = np.random.default_rng(0)
    n = 100
    frame = pd.DataFrame({"episode": np.arange(n), "step": 0, "state": "a", "action": "go", "reward": 0.0})
    frame["next_state"], frame["terminated"], frame["truncated"] = rng.choice(["a", "b"], n), False, True
    found = cs.inspect([cs.open_logs(frame, source="p"), cs.open_logs(frame, source="q")])
    (text,) = (sentence for sentence in found.findings() if "never seen" in sentence)
    assert "believable" not in text
    assert text.startswith("An estimated 0.00% of what follows a state was never seen (Good-Turing; mean over states)")
    assert "at most 2.3% in a (limits at 95%" in text
    assert "Every outcome with a share above 3.2% would have been seen in half of the states" in text
    assert "Rarer ones may be missing: observed support assumes that none are." in text
    hidden = cs.inspect([cs.open_logs(frame, source="p"), cs.open_logs(frame, source="q")]).without_small_cells(11)
    (text,) = (sentence for sentence in hidden.findings() if "never seen" in sentence)
    assert "at most" not in text
    assert "above 4.0% would have been seen" in text


@pytest.mark.parametrize(("unknown", "first"), [(900, True), (5, False)])
def test_unknown_ends_come_first_where_they_are_many(unknown, first):
    n = 1000
    frame = pd.DataFrame({"episode": np.arange(n), "step": 0, "state": "a", "action": "go", "reward": 0.0})
    frame["next_state"] = "a"
    frame["truncated"], frame["terminated"] = frame.episode >= unknown, False
    frame.loc[n - 1, ["truncated", "terminated"]] = False, True
    found = cs.inspect(cs.open_logs(frame, source="ward")).findings()
    expected = f"ward: {unknown} of 1,000 episodes stop with neither flag set; their last outcome is unknown"
    (place,) = (i for i, sentence in enumerate(found) if sentence.startswith(expected))
    assert (place == 0) == first
    assert "Name the columns" in found[place]
