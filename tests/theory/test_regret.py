"""Bounds of visits and regret: what they are, that runs obey them, and that the proof's tree does."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import cmdps
from runs import ABOVE, EPISODES, HORIZON, a_ceiling, leftovers, remembered, trees

import causal_shaping as cs
from causal_shaping.theory import (
    Shaped,
    log_term,
    printed_regret_bound,
    proven_rule,
    q_ucb,
    regret_bound,
    usual_potentials,
    visit_bound,
    watch,
)

RANDOM = cmdps(states=(2, 3), actions=(2, 2), noises=(2, 3))


def slow_bound(shaped, episodes, p, scale, visits=None):
    """The corrected bound in loops, sums of clipped terms by adding them up."""
    H, model = shaped.horizon, shaped.model
    alive = int((~model.terminal).sum())
    iota = log_term(alive, len(model.actions), episodes * H, p)
    growth = 1 + 1 / H
    total = 0.0
    for h, s, x in itertools.product(range(H), range(len(model.terminal)), range(len(model.actions))):
        if model.terminal[s]:
            continue
        gap = shaped.gaps[h, s, x]
        threshold = gap / (2 * H) if gap > 0 else shaped.smallest_gap / (2 * sum(growth**j for j in range(H)))
        margin = shaped.margins()[h, s, x]
        if visits is None:
            most = episodes
            if gap > 0 and margin > 0:
                most = min(most, math.floor(9 * scale**2 * H * iota / margin**2 + 1e-9) + 1)
        else:
            most = visits[h, s, x]
        inside = 0.0
        if most > 0:
            inside += shaped.potential[h, s] - shaped.best.q_values[h, s, x]
        for n in range(1, int(most)):
            width = 3 * scale * math.sqrt(H * iota / n)
            inside += width if width >= threshold else 0.0
        total += 2 * sum(growth ** (2 * j) for j in range(h + 1)) * inside
    return total


@settings(max_examples=40)
@given(RANDOM, ABOVE, st.floats(0, 0.2))
def test_the_bound_is_that_of_the_theorem_with_sums_in_closed_form(model, draws, more):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    scale = shaped.needed_span + more
    found = regret_bound(shaped, EPISODES, p=0.05, scale=scale)
    if math.isinf(shaped.smallest_gap):
        assert found.total == found.failure  # every action is optimal: there is no regret
        return
    slow = slow_bound(shaped, EPISODES, 0.05, scale)
    closed = found.total - found.failure
    assert slow <= closed + 1e-9
    # In closed form, sums over n are 2 sqrt(N) instead of 1 + 1 / sqrt(2) + ...: less than twice as much.
    assert closed <= 2 * slow + 1e-9
    assert found.failure == pytest.approx(3 * 0.05 * EPISODES * shaped.worst_regret)
    assert found.trivial == pytest.approx(EPISODES * shaped.worst_regret)
    assert found.vacuous == (found.total >= found.trivial)


@settings(max_examples=60)
@given(RANDOM, ABOVE, st.sampled_from([0.01, 0.1, 1.0]), st.integers(0, 1000))
def test_runs_obey_the_theorem_wherever_its_event_held(model, draws, c, seed):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    rule = proven_rule(shaped, EPISODES, c=c)
    found = watch(shaped, EPISODES, seed, rule)
    if found.held["optimism"] and found.held["upper"]:
        certificate = regret_bound(shaped, EPISODES, p=0.1, scale=c * shaped.needed_span, visits=found.visits)
        assert found.regret[-1] <= certificate.total + 1e-9


@settings(max_examples=40)
@given(RANDOM, ABOVE, st.sampled_from([0.0, 0.05, 0.3]), st.integers(0, 1000))
def test_the_proofs_tree_carries_the_differences_and_no_more_weight_than_it_says(model, draws, c, seed):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    rule = proven_rule(shaped, EPISODES, c=c)
    nodes = remembered(shaped, EPISODES, seed, rule.bonus)
    least = leftovers(shaped, nodes)
    if math.isinf(shaped.smallest_gap) or least["optimism"] < 0 or least["upper"] < 0:
        return
    tree, H = trees(shaped, nodes), shaped.horizon
    every = [node for one in nodes for node in one]
    for node in every:
        if node.gap > 0:
            assert node.gap <= node.difference + 1e-9
            assert node.difference <= 2 * tree[id(node)] + 1e-9
    # All trees of a step together weigh a node j steps later by (1 + 1/H)^(2j) at most.
    growth = (1 + 1 / H) ** 2
    optimal = shaped.smallest_gap / (2 * sum((1 + 1 / H) ** j for j in range(H)))
    terms = np.zeros(H)
    for node in every:
        threshold = node.gap / (2 * H) if node.gap > 0 else optimal
        width = 3 * node.bonus
        terms[node.h] += node.difference if not node.before else width if width >= threshold else 0.0
    for h in range(H):
        together = sum(tree[id(node)] for node in every if node.h == h)
        assert together <= sum(growth ** (later - h) * terms[later] for later in range(h, H)) + 1e-9


@settings(max_examples=60)
@given(RANDOM, ABOVE, st.sampled_from([0.02, 0.2, 1.0]), st.integers(0, 1000))
def test_settled_actions_are_given_up_after_the_visits_that_the_lemma_allows(model, draws, c, seed):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    found = watch(shaped, EPISODES, seed, proven_rule(shaped, EPISODES, c=c))
    if found.held["optimism"] and found.potential_excess <= found.bonus_scale + 1e-12:
        iota = log_term(int((~model.terminal).sum()), 2, EPISODES * HORIZON, 0.1)
        most = visit_bound(c * shaped.needed_span, HORIZON, iota, shaped.margins())
        assert (found.visits <= most).all()


def test_the_visit_bound_bites():
    """With a tenth of the margin's square taken off, a run breaks it: an arm of a bandit with a gap of 1/2."""
    model = cs.TabularCMDP(
        np.ones((2, 2, 2), dtype=int),
        [[[1.0, 0.0], [0.0, 0.0]], np.zeros((2, 2))],
        [[0.5, 0.5], [1.0, 0.0]],
        [False, True],
        [1.0, 0.0],
    )
    shaped, episodes, c = Shaped(model, [[0.5, 0.0]], 1), 5_000, 0.3
    iota = log_term(1, 2, episodes, 0.1)
    visits = [watch(shaped, episodes, seed, proven_rule(shaped, episodes, c=c)).visits[0, 0, 1] for seed in range(20)]
    most = visit_bound(c * shaped.needed_span, 1, iota, shaped.margins()[0, 0, 1])
    assert max(visits) <= most
    assert max(visits) > most / 9  # as if the table did not carry twice its bonus


