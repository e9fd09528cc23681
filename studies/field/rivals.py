"""What people would use instead, in tables: each with the same logs, the same budget and settings that were tuned.

- `run_ucbvi`: UCBVI (Azar et al. 2017), without logs or between *envelopes*: upper and lower optimal values from the
  logs taken as unconfounded, with Bernstein widths, as clips and initial values.
- `run_psrl`: posterior sampling (Osband et al. 2013), without logs or with the logs believed: a naive model as prior.
- `run_q`: Q-learning from naive fitted Q-values, also with the logs in its replay buffer, half and half.
- `envelopes`, `fitted_q`: what these take from the logs.

Settings are chosen on other worlds of the same kinds, see `SETTINGS`. All draw a uniform for the start of each episode
and one per step for the hidden noise from one stream, as our learners do, and whatever they draw for themselves from
another. They know which actions exist and which states are terminal.

Letters: s, x, u, h are state, action, hidden noise and step. A cell is s * actions + x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import pick, tables_of

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
    shortest = np.ones(world.horizon) if world.model.terminal.any() else left  # of an episode
    return np.maximum(left * high, shortest * high), np.minimum(left * low, shortest * low)


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
        limits = []
        for values, side, anything in ((above, 1.0, most[h]), (below, -1.0, least[h])):
            mean = (logs.following @ values).reshape(states, actions)
            square = (logs.following @ values**2).reshape(states, actions)
            deviation = np.sqrt(np.maximum(square - mean**2, 0.0)) + span / 2  # and of the reward, at most so much
            error = width * (np.sqrt(2 * log / n) * deviation + (most[h] - least[h]) * log / (3 * n))
            limit = np.clip(logs.rewards + mean + side * error, least[h], most[h])
            limits.append(np.where(exists, np.where(logs.visits > 0, limit, anything), -np.inf))
        upper[h], lower[h] = limits[0], np.where(lasting, limits[1].max(axis=1), 0.0)
        above, below = np.where(lasting, upper[h].max(axis=1), 0.0), lower[h]
    return upper, lower


def fitted_q(world: World, logs: Pooled) -> FloatArray:
    """Return the Q-values of the logs' own model, as if nothing were hidden: float64 [horizon, states, actions].

    Cells that no log holds are worth the most there could be.
    """
    exists, lasting = world.space.is_admissible, ~world.model.terminal
    most, _ = vacuous(world)
    q_values, values = np.zeros((world.horizon, *exists.shape)), np.zeros(len(lasting))
    for h in reversed(range(world.horizon)):
        known = logs.rewards + (logs.following @ values).reshape(exists.shape)
        found = np.where(exists, np.where(logs.visits > 0, known, most[h]), -np.inf)
        q_values[h] = np.where(lasting[:, None], found, 0.0)
        values = q_values[h].max(axis=1)
    return q_values


STICKS = 40
"""The most next states that were never seen, but are drawn."""


class Seen(NamedTuple):
    """What was seen to follow each cell, changed in place."""

    after: IntArray  # [cells, room], the next states
    times: FloatArray  # [cells, room]
    kinds: IntArray  # [cells], how many next states there are
    visits: FloatArray  # [cells]
    earned: FloatArray  # [cells], the sum of rewards


class Ucbvi(NamedTuple):
    """UCBVI: a bonus of `bonus` * span / sqrt(n) + `lower_order` * span * (H - h) / n, between limits of values."""

    bonus: float
    lower_order: float
    span: float
    upper: FloatArray  # [horizon, states, actions]
    lower: FloatArray  # [horizon, states]


class Psrl(NamedTuple):
    """PSRL: Dirichlet chances with a flat prior of `prior` visits, Beta rewards on the scale of low to low + span."""

    prior: float
    low: float
    span: float


class Replay(NamedTuple):
    """Q-learning with logs: how it learns, and the rows that it replays, those of the logs and then its own."""

    rate: float  # constant; 0: t^(-3/4) at the visit t
    replays: int  # updates a step from its own rows, and as many from the logs
    logged: int  # how many rows are the logs'
    state: IntArray
    action: IntArray
    reward: FloatArray
    after: IntArray
    final: BoolArray


def own_streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the world's stream of random numbers, which is the same for all learners, and the learner's own."""
    return np.random.default_rng(seed), np.random.default_rng([seed, 5])


def _seen(world: World, counts: Counts | None = None) -> Seen:
    """Return what was seen: nothing, or what the logs hold."""
    model, (states, actions) = world.model, world.space.is_admissible.shape
    room = 1 + int((np.diff(np.sort(model.next_state, axis=-1), axis=-1) > 0).sum(axis=-1).max())
    cells = states * actions
    after, times = np.zeros((cells, room), dtype=np.int32), np.zeros((cells, room))
    seen = Seen(after, times, np.zeros(cells, dtype=np.int64), np.zeros(cells), np.zeros(cells))
    if counts is not None:
        held = counts.to_space(world.space)
        cell = held.state.astype(np.int64) * actions + held.action
        end = int(np.flatnonzero(model.terminal)[0]) if model.terminal.any() else 0
        follows = np.where(held.terminated & (held.next_state < 0), end, held.next_state)
        for i in range(len(cell)):
            see(seen, cell[i], follows[i], held.reward_sum[i] / held.n[i], held.n[i])
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
    upper, lower = np.broadcast_to(vacuous(world)[0][:, None, None], shape).copy(), np.full(shape[:-1], -np.inf)
    if logs is not None:
        upper, lower = envelopes(world, logs, width)
    agent = Ucbvi(bonus, lower_order, high - low, upper, lower)
    return _planning(world, steps, seed, plan_ucbvi, agent, _seen(world))


