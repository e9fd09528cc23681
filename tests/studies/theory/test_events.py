"""Every inequality of the analysis, watched in runs: it holds with the proven bonus and breaks with a smaller one."""

import math

import pytest
from hypothesis import given, strategies as st
from models import cmdps
from properties import fewer
from runs import ABOVE, EPISODES, HORIZON, a_ceiling, deviations, leftovers, remembered

from studies.paper.theory.events import proven_rule, watch
from studies.paper.theory.lemmas import log_term
from studies.paper.theory.shaped import Shaped


@fewer(80)
@given(cmdps(states=(2, 3), actions=(2, 2), noises=(2, 3)), ABOVE, st.sampled_from([0.0, 0.002, 0.005, 0.02, 0.3]))
def test_what_is_left_over_is_that_of_the_definitions(model, draws, c):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    rule = proven_rule(shaped, EPISODES, c=c)
    found = watch(shaped, EPISODES, seed=5, learner=rule)
    nodes = remembered(shaped, EPISODES, 5, rule.bonus)
    slow = leftovers(shaped, nodes)
    assert [node.gap for one in nodes for node in one] == pytest.approx(
        [shaped.gaps[node.h, node.s, node.x] for one in nodes for node in one]
    )
    assert found.regret[-1] == pytest.approx(sum(node.gap for one in nodes for node in one))
    # Optimism and the upper side are watched after every step, the slow ones only when the action is taken again.
    assert found.optimism <= slow["optimism"] + 1e-9
    assert found.upper <= slow["upper"] + 1e-9
    for name in ("chosen", "recursion"):
        assert getattr(found, name) == pytest.approx(slow[name], abs=1e-9)
    iota = log_term(int((~model.terminal).sum()), 2, EPISODES * HORIZON, 0.1)
    assert rule.bonus == pytest.approx(c * shaped.needed_span * math.sqrt(HORIZON * iota))
    assert found.bonus_scale == pytest.approx(c * shaped.needed_span)
    strayed = deviations(shaped, nodes) / math.sqrt(HORIZON * iota)
    assert (found.value_deviation, found.value_excess, found.potential_excess) == pytest.approx(tuple(strayed))


@fewer(40)
@given(cmdps(states=(2, 3), actions=(2, 2), noises=(2, 3)), ABOVE, st.integers(0, 1000))
def test_optimism_holds_for_potentials_of_any_sign(model, draws, seed):
    """The property behind the corrected theorem; p is so small that a single failure would be a surprise."""
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    found = watch(shaped, EPISODES, seed=seed, learner=proven_rule(shaped, EPISODES, p=1e-4))
    assert all(found.held.values()), found


@given(cmdps(states=(2, 3), actions=(2, 2), noises=(1, 1)), ABOVE)
def test_without_noise_no_bonus_is_needed(model, draws):
    shaped = Shaped(model, a_ceiling(model, draws), HORIZON)
    assert shaped.needed_span == 0
    found = watch(shaped, EPISODES, learner=proven_rule(shaped, EPISODES))
    assert found.bonus_scale == 0
    assert all(found.held.values())
    assert found.value_deviation == pytest.approx(0, abs=1e-9)
