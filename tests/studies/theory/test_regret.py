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
from studies.paper.theory.events import proven_rule, watch
from studies.paper.theory.lemmas import log_term
from studies.paper.theory.regret import q_ucb, regret_bound, visit_bound
from studies.paper.theory.shaped import Shaped

RANDOM = cmdps(states=(2, 3), actions=(2, 2), noises=(2, 3))


def slow_bound(shaped, episodes, p, scale):
    """The corrected bound in loops."""
    H, model = shaped.horizon, shaped.model
    iota = log_term(int((~model.terminal).sum()), len(model.actions), episodes * H, p)
    growth = 1 + 1 / H
    total = 0.0
    for h, s, x in itertools.product(range(H), range(len(model.terminal)), range(len(model.actions))):
        if model.terminal[s]:
            continue
        gap = shaped.gaps[h, s, x]
        threshold = gap / (2 * H) if gap > 0 else shaped.smallest_gap / (2 * sum(growth**j for j in range(H)))
        margin = shaped.best.values[h, s] - shaped.expected(shaped.potential)[h, s, x]
        most = episodes
        if gap > 0 and margin > 1e-9:
            most = min(most, math.floor(9 * scale**2 * H * iota / margin**2 + 1e-9) + 1)
        inside = shaped.potential[h, s] - shaped.best.q_values[h, s, x]
        first = 3 * scale * math.sqrt(H * iota)
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
