"""Episodes as a tree of histories, and the largest mean that a policy can have on it.

- `Episodes`: the rows of one source, and how its episodes stopped.
- `Tree`: which episodes share which history; `Tree.values`: the recursion over it.
- `vacuous_values`: the most that the steps left can pay.

A history is what an agent has seen of its episode when it decides: the states so far, its own actions and, unless it
reads no rewards, the rewards or their bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray, ranges

TERMINATED, TRUNCATED, UNKNOWN_END = 0, 1, 2
"""How an episode stopped: it ended, it was cut and would have gone on, or one of the two."""


class Episodes(NamedTuple):
    """Episodes of one source; their rows are ordered by episode and step."""

    begin: LongArray  # [episodes], the row of the first step
    length: LongArray  # [episodes], how many rows
    stop: npt.NDArray[np.int8]  # [episodes], how it stopped
    weight: FloatArray  # [episodes], 1 each, or masses
    state: npt.NDArray[np.integer]  # [rows]
    action: npt.NDArray[np.integer]  # [rows]
    reward: FloatArray  # [rows]
    read: LongArray  # [rows], what an agent reads of the reward, as a number from 0

    def chosen(self, wanted: BoolArray) -> Episodes:
        """Return some of the episodes, bool [episodes]; the rows stay."""
        return self._replace(**{name: getattr(self, name)[wanted] for name in ("begin", "length", "stop", "weight")})


class Level(NamedTuple):
    """The histories of one step, and the episodes in those of them in which every action was tried.

    A pair is such a history with an action.
    """

    histories: int
    member: LongArray  # [members], episodes
    row: LongArray  # [members], their row of this step
    pair: LongArray  # [members], the pair that they belong to
    pair_weight: FloatArray  # [pairs]
    pair_history: LongArray  # [pairs], rising
    weight: FloatArray  # [histories]
    after: LongArray  # [members], their history at the next level, -1 if they have no such row


class Tree(NamedTuple):
    """Histories that lead on, level by level.

    Where an action was never tried, the value is the vacuous one whatever else happened, so that no level holds what
    follows such a history. With several actions, n episodes then fill about log n levels, however long they are.
    """

    episodes: Episodes
    first_states: LongArray  # [histories of the first level]
    weight: FloatArray  # [histories of the first level]
    sizes: LongArray  # [histories of the first level], how many episodes
    tried: BoolArray  # [histories of the first level], whether every action was tried
    levels: tuple[Level, ...]

    @classmethod
    def grown(cls, episodes: Episodes, admissible: BoolArray, horizon: int) -> Tree:
        """Return the tree of episodes; `admissible` is bool [states, actions]."""
        n_actions, choices = admissible.shape[1], admissible.sum(axis=1)
        member = np.arange(len(episodes.begin))
        row = episodes.begin
        first_states, first = np.unique(episodes.state[row], return_inverse=True)
        history, size, step = first, len(first_states), 0
        sizes = np.bincount(first, minlength=size)
        levels: list[Level] = []
        tried = np.zeros(size, dtype=bool)
        while len(member) and step < horizon:
            pairs, pair = np.unique(history * n_actions + episodes.action[row], return_inverse=True)
            pair_history = pairs // n_actions
            state = np.zeros(size, dtype=np.int64)
            state[history] = episodes.state[row]
            complete = np.bincount(pair_history, minlength=size) == choices[state]
            if not step:
                tried = complete
            weight = _sums(history, episodes.weight[member], size)
            stays = complete[history]
            member, row, pair, kept = member[stays], row[stays], pair[stays], complete[pair_history]
            pair, pair_history = (np.cumsum(kept) - 1)[pair], pair_history[kept]
            pair_weight = _sums(pair, episodes.weight[member], len(pair_history))
            step += 1
            goes_on = episodes.length[member] > step
            outcome = episodes.read[row[goes_on]] * len(admissible) + episodes.state[row[goes_on] + 1]
            outcomes, outcome = np.unique(outcome, return_inverse=True)  # numbered anew, so that nothing overflows
            histories, history = np.unique(pair[goes_on] * len(outcomes) + outcome, return_inverse=True)
            after = np.full(len(member), -1)
            after[goes_on] = history
            levels.append(Level(size, member, row, pair, pair_weight, pair_history, weight, after))
            member, row, size = member[goes_on], row[goes_on] + 1, len(histories)
        weight = _sums(first, episodes.weight, len(first_states))
        return cls(episodes, first_states, weight, sizes, tried, tuple(levels))

    def values(self, reward: FloatArray, vacuous: FloatArray, discount: float, horizon: int) -> FloatArray:
        """Return the largest mean over policies of the rewards before departing plus the vacuous value, [first states].

        With p(x | history) the share of episodes that go on with x,

            V(history) = max over x of  p(x | history) E[r + discount V(history') | history, x]
                                        + (1 - p(x | history)) W

        but at most W; V is 0 after an end, W where the episode was cut, and the larger of them where nobody knows. W is
        `vacuous` [steps left].
        """
        after = np.zeros(0)
        for step in reversed(range(min(horizon, len(self.levels)))):
            level, left = self.levels[step], horizon - step
            stop = self.episodes.stop[level.member]
            rest = np.where(stop == TERMINATED, 0.0, vacuous[left - 1])
            rest = np.where(stop == UNKNOWN_END, np.maximum(rest, 0.0), rest)
            if left == 1:
                rest[:] = 0.0
            elif len(after):
                rest = np.where(level.after >= 0, after[level.after], rest)
            earned = self.episodes.weight[level.member] * (reward[level.row] + discount * rest)
            total = _sums(level.pair, earned, len(level.pair_weight))
            here = level.weight[level.pair_history]
            q_values = (total + (here - level.pair_weight) * vacuous[left]) / here
            after = np.full(level.histories, vacuous[left])
            if len(q_values):
                first = np.flatnonzero(np.diff(level.pair_history, prepend=-1))
                best = np.maximum.reduceat(q_values, first)
                after[level.pair_history[first]] = np.minimum(best, vacuous[left])
        return after

    def highest_return(self, discount: float, horizon: int) -> float:
        """Return the most that an episode whose end is known paid from any step on."""
        episodes = self.episodes
        length = np.minimum(episodes.length, horizon)
        known = np.flatnonzero((episodes.stop == TERMINATED) | (episodes.length >= horizon))
        known = known[np.argsort(-length[known])]
        result, paid = -np.inf, np.zeros(len(known))
        reaches = np.searchsorted(-length[known], -np.arange(horizon), side="left")  # how many have a row of a step
        for step in reversed(range(int(length[known].max(initial=0)))):
            here = slice(reaches[step])
            paid[here] = episodes.reward[episodes.begin[known[here]] + step] + discount * paid[here]
            result = max(result, float(paid[here].max()))
        return result

    def logged(self, discount: float, horizon: int) -> FloatArray:
        """Return the mean return of the episodes themselves over 1, 2, ... steps, [horizon].

        A step of which nobody knows what it paid counts as the mean reward of a row.
        """
        episodes = self.episodes
        if not len(episodes.begin):
            return np.full(horizon, np.nan)
        length = np.minimum(episodes.length, horizon)
        row = ranges(episodes.begin, length)
        owner = np.repeat(np.arange(len(length)), length)
        step, weight = row - episodes.begin[owner], episodes.weight[owner]
        paid = _sums(step, weight * episodes.reward[row], horizon)
        total = episodes.weight.sum()
        filler = paid.sum() / weight.sum()
        gone_on = episodes.stop != TERMINATED
        stopped = _sums(length[gone_on], episodes.weight[gone_on], horizon + 1)
        unknown = np.cumsum(stopped)[:horizon]  # episodes that stopped before a step, and may have gone on
        return np.asarray(np.cumsum(discount ** np.arange(horizon) * (paid + filler * unknown)) / total)


def _sums(place: LongArray, values: FloatArray, size: int) -> FloatArray:
    """Return the sum of the values at each place."""
    return np.bincount(place, values, size).astype(np.float64)


def vacuous_values(
    reward_max: float, horizon: int, discount: float, fixed_length: bool, value_max: float | None = None
) -> FloatArray:
    """Return the most that 0, 1, ..., horizon steps can pay, [horizon + 1]; no number of steps pays above `value_max`.

    Unless all episodes have the same length, the next step may be the last: a negative reward_max is then paid once.
    """
    if reward_max < 0 and not fixed_length:
        result = np.append(0.0, np.full(horizon, reward_max))
    else:
        result = reward_max * annuity(horizon, discount)
    if value_max is not None:
        result[1:] = np.minimum(result[1:], value_max)
    return result


def least_values(reward_min: float, horizon: int, discount: float, fixed_length: bool) -> FloatArray:
    """Return the least that 0, 1, ..., horizon steps can pay if each pays `reward_min` or more, [horizon + 1]."""
    return -vacuous_values(-reward_min, horizon, discount, fixed_length)


def annuity(horizon: int, discount: float) -> FloatArray:
    """Return the value of 1 in each of 0, 1, ..., horizon steps, [horizon + 1]."""
    return np.append(0.0, np.cumsum(discount ** np.arange(horizon)))


def stops(terminated: Sequence[bool] | BoolArray, truncated: Sequence[bool] | BoolArray) -> npt.NDArray[np.int8]:
    """Return how episodes stopped, by the flags of their last rows."""
    open_end = np.where(truncated, TRUNCATED, UNKNOWN_END)
    return np.where(terminated, TERMINATED, open_end).astype(np.int8)
