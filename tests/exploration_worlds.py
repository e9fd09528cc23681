"""Standard problems of exploration in which a gust is hidden: demonstrators see it, the agent does not.

- `river_swim`: six states, a current (Strehl and Littman 2008).
- `deep_sea`: ten rows, a goal that only one sequence of actions reaches (Osband et al. 2019), and a gust to the left.
- `frozen_lake`, `cliff_walking`, `taxi`: Gymnasium's own tables. On the lake the slip is the hidden noise. At the cliff
  a gust pushes towards it. In the taxi it stalls or deflects a move.

Letters: s, x, u are state, action and hidden noise; beta[s, u, x] is a demonstrator.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import World

DISCOUNT = 0.97
"""Demonstrators look ahead with this discount, so that their tables do not depend on the step."""


def demonstrators_of(model: cs.TabularCMDP) -> dict[str, np.ndarray]:
    """Return two demonstrators who see the noise.

    "seeing" does what is best in it, and acts at random in a tenth of its steps; of equally good actions each has the
    same chance. "wanderer" leans towards what is good in it, by exp of the worth in standard deviations over actions.
    The worth is what the action pays in this noise, and the optimal value, with `DISCOUNT`, of where it leads.
    """
    values = model.optimum(discount=DISCOUNT).values
    worth = (model.reward + DISCOUNT * values[model.next_state]).transpose(0, 2, 1)  # [s, u, x]
    best = worth >= worth.max(axis=-1, keepdims=True) - 1e-9
    seeing = 0.9 * best / best.sum(axis=-1, keepdims=True) + 0.1 / worth.shape[-1]
    spread = worth.std(axis=-1, keepdims=True)
    tilt = np.exp(np.divide(worth - worth.mean(axis=-1, keepdims=True), spread + 1e-12))
    return {"seeing": seeing, "wanderer": tilt / tilt.sum(axis=-1, keepdims=True)}


def _world(name: str, model: cs.TabularCMDP, horizon: int, noises: tuple[str, ...]) -> World:
    return World(name, name, model, horizon, noises, demonstrators_of(model))


def river_swim(length: int = 6, horizon: int = 20) -> World:
    """Against the current to a reward of 1, or with it to one of 0.005.

    Left always moves left. Right moves right, stays or is carried left: with chances 0.35, 0.6 and 0.05 in the middle,
    0.6, 0.4 and 0 at the left end, 0.6 (staying there, paid), 0 and 0.4 at the right end. Nothing ends an episode.
    """
    next_state = np.zeros((length, 2, 3), dtype=int)  # noise: forward, held, carried
    reward, noise = np.zeros((length, 2, 3)), np.tile([0.35, 0.6, 0.05], (length, 1))
    noise[0], noise[-1] = [0.6, 0.4, 0.0], [0.6, 0.0, 0.4]
    for s in range(length):
        next_state[s, 0] = max(s - 1, 0)
        next_state[s, 1] = [min(s + 1, length - 1), s, max(s - 1, 0)]
    reward[0, 0], reward[-1, 1, 0] = 0.005, 1.0
    model = cs.TabularCMDP(
        next_state, reward, noise, np.zeros(length, dtype=bool), np.eye(length)[0], actions=("left", "right")
    )
    return _world("river-swim", model, horizon, ("forward", "held", "carried"))


def deep_sea(size: int = 10, seed: int = 0) -> World:
    """A square of cells: one action of each moves right, at a cost of 0.01 / size, the other left.

    Both move down, and after `size` steps it ends. Having moved right in all rows pays 1. Which action is right is
    drawn for each cell. With a chance of 1 / size a gust turns right into left, at the same cost.
    """
    rng, cells = np.random.default_rng(seed), size * size
    rightwards = rng.integers(0, 2, (size, size))
    next_state, reward = np.full((cells + 1, 2, 2), cells), np.zeros((cells + 1, 2, 2))
    for row in range(size):
        for column in range(size):
            for x in (0, 1):
                for u in (0, 1):  # noise: calm, gust
                    s, wants = row * size + column, x == rightwards[row, column]
                    moves = wants and u == 0
                    after = min(column + 1, size - 1) if moves else max(column - 1, 0)
                    if row + 1 < size:
                        next_state[s, x, u] = (row + 1) * size + after
                    reward[s, x, u] = -0.01 / size * wants + (moves and row == column == size - 1)
    model = cs.TabularCMDP(
        next_state,
        reward,
        np.tile([1 - 1 / size, 1 / size], (cells + 1, 1)),
        np.arange(cells + 1) == cells,
        np.eye(cells + 1)[0],
    )
    return _world("deep-sea", model, size, ("calm", "gust"))


def _gymnasium_table(env: gym.Env, part: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return next state and reward [s, x] of the entries `part` of an environment's own table P; ends have only one."""
    table = env.unwrapped.P
    rows = [[table[s][x][min(part, len(table[s][x]) - 1)] for x in table[s]] for s in range(len(table))]
    return np.array([[int(r[1]) for r in row] for row in rows]), np.array([[float(r[2]) for r in row] for row in rows])


