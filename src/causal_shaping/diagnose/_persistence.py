"""Does what follows an action depend on the episode's past? The arithmetic of the persistence test.

Under the null hypothesis the outcome of a row depends on its source, state, action and step, and on nothing else that
happened in its episode before. So outcomes can be permuted among the rows of one *cell* (source, state, action, step).
Everything that scores the past at step h is computed from rows of earlier steps alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray, LongArray

COMPONENTS = 4
"""Principal components of the past whose means are compared between outcomes."""

LEARNED = 2
"""Components of the dependence that earlier steps showed, which predict the outcome from the past."""

ITERATIONS = 6
"""Power iterations, from where the last fit ended."""

REFIT = 1.25
"""Components are fitted again when there are so many times as many steps: in all, work linear in the rows."""

FEW_REWARDS = 16
REWARD_BINS = 4
"""A step with more than `FEW_REWARDS` rewards has them in so many bins of equal mass."""

NUMBER_SPREAD = 0.5
"""The standard deviation that rewards are scaled to: about that of an indicator."""

DIGITS = 9
"""Rewards, as shares of their range, that are equal up to so many digits are equal."""

TOLERANCE = 1e-9


class StepTest(NamedTuple):
    """The test of one step."""

    step: int
    p_value: float
    compared: int  # rows that share their cell with a row of another outcome


class _Cells(NamedTuple):
    """The rows of one step that share their cell with a row of another outcome, cell by cell."""

    begin: LongArray  # [cells + 1]
    outcome: LongArray  # [rows], a number for each (cell, outcome)
    size: FloatArray  # [outcomes], rows of each
    scores: FloatArray  # [rows, scores], of the past, less their mean in the cell
    now: FloatArray  # [rows, features], of the outcome
    before: FloatArray  # [rows, features], of the past: what predicts `now`; the first is the reward's


@dataclass(frozen=True)
class _Traces:
    """What a row may show of a hidden cause: indicators and a number, each less its mean in the row's cell.

    A weight for each makes one number a row (`project`); numbers by row make weights (`weigh`, the transpose).

    Attributes:
        codes: the indicators of each row that are 1: int64 [kinds, rows].
        sizes: how many indicators there are of each kind.
        cell: int64 [rows].
        number: float64 [rows] or None, centred in the cell already; its weight is the last.
    """

    codes: LongArray
    sizes: tuple[int, ...]
    cell: LongArray
    number: FloatArray | None = None

    @classmethod
    def of(cls, kinds: Sequence[LongArray], cell: LongArray, number: FloatArray | None = None) -> _Traces:
        """Return the indicators of several kinds, each numbered from 0."""
        sizes = tuple(int(kind.max(initial=-1)) + 1 for kind in kinds)
        begins = np.cumsum([0, *sizes[:-1]])
        return cls(np.stack(kinds) + begins[:, None], sizes, cell, number)

    @property
    def weights(self) -> int:
        """How many weights there are."""
        return sum(self.sizes) + (self.number is not None)

    def random_weights(self, seed: tuple[int, ...], columns: int) -> FloatArray:
        """Return weights to begin with [weights, columns]: those of an indicator are the same if others come later."""
        sizes = (*self.sizes, 1) if self.number is not None else self.sizes
        draws = [np.random.default_rng((*seed, i)).standard_normal((n, columns)) for i, n in enumerate(sizes)]
        return np.concatenate(draws)

    def project(self, weights: FloatArray, rows: slice) -> FloatArray:
        """Return a number for each row."""
        values: FloatArray = _centred(_gathered(weights, self.codes[:, rows]), self.cell[rows])
        return values if self.number is None else values + weights[-1] * self.number[rows]

    def weigh(self, values: FloatArray, rows: slice) -> FloatArray:
        """Return a weight for each indicator and the number."""
        values = _centred(values, self.cell[rows])
        weights: FloatArray = _scattered(values, self.codes[:, rows], self.weights)
        if self.number is not None:
            weights[-1] = _dot(values, self.number[rows])
        return weights


@dataclass(frozen=True)
class Rows:
    """Rows with known outcomes, ordered by step, and by episode within a step.

    Attributes:
        source: int64 [rows].
        episode: int64 [rows], 0, 1, ...; no two sources share one.
        step: int64 [rows], rising.
        state: int64 [rows].
        action: int64 [rows].
        after: int64 [rows], next state and whether the episode ended.
        reward: float64 [rows].
    """

    source: LongArray
    episode: LongArray
    step: LongArray
    state: LongArray
    action: LongArray
    after: LongArray
    reward: FloatArray

    @cached_property
    def begin(self) -> LongArray:
        """The first row of each step, and the number of rows: int64 [steps + 1]."""
        return np.searchsorted(self.step, np.arange(self.step.max(initial=-1) + 2))

    @cached_property
    def episodes(self) -> int:
        return int(self.episode.max(initial=-1)) + 1

    @cached_property
    def cell(self) -> LongArray:
        return codes(self.source, self.state, self.action, self.step)

    @cached_property
    def scaled_reward(self) -> FloatArray:
        """Rewards as shares of their range, so that neither scale nor offset matters."""
        low, high = self.reward.min(initial=np.inf), self.reward.max(initial=-np.inf)
        return np.round((self.reward - low) / (high - low), DIGITS) if high > low else np.zeros(len(self.reward))

    @cached_property
    def reward_residual(self) -> FloatArray:
        """Rewards less their mean in the cell, over the standard deviation of that up to the row's step."""
        residual = _centred(self.scaled_reward, self.cell)
        squares, last = np.append(0.0, np.cumsum(residual**2)), self.begin[1:][self.step]
        deviation = np.sqrt(squares[last] / last)
        return np.where(deviation > TOLERANCE, residual / np.maximum(deviation, TOLERANCE), 0.0) * NUMBER_SPREAD

    @cached_property
    def reward_code(self) -> LongArray:
        """Rewards as part of the outcome: as they are at steps with few, else in bins of the step."""
        binned, value = np.zeros(len(self.reward)), self.scaled_reward.copy()
        for first, last in zip(self.begin, self.begin[1:], strict=False):
            block = value[first:last]
            if len(np.unique(block)) > FEW_REWARDS:
                edges = np.unique(np.quantile(block, np.arange(1, REWARD_BINS) / REWARD_BINS))
                binned[first:last], value[first:last] = 1, np.searchsorted(edges, block, side="right")
        return codes(binned, value)

    @cached_property
    def outcomes(self) -> _Traces:
        """Where it led, by (state, action) and by action, and what was earned, by action."""
        kinds = (
            codes(self.state, self.action, self.after),
            codes(self.action, self.after),
            codes(self.action, self.reward_code),
        )
        return _Traces.of(kinds, self.cell, self.reward_residual)

    @cached_property
    def actions(self) -> _Traces:
        """Which action was taken, by state and in any."""
        kinds = codes(self.state, self.action), codes(self.action)
        return _Traces.of(kinds, codes(self.source, self.state, self.step))

    # The past of a row shows a hidden cause in outcomes and actions; its own outcome is what is tested.

    def project_past(self, weights: FloatArray, rows: slice) -> FloatArray:
        """Return what each row adds to the score of its episode's past."""
        split = self.outcomes.weights
        return self.outcomes.project(weights[:split], rows) + self.actions.project(weights[split:], rows)

    def weigh_past(self, values: FloatArray, rows: slice) -> FloatArray:
        """Return the weights of what rows show: the transpose of `project_past`."""
        return np.append(self.outcomes.weigh(values, rows), self.actions.weigh(values, rows))

    def totals(self, values: FloatArray) -> FloatArray:
        """Return sums by episode of the first rows' values."""
        sums = np.bincount(self.episode[: len(values)], values, minlength=self.episodes)
        return sums.astype(np.float64)


