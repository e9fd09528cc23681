"""Reading anybody's logs: their names, what may be missing, and every bad input that we know of."""

import duckdb
import ibis
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from forging import forge
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.data.columns import logs_table
from causal_shaping.errors import ArgumentError, CausalShapingError, DataError, DroppedEpisodesWarning, FileError

# Two episodes: a, b, end; and a, a, cut by a time limit.
ROWS = {
    "episode": [0, 0, 1, 1],
    "step": [0, 1, 0, 1],
    "state": ["a", "b", "a", "a"],
    "action": ["go", "go", "stay", "stay"],
    "reward": [0.1, 0.2, 0.3, 0.3],
    "next_state": ["b", "end", "a", "a"],
    "terminated": [False, True, False, False],
    "truncated": [False, False, False, True],
}


def write(path, rows=ROWS, without=(), **changes):
    table = pa.table({name: column for name, column in {**rows, **changes}.items() if name not in without})
    pq.write_table(table, path)
    return path


@pytest.fixture
def file(tmp_path):
    return tmp_path / "logs.parquet"


def outcomes(logs):
    """Next state and terminated, row by row."""
    labels = [None if s < 0 else logs.space.states[s] for s in logs.next_state]
    return list(zip(labels, logs.terminated.tolist(), strict=True))


def test_a_plain_file(file):
    logs = cs.read_logs(write(file))
    assert logs.source == "logs"
    assert (logs.space.states, logs.space.actions) == (("a", "b", "end"), ("go", "stay"))
    assert outcomes(logs) == [("b", False), ("end", True), ("a", False), ("a", False)]


def test_a_users_own_names(file):
    names = {"episode": "patient; drop table", "step": 'day "1"', "state": "stage", "action": "drug", "reward": "score"}
    names |= {"next_state": "after", "terminated": "dead", "truncated": "lost"}
    write(file, rows={names[name]: column for name, column in ROWS.items()})
    logs = cs.read_logs(file, source="ward", **names)
    assert logs.source == "ward"
    assert outcomes(logs) == outcomes(cs.read_logs(write(file)))


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        (["next_state"], [("b", False), (None, True), ("a", False), (None, False)]),  # that of the following row
        (["terminated", "truncated"], [("b", False), (None, False), ("a", False), (None, False)]),
        (["terminated", "truncated", "next_state"], [("b", False), (None, False), ("a", False), (None, False)]),
        (["terminated"], [("b", False), (None, False), ("a", False), ("a", False)]),
        (["truncated"], [("b", False), ("end", True), ("a", False), ("a", False)]),
    ],
)
def test_what_columns_that_are_missing_leave_known(file, without, expected):
    logs = cs.read_logs(write(file, without=without))
    assert outcomes(logs) == expected
    assert logs.truncated.any() == ("truncated" not in without)
    assert cs.count(logs).n.sum() == 4  # actions taken, all of them


def test_costs_are_read_with_a_minus(file):
    write(file, cost=[0.0, 3.0, 1.5, 0.0], without=["reward"])
    rewards = cs.read_logs(file, reward="-cost").reward
    assert rewards.tolist() == [0.0, -3.0, -1.5, 0.0]
    assert not np.signbit(rewards[0])
    assert cs.read_logs(file, reward="cost").reward.tolist() == [0.0, 3.0, 1.5, 0.0]
    with pytest.raises(ArgumentError, match=r"reward_max is -1.0, but .* holds costs, read it .* '-cost'"):
        cs.value_ceilings(cs.count(cs.open_logs(file, reward="cost")), 2, -1)
    with pytest.raises(ArgumentError, match="no column 'costs'"):
        cs.read_logs(file, reward="-costs")
    write(file, **{"-cost": [1, 2, 3, 4]})  # a name is a name
    assert cs.read_logs(file, reward="-cost").reward.tolist() == [1, 2, 3, 4]


def test_steps_may_be_counted_from_one_if_said_so(file):
    write(file, step=[1, 2, 1, 2])
    with pytest.raises(DataError, match=r"row 1, column 'step'.*does not begin.*; found 1 \(set first_step to 1 if"):
        cs.read_logs(file)
    assert cs.read_logs(file, first_step=1).step.tolist() == [0, 1, 0, 1]


