"""The verdict: whether ceilings make a useful potential, and if not, why.

Shaping by phi leaves V* - phi to be learned in place of V*, and what is the same in all states of a
step teaches an agent nothing. So a potential is worth what it takes off the differences between
states:

    left = sd(V* - phi) / sd(V*),    over the states of each step,

0 for phi = V*, 1 for phi = 0. V* is not known. In its place stands what the logs *suggest*: the
values of the best actions if outcomes follow (s, x) with the shares that the least confounded
sources show, but never above the ceiling. Sampling error nu is added, since suggestion and ceiling
may err alike:

    left^2 = (var(suggested - ceiling) + nu^2) / var(suggested).

No multiple of the rewards changes this ratio, and no constant added to them where that moves all
ceilings of a step alike. It is a guess and not a bound: `studies.calibration verdict`, in the
repository, measures how often it is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from causal_shaping.bounds.settings import Settings
from causal_shaping.bounds.solution import Solution
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray, begins, groups
from causal_shaping.data.counts import Counts

HELPS, DOUBTFUL = 0.75, 0.95
"""A potential that leaves less than the first share of the differences to learn helps, one that
leaves more than the second does not. Neither was tuned."""

ENOUGH = 1 / 3
"""A randomised source is large enough if its sampling error is this share of the differences."""

ROUNDING = 1e-9
"""Values that differ by no more than this share of their size are equal."""

MAX_SWEEPS, SETTLED = 1000, 1e-6
"""An infinite-horizon suggestion takes at most so many sweeps, or ends at a change of this share of
its differences."""


@dataclass(frozen=True)
class Outlook:
    """What the verdict rests on.

    Attributes:
        left: the share of the differences between states that is left to learn under the potential;
            None if the logs suggest no differences, or bound fewer than two states of a step.
        error: the sampling error of the suggested values, as a share of their differences; None
            like `left`.
        rows: how many rows of each state and action a randomised source needs so that its sampling
            error is a third of the differences; None like `left`.
        action_share: the share of its steps in which a source takes the most frequent action of the
            state; the largest of all sources.
        left_unlimited: for ceilings with confidence that do not help, what unlimited rows of such
            logs would leave: the ceiling without allowance for sampling error.
        left_all_seen: for the same ceilings, what would be left if the visits had shown every
            outcome, so that only the limits of masses are left.
    """

    left: float | None
    error: float | None
    rows: float | None
    action_share: float
    left_unlimited: float | None = None
    left_all_seen: float | None = None


def outlook(counts: Counts, settings: Settings, solution: Solution) -> Outlook:
    """Return what the verdict on ceilings needs: about one more backward pass."""
    ceilings = np.atleast_2d(solution.values)
    bounded = np.atleast_2d(~solution.vacuous & ~solution.terminal)
    suggested, error, one_row = _suggested(counts, settings, solution.terminal, ceilings, bounded)
    spread, share = _variance(suggested, bounded), _action_share(counts)
    # Rounding alone makes equal values differ a little.
    size = np.square(suggested[bounded]).max(initial=0.0)
    if spread <= ROUNDING**2 * max(_variance(ceilings, bounded), size, np.finfo(float).tiny):
        return Outlook(None, None, None, share)
    noise = 0.0
    if not counts.population:
        noise = float(error[bounded].mean())
    return Outlook(
        left=math.sqrt((_variance(suggested - ceilings, bounded) + noise) / spread),
        error=math.sqrt(noise / spread),
        rows=float(one_row[bounded].mean()) / (ENOUGH**2 * spread),
        action_share=share,
    )


def _action_share(counts: Counts) -> float:
    """Return the share of its steps in which a source takes a state's most frequent action."""
    key = counts.source, counts.state, counts.action
    order, first = groups(key)
    taken = np.add.reduceat(counts.n[order], first)
    source, state = counts.source[order][first], counts.state[order][first]
    begin = np.flatnonzero(begins(source, state))
    most = np.bincount(source[begin], np.maximum.reduceat(taken, begin))
    steps = np.bincount(source, taken)
    return float((most / np.maximum(steps, np.finfo(float).tiny)).max())


def _variance(values: FloatArray, which: BoolArray) -> float:
    """Return the mean variance over the states of a step; arrays [steps, states]."""
    if not which.any():
        return 0.0
    size = np.maximum(which.sum(axis=1, keepdims=True), 1)
    centred = values - np.where(which, values, 0.0).sum(axis=1, keepdims=True) / size
    return float(np.square(centred[which]).mean())


@dataclass(frozen=True, eq=False)
class _Shown:
    """What follows each pair s * actions + x in the sources that count there; sums over rows."""

    n: FloatArray  # [pairs]
    reward: FloatArray  # [pairs], the sum of rewards
    squares: FloatArray  # [pairs], that of their squares
    rows: csr_array  # [pairs, states + 1], how often each next state followed; the last is an end
    paid: csr_array  # [pairs, states + 1], the sum of rewards on the way there
    centre: float  # what was taken off each reward, for precision


