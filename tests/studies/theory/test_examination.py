"""All of the theory for one world, as people and programs get it."""

import pytest

import causal_shaping as cs
from studies.paper.theory.examination import examine, usual_potentials
from studies.paper.theory.regret import printed_regret_bound, regret_bound
from studies.paper.theory.shaped import Shaped


def test_its_numbers_are_those_of_the_functions():
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    moved, scale = shaped.nonnegative()
    joint = examine(world, episodes=200, seeds=4).potentials[2]
    bound = regret_bound(shaped, 200)
    assert joint["bound"] == bound.total
    assert joint["printed_bound"] == pytest.approx(printed_regret_bound(moved, 200).total / scale)
    assert joint["regret_low"] <= joint["regret"] <= joint["regret_high"] < bound.trivial < bound.total
    assert 0 < joint["visits_over_bound"] < 1


def test_potentials_below_the_optimum_get_no_bound():
    zero = examine(cs.load_world("lavacross-maze"), episodes=50, seeds=2).potentials[0]
    assert zero["bound"] is None
    assert zero["settled"] is None
    assert not zero["conservatively_optimistic"]
