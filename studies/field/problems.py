"""Standard problems in which a gust or a hint is hidden: demonstrators see it, the agent does not.

- `frozen_lake`, `cliff_walking`, `taxi`: Gymnasium's own tables. On the lake the slip is the hidden noise. At the cliff
  a gust pushes towards it. In the taxi it stalls or deflects a move.
- `blackjack`: Gymnasium's rules as tables; the hint is the next card, and what the dealer will have.
- `river_swim`: a current (Strehl and Littman 2008).
- `deep_sea`: a goal that only one sequence of actions reaches (Osband et al. 2019), and a gust to the left.

Letters: s, x, u are state, action and hidden noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from causal_shaping.data.arrays import FloatArray, IntArray
from causal_shaping.models.cmdp import TabularCMDP


class Problem(NamedTuple):
    """A problem: its tables, its horizon, and the names of its noises."""

    model: TabularCMDP
    horizon: int
    noises: tuple[str, ...]


def river_swim(length: int = 6, horizon: int = 20) -> Problem:
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
    model = TabularCMDP(
        next_state, reward, noise, np.zeros(length, dtype=bool), np.eye(length)[0], actions=("left", "right")
    )
    return Problem(model, horizon, ("forward", "held", "carried"))


def deep_sea(size: int = 10, seed: int = 0) -> Problem:
    """A square of cells: one action of each moves right, at a cost of 0.01 / size, the other left.

    Both move down, and after `size` steps it ends. Having moved right in all rows pays 1. Which action is right is
    drawn for each cell. With a chance of 1 / size a gust turns right into left, at the same cost.
    """
    rng, cells = np.random.default_rng(seed), size * size
    rightwards = rng.integers(0, 2, (size, size))
    next_state, reward = np.full((cells + 1, 2, 2), cells), np.zeros((cells + 1, 2, 2))
    for row, column, x, u in itertools.product(range(size), range(size), (0, 1), (0, 1)):  # noise: calm, gust
        s, wants = row * size + column, x == rightwards[row, column]
        moves = wants and u == 0
        after = min(column + 1, size - 1) if moves else max(column - 1, 0)
        if row + 1 < size:
            next_state[s, x, u] = (row + 1) * size + after
        reward[s, x, u] = -0.01 / size * wants + (moves and row == column == size - 1)
    noise, ends = np.tile([1 - 1 / size, 1 / size], (cells + 1, 1)), np.arange(cells + 1) == cells
    model = TabularCMDP(next_state, reward, noise, ends, np.eye(cells + 1)[0])
    return Problem(model, size, ("calm", "gust"))


def _entries(env: Any, part: int = 0) -> tuple[IntArray, FloatArray]:
    """Return next state and reward [s, x] of the entries `part` of an environment's own table P; ends have only one."""
    table = env.unwrapped.P
    rows = [[table[s][x][min(part, len(table[s][x]) - 1)] for x in table[s]] for s in range(len(table))]
    return np.array([[int(r[1]) for r in row] for row in rows]), np.array([[float(r[2]) for r in row] for row in rows])


def _from_tables(env: Any, parts: list[tuple[IntArray, FloatArray]], chances: list[float]) -> TabularCMDP:
    """Return the model of a table for each noise; what begins at an end stays there and pays nothing."""
    next_state, reward = (np.stack(tables, axis=-1) for tables in zip(*parts, strict=True))
    table = env.unwrapped.P
    ends = {int(after) for s in table for x in table[s] for _, after, _, ended in table[s][x] if ended}
    terminal = np.isin(np.arange(len(table)), list(ends))
    next_state[terminal], reward[terminal] = np.flatnonzero(terminal)[:, None, None], 0.0
    start = np.asarray(env.unwrapped.initial_state_distrib, dtype=float)
    return TabularCMDP(next_state, reward, np.tile(chances, (len(terminal), 1)), terminal, start / start.sum())


def frozen_lake(horizon: int = 40, size: str = "4x4") -> Problem:
    """Gymnasium's map: the hidden slip turns a move left, not at all or right, a third each."""
    env = gym.make("FrozenLake-v1", map_name=size, is_slippery=True)
    model = _from_tables(env, [_entries(env, part) for part in range(3)], [1 / 3] * 3)
    return Problem(model, horizon, ("slips left", "holds", "slips right"))


def cliff_walking(gust: float = 0.15, horizon: int = 40) -> Problem:
    """Gymnasium's cliff; with chance `gust` whatever one does moves down, towards it."""
    env = gym.make("CliffWalking-v1")
    next_state, reward = calm = _entries(env)
    actions, down = next_state.shape[1], 2
    blown = tuple(np.repeat(table[:, down : down + 1], actions, axis=1) for table in (next_state, reward))
    return Problem(_from_tables(env, [calm, blown], [1 - gust, gust]), horizon, ("calm", "gust"))  # type: ignore[list-item]


