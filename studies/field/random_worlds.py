"""Random worlds of several shapes: `SHAPES`, each a function of a generator of random numbers.

Letters: s, x, u are state, action and hidden noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from causal_shaping.models.cmdp import TabularCMDP

Shape = Callable[[np.random.Generator], tuple[TabularCMDP, int]]
"""Returns tables and a horizon."""


def dense(rng: np.random.Generator) -> tuple[TabularCMDP, int]:
    """Six states that act, three actions; an action leads anywhere, and ends the episode in one noise of five."""
    return _anywhere(rng, states=6, actions=3, noises=5), 15


def wide(rng: np.random.Generator) -> tuple[TabularCMDP, int]:
    """Fourteen states that act and four actions, otherwise like `dense`."""
    return _anywhere(rng, states=14, actions=4, noises=6), 20


def _anywhere(rng: np.random.Generator, states: int, actions: int, noises: int) -> TabularCMDP:
    shape = (states + 1, actions, noises)
    next_state, reward = np.full(shape, states), np.zeros(shape)
    for s in range(states):
        for x in range(actions):
            next_state[s, x] = rng.choice(states, noises, p=rng.dirichlet(np.full(states, 0.5)))
            next_state[s, x, rng.integers(noises)] = states
    reward[:states] = rng.choice([0.0, 0.25, 1.0], (states, actions, noises), p=[0.5, 0.3, 0.2])
    noise = rng.dirichlet(np.full(noises, 3.0), states + 1)
    start = np.append(rng.dirichlet(np.ones(states)), 0.0)
    return TabularCMDP(next_state, reward, noise, np.arange(states + 1) == states, start)


def walk(rng: np.random.Generator) -> tuple[TabularCMDP, int]:
    """A ring of sixteen places with a goal and two traps; steps cost, hidden winds carry one further or back."""
    places, actions, noises = 16, 3, 4
    goal, *traps = rng.choice(places, 3, replace=False)
    moves = rng.permutation([-1, 1, 2])
    winds = np.stack([rng.choice([-2, -1, 0, 0, 1, 2], noises) for _ in range(places)])
    ends = np.isin(np.arange(places), [goal, *traps])
    next_state = (np.arange(places)[:, None, None] + moves[None, :, None] + winds[:, None, :]) % places
    reward = np.full((places, actions, noises), -0.1) - np.isin(next_state, traps)
    next_state[ends], reward[ends] = np.flatnonzero(ends)[:, None, None], 0.0
    noise = rng.dirichlet(np.full(noises, 2.0), places)
    return TabularCMDP(next_state, reward, noise, ends, ~ends / (~ends).sum()), 20


def stages(rng: np.random.Generator) -> tuple[TabularCMDP, int]:
    """Four stages of five states and three treatments, of which two or three exist in a state; only the end pays."""
    depth, width, actions, noises = 4, 5, 3, 6
    states = depth * width + 1
    next_state, reward = np.full((states, actions, noises), states - 1), np.zeros((states, actions, noises))
    for s in range(states - 1):
        if s < (depth - 1) * width:
            after = (s // width + 1) * width + np.arange(width)
            for x in range(actions):
                next_state[s, x] = rng.choice(after, noises, p=rng.dirichlet(np.full(width, 0.7)))
        else:
            reward[s] = rng.random((actions, noises)) < rng.uniform(0.2, 0.8, (actions, 1))
    noise = rng.dirichlet(np.full(noises, 2.0), states)
    start = np.where(np.arange(states) < width, 1 / width, 0.0)
    exists = np.ones((states, actions), dtype=bool)
    for lacking in np.flatnonzero(rng.random(states - 1) < 0.4):
        exists[lacking, rng.integers(actions)] = False
    ends = np.arange(states) == states - 1
    return TabularCMDP(next_state, reward, noise, ends, start, admissible=exists), depth


def stock(rng: np.random.Generator) -> tuple[TabularCMDP, int]:
    """A shop that holds up to nine of its goods, and orders none to three a day; the hidden noise is the day's demand.

    A sale earns a price, an ordered one costs, as does each that is held overnight and each customer who leaves with
    nothing. Nothing ends an episode but its horizon. Whoever orders may know the demand; the log does not.
    """
    most, orders, demands = 9, 4, 6
    price, cost, hold, lost = rng.uniform(1, 2), rng.uniform(0.3, 0.9), rng.uniform(0.02, 0.2), rng.uniform(0, 0.5)
    held, ordered, demand = np.ogrid[: most + 1, :orders, :demands]
    there = np.minimum(held + ordered, most)
    sold = np.minimum(there, demand)
    next_state = there - sold
    reward = price * sold - cost * (there - held) - hold * next_state - lost * (demand - sold)
    noise = np.tile(rng.dirichlet(np.full(demands, 1.5)), (most + 1, 1))
    start = np.full(most + 1, 1 / (most + 1))
    return TabularCMDP(next_state, np.round(reward, 6), noise, np.zeros(most + 1, dtype=bool), start), 20


SHAPES: Mapping[str, Shape] = {made.__name__: made for made in (dense, wide, walk, stages, stock)}
"""The generators. `stock` was written for this study alone: nothing was developed on worlds of its kind."""
