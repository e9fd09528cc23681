"""The public functions: what they say, what they keep, and what they refuse."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import forge
from handmade import counts_of_entries

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError, FileError

EASY = cs.load_world("lavacross-easy")
LOGS = [EASY.collect(name, 20_000) for name in EASY.demonstrators]
COUNTS = cs.count(LOGS)
BY_STEP = cs.count(LOGS, step_indexed=True)
BOUNDS = [(cs.Ceilings, cs.value_ceilings, -0.1), (cs.Floors, cs.value_floors, -1.1)]


def test_a_ceiling_says_what_it_is_in_three_lines():
    found = cs.value_ceilings(COUNTS, 20, -0.1, confidence=0.95, confounding={"random": 1.0})
    assert repr(found) == "Ceilings(20 steps by joint from good, bad, random: 41 states bounded, from -0.5869 to -0.1)"
    assert found.summary().splitlines()[:4] == [
        "Ceilings of 20 steps by joint from good, bad, random: from -0.5869 to -0.1",
        "support observed, confounding good inf, bad inf, random 1, confidence 0.95, discount 1, steps pooled",
        "41 states bounded better than without logs, 2 no better though logged, 0 in which no source acted, 6 "
        "terminal (at the first step)",
        "31 of 43 states have too few visits to rule out unseen outcomes (rarest = 0.01), or unknown "
        "outcomes: anything may follow there.",
    ]


def test_printed_it_says_what_it_assumes():
    options = {"confidence": 0.95, "confounding": {"random": 1.0, "bad": 3.0}}
    text = str(cs.value_ceilings(COUNTS, 20, -0.1, **options))
    for part in (
        "No step pays more than -0.1.",
        "No other actions exist than the 5 declared or seen in the logs.",
        "Episodes were not selected by their outcome (incident reports only would be).",
        "All sources and the online world are the same world.",
        "Hidden causes are drawn afresh each step.",
        "The state is Markov",
        "The world does not change from step to step",
        "Nothing about confounding: good may have seen anything.",
        "bad: given the outcome that an action would have, the odds of taking it differ",
        "by a factor of at most 3.",
        "random is unconfounded",
        "follows at least a share of 0.01 of the sources' pooled visits to it",
        "hold at once with a probability of 0.95 or more",
        "of the estimated differences in V* between states to learn",
    ):
        assert part in text
    other = str(cs.value_floors(BY_STEP, 20, -1.1, support="any"))
    assert "Episodes were not selected by their outcome" in other
    assert "No step pays less than -1.1." in other
    assert "does not change from step to step" not in other
    assert "was seen to follow it" not in other
    assert "The number of episodes was fixed" in str(cs.value_floors(BY_STEP, 20, -1.1, confidence=0.9))
    assert "Not guaranteed: a plug-in estimate" in other


def test_states_that_seem_terminal_are_an_assumption_unless_they_are_declared():
    plain = cs.Space(EASY.states, EASY.actions, EASY.space.columns)
    moved = [cs.Logs(plain, one.source, **{name: getattr(one, name) for name in one.COLUMNS}) for one in LOGS]
    found = cs.value_ceilings(cs.count(moved), 20, -0.1)
    assert found.inferred_terminal == 6
    assert any("always ends it (6 states)" in sentence for sentence in found.assumptions)
    ends = [label for label, ends in zip(EASY.states, EASY.model.terminal, strict=True) if ends]
    for declared in (COUNTS, cs.count(moved, terminal=ends)):
        assert not any("always ends it" in sentence for sentence in cs.value_ceilings(declared, 20, -0.1).assumptions)
    assert np.array_equal(found.values, cs.value_ceilings(COUNTS, 20, -0.1).values)


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(("kind", "compute", "bound"), BOUNDS)
def test_a_file_gives_back_what_was_saved(tmp_path, kind, compute, bound, stationary):
    options = {"discount": 0.9, "stationary": stationary, "confounding": {"random": 2.0}}
    made = compute(COUNTS, 20, bound, **options)
    made.save(tmp_path / "phi.parquet")
    read = kind.load(tmp_path / "phi.parquet")
    for name in made.ARRAYS:
        assert np.array_equal(getattr(read, name), getattr(made, name))
    assert read.metadata == made.metadata
    assert str(read) == str(made)
    assert read.checksum == made.checksum
    assert read.counts_checksum == COUNTS.checksum


def wider(space):
    return cs.Space(space.states, [*space.actions, "jump"], space.columns, bins=space.bins, terminal=space.terminal)


def test_other_tools_can_open_the_file_and_its_order_does_not_matter(tmp_path):
    made = cs.value_ceilings(COUNTS, 20, -0.1)
    made.save(tmp_path / "phi.parquet")
    table = pq.read_table(tmp_path / "phi.parquet")
    assert table.column_names == ["step", "x", "y", "value", "vacuous", "unrestricted", "terminal"] + [
        f"q_value of {action}" for action in EASY.actions
    ]
    row = table.to_pandas().query("step == 3 and x == 2 and y == 5").iloc[0]
    assert row["value"] == made.values[3, EASY.state_at(2, 5)]
    about = json.loads(table.schema.metadata[b"causal_shaping"])
    assert about["assumptions"] == list(made.assumptions)
    assert about["confounding"] == {"good": "inf", "bad": "inf", "random": "inf"}
    mixed = table.take(np.random.default_rng(0).permutation(table.num_rows)).select(table.column_names[::-1])
    forge(mixed, tmp_path / "mixed.parquet")
    assert np.array_equal(cs.Ceilings.load(tmp_path / "mixed.parquet").values, made.values)


def test_a_state_column_may_be_called_value(tmp_path):
    space = cs.Space(["a", "end"], ["go"], ["value"])
    counts = cs.count(cs.Logs(space, "s", [0], [0], [0], [0], [0.0], [1], [True], [False]))
    cs.value_ceilings(counts, 2, 1.0, support="any").save(tmp_path / "phi.parquet")
    assert pq.read_schema(tmp_path / "phi.parquet").names[1:3] == ["value", "_value"]
    assert cs.Ceilings.load(tmp_path / "phi.parquet").values[0].tolist() == [0.0, 0.0]


def test_a_file_that_was_changed_or_is_another_is_refused(tmp_path):
    path = tmp_path / "phi.parquet"
    cs.value_ceilings(COUNTS, 20, -0.1).save(path)
    table = pq.read_table(path)
    lower = table.set_column(3, "value", pa.array(table["value"].to_numpy() - 1))
    pq.write_table(lower, path)
    with pytest.raises(FileError, match="changed after it was written"):
        cs.Ceilings.load(path)
    forge(table.slice(5), path)
    with pytest.raises(FileError, match="does not hold each step and state once"):
        cs.Ceilings.load(path)
    forge(table.drop_columns("q_value of up"), path)
    with pytest.raises(FileError, match="lacks 'q_value of up'"):
        cs.Ceilings.load(path)
    pq.write_table(table, path)
    with pytest.raises(FileError, match="holds ceilings, not floors"):
        cs.Floors.load(path)
    pq.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(FileError, match="holds no ceilings of this package"):
        cs.Ceilings.load(path)
    with pytest.raises(FileError, match="does not exist"):
        cs.Ceilings.load(tmp_path / "none.parquet")


def test_what_is_provably_suboptimal_is_suboptimal_and_leaves_an_action():
    for name in ("lavacross-easy", "walking-robot"):
        world = cs.load_world(name)
        counts = [world.model.observe(beta, source) for source, beta in world.demonstrators.items()]
        low, high = world.model.reward_range
        ceilings = cs.value_ceilings(counts, world.horizon, high)
        floors = cs.value_floors(counts, world.horizon, low)
        mask = cs.provably_suboptimal(ceilings, floors)
        assert mask.any()
        assert not mask.all(axis=-1).any()
        assert not mask[:, world.model.terminal].any()
        assert (world.model.optimum(world.horizon).gaps()[mask] > 0).all()
        turned = cs.Space(world.states[::-1], world.actions[::-1], world.space.columns, terminal=world.space.terminal)
        moved = cs.value_floors([part.to_space(turned) for part in counts], world.horizon, low)
        assert np.array_equal(cs.provably_suboptimal(ceilings, moved), mask)


def test_bounds_of_different_problems_are_not_compared():
    ceilings = cs.value_ceilings(COUNTS, 20, -0.1, confidence=0.95)
    for options, message in (({"horizon": 19}, "horizon 20, the floors 19"), ({"discount": 0.9}, "discount")):
        floors = cs.value_floors(COUNTS, **{"horizon": 20, "reward_min": -1.1, "confidence": 0.95, **options})
        with pytest.raises(CausalShapingError, match=message):
            cs.provably_suboptimal(ceilings, floors)
    other = COUNTS.to_space(wider(COUNTS.space))
    with pytest.raises(CausalShapingError, match="same states and actions"):
        cs.provably_suboptimal(ceilings, cs.value_floors(other, 20, -1.1, confidence=0.95))


def test_steps_beyond_the_logs_are_vacuous_and_progress_is_told():
    told = []
    found = cs.value_ceilings(BY_STEP, 22, 0.0, progress=lambda *state: told.append(state))
    assert told == [(done, 22, "Bounding values") for done in range(1, 23)]
    assert found.vacuous[20:, ~found.terminal].all()
    assert (found.values[20:] == 0).all()
    assert (found.values[:20].min(axis=1) < 0).all()


def test_actions_that_look_alike_and_numbers_of_numpy_survive_a_file(tmp_path):
    space = cs.Space(["a", "end"], [1, "1"], terminal=["end"])
    made = cs.value_ceilings(counts_of_entries(space, [1]), 2, 1.0, support="any", confidence=np.float32(0.5))
    made.save(tmp_path / "phi.parquet")
    assert cs.Ceilings.load(tmp_path / "phi.parquet").checksum == made.checksum


def test_states_with_the_vacuous_value_are_not_called_bounded():
    """An action that nobody tried may pay the most at every step, so the logs say nothing of their states."""
    space = cs.Space(["a", "b"], ["go", "no"])
    logs = cs.Logs(space, "d0", range(2), [0, 0], [0, 1], [0, 0], [0.0, 0.0], [0, 0], [False] * 2, [True] * 2)
    found = cs.value_ceilings(cs.count(logs), 5, 1.0, support="any")
    assert (found.values == found.vacuous_values[:, None]).all()
    assert "0 states bounded" in repr(found)
    assert "0 states bounded" in found.summary()


NONE = cs.Counts.combined(COUNTS.space, ["s"], {name: [] for name in COUNTS.COLUMNS} | {"step": None})


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        (
            COUNTS,
            {"reward_max": -0.2},
            "reward_max is -0.2, but source 'good' holds a reward of -0.1",
        ),
        (COUNTS, {"horizon": 0}, "horizon is 0; it must be at least 1"),
        (COUNTS, {"horizon": 2.5}, "horizon is 2.5; it must be a whole number"),
        (BY_STEP, {"horizon": 19}, "horizon is 19, but the logs hold episodes of 20 steps. Set horizon to 20"),
        (BY_STEP, {"stationary": True}, "needs steps pooled"),
        (COUNTS, {"confounding": 0.9}, "confounding of 'good' is 0.9; it must be 1"),
        (COUNTS, {"confounding": math.nan}, "it must be 1"),
        (COUNTS, {"confounding": {"nobody": 1.0}}, "confounding names 'nobody', but the sources are good, bad, random"),
        (COUNTS, {"confidence": 1.0}, "confidence is 1.0; it must be between 0 and 1"),
        (COUNTS, {"confidence": math.nan}, "confidence is nan"),
        (COUNTS, {"discount": 1.1}, "discount is 1.1"),
        (COUNTS, {"rarest": 0.0, "confidence": 0.95}, "rarest is 0.0; it must be between 0 and 1, such as 0.01"),
        (COUNTS, {"rarest": 0.01}, "it needs a confidence, and the support 'observed' or"),
        (COUNTS, {"value_max": math.inf}, "value_max is inf; it must be a finite number"),
        (COUNTS, {"value_max": 0.0, "method": "paper"}, "no value_max"),
        (
            COUNTS,
            {"rarest": 0.1, "confidence": 0.95, "support": "any"},
            "it needs a confidence, and the support 'observed' or",
        ),
        (COUNTS, {"confounding": "high"}, "confounding is 'high'; give a number"),
        (COUNTS, {"method": "magic"}, "method is 'magic'; use 'joint' or 'paper'"),
        ([], {}, "There are no counts"),
        (NONE, {}, "The counts are empty"),
        (EASY.model.observe(EASY.demonstrators["good"], "good"), {"confidence": 0.9}, "Population counts are exact"),
        ([COUNTS, BY_STEP], {}, "cannot be added"),
    ],
)
def test_what_makes_no_sense_is_refused(counts, options, message):
    with pytest.raises(CausalShapingError, match=message):
        cs.value_ceilings(counts, **{"horizon": 20, "reward_max": -0.1, **options})


def test_a_floor_needs_a_true_lower_bound():
    with pytest.raises(CausalShapingError, match=r"reward_min is -1.0, but source 'good' holds a reward of -1.1"):
        cs.value_floors(COUNTS, 20, -1.0)


@pytest.mark.parametrize("stationary", [False, True])
def test_a_table_has_a_row_per_step_and_state(stationary):
    found = cs.value_ceilings(COUNTS, 20, -0.1, stationary=stationary)
    table = found.to_pandas()
    names = ["x", "y", "value", "vacuous", "unrestricted", "terminal"]
    names += [f"q_value of {action}" for action in EASY.actions]
    assert list(table.columns) == ([] if stationary else ["step"]) + names
    assert table["value"].tolist() == found.values.ravel().tolist()
    s = EASY.state_at(2, 5)
    row = table[(table["x"] == 2) & (table["y"] == 5)].iloc[-1]
    assert row[names[6:]].tolist() == found.q_values[..., s, :].reshape(-1, 5)[-1].tolist()
    assert "Ceilings(" in found._repr_html_()
    assert str(found) == found.summary()


def test_json_holds_the_settings_the_words_and_the_first_step():
    alone = EASY.model.observe(EASY.demonstrators["good"], "good", horizon=1)
    with pytest.warns(cs.AssumptionWarning):
        found = cs.value_ceilings(alone.to_space(wider(alone.space)), 20, 0.0, method="paper")
    held = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert held["confounding"] == {"good": "inf"}
    assert held["assumptions"] == list(found.assumptions)
    first = held["states"][0]
    assert first["state"] == list(found.space.states[0])
    assert first["value"] == found.values[0, 0]
    assert [None if np.isnan(q) else q for q in found.q_values[0, 0]] == first["q_values"]
    assert any(None in state["q_values"] for state in held["states"])


@pytest.mark.parametrize(("kind", "compute", "bound"), BOUNDS)
def test_files_of_the_first_format_are_refused_by_name(tmp_path, kind, compute, bound):
    compute(COUNTS, 20, bound).save(tmp_path / "old.parquet")
    table = pq.read_table(tmp_path / "old.parquet")
    metadata = json.loads(table.schema.metadata[b"causal_shaping"]) | {"version": 2}
    metadata["rewards_told_apart"] = metadata.pop("discrete_rewards")
    pq.write_table(table.replace_schema_metadata({"causal_shaping": json.dumps(metadata)}), tmp_path / "old.parquet")
    with pytest.raises(cs.FileError, match=r"format 2 of (ceilings|floors).*Make it again with"):
        kind.load(tmp_path / "old.parquet")
