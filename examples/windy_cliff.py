"""Gymnasium's CliffWalking with gusts that the pilot feels and that are not logged.

- `Gusts`, `make_world`: the wrapper, and the world. An agent acts without feeling the gust.
- `pilot`, `novice`: the demonstrators.
- `fly`: log one of them.
- `model_of`: the same world as tables, from which the truth is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow as pa

import causal_shaping as cs

ACTIONS = ("up", "right", "down", "left")  # in CliffWalking's order
UP, RIGHT, DOWN, _ = range(4)
ROWS, COLUMNS = 4, 12
HORIZON = 50  # steps per episode
GUST = 0.2  # the chance of a gust at a step
REWARD_MAX, FALL = -1.0, -100.0  # what CliffWalking pays for a step, and for a fall, which leads back to the start


class Gusts(gym.Wrapper):
    """Blows the craft down in one step of five, whatever it does, unless it climbs.

    `gust` says whether there is a gust at the next step. It is drawn afresh at each step and is not observed.
    `falls` and `arrivals` count what happened since the beginning.
    """

    falls = arrivals = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        found = self.env.reset(seed=seed, options=options)
        self.gust = bool(self.np_random.random() < GUST)
        return found

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act; a gust turns any action but UP into DOWN."""
        state, reward, terminated, truncated, info = self.env.step(DOWN if self.gust and action != UP else int(action))
        self.gust = bool(self.np_random.random() < GUST)
        self.falls, self.arrivals = self.falls + (reward == FALL), self.arrivals + terminated
        return state, float(reward), terminated, truncated, info


def make_world() -> Gusts:
    """Return the world: CliffWalking with a time limit, and gusts."""
    return Gusts(gym.make("CliffWalking-v1", max_episode_steps=HORIZON, disable_env_checker=True))


def pilot(state: int, gust: bool, rng: np.random.Generator) -> int:
    """Fly the shortest way, along the edge, and climb whenever a gust is coming."""
    row, column = divmod(state, COLUMNS)
    if column == COLUMNS - 1:
        return DOWN
    return UP if row == 3 or (row == 2 and gust) else RIGHT


def novice(state: int, gust: bool, rng: np.random.Generator) -> int:
    """Feel nothing: keep one row away from the edge, and act at random half of the time."""
    row, column = divmod(state, COLUMNS)
    if rng.random() < 0.5:
        return int(rng.integers(len(ACTIONS)))
    return DOWN if column == COLUMNS - 1 else UP if row > 1 else RIGHT


def fly(demonstrator: Callable[[int, bool, np.random.Generator], int], steps: int, seed: int) -> pa.Table:
    """Return logs of complete episodes with at least `steps` rows; the gust is not among the columns."""
    env, rng, rows, episode = make_world(), np.random.default_rng(seed), [], 0
    env.reset(seed=seed)
    while len(rows) < steps:
        (state, _), over, step = env.reset(), False, 0
        while not over:
            action = demonstrator(state, env.gust, rng)
            after, reward, terminated, truncated, _ = env.step(action)
            rows.append((episode, step, state, ACTIONS[action], reward, after, terminated, truncated))
            state, over, step = after, terminated or truncated, step + 1
        episode += 1
    names = ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def model_of(env: gym.Env[Any, Any]) -> cs.TabularCMDP:
    """Return CliffWalking's own table of moves with the gust as hidden noise: the true model."""
    moves = env.unwrapped.P
    states, goal = len(moves), len(moves) - 1
    next_state, reward = np.zeros((states, len(ACTIONS), 2), dtype=int), np.zeros((states, len(ACTIONS), 2))
    for s in range(states):
        for x in range(len(ACTIONS)):
            for u, executed in enumerate((x, x if x == UP else DOWN)):
                _, next_state[s, x, u], reward[s, x, u], _ = moves[s][executed][0]
    next_state[goal], reward[goal] = goal, 0.0
    terminal, start = np.arange(states) == goal, np.arange(states) == env.unwrapped.start_state_index
    return cs.TabularCMDP(
        next_state=next_state,
        reward=reward,
        noise=np.tile([1 - GUST, GUST], (states, 1)),
        terminal=terminal,
        start=start,
        actions=ACTIONS,
    )
