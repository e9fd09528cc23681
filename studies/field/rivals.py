"""What people would use instead, in tables: each with the same logs, the same budget and settings that were tuned.

- `run_ucbvi`: UCBVI (Azar et al. 2017), without logs or between *envelopes*: upper and lower optimal values from the
  logs taken as unconfounded, with Bernstein widths, as clips and initial values.
- `run_psrl`: posterior sampling (Osband et al. 2013), without logs or with the logs believed: a naive model as prior.
- `run_q`: Q-learning from naive fitted Q-values, also with the logs in its replay buffer, half and half.
- `envelopes`, `fitted_q`: what these take from the logs.

Settings are chosen on other worlds of the same kinds, see `SETTINGS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import tables_of
from studies.field import _kernels as kernels

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "ucbvi": {"bonus": 0.03, "lower_order": 0.01},
    "envelopes": {"bonus": 0.03, "lower_order": 0.01, "width": 3.0},
    "psrl": {"prior": 3.0},
    "naive-model": {"prior": 3.0},
    "naive-q": {"most": 10.0},
    "replay": {"replays": 64, "rate": 0.005},
    "paper": {"bonus": 0.0, "clip": "potential"},
    "behaviour": {"combine": "max", "bonus": 0.0, "clip": "none"},
}
"""The settings of each rival: those with the least mean regret, relative to no logs, in 18 tuning worlds of four of the
five shapes (seeds from 3,000,000, confounding none to strong, 3 seeds each); grids had 4 to 29 settings for each rival.
The mean ratios there: UCBVI 1.03, envelopes 1.12, PSRL 1.26, naive model .64, naive Q .54, replay .48, the paper's
method 5.8 (9.2 with the printed bonus), behaviour values 2.9. Ours have their defaults, and .54 with logs."""


COLUMNS = ("state", "action", "reward", "next_state", "terminated")
"""The columns of logs that are replayed."""


class Pooled(NamedTuple):
    """The logs of all sources, taken as one: visits, mean rewards and what followed."""

    visits: FloatArray  # [states, actions]
    rewards: FloatArray  # [states, actions]
    following: csr_array  # [states * actions, states], the chances of next states; what is missing from 1 ended


def pooled(world: World, counts: Counts) -> Pooled:
    """Return the counts of all sources as if they came from one that saw nothing more than the log."""
    states, actions = len(world.states), len(world.actions)
    held = counts.to_space(world.space)
    cell = held.state.astype(np.int64) * actions + held.action
    visits = np.bincount(cell, held.n, states * actions)
    rewards = np.bincount(cell, held.reward_sum, states * actions) / np.maximum(visits, 1)
    goes_on = ~held.terminated & (held.next_state >= 0)
    goes_on[goes_on] = ~world.model.terminal[held.next_state[goes_on]]
    share = held.n[goes_on] / visits[cell[goes_on]]
    following = csr_array((share, (cell[goes_on], held.next_state[goes_on])), shape=(states * actions, states))
    n, paid = (np.asarray(table, dtype=np.float64).reshape(states, actions) for table in (visits, rewards))
    return Pooled(n, paid, following)


def vacuous(world: World) -> tuple[FloatArray, FloatArray]:
    """Return the most and the least that the steps left can pay, without any logs: float64 [horizon] each."""
    low, high = world.model.reward_range
    left = np.arange(world.horizon, 0, -1, dtype=np.float64)
    if world.model.terminal.any():  # an episode can end after one step
        return np.asarray(np.maximum(left * high, high)), np.asarray(np.minimum(left * low, low))
    return np.asarray(left * high), np.asarray(left * low)


def envelopes(world: World, logs: Pooled, width: float) -> tuple[FloatArray, FloatArray]:
    """Return upper optimal values [horizon, states, actions] and lower ones [horizon, states], logs unconfounded.

    With n visits, the mean of r + V' is known to within width * (sqrt(2 Var L / n) + range * L / (3 n)), L the log of
    the number of cells and steps over 0.05 (Bernstein); cells without visits can do anything.
    """
    (states, actions), horizon = logs.visits.shape, world.horizon
    exists, lasting = world.space.is_admissible, ~world.model.terminal
    most, least = vacuous(world)
    span = float(np.ptp(world.model.reward_range))
    log = math.log(exists.sum() * horizon / 0.05)
    n = np.maximum(logs.visits, 1)
    upper, lower = np.zeros((horizon, states, actions)), np.zeros((horizon, states))
    above, below = np.zeros(states), np.zeros(states)
    for h in reversed(range(horizon)):
        found = []
        for values, side in ((above, 1.0), (below, -1.0)):
            mean = (logs.following @ values).reshape(states, actions)
            square = (logs.following @ values**2).reshape(states, actions)
            deviation = np.sqrt(np.maximum(square - mean**2, 0.0)) + span / 2  # and of the reward, at most so much
            range_of = most[h] - least[h]
            error = width * (np.sqrt(2 * log / n) * deviation + range_of * log / (3 * n))
            limit = logs.rewards + mean + side * error
            anything = most[h] if side > 0 else least[h]
            limit = np.minimum(limit, anything) if side > 0 else np.maximum(limit, anything)
            found.append(np.where(logs.visits > 0, limit, anything))
        upper[h] = np.where(exists, found[0], -np.inf)
        lower[h] = np.where(lasting, np.where(exists, found[1], -np.inf).max(axis=1), 0.0)
        above, below = np.where(lasting, upper[h].max(axis=1), 0.0), lower[h]
    return upper, lower


def fitted_q(world: World, logs: Pooled, unlogged: str) -> FloatArray:
    """Return the Q-values of the logs' own model, as if nothing were hidden: float64 [horizon, states, actions].

    Cells that no log holds are worth the most there could be ("vacuous"), or the least ("pessimistic").
    """
    exists, lasting = world.space.is_admissible, ~world.model.terminal
    limits = vacuous(world)[0 if unlogged == "vacuous" else 1]
    q_values, values = np.zeros((world.horizon, *exists.shape)), np.zeros(len(lasting))
    for h in reversed(range(world.horizon)):
        known = logs.rewards + (logs.following @ values).reshape(exists.shape)
        found = np.where(exists, np.where(logs.visits > 0, known, limits[h]), -np.inf)
        q_values[h] = np.where(lasting[:, None], found, 0.0)
        values = q_values[h].max(axis=1)
    return q_values


def own_streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the world's stream of random numbers, which is the same for all learners, and the learner's own."""
    return np.random.default_rng(seed), np.random.default_rng([seed, 5])


