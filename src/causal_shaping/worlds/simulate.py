"""Compiled simulation of a demonstrator, and the tables that compiled code walks through.

Randomness is one stream of uniforms: one for the start of an episode, then for each step one for
the hidden noise and one for the demonstrator's action. An agent that acts by itself takes no draw
for the action.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from causal_shaping._compile import INLINED, njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.models.cmdp import TabularCMDP


def cumulative(probabilities: FloatArray) -> FloatArray:
    """Return running sums over the last axis that end in exactly 1, for `pick`."""
    sums = np.cumsum(probabilities, axis=-1)
    return np.asarray(sums / sums[..., -1:])


@njit()
def pick(sums: FloatArray, uniform: float) -> int:
    """Return the first position whose running sum exceeds a uniform number in [0, 1)."""
    position = 0
    while sums[position] <= uniform:
        position += 1
    return position


@njit()
def guide_of(sums: FloatArray) -> Any:
    """Return where `pick` would end for the least number of each of many equal parts of [0, 1).

    int64 [parts], a power of 2 of at least four times as many as positions, for `pick_guided`.
    """
    parts = 1
    while parts < 4 * len(sums):
        parts *= 2
    return np.searchsorted(sums, np.arange(parts) / parts, side="right")


@njit(**INLINED)
def pick_guided(sums: FloatArray, guide: Any, uniform: float) -> int:
    """Return `pick(sums, uniform)` in constant time, with a guide made by `guide_of`."""
    position: int = guide[int(uniform * len(guide))]
    while sums[position] <= uniform:
        position += 1
    return position


@njit(**INLINED)
def pick_in_row(sums: FloatArray, row: int, uniform: float) -> int:
    """Return `pick(sums[row], uniform)` of a short row.

    It has no branch, as the processor could not predict one.
    """
    position = 0
    for k in range(sums.shape[1] - 1):
        position += sums[row, k] <= uniform
    return position


class Tables(NamedTuple):
    """The arrays of a `TabularCMDP` without steps, for compiled code."""

    next_state: IntArray  # [states, actions, noises]
    reward: FloatArray  # [states, actions, noises]
    noise: FloatArray  # [states, noises], running sums for `pick`
    terminal: BoolArray  # [states]
    start: FloatArray  # [states], running sums for `pick`


def tables_of(model: TabularCMDP) -> Tables:
    """Return the tables of a model."""
    noise, start = cumulative(model.noise), cumulative(model.start)
    return Tables(model.next_state, model.reward, noise, model.terminal, start)


@njit()
def watch(
    rng: np.random.Generator, steps: int, horizon: int, tables: Tables, beta: FloatArray
) -> Any:
    """Return the columns of a demonstrator's log; its last episode is cut where the steps end.

    Args:
        rng: the stream of uniforms.
        steps: the number of rows.
        horizon: the number of steps after which an episode is truncated.
        tables: the world.
        beta: running sums of the demonstrator's probabilities, float64 [states, noises, actions].

    Returns:
        Episode, step, state, action, reward, next state, terminated, truncated: each [steps].
    """
    next_state, reward, noise, terminal, start = tables
    episodes, rewards = np.empty(steps, dtype=np.int64), np.empty(steps, dtype=np.float64)
    hs, states = np.empty(steps, dtype=np.int32), np.empty(steps, dtype=np.int32)
    actions, next_states = np.empty(steps, dtype=np.int32), np.empty(steps, dtype=np.int32)
    terminated, truncated = np.empty(steps, dtype=np.bool_), np.empty(steps, dtype=np.bool_)
    episode, h = 0, 0
    s = pick(start, rng.random())
    for row in range(steps):
        # The hidden noise u comes first: the demonstrator sees it when it chooses x.
        u = pick_in_row(noise, s, rng.random())
        x = pick(beta[s, u], rng.random())
        after = next_state[s, x, u]
        ends = terminal[after]
        cut = not ends and (h + 1 == horizon or row + 1 == steps)
        episodes[row], hs[row], states[row], actions[row] = episode, h, s, x
        rewards[row], next_states[row] = reward[s, x, u], after
        terminated[row], truncated[row] = ends, cut
        # The next episode starts only if a row is left for it: the stream holds no unused draw.
        if not (ends or cut):
            h, s = h + 1, after
        elif row + 1 < steps:
            episode, h, s = episode + 1, 0, pick(start, rng.random())
    return episodes, hs, states, actions, rewards, next_states, terminated, truncated
