"""Values within the reach of the logs, as one compiled look-up: what is far from the logs is told."""

import numpy as np
import pytest

from causal_shaping.fitted._forest import Reach, Surface, grow, leaves_of
from causal_shaping.fitted._kernels import look_up

pytest.importorskip("sklearn")

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


def looked_up(surface, reach, points, h, enough=None):
    """The values of points at a step: those of two columns, with 1 and with 2 steps left."""
    points, found = np.asarray(points, dtype=np.float32), np.empty(len(points))
    enough = reach.enough if enough is None else enough
    tests = (*reach.trees, reach.boxes, enough, BEYOND)
    look_up(*surface.trees, surface.means, 0, 2, *tests, points, points, np.array([h]), found)
    return found


def test_a_hole_in_the_logs_and_what_is_outside_of_their_range_are_beyond(fits):
    far = [[0, 0], [0.1, -0.1], [1.6, 0], [0.7, -3], [5, 5]]
    assert (looked_up(*fits, far, 0) == 90.0).all()


def test_a_look_up_gives_what_surface_and_reach_give(fits):
    surface, reach = fits
    points = np.random.default_rng(1).uniform(-1.3, 1.3, (2000, 2)).astype(np.float32)
    beyond = reach.excludes(points)
    assert 0.1 < beyond.mean() < 0.9
    for h, column in ((0, 1), (1, 1), (2, 0)):  # 3, 2 and 1 steps left; values are known up to 2
        expected = np.where(beyond, BEYOND[3 - h], surface.at(points, column)[:, 0])
        assert (looked_up(*fits, points, h) == expected).all()
    assert (looked_up(*fits, points, 3) == 0).all()


def test_without_a_test_of_reach_all_points_have_values(fits):
    points = np.array([[0, 0], [5, 5]])
    assert (looked_up(*fits, points, 0, enough=0) == fits[0].at(points, 1)[:, 0]).all()


@pytest.mark.parametrize(("trees", "tests"), [(1, 3), (3, 1), (5, 6)])
def test_any_number_of_trees_is_walked(trees, tests):
    points = np.random.default_rng(2).uniform(-1.3, 1.3, (500, 2)).astype(np.float32)
    seen = points[np.abs(points).max(axis=1) < 1]
    kept, means = grow(seen, np.stack([seen.sum(axis=1), seen[:, 0]], axis=1), trees, 2, seed=0)
    around, _ = grow(seen, seen, tests, 5, seed=1)
    leaves = leaves_of(around, seen).max() + 1
    boxes = np.random.default_rng(3).uniform(-1, 1, (leaves, 2, 2)).astype(np.float32)
    boxes.sort(axis=2)
    surface, reach = Surface(kept, means.astype(np.float32)), Reach(around, boxes)
    expected = np.where(reach.excludes(points), 90.0, surface.at(points, 1)[:, 0])
    assert (looked_up(surface, reach, points, 0) == expected).all()
    assert 0 < np.mean(expected == 90.0) < 1


def test_an_observation_that_holds_nan_has_no_value(fits):
    found = looked_up(*fits, [[0.7, 0.7], [np.nan, 0.7], [0.7, np.nan]], 0)
    assert np.isnan(found).tolist() == [False, True, True]