def test_states_of_several_columns_lists_and_structs(file):
    pairs, after = [(1, "x"), (2, "x"), (1, "x"), (1, "x")], [(2, "x"), (3, "y"), (1, "x"), (1, "x")]
    (p, q), (next_p, next_q) = zip(*pairs, strict=True), zip(*after, strict=True)
    write(file, p=p, q=q, next_p=next_p, next_q=next_q)
    logs = cs.read_logs(file, state=["p", "q"])
    assert logs.space.states == ((1, "x"), (2, "x"), (3, "y"))
    assert logs.space.columns == ("p", "q")
    structs = [{"p": p, "q": q} for p, q in pairs], [{"p": p, "q": q} for p, q in after]
    write(file, state=structs[0], next_state=structs[1])
    assert cs.read_logs(file).space.columns == ("state_p", "state_q")
    assert counted(cs.read_logs(file)).keys() == counted(logs).keys()
    write(file, state=[[1, 5], [2, 5], [1, 5], [1, 5]], next_state=[[2, 5], [3, 5], [1, 5], [1, 5]])
    assert cs.read_logs(file).space.states == ((1, 5), (2, 5), (3, 5))
    write(file, state=[[1, 5], [2], [1, 5], [1, 5]], next_state=[[2, 5], [3, 5], [1, 5], [1, 5]])
    with pytest.raises(DataError, match="lists have 1 to 2 entries"):
        cs.read_logs(file)


def test_declared_states_and_actions_set_the_order_and_the_type(file):
    logs = cs.read_logs(write(file), states=["end", "b", "a", "never"], actions=["stay", "go", "jump"])
    assert logs.space.states == ("end", "b", "a", "never")
    assert logs.space.actions == ("stay", "go", "jump")
    write(file, state=[1, 2, 1, 1], next_state=[2, 3, 1, 1])
    assert cs.read_logs(file, states=["1", "2", "3"]).space.states == ("1", "2", "3")
    write(file, state=["01", "2", "1", "1"], next_state=["2", "3", "1", "1"])
    assert cs.read_logs(file, states=[1, 2, 3]).state.tolist() == [0, 1, 0, 0]


def test_real_numbers_are_binned_alike_in_the_logs_and_online(file):
    values, after = [0.2, 1.7, -0.5, 0.9], [1.7, 3.0, 0.9, 0.9]
    write(file, state=values, next_state=after)
    with pytest.raises(DataError, match=r"column 'state' holds float64.*bins=\{'state': Bins\(quantiles=8\)\}"):
        cs.read_logs(file)
    logs = cs.read_logs(file, bins={"state": cs.Bins(edges=(0.0, 1.0, 2.0))})
    assert [logs.space.states[s] for s in logs.state] == [1, 2, 0, 1]
    assert [logs.space.label(value) for value in values] == [1, 2, 0, 1]
    assert logs.space.label(np.array([99.0])) == 3
    logs.save(file)
    again = cs.read_logs(file)  # bins are part of the space that the file keeps
    assert again.checksum == logs.checksum
    assert again.space.label(0.2) == 1


def test_quantile_bins_cut_the_logs_into_equal_parts(tmp_path):
    values = np.random.default_rng(1).normal(size=400)
    rows = {"episode": np.zeros(400, int), "step": np.arange(400), "state": values, "action": ["go"] * 400}
    write(tmp_path / "a.parquet", rows=rows | {"reward": np.ones(400)})
    logs = cs.read_logs(tmp_path / "a.parquet", bins={"state": cs.Bins(quantiles=4)})
    assert np.bincount(logs.state).tolist() == [100] * 4
    np.testing.assert_allclose(logs.space.bins["state"].edges, np.quantile(values, [0.25, 0.5, 0.75]))


def test_string_episodes_and_integer_flags_and_rewards(file):
    write(file, episode=["p9", "p9", "p1", "p1"], terminated=[0, 1, 0, 0], truncated=[0, 0, 0, 1], reward=[1, 2, 3, 3])
    logs = cs.read_logs(file)
    assert sorted(logs.reward.tolist()) == [1.0, 2.0, 3.0, 3.0]
    assert logs.episodes == 2
    assert logs.terminated.sum() == 1


# Bad input -----------------------------------------------------------------------------------------------------------


def bad_parquet(**changes):
    return lambda folder: write(folder / "bad.parquet", **changes)


def bad_bytes(name, content):
    def make(folder):
        path = folder / name
        path.write_bytes(content)
        return path

    return make


def truncated_parquet(folder):
    path = write(folder / "bad.parquet")
    path.write_bytes(path.read_bytes()[:-40])
    return path


def folder(folder):
    path = folder / "bad.parquet"
    path.mkdir()
    return path