def _shown(counts: Counts, settings: Settings, step: int | None) -> _Shown:
    """Return what the least confounded sources show that took each action."""
    states, actions = counts.space.is_admissible.shape
    pair = counts.state.astype(np.int64) * actions + counts.action
    used = counts.outcome_known.copy()
    if step is not None:
        used &= counts.step == step
    gamma = np.array([settings.gamma(name) for name in counts.sources])[counts.source]
    least = np.full(states * actions, np.inf)
    np.minimum.at(least, pair[used], gamma[used])
    used &= gamma <= least[pair]

    pair, n = pair[used], counts.n[used]
    after = np.where(counts.terminated, states, counts.next_state)[used]
    reward = counts.reward_sum[used] / n
    centre = float(reward.mean()) if len(reward) else 0.0
    reward = reward - centre

    def sums(weights: FloatArray) -> FloatArray:
        return np.bincount(pair, weights, minlength=states * actions).astype(np.float64)

    def matrix(weights: FloatArray) -> csr_array:
        return coo_array((weights, (pair, after)), shape=(states * actions, states + 1)).tocsr()

    rows, paid = matrix(n), matrix(n * reward)
    return _Shown(sums(n), sums(n * reward), sums(n * reward**2), rows, paid, centre)


def _suggested(
    counts: Counts,
    settings: Settings,
    terminal: BoolArray,
    ceilings: FloatArray,
    bounded: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the values that the logs suggest, their sampling variance, and that of one row.

    All [steps, states]. Errors of different pairs of state and action are taken as independent.
    """
    steps, states = ceilings.shape
    result, following = np.zeros((3, steps, states)), np.zeros((3, states + 1))
    sweeps, shown = steps, None
    if settings.stationary:
        sweeps, following[0, :-1] = MAX_SWEEPS, ceilings[0]
    if counts.step is None:
        shown = _shown(counts, settings, None)
    for sweep in range(sweeps):
        h = max(0, steps - 1 - sweep)
        layer = shown or _shown(counts, settings, h)
        backup = _Backup(layer, settings.discount, counts.population, following)
        result[:, h] = backup.suggestion(terminal, ceilings[h], bounded[h])
        change = np.abs(result[0, h] - following[0, :-1])[bounded[h]].max(initial=0.0)
        following[:, :-1] = result[:, h]
        settled = change**2 <= SETTLED**2 * _variance(result[0], bounded)
        if settings.stationary and settled:
            break
    return result[0], result[1], result[2]


class _Backup:
    """One step of the suggestion, from what follows it: float64 [3, states + 1], an end last."""

    def __init__(self, shown: _Shown, discount: float, exact: bool, following: FloatArray) -> None:
        self.shown, self.discount, self.following = shown, discount, following
        # The mean target of each pair, about a centre for precision, and its variance.
        n, centre = shown.n, following[0, :-1].mean()
        value = discount * (following[0] - centre)
        self.tried, rows = n > 0, np.maximum(n, 1e-300)
        self.mean = (shown.reward + shown.rows @ value) / rows
        squares = shown.squares + 2 * (shown.paid @ value) + shown.rows @ value**2
        self.squares = np.maximum(squares - n * self.mean**2, 0.0)
        self.constant = shown.centre + discount * centre
        # With few rows the variance is uncertain itself: that of all pairs counts as one row more.
        # Where no pair has two rows, only differences between pairs tell it.
        self.typical, spare = 0.0, np.maximum(n - 1, 0.0).sum()
        if not exact and spare > 0:
            self.typical = self.squares.sum() / spare
        elif not exact and self.tried.any():
            self.typical = self.mean[self.tried].var()

    def suggestion(
        self, terminal: BoolArray, ceiling: FloatArray, bounded: BoolArray
    ) -> FloatArray:
        """Return suggested values, their variance, and that of one row: float64 [3, states]."""
        result = np.zeros((3, len(terminal)))
        acted = self.tried.reshape(len(terminal), -1).any(axis=1)
        best = self._best_pairs(len(terminal))[acted]
        result[0, acted] = np.minimum(self.constant + self.mean[best], ceiling[acted])
        # A state in which nobody acted is worth what the others are on average.
        usual, known = ceiling.mean(), acted & bounded
        if known.any():
            usual = result[0, known].mean()
        result[0, ~acted] = np.minimum(usual, ceiling[~acted])
        result[0, terminal] = 0.0
        # Errors of what follows count with the squares of their shares.
        n = self.shown.n[best]
        squared = self.shown.rows.power(2)
        for i in (1, 2):
            inherited = (squared @ self.following[i])[best]
            result[i, acted] = self.discount**2 * inherited / n**2
        own = (self.squares[best] + self.typical) / n * ~terminal[acted]
        result[1, acted] += own / n
        result[2, acted] += own
        return result

    def _best_pairs(self, states: int) -> LongArray:
        """Return the best pair of each state; of equally good ones the one with most rows."""
        mean = np.where(self.tried, self.mean, -np.inf).reshape(states, -1)
        largest = np.abs(self.mean[self.tried]).max(initial=0.0)
        equal = mean >= mean.max(axis=1, keepdims=True) - ROUNDING * largest
        n = np.where(equal, self.shown.n.reshape(states, -1), -1.0)
        return np.asarray(np.arange(states) * n.shape[1] + n.argmax(axis=1))
