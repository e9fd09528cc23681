"""Rivals with networks: Q-networks that are trained on the logs as if nothing were hidden, and go on learning online.

- `run_network`: discrete BCQ (Fujimoto et al. 2019) or discrete CQL (Kumar et al. 2020) on the logs, then
  epsilon-greedy fine-tuning with a replay buffer, of which half of each batch is logged.

Their settings are in `studies.field.rivals.SETTINGS`.
"""

from __future__ import annotations

import math

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.logs import Logs
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import tables_of
from studies.field import _network as network
from studies.field.rivals import COLUMNS, own_streams


def run_network(
    world: World,
    steps: int,
    seed: int,
    logs: list[Logs],
    *,
    threshold: tuple[float, float] = (0.0, 0.0),
    conservative: tuple[float, float] = (0.0, 0.0),
    explore: float = 0.05,
    timed: bool = True,
    discount: float = 1.0,
    rate: float = 1e-3,
    updates: int = 2_000,
    every: int = 1,
    batch: int = 64,
    width: int = 32,
    target_every: int = 50,
) -> FloatArray:
    """Return the regret of each step of a Q-network that was trained on logs, and goes on learning.

    A row (s, x, r, s') is taken for one of any step h, since the world is the same at each of them, and descends

        huber(Q_h(s, x) - r - discount * Q'_{h+1}(s', x*)) - log p_h(x | s) + c * (log sum exp Q_h(s, .) - Q_h(s, x)),
        x* = argmax of Q_{h+1}(s', .) among the actions with p_{h+1}(x | s') > threshold * max p_{h+1}(. | s'),

    Q' a copy of the network; with a threshold of 0 there is no p. Rewards are divided by the largest there can be.

    Args:
        world: the world.
        steps: the budget.
        seed: equal seeds give equal runs.
        logs: the logs, of all sources alike.
        threshold: BCQ's, on the logs and then online.
        conservative: c, CQL's weight, on the logs and then online.
        explore: the chance of an action at random at the first step; it falls linearly to 0 at the last.
        timed: whether the network sees the step; otherwise its values are stationary, and need a discount below 1.
        discount: the factor on future reward.
        rate: Adam's learning rate.
        updates: gradient steps on the logs, before the first step.
        every: steps for each gradient step online.
        batch: rows in a gradient step.
        width: units in each of two hidden layers.
        target_every: gradient steps between copies of the network.
    """
    streams, exists = own_streams(seed), world.space.is_admissible.copy()
    states, actions = exists.shape
    rng, clock = streams[1], world.horizon if timed else 1

    def drawn(rows: int, columns: int, scale: float) -> network.Real:
        return (scale * rng.standard_normal((rows, columns))).astype(np.float32)

    def zeros() -> network.Weights:
        return network.Weights(*(np.zeros_like(one) for one in weights))

    weights = network.Weights(
        drawn(states, width, 1.0),  # a state is one row, so that its scale does not depend on how many there are
        drawn(clock, width, 1.0 if timed else 0.0),
        drawn(width, width, math.sqrt(2 / width)),
        np.zeros(width, dtype=np.float32),
        drawn(width, 2 * actions, 0.1 / math.sqrt(width)),
        np.zeros(2 * actions, dtype=np.float32),
    )
    scale = 1 / max(*map(abs, world.model.reward_range), 1e-12)
    state, action, reward, after, final = (np.concatenate([getattr(one, name) for one in logs]) for name in COLUMNS)
    columns = (state, action, scale * reward, np.where(after < 0, 0, after), final)
    rows = network.Rows(*(np.concatenate([one, np.zeros(steps, dtype=one.dtype)]) for one in columns))
    learning = network.Learning(threshold, conservative, explore, discount, rate, updates, every, batch, target_every)
    regret, gaps = np.zeros(steps), world.model.gaps(world.horizon)
    network.run(
        *(streams, tables_of(world.model), exists, gaps, weights, zeros(), (zeros(), zeros())),
        *(learning, rows, scale, regret),
    )
    return regret
