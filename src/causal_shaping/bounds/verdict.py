"""The verdict: whether ceilings make a useful potential, and if not, why.

Shaping by phi leaves V* - phi to be learned in place of V*, and what is the same in all states of a step teaches an
agent nothing. So a potential is worth what it takes off the differences between states:

    left = sd(V* - phi) / sd(V*),    over the states of each step,

0 for phi = V*, 1 for phi = 0. V* is not known. In its place stands what the logs *suggest*: the values of the best
actions if outcomes follow (s, x) with the shares that the least confounded sources show, of those that took x there;
never above the ceiling. Sampling error nu is added, since suggestion and ceiling may err alike:

    left^2 = (var(suggested - ceiling) + nu^2) / var(suggested).

It is a ratio of differences: no multiple of the rewards changes it, and no constant added to them where that moves all
ceilings of a step alike (not where an end, worth 0, may follow that nobody saw). It is a guess, not
a bound: `studies.calibration verdict` measures how often it is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from causal_shaping._compile import njit
from causal_shaping.bounds._parts import entries_of
from causal_shaping.bounds._sweeps import Solution
from causal_shaping.bounds.settings import Settings
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, begins, groups
from causal_shaping.data.counts import Counts

if TYPE_CHECKING:
    from causal_shaping.bounds.results import Ceilings

HELPS, DOUBTFUL = 0.75, 0.95
"""A potential that leaves less than the first share of the differences to learn helps, one that leaves more than the
second does not. Neither was tuned."""

ENOUGH = 1 / 3
"""A randomised source is large enough if its sampling error is this share of the differences between states."""

MANY_ROWS = 100_000
"""More rows than this of each state and action nobody will log."""

ROUNDING = 1e-9
"""Values that differ by no more than this share of their size are equal."""

SWEEPS, SETTLED = 1000, 1e-6
"""An infinite-horizon suggestion takes at most so many sweeps, or ends at a change of this share of its differences."""


@dataclass(frozen=True)
class Outlook:
    """What the verdict rests on.

    Attributes:
        left: the share of the differences between states that is left to learn under the potential; None if the logs
            suggest no differences, or bound fewer than two states of a step.
        error: the sampling error of the suggested values, as a share of their differences; None like `left`.
        rows: how many rows of each state and action a randomised source needs so that sampling error is a third of
            the differences; None like `left`.
        action_share: the share of its steps in which a source takes the most frequent action of the state; the largest
            of all sources.
    """

    left: float | None
    error: float | None
    rows: float | None
    action_share: float


def outlook(counts: Counts, settings: Settings, found: Solution) -> Outlook:
    """Return what the verdict on ceilings needs: about one more backward pass, over sums of the counts."""
    ceilings, bounded = np.atleast_2d(found.values), np.atleast_2d(~found.vacuous & ~found.terminal)
    suggested, error, one_row = _suggested(counts, settings, found.terminal, ceilings, bounded)
    spread = _variance(suggested, bounded)
    share = _action_share(counts)
    # Beside the ceilings' own: rounding alone makes equal values differ.
    if spread <= 1e-18 * max(
        1e-300, _variance(ceilings, bounded), float(np.square(suggested[bounded]).max(initial=0.0))
    ):
        return Outlook(None, None, None, share)
    noise = 0.0 if counts.population else float(error[bounded].mean())
    return Outlook(
        left=math.sqrt((_variance(suggested - ceilings, bounded) + noise) / spread),
        error=math.sqrt(noise / spread),
        rows=float(one_row[bounded].mean()) / (ENOUGH**2 * spread),
        action_share=share,
    )


def _action_share(counts: Counts) -> float:
    """Return the share of its steps in which a source takes the most frequent action of the state, the largest of all.

    Over the entries: a table of all sources, states and actions can be larger than memory.
    """
    key = counts.source, counts.state, counts.action
    order, first = groups(key) if counts.step_indexed else (slice(None), np.flatnonzero(begins(*key)))
    taken = np.add.reduceat(counts.n[order], first)
    source, state = counts.source[order][first], counts.state[order][first]
    begin = np.flatnonzero(begins(source, state))
    most, steps = np.bincount(source[begin], np.maximum.reduceat(taken, begin)), np.bincount(source, taken)
    return float((most / np.maximum(steps, np.finfo(float).tiny)).max())


def _variance(values: FloatArray, which: BoolArray) -> float:
    """Return the mean variance over the states of a step; arrays [steps, states]."""
    size = np.maximum(which.sum(axis=1, keepdims=True), 1)
    centred = values - np.where(which, values, 0.0).sum(axis=1, keepdims=True) / size
    return float(np.square(centred[which]).mean()) if which.any() else 0.0


class _Shown(NamedTuple):
    """What follows each pair s * actions + x in the sources that count there; sums over rows."""

    n: FloatArray  # [pairs]
    reward: FloatArray  # [pairs], the sum of rewards
    squares: FloatArray  # [pairs], that of their squares
    begin: IntArray  # [pairs + 1], where the entries of a pair begin, one for each next state
    after: IntArray  # [entries], the next state; the last is an end
    rows: FloatArray  # [entries]
    paid: FloatArray  # [entries], the sum of rewards
    middle: float  # what was taken off each reward, for precision


def _shown(counts: Counts, settings: Settings, step: int | None) -> _Shown:
    """Return what the least confounded sources show that took each action."""
    states, actions = len(counts.space.states), len(counts.space.actions)
    here = entries_of(counts, step)
    known, pair = counts.outcome_known[here], counts.state[here].astype(np.int64) * actions + counts.action[here]
    gammas = np.array([settings.gamma(name) for name in counts.sources])
    if (gammas != gammas[0]).any():
        gamma, least = gammas[counts.source[here]], np.full(states * actions, np.inf)
        np.minimum.at(least, pair[known], gamma[known])
        known = known & (gamma <= least[pair])
    pair, n = pair[known], counts.n[here][known]
    after = np.where(counts.terminated[here], states, counts.next_state[here])[known]
    reward = counts.reward_sum[here][known] / n
    middle = float(reward.mean()) if len(reward) else 0.0
    reward = reward - middle

    def sums(weights: FloatArray) -> FloatArray:
        return np.bincount(pair, weights, minlength=states * actions).astype(np.float64)

    def matrix(weights: FloatArray) -> csr_array:
        return coo_array((weights, (pair, after)), shape=(states * actions, states + 1)).tocsr()

    rows, paid = matrix(n), matrix(n * reward)  # with the same entries
    by_pair = sums(n), sums(n * reward), sums(n * reward**2)
    return _Shown(*by_pair, rows.indptr, rows.indices, rows.data, paid.data, middle)


def _suggested(
    counts: Counts, settings: Settings, terminal: BoolArray, ceilings: FloatArray, bounded: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the values that the logs suggest, their sampling variance, and that at one row for each (s, x).

    All [steps, states]. Errors of different (s, x) are taken to be independent.
    """
    every = _shown(counts, settings, None) if counts.step is None else None
    steps, states = ceilings.shape
    result, following = np.zeros((3, steps, states)), np.zeros((3, states + 1))
    if settings.stationary:
        following[0, :-1] = ceilings[0]
    for sweep in range(SWEEPS if settings.stationary else steps):
        h = 0 if settings.stationary else steps - 1 - sweep
        shown = every if every is not None else _shown(counts, settings, h)
        found = result[:, h]
        _back_up(shown, settings.discount, counts.population, terminal, ceilings[h], bounded[h], following, found)
        change = np.abs(found[0] - following[0, :-1])[bounded[h]].max(initial=0.0)
        following[:, :-1] = found
        if settings.stationary and change**2 <= SETTLED**2 * _variance(result[0], bounded):
            break
    return result[0], result[1], result[2]


