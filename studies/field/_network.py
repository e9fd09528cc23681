"""A small Q-network that learns from a replay buffer, compiled.

Its batches are small, so that the calls of a framework would cost much of the time. Two hidden layers of rectified
units over one-hot states and steps, which are looked up rather than multiplied, and two heads: Q-values and the logits
of imitation. Letters: s, x, u, h are state, action, hidden noise and step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.worlds.simulate import pick

Real = npt.NDArray[np.float32]
ADAM = (0.9, 0.999, 1e-8)


class Weights(NamedTuple):
    """The network; also its gradients and their moments."""

    first: Real  # [states, width]
    clock: Real  # [steps, width]; one step if the network does not see it
    second: Real  # [width, width]
    bias: Real  # [width]
    heads: Real  # [width, 2 * actions]
    head_bias: Real  # [2 * actions]


class Learning(NamedTuple):
    """How it learns; a pair is for the logs, and then online."""

    threshold: tuple[float, float]
    conservative: tuple[float, float]
    explore: float
    discount: float
    rate: float
    updates: int
    every: int
    batch: int
    target_every: int


class Rows(NamedTuple):
    """Logged rows, and room for the agent's own."""

    state: IntArray
    action: IntArray
    reward: FloatArray
    after: IntArray
    final: BoolArray


@njit(nogil=True)
def forward(weights, states, steps):  # type: ignore[no-untyped-def]
    """Return both hidden layers and the heads: float32 [rows, width], [rows, width], [rows, 2 * actions]."""
    lower = np.empty((len(states), weights.first.shape[1]), dtype=np.float32)
    for i in range(len(states)):
        for k in range(lower.shape[1]):
            lower[i, k] = max(weights.first[states[i], k] + weights.clock[steps[i], k], np.float32(0))
    upper = np.dot(lower, weights.second)
    for i in range(len(states)):
        for k in range(upper.shape[1]):
            upper[i, k] = max(upper[i, k] + weights.bias[k], np.float32(0))
    return lower, upper, np.dot(upper, weights.heads) + weights.head_bias


@njit(nogil=True)
def best_of(heads, exists, threshold):  # type: ignore[no-untyped-def]
    """Return the action of the largest Q-value among those that exist and are imitated often enough."""
    actions = len(exists)
    most = -np.inf
    for x in range(actions):
        if exists[x]:
            most = max(most, heads[actions + x])
    best, found = -1, -np.inf
    for x in range(actions):
        imitated = threshold == 0.0 or heads[actions + x] - most > np.log(threshold)
        if exists[x] and imitated and heads[x] > found:
            best, found = x, heads[x]
    return best


@njit(nogil=True)
def add_softmax(row, exists, taken, weight, gradient):  # type: ignore[no-untyped-def]
    """Add the gradient of weight * (log sum exp(row) - row[taken]), over actions that exist."""
    most, total = -np.inf, 0.0
    for x in range(len(exists)):
        if exists[x]:
            most = max(most, row[x])
    for x in range(len(exists)):
        if exists[x]:
            total += np.exp(row[x] - most)
    for x in range(len(exists)):
        if exists[x]:
            gradient[x] += np.float32(weight * (np.exp(row[x] - most) / total - (x == taken)))


@njit(nogil=True)
def gradient_of(weights, target, rows, drawn, steps, exists, threshold, conservative, discount):  # type: ignore[no-untyped-def]
    """Return the gradient of the mean loss of `run_network` over drawn rows, each taken for one of a step."""
    size, actions, clock = len(drawn), exists.shape[1], len(weights.clock)
    state, after = rows.state[drawn], rows.after[drawn]
    later = np.minimum(steps + 1, clock - 1)
    lower, upper, heads = forward(weights, state, steps)
    following, future = forward(weights, after, later)[2], forward(target, after, later)[2]
    slope = np.zeros(heads.shape, dtype=np.float32)
    for i in range(size):
        goal, x = rows.reward[drawn[i]], rows.action[drawn[i]]
        if not rows.final[drawn[i]] and (clock == 1 or steps[i] + 1 < clock):
            goal += discount * future[i, best_of(following[i], exists[after[i]], threshold)]
        slope[i, x] = min(max(heads[i, x] - goal, -1.0), 1.0) / size
        here = exists[state[i]]
        if threshold > 0.0:
            add_softmax(heads[i, actions:], here, x, 1.0 / size, slope[i, actions:])
        if conservative > 0.0:
            add_softmax(heads[i, :actions], here, x, conservative / size, slope[i, :actions])
    above = np.dot(slope, weights.heads.T)
    above = np.where(upper > 0, above, np.float32(0))
    below = np.dot(above, weights.second.T)
    first, ticks = np.zeros_like(weights.first), np.zeros_like(weights.clock)
    for i in range(size):
        for k in range(below.shape[1]):
            if lower[i, k] > 0:
                first[state[i], k] += below[i, k]
                ticks[steps[i], k] += below[i, k]
    if clock == 1:
        ticks[:] = 0
    return Weights(first, ticks, np.dot(lower.T, above), above.sum(axis=0), np.dot(upper.T, slope), slope.sum(axis=0))


