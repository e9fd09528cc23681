"""The paper's worlds against the reference numbers, and the rules of a step."""

import copy
import pickle
from functools import partial
from pathlib import Path

import grid_rules as rules
import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError
from causal_shaping.worlds.grid import ACTIONS, WINDS, GridMap, walk

GRIDS = cs.list_worlds()[1:]


def value_of(world, best, *label):
    return best.values[world.space.state_position(label)]


def test_optimal_values_of_the_walking_robot():
    world = cs.load_world("walking-robot")
    best = world.model.optimum()
    stable = [value_of(world, best, place, 1) for place in range(11)]
    unstable = [value_of(world, best, place, 0) for place in range(11)]
    np.testing.assert_allclose(stable, [5.5, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0], atol=1e-9)
    np.testing.assert_allclose(unstable, [5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 0, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("windy-empty", -0.5342),
        ("lavacross-easy", -0.4588),
        ("lavacross-hard", -0.5213),
        ("lavacross-maze", -0.5567),
        ("lavacross-maze-fewer-coins", -0.6786),
    ],
)
def test_mean_optimal_value_over_free_and_coin_cells(name, mean):
    world = cs.load_world(name)
    assert world.model.optimum().values @ world.model.start == pytest.approx(mean, abs=5e-5)


@pytest.mark.parametrize("name", cs.list_worlds())
def test_the_stationary_optimum_is_two_things_at_once(name):
    """It solves the linear system of its own greedy policy, and it is where long horizons lead."""
    model = cs.load_world(name).model
    best = model.optimum()
    np.testing.assert_allclose(model.evaluate(best.greedy()).values, best.values, atol=1e-9)
    np.testing.assert_allclose(model.optimum(horizon=2000).values[0], best.values, atol=1e-9)


# Rules of a step -----------------------------------------------------------------------------------

ROOM = GridMap.parse("#######\n#.....#\n#.....#\n#..c.L#\n#....G#\n#######")


@pytest.mark.parametrize(
    ("cell", "action", "wind", "ends", "entered"),
    [
        ((2, 2), "still", "east", (2, 2), []),
        ((2, 2), "right", "none", (3, 2), [(3, 2)]),
        ((2, 2), "right", "east", (4, 2), [(3, 2), (4, 2)]),
        ((2, 2), "right", "west", (2, 2), []),
        ((2, 2), "right", "south", (3, 3), [(3, 2), (3, 3)]),
        ((2, 2), "down", "east", (3, 3), [(2, 3), (3, 3)]),
        ((1, 1), "left", "south", (1, 2), [(1, 2)]),  # a wall blocks its own cell only
        ((1, 1), "down", "west", (1, 2), [(1, 2)]),
        ((1, 1), "up", "north", (1, 1), []),
        ((4, 3), "right", "south", (5, 3), [(5, 3)]),  # lava ends the path
        ((5, 2), "down", "south", (5, 3), [(5, 3)]),
        ((4, 4), "right", "north", (5, 4), [(5, 4)]),  # so does the goal
    ],
)
def test_a_step_walks_cell_by_cell(cell, action, wind, ends, entered):
    assert walk(ROOM, cell, action, wind) == (ends, entered)


@pytest.mark.parametrize(
    ("cell", "action", "wind", "reward"),
    [
        ((2, 2), "right", "none", -0.1),
        ((2, 3), "right", "none", 0.1),
        ((2, 3), "right", "east", 0.1),  # over the coin and on
        ((3, 3), "still", "none", -0.1),  # standing on a coin enters no cell
        ((4, 3), "right", "none", -1.1),
        ((4, 4), "right", "none", -0.1),
    ],
)
def test_a_step_is_paid_for_the_cells_it_enters(tmp_path, cell, action, wind, reward):
    path = tmp_path / "room.txt"
    path.write_text(str(ROOM))
    world = cs.load_world(path)
    where = (world.space.state_position(cell), ACTIONS.index(action), WINDS.index(wind))
    assert world.model.reward[where] == reward