NAN = float("nan")
CUT = {"bins": {"state": cs.Bins(edges=(0.5,))}}
HEADER = b"episode,step,state,action,reward,next_state,terminated,truncated\n"
BAD = {
    "no such file": (lambda folder: folder / "bad.parquet", "does not exist"),
    "empty file": (bad_bytes("bad.parquet", b""), "is empty"),
    "no rows": (bad_parquet(rows={k: pa.array(v)[:0] for k, v in ROWS.items()}), "has no rows"),
    "missing column": (bad_parquet(without=["reward"]), "no column 'reward'. Its columns are 'episode', 'step'"),
    "mistyped reward": (bad_parquet(reward=["x"] * 4), "column 'reward' holds string; it must hold numbers"),
    "mistyped step": (bad_parquet(step=[0.0, 1.0, 0.0, 1.0]), "column 'step' holds float64; it must hold integers"),
    "mistyped flag": (bad_parquet(terminated=["no"] * 4), "'terminated' holds text: 'no'.*={'terminated': \\['no'\\]}"),
    "flag that is no flag": (bad_parquet(terminated=[0, 1, 0, 7]), "row 4, column 'terminated'.*true or false"),
    "nan reward": (bad_parquet(reward=[0.1, float("nan"), 0.3, 0.3]), "row 2, column 'reward' .*must be finite"),
    "infinite reward": (bad_parquet(reward=[0.1, 0.2, float("inf"), 0.3]), "row 3, column 'reward'.*found inf"),
    "null reward": (bad_parquet(reward=[0.1, 0.2, None, 0.3]), "row 3, column 'reward'.*must be finite; found nothing"),
    "nan state": (
        bad_parquet(state=[0.2, NAN, 0.2, 0.2], next_state=[1.0, 1.0, 0.2, 0.2]),
        *("row 2, column 'state'.*the state has no value", CUT),
    ),
    "nan next state": (
        bad_parquet(state=[0.2, 1.0, 0.2, 0.2], next_state=[1.0, NAN, 0.2, 0.2]),
        *("row 2, column 'next_state'.*neither a label nor missing", CUT),
    ),
    "junk next state": (
        bad_parquet(state=["1", "2", "1", "1"], next_state=["2", "oops", "1", "1"]),
        *("row 2, column 'next_state'.*neither a label nor missing", {"states": [1, 2]}),
    ),
    "null state": (bad_parquet(state=["a", None, "a", "a"]), "row 2, column 'state'.*missing"),
    "null action": (bad_parquet(action=["go", "go", None, "go"]), "row 3, column 'action'.*missing"),
    "null episode": (bad_parquet(episode=[0, 0, None, 1]), "row 3, column 'episode'.*missing"),
    "negative step": (bad_parquet(step=[-1, 0, 0, 1]), "row 1, column 'step'.*before the first; found -1"),
    "duplicate step": (bad_parquet(step=[0, 0, 0, 1]), "row [12], column 'step'.*stands twice"),
    "gapped steps": (bad_parquet(step=[0, 2, 0, 1]), r"row 2, column 'step' \(episode 0, step 2\).*steps are missing"),
    "late start": (bad_parquet(step=[0, 1, 1, 2]), "row 3, column 'step'.*does not begin"),
    "on after the end": (bad_parquet(terminated=[True, True, False, False]), "row 2.*continues after"),
    "other next state": (bad_parquet(next_state=["a", "end", "a", "a"]), "row 2, column 'state'.*not the next state"),
    "undeclared": (bad_parquet(), "row 2, column 'state'.*'b' is not one of the declared", {"states": ["a", "end"]}),
    "undeclared action": (bad_parquet(), "row 3, column 'action'.*'stay' is not", {"actions": ["go"]}),
    "truncated parquet": (truncated_parquet, "not a complete Parquet file"),
    "text as parquet": (bad_bytes("bad.parquet", b"hello"), "not a complete Parquet file"),
    "wrong encoding": (bad_bytes("bad.csv", HEADER + "0,0,ä,go,1,b,0,0\n".encode("utf-16")), "cannot be read"),
    "latin-1": (bad_bytes("bad.csv", HEADER + "0,0,ä,go,1,b,0,0\n".encode("latin-1")), "cannot be read"),
    "endless line": (bad_bytes("bad.csv", HEADER + b"0,0," + b"a" * 5_000_000 + b",go,1,b,0,0\n"), "cannot be read"),
    "too many fields": (bad_bytes("bad.csv", HEADER + b"0,0,a,go,1,b,0,0\n0,1,b,go,1,b,0,0,9,9\n"), "bad.csv"),
    "header alone": (bad_bytes("bad.csv", HEADER), "has no rows|must hold"),
    "directory": (folder, "is a folder"),
    "wrong suffix": (bad_bytes("bad.xlsx", b"x"), "must end in .parquet, .csv"),
    "broken gzip": (bad_bytes("bad.csv.gz", HEADER), "cannot be read"),
    "hostile name": (bad_parquet(without=["state"]), "no column 'x\"; drop table t;'", {"state": 'x"; drop table t;'}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_file_row_and_column(tmp_path, name):
    make, message, *options = BAD[name]
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(CausalShapingError, match=message) as caught:
        cs.count(cs.open_logs(path, **(options[0] if options else {})))
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_two_sources_of_one_name_are_refused(tmp_path):
    first = write(tmp_path / "a.parquet", source=["s"] * 4)
    second = write(tmp_path / "b.parquet", source=["s"] * 4)
    with pytest.raises(ArgumentError, match=r"Two logs are called 's': .*a.parquet and .*b.parquet"):
        cs.count([first, second])
    shifted = write(tmp_path / "b.parquet", source=["s"] * 4, episode=[7, 7, 8, 8])
    assert cs.count(cs.open_logs([first, shifted], source="s")).n.sum() == 8


def test_parts_that_hold_the_same_episode_are_refused(tmp_path):
    first, second = write(tmp_path / "a.parquet"), write(tmp_path / "b.parquet")
    with pytest.raises(DataError, match="stands twice in its episode"):
        cs.read_logs([first, second], source="s")
    (tmp_path / "c.csv").write_bytes(HEADER)
    with pytest.raises(FileError, match="of one format"):
        cs.read_logs([first, tmp_path / "c.csv"], source="s")


def test_bad_episodes_can_be_left_out_and_are_reported(tmp_path):
    path = write(tmp_path / "a.parquet", reward=[0.1, float("nan"), 0.3, 0.3])
    with pytest.warns(DroppedEpisodesWarning, match=r"1 episodes with 2 of 4 rows.*must be finite.*selects"):
        logs = cs.read_logs(path, skip_bad_episodes=True)
    assert logs.episode.tolist() == [1, 1]
    with pytest.warns(DroppedEpisodesWarning):
        assert cs.count(path, skip_bad_episodes=True).n.sum() == 2
    write(path, reward=[float("nan")] * 4)
    with pytest.raises(DataError, match="every episode holds a bad row"):
        cs.read_logs(path, skip_bad_episodes=True)
    assert len(cs.read_logs(write(path), skip_bad_episodes=True)) == 4


def test_a_bad_row_in_one_of_several_files_is_named_by_its_file(tmp_path):
    first = write(tmp_path / "a.parquet")
    second = write(tmp_path / "b.parquet", episode=[7, 7, 8, 8], reward=[0.1, 0.2, float("nan"), 0.3])
    with pytest.raises(DataError, match=r"b.parquet, row 3, column 'reward' \(episode 8, step 0\)"):
        cs.read_logs([first, second], source="s")


def test_declaring_states_of_a_file_of_ours(tmp_path):
    logs = cs.load_world("walking-robot").collect("competent", 50)
    logs.save(tmp_path / "a.parquet")
    order = logs.space.states[::-1]
    assert cs.read_logs(tmp_path / "a.parquet", states=order).space.states == order
    assert cs.count(tmp_path / "a.parquet", states=order).space.states == order


def test_a_table_without_a_name_needs_a_source(file):
    table = pa.table(ROWS)
    for read in (cs.read_logs, cs.count):
        with pytest.raises(ArgumentError, match="Name the source: open_logs"):
            read(table)
    with pytest.raises(ArgumentError, match=r"the DataFrame does not say where.*source="):
        cs.count(pandas.DataFrame(ROWS))
    assert cs.count(pandas.DataFrame(ROWS | {"source": ["ward"] * 4})).sources == ("ward",)
    assert cs.read_logs(table, source="s").source == "s"
    warehouse = ibis.duckdb.connect()
    assert cs.count(warehouse.read_parquet(write(file), table_name="ward")).sources == ("ward",)


def test_nan_is_found_whatever_the_statistics_of_the_file_say(tmp_path):
    """Row groups of one value and NaN: DuckDB would call them constant."""
    n = 4000
    values = np.where(np.arange(n) % 2, np.nan, 0.1)
    rows = {"episode": np.arange(n), "step": np.zeros(n, int), "state": ["a"] * n, "action": ["go"] * n}
    table = pa.table(rows | {"reward": values})
    for size in (100, 4000):
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=size)
        with pytest.raises(DataError, match=r"row 2, column 'reward'.*must be finite"):
            cs.read_logs(tmp_path / "a.parquet")
        with pytest.warns(DroppedEpisodesWarning, match="2,000 episodes"):
            assert cs.count(tmp_path / "a.parquet", skip_bad_episodes=True).n.sum() == n / 2
        with pytest.raises(DataError, match="must be finite"):
            cs.count(tmp_path / "a.parquet", check=False)  # found all the same, if less precisely


def test_nan_never_falls_into_a_bin(tmp_path):
    """Not even unchecked: an outcome that is no number is unknown."""
    n = 4000
    rows = {"episode": np.arange(n), "step": np.zeros(n, int), "state": np.full(n, 0.2), "action": ["go"] * n}
    rows |= {"reward": np.ones(n), "terminated": [False] * n}
    rows["next_state"] = np.choose(np.arange(n) % 4, [0.1, np.nan, 0.2, np.nan])
    write(tmp_path / "a.parquet", rows=rows)
    for bins in (cs.Bins(edges=(-1.0, 0.0, 1.0)), cs.Bins(quantiles=2)):
        opened = cs.open_logs(tmp_path / "a.parquet", bins={"state": bins})
        with pytest.raises(DataError, match=r"row 2, column 'next_state'.*neither a label nor missing"):
            cs.count(opened)
        counts = cs.count(opened, check=False)
        assert counts.n[~counts.outcome_known].sum() == n / 2
    rows["state"] = np.choose(np.arange(n) % 4, [0.1, np.nan, 0.3, np.nan])
    write(tmp_path / "a.parquet", rows=rows)
    edges = cs.open_logs(tmp_path / "a.parquet", bins={"state": cs.Bins(quantiles=2)}).declared["bins"]["state"].edges
    assert edges == pytest.approx((0.2,))


def test_infinite_numbers_fall_into_the_outer_bins_in_logs_and_online(file):
    write(file, state=[0.2, float("inf"), 0.2, 0.2], next_state=[float("inf"), 0.0, 0.2, 0.2])
    logs = cs.read_logs(file, bins={"state": cs.Bins(edges=(0.1, 0.5))})
    assert [logs.space.states[s] for s in logs.state] == [1, 2, 1, 1]
    assert logs.space.label(float("inf")) == 2


def test_a_file_that_is_binned_is_not_binned_again(file):
    write(file, state=[0.2, 1.7, -0.5, 0.9], next_state=[1.7, 3.0, 0.9, 0.9])
    bins = {"state": cs.Bins(edges=(0.0, 1.0))}
    logs = cs.read_logs(file, bins=bins)
    logs.save(file)
    assert cs.read_logs(file, state="state").space.bins == bins
    with pytest.raises(ArgumentError, match="was binned before the file was written"):
        cs.read_logs(file, bins=bins)


def test_rows_of_another_source_than_the_file_claims_are_refused(tmp_path):
    world = cs.load_world("lavacross-easy")
    first, second = world.collect("good", 100), world.collect("bad", 100)
    shifted = {name: getattr(second, name) for name in cs.Logs.COLUMNS} | {"episode": second.episode + 1000}
    tables = [logs_table(first), logs_table(cs.Logs(second.space, "bad", **shifted))]
    first.save(tmp_path / "a.parquet")
    metadata = pq.read_schema(tmp_path / "a.parquet").metadata
    mixed = pa.concat_tables(tables).unify_dictionaries().replace_schema_metadata(metadata)
    forge(mixed, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"row 101.*of another source than the file says"):
        cs.count(tmp_path / "a.parquet")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_parts_of_one_log_must_have_the_same_columns(tmp_path, suffix):
    def part(name, without=(), order=1, **changes):
        columns = {k: v for k, v in {**ROWS, **changes}.items() if k not in without}
        table = pa.table(dict(list(columns.items())[::order]))
        path = tmp_path / f"{name}{suffix}"
        pq.write_table(table, path) if suffix == ".parquet" else pc.write_csv(table, path)
        return path

    whole = part("a")
    later = {"episode": [7, 7, 8, 8]}
    for other in (part("b", without=["terminated"], **later), part("c", order=-1, **later)):
        for pair in ([whole, other], [other, whole]):
            with pytest.raises(DataError, match="parts of one log, but differ in columns"):
                cs.read_logs(pair, source="s")
    assert len(cs.read_logs([whole, part("d", **later)], source="s")) == 8


def test_labels_of_two_types_in_state_and_next_state_are_read_as_strings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER + b"0,0,1,go,1,2,0,0\n0,1,2,go,1,goal,1,0\n")
    assert cs.read_logs(path).space.states == ("1", "2", "goal")