@njit(nogil=True)
def adam(weights, gradient, mean, square, rate, done):  # type: ignore[no-untyped-def]
    """Take the `done`-th step of Adam on one array, in place."""
    small, large, least = ADAM
    for i in range(weights.size):
        one = gradient.flat[i]
        mean.flat[i] = small * mean.flat[i] + (1 - small) * one
        square.flat[i] = large * square.flat[i] + (1 - large) * one * one
        step = mean.flat[i] / (1 - small**done)
        weights.flat[i] -= rate * step / (np.sqrt(square.flat[i] / (1 - large**done)) + least)


@njit(nogil=True)
def update(own, weights, target, moments, learning, rows, logged, mine, exists, done, phase):  # type: ignore[no-untyped-def]
    """Draw a batch, half of it its own rows if there are any, and take a gradient step."""
    drawn, steps = np.empty(learning.batch, dtype=np.int64), np.empty(learning.batch, dtype=np.int64)
    for i in range(learning.batch):
        from_own = mine > 0 and i % 2 == 1
        drawn[i] = logged + int(own.random() * mine) if from_own else int(own.random() * logged)
        steps[i] = int(own.random() * len(weights.clock))
    if done % learning.target_every == 0:
        copy(target, weights)
    slope = gradient_of(
        *(weights, target, rows, drawn, steps, exists),
        *(learning.threshold[phase], learning.conservative[phase], learning.discount),
    )
    mean, square = moments
    adam(weights.first, slope.first, mean.first, square.first, learning.rate, done + 1)
    adam(weights.clock, slope.clock, mean.clock, square.clock, learning.rate, done + 1)
    adam(weights.second, slope.second, mean.second, square.second, learning.rate, done + 1)
    adam(weights.bias, slope.bias, mean.bias, square.bias, learning.rate, done + 1)
    adam(weights.heads, slope.heads, mean.heads, square.heads, learning.rate, done + 1)
    adam(weights.head_bias, slope.head_bias, mean.head_bias, square.head_bias, learning.rate, done + 1)


@njit(nogil=True)
def copy(target, weights):  # type: ignore[no-untyped-def]
    """Write the weights into the target."""
    target.first[:], target.clock[:], target.second[:] = weights.first, weights.clock, weights.second
    target.bias[:], target.heads[:], target.head_bias[:] = weights.bias, weights.heads, weights.head_bias


@njit(nogil=True)
def run(streams, tables, exists, gaps, weights, target, moments, learning, rows, scale, regret):  # type: ignore[no-untyped-def]
    """Train on the logs, then act and go on learning; fill in the regret of each step.

    `rows` begin with the logs, whose rewards are multiplied by `scale` already, and end with room for all steps.
    """
    stream, own = streams
    next_state, reward, noise, terminal, start = tables
    horizon, steps = len(gaps), len(regret)
    logged, clock = len(rows.state) - steps, len(weights.clock)
    for done in range(learning.updates):
        update(own, weights, target, moments, learning, rows, logged, 0, exists, done, 0)
    done, h, s = learning.updates, horizon, 0
    at, when = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for mine in range(steps):
        if h == horizon:
            h, s = 0, pick(start, stream.random())
        if own.random() < learning.explore * (1 - mine / steps):
            some = np.flatnonzero(exists[s])
            x = some[int(own.random() * len(some))]
        else:
            at[0], when[0] = s, min(h, clock - 1)
            x = best_of(forward(weights, at, when)[2][0], exists[s], learning.threshold[1])
        regret[mine] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after, place = next_state[s, x, u], logged + mine
        rows.state[place], rows.action[place], rows.after[place] = s, x, after
        rows.reward[place], rows.final[place] = scale * reward[s, x, u], terminal[after]
        if mine % learning.every == learning.every - 1:
            update(own, weights, target, moments, learning, rows, logged, mine + 1, exists, done, 1)
            done += 1
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)