def test_two_coins_pay_once_each(tmp_path):
    path = tmp_path / "coins.txt"
    path.write_text("######\n#.cc.#\n######")
    for coins, back in (("standing", 0.3), ("once", -0.1)):
        model = cs.load_world(path, coins=coins).model
        first = (model.space.state_position((1, 1) if coins == "standing" else (1, 1, 3)), 3, 0)
        assert model.reward[first] == 0.3
        assert model.states[model.next_state[first]] == ((3, 1) if coins == "standing" else (3, 1, 0))
        here = model.space.state_position((4, 1) if coins == "standing" else (4, 1, 0))
        assert model.reward[here, 2, 2] == back


@pytest.mark.parametrize("name", GRIDS)
def test_coins_that_pay_once_never_raise_the_optimum(name):
    standing, once = (cs.load_world(name, coins=coins) for coins in ("standing", "once"))
    left = 2 ** len(once.grid.coins) - 1
    ceiling, values = standing.model.optimum(), once.model.optimum()
    for cell in once.grid.starts:
        assert value_of(once, values, *cell, left) <= value_of(standing, ceiling, *cell) + 1e-9
    assert {label[:2] for label in once.states} <= set(standing.states)


def test_start_is_uniform_over_free_and_coin_cells():
    world = cs.load_world("lavacross-maze")
    starts = [label for label, p in zip(world.states, world.model.start, strict=True) if p > 0]
    assert set(starts) == set(world.grid.where(".c"))
    assert np.unique(world.model.start).tolist() == [0.0, 1 / len(starts)]


# Winds and demonstrators ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRIDS)
def test_winds_are_those_that_are_worded(name):
    world = cs.load_world(name)
    for x, y in world.grid.starts:
        assert world.model.noise[world.state_at(x, y)].tolist() == list(rules.WINDS[name](x, y)), (x, y)


@pytest.mark.parametrize(("name", "demonstrator"), rules.RULES)
def test_demonstrators_follow_their_worded_rules_in_every_cell(name, demonstrator):
    world = cs.load_world(name)
    table = world.demonstrators[demonstrator]
    for x, y in world.grid.starts:
        for wind in WINDS:
            chance = table[world.state_at(x, y), WINDS.index(wind)]
            assert chance.sum() == pytest.approx(1.0)
            # what it does beyond acting at random, all of it equally likely
            beyond = {action for action, p in zip(ACTIONS, chance, strict=True) if p > chance.min() + 1e-12}
            worded = rules.RULES[name, demonstrator](x, y, wind)
            worded = {worded} if isinstance(worded, str) else set(worded)
            assert beyond == (worded if worded != set(rules.ANYTHING) else set()), (x, y, wind)
            assert len({p for p in chance.round(12) if p > chance.min() + 1e-12}) <= 1, (x, y, wind)


def test_every_demonstrator_has_a_worded_rule():
    expected = [(name, d) for name in GRIDS for d in cs.load_world(name).demonstrators if d != "random"]
    assert sorted(rules.RULES) == sorted(expected)


@pytest.mark.parametrize("name", GRIDS)
def test_demonstrators_act_at_random_as_often_as_stated(name):
    for demonstrator, table in cs.load_world(name).demonstrators.items():
        uniform = {"random": 1.0, "bad": 0.525 if name == "windy-empty" else 0.05}.get(demonstrator, 0.05)
        rule_and_random = table.max(axis=-1)
        assert table.min() == pytest.approx(uniform / 5)
        assert rule_and_random.max() == pytest.approx(0.2 if uniform == 1 else 1 - uniform + uniform / 5)


def test_the_robots_demonstrators_never_act_at_random():
    world = cs.load_world("walking-robot")
    for table in world.demonstrators.values():
        assert set(np.unique(table)) == {0.0, 1.0}


# One's own map -------------------------------------------------------------------------------------


