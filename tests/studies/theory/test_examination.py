"""All of the theory for one world, as people and programs get it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import causal_shaping as cs
from studies.paper.theory import (
    Shaped,
    examine,
    log_term,
    printed_regret_bound,
    proven_rule,
    q_ucb,
    regret_bound,
    useful_from,
    usual_potentials,
    watch,
)


@pytest.fixture(scope="module")
def easy():
    return examine(cs.load_world("lavacross-easy"), episodes=200, seeds=4)


def test_four_potentials_are_examined(easy):
    assert [one.name for one in easy.potentials] == ["zero", "paper", "joint", "V*"]
    assert all(one.optimism for one in easy.potentials)
    assert [one.settled for one in easy.potentials] == [262, 715, 2456, 2482]
    assert {one.suboptimal for one in easy.potentials} == {2482}
    assert {(one.in_sub_delta, one.pairs) for one in easy.potentials} == {(154, 154)}


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


def test_its_runs_are_those_of_the_learners(easy):
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    moved, scale = shaped.nonnegative()
    joint, seeds = easy.potentials[2], range(4)
    printed = [watch(moved, 200, seed=seed) for seed in seeds]
    ours = [watch(shaped, 200, seed=seed, learner=proven_rule(shaped, 200)) for seed in seeds]
    assert joint.printed_regret[0] == pytest.approx(np.mean([run.regret[-1] for run in printed]) / scale)
    assert easy.printed_smaller[0].regret == pytest.approx(joint.printed_regret[0])
    assert joint.regret[0] == easy.smaller[0].regret == pytest.approx(np.mean([run.regret[-1] for run in ours]))
    states = (~world.model.terminal).sum()
    limit = 9 * shaped.needed_span**2 * 20 * log_term(states, 5, 200 * 20, 0.1)
    margins, settled = shaped.margins(), (shaped.margins() > 0) & (shaped.gaps > 0)
    shares = [(run.visits[settled] / (np.floor(limit / margins[settled] ** 2) + 1)).max() for run in ours]
    assert joint.visits_over_bound == pytest.approx(max(shares))
    inside, highest = moved.pseudo_suboptimal(), moved.potential.max()
    printed_limit = 16 * 4**2 * highest**2 * 20 * log_term(len(world.states), 5, 200 * 20, 0.1) / moved.pair_gaps**2
    most = max((run.visits[:, inside] / printed_limit[inside]).max() for run in printed)
    assert joint.printed_visits_over_bound == pytest.approx(most)
    widest = max(max(run.value_deviation, run.value_excess, run.potential_excess) for run in ours)
    assert joint.needed_c == pytest.approx(widest / shaped.needed_span)


def test_its_bounds_speak_where_the_functions_say(easy):
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    moved, scale = shaped.nonnegative()
    joint = easy.potentials[2]
    assert joint.useful_from == useful_from(lambda k: regret_bound(shaped, k))
    assert joint.printed_useful_from == useful_from(lambda k: printed_regret_bound(moved, k))
    assert easy.q_ucb.total == pytest.approx(regret_bound(q_ucb(moved), 200, scale=20).total / scale)
    assert easy.value_span == shaped.span(shaped.values)
    assert easy.random_rewards
    robot = cs.load_world("walking-robot")
    spread = Shaped(robot.model, None, robot.horizon)
    found = examine(robot, {"zero": None}, episodes=5, seeds=1)
    assert found.value_span == spread.span(spread.values) > spread.span(spread.potential)


def test_rewards_are_random_only_if_noise_that_happens_moves_them(tmp_path):
    path = tmp_path / "calm.txt"
    path.write_text("#####\n#.LG#\n#..c#\n#####")
    calm, windy = ([0.0, 0.0, 0.0, 0.0, 1.0], [0.1, 0.1, 0.1, 0.1, 0.6])
    worlds = [cs.load_world(path, horizon=4, wind=wind) for wind in (calm, windy)]
    found = [examine(world, {"zero": None}, episodes=5, seeds=1) for world in worlds]
    assert [one.random_rewards for one in found] == [False, True]


def test_findings_say_what_breaks(easy):
    text = " ".join(easy.findings())
    assert "Rewards go down to -1.1" in text
    assert "Every regret bound is vacuous at 200 episodes" in text
    assert "optimism breaks (joint)" in text
    assert "applies to none of the sources" in text
    assert "held in at least 100% of the runs for every ceiling; 70% are guaranteed" in text
    half = replace(easy.potentials[2], held={"optimism": 0.5, "upper": 1.0})
    assert "at least 50% of the runs" in " ".join(replace(easy, potentials=(easy.potentials[3], half)).findings())
    held = {sweep.c: sweep.held["optimism"] for sweep in easy.smaller}
    assert held[1.0] == 1
    assert held[0.0] == 0


def test_potentials_below_the_optimum_get_no_bound():
    found = examine(cs.load_world("lavacross-maze"), episodes=50, seeds=2)
    zero = found.potentials[0]
    assert zero.bound is None
    assert zero.settled is None
    assert math.isnan(zero.tightness)
    assert "no theorem applies to them: zero, paper" in " ".join(found.findings())


def test_without_a_ceiling_nothing_is_guaranteed():
    world = cs.load_world("windy-empty")
    seen = []
    low = np.full(len(world.states), -5.0)
    found = examine(world, {"low": low}, episodes=5, seeds=2, progress=lambda *call: seen.append(call))
    assert "guaranteed" not in " ".join(found.findings())
    assert seen[0] == (0, 13, "potential low")
    assert [done for done, _, _ in seen] == list(range(14))


def test_a_potential_of_ones_own_is_examined():
    world = cs.load_world("windy-empty")
    found = examine(world, {"mine": np.full(len(world.states), 0.5)}, episodes=20, seeds=2)
    assert [one.name for one in found.potentials] == ["mine"]
    assert found.swept == "mine"
    with pytest.raises(cs.CausalShapingError, match="no potential"):
        examine(world, {})