def run_psrl(world: World, steps: int, seed: int, counts: Counts | None = None, *, prior: float) -> FloatArray:
    """Return the regret of each step of PSRL: without logs, or with the logs as data of its own."""
    low, high = world.model.reward_range
    agent = Psrl(prior, low, max(high - low, 1e-12))
    return _planning(world, steps, seed, plan_psrl, agent, _seen(world, counts))


def _planning(world: World, steps: int, seed: int, plan: Any, agent: Ucbvi | Psrl, seen: Seen) -> FloatArray:
    regret, gaps = np.zeros(steps), world.model.gaps(world.horizon)
    exists = world.space.is_admissible.copy()
    run_planning(own_streams(seed), tables_of(world.model), exists, gaps, plan, agent, seen, regret)
    return regret


@njit(nogil=True)
def see(seen, cell, after, reward, times):  # type: ignore[no-untyped-def]
    """Count what followed a cell."""
    kinds = seen.kinds[cell]
    at = 0
    while at < kinds and seen.after[cell, at] != after:
        at += 1
    if at == kinds:
        seen.after[cell, at] = after
        seen.kinds[cell] += 1
    seen.times[cell, at] += times
    seen.visits[cell] += times
    seen.earned[cell] += reward * times


@njit(nogil=True)
def plan_ucbvi(_, agent, seen, exists, terminal, q_values):  # type: ignore[no-untyped-def]
    """Fill in optimistic values, backwards: float64 [horizon, states, actions]."""
    horizon, states, actions = q_values.shape
    values = np.zeros(states)
    for h in range(horizon - 1, -1, -1):
        following = values.copy()
        most = agent.span * (horizon - h)
        for s in range(states):
            if terminal[s]:
                continue
            best = -np.inf
            for x in range(actions):
                if not exists[s, x]:
                    q_values[h, s, x] = -np.inf
                    continue
                cell, limit = s * actions + x, agent.upper[h, s, x]
                n = seen.visits[cell]
                if n > 0:
                    total = seen.earned[cell]
                    for i in range(seen.kinds[cell]):
                        total += seen.times[cell, i] * following[seen.after[cell, i]]
                    extra = agent.bonus * agent.span / np.sqrt(n) + agent.lower_order * most / n
                    limit = min(limit, total / n + min(extra, most))
                q_values[h, s, x] = limit
                best = max(best, limit)
            values[s] = max(best, agent.lower[h, s])


@njit(nogil=True)
def draw_next(rng, seen, cell, prior, states, after, chances):  # type: ignore[no-untyped-def]
    """Draw the chances of next states and return how many have any: a Dirichlet of a flat prior and what was seen.

    States that were not seen share theirs by sticks in order of size, which is exact for a symmetric Dirichlet; the
    last hundredth goes to one state.
    """
    kinds, flat = seen.kinds[cell], prior / states
    total = 0.0
    for i in range(kinds):
        after[i] = seen.after[cell, i]
        chances[i] = rng.standard_gamma(seen.times[cell, i] + flat)
        total += chances[i]
    unseen = states - kinds
    if unseen > 0:
        left = rng.standard_gamma(flat * unseen)
        total += left
        some, least = kinds, 1e-2 * left
        while left > 0.0 and unseen > 0 and some < len(after):
            share = 1.0
            if unseen > 1 and left > least and some < len(after) - 1:
                share = rng.beta(1.0 + flat, flat * (unseen - 1))
            state = int(rng.random() * states)
            while (after[:some] == state).any():  # it must not be among them yet
                state = int(rng.random() * states)
            after[some], chances[some] = state, left * share
            left -= left * share
            some, unseen = some + 1, unseen - 1
            if share == 1.0:
                break
        kinds = some
    for i in range(kinds):
        chances[i] /= total
    return kinds