def test_a_late_string_label_in_a_csv(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{i},0,{i % 7},go,1,{i % 7 + 1},0,1" for i in range(30_000)] + ["30000,0,end,go,1,0,0,1"]
    path.write_text(HEADER.decode() + "\n".join(rows) + "\n")
    assert "end" in cs.read_logs(path).space.states


def test_rows_are_numbered_as_in_the_file_even_if_only_one_source_is_read(tmp_path):
    path = tmp_path / "a.csv"
    rows = b"x,0,0,a,go,1,a,0,0\nx,0,1,a,go,1,a,0,1\ny,0,0,a,go,1,a,0,0\ny,0,1,a,go,nan,a,0,1\n"
    path.write_bytes(b"source," + HEADER + rows)
    with pytest.raises(DataError, match=r"row 4 after the header, column 'reward'"):
        cs.read_logs(path, source="y")


def test_columns_that_are_called_like_ours(file):
    strange = {"file_row_number": [700] * 4, "row": ["x"] * 4, "s0": [1.5] * 4, "n0": [None] * 4, "last_step": [9] * 4}
    logs = cs.read_logs(write(file, **strange))
    assert len(logs) == 4
    with pytest.raises(DataError, match=r"logs.parquet, column 'reward' \(episode 0, step 1\)"):
        cs.read_logs(write(file, **strange, reward=[0.1, float("nan"), 0.3, 0.3]))


def test_a_next_state_that_is_there_in_part_is_refused(file):
    write(file, p=[1] * 4, q=[1] * 4, next_p=[1] * 4, without=["state", "next_state"])
    with pytest.raises(ArgumentError, match="no column 'next_q'"):
        cs.read_logs(file, state=["p", "q"])


def test_many_state_columns(tmp_path):
    """More combinations of parts than a 64-bit number counts."""
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(24)]
    rows = {name: rng.integers(0, 16, 200) for name in names}
    rows |= {"episode": np.arange(200), "step": np.zeros(200, int), "action": ["go"] * 200, "reward": np.ones(200)}
    write(tmp_path / "a.parquet", rows=rows)
    logs = cs.read_logs(tmp_path / "a.parquet", state=names)
    assert len(logs.space.states) == 200
    labels = list(zip(*(rows[name].tolist() for name in names), strict=True))
    assert [logs.space.states[s] for s in logs.state] == labels


