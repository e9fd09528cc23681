"""Counts: equal whatever the file, its order, its labels or its parts; associative; converging to `observe`."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from properties import fewer
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.data.columns import logs_table
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import CausalShapingError

XY = {"state": ["x", "y"]}


@pytest.fixture(scope="module")
def logs():
    return cs.load_world("lavacross-maze").collect("better", steps=5000, seed=3)


@pytest.mark.parametrize("step_indexed", [False, True])
def test_counting_in_memory_and_from_every_file_equals_counting_by_hand(tmp_path, logs, step_indexed):
    expected = counted(logs, step_indexed)
    assert by_label(cs.count(logs, step_indexed=step_indexed)) == expected
    for name, columns in (("a.csv", XY), ("a.csv.gz", XY), ("a.csv.zst", XY), ("a.parquet", {})):
        logs.save(tmp_path / name)
        opened = cs.open_logs(tmp_path / name, **columns)
        assert by_label(cs.count(opened, step_indexed=step_indexed)) == expected, name
        again = cs.read_logs(tmp_path / name, **columns)
        assert by_label(cs.count(again, step_indexed=step_indexed)) == expected, name
    assert (again.checksum, again.metadata) == (logs.checksum, logs.metadata)


def test_shuffled_rows_and_split_files_count_the_same(tmp_path, logs):
    expected = counted(logs)
    table = logs_table(logs)
    shuffled = table.take(np.random.default_rng(0).permutation(len(logs)))
    pq.write_table(shuffled, tmp_path / "shuffled.parquet")
    opened = cs.open_logs(tmp_path / "shuffled.parquet", **XY)
    assert by_label(cs.count(opened)) == expected
    assert cs.read_logs(tmp_path / "shuffled.parquet", **XY).reward.tolist() == logs.reward.tolist()
    parts = [tmp_path / f"part{i}.parquet" for i in range(3)]
    for path, rows in zip(parts, np.array_split(np.arange(len(logs)), 3), strict=True):
        pq.write_table(shuffled.take(rows), path)  # even episodes are split over files
    assert by_label(cs.count(cs.open_logs(parts, source="better", **XY))) == expected


@given(data=st.data())
@fewer(20)
def test_the_order_of_labels_changes_nothing(data, logs):
    space = logs.space
    states, actions = data.draw(st.permutations(space.states)), data.draw(st.permutations(space.actions))
    moved = cs.count(logs, states=states, actions=actions)
    assert moved.space.states == tuple(states)
    assert by_label(moved) == counted(logs)


def test_a_sum_unites_spaces_by_label():
    def one(states, after):
        space = cs.Space(states, ["go"])
        return cs.count(cs.Logs(space, "s", [0], [0], [0], [0], [1.0], [after], [True], [False]))

    merged = one(["a", "end"], 1) + one(["b", "end"], 1) + one(["end", "a"], 1)
    assert merged.space.states == ("a", "end", "b")
    assert {key[1:4] for key in by_label(merged)} == {("a", "go", "end"), ("b", "go", "end"), ("end", "go", "a")}


row = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(-8, 16))
an_episode = st.tuples(st.lists(row, min_size=1, max_size=3), st.sampled_from(["terminated", "truncated", "unknown"]))


def logs_of(episodes, source="s"):
    """Logs of episodes, each a list of (state, action, eighths of reward) and how it ended."""
    rows = [
        (e, h, *row, end if h == len(steps) - 1 else "goes on")
        for e, (steps, end) in enumerate(episodes)
        for h, row in enumerate(steps)
    ]
    episode, step, state, action, reward, end = map(np.array, zip(*rows, strict=True))
    ends = {"terminated": 2, "truncated": 0, "unknown": UNKNOWN}
    after = [ends.get(how, following) for how, following in zip(end, np.append(state[1:], 0), strict=True)]
    space = cs.Space(["a", "b", "end"], ["go", "stay"], complete=False)
    columns = {"terminated": end == "terminated", "truncated": end == "truncated"}
    return cs.Logs(space, source, episode, step, state, action, reward / 8, after, **columns)


@given(
    data=st.data(),
    episodes=st.lists(an_episode, min_size=1, max_size=6),
    step_indexed=st.booleans(),
    bins=st.sampled_from([None, cs.Bins(edges=(0.25, 1.0))]),
    labels_are_declared=st.booleans(),
)
@fewer(40)
def test_any_split_by_episode_in_any_order_adds_up_to_one_count(
    data, episodes, step_indexed, bins, labels_are_declared
):
    def count(logs):
        table = logs if labels_are_declared else cs.open_logs(logs_table(logs), source="s")
        return cs.count(table, step_indexed=step_indexed, reward_bins=bins)

    part_of = data.draw(st.lists(st.integers(0, 2), min_size=len(episodes), max_size=len(episodes)))
    order = data.draw(st.permutations(sorted(set(part_of))))
    parts = [logs_of([episode for episode, i in zip(episodes, part_of, strict=True) if i == part]) for part in order]
    wanted = count(logs_of(episodes))
    found = sum(count(part) for part in parts)
    assert set(found.space.states) == set(wanted.space.states)
    assert set(found.space.actions) == set(wanted.space.actions)
    moved = found.to_space(wanted.space)
    for name in cs.Counts.COLUMNS:  # rewards are eighths: their sums are exact in any order
        np.testing.assert_array_equal(getattr(moved, name), getattr(wanted, name))


def test_logs_that_are_added_twice_count_twice(logs):
    counts = cs.count(logs)
    assert by_label(counts + counts) == {outcome: 2 * n for outcome, n in by_label(counts).items()}


def test_counts_add_to_counts_and_to_the_zero_of_a_sum_only(logs):
    counts = cs.count(logs)
    assert sum([counts]) is counts
    for other in (1, 0.5, None, logs):
        with pytest.raises(TypeError, match="unsupported operand"):
            other + counts
        with pytest.raises(TypeError, match="unsupported operand"):
            counts + other


rewards = st.lists(st.integers(-30, 30).map(lambda tenth: tenth / 10), min_size=1, max_size=60)


def chain(rewards, source="s"):
    """One episode that stays in a state."""
    n = len(rewards)
    space = cs.Space(["here"], ["stay"])
    zeros = np.zeros(n, dtype=int)
    return cs.Logs(space, source, zeros, range(n), zeros, zeros, rewards, zeros, zeros, np.arange(n) == n - 1)


@fewer(34)
@given(st.lists(rewards, min_size=1, max_size=4), st.integers(1, 5))
def test_rewards_are_in_the_key_exactly_where_they_take_few_values(parts, limit):
    counts = [cs.count(chain(part), max_rewards=limit) for part in parts]
    many = [len(set(part)) > limit for part in parts]
    assert [not part.discrete_rewards for part in counts] == many
    bins = next((part.space.reward_bins for part in counts if not part.discrete_rewards), None)
    if bins is not None:  # quantiles differ from part to part
        counts = [cs.count(chain(part), reward_bins=bins) for part in parts]
    merged = sum(counts)
    together = [reward for part in parts for reward in part]
    assert merged.discrete_rewards == (not any(many))
    assert merged.n.sum() == len(together)
    assert (merged.reward_min.min(), merged.reward_max.max()) == (min(together), max(together))
    # A sum of n doubles in any order is off by at most n * 2^-53 of the sum of their sizes, to first order.
    bound = 2 * len(together) * 2**-53 * sum(map(abs, together)) + 1e-300
    assert abs(merged.reward_sum.sum() - float(np.sum(np.array(together, dtype=np.longdouble)))) <= bound
    if len(parts) > 1:
        regrouped = counts[0] + sum(counts[1:])
        assert regrouped.space == merged.space
        np.testing.assert_array_equal(regrouped.n, merged.n)
        np.testing.assert_allclose(regrouped.reward_sum, merged.reward_sum, atol=bound)


def test_rewards_of_many_values_go_into_bins_of_equal_mass(tmp_path):
    values = np.random.default_rng(0).normal(size=500) / 10
    logs = chain(values)
    logs.save(tmp_path / "a.parquet")
    for counts in (cs.count(logs), cs.count(tmp_path / "a.parquet")):
        assert not counts.discrete_rewards
        assert len(counts) == 32
        assert 13 <= counts.n.min() <= counts.n.max() <= 18
        assert counts.n.sum() == 500
        where = np.searchsorted(counts.space.reward_bins.edges, values, side="right")
        for i in range(32):
            inside = values[where == i]
            assert counts.reward_sum[i] == pytest.approx(inside.sum(), abs=1e-12)
            found = (counts.n[i], counts.reward_min[i], counts.reward_max[i])
            assert found == (len(inside), inside.min(), inside.max())


def test_few_rewards_at_first_and_many_later_are_aggregated_exactly(monkeypatch):
    monkeypatch.setattr("causal_shaping.logs.counting.SAMPLE_ROWS", 10)
    values = [0.1] * 50 + [i / 10 for i in range(100)]
    counts = cs.count(chain(values))
    assert not counts.discrete_rewards
    assert (counts.n.sum(), counts.reward_min.min(), counts.reward_max.max()) == (150, 0.0, 9.9)
    monkeypatch.undo()
    again = cs.count(chain(values))
    for name in cs.Counts.COLUMNS:
        if name != "step":
            np.testing.assert_allclose(getattr(again, name), getattr(counts, name), rtol=1e-14)


def test_counts_survive_a_file(tmp_path, logs):
    world = cs.load_world("lavacross-maze")
    rewards = np.random.default_rng(0).normal(size=len(logs))
    noisy = cs.Logs(logs.space, "noisy", **{c: getattr(logs, c) for c in cs.Logs.COLUMNS} | {"reward": rewards})
    for step_indexed, population in itertools.product([False, True], repeat=2):
        counts = (
            world.model.observe(world.demonstrators["safe"], "safe", 20, step_indexed=step_indexed)
            if population
            else cs.count(logs, step_indexed=step_indexed)
            + cs.count(noisy, step_indexed=step_indexed)  # another source, with continuous rewards
        )
        counts.save(tmp_path / "counts.parquet")
        again = cs.Counts.load(tmp_path / "counts.parquet")
        assert (again.space, again.sources, again.population) == (counts.space, counts.sources, counts.population)
        assert again.discrete_rewards == counts.discrete_rewards == population
        for name in cs.Counts.COLUMNS:
            np.testing.assert_array_equal(getattr(again, name), getattr(counts, name))


def test_several_sources_in_one_file(tmp_path):
    world = cs.load_world("lavacross-easy")
    pieces = [world.collect(name, 300) for name in ("good", "bad")]
    table = pa.concat_tables([logs_table(piece) for piece in pieces], promote_options="permissive")
    pq.write_table(table.replace_schema_metadata(None).unify_dictionaries(), tmp_path / "both.parquet")
    opened = cs.open_logs(tmp_path / "both.parquet", **XY)
    assert by_label(cs.count(opened)) == counted(pieces[0]) | counted(pieces[1])
    one = cs.open_logs(tmp_path / "both.parquet", source="bad", **XY)
    assert by_label(cs.count(one)) == counted(pieces[1])
    with pytest.raises(CausalShapingError, match="holds 2 sources"):
        cs.read_logs(tmp_path / "both.parquet", **XY)
    with pytest.raises(CausalShapingError, match=r"no rows of source 'ugly'. Its sources are"):
        cs.count(cs.open_logs(tmp_path / "both.parquet", source="ugly", **XY))


def test_all_sources_share_the_bins_of_rewards(tmp_path):
    few, many = chain([0.1, 0.2] * 50, "few"), chain(np.random.default_rng(0).normal(size=100), "many")
    table = pa.concat_tables([logs_table(few), logs_table(many)]).unify_dictionaries()
    pq.write_table(table, tmp_path / "both.parquet")
    counts = cs.count(tmp_path / "both.parquet")
    apart = cs.count([few, many])
    for held in (counts, apart):
        assert not held.discrete_rewards
        assert np.bincount(held.source, held.n).tolist() == [100, 100]
        assert len(held.n[held.source == 0]) <= 2
    assert counts.space.reward_bins == apart.space.reward_bins
    given = cs.count([few, many], reward_bins=cs.Bins(edges=(0.15,)))
    assert [list(given.n[given.source == i]) for i in (0,)] == [[50, 50]]


def test_states_are_complete_only_if_somebody_declared_them(tmp_path):
    world = cs.load_world("lavacross-easy")
    logs = world.collect("good", 300)
    logs.save(tmp_path / "ours.parquet")
    logs.save(tmp_path / "plain.csv")
    assert cs.count(logs).space.complete
    assert cs.count(tmp_path / "ours.parquet").space.complete
    opened = cs.open_logs(tmp_path / "plain.csv", **XY)
    assert not cs.count(opened).space.complete
    assert not cs.count(opened, actions=world.actions).space.complete
    declared = cs.count(cs.open_logs(tmp_path / "plain.csv", states=world.states, **XY))
    assert declared.space.complete
    assert cs.count(opened, states=world.states).space.complete
    assert cs.count(opened, complete=True).space.complete
    assert cs.count([logs, cs.open_logs(tmp_path / "plain.csv", source="other", **XY)]).space.complete
    read = cs.read_logs(tmp_path / "plain.csv", **XY)
    read.save(tmp_path / "again.parquet")
    assert not cs.count(tmp_path / "again.parquet").space.complete


def test_admissible_actions_are_part_of_the_space_and_of_its_file(tmp_path, logs):
    taken = {}
    for s, x in zip(logs.state, logs.action, strict=True):
        taken.setdefault(logs.space.states[s], set()).add(logs.space.actions[x])
    counts = cs.count(logs, admissible=taken)
    mask = counts.space.is_admissible
    assert mask[logs.state, logs.action].all()
    assert mask.sum() < mask.size
    counts.save(tmp_path / "counts.parquet")
    assert cs.Counts.load(tmp_path / "counts.parquet").space == counts.space
    state, actions = next((state, held) for state, held in taken.items() if len(held) > 1)
    with pytest.raises(CausalShapingError, match="where it is not admissible"):
        cs.count(logs, admissible=taken | {state: list(actions)[1:]})


def test_logs_may_come_one_by_one(logs):
    assert by_label(cs.count(piece for piece in [logs])) == counted(logs)


def test_zero_and_minus_zero_are_one_reward():
    counts = cs.count(chain([0.0, -0.0, 0.0]))
    assert (counts.n.tolist(), counts.reward_min.tolist()) == ([3], [0.0])


def test_a_memory_limit_is_respected_by_the_engine(tmp_path, logs):
    logs.save(tmp_path / "a.parquet")
    opened = cs.open_logs(tmp_path / "a.parquet", memory_limit="300MB")
    limit = opened.rows.get_backend().raw_sql("select current_setting('memory_limit')").fetchall()[0][0]
    assert limit.startswith("286")  # MiB
    assert by_label(cs.count(opened)) == counted(logs)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda logs: cs.count(logs, states=[(1, 1)]), r"no state \(3, 1\)|no state"),
        (lambda logs: cs.count(logs, actions=["up"]), "no action"),
        (lambda logs: cs.count(logs) + cs.count(logs, step_indexed=True), "with the same step_indexed"),
    ],
)
def test_what_cannot_be_counted_is_refused(logs, call, message):
    with pytest.raises(CausalShapingError, match=message):
        call(logs)


def test_population_masses_are_not_mixed_with_samples(logs):
    world = cs.load_world("lavacross-maze")
    masses = world.model.observe(world.demonstrators["better"], "better")
    with pytest.raises(CausalShapingError, match="mean different things"):
        masses + cs.count(logs)
    with pytest.raises(CausalShapingError, match="a source in common"):
        masses + masses