def taxi(gust: float = 0.1, horizon: int = 40) -> Problem:
    """Gymnasium's taxi of 500 states; with chance `gust` a move stalls, with the same chance it is deflected.

    A deflected move goes east instead of south, south instead of west, west instead of north, north instead of east.
    A stalled one costs the same and goes nowhere. Picking up and dropping are not affected.
    """
    env = gym.make("Taxi-v4")
    next_state, reward = _entries(env)
    south, north, east, west = range(4)
    stalled, deflected = next_state.copy(), next_state.copy()
    stalled[:, :4] = np.arange(len(next_state))[:, None]
    for move, instead in ((south, east), (west, south), (north, west), (east, north)):
        deflected[:, move] = next_state[:, instead]
    parts = [(next_state, reward), (stalled, reward), (deflected, reward)]
    return Problem(_from_tables(env, parts, [1 - 2 * gust, gust, gust]), horizon, ("calm", "stalls", "deflects"))


CARDS = np.array([1.0] * 9 + [4.0]) / 13
"""The chances of an ace, a two, ..., a nine, and of a card that counts ten: cards are drawn with replacement."""

BUST, STAND = 22, 17
"""The dealer draws until the hand counts `STAND`; a hand of `BUST` or more has lost."""


def blackjack(horizon: int = 12) -> Problem:
    """Gymnasium's blackjack, without a bonus for naturals: stick or hit, with what the player knows as the state.

    A state is (what the hand counts, the dealer's card, whether an ace counts eleven). The hidden noise is the next
    card, and whether the dealer will have less than the player, as much, or more.
    """
    labels: list[Any] = [(count, card, ace) for count in range(4, BUST) for card in range(1, 11) for ace in (0, 1)]
    labels = [label for label in labels if label[0] >= 12 or not label[2]]
    place, over = {label: i for i, label in enumerate(labels)}, len(labels)
    next_state = np.full((over + 1, 2, 30), over)
    reward, noise, start = np.zeros((over + 1, 2, 30)), np.full((over + 1, 30), 1 / 30), np.zeros(over + 1)
    for s, (count, card, ace) in enumerate(labels):
        ends = _dealer(card, False)
        less, more = ends[:count].sum() + ends[BUST], ends[count + 1 : BUST].sum()
        results = np.array([less, 1 - less - more, more])
        noise[s] = np.outer(CARDS, np.maximum(results, 0) / np.maximum(results, 0).sum()).ravel()
        reward[s, 0] = np.tile([1.0, 0.0, -1.0], 10)
        for drawn in range(1, 11):
            hand = _with(count, bool(ace), drawn)
            here = slice(3 * drawn - 3, 3 * drawn)
            if hand[0] >= BUST:
                reward[s, 1, here] = -1.0
            else:
                next_state[s, 1, here] = place[hand[0], card, int(hand[1])]
    for one, two, card in itertools.product(range(1, 11), repeat=3):
        count, ace = _with(*_with(0, False, one), two)
        start[place[count, card, int(ace)]] += CARDS[one - 1] * CARDS[two - 1] * CARDS[card - 1]
    cards = [f"{card}, {result}" for card in range(1, 11) for result in ("wins", "draws", "loses")]
    ends_at = np.arange(over + 1) == over
    model = TabularCMDP(next_state, reward, noise, ends_at, start / start.sum(), [*labels, (0, 0, 0)], ("stick", "hit"))
    return Problem(model, horizon, tuple(cards))


def _with(count: int, ace: bool, card: int) -> tuple[int, bool]:
    """Return what a hand counts with one more card, and whether an ace counts eleven."""
    count, ace = (count + 11, True) if card == 1 and not ace and count + 11 < BUST else (count + card, ace)
    return (count - 10, False) if count >= BUST and ace else (count, ace)


@cache
def _dealer_from(count: int, ace: bool) -> tuple[float, ...]:
    """Return the chances of what a dealer's hand will count, `BUST` for all that is too much."""
    chances = np.zeros(BUST + 1)
    if count >= STAND:
        chances[min(count, BUST)] = 1.0
    else:
        for card in range(1, 11):
            chances += CARDS[card - 1] * np.array(_dealer_from(*_with(count, ace, card)))
    return tuple(chances)


def _dealer(card: int, ace: bool) -> FloatArray:
    return np.array(_dealer_from(*_with(0, ace, card)))


PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    "frozen-lake": partial(frozen_lake, 60, "8x8"),
    "cliff-walking": partial(cliff_walking, 0.1),
    "taxi": partial(taxi, 0.05, 30),
    "blackjack": blackjack,
    "river-swim": partial(river_swim, 8, 25),
    "deep-sea": partial(deep_sea, 8, 2_000_001),
}
"""The problems of the study: in sizes, and with gusts, that nothing else here uses."""