def _ends(env: gym.Env) -> np.ndarray:
    """Return which states an environment's table ends in."""
    table = env.unwrapped.P
    ends = {int(after) for s in table for x in table[s] for _, after, _, ended in table[s][x] if ended}
    return np.isin(np.arange(len(table)), list(ends))


def _from_tables(env: gym.Env, parts: list[tuple[np.ndarray, np.ndarray]], chances: list[float]) -> cs.TabularCMDP:
    """Return the model of a table for each noise; what begins at an end stays there and pays nothing."""
    next_state, reward = (np.stack(tables, axis=-1) for tables in zip(*parts, strict=True))
    terminal = _ends(env)
    next_state[terminal], reward[terminal] = np.flatnonzero(terminal)[:, None, None], 0.0
    start = np.asarray(env.unwrapped.initial_state_distrib, dtype=float)
    return cs.TabularCMDP(next_state, reward, np.tile(chances, (len(terminal), 1)), terminal, start / start.sum())


def frozen_lake(horizon: int = 40) -> World:
    """Gymnasium's 4x4 map: the hidden slip turns a move left, not at all or right, a third each."""
    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    model = _from_tables(env, [_gymnasium_table(env, part) for part in range(3)], [1 / 3] * 3)
    return _world("frozen-lake", model, horizon, ("slips left", "holds", "slips right"))


def cliff_walking(gust: float = 0.15, horizon: int = 40) -> World:
    """Gymnasium's cliff; with chance `gust` whatever one does moves down, towards it."""
    env = gym.make("CliffWalking-v1")
    calm = _gymnasium_table(env)
    down = 2
    blown = tuple(np.repeat(table[:, down : down + 1], table.shape[1], axis=1) for table in calm)
    return _world("cliff-walking", _from_tables(env, [calm, blown], [1 - gust, gust]), horizon, ("calm", "gust"))


def taxi(gust: float = 0.1, horizon: int = 40) -> World:
    """Gymnasium's taxi of 500 states; with chance `gust` a move stalls, with the same chance it is deflected.

    A deflected move goes east instead of south, south instead of west, west instead of north, north instead of east.
    A stalled one costs the same and goes nowhere. Picking up and dropping are not affected.
    """
    env = gym.make("Taxi-v4")
    next_state, reward = _gymnasium_table(env)
    south, north, east, west = range(4)
    stalled, deflected = next_state.copy(), next_state.copy()
    stalled[:, :4] = np.arange(len(next_state))[:, None]
    for move, instead in ((south, east), (west, south), (north, west), (east, north)):
        deflected[:, move] = next_state[:, instead]
    parts = [(next_state, reward), (stalled, reward), (deflected, reward)]
    model = _from_tables(env, parts, [1 - 2 * gust, gust, gust])
    return _world("taxi", model, horizon, ("calm", "stalls", "deflects"))


PROBLEMS = {
    "RiverSwim": river_swim,
    "DeepSea": deep_sea,
    "FrozenLake": frozen_lake,
    "CliffWalking": cliff_walking,
    "Taxi": taxi,
}
