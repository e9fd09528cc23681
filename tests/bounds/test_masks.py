"""Conclusions from ceilings and floors together: only where they are proven, and never from bounds that cross."""

import math

import numpy as np
import pytest
from handmade import one_step_logs

import causal_shaping as cs
from causal_shaping.bounds.masks import refuse_crossing
from causal_shaping.errors import ArgumentError, ContradictionError

pytestmark = pytest.mark.filterwarnings("ignore:Only 'd0' is there")


def equal_actions(seed, actions=12, rows=60):
    """Rows of one state in which every action pays 0 or 1 with equal chances, at random."""
    rng = np.random.default_rng(seed)
    space = cs.Space(["s", "end"], range(actions), terminal=["end"])
    chosen, paid = rng.integers(actions, size=rows), rng.integers(2, size=rows).astype(float)
    return cs.count(one_step_logs(space, paid, action=chosen))


def bounds(counts, **options):
    options = {"confounding": 1.0, **options}
    return cs.value_ceilings(counts, 1, 1.0, **options), cs.value_floors(counts, 1, 0.0, **options)


def test_plug_in_bounds_mask_no_action():
    """60 rows of 12 equal actions, Gamma = 1: plug-in estimates would mask all but one of them."""
    counts = equal_actions(0)
    with pytest.raises(cs.ArgumentError, match=r"prove no action suboptimal.*Set confidence to 0.95"):
        cs.provably_suboptimal(*bounds(counts))
    with pytest.raises(cs.ArgumentError, match=r"Set confidence to 0\.95"):
        cs.sensitivity(counts, 1, 1.0, 0.0)
    ceilings, floors = bounds(counts)
    with pytest.warns(cs.AssumptionWarning, match="a masked action may be best") as told:
        mask = cs.provably_suboptimal(ceilings, floors, plug_in=True)
    assert told[0].filename == __file__
    assert mask[0, 0].sum() >= 9
    assert not mask[0, 1].any()  # the end
    with pytest.raises(cs.ArgumentError, match="prove no action suboptimal"):  # one of the two is enough
        cs.provably_suboptimal(bounds(counts)[0], bounds(counts, confidence=0.95)[1])


def test_a_mask_with_confidence_is_hardly_ever_wrong():
    wrong = sum(cs.provably_suboptimal(*bounds(equal_actions(s), confidence=0.95)).any() for s in range(40))
    assert wrong <= 2


def test_a_sensitivity_of_plug_in_estimates_is_marked(tmp_path):
    found = cs.sensitivity(equal_actions(0), 1, 1.0, 0.0, confounding=(1, math.inf), plug_in=True)
    assert found.plug_in
    assert "These are plug-in estimates" in found.summary()
    assert '"plug_in": true' in found.to_json()
    assert "plug-in" in repr(found)
    found.save(tmp_path / "gamma.parquet")
    assert cs.Sensitivity.load(tmp_path / "gamma.parquet").plug_in
    assert not cs.sensitivity(equal_actions(0), 1, 1.0, 0.0, confounding=(1,), confidence=0.95).plug_in


def paid(reward):
    space = cs.Space(["a", "end"], ["go"])
    return cs.count(one_step_logs(space, [reward]))


def test_a_sensitivity_says_at_which_confounding_bounds_cross():
    """Means of 0.3 and 0.4 in one bin: without confounding the ceiling is the smaller, the floor the larger one."""
    space, rows, bins = cs.Space(["a", "end"], ["go", "stay"]), np.arange(10), cs.Bins(edges=(0.5,))
    parts = [
        cs.count(one_step_logs(space, 0 * rows + mean, name, action=rows % 2), reward_bins=bins)
        for name, mean in (("d0", 0.3), ("d1", 0.4))
    ]
    found = cs.sensitivity(parts, 1, 1.0, 0.0, confounding=(1, math.inf), plug_in=True)
    assert "lies below its floor, 0.3 against 0.4" in found.contradictions[0]
    assert found.contradictions[1] is None


def test_a_floor_above_its_ceiling_is_a_contradiction_wherever_both_are_shown(tmp_path):
    ceilings = cs.value_ceilings(paid(0.0), 1, 0.0, support="any")
    floors = cs.value_floors(paid(1.0), 1, 1.0, support="any")
    for conclude in (
        lambda: refuse_crossing(ceilings, floors),
        lambda: cs.provably_suboptimal(ceilings, floors, plug_in=True),
        lambda: ceilings.save_html(tmp_path / "page.html", floors=floors),
    ):
        with pytest.raises(ContradictionError, match="of 'a' at step 0 lies below its floor, 0 against 1") as error:
            conclude()
        for why in ("sampling error", "more confounded than declared", "the same world", "lasts over the episode"):
            assert why in str(error.value)


def opposed(rows=18):
    """Two sources that always take x; after it one always sees 1, the other 0."""
    space = cs.Space(["a", "end"], ["x"])
    return cs.count([one_step_logs(space, [r] * rows, f"pays {r}") for r in (0, 1)], step_indexed=True)


def test_limits_that_prove_more_than_there_is_void_the_guarantee_and_what_follows_from_it():
    counts = opposed()
    with pytest.warns(cs.AssumptionWarning, match="limits that hold at this confidence prove more mass than 1"):
        ceilings = cs.value_ceilings(counts, 1, 1.0, confidence=0.95, support="any")
    with pytest.warns(cs.AssumptionWarning):
        floors = cs.value_floors(counts, 1, 0.0, confidence=0.95, support="any")
    assert not ceilings.guaranteed
    assert not floors.guaranteed
    with pytest.raises(ArgumentError, match="not guaranteed prove no action suboptimal: the sources prove"):
        cs.provably_suboptimal(ceilings, floors)
    found = cs.sensitivity(counts, 1, 1.0, 0.0, confidence=0.95, support="any", confounding=(math.inf,))
    assert found.caveats == ceilings.caveats
    assert f"Not guaranteed: {ceilings.caveats[0]}" in found.summary()
