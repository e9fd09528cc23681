"""Whom to trust, and where: what is believed before anything is seen, and how a cell loses trust."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from cells import counts_of, model_of

import causal_shaping as cs
from causal_shaping.beliefs._kernels import chance_of_trust, draw, observe
from causal_shaping.beliefs.model import hypotheses, room_for


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("actions", [1, 4])
def test_half_of_the_prior_says_nobody_and_components_share_the_rest(components, actions):
    held = hypotheses(components, actions)
    chance = np.exp(held.prior)
    assert chance.sum() == pytest.approx(1)
    assert held.component[0] == -1
    assert chance[0] == pytest.approx(0.5)
    for c in range(components):
        its, everywhere = held.component == c, held.doubt < 1e-3
        third = pytest.approx(0.5 / components / 3)
        assert chance[its & everywhere & (held.aside < 0)].sum() == third, "right everywhere"
        assert chance[its & (held.aside >= 0)].sum() == third, "right about all actions but one"
        assert chance[its & ~everywhere].sum() == third, "right in some cells"
        np.testing.assert_array_equal(np.sort(held.aside[its & (held.aside >= 0)]), np.arange(actions))
    np.testing.assert_array_equal(held.blunt[1:], held.doubt[1:] > 1e-3)


@pytest.mark.parametrize("doubt", [1e-6, 0.1, 0.3])
def test_a_cell_loses_trust_by_what_it_shows_and_gains_none(doubt):
    for ratio in (0.0, 0.5, 5.0, 800.0):
        assert chance_of_trust(ratio, doubt) == pytest.approx(1 - doubt)
    for ratio in (-0.5, -5.0, -50.0):
        trust = (1 - doubt) * np.exp(ratio)
        assert chance_of_trust(ratio, doubt) == pytest.approx(trust / (trust + doubt))
    assert chance_of_trust(-np.inf, doubt) == 0


def test_a_source_that_is_right_about_all_actions_but_one_says_nothing_about_that_one():
    n = [[[300, 0], [0, 300]]]
    held = model_of(n).guess.hypotheses
    aside = int(np.flatnonzero(held.aside == 1)[0])
    model = model_of(n, only=aside)
    room, memory, rng = room_for(model, model.memory(0)), model.memory(0), np.random.default_rng(0)
    trusted = set()
    for _ in range(50):
        draw(rng, model.shape, model.guess, memory, model.space.is_admissible.copy(), room)
        trusted.add(tuple(room.trusted))
    assert trusted == {(0, -1)}
    before = memory.evidence.copy()
    observe(model.shape, model.guess, memory, 1, 1, 0.0, 1.0)  # an outcome that the logs never saw after the action
    assert memory.evidence[aside] == before[aside]
    assert memory.evidence[1] < before[1], "it is evidence against being right everywhere"


def test_an_unseen_outcome_is_possible_where_visits_are_few():
    def unknown(visits, **options):
        belief = cs.posterior(counts_of([[[visits - 1, 0], [0, 1]]]), 1, 3.0, **options)
        return belief.model.unknown.tolist()

    assert unknown(297) == [True, True]
    assert unknown(300) == [False, False]
    assert unknown(300, support="observed-action") == [False, True], "of an action in a state"
    assert unknown(300, support="any") == [True, True]
    assert 0.99**299 < 0.05 < 0.99**298


def pool_is_refuted(n):
    """By loops, for the first action and outcome: is more mass proven than the mean of the sources can miss by chance?

    n[source][action][outcome]. The variance of the mean is that of a Dirichlet whose concentration is how much the
    sources agree elsewhere, found by moments, and that of sampling.
    """
    sources, actions = len(n), range(len(n[0]))
    total = [[sum(n[i][x]) for x in actions] for i in range(sources)]
    excess = whole = 0.0
    for x in actions:
        for o in range(len(n[0][x])):
            if sum(n[i][x][o] for i in range(sources)) == 0:
                continue  # nobody has seen it
            shares = [n[i][x][o] / total[i][x] for i in range(sources)]
            mean = sum(shares) / sources
            noise = sum(share * (1 - share) / (total[i][x] - 1) for i, share in enumerate(shares)) / sources
            excess += sum((share - mean) ** 2 for share in shares) / (sources - 1) - noise
            whole += mean * (1 - mean)
    agreement = min(max(whole / excess - 1, 1.0), 1000.0)
    visits = sum(total[i][0] for i in range(sources))
    pool = sum(n[i][0][0] / total[i][0] for i in range(sources)) / sources * visits / (visits + 1)
    best = max(range(sources), key=lambda i: n[i][0][0] / total[i][0])
    seen = sum(total[best])
    proven = n[best][0][0] / (total[best][0] + 1) * (total[best][0] + 1 / len(actions)) / (seen + 1)
    variance = pool * (1 - pool) * (1 / (agreement + 1) + 1 / (visits + 1)) + 1 / (visits + 1) ** 2
    variance += proven * (1 - proven) / (seen + 2)
    outcomes = sum(any(n[i][x][o] for i in range(sources)) for x in actions for o in range(len(n[0][x])))
    return bool(proven - pool > NormalDist().inv_cdf(1 - 1e-4 / outcomes) * math.sqrt(variance))


def test_the_pool_is_refuted_where_a_source_proves_more_than_it_can_miss():
    """Three sources agree on all actions but the first, which one of them takes ever more often."""
    found = []
    for others in (12, 24, 48, 96):
        for often in (1_000, 8_000, 16_000, 24_000, 32_000, 64_000, 128_000, 256_000):
            alike = [[100, 100]] * others
            n = [[[often, 0], *alike], [[0, 20], *alike], [[0, 20], *alike]]
            found.append((bool(model_of(n).refuted[0, -1]), pool_is_refuted(n)))
    told, expected = zip(*found, strict=True)
    assert told == expected
    assert 8 < sum(told) < len(told) - 8, "on both sides"
