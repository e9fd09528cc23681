"""What the study runs."""

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError
from studies.paper import plan as plans
from studies.paper.materials import Materials
from studies.paper.plan import (
    FACTORS,
    METHODS,
    PRINTED,
    RUN,
    Plan,
    ablation_name,
    is_deep,
    parse_only,
)


def units_of(plan):
    return [unit for job in plan.jobs() for unit in job.units]


def test_the_whole_plan_holds_every_method_in_every_world():
    runs = {(unit.world, unit.coins, unit.name) for unit in units_of(Plan(seeds=1)) if unit.kind == RUN}
    assert {name for _, _, name in runs} == set(METHODS)
    for name in METHODS:
        assert {world for world, coins, other in runs if (coins, other) == ("standing", name)} == set(plans.WORLDS)
    once = {world for world, coins, _ in runs if coins == "once"}
    assert once == {"lavacross-hard", "lavacross-maze", "lavacross-maze-fewer-coins"}  # the others have no coins
    assert not {name for _, coins, name in runs if coins == "once" and is_deep(METHODS[name])}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Plan(only={"world": ["mars"]}), "no world 'mars'.*windy-empty"),
        (lambda: Plan(only={"methods": ["zero"]}), "--only knows world, method, coins, seed, not 'methods'"),
        (lambda: Plan(seeds=2, only={"seed": ["2"]}), "no seed '2'"),
        (lambda: Plan(seeds=0), "seeds"),
        (lambda: Plan(counted_in="hours"), "counted_in is 'hours'; use 'steps' or 'episodes'"),
        (lambda: parse_only(["zero"]), "world=NAME"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(CausalShapingError, match=message):
        make()


def test_the_ablation_begins_with_q_ucb_and_holds_the_printed_method():
    world = cs.load_world("lavacross-hard")
    materials = Materials(world, 20_000, seed=5)

    def regret(name):
        method = METHODS[name]
        potential = None if method.potential is None else materials.potential(method.potential)
        return cs.train(world, potential, learner=method.learner, steps=3_000, seed=5, **method.changes).step_regret

    first = ablation_name(*(levels[0] for levels in FACTORS.values()))
    assert np.array_equal(regret(first), regret("no-shaping"))
    printed = ablation_name("zero", "phi-max", "potential", "paper")
    assert np.array_equal(regret(printed), regret("causal-bound"))
    assert np.array_equal(regret(ablation_name("zero", "phi-max", "potential", "zero")), regret("zero"))


def test_printed_ratios_stand_in_the_papers_order():
    assert PRINTED["causal-bound"] == {
        "windy-empty": 0.76, "lavacross-easy": 0.70, "lavacross-hard": 0.81, "lavacross-maze": 0.90,
    }  # fmt: skip
    assert PRINTED["shaping-bcq"]["lavacross-maze"] == 0.03
    assert set(PRINTED) == {method.name for method in plans.PAPER_METHODS}
