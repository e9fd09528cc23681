"""All of the theory for one world, as people and programs get it."""

import math

import pytest

import causal_shaping as cs
from studies.paper.theory.examination import examine, usual_potentials
from studies.paper.theory.regret import printed_regret_bound, regret_bound
from studies.paper.theory.shaped import Shaped


@pytest.fixture(scope="module")
def easy():
    return examine(cs.load_world("lavacross-easy"), episodes=200, seeds=4)


def test_its_numbers_are_those_of_the_functions(easy):
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    moved, scale = shaped.nonnegative()
    joint = easy.potentials[2]
    assert joint.bound == regret_bound(shaped, 200)
    assert joint.printed_bound.total == pytest.approx(printed_regret_bound(moved, 200).total / scale)
    assert joint.tightness == pytest.approx(joint.bound.total / joint.regret[0])
    assert joint.regret[0] < joint.bound.trivial < joint.bound.total
    assert 0 < joint.visits_over_bound < 1


def test_potentials_below_the_optimum_get_no_bound():
    found = examine(cs.load_world("lavacross-maze"), episodes=50, seeds=2)
    zero = found.potentials[0]
    assert zero.bound is None
    assert zero.settled is None
    assert math.isnan(zero.tightness)
