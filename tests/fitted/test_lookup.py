"""Values and the reach of logs in one walk over trees: what is far from logs is told, and nothing else changes."""

import numpy as np
import pytest

from causal_shaping.fitted._forest import NO_TREES, Reach, Surface, grow, joined, leaves_of
from causal_shaping.fitted._kernels import Lookup, look_up, look_up_all, pack

BEYOND = np.array([0.0, 70.0, 80.0, 90.0])


@pytest.fixture(scope="module")
def logged():
    """Points of a square with a hole in its middle."""
    points = np.random.default_rng(0).uniform(-1, 1, (8000, 2)).astype(np.float32)
    return points[np.abs(points).max(axis=1) > 0.4]


@pytest.fixture(scope="module")
def fits(logged):
    values = np.stack([logged[:, 0], logged[:, 0] + logged[:, 1]], axis=1).astype(float)
    return Surface.fit(logged[1000:], values[1000:], 5, seed=0), Reach.fit(logged[1000:], logged[:1000], seed=0)


@pytest.fixture(scope="module")
def packed(fits):
    surface, reach = fits
    trees, tests = surface.trees.roots, reach.trees.roots
    nodes = joined(surface.trees, reach.trees).nodes
    return pack(Lookup(trees, tests, reach.enough, nodes, surface.means, reach.boxes, BEYOND))


def looked_up(packed, points, h):
    found = np.empty(len(points))
    look_up_all(packed, np.asarray(points, dtype=np.float32), np.array([h]), found)
    return found


def test_a_hole_in_the_logs_and_what_is_outside_of_their_range_are_beyond(packed):
    far = [[0, 0], [0.1, -0.1], [1.6, 0], [0.7, -3], [5, 5]]
    assert (looked_up(packed, far, 0) == 90.0).all()


def test_logged_and_held_out_points_are_hardly_ever_beyond(packed, logged):
    found = looked_up(packed, logged, 0)
    assert np.mean(found == 90.0) < 0.005
    assert np.abs(found - logged.sum(axis=1))[found < 90.0].mean() < 0.05


def test_one_walk_gives_what_surface_and_reach_give(packed, fits):
    surface, reach = fits
    points = np.random.default_rng(1).uniform(-1.3, 1.3, (2000, 2)).astype(np.float32)
    beyond = reach.excludes(points)
    assert 0.1 < beyond.mean() < 0.9
    for h, column in ((0, 1), (1, 1), (2, 0)):  # 3, 2 and 1 steps left; values are known up to 2
        expected = np.where(beyond, BEYOND[3 - h], surface.at(points, column))
        assert (looked_up(packed, points, h) == expected).all()
        assert [look_up(packed, point, h) for point in points[:50]] == expected[:50].tolist()
    assert (looked_up(packed, points, 3) == 0).all()


def test_without_a_test_of_reach_all_points_have_values(fits):
    surface, reach = fits
    nodes = joined(surface.trees, NO_TREES).nodes
    found = pack(Lookup(surface.trees.roots, 0, 0, nodes, surface.means, reach.boxes, BEYOND))
    assert looked_up(found, [[0, 0], [5, 5]], 0).tolist() == surface.at(np.array([[0, 0], [5, 5]]), 1).tolist()


@pytest.mark.parametrize(("trees", "tests"), [(1, 3), (3, 1), (5, 6)])
def test_any_number_of_trees_is_walked(fits, trees, tests):
    points = np.random.default_rng(2).uniform(-1.3, 1.3, (500, 2)).astype(np.float32)
    seen = points[np.abs(points).max(axis=1) < 1]
    kept, means = grow(seen, np.stack([seen.sum(axis=1), seen[:, 0]], axis=1), trees, 2, seed=0)
    around, _ = grow(seen, seen, tests, 5, seed=1)
    leaves = leaves_of(around, seen).max() + 1
    boxes = np.random.default_rng(3).uniform(-1, 1, (leaves, 2, 2)).astype(np.float32)
    boxes.sort(axis=2)
    surface, reach = Surface(kept, means.astype(np.float32)), Reach(around, boxes)
    expected = np.where(reach.excludes(points), 90.0, surface.at(points, 1))
    nodes = joined(kept, around).nodes
    held = pack(Lookup(trees, tests, reach.enough, nodes, surface.means, boxes, BEYOND))
    assert (looked_up(held, points, 0) == expected).all()
    assert 0 < np.mean(expected == 90.0) < 1


def test_an_observation_that_holds_nan_has_none_and_one_of_another_size_is_told(packed):
    found = looked_up(packed, [[0.7, 0.7], [np.nan, 0.7], [0.7, np.nan]], 0)
    assert np.isnan(found).tolist() == [False, True, True]
    assert np.isnan(look_up(packed, np.array([0.7, np.nan], dtype=np.float32), 0))
    assert np.isnan(look_up(packed, np.zeros(3, dtype=np.float32), 0))
    assert not look_up_all(packed, np.zeros((2, 3), dtype=np.float32), np.zeros(1, dtype=np.int64), np.empty(2))
