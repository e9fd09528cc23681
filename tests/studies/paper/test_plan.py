"""What the study runs."""

from collections import Counter

import forked
import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError
from studies.paper import plan as plans
from studies.paper.materials import Materials
from studies.paper.plan import (
    BLIND,
    BUDGETS,
    FACTORS,
    FEWER_SEEDS,
    METHODS,
    POTENTIAL,
    POTENTIALS,
    PRINTED,
    RUN,
    Plan,
    ablation_name,
    is_deep,
    parse_only,
)


def units_of(plan):
    return [unit for job in plan.jobs() for unit in job.units]


def test_every_unit_is_run_once_and_has_a_file_of_its_own():
    units = units_of(Plan(seeds=2))
    assert max(Counter(units).values()) == 1
    assert len({unit.path for unit in units}) == len(units)


def test_the_whole_plan_holds_every_method_in_every_world():
    runs = {(unit.world, unit.coins, unit.name) for unit in units_of(Plan(seeds=1)) if unit.kind == RUN}
    assert {name for _, _, name in runs} == set(METHODS)
    for name, method in METHODS.items():
        assert {world for world, coins, other in runs if (coins, other) == ("standing", name)} == set(method.worlds)
    once = {world for world, coins, _ in runs if coins == "once"}
    assert once == {"lavacross-hard", "lavacross-maze", "lavacross-maze-fewer-coins"}  # the others have no coins
    assert not {name for _, coins, name in runs if coins == "once" and is_deep(METHODS[name])}


def test_every_potential_that_shapes_is_described_too():
    units = units_of(Plan(seeds=1))
    described = {(unit.world, unit.coins, unit.name) for unit in units if unit.kind == POTENTIAL}
    for unit in units:
        if unit.kind == RUN and METHODS[unit.name].potential in POTENTIALS:
            assert (unit.world, unit.coins, METHODS[unit.name].potential) in described
    assert ("lavacross-easy", "standing", "alone-good") in described


def test_bcq_sampling_and_the_ablation_run_the_first_seeds_only():
    units = units_of(Plan(seeds=FEWER_SEEDS + 3, only={"world": ["lavacross-easy"]}))
    for name, method in METHODS.items():
        fewer = is_deep(method) or method.learner == "posterior" or method.group == "ablation"
        seeds = {unit.seed for unit in units if (unit.kind, unit.name) == (RUN, name)}
        if "lavacross-easy" in method.worlds:
            assert seeds == set(range(FEWER_SEEDS if fewer else FEWER_SEEDS + 3))
    assert not [unit for unit in units_of(Plan(seeds=1, deep=False)) if "bcq" in unit.name]


def test_only_chooses():
    only = parse_only(["world=lavacross-hard,windy-empty", "method=zero", "coins=standing", "seed=1"])
    units = units_of(Plan(seeds=3, only=only))
    assert {(unit.world, unit.kind, unit.name, unit.seed) for unit in units} == {
        (world, kind, "zero", 1) for world in ("lavacross-hard", "windy-empty") for kind in (RUN, POTENTIAL)
    }


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


def test_settings_change_with_what_is_run(monkeypatch):
    before = Plan().settings()
    assert Plan(seeds=3, only={"seed": ["1"]}).settings() == before
    assert Plan(quick=True).settings() != before
    assert Plan(counted_in="episodes").settings() != before
    for name, other in (("BUDGETS", {**BUDGETS, "windy-empty": 1}), ("RAREST", 0.3), ("VALUE_MAX", 1.0)):
        with monkeypatch.context() as patched:
            patched.setattr(plans, name, other)
            assert Plan().settings() != before
    script = "from studies.paper import Plan; print(Plan().settings()['methods'])"
    other_process = forked.run(script)
    assert other_process.stdout.strip() == before["methods"]


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


def test_a_randomised_source_is_the_worlds_own_or_an_added_one():
    own = Materials(cs.load_world("lavacross-easy"), 5_000, seed=0)
    assert own.counts_of("joint-trial") is own.counts
    assert own.potential("joint-trial").confounding["random"] == 1.0
    added = Materials(cs.load_world("lavacross-maze"), 5_000, seed=0)
    assert added.counts_of("joint-trial").sources == ("better", "safe", "bad", "trial")
    assert dict(added.potential("joint-trial").confounding) == {
        "better": np.inf, "safe": np.inf, "bad": np.inf, "trial": 1.0,
    }  # fmt: skip
    assert added.counts_of("joint").sources == ("better", "safe", "bad")


def test_printed_ratios_stand_in_the_papers_order():
    assert PRINTED["causal-bound"] == {
        "windy-empty": 0.76, "lavacross-easy": 0.70, "lavacross-hard": 0.81, "lavacross-maze": 0.90,
    }  # fmt: skip
    assert PRINTED["shaping-bcq"]["lavacross-maze"] == 0.03
    assert set(PRINTED) == {method.name for method in plans.PAPER_METHODS}


def test_a_posterior_is_of_all_sources_or_of_those_that_look_at_the_wind():
    for name, blind in BLIND.items():
        world = cs.load_world(name)
        beta = world.demonstrators[blind]
        np.testing.assert_allclose(beta, beta[:, :1].repeat(beta.shape[1], axis=1))  # whatever the wind
    materials = Materials(cs.load_world("lavacross-easy"), 500, seed=0)
    assert materials.belief("posterior").counts.sources == ("good", "bad", "random")
    assert materials.belief("posterior-confounded").counts.sources == ("good", "bad")
