"""Worlds that agree with logs, from a wide prior: how far they are as the logs say."""

import numpy as np
import pytest
from cells import counts_of, model_of

import causal_shaping as cs
from causal_shaping.beliefs.wide import WidePrior


def sources_that_agree(n):
    """Counts of one state and two actions, by source, action and outcome."""
    belief = cs.posterior(counts_of(n, (0.0, 1.0)), 1, 1.0)
    prior, rng = WidePrior(belief.model), np.random.default_rng(1)
    drawn = []
    for _ in range(300):
        world, lean = prior.draw(rng)
        if lean.doubt == 0.0:
            some = slice(world.first[0], world.first[1])
            drawn.append(float((world.chance[some] * world.reward[some]).sum()))
    return belief.model.agreement, np.std(drawn), np.mean(drawn)


def test_worlds_are_as_logs_say_as_far_as_sources_agree():
    alike = sources_that_agree([[[300, 300], [3_000, 3_000]], [[300, 300], [3_000, 3_000]]])
    apart = sources_that_agree([[[550, 50], [3_000, 3_000]], [[50, 550], [3_000, 3_000]]])
    assert alike[0] == 1_000
    assert apart[0] < 10
    assert alike[1] < 0.05 < 0.15 < apart[1]
    assert alike[2] == pytest.approx(0.5, abs=0.05)


def test_where_the_source_that_is_right_says_nothing_free_mass_is_flat():
    """The first source takes actions 0 and 2, the second 1 and 2; of actions 0 and 1, each proves half."""
    n = [[[0, 500], [0, 0], [450, 50]], [[0, 0], [0, 500], [50, 450]]]
    prior, rng = WidePrior(model_of(n, rewards=(0.0, 1.0))), np.random.default_rng(0)
    drawn = {True: [], False: []}
    for _ in range(600):
        world, lean = prior.draw(rng)
        some = slice(world.first[0], world.first[1])
        if lean.doubt == 0.0 and lean.source[0] < 2:  # not the pool
            drawn[lean.source[0] == 0].append(float((world.chance[some] * world.reward[some]).sum()))
    assert np.mean(drawn[True]) > 0.99
    assert np.mean(drawn[False]) == pytest.approx(0.75, abs=0.04)
