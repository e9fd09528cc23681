"""Behaviour values: the mean of what followed, and how confounding bends it."""

import numpy as np
import pytest

import causal_shaping as cs
from studies.paper.baselines import behaviour_potential, behaviour_values


def by_hand(logs):
    """Every visit's return to the end of its episode, row by row."""
    found = {}
    for row in range(len(logs)):
        total, at = 0.0, row
        while at < len(logs) and logs.episode[at] == logs.episode[row]:
            total += logs.reward[at]
            at += 1
        found.setdefault(int(logs.state[row]), []).append(total)
    return {state: np.mean(returns) for state, returns in found.items()}


@pytest.mark.parametrize("name", ["lavacross-maze", "walking-robot"])
def test_a_behaviour_value_is_the_mean_return_to_the_end_of_the_episode(name):
    world = cs.load_world(name)
    logs = world.collect(next(iter(world.demonstrators)), 700)
    values, expected = behaviour_values(logs), by_hand(logs)
    for state in range(len(world.states)):
        if state in expected:
            assert values[state] == pytest.approx(expected[state])
        else:
            assert np.isnan(values[state])


def test_potentials_take_the_smallest_largest_or_mean_over_sources_that_saw_a_state():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 300) for name in world.demonstrators]
    table = np.array([behaviour_values(one) for one in logs])
    for combine, how in (("min", np.nanmin), ("max", np.nanmax), ("avg", np.nanmean)):
        phi = behaviour_potential(logs, combine=combine)
        seen = ~np.isnan(table).all(axis=0)
        np.testing.assert_allclose(phi.values[seen], how(table[:, seen], axis=0))
        assert (phi.values[~seen] == 0).all()
        assert combine in phi.origin
