"""Rewards in many bins: sources that did not watch the same world are found by rewards divided in two."""

import numpy as np
import pytest
from handmade import counts_of_entries
from scipy.optimize import brentq

import causal_shaping as cs
from causal_shaping.bounds.agreement import excess_masses
from causal_shaping.errors import ContradictionError

EDGES = tuple(np.linspace(0, 1, 33)[1:-1])


def counts_of(*sources):
    """Return counts of one state: for each source, which rows took x, and their rewards."""
    space = cs.Space(["here"], ["x", "other"], reward_bins=cs.Bins(edges=EDGES))
    source = np.repeat(range(len(sources)), [len(reward) for _, reward in sources])
    taken, reward = (np.concatenate(part) for part in zip(*sources, strict=True))
    columns = {"source": source, "action": np.where(taken, 0, 1), "next_state": -1}
    names = [f"source {i}" for i in range(len(sources))]
    return counts_of_entries(space, np.ones(len(reward)), reward, **columns, sources=names)


def test_two_populations_are_told_apart_although_rewards_are_continuous():
    """As in LaLonde's data: both nearly always take x, and one earns little, the other much."""
    rng = np.random.default_rng(0)
    low = rng.random(260) < 0.9, rng.beta(1, 3, 260)
    high = rng.random(5000) < 0.95, rng.beta(3, 1, 5000)
    counts = counts_of(low, high)
    assert excess_masses(counts).p_value[0] < 1e-6
    for compute, bound in ((cs.value_ceilings, 1.0), (cs.value_floors, 0.0)):
        with pytest.raises(ContradictionError, match="did not watch the same world"):
            compute(counts, 1, bound, confidence=0.95)


def test_the_p_value_is_corrected_for_actions_edges_pairs_of_sources_and_kinds_of_tests():
    """One source always earns the least, one the most. A lower limit of n in n at alpha is alpha^(1 / n)."""
    counts = counts_of((np.full(40, True), np.full(40, 0.0)), (np.full(60, True), np.full(60, 0.99)))
    weight = np.array([40.0, 60.0]) ** -0.5
    share = weight / weight.sum()
    log_alpha = brentq(lambda log: np.exp((log + np.log(share)) / [40, 60]).sum() - 1, -200, 0)
    corrected = 2 * len(EDGES) * 2 * 2 * np.exp(log_alpha)
    np.testing.assert_allclose(excess_masses(counts).p_value, corrected, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(200, 2000), (300, 300)])
def test_sources_of_one_world_are_rarely_told_apart(sizes):
    """Both took x where it suited them, so that their masses add to 1 exactly: the worst case of the hypothesis."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(200):
        low, high = (rng.random(size) for size in sizes)
        counts = counts_of((low < 0.4, low), (high >= 0.4, high))
        found += (excess_masses(counts).p_value <= 0.05).any()
    assert found <= 16  # 10 expected at most; 17 or more of 200 happen twice in 100 times


def test_three_sources_and_states_in_another_order_give_the_same():
    rng = np.random.default_rng(2)
    sources = [(rng.random(400) < 0.9, rng.beta(a, b, 400)) for a, b in ((1, 3), (3, 1), (2, 2))]
    one = excess_masses(counts_of(*sources)).p_value
    two = excess_masses(counts_of(*sources[::-1])).p_value
    np.testing.assert_allclose(np.sort(one), np.sort(two), rtol=1e-6)


def test_a_source_that_is_declared_a_trial_is_held_to_it():
    """If both may be confounded, nothing contradicts; but a trial shows what x does, and the other shows otherwise."""
    rng = np.random.default_rng(3)
    trial = rng.random(400) < 0.5, rng.beta(1, 3, 400)
    other = rng.random(4000) < 0.7, rng.beta(3, 1, 4000)
    counts = counts_of(trial, other)
    cs.value_ceilings(counts, 1, 1.0, confidence=0.95)
    with pytest.raises(ContradictionError, match="with source 0 unconfounded"):
        cs.value_ceilings(counts, 1, 1.0, confidence=0.95, confounding={"source 0": 1.0})


def test_a_trial_of_the_same_world_is_rarely_contradicted():
    """The other source took x where rewards are high: with a trial of all rewards, masses add to 1 exactly."""
    rng, found = np.random.default_rng(4), 0
    for _ in range(150):
        low, high = rng.random(300), rng.random(2000)
        counts = counts_of((rng.random(300) < 0.5, low), (high >= 0.4, high))
        found += (excess_masses(counts, unconfounded=(0,)).p_value <= 0.05).any()
    assert found <= 13  # 7.5 expected at most; 14 or more of 150 happen twice in 100 times


def test_masses_of_a_population_are_not_tested():
    world = cs.load_world("walking-robot")
    counts = world.model.observe(next(iter(world.demonstrators.values())), source="a")
    with pytest.raises(cs.ArgumentError, match="The test is for samples"):
        excess_masses(counts)


def test_each_cell_has_the_p_value_that_it_has_alone_corrected_for_the_number_of_cells():
    rng = np.random.default_rng(2)
    parts = []
    for low, high in ((0.9, 0.95), (0.7, 0.9), (0.95, 0.8)):
        parts.append(
            [(rng.random(80) < low, 0.1 * rng.random(80)), (rng.random(90) < high, 0.9 + 0.1 * rng.random(90))]
        )
    alone = [counts_of(*part) for part in parts]
    columns = {name: np.concatenate([getattr(one, name) for one in alone]) for name in ("source", "action", "n")}
    columns |= {name: np.concatenate([getattr(one, name) for one in alone]) for name in ("next_state", "terminated")}
    for name in ("reward_sum", "reward_min", "reward_max"):
        columns[name] = np.concatenate([getattr(one, name) for one in alone])
    columns |= {"step": None, "state": np.repeat(range(3), [len(one.n) for one in alone])}
    space = cs.Space(["a", "b", "c"], ["x", "other"], reward_bins=cs.Bins(edges=EDGES))
    together = excess_masses(cs.Counts.combined(space, alone[0].sources, columns))
    by_state = together.p_value[np.argsort(together.cell)]
    np.testing.assert_allclose(by_state, [3 * excess_masses(one).p_value[0] for one in alone], rtol=1e-6)