def _empty(world: World, counts: Counts | None = None, most: float = math.inf) -> kernels.Seen:
    """Return what was seen: nothing, or what the logs hold, a cell worth at most `most` visits."""
    model, (states, actions) = world.model, world.space.is_admissible.shape
    room = 1 + int((np.diff(np.sort(model.next_state, axis=-1), axis=-1) > 0).sum(axis=-1).max())
    cells = states * actions
    seen = kernels.Seen(
        np.zeros((cells, room), dtype=np.int32),
        np.zeros((cells, room)),
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells),
        np.zeros(cells),
    )
    if counts is not None:
        held = counts.to_space(world.space)
        cell = held.state.astype(np.int64) * actions + held.action
        visits = np.bincount(cell, held.n, cells)
        weight = np.minimum(1.0, most / np.maximum(visits, 1))[cell]
        end = int(np.flatnonzero(model.terminal)[0]) if model.terminal.any() else 0
        after = np.where(held.terminated & (held.next_state < 0), end, held.next_state)
        for i in range(len(cell)):
            kernels.see(seen, cell[i], after[i], held.reward_sum[i] / held.n[i], held.n[i] * weight[i])
    return seen


def run_ucbvi(
    world: World,
    steps: int,
    seed: int,
    logs: Pooled | None = None,
    *,
    bonus: float,
    lower_order: float,
    width: float = 1.0,
) -> FloatArray:
    """Return the regret of each step of UCBVI: without logs, or between the envelopes of logs."""
    low, high = world.model.reward_range
    shape = (world.horizon, *world.space.is_admissible.shape)
    if logs is None:
        upper = np.broadcast_to(vacuous(world)[0][:, None, None], shape).copy()
        lower = np.full(shape[:-1], -np.inf)
    else:
        upper, lower = envelopes(world, logs, width)
    agent = kernels.Ucbvi(bonus, lower_order, high - low, upper, lower)
    return _planning(world, steps, seed, (agent, kernels.Psrl(1.0, 0.0, 1.0)), True, _empty(world))


def run_psrl(
    world: World, steps: int, seed: int, counts: Counts | None = None, *, prior: float, most: float = math.inf
) -> FloatArray:
    """Return the regret of each step of PSRL: without logs, or with the logs as data of its own."""
    low, high = world.model.reward_range
    nothing = kernels.Ucbvi(0.0, 0.0, 1.0, np.zeros((1, 1, 1)), np.zeros((1, 1)))
    agent = (nothing, kernels.Psrl(prior, low, max(high - low, 1e-12)))
    return _planning(world, steps, seed, agent, False, _empty(world, counts, most))


def _planning(world: World, steps: int, seed: int, agent: Any, optimistic: bool, seen: kernels.Seen) -> FloatArray:
    regret, gaps = np.zeros(steps), world.model.gaps(world.horizon)
    exists = world.space.is_admissible.copy()
    kernels.run_planning(own_streams(seed), tables_of(world.model), exists, gaps, agent, optimistic, seen, regret)
    return regret


def run_q(
    world: World,
    steps: int,
    seed: int,
    logs: list[Logs],
    pool: Pooled,
    *,
    replays: int = 0,
    rate: float = 0.0,
    explore: float = 0.0,
    initial: str = "fitted",
    most: float = 0.0,
) -> FloatArray:
    """Return the regret of each step of Q-learning with logs.

    Args:
        world: the world.
        steps: the budget.
        seed: equal seeds give equal runs.
        logs: the logs, to be replayed.
        pool: their counts.
        replays: how many rows of its own it learns from again at each step, and as many of the logs.
        rate: that of learning; 0 for one that falls with visits.
        explore: the chance of an action at random.
        initial: where it begins: "fitted" Q-values of the logs, or the "vacuous" most there could be.
        most: how many visits the logs are worth at most in a cell, where rates fall.
    """
    none = pool._replace(visits=np.zeros_like(pool.visits))
    q_values = fitted_q(world, pool if initial == "fitted" else none, "vacuous")
    q_values = np.concatenate([q_values, np.zeros_like(q_values[:1])])
    state, action, reward, after, final = (np.concatenate([getattr(one, name) for one in logs]) for name in COLUMNS)
    agent = kernels.Replay(rate, explore, replays, state, action, reward, np.where(after < 0, 0, after), final)
    regret, visits = np.zeros(steps), np.minimum(pool.visits, most)
    gaps, exists = world.model.gaps(world.horizon), world.space.is_admissible.copy()
    kernels.run_replay(own_streams(seed), tables_of(world.model), exists, gaps, agent, q_values, visits, regret)
    return regret