def codes(*columns: LongArray | FloatArray) -> LongArray:
    """Return a number for each combination of values, 0, 1, ... in the order in which they first occur.

    So names do not matter, and the numbers of rows do not depend on later rows.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, part = np.unique(column, return_inverse=True)
        _, code = np.unique(code * (part.max(initial=0) + 1) + part, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return np.argsort(np.argsort(first))[code]


def step_tests(rows: Rows, permutations: int, seed: int) -> Iterator[StepTest | None]:
    """Yield the test of each step after the first, None where there is nothing to compare."""
    random, components = np.random.default_rng((seed, 1)), _Components(rows, seed)
    for step in range(1, len(rows.begin) - 1):
        cells = _cells(rows, step, components)
        if cells is None:
            yield None
            continue
        drawn = _statistics(cells, permutations, random)
        means = _standardised(drawn[:, :-2]).sum(axis=1)
        reward, learned = drawn[:, -2] ** 2, drawn[:, -1]
        means, reward, learned = (_standardised(values[:, None])[:, 0] for values in (means, reward, learned))
        either = np.hypot(np.maximum(means, 0), np.maximum(reward, 0)) + np.minimum(np.maximum(means, reward), 0)
        statistic = learned + either / 2
        extreme = np.count_nonzero(statistic >= statistic[0] - TOLERANCE * max(1.0, abs(statistic[0])))
        yield StepTest(step, extreme / (permutations + 1), len(cells.outcome))


class _Components:
    """Weights of what the past shows, fitted to the rows before a step.

    - `principal`: the directions in which episodes' pasts vary most: float64 [weights, components].
    - `now`, `before`: the leading singular vectors of the covariance of an outcome and the past before it, summed over
      earlier steps. A hidden cause that lasts ties the next outcome to its past in the same way.
    """

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.fitted = rows, 0
        starts = rows.outcomes.random_weights((seed, 2), COMPONENTS), rows.actions.random_weights((seed, 3), COMPONENTS)
        self.principal = np.concatenate(starts)
        self.before = self.principal[:, :LEARNED].copy()
        self.now = np.zeros((rows.outcomes.weights, LEARNED))

    def fit(self, step: int) -> None:
        """Fit to the rows before a step, unless the last fit is recent."""
        if step < REFIT * self.fitted:
            return
        self.fitted, known = step, slice(0, int(self.rows.begin[step]))
        for _ in range(ITERATIONS):
            self._turn_principal(known)
            if step > 1:
                self._turn_learned(known)

    def _turn_principal(self, known: slice) -> None:
        rows = self.rows
        done: list[FloatArray] = []
        for k in range(COMPONENTS):
            totals = _apart(rows.totals(rows.project_past(self.principal[:, k], known)), done)
            self.principal[:, k] = _unit(rows.weigh_past(totals[rows.episode[known]], known))

    def _turn_learned(self, known: slice) -> None:
        rows, episode = self.rows, self.rows.episode[known]
        done: list[FloatArray] = []
        for k in range(LEARNED):
            past = _earlier(episode, rows.project_past(self.before[:, k], known), rows.episodes)
            past = _apart(_centred(past, rows.cell[known]), done)
            self.now[:, k] = rows.outcomes.weigh(past, known)
            shown = rows.outcomes.project(self.now[:, k], known)
            later = rows.totals(shown)[episode] - _earlier(episode, shown, rows.episodes) - shown
            self.before[:, k] = _unit(rows.weigh_past(later, known))


def _cells(rows: Rows, step: int, components: _Components) -> _Cells | None:
    """Return what can be compared at a step, None if there is nothing."""
    first, last = int(rows.begin[step]), int(rows.begin[step + 1])
    cell = codes(rows.cell[first:last])
    pair = codes(cell, rows.after[first:last], rows.reward_code[first:last])
    kinds = np.zeros(cell.max(initial=-1) + 1, dtype=np.int64)  # outcomes of each cell
    np.add.at(kinds, cell[np.unique(pair, return_index=True)[1]], 1)
    held = np.flatnonzero(kinds[cell] > 1)
    if not len(held):
        return None
    components.fit(step)
    held = held[np.argsort(cell[held], kind="stable")]
    cell, pair, here, known = codes(cell[held]), codes(pair[held]), held + first, slice(0, first)

    def past(values: FloatArray) -> FloatArray:
        return np.asarray(_centred(rows.totals(values)[rows.episode[here]], cell))

    reward = past(rows.reward_residual[known])
    scores = [reward, *(past(rows.project_past(weights, known)) for weights in components.principal.T)]
    before = [reward, *(past(rows.project_past(weights, known)) for weights in components.before.T)]
    now = [rows.outcomes.project(weights, slice(first, last))[held] for weights in components.now.T]
    scores = [_unit(score) for score in scores]
    if not np.any(scores) and not np.any(now):
        return None
    return _Cells(
        begin=np.append(0, np.cumsum(np.bincount(cell))),
        outcome=pair,
        size=np.bincount(pair).astype(np.float64),
        scores=np.stack(scores, axis=1),
        now=np.stack([rows.reward_residual[here], *now], axis=1),
        before=np.stack(before, axis=1),
    )


@njit()
def _statistics(cells, permutations, random):  # type: ignore[no-untyped-def]
    """Return statistics [1 + permutations, scores + 2]; the first are those of the rows as they are.

    For each score, how much its mean differs between the outcomes of a cell; the covariance of the reward and its past;
    that of the outcome and what earlier steps predict.
    """
    size, scores = cells.scores.shape
    features = cells.now.shape[1]
    drawn = np.zeros((1 + permutations, scores + 2))
    pasts = np.arange(size)  # whose past a row is given
    for deal in range(1 + permutations):
        if deal:
            for c in range(len(cells.begin) - 1):
                first = cells.begin[c]
                for i in range(cells.begin[c + 1] - 1, first, -1):
                    j = first + int(random.random() * (i - first + 1))
                    pasts[i], pasts[j] = pasts[j], pasts[i]
        sums = np.zeros((len(cells.size), scores))
        for i in range(size):
            for k in range(scores):
                sums[cells.outcome[i], k] += cells.scores[pasts[i], k]
            drawn[deal, scores] += cells.now[i, 0] * cells.before[pasts[i], 0]
            for k in range(1, features):
                drawn[deal, scores + 1] += cells.now[i, k] * cells.before[pasts[i], k]
        for o in range(len(cells.size)):
            for k in range(scores):
                drawn[deal, k] += sums[o, k] ** 2 / cells.size[o]
    return drawn


@njit()
def _earlier(episode, values, episodes):  # type: ignore[no-untyped-def]
    """Return the sum of the values of the episode's earlier rows, for each row."""
    total, result = np.zeros(episodes), np.empty(len(values))
    for i in range(len(values)):
        result[i] = total[episode[i]]
        total[episode[i]] += values[i]
    return result