def test_bins_that_make_no_sense_are_refused(file):
    for arguments, message in (
        ({}, "either edges"),
        ({"edges": (1.0,), "quantiles": 2}, "either edges"),
        ({"quantiles": 1}, "at least 2"),
        ({"edges": (1.0, 1.0)}, "must be finite and rise"),
        ({"edges": (1.0, float("nan"))}, "must be finite and rise"),
    ):
        with pytest.raises(ArgumentError, match=message):
            cs.Bins(**arguments)
    with pytest.raises(ArgumentError, match="'weight', which is not a state column"):
        cs.read_logs(write(file), bins={"weight": cs.Bins(quantiles=2)})
    with pytest.raises(ArgumentError, match="call fit"):
        cs.Bins(quantiles=2)([1.0])
    with pytest.raises(DataError, match="NaN"):
        cs.Bins(edges=(1.0,))([float("nan")])


# What is a log, and what the columns can mean -------------------------------------------------------------------------

WARD = {
    "patient": [1, 1, 2, 2, 2],
    "day": [1, 2, 1, 2, 3],
    "stage": ["early", "late", "early", "early", "late"],
    "drug": ["a", "b", "a", "a", "b"],
    "score": [-1.0, -2.0, -1.0, -3.0, 0.5],
    "outcome": [None, "died", None, None, "cured"],
}
NAMES = {"episode": "patient", "step": "day", "first_step": 1, "state": "stage", "action": "drug", "reward": "score"}


