"""Bounds of visits and regret: what they are, that runs obey them, and that the proof's tree does."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import cmdps
from properties import fewer
from runs import ABOVE, EPISODES, HORIZON, a_ceiling, leftovers, remembered, trees

import causal_shaping as cs
from studies.paper.theory import (
    RegretBound,
    Shaped,
    log_term,
    printed_regret_bound,
    proven_rule,
    q_ucb,
    regret_bound,
    useful_from,
    usual_potentials,
    visit_bound,
    watch,
)

RANDOM = cmdps(states=(2, 3), actions=(2, 2), noises=(2, 3))


def slow_bound(shaped, episodes, p, scale, clip="zero", visits=None, exact=False):
    """The corrected bound in loops; `exact` adds up the clipped terms instead of bounding their sum."""
    H, model = shaped.horizon, shaped.model
    iota = log_term(int((~model.terminal).sum()), len(model.actions), episodes * H, p)
    growth = 1 + 1 / H
    total = 0.0
    for h, s, x in itertools.product(range(H), range(len(model.terminal)), range(len(model.actions))):
        if model.terminal[s]:
            continue
        gap = shaped.gaps[h, s, x]
        threshold = gap / (2 * H) if gap > 0 else shaped.smallest_gap / (2 * sum(growth**j for j in range(H)))
        margin = (
            shaped.best.values[h, s] - shaped.expected((2 if clip == "potential" else 1) * shaped.potential)[h, s, x]
        )
        most = episodes if visits is None else visits[h, s, x]
        if visits is None and gap > 0 and margin > 1e-9:
            most = min(most, math.floor(9 * scale**2 * H * iota / margin**2 + 1e-9) + 1)
        if most == 0:
            continue
        inside = shaped.potential[h, s] - shaped.best.q_values[h, s, x]
        first = 3 * scale * math.sqrt(H * iota)
        if exact:
            inside += sum(first / math.sqrt(n) for n in range(1, int(most)) if first / math.sqrt(n) >= threshold)
        else:
            inside += 2 * first * min(math.sqrt(most - 1), first / threshold)
        total += 2 * sum(growth ** (2 * j) for j in range(h + 1)) * inside
    return total


@fewer(40)
@given(RANDOM, ABOVE, st.floats(0, 0.2), st.sampled_from([1, 2, EPISODES, 10**6, 10**12]))
def test_the_bound_is_that_of_the_theorem(model, draws, more, episodes):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    scale = shaped.needed_span + more
    found = regret_bound(shaped, episodes, p=0.05, scale=scale)
    assert found.failure == pytest.approx(3 * 0.05 * episodes * shaped.worst_regret)
    assert found.trivial == pytest.approx(episodes * shaped.worst_regret)
    assert found.vacuous == (found.total >= found.trivial and found.total > 0)
    if math.isinf(shaped.smallest_gap):
        assert found.total == found.failure  # every action is optimal: there is no regret
    else:
        assert found.total - found.failure == pytest.approx(slow_bound(shaped, episodes, 0.05, scale), rel=1e-9)
        own = regret_bound(shaped, episodes, scale=scale)
        assert own.total == pytest.approx(
            regret_bound(shaped, episodes, p=1 / (3 * episodes * HORIZON), scale=scale).total
        )


@fewer(40)
@given(RANDOM, ABOVE, st.data())
def test_with_visits_it_is_the_bound_of_one_run(model, draws, data):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    size = shaped.gaps.size
    drawn = data.draw(st.lists(st.sampled_from([0, 1, 2, 5, 40]), min_size=size, max_size=size))
    visits = np.reshape(drawn, shaped.gaps.shape)
    if math.isfinite(shaped.smallest_gap):
        found = regret_bound(shaped, EPISODES, p=0.05, scale=0.3, visits=visits)
        assert found.failure == 0
        assert found.total == pytest.approx(slow_bound(shaped, EPISODES, 0.05, 0.3, visits=visits))


@fewer(40)
@given(RANDOM, ABOVE)
def test_the_printed_clip_needs_more_bonus_and_settles_less(model, draws):
    shaped, _ = Shaped(model, a_ceiling(model, draws), HORIZON).nonnegative()
    needed = max(shaped.span(shaped.values), shaped.span(2 * shaped.potential))
    found = regret_bound(shaped, 10**9, p=0.05, clip="potential")
    if math.isfinite(shaped.smallest_gap):
        slow = slow_bound(shaped, 10**9, 0.05, needed, clip="potential")
        assert found.total - found.failure == pytest.approx(slow, rel=1e-9)
    if needed > 0.1:
        with pytest.raises(cs.CausalShapingError, match="optimism is proven from"):
            regret_bound(shaped, 100, scale=needed - 0.01, clip="potential")


@fewer(20)
@given(RANDOM, ABOVE)
def test_the_closed_form_is_above_the_sums_that_it_bounds(model, draws):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    if math.isfinite(shaped.smallest_gap):
        sums = slow_bound(shaped, EPISODES, 0.05, shaped.needed_span, exact=True)
        closed = slow_bound(shaped, EPISODES, 0.05, shaped.needed_span)
        assert sums - 1e-9 <= closed <= 2 * sums + 1e-9  # 2 sqrt(N) against 1 + 1 / sqrt(2) + ...


def slow_printed(shaped, episodes, p, c, constant):
    """The printed line in loops, over pairs with a positive gap."""
    H, model = shaped.horizon, shaped.model
    T = episodes * H
    iota = math.log(int((~model.terminal).sum()) * len(model.actions) * T / p)
    highest = max(max(row) for row in shaped.potential.tolist())
    total = 2 * p * T * H
    for s, x in itertools.product(range(len(model.terminal)), range(len(model.actions))):
        positive = [gap for gap in shaped.gaps[:, s, x] if gap > 0]
        if positive:
            unit = c**2 * math.e**2 * highest**2 * iota / min(positive)
            total += constant * unit * H**3 if shaped.pseudo_suboptimal()[s, x] else 72 * unit * H**4
    return total


@fewer(40)
@given(RANDOM, ABOVE, st.sampled_from([12.0, 24.0]))
def test_the_printed_bound_is_the_printed_line(model, draws, constant):
    shaped, _ = Shaped(model, a_ceiling(model, draws), HORIZON).nonnegative()
    found = printed_regret_bound(shaped, 500, p=0.02, c=3.0, constant=constant)
    assert found.total == pytest.approx(slow_printed(shaped, 500, 0.02, 3.0, constant), rel=1e-9)
    by_itself = printed_regret_bound(shaped, 500)
    assert by_itself.total == pytest.approx(slow_printed(shaped, 500, 1 / (2 * 500 * HORIZON), 4.0, 12.0), rel=1e-9)


def test_a_bound_speaks_where_it_stops_being_vacuous():
    def bound(total, trivial):
        return RegretBound(total, 0.0, 0.0, 0.0, 0.0, trivial)

    assert 345 <= useful_from(lambda k: bound(345.0, k)) <= 349
    assert useful_from(lambda k: bound(0.5, k)) <= 1
    assert useful_from(lambda k: bound(k, k)) == math.inf  # as much as can be lost anyway
    assert bound(1.0, 1.0).vacuous
    assert not bound(0.9, 1.0).vacuous


@fewer(60)
@given(RANDOM, ABOVE, st.sampled_from([0.01, 0.1, 1.0]), st.integers(0, 1000))
def test_runs_obey_the_theorem_wherever_its_event_held(model, draws, c, seed):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    rule = proven_rule(shaped, EPISODES, c=c)
    found = watch(shaped, EPISODES, seed=seed, learner=rule)
    if found.held["optimism"] and found.held["upper"]:
        certificate = regret_bound(shaped, EPISODES, p=0.1, scale=c * shaped.needed_span, visits=found.visits)
        assert found.regret[-1] <= certificate.total + 1e-9


@fewer(40)
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


@fewer(60)
@given(RANDOM, ABOVE, st.sampled_from([0.02, 0.2, 1.0]), st.integers(0, 1000))
def test_settled_actions_are_given_up_after_the_visits_that_the_lemma_allows(model, draws, c, seed):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    found = watch(shaped, EPISODES, seed=seed, learner=proven_rule(shaped, EPISODES, c=c))
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
    visits = [
        watch(shaped, episodes, seed=seed, learner=proven_rule(shaped, episodes, c=c)).visits[0, 0, 1]
        for seed in range(20)
    ]
    most = visit_bound(c * shaped.needed_span, 1, iota, shaped.margins()[0, 0, 1])
    assert max(visits) <= most
    assert max(visits) > most / 9  # as if the table did not carry twice its bonus


def test_print_has_half_of_what_its_own_sum_comes_to():
    c, phi_m, H, iota, gap = 1.0, 4.0, 20, 15.0, 0.3
    most = visit_bound(c * phi_m, H, iota, gap, printed=True)
    exact = 3 * c * phi_m * math.sqrt(H * iota) * (1 / np.sqrt(np.arange(1, int(most) + 1))).sum()
    unit = c**2 * phi_m**2 * H * iota / gap
    assert 12 * unit < exact <= 24 * unit
    assert exact > 23.9 * unit


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
    with pytest.raises(cs.CausalShapingError, match="'zero' or 'potential'"):
        regret_bound(best, 100, clip="none")
    for episodes in (0, -1, math.inf, math.nan):
        with pytest.raises(cs.CausalShapingError, match="a finite number from 1 up"):
            regret_bound(best, episodes)


def test_numbers_beyond_numbers_are_vacuous():
    assert RegretBound(math.nan, 0.0, 0.0, 0.0, 0.0, 1.0).vacuous
    assert not RegretBound(0.0, 0.0, 0.0, 0.0, 0.0, 0.0).vacuous  # nothing can be lost, and it says so


@pytest.mark.parametrize("drawn", ["####\n#..#\n####", "#####\n#c.G#\n#####"])
def test_rounding_makes_no_potential_negative(drawn, tmp_path):
    path = tmp_path / "map.txt"
    path.write_text(drawn)
    for coins in ("standing", "once"):
        world = cs.load_world(path, horizon=4, coins=coins)
        for phi in usual_potentials(world).values():
            moved, _ = Shaped(world.model, phi, 4).nonnegative()
            assert printed_regret_bound(moved, 100).total >= 0


def test_q_ucb_is_q_ucb_shaping_with_the_horizon_as_potential():
    world = cs.load_world("lavacross-easy")
    shaped, _ = Shaped(world.model, None, world.horizon).nonnegative()
    moved = cs.TabularCMDP(
        shaped.model.next_state, shaped.model.reward, shaped.model.noise, shaped.model.terminal, shaped.model.start
    )
    other = q_ucb(shaped)
    # Q-UCB learns Q, the shaped learner Q - H, from the same draws: the same actions.
    as_world = replace(world, model=moved, demonstrators={}, grid=None)
    plain = cs.train(as_world, None, learner="q-ucb", steps=200 * 20, seed=1, step_indexed=True)
    rule = cs.Rule(clip="zero", bonus="phi-max")
    same = watch(other, 200, seed=1, learner=rule)
    assert (plain.visits == same.visits).all()
    assert same.bonus_scale == pytest.approx(4 * world.horizon)
    costs = cs.load_world("windy-empty")
    assert (q_ucb(Shaped(costs.model, None, 15)).potential == 0).all()  # nothing is worth more than ending


def test_the_visit_bound_counts_whole_visits():
    assert visit_bound(1.0, 20, 10.0, 2.0) == 451
    assert visit_bound(1.0, 2, 1.0, 4.0) == 2  # 18 / 16
    assert visit_bound(1.0, 2, 1.0, 4.0, printed=True) == 2
    assert visit_bound(1.0, 2, 1.0, 0.0) == math.inf


def test_bounds_grow_with_the_logarithm_of_the_episodes_and_say_something_in_the_end():
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, usual_potentials(world)["joint"], world.horizon)
    few, many, most = (regret_bound(shaped, episodes) for episodes in (1e3, 1e14, 1e15))
    assert few.vacuous
    assert not many.vacuous
    assert most.total < 1.2 * many.total