@njit(nogil=True)
def plan_psrl(rng, agent, seen, exists, terminal, q_values):  # type: ignore[no-untyped-def]
    """Draw a world and fill in its optimal values, backwards."""
    horizon, states, actions = q_values.shape
    room = states * actions, min(states, seen.after.shape[1] + STICKS)
    after, chances = np.zeros(room, dtype=np.int32), np.zeros(room)
    kinds, paid = np.zeros(states * actions, dtype=np.int64), np.zeros(states * actions)
    for cell in range(states * actions):
        if terminal[cell // actions] or not exists[cell // actions, cell % actions]:
            continue
        kinds[cell] = draw_next(rng, seen, cell, agent.prior, states, after[cell], chances[cell])
        good = (seen.earned[cell] - agent.low * seen.visits[cell]) / agent.span
        bad = max(seen.visits[cell] - good, 0.0)
        paid[cell] = agent.low + agent.span * rng.beta(1.0 + max(good, 0.0), 1.0 + bad)
    values = np.zeros(states)
    for h in range(horizon - 1, -1, -1):
        following = values.copy()
        for s in range(states):
            if terminal[s]:
                continue
            best = -np.inf
            for x in range(actions):
                value = -np.inf
                if exists[s, x]:
                    cell = s * actions + x
                    value = paid[cell]
                    for i in range(kinds[cell]):
                        value += chances[cell, i] * following[after[cell, i]]
                q_values[h, s, x] = value
                best = max(best, value)
            values[s] = best


@njit(nogil=True)
def run_planning(streams, tables, exists, gaps, plan, agent, seen, regret):  # type: ignore[no-untyped-def]
    """Let UCBVI or PSRL plan before each episode and act; fill in the regret of each step."""
    stream, own = streams
    next_state, reward, noise, terminal, start = tables
    horizon, _, actions = gaps.shape
    q_values = np.zeros(gaps.shape)
    h, s = horizon, 0
    for done in range(len(regret)):
        if h == horizon:
            h, s = 0, pick(start, stream.random())
            plan(own, agent, seen, exists, terminal, q_values)
        x = q_values[h, s].argmax()
        regret[done] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after = next_state[s, x, u]
        see(seen, s * actions + x, after, reward[s, x, u], 1.0)
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)


def run_q(
    world: World,
    steps: int,
    seed: int,
    logs: list[Logs],
    pool: Pooled,
    *,
    replays: int = 0,
    rate: float = 0.0,
    most: float = 0.0,
) -> FloatArray:
    """Return the regret of each step of Q-learning from the fitted Q-values of logs.

    Args:
        world: the world.
        steps: the budget.
        seed: equal seeds give equal runs.
        logs: the logs, to be replayed.
        pool: their counts.
        replays: how many rows of its own it learns from again at each step, and as many of the logs.
        rate: that of learning; 0 for one that falls with visits.
        most: how many visits the logs are worth at most in a cell, where rates fall.
    """
    q_values = fitted_q(world, pool)
    q_values = np.concatenate([q_values, np.zeros_like(q_values[:1])])
    agent = Replay(rate, replays, sum(map(len, logs)), *replayed(logs, steps))
    regret, visits, gaps = np.zeros(steps), np.minimum(pool.visits, most), world.model.gaps(world.horizon)
    run_replay(own_streams(seed), tables_of(world.model), gaps, agent, q_values, visits, regret)
    return regret


def replayed(logs: list[Logs], steps: int) -> Iterator[Any]:
    """Yield the columns of logs, with room for so many rows more."""
    for name in ("state", "action", "reward", "next_state", "terminated"):
        column = np.concatenate([getattr(one, name) for one in logs])
        if name == "next_state":
            column = np.maximum(column, 0)  # what is unknown is where an episode ended
        yield np.append(column, np.zeros(steps, column.dtype))


@njit(nogil=True)
def run_replay(streams, tables, gaps, agent, q_values, visits, regret):  # type: ignore[no-untyped-def]
    """Let Q-learning act, replaying its own rows and those of the logs half and half; fill in the regret.

    `q_values` [horizon + 1, states, actions] are where it begins, 0 in the last, and `visits` [states, actions] how
    many it has already learned from. What is seen is learned for all steps of the episode at once, since the world is
    the same at each of them.
    """
    stream, own = streams
    next_state, reward, noise, terminal, start = tables
    horizon, first = len(gaps), agent.logged
    h, s = horizon, 0
    for done in range(len(regret)):
        if h == horizon:
            h, s = 0, pick(start, stream.random())
        x = q_values[h, s].argmax()
        regret[done] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after = next_state[s, x, u]
        i = first + done
        agent.state[i], agent.action[i], agent.reward[i] = s, x, reward[s, x, u]
        agent.after[i], agent.final[i] = after, terminal[after]
        _learn(agent, i, q_values, visits)
        for _ in range(agent.replays):
            _learn(agent, first + int(own.random() * (done + 1)), q_values, visits)
            _learn(agent, int(own.random() * first), q_values, visits)
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)


@njit(nogil=True)
def _learn(agent, i, q_values, visits):  # type: ignore[no-untyped-def]
    """Learn from the row i."""
    s, x = agent.state[i], agent.action[i]
    visits[s, x] += 1.0
    rate = agent.rate if agent.rate > 0 else visits[s, x] ** -0.75
    for h in range(len(q_values) - 1):
        target = agent.reward[i]
        if not agent.final[i]:
            target += q_values[h + 1, agent.after[i]].max()
        q_values[h, s, x] += rate * (target - q_values[h, s, x])