def relation():
    rows = pa.table(WARD)
    return duckdb.connect().from_arrow(rows)


def polars_frame():
    return pytest.importorskip("polars").DataFrame(WARD)


@pytest.mark.parametrize(
    "make",
    [lambda: pandas.DataFrame(WARD), lambda: pa.table(WARD), relation, lambda: ibis.memtable(WARD), polars_frame],
    ids=["pandas", "arrow", "duckdb", "ibis", "polars"],
)
def test_tables_of_all_kinds_are_logs(make):
    expected = counted(cs.read_logs(pa.table(WARD), source="ward", **NAMES))
    assert counted(cs.read_logs(make(), source="ward", **NAMES)) == expected
    assert by_label(cs.count(cs.open_logs(make(), source="ward", **NAMES))) == expected
    with pytest.raises(ArgumentError, match=r"has no column 'scor'. Did you mean 'score'\?.*in reward"):
        cs.open_logs(make(), source="ward", **NAMES | {"reward": "scor"})


def ends(**options):
    return cs.read_logs(pa.table(WARD), source="ward", **NAMES | options).terminated.tolist()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"outcome": ["died", "cured"]}, [1, 4]),
        ({"outcome": ["died"]}, [1]),
        ({"code": [1, 2]}, [1, 4]),
        (["died", "cured"], [1, 4]),  # any of several columns
        ({"died": [1], "cured": [True]}, [1, 4]),
    ],
)
def test_values_of_columns_can_end_an_episode_or_cut_it(flags, expected):
    columns = {"died": [0, 1, 0, 0, 0], "cured": [False] * 4 + [True], "code": [None, 1.0, None, None, 2.0]}
    for kind in ("terminated", "truncated"):
        logs = cs.read_logs(pa.table(WARD | columns), source="ward", **NAMES, **{kind: flags})
        assert np.flatnonzero(getattr(logs, kind)).tolist() == expected
    with pytest.raises(ArgumentError, match="holds numbers there"):
        cs.read_logs(pa.table(WARD | columns), source="ward", **NAMES, terminated={"code": ["died"]})