def test_print_has_half_of_what_its_own_sum_comes_to():
    c, phi_m, H, iota, gap = 4.0, 20.0, 20, 15.0, 0.3
    most = visit_bound(c * phi_m, H, iota, gap, printed=True)
    exact = 3 * c * phi_m * math.sqrt(H * iota) * (1 / np.sqrt(np.arange(1, int(most) + 1))).sum()
    unit = c**2 * phi_m**2 * H * iota / gap
    assert 12 * unit < exact <= 24 * unit
    assert exact > 23.9 * unit


def test_the_printed_bound_has_its_constants():
    """One state, two actions, gap 1/2, H = 1: the printed line by hand."""
    model = cs.TabularCMDP(
        np.ones((2, 2, 1), dtype=int), [[[1.0], [0.5]], [[0.0], [0.0]]], np.ones((2, 1)), [False, True], [1.0, 0.0]
    )
    shaped = Shaped(model, [[1.0, 0.0]], 1)
    K, c = 100, 4.0
    iota = math.log(1 * 2 * K * (2 * K))  # p = 1 / (2 T)
    unit = c**2 * math.e**2 * iota / 0.5
    assert shaped.pseudo_suboptimal().tolist() == [[False, True], [False, False]]  # 0.5 - 1 + 0.5 <= 1
    found = printed_regret_bound(shaped, K)
    assert found.settled == pytest.approx(12 * unit)
    assert found.failure == pytest.approx(1.0)
    assert printed_regret_bound(shaped, K, constant=24).settled == pytest.approx(24 * unit)
    low = printed_regret_bound(Shaped(model, [[1.0, 0.0]], 1), K, p=0.01, c=2.0)
    assert low.settled == pytest.approx(12 * 4 * math.e**2 * math.log(2 * K / 0.01) / 0.5)
    assert low.failure == pytest.approx(2 * 0.01 * K)


def test_pairs_outside_sub_delta_cost_the_horizon_more():
    world = cs.load_world("windy-empty")
    shaped, _ = Shaped(world.model, usual_potentials(world)["joint"], world.horizon).nonnegative()
    inside = shaped.pseudo_suboptimal()
    outside = ~inside & np.isfinite(shaped.pair_gaps)
    assert inside.any()
    assert outside.any()
    found = printed_regret_bound(shaped, 1000)
    ratio = (found.unsettled / (1 / shaped.pair_gaps[outside]).sum()) / (
        found.settled / (1 / shaped.pair_gaps[inside]).sum()
    )
    assert ratio == pytest.approx(6 * world.horizon)


def test_theorems_refuse_what_they_are_not_about():
    world = cs.load_world("lavacross-maze")
    shaped = Shaped(world.model, None, world.horizon)
    with pytest.raises(cs.CausalShapingError, match="printed theorem is for"):
        printed_regret_bound(shaped, 100)
    with pytest.raises(cs.CausalShapingError, match="needs a ceiling, but the potential is below V"):
        regret_bound(shaped, 100)
    best = Shaped(world.model, world.model.optimum(world.horizon).values, world.horizon)
    with pytest.raises(cs.CausalShapingError, match="optimism is proven from"):
        regret_bound(best, 100, scale=0.5)
    with pytest.raises(cs.CausalShapingError, match="clip='zero'"):
        regret_bound(best, 100, clip="potential")


def test_q_ucb_is_q_ucb_shaping_with_the_horizon_as_potential():
    world = cs.load_world("lavacross-easy")
    shaped, _ = Shaped(world.model, None, world.horizon).nonnegative()
    moved = cs.TabularCMDP(
        shaped.model.next_state, shaped.model.reward, shaped.model.noise, shaped.model.terminal, shaped.model.start
    )
    other = q_ucb(shaped)
    # Q-UCB learns Q, the shaped learner Q - H, from the same draws: the same actions.
    as_world = replace(world, model=moved, demonstrators={}, grid=None)
    plain = cs.train(as_world, None, "q-ucb", 200 * 20, 1, step_indexed=True)
    rule = cs.Rule(clip="zero", bonus="phi-max")
    same = watch(other, 200, 1, rule)
    assert (plain.visits == same.visits).all()
    assert same.bonus_scale == pytest.approx(4 * world.horizon)


def test_bounds_grow_with_the_logarithm_of_the_episodes_and_say_something_in_the_end():
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    few, many, most = (regret_bound(shaped, episodes) for episodes in (1e3, 1e14, 1e15))
    assert few.vacuous
    assert not many.vacuous
    assert most.total < 1.2 * many.total
