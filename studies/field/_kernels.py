"""The rivals' loops, compiled: UCBVI, PSRL, and Q-learning with replay.

All draw a uniform for the start of each episode and one per step for the hidden noise from one stream, as our learners
do, and whatever they draw for themselves from another. They know which actions exist and which states are terminal.

Letters: s, x, u, h are state, action, hidden noise and step. A cell is s * actions + x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.worlds.simulate import pick

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
    """Q-learning with logs: how it learns, and the rows that it replays."""

    rate: float  # constant; 0: t^(-3/4) at the visit t
    explore: float  # the chance of an action at random
    replays: int  # updates a step from its own rows, and as many from the logs
    state: IntArray  # the logs' rows
    action: IntArray
    reward: FloatArray
    after: IntArray
    final: BoolArray


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
def plan_ucbvi(agent, seen, exists, terminal, q_values):  # type: ignore[no-untyped-def]
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
            while True:  # a state that is not among them yet
                state = int(rng.random() * states)
                known = False
                for i in range(some):
                    known = known or after[i] == state
                if not known:
                    break
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
def plan_psrl(rng, agent, seen, exists, terminal, drawn, q_values):  # type: ignore[no-untyped-def]
    """Draw a world and fill in its optimal values, backwards."""
    horizon, states, actions = q_values.shape
    after, chances = drawn
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
def run_planning(streams, tables, exists, gaps, agent, optimistic, seen, regret):  # type: ignore[no-untyped-def]
    """Let UCBVI (`optimistic`) or PSRL plan before each episode and act; fill in the regret of each step."""
    stream, own = streams
    next_state, reward, noise, terminal, start = tables
    horizon, _, actions = gaps.shape
    q_values = np.zeros(gaps.shape)
    room = (0, 0) if optimistic else (len(seen.visits), min(gaps.shape[1], seen.after.shape[1] + STICKS))
    drawn = (np.zeros(room, dtype=np.int32), np.zeros(room))
    h, s = horizon, 0
    for done in range(len(regret)):
        if h == horizon:
            h, s = 0, pick(start, stream.random())
            if optimistic:
                plan_ucbvi(agent[0], seen, exists, terminal, q_values)
            else:
                plan_psrl(own, agent[1], seen, exists, terminal, drawn, q_values)
        x = q_values[h, s].argmax()
        regret[done] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after = next_state[s, x, u]
        see(seen, s * actions + x, after, reward[s, x, u], 1.0)
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)


@njit(nogil=True)
def run_replay(streams, tables, exists, gaps, agent, q_values, visits, regret):  # type: ignore[no-untyped-def]
    """Let Q-learning act, replaying its own rows and those of the logs half and half; fill in the regret.

    `q_values` [horizon + 1, states, actions] are where it begins, 0 in the last, and `visits` [states, actions] how
    many it has already learned from. What is seen is learned for all steps of the episode at once, since the world is
    the same at each of them.
    """
    stream, own = streams
    next_state, reward, noise, terminal, start = tables
    horizon, steps = len(gaps), len(regret)
    rows = np.zeros(steps, dtype=np.int32), np.zeros(steps, dtype=np.int32), np.zeros(steps)
    nexts, finals = np.zeros(steps, dtype=np.int32), np.zeros(steps, dtype=np.bool_)
    states, actions, rewards = rows
    h, s = horizon, 0
    for done in range(steps):
        if h == horizon:
            h, s = 0, pick(start, stream.random())
        x = q_values[h, s].argmax()
        if agent.explore > 0.0 and own.random() < agent.explore:
            some = np.flatnonzero(exists[s])
            x = some[int(own.random() * len(some))]
        regret[done] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after = next_state[s, x, u]
        states[done], actions[done], rewards[done], nexts[done] = s, x, reward[s, x, u], after
        finals[done] = terminal[after]
        _learn(q_values, visits, agent.rate, s, x, rewards[done], after, finals[done])
        for _ in range(agent.replays):
            i = int(own.random() * (done + 1))
            _learn(q_values, visits, agent.rate, states[i], actions[i], rewards[i], nexts[i], finals[i])
            i = int(own.random() * len(agent.state))
            _learn(
                *(q_values, visits, agent.rate, agent.state[i], agent.action[i]),
                *(agent.reward[i], agent.after[i], agent.final[i]),
            )
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)


@njit(nogil=True)
def _learn(q_values, visits, rate, s, x, reward, after, final):  # type: ignore[no-untyped-def]
    horizon = len(q_values) - 1
    visits[s, x] += 1.0
    if rate == 0.0:
        rate = visits[s, x] ** -0.75
    for h in range(horizon):
        target = reward
        if not final:
            best = q_values[h + 1, after, 0]
            for k in range(1, q_values.shape[2]):
                best = max(best, q_values[h + 1, after, k])
            target += best
        q_values[h, s, x] += rate * (target - q_values[h, s, x])