def test_a_column_of_text_needs_the_values_that_end_an_episode():
    with pytest.raises(DataError, match=r"'outcome' holds text: 'cured', 'died'.*=\{'outcome': \['cured'\]\}"):
        ends(terminated="outcome")
    with pytest.raises(DataError, match=r"'outcome' holds text.*truncated="):
        ends(truncated="outcome")
    blank = pa.table(WARD | {"outcome": ["", "died", "", "", "cured"]})
    with pytest.raises(DataError, match=r"holds text: '', 'cured', 'died'. Say which of these end an episode"):
        cs.open_logs(blank, source="ward", **NAMES, terminated="outcome")
    with pytest.raises(ArgumentError, match="must list values"):
        ends(terminated={"outcome": "died"})
    with pytest.raises(ArgumentError, match="names no column"):
        ends(terminated=[])


def test_a_value_that_never_occurs_is_warned_of():
    with pytest.warns(cs.AssumptionWarning, match=r"never holds 'dead', .* It holds 'cured', 'died'"):
        assert ends(terminated={"outcome": ["dead", "cured"]}) == [False, False, False, False, True]


def test_continuous_actions_are_refused_with_what_to_do():
    table = pa.table(WARD | {"drug": [0.5, 0.1, 0.2, 0.2, 0.9]})
    with pytest.raises(DataError, match=r"column 'drug' holds float64. Actions must be discrete. Cut them into bins"):
        cs.open_logs(table, source="ward", **NAMES)
    with pytest.raises(ArgumentError, match=r"bins are given for the action 'drug'. Actions must be discrete"):
        cs.open_logs(table, source="ward", **NAMES, bins={"drug": cs.Bins(quantiles=2)})


GAPS = ["early", None, "early", None, "late"]


def test_missing_values_of_a_state_are_counted_in_the_error():
    with pytest.raises(DataError, match=r"row 2, column 'stage' .* as in 2 of 5 rows \(set missing to a label"):
        cs.read_logs(pa.table(WARD | {"stage": GAPS}), source="ward", **NAMES)


def test_missing_values_can_be_a_label_of_their_own():
    table = pa.table(WARD | {"stage": GAPS})
    logs = cs.read_logs(table, source="ward", missing="unknown", **NAMES)
    assert [logs.space.states[s] for s in logs.state] == ["early", "unknown", "early", "unknown", "late"]
    assert [after for after, _ in outcomes(logs)] == ["unknown", None, "unknown", "late", None]
    assert logs.space.label(None) == "unknown"
    named = table.rename_columns(["episode", "step", "state", "action", "reward", "outcome"])
    named = named.append_column("source", pa.array(["ward"] * 5)).set_column(1, "step", pa.array([0, 1, 0, 1, 2]))
    assert by_label(cs.count(named, missing="unknown")) == counted(logs)


@pytest.mark.parametrize("bins", [None, {"stage": cs.Bins(edges=(1.5,))}])
def test_missing_numbers_become_minus_one(bins, tmp_path):
    held = pa.array([1, None, 2, None, 2], pa.int64() if bins is None else pa.float64())
    after = pa.array([None, 2, None, 2, None], held.type)
    table = pa.table(WARD | {"stage": held, "next_stage": after})
    logs = cs.read_logs(table, source="ward", missing="unknown", bins=bins, **NAMES)
    shown = [1, 2] if bins is None else [0, 1]
    low, high = shown
    assert [logs.space.states[s] for s in logs.state] == [low, -1, high, -1, high]
    assert [after for after, _ in outcomes(logs)] == [-1, None, -1, high, None]
    assert (logs.space.label(None), logs.space.label(np.nan), logs.space.label(2)) == (-1, -1, high)
    logs.save(tmp_path / "a.parquet")
    again = cs.read_logs(tmp_path / "a.parquet")
    assert (again.checksum, again.space) == (logs.checksum, logs.space)
    assert cs.count(logs).space.missing == {"stage": -1}


def test_a_part_of_a_next_state_can_be_missing_at_the_end_of_an_episode():
    table = pa.table(
        WARD
        | {"age": [7, 7, 8, None, 8], "next_age": [7, None, None, 8, None]}
        | {"next_stage": ["late", "early", "early", "late", None]}
    )
    options = NAMES | {"state": ["stage", "age"], "terminated": {"outcome": ["died"]}}
    logs = cs.read_logs(table, source="ward", missing="?", **options)
    assert [after for after, _ in outcomes(logs)] == [("late", 7), ("early", -1), ("early", -1), ("late", 8), None]


def test_a_column_that_holds_minus_one_cannot_have_missing_values():
    table = pa.table(WARD | {"stage": [1, None, -1, 2, 2]})
    with pytest.raises(DataError, match=r"row 3, column 'stage'.*-1 stands for a missing value.*found -1"):
        cs.read_logs(table, source="ward", missing="unknown", **NAMES)


