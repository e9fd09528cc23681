"""Space, Logs and Counts: what they accept, what they refuse, and in which words."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from causal_shaping import Bins, Counts, Logs, Space, count, load_world, read_logs
from causal_shaping.data.space import UNKNOWN
from causal_shaping.data.successors import AllowedSuccessors
from causal_shaping.errors import ArgumentError, DataError, UnknownNameError

SPACE = Space(states=["a", "b", "end"], actions=["left", "right"])

texts = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=5)
parts = st.one_of(st.integers(-(2**40), 2**40), texts)
label_lists = st.one_of(
    st.lists(parts, min_size=1, max_size=6, unique=True),
    st.integers(2, 3).flatmap(lambda n: st.lists(st.tuples(*[parts] * n), min_size=1, max_size=6, unique=True)),
)


@given(label_lists, st.lists(parts, min_size=1, max_size=4, unique=True))
def test_a_space_survives_json(states, actions):
    space = Space(states, actions)
    assert Space.from_plain(json.loads(space.to_json())) == space


@given(st.data(), label_lists)
def test_positions_move_tables_between_orders_by_label(data, states):
    space = Space(states, ["go"])
    other = Space(data.draw(st.permutations(states)), ["go"])
    moved, _ = space.positions(other)
    assert [space.states[i] for i in moved] == list(other.states)


def test_numpy_labels_become_plain_ones():
    space = Space(np.arange(2), np.array(["x", "y"]))
    assert space.states == (0, 1)
    assert [type(label) for label in (*space.states, *space.actions)] == [int, int, str, str]
    assert space.state_position(np.int64(1)) == 1


def test_whole_numbers_of_any_kind_find_a_label_and_real_ones_that_are_equal_do_not():
    space = Space([(1, 2), (3, 4)], ["x"])
    for kind in (int, np.int8, np.int32, np.int64, np.uint16):
        assert space.find((kind(3), kind(4))) == 1
        assert space.find((kind(3), kind(5))) == UNKNOWN
    with pytest.raises(DataError, match="cannot be a label"):
        space.find((3.0, 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], ["a"]), "no states"),
        (([1, 2, 1], ["a"]), "states hold 1 twice"),
        (([1], ["a", "a"]), "actions hold 'a' twice"),
        (([0.5], ["a"]), "0.5 cannot be a label.*bin real numbers"),
        (([(1, 2), (1, 2, 3)], ["a"]), r"have \[2, 3\] parts"),
        (([(1, (2, 3))], ["a"]), "cannot be a label"),
        (([1], [("a", "b")]), "is a tuple"),
        (([(1, 2)], ["a"], ("x",)), "2 part.* but columns names 1"),
        (([(1, 2)], ["a"], ("x", "x")), "'x'.*used twice"),
        (([1], ["a"], ("reward",)), "'reward'.*taken by"),
        (([1], ["a"], ("Reward",)), "'Reward'.*taken by"),
        (([(1, 2)], ["a"], ("x", "X")), "used twice"),
        (("abc", ["a"]), "states is the string 'abc'"),
        (([1], "go"), "actions is the string 'go'"),
        (([(1, 2)], ["a"], "xy"), "columns is the string 'xy'"),
        (([2**63], ["a"]), "cannot be a label"),
        (([(1, 2)], ["a"], ("x", "next_x")), "'next_x'.*taken by"),
    ],
)
def test_a_bad_space_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Space(*arguments)


def test_an_unknown_label_is_answered_with_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"no state 'c'. The states are a, b, end"):
        SPACE.state_position("c")
    with pytest.raises(UnknownNameError, match=r"no action 'up'"):
        SPACE.action_position("up")


def test_text_that_is_no_space_is_refused():
    for text in ("{}", '{"states": 1, "actions": 2, "columns": 3}'):
        with pytest.raises(DataError, match="not the JSON of a space"):
            Space.from_plain(json.loads(text))


ROWS = {
    "episode": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "state": [0, 1, 0, 0],
    "action": [1, 1, 0, 1],
    "reward": [0.1, 0.2, 0.3, 0.4],
    "next_state": [1, 2, 0, 1],
    "terminated": [False, True, False, False],
    "truncated": [False, False, False, True],
}


def logs(**changes):
    return Logs(SPACE, "a", **{**ROWS, **changes})


def test_logs_know_their_length_and_episodes():
    assert (len(logs()), logs().episodes) == (4, 2)
    assert repr(logs()).startswith("Logs(source='a', 4 steps in 2 episodes")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": [0.1, np.nan, 0.3, 0.4]}, r"Source 'a', row 1 \(episode 0, step 1\): the reward must be finite"),
        ({"reward": [0.1, 0.2, np.inf, 0.4]}, "row 2.*must be finite"),
        ({"state": [0, 3, 0, 0]}, r"row 1.*state must be in 0 .. 2; found 3"),
        ({"action": [0, 0, 2, 0]}, r"row 2.*action must be in 0 .. 1; found 2"),
        ({"next_state": [1, -2, 0, 1]}, r"row 1.*next_state must be in -1 .. 2"),
        ({"step": [0, 2, 0, 1]}, "row 1.*steps are missing"),
        ({"step": [0, 0, 0, 1]}, "row 1.*stands twice"),
        ({"step": [-1, 0, 0, 1]}, "row 0.*before the first"),
        ({"step": [0, 1, 1, 2]}, "row 2.*does not begin with its first step"),
        ({"episode": [1, 1, 0, 0]}, "row 2.*must rise"),
        ({"terminated": [True, True, False, False]}, "row 1.*continues after"),
        ({"truncated": [False, False, True, False]}, "row 3.*continues after"),
        ({"next_state": [0, 2, 0, 1]}, "row 1.*not the next state of the row before"),
        ({"next_state": [UNKNOWN, 2, 0, 1]}, "row 1.*not the next state of the row before"),
        ({"reward": [0.1]}, "columns must be of one length"),
        ({name: [] for name in ROWS}, "no rows"),
    ],
)
def test_bad_rows_are_refused_with_their_place(changes, message):
    with pytest.raises(DataError, match=message):
        logs(**changes)


def test_logs_without_a_source_are_refused():
    for nobody in ("", None, 7):
        with pytest.raises(DataError, match="name of their source"):
            Logs(SPACE, nobody, **ROWS)


def test_the_last_outcome_may_be_unknown():
    cut = logs(next_state=[1, UNKNOWN, 0, UNKNOWN])
    assert cut.next_state.tolist() == [1, UNKNOWN, 0, UNKNOWN]


def test_logs_cannot_be_changed_from_inside_or_outside():
    reward = np.array(ROWS["reward"])
    held = logs(reward=reward)
    with pytest.raises(ValueError, match="read-only"):
        held.reward[0] = 1.0
    reward[0] = np.nan
    assert held.reward[0] == 0.1
    view = np.array(ROWS["reward"])
    frozen_view = view[:]
    frozen_view.flags.writeable = False
    held = logs(reward=frozen_view)
    view[0] = np.nan  # the memory behind a read-only view
    assert held.reward[0] == 0.1


def test_a_read_only_array_is_taken_without_a_copy():
    reward = np.array(ROWS["reward"])
    reward.flags.writeable = False
    assert logs(reward=reward).reward is reward


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": [0, 1.7, 0, 0]}, "Source 'a', column state must hold int32 numbers, but holds 1.7"),
        ({"state": [0, 2**32 + 1, 0, 0]}, "column state must hold int32 numbers, but holds 4294967297"),
        ({"episode": [0, 0.4, 1, 1]}, "column episode.*0.4"),
        ({"terminated": [0, np.nan, 0, 0]}, "column terminated must hold bool numbers, but holds nan"),
        ({"terminated": [0, 2, 0, 0]}, "column terminated must hold bool numbers, but holds 2"),
        ({"reward": ["x", 0, 0, 0]}, "column reward must hold float64 numbers, but holds 'x'"),
        ({"next_state": [1, None, 0, 1]}, "column next_state must hold int32"),
    ],
)
def test_numbers_of_the_wrong_kind_are_refused_not_rounded(changes, message):
    with pytest.raises(DataError, match=message):
        logs(**changes)


def test_the_checksum_tells_logs_apart():
    assert logs().checksum == logs().checksum
    for name, other in (("reward", [0.1, 0.2, 0.3, 0.5]), ("action", [1, 1, 0, 0]), ("truncated", [False] * 4)):
        assert logs(**{name: other}).checksum != logs().checksum


ENTRIES = {
    "source": [0, 0, 1],
    "step": None,
    "state": [0, 0, 1],
    "action": [0, 1, 1],
    "next_state": [1, 2, UNKNOWN],
    "terminated": [False, True, False],
    "n": [3, 1, 2],
    "reward_sum": [0.3, 1.0, 0.5],
    "reward_min": [0.1, 1.0, 0.0],
    "reward_max": [0.1, 1.0, 0.5],
}
BINS = Bins(edges=(0.6,))


def counts(bins=BINS, population=False, **changes):
    space = replace(SPACE, reward_bins=bins)
    return Counts(space, ("a", "b"), **{**ENTRIES, **changes}, population=population)


@given(st.permutations(range(3)))
def test_the_order_of_entries_does_not_matter(order):
    shuffled = {name: None if column is None else [column[i] for i in order] for name, column in ENTRIES.items()}
    for name in Counts.COLUMNS:
        np.testing.assert_array_equal(getattr(counts(**shuffled), name), getattr(counts(), name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": [3, 0, 2]}, "entry 1.*n must be positive"),
        ({"n": [3, np.nan, 2]}, "n must be positive and finite"),
        ({"n": [3, 1, 2.5]}, "entry 2.*whole number; found 2.5"),
        ({"state": [0, 0, 3]}, "state must be in 0 .. 2"),
        ({"next_state": [1, 2, -2]}, "next_state must be in -1 .. 2"),
        ({"source": [0, 0, 2]}, "source must be in 0 .. 1"),
        ({"source": [0, 0]}, "must be of one length"),
        ({"step": [0, -1, 0]}, "step must be in 0"),
        ({"state": [0, 0.9, 1]}, "column state must hold int32 numbers, but holds 0.9"),
        ({"next_state": [1, 2**32 + 1, 1]}, "column next_state must hold int32"),
        ({"reward_sum": [0.3, np.inf, 0.5]}, "reward_sum must be finite"),
        ({"reward_sum": [0.9, 1.0, 0.5]}, "mean reward lies outside"),
        ({"bins": None}, "entry 2.*reward_min is not reward_max"),
        ({"bins": Bins(edges=(0.4,))}, "entry 2.*reward_min and reward_max lie in different bins"),
        ({"action": [0, 0, 1], "next_state": [1, 1, 1], "terminated": [False] * 3, "reward_min": [0.1, 0.1, 0.0],
          "reward_max": [0.1, 0.1, 0.5], "reward_sum": [0.3, 0.1, 0.5]}, "entry 1.*same outcome stands in two"),
    ],
)  # fmt: skip
def test_bad_counts_are_refused_with_their_place(changes, message):
    with pytest.raises(DataError, match=message):
        counts(**changes)


def test_entries_that_differ_in_the_reward_alone_stay_apart_unless_one_bin_holds_both():
    two = {"source": [0, 0], "state": [0, 0], "action": [0, 0], "next_state": [1, 1], "terminated": [False, False]}
    two |= {"n": [1, 1], "reward_sum": [0.1, 0.2], "reward_min": [0.1, 0.2], "reward_max": [0.1, 0.2]}
    exact = counts(bins=None, **two)
    assert len(exact) == len(counts(bins=Bins(edges=(0.15,)), **two)) == 2
    with pytest.raises(DataError, match="same outcome stands in two entries"):
        counts(**two)
    (binned,) = exact.with_reward_bins(BINS).to_pandas().itertuples()
    assert (binned.n, binned.reward_min, binned.reward_max) == (2, 0.1, 0.2)
    assert binned.reward_sum == pytest.approx(0.3)


def test_only_population_counts_may_hold_fractions():
    assert counts(population=True, n=[3, 1, 2.5]).n.sum() == 6.5


def test_sources_need_distinct_names():
    with pytest.raises(DataError, match="distinct, non-empty source names"):
        Counts(SPACE, ("a", "a"), **ENTRIES)
    with pytest.raises(DataError, match="sources is the string 'ab'"):
        Counts(SPACE, "ab", **ENTRIES)


def test_counts_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        counts().n[0] = 5.0


def test_terminal_states_survive_files_orders_and_merging(tmp_path):
    world = load_world("walking-robot")
    assert {world.states[s] for s in np.flatnonzero(world.model.terminal)} == world.space.terminal
    logs = world.collect("competent", 100)
    logs.save(tmp_path / "logs.parquet")
    assert read_logs(tmp_path / "logs.parquet").space == world.space
    counts = count(tmp_path / "logs.parquet")
    assert counts.space.terminal == world.space.terminal
    counts.save(tmp_path / "counts.parquet")
    assert Counts.load(tmp_path / "counts.parquet").space == counts.space
    assert count(logs, states=world.states[::-1]).space.terminal == world.space.terminal
    plain = Space(world.states, world.actions, world.space.columns)
    assert plain.merge(world.space).terminal == world.space.merge(plain).terminal == world.space.terminal


def test_nothing_leaves_a_terminal_state_or_goes_on_in_one():
    space = Space(["a", "end"], ["go"], terminal=["end"])
    with pytest.raises(DataError, match="terminal"):
        Logs(space, "s", [0], [0], [1], [0], [0.0], [0], [False], [True])
    with pytest.raises(DataError, match="terminal, but the row is not terminated"):
        Logs(space, "s", [0], [0], [0], [0], [0.0], [1], [False], [True])
    with pytest.raises(UnknownNameError, match="There is no state 'b'"):
        Space(["a", "end"], ["go"], terminal=["b"])


def test_a_space_finds_labels_and_says_which_it_does_not_hold():
    assert (SPACE.find("b"), SPACE.find("zzz")) == (1, UNKNOWN)
    assert (SPACE.find_action(SPACE.actions[1]), SPACE.find_action("zzz")) == (1, UNKNOWN)
    other = Space(["end", "zzz", "a"], SPACE.actions)
    assert SPACE.find_all(other).tolist() == [SPACE.find("end"), UNKNOWN, 0]


def test_a_missing_value_of_an_observation_has_a_label_where_the_space_has_one():
    space = Space([(0, "x"), (-1, "?")], ["go"], ["age", "kind"], bins={"age": Bins(edges=(1.0,))}, missing={"age": -1})
    assert space.label((np.nan, "x")) == (-1, "x")
    assert space.label((None, "x")) == (-1, "x")
    assert Space.from_plain(json.loads(space.to_json())) == space
    plain = Space(space.states, space.actions, space.columns, bins=space.bins)
    assert plain.merge(space).missing == space.merge(plain).missing == {"age": -1}
    with pytest.raises(DataError, match="NaN"):
        plain.label((np.nan, "x"))
    other = Space(space.states, space.actions, space.columns, bins=space.bins, missing={"age": -2})
    with pytest.raises(DataError, match="missing values of age have different labels"):
        space.merge(other)
    with pytest.raises(DataError, match="missing names"):
        Space(["a"], ["go"], missing={"b": -1})


def test_logs_and_counts_become_tables_with_labels():
    frame = logs().to_pandas()
    assert frame.columns.tolist() == [
        "source", "episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated",
    ]  # fmt: skip
    assert frame["state"].tolist() == [SPACE.states[s] for s in ROWS["state"]]
    assert frame["reward"].tolist() == ROWS["reward"]
    open_end = logs(next_state=[1, UNKNOWN, 0, UNKNOWN])
    assert open_end.to_pandas()["next_state"].tolist() == ["b", None, "a", None]
    counted = count(open_end)
    frame = counted.to_pandas()
    assert len(frame) == len(counted)
    assert frame["n"].sum() == 4
    assert set(frame["next_state"]) == {"b", None, "a"}
    assert (
        count(logs(), step_indexed=True).to_pandas()["step"].tolist() == count(logs(), step_indexed=True).step.tolist()
    )


def test_logs_and_counts_tell_what_they_hold():
    assert "1 terminated, 1 truncated, 0 with neither flag set" in str(logs())
    assert "\n" not in repr(count(logs()))
    summary = str(count(logs()))
    assert summary.splitlines()[0] == repr(count(logs()))
    assert "a: 4 steps, 2 of 3 states" in summary
    assert "25.0% of the steps terminated" in summary


def test_a_state_column_that_is_called_like_a_count_survives(tmp_path):
    space = Space(["a", "b"], ["go"], ["n"])
    held = count(Logs(space, "s", [0], [0], [0], [0], [0.5], [1], [True], [False]))
    held.save(tmp_path / "counts.parquet")
    again = Counts.load(tmp_path / "counts.parquet")
    assert (again.checksum, again.n.tolist()) == (held.checksum, [1.0])
    assert held.to_pandas()[["n", "_n"]].values.tolist() == [["a", 1.0]]


def test_a_space_is_complete_only_if_a_declared_list_holds_all_states():
    declared, seen = Space(["a", "b"], ["go"]), Space(["a"], ["go"], complete=False)
    assert declared.complete
    assert declared.merge(seen).complete
    assert seen.merge(declared).complete
    stranger = Space(["c"], ["go"], complete=False)
    assert not declared.merge(stranger).complete
    assert not declared.merge(Space(["c"], ["go"])).complete  # two lists that contradict each other
    assert not Space.from_plain(json.loads(seen.to_json())).complete
    assert Space.from_plain(json.loads(declared.to_json())).complete
    everything = Space(["c", "b", "a"], ["go"])
    for merged in (declared.merge(stranger).merge(everything), declared.merge(stranger.merge(everything))):
        assert merged.complete


def test_admissible_actions_may_be_given_in_several_ways():
    space = Space([0, 1, 2], ["stay", "go"], terminal=[2])
    wanted = {0: frozenset({"stay"})}
    mask = np.array([[1, 0], [1, 1], [0, 0]])

    class Environment:
        def action_mask(self, state):
            return mask[state].astype(np.int8)

    class Wrapped:
        unwrapped = Environment()

    class Masked:
        def action_masks(self):
            return mask

    class Spaced:
        space = Space([0, 1, 2], ["stay", "go"], terminal=[2], admissible=wanted)

    ways = ({0: ["stay"]}, {0: ["stay"], 1: ["go", "stay"]}, mask, mask.astype(bool), Wrapped(), Masked(), Spaced())
    for said in ways:
        assert space.restricted(said).admissible == wanted
    assert space.restricted(lambda s, x: s != 0 or x == "stay").admissible == wanted
    held = space.restricted(mask)
    assert held.is_admissible.tolist() == [[True, False], [True, True], [True, True]]
    assert Space.from_plain(json.loads(held.to_json())) == held
    assert held.merge(space).admissible == space.merge(held).admissible == wanted


def test_impossible_admissible_actions_are_refused():
    space = Space([0, 1], ["stay", "go"])
    with pytest.raises(DataError, match="No action is admissible in 1"):
        space.restricted({1: []})
    with pytest.raises(UnknownNameError, match="There is no action 'fly'"):
        space.restricted({1: ["fly"]})
    with pytest.raises(DataError, match=r"are 'go'\. Give a list"):
        space.restricted({1: "go"})
    with pytest.raises(ArgumentError, match=r"mask of shape \(2, 2\).*of shape \(3,\)"):
        space.restricted(np.ones(3, dtype=bool))
    with pytest.raises(DataError, match="different actions are admissible in 1"):
        space.restricted({1: ["go"]}).merge(space.restricted({1: ["stay"]}))
    with pytest.raises(DataError, match="Source 'a' took 'right' in 'a', where it is not admissible"):
        Counts(replace(SPACE, reward_bins=BINS).restricted({"a": ["left"]}), ("a", "b"), **ENTRIES)


def test_exact_rewards_are_added_into_bins_and_other_bins_are_refused():
    one = {"source": [0], "state": [0], "action": [0], "next_state": [1], "terminated": [False], "step": None, "n": [2]}

    def paid(reward, bins=None):
        held = {name: [reward] for name in ("reward_min", "reward_max")}
        return Counts(replace(SPACE, reward_bins=bins), ("a",), **one, **held, reward_sum=[2 * reward])

    merged = paid(0.1) + paid(0.5, BINS) + paid(0.2)
    assert (len(merged), merged.n.tolist(), merged.space.reward_bins) == (1, [6], BINS)
    assert (merged.reward_min[0], merged.reward_max[0], merged.reward_sum[0]) == (0.1, 0.5, pytest.approx(1.6))
    with pytest.raises(DataError, match=r"different bins.*first.space.reward_bins"):
        paid(0.1, BINS) + paid(0.1, Bins(edges=(0.3,)))


def test_counts_in_bins_do_not_go_into_a_space_with_others():
    held = counts()
    other = replace(held.space, reward_bins=Bins(edges=(7.0,)))
    with pytest.raises(DataError, match="in other bins than those of the space"):
        held.to_space(other)
    with pytest.raises(DataError, match="The bins of rewards need edges"):
        replace(held.space, reward_bins=Bins(quantiles=2))
    for bins in ({"y": Bins(edges=(1,))}, {"x": Bins(quantiles=2)}):
        with pytest.raises(DataError, match="need edges and a state column of that name"):
            Space([1], ["a"], ("x",), bins=bins)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Space([(1, 2)], ["a"], ("x", "z")), r"made of different columns \(x, y against x, z\)"),
        (Space([(1, 2)], ["a"], ("x", "y"), bins={"x": Bins(edges=(1.0,))}), "x is cut into different bins"),
    ],
)
def test_spaces_of_other_columns_or_bins_are_not_merged(other, message):
    with pytest.raises(DataError, match=message):
        Space([(1, 2)], ["a"], ("x", "y")).merge(other)


def test_an_observation_must_have_a_value_for_each_column():
    with pytest.raises(DataError, match=r"has 1 part\(s\), but a state of this space has 2: x, y"):
        Space([(1, 2)], ["a"], ("x", "y")).label(3)


@pytest.mark.parametrize(
    "arrays",
    [([[1]], [0, 1], [0], [1.0]), ([[0]], [0, 2], [0], [1.0]), ([[0]], [1, 0], [], []), ([0], [0, 1], [0], [1.0])],
)
def test_successors_that_are_no_lists_are_refused(arrays):
    with pytest.raises(DataError, match="not a list for each state and action"):
        AllowedSuccessors(*arrays)