def test_a_users_own_map_with_wind_and_demonstrators(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("#####\n#.cG#\n#####\n")
    world = cs.load_world(
        path,
        wind=lambda x, y: (0.5, 0, 0, 0, 0.5) if x == 1 else (0, 0, 0, 0, 1),
        horizon=7,
        demonstrators={"hasty": cs.Demonstrator(lambda x, y, wind: "right", random=0.0)},
    )
    assert world.horizon == 7
    assert world.states == ((1, 1), (2, 1), (3, 1))
    # From (1, 1), right: with wind over the coin into the goal, +0.1; without onto the coin, then -0.1.
    assert world.model.evaluate([3, 3, 3]).values.tolist() == pytest.approx([0.5 * 0.1 + 0.5 * (0.1 - 0.1), -0.1, 0])
    logs = world.collect("hasty", steps=50)
    assert set(logs.action) == {ACTIONS.index("right")}
    assert list(world.demonstrators) == ["random", "hasty"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("####\n#.x#\n####", "line 2, column 3: 'x' is not one of"),
        ("####\n#.G##\n####", "line 2, column 5: the line has 5 cells, but the first line has 4"),
        ("#####\n#.G#\n#####", "line 2, column 5: the line has 4 cells"),
        ("####\n#..\n####", "line 2, column 4: the line has 3 cells"),
        ("####\n...#\n####", "line 2, column 1: '.' at the edge"),
        ("#G##\n#..#\n####", "line 1, column 2: 'G' at the edge"),
        ("####\n#LG#\n####", "no free cell to start in"),
        ("", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_a_bad_map_is_refused_with_line_and_column(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(CausalShapingError, match=message):
        cs.load_world(path)


easy = partial(cs.load_world, "lavacross-easy")


def obeying(answer):
    return cs.Demonstrator(lambda x, y, wind: answer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cs.load_world("lavacross-eazy"), "Did you mean 'lavacross-easy'"),
        (lambda: easy(coins="twice"), "coins is 'twice'; use 'standing' or 'once'"),
        (lambda: easy(horizon=0), "horizon is 0"),
        (lambda: easy(wind=(1, 0, 0)), r"wind at cell \(1, 1\) is \(1, 0, 0\)"),
        (lambda: easy(wind=(1, 1, 0, 0, -1)), "must be 5 probabilities"),
        (lambda: easy(demonstrators={"a": obeying("jump")}), "'jump'"),
        (lambda: easy(demonstrators={"a": obeying({"up": 0.5})}), r"the sum of beta\[0, 0\] is 0.525"),
        (lambda: easy(demonstrators={"a": obeying(())}), "no action"),
        (lambda: easy(demonstrators={"a": lambda x, y, w: "up"}), "wrap its rule"),
        (lambda: easy(wind=5), "must be 5 probabilities"),
        (lambda: easy(wind=lambda x, y: None), r"wind at cell \(1, 1\) is None"),
        (lambda: easy(horizon=2.5), "horizon is 2.5; it must be a whole number"),
        (lambda: easy().collect("good", 1e4), "steps is 10000.0; it must be a whole number"),
        (lambda: easy().collect("good", 9, seed=-1), "seed is -1; it must be at least 0"),
        (lambda: easy().collect("good", 10**15), "needs about 120,000,000 GB of memory"),
        (lambda: cs.load_world("walking-robot", coins="once"), "only horizon can be set"),
        (lambda: easy().collect("nobody", 10), "no demonstrator 'nobody'. It has good"),
        (lambda: easy().collect("good", 0), "steps is 0"),
        (lambda: easy().collect(np.ones((49, 5, 5)) / 5, 9), "pass source="),
        (lambda: easy().collect(np.ones((49, 5, 5)), 9, source="a"), "the sum of beta"),
    ],
)
def test_bad_arguments_are_answered_with_an_error(call, message):
    with pytest.raises(CausalShapingError, match=message):
        call()


def test_a_map_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "map.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CausalShapingError, match="cannot be read as a map"):
        cs.load_world(path)


def test_a_path_is_a_file_even_if_it_is_called_like_a_world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("windy-empty").write_text("####\n#.G#\n####")
    assert len(cs.load_world(Path("windy-empty")).states) == 2
    assert len(cs.load_world("windy-empty").states) == 36
    with pytest.raises(CausalShapingError, match="no map file of that name"):
        cs.load_world(Path("lavacross-easy"))


def test_a_map_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "map.txt"
    path.write_text("####\n#.G#\n####", encoding="utf-8-sig")
    assert len(cs.load_world(path).states) == 2


def test_worlds_and_logs_can_be_pickled_and_copied():
    """Other processes get them by pickle; nothing is ever unpickled from a file."""
    world = cs.load_world("lavacross-hard", coins="once")
    logs = world.collect("good", 200)
    for twin in (pickle.loads(pickle.dumps(world)), copy.deepcopy(world)):
        assert twin.collect("good", 200).checksum == logs.checksum
    assert pickle.loads(pickle.dumps(logs)).checksum == logs.checksum