def test_messages_show_rows_steps_and_values_as_the_file_does(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text("patient,day,stage,drug,score,ended\n7,1,early,a,1,0\n7,2,late,b,1,0\n7,4,late,b,1,yes\n")
    with pytest.raises(DataError, match=r"column 'ended' holds text: '0', 'yes'"):
        cs.read_logs(path, **NAMES, terminated="ended")
    message = r"ward.csv, row 3 after the header, column 'day' \(episode 7, step 4\): steps are missing.*; found 4"
    with pytest.raises(DataError, match=message):
        cs.read_logs(path, **NAMES)
    path.write_text("patient,day,stage,drug,score\n7,1,0.25,a,1\n7,2,nan,b,1\n")
    with pytest.raises(DataError, match=r"row 2 after the header, .* \(episode 7, step 2\).*found nan, as in 1 of 2"):
        cs.read_logs(path, **NAMES, bins={"stage": cs.Bins(edges=(0.5,))})


def test_a_file_that_was_saved_with_missing_values_opens_beside_raw_ones(tmp_path):
    frame = pandas.DataFrame({"episode": [0, 1], "step": 0, "state": [3, None], "action": "x", "reward": 0.0})
    frame["next_state"], frame["terminated"] = frame.state, True
    frame = frame.astype({"state": "Int64", "next_state": "Int64"})
    logs = cs.read_logs(frame, source="ward", missing="unknown")
    logs.save(tmp_path / "ward.parquet")
    again = cs.read_logs(tmp_path / "ward.parquet", missing="unknown")
    assert again.space.states == logs.space.states == (-1, 3)


@pytest.mark.parametrize("what", [None, {}, 7, []])
def test_what_cannot_be_logs_is_refused(what):
    with pytest.raises(ArgumentError, match="There are no logs to count in"):
        cs.count(what)
    for given in (what, [what], cs.open_logs(table(), source="ward")):
        with pytest.raises(CausalShapingError, match=r"cannot be opened\. Give a file|No file is given"):
            cs.read_logs(given)


def table(**changes):
    rows = {"episode": [0, 0], "step": [0, 1], "state": ["a", "b"], "action": ["x", "y"], "reward": [0.0, 1.0]}
    return pa.table({name: column for name, column in (rows | changes).items() if column is not None})


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({}, {"numbers": True, "missing": "?"}, "with numbers=True leave them out"),
        ({}, {"shape": (2,)}, "pass numbers=True"),
        ({"next_state": ["b", "c"], "u": ["b", "c"]}, {"next_state": ["next_state", "u"]}, "but the next state has 2"),
        ({}, {"hidden": "reward"}, "hidden names 'reward', which has another meaning"),
        ({}, {"states": [("a", 1), ("b", 2)]}, r"has 2 part\(s\), but the columns make 1"),
        ({"state": pa.array([None, None], pa.float64())}, {"bins": {"state": cs.Bins(quantiles=2)}}, "holds no number"),
    ],
)
def test_what_does_not_fit_together_is_refused(rows, options, message):
    with pytest.raises(cs.CausalShapingError, match=message):
        cs.open_logs(table(**rows), source="ward", **options)


def test_logs_without_rows_are_refused_by_all_who_read_them():
    empty = cs.open_logs(table().slice(0, 0), source="ward")
    readers = (cs.count, lambda logs: cs.count(logs, check=False), lambda logs: logs.read())
    for read in (*readers, cs.inspect, cs.persistence_test):
        with pytest.raises(DataError, match="no rows"):
            read(empty)
    with pytest.raises(DataError, match="no rows"):
        cs.read_transitions(cs.open_logs(table(state=[0.5, 1.5]).slice(0, 0), source="ward", numbers=True))
    with pytest.raises(cs.FileError, match="No file is given"):
        cs.open_logs([])


def test_states_that_are_numbers_are_not_labels_and_bins_are_bins():
    numbers = cs.open_logs(table(state=[0.5, 1.5]), source="ward", numbers=True)
    assert repr(numbers).endswith("states by (state))")
    for read in (cs.count, lambda logs: logs.read()):
        with pytest.raises(ArgumentError, match="opened with numbers=True, but here states must be labels"):
            read(numbers)
    with pytest.raises(ArgumentError, match="reward_bins is 3; pass Bins"):
        cs.count(cs.open_logs(table(), source="ward"), reward_bins=3)


def test_dates_in_a_csv_are_read_as_they_are_written(tmp_path):
    rows = "0,0,a,x,0,31/12/2025\n0,1,b,y,1,01/01/2026\n"
    (tmp_path / "a.csv").write_text(f"episode,step,state,action,reward,day\n{rows}")
    days = cs.read_logs(tmp_path / "a.csv", state="day").space.states
    assert days == ("01/01/2026", "31/12/2025")
