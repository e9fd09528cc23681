"""A model under a potential: what shaping keeps, what optimism means, and what a potential settles."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import cmdps

from studies.paper.theory.shaped import Shaped

HORIZON = 3
TABLES = st.lists(st.integers(-20, 20), min_size=12, max_size=12).map(lambda draws: np.array(draws) / 10)


def a_table(model, draws):
    """A potential for the model, at most 4 states."""
    states = len(model.terminal)
    return np.resize(draws, (HORIZON, states)) * ~model.terminal


@given(cmdps(states=(1, 3)), TABLES)
def test_shaping_moves_the_optimum_by_the_potential_and_keeps_the_gaps(model, draws):
    phi = a_table(model, draws)
    best, shaped = model.optimum(HORIZON), Shaped(model, phi, HORIZON).shaped_model().optimum(HORIZON)
    assert shaped.values == pytest.approx(best.values - phi)
    assert shaped.gaps() == pytest.approx(best.gaps())


@given(cmdps(states=(1, 3)), TABLES)
def test_optimism_is_told_step_by_step(model, draws):
    phi = a_table(model, draws)
    found = Shaped(model, phi, HORIZON).optimism()
    best, limit = model.optimum(HORIZON).values, max(HORIZON * model.reward_range[1], 0.0)
    for h, s in itertools.product(range(HORIZON), range(len(model.terminal))):
        ends = model.terminal[s]
        assert found.holds[h, s] == (ends or phi[h, s] >= best[h, s] - 1e-9)
        assert found.within[h, s] == (ends or phi[h, s] <= limit + 1e-9)
        assert np.isnan(found.distance[h, s]) if ends else found.distance[h, s] == pytest.approx(phi[h, s] - best[h, s])
    assert bool(found) == bool(found.holds.all() and found.within.all())


def slow_sub_delta(model, phi):
    """Definition 4.3 in loops, Delta the smallest positive gap."""
    best = model.optimum(HORIZON)
    follows, rewards = model.transitions(), model.rewards()
    padded = np.append(phi, np.zeros((1, phi.shape[1])), axis=0)
    padded[:, model.terminal] = 0
    inside = np.zeros(rewards.shape, dtype=bool)
    for s, x in itertools.product(*map(range, rewards.shape)):
        gaps = [best.values[h, s] - best.q_values[h, s, x] for h in range(HORIZON)]
        positive = [gap for gap in gaps if gap > 1e-9]
        if positive and not model.terminal[s]:
            inside[s, x] = any(
                rewards[s, x] - padded[h, s] + 2 * (follows[s, x] @ padded[h + 1]) + min(positive)
                <= best.values[h, s] + 1e-9
                for h in range(HORIZON)
            )
    return inside


@given(cmdps(states=(1, 3)), TABLES)
def test_sub_delta_is_that_of_the_definition(model, draws):
    phi = a_table(model, draws)
    assert (Shaped(model, phi, HORIZON).pseudo_suboptimal() == slow_sub_delta(model, phi)).all()
