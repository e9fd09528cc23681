"""Random CMDPs, policies and demonstrators for property tests, and the slow, obvious way to compute with them."""

import itertools
from collections import defaultdict
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from causal_shaping import TabularCMDP, list_worlds

KINDS = [
    (name, coins)
    for name in list_worlds()
    for coins in ("standing", "once")
    if (name, coins) != ("walking-robot", "once")  # it has no coins
]
"""Every world under every coin rule."""


def _distributions(draw, *shape):
    """Probabilities over the last axis, zeros included."""
    weights = draw(st.lists(st.integers(0, 4), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    table = np.array(weights, dtype=float).reshape(shape)
    table[table.sum(-1) == 0, 0] = 1.0
    return table / table.sum(-1, keepdims=True)


@st.composite
def cmdps(draw, states=(1, 3), actions=(1, 2), noises=(1, 2), steps=None, ending=False):
    """A CMDP; with `steps` its tables change over that many steps; with `ending` every step may end it."""
    n_states, n_actions, n_noises = (draw(st.integers(*size)) for size in (states, actions, noises))
    terminal = np.array([draw(st.booleans()) for _ in range(n_states)])
    terminal[0] = False
    if ending:
        terminal = np.append(terminal, True)
        n_states += 1
        n_noises += 1
    shape = (() if steps is None else (steps,)) + (n_states, n_actions, n_noises)
    size = int(np.prod(shape))
    next_state = np.array(draw(st.lists(st.integers(0, n_states - 1), min_size=size, max_size=size))).reshape(shape)
    # Tenths are not exact in binary: rewards as in the paper's worlds.
    reward = np.array(draw(st.lists(st.integers(-11, 10), min_size=size, max_size=size))).reshape(shape) / 10
    noise = _distributions(draw, *shape[:-2], n_noises)
    if ending:
        next_state[..., -1] = n_states - 1
        noise = noise * 0.8
        noise[..., -1] += 0.2
    next_state[..., terminal, :, :] = np.flatnonzero(terminal)[:, None, None]
    reward[..., terminal, :, :] = 0.0
    start = _distributions(draw, n_states) * ~terminal
    if start.sum() == 0:
        start[0] = 1.0
    return TabularCMDP(next_state, reward, noise, terminal, start / start.sum())


@st.composite
def policies(draw, model, steps=None):
    """A stochastic policy of a model."""
    lead = () if steps is None else (steps,)
    return _distributions(draw, *lead, len(model.states), len(model.actions))


@st.composite
def demonstrators(draw, model, steps=None):
    """A demonstrator of a model, which sees the noise."""
    lead = () if steps is None else (steps,)
    return _distributions(draw, *lead, len(model.states), model.noise.shape[-1], len(model.actions))


def trajectories(model, decide, horizon, state, h=0):
    """Yield (probability, rows) of every trajectory from a state on, noise sequence by noise sequence.

    `decide(h, s, u)` gives the probabilities of the actions. Rows are (h, s, x, s', reward).
    """
    if h == horizon or model.terminal[state]:
        yield 1.0, ()
        return
    step = () if model.steps is None else (h,)
    for u, x in itertools.product(range(model.noise.shape[-1]), range(len(model.actions))):
        here = model.noise[(*step, state, u)] * decide(h, state, u)[x]
        if here > 0:
            after = int(model.next_state[(*step, state, x, u)])
            row = (h, state, x, after, float(model.reward[(*step, state, x, u)]))
            for probability, rows in trajectories(model, decide, horizon, after, h + 1):
                yield here * probability, (row, *rows)


def enumerated_value(model, decide, horizon, state, h=0, discount=1.0, first=None):
    """The mean return from (h, state) on; `first` is an action to take there in any case."""

    def decision(step, s, u):
        if first is not None and step == h:
            return np.eye(len(model.actions))[first]
        return decide(step, s, u)

    return sum(
        probability * sum(discount ** (row[0] - h) * row[4] for row in rows)
        for probability, rows in trajectories(model, decision, horizon, state, h)
    )


def enumerated_rows(model, decide, horizon):
    """The mean number of times that an episode from the start holds each row."""
    rows_seen = defaultdict(float)
    for start in np.flatnonzero(model.start):
        for probability, rows in trajectories(model, decide, horizon, int(start)):
            for row in rows:
                rows_seen[row] += model.start[start] * probability
    return dict(rows_seen)


def deterministic_policies(model, steps):
    """Every deterministic policy [steps, states] of a model, terminal states fixed to action 0."""
    lasting = np.flatnonzero(~model.terminal)
    for choice in itertools.product(range(len(model.actions)), repeat=steps * len(lasting)):
        policy = np.zeros((steps, len(model.terminal)), dtype=int)
        policy[:, lasting] = np.reshape(choice, (steps, len(lasting)))
        yield policy


def restricted_world(world, mask):
    """The same world with some of its actions [s, x], in which demonstrators take the others more often."""
    model = world.model
    tables = (model.next_state, model.reward, model.noise, model.terminal, model.start)
    known = TabularCMDP(*tables, model.states, model.actions, model.space.columns, admissible=mask)
    betas = {}
    for name, beta in world.demonstrators.items():
        inside = (beta + 1e-3) * known.space.is_admissible[:, None, :]
        betas[name] = inside / inside.sum(-1, keepdims=True)
    return replace(world, model=known, demonstrators=betas)