@njit()
def _back_up(
    shown: Any,
    discount: float,
    exact: bool,
    terminal: Any,
    ceiling: Any,
    bounded: Any,
    following: Any,
    found: Any,
) -> None:
    """Write one step of `_suggested` into found, [3, states], from what follows it, [3, states + 1], an end last."""
    states, pairs = len(terminal), len(shown.n)
    actions = pairs // states
    mean, squares = np.zeros(pairs), np.zeros(pairs)
    centre, largest, spare = following[0, :-1].mean(), 0.0, 0.0
    for p in range(pairs):
        n, total, around = shown.n[p], shown.reward[p], shown.squares[p]
        if n == 0:
            continue
        for e in range(shown.begin[p], shown.begin[p + 1]):
            value = discount * (following[0, shown.after[e]] - centre)
            total += shown.rows[e] * value
            around += value * (2 * shown.paid[e] + shown.rows[e] * value)
        mean[p] = total / n
        squares[p] = max(around - n * mean[p] ** 2, 0.0)  # within (s, x), about the mean
        largest, spare = max(largest, abs(mean[p])), spare + max(n - 1, 0.0)
    # The variance of a row's target. With few rows it is uncertain itself: that of all (s, x) counts as one row more.
    # Where no (s, x) has two rows, nothing tells it from differences between them.
    typical = 0.0
    if not exact and shown.n.any():
        typical = squares.sum() / spare if spare else mean[shown.n > 0].var()
    usual, usual_of = 0.0, 0
    best = np.full(states, -1)
    for s in range(states):
        highest = -np.inf
        for p in range(s * actions, (s + 1) * actions):
            if shown.n[p] > 0:
                highest = max(highest, mean[p])
        for p in range(s * actions, (s + 1) * actions):  # of equally good actions the one that is known best
            equal = shown.n[p] > 0 and mean[p] >= highest - ROUNDING * largest
            if equal and (best[s] < 0 or shown.n[p] > shown.n[best[s]]):
                best[s] = p
        if best[s] >= 0:
            found[0, s] = min(shown.middle + discount * centre + mean[best[s]], ceiling[s])
            if bounded[s]:
                usual, usual_of = usual + found[0, s], usual_of + 1
    usual = usual / usual_of if usual_of else ceiling.mean()
    for s in range(states):
        p = best[s]
        found[1, s] = found[2, s] = 0.0
        if p >= 0:
            n = shown.n[p]
            for e in range(shown.begin[p], shown.begin[p + 1]):  # errors count with the squares of their shares
                share = (discount * shown.rows[e] / n) ** 2
                found[1, s] += share * following[1, shown.after[e]]
                found[2, s] += share * following[2, shown.after[e]]
            if not terminal[s]:
                row = (squares[p] + typical) / n
                found[1, s] += row / n
                found[2, s] += row
        else:
            found[0, s] = min(usual, ceiling[s])
        if terminal[s]:
            found[0, s] = 0.0


