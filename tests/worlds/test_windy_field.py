"""The windy field against the grid world that it is made from."""

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.worlds.dynamics import pick_rows
from causal_shaping.worlds.grid import ACTIONS, WINDS
from causal_shaping.worlds.published import GRID_WORLDS

GRIDS = tuple(GRID_WORLDS)


@pytest.mark.parametrize("name", GRIDS)
def test_without_noise_the_centres_of_cells_walk_as_in_the_grid_world(name):
    world, field = cs.load_world(name), cs.WindyField(map=name, noise_sd=0.0)
    model = world.model
    s, x, u = (part.ravel() for part in np.indices(model.reward.shape))
    keep = ~model.terminal[s]
    s, x, u = s[keep], x[keep], u[keep]
    places = np.array(world.states, dtype=np.float32)
    moved = field.step(places[s], x, u, np.full((len(s), 2), 0.5))
    after = model.next_state[s, x, u]
    assert np.array_equal(moved.terminated, model.terminal[after])
    assert np.allclose(moved.reward, model.reward[s, x, u])
    free = ~moved.terminated
    bumped = np.abs(moved.states - places[after]).max(axis=1) > 1e-6  # a wall cuts a leg at the cell's edge
    assert np.allclose(np.abs(moved.states - places[after])[free & bumped].max(axis=1), 0.5, atol=1e-6)
    assert bumped.mean() < 0.5
    assert np.array_equal(np.floor(moved.states[free] + 0.5), places[after][free])


@pytest.mark.parametrize("name", GRIDS)
def test_wind_demonstrators_and_horizon_are_those_of_the_cell(name):
    world, field = cs.load_world(name), cs.WindyField(map=name)
    places = np.array(world.states, dtype=np.float32)
    places += np.random.default_rng(0).uniform(-0.5, 0.499, places.shape).astype(np.float32)
    free = ~world.model.terminal
    assert field.horizon == world.horizon
    assert np.array_equal(field.noise(places)[free], world.model.noise[free])
    assert tuple(field.demonstrators) == tuple(world.demonstrators)
    for demonstrator, beta in world.demonstrators.items():
        assert np.array_equal(field.demonstrators[demonstrator](places)[free], beta[free])


def test_episodes_start_uniformly_in_the_start_cells():
    field = cs.load_world("windy-field")
    starts = field.start(np.random.default_rng(0).random((200_000, 3)))
    cells, counts = np.unique(np.floor(starts + 0.5), axis=0, return_counts=True)
    assert {tuple(cell) for cell in cells.astype(int).tolist()} == set(field.grid.starts)
    assert np.abs(counts / 200_000 - 1 / len(cells)).max() < 0.0015
    inside = starts - np.floor(starts + 0.5)
    assert np.abs(inside.mean(axis=0)).max() < 0.003
    assert inside.std() == pytest.approx(np.sqrt(1 / 12), abs=0.003)


def one_step(field, place, action, wind, draws=(0.5, 0.5)):
    moved = field.step(
        np.array([place], np.float32),
        np.array([ACTIONS.index(action)]),
        np.array([WINDS.index(wind)]),
        np.array([draws]),
    )
    return moved.states[0].tolist(), float(moved.reward[0]), bool(moved.terminated[0])


def test_a_path_is_checked_at_the_middle_and_the_end_of_each_leg():
    field = cs.WindyField(noise_sd=0.0)
    # over the lava's edge at x = 3.5: the end of the leg alone, its middle, and not at all
    assert one_step(field, (2.6, 4), "right", "none") == (pytest.approx((3.6, 4)), pytest.approx(-1.1), True)
    assert one_step(field, (3.4, 4), "right", "none") == (pytest.approx((3.9, 4)), pytest.approx(-1.1), True)
    assert one_step(field, (2.4, 4), "right", "none") == (pytest.approx((3.4, 4)), pytest.approx(-0.1), False)
    # the wind's leg: from (4, 1) south into the lava, found at its end
    assert one_step(field, (3.2, 1), "right", "south") == (pytest.approx((4.2, 1.5)), pytest.approx(-1.1), True)
    # the goal's area
    assert one_step(field, (5.7, 7.2), "right", "none") == (pytest.approx((6.7, 7.2)), pytest.approx(-0.1), True)
    # no move at all: still, and wind against
    assert one_step(field, (2, 3), "still", "south", (0.9, 0.9)) == (pytest.approx((2, 3)), pytest.approx(-0.1), False)
    assert one_step(field, (2, 3), "up", "south", (0.9, 0.9)) == (pytest.approx((2, 3)), pytest.approx(-0.1), False)
    # two steps with the wind, one across
    assert one_step(field, (2, 3), "down", "south")[0] == pytest.approx((2, 5))
    assert one_step(field, (2, 3), "right", "south")[0] == pytest.approx((3, 4))
    # walls around the map cut a leg, the wind's leg goes on
    assert one_step(field, (1.2, 3), "left", "south")[0] == pytest.approx((0.5, 4))


def test_a_wall_inside_the_map_blocks_a_leg():
    field = cs.WindyField(map="#####\n#...#\n#.#.#\n#..G#\n#####", noise_sd=0.0)
    assert tuple(field.demonstrators) == ("random",)
    assert one_step(field, (1.2, 2), "right", "none")[0] == pytest.approx((1.2, 2))
    assert one_step(field, (1.2, 2), "right", "south")[0] == pytest.approx((1.2, 3))


def test_noise_moves_a_step_by_its_standard_deviation():
    field = cs.WindyField(map="windy-empty", noise_sd=0.07, step_length=0.8)
    rng, steps = np.random.default_rng(0), 50_000
    moved = field.step(np.full((steps, 2), 3, np.float32), np.full(steps, 3), np.full(steps, 4), rng.random((steps, 2)))
    assert moved.states.mean(axis=0) == pytest.approx((3.8, 3), abs=0.002)
    assert moved.states.std(axis=0) == pytest.approx((0.07, 0.07), abs=0.001)


def test_variants_are_one_call():
    def greedy(x, y, wind):
        return "right" if wind == "none" else "still"

    field = cs.load_world(
        "windy-field",
        map="lavacross-hard",
        wind=(0.5, 0, 0, 0, 0.5),
        noise_sd=0.1,
        step_length=0.9,
        horizon=7,
        demonstrators={"mine": cs.Demonstrator(greedy)},
    )
    assert field.horizon == 7
    logs = field.collect("mine", 2000)
    assert logs.num_rows == 2000
    assert logs["step"].to_numpy().max() == 6
    assert field.reward_max == pytest.approx(0.7)  # four coins at the checked points


def test_the_logs_are_confounded():
    """After `right` at x = 4 in the lowest row of the upper edge, good goes only in calm: naive values mislead."""
    field = cs.load_world("windy-field")
    logs = field.collect("bad", 60_000, seed=0)
    x, y, action = (logs[name].to_numpy() for name in ("x", "y", "action"))
    # bad walks right along y = 1 in calm only; with the wind from the north the lava lies below x = 4
    rows = (np.abs(x - 3) < 0.5) & (np.abs(y - 1) < 0.5) & (action == ACTIONS.index("right"))
    assert rows.sum() > 300
    naive = logs["reward"].to_numpy()[rows].mean()
    states = np.stack([x[rows], y[rows]], axis=1)
    rng = np.random.default_rng(0)
    winds = pick_rows(field.noise(states), rng.random(len(states)))
    right = np.full(len(states), ACTIONS.index("right"))
    true = field.step(states, right, winds, rng.random((len(states), 2))).reward.mean()
    assert naive > true + 0.3
