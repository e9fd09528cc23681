"""One-state worlds in which every episode ends after a step, and independent computations of what is believed there."""

import math
from unittest.mock import patch

import numba
import numpy as np
from handmade import counts_of_entries
from scipy.special import roots_jacobi

import causal_shaping as cs
from causal_shaping.beliefs import model as beliefs_model
from causal_shaping.beliefs._kernels import draw, observe
from causal_shaping.beliefs.model import Model, room_for

REWARDS = (0.0, 1.0, 2.0, 3.0)


def counts_of(n, rewards=REWARDS, names="abcdefgh"):
    """Counts of n[source][action][outcome]: an outcome ends the episode and pays."""
    n = np.asarray(n)
    source, action, outcome = np.nonzero(n)
    space, paid = cs.Space(["s"], range(n.shape[1])), np.asarray(rewards)[outcome]
    columns = {"source": source, "action": action, "next_state": -1}
    return counts_of_entries(space, n[n > 0], paid, **columns, sources=names[: len(n)])


def model_of(n, only=None, **options):
    """The arrays of the sampler; `only` is the one hypothesis that is believed.

    Few rows are taken to have shown all outcomes that there are.
    """
    rewards = options.pop("rewards", REWARDS)
    belief = cs.posterior(counts_of(n, rewards), 1, max(rewards), **options)
    with patch.object(beliefs_model, "ENOUGH_VISITS", 0.0):
        model = Model(belief.space, belief.counts, belief.settings)
    if only is not None:
        held = model.guess.hypotheses
        prior = np.full(len(held.prior), -np.inf)
        prior[only] = 0.0
        model.guess = model.guess._replace(hypotheses=held._replace(prior=prior))
    return model


def told(model, online, rewards=REWARDS):
    """What is known after online[action][outcome], in that order; read like a trial, which raises no alarm."""
    memory = model.memory(100)
    memory.against[2] = -1.0
    for x, o in np.argwhere(np.asarray(online)):
        for _ in range(online[x][o]):
            observe(model.shape, model.guess, memory, x, 1, rewards[o], 1.0)
    return memory


def drawn_outcomes(model, draws, cell=0, seed=0, skip=200, rewards=REWARDS, memory=None):
    """p(outcome) of a cell in many draws: float64 [draws, outcomes]."""
    memory = model.memory(0) if memory is None else memory
    result, known = np.zeros((draws, len(rewards))), model.space.is_admissible
    rng, room = np.random.default_rng(seed), room_for(model, memory)
    _draw_outcomes(rng, model.shape, model.guess, memory, known, room, cell, np.asarray(rewards), skip, result)
    return result


@numba.njit
def _draw_outcomes(rng, shape, guess, memory, known, room, cell, rewards, skip, result):
    for i in range(-skip, len(result)):
        draw(rng, shape, guess, memory, known, room)
        if i >= 0:
            for o in range(room.first[cell], room.first[cell + 1]):
                result[i, np.searchsorted(rewards, room.paid[o])] += room.chance[o]


def beta_nodes(a, b, n):
    """Nodes and weights of Gauss quadrature over Beta(a, b); exact for polynomials of degree 2 n - 1."""
    x, w = roots_jacobi(n, b - 1, a - 1)
    return (x + 1) / 2, w / w.sum()


def moments(parts):
    """First and second moments of independent Beta(a, b) and Dirichlet variables are all that is needed below."""
    a, total = np.asarray(parts, dtype=float), float(np.sum(parts))
    return a / total, (np.outer(a, a) + np.diag(a)) / (total * (total + 1))


def polya(counts, alpha):
    """The probability of a sequence with these counts under a Dirichlet-multinomial, factor by factor."""
    result, total = 0.0, 0
    for o, times in enumerate(counts):
        for i in range(int(times)):
            result += math.log((alpha[o] + i) / (sum(alpha) + total))
            total += 1
    return result