def judge(ceilings: Ceilings) -> tuple[bool | None, str]:
    """Return whether ceilings make a useful potential, None if that is doubtful, and why."""
    found, no_help = ceilings.outlook, "These logs do not help here, use phi = 0:"
    if found is None:
        return None, "Whether these logs help was not examined."
    if (ceilings.vacuous | ceilings.terminal).all():
        return False, f"{no_help} no state is bounded better than without logs."
    if found.left is None:
        return False, f"{no_help} they suggest no differences in value between the states that they bound."
    facts = f"about {_percent(found.left)} of the differences in value between states are left to learn"
    facts += ", if values are about what the logs suggest (phi = 0 leaves 100%)"
    if found.left < HELPS:
        return True, f"These logs help: {facts}."
    if found.left > DOUBTFUL:
        return False, f"{no_help} {facts}. {_why(ceilings, found)}"
    return None, f"It is doubtful whether these logs help: {facts}. Compare with phi = 0. {_why(ceilings, found)}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share < 10 else "more than 1000%"


def _why(ceilings: Ceilings, found: Outlook) -> str:
    """Return why ceilings leave much to learn, and what would leave less."""
    assert found.left is not None
    assert found.error is not None
    assert found.rows is not None
    rows = max(2.0, float(f"{found.rows:.1g}"))
    source = f"a randomised source of about {rows:,.0f} rows for each action in each state would leave less"
    if rows > MANY_ROWS:
        source = "states differ so little in value that a randomised source would need more rows than can be had"
    if found.error**2 > found.left**2 / 2:
        return f"Most of that is sampling error: {source}."
    if ceilings.confidence is not None:
        return (
            f"With so few rows, limits that hold with a confidence of {ceilings.confidence:g} prove little. More rows "
            "may leave less; and so may ceilings without confidence, which are no bounds, but shaping is safe with any."
        )
    result = (
        f"{len(ceilings.space.actions)} actions, the most frequent one taken in {found.action_share:.0%} of the steps: "
        f"at a confounding of {max(ceilings.confounding.values()):g} no amount of such data helps; {source}."
    )
    if ceilings.support == "any":
        result += " Support 'any' also lets whatever is not proven lead anywhere; 'observed' assumes more."
    return result