@njit()
def _centred(values, cell):  # type: ignore[no-untyped-def]
    """Return values less their mean in the cell."""
    cells = cell.max() + 1 if len(cell) else 0
    total, size, result = np.zeros(cells), np.zeros(cells), np.empty(len(values))
    for i in range(len(values)):
        total[cell[i]] += values[i]
        size[cell[i]] += 1
    for i in range(len(values)):
        result[i] = values[i] - total[cell[i]] / size[cell[i]]
    return result


@njit()
def _gathered(weights, codes):  # type: ignore[no-untyped-def]
    """Return the sum of the weights that codes [kinds, rows] name, for each row."""
    kinds, size = codes.shape
    result = np.zeros(size)
    for k in range(kinds):
        for i in range(size):
            result[i] += weights[codes[k, i]]
    return result


@njit()
def _scattered(values, codes, size):  # type: ignore[no-untyped-def]
    """Return the sum of the values of the rows that codes [kinds, rows] name, for each code: the transpose."""
    result = np.zeros(size)
    kinds, rows = codes.shape
    for k in range(kinds):
        for i in range(rows):
            result[codes[k, i]] += values[i]
    return result


def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the inner product; the threads of `@` cost more than they save here."""
    return float((one * other).sum())


def _apart(values: FloatArray, done: list[FloatArray]) -> FloatArray:
    """Return what is left of values beside those before them, which it joins."""
    for other in done:
        values = values - _dot(values, other) * other
    done.append(_unit(values))
    return values


def _unit(values: FloatArray) -> FloatArray:
    """Return values over their length; zeros if there is nothing but rounding."""
    length = math.sqrt(_dot(values, values))
    return values / length if length > TOLERANCE else np.zeros_like(values)


def _standardised(drawn: FloatArray) -> FloatArray:
    """Return statistics [draws, kinds] less their means, over their standard deviations."""
    apart = drawn - drawn.mean(axis=0)
    spread = apart.std(axis=0)
    scale = np.abs(drawn).max(axis=0, initial=0.0)
    return np.where(spread > TOLERANCE * scale, apart / np.where(spread > 0, spread, 1.0), 0.0)
