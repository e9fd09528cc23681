"""The causal Bellman operator as a contraction: when it is one, in which norm, and by how much it shrinks.

    T V(s) = max_x [ P(x | s) ( R~(s, x) + sum_s' T~(s, x, s') V(s') ) + P(not x | s) ( b + max_s'' V(s'') ) ],

V = 0 at the end, with the propensities P, mean rewards R~ and transitions T~ of one source.

- `CausalBellman`: the operator of a source.
- `contraction`: the sets S_k, the weights y_k and the modulus of the appendix's proposition, or why it does not apply;
  and whether there is any weighted norm in which T contracts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from causal_shaping.bounds._published import Estimates
from causal_shaping.bounds.support import terminal_states
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Label
from causal_shaping.errors import ArgumentError
from causal_shaping.models.cmdp import PROBABILITY_TOLERANCE

LONGEST = 1e15
"""Expected times beyond this cannot be told from infinite ones."""


class CausalBellman:
    """The operator T of one source, whose every action was tried in every state that is not terminal.

    Args:
        counts: of one source, steps pooled.
        reward_max: b.

    Attributes:
        share: float64 [states, actions], P(x | s).
        follows: float64 [states, actions, states], T~(s, x, s'), without the end.
        ends: float64 [states, actions], T~(s, x, the end).
        terminal: bool [states].
    """

    def __init__(self, counts: Counts, reward_max: float) -> None:
        if len(counts.sources) != 1 or counts.step_indexed:
            raise ArgumentError("The operator is that of one source, with its steps pooled: pass counts of one source.")
        self.states: tuple[Label, ...] = counts.space.states
        self.actions: tuple[Label, ...] = counts.space.actions
        self.reward_max = float(reward_max)
        self._estimates = Estimates(counts, 0)
        self.terminal: BoolArray = terminal_states(counts)
        self.tried: BoolArray = self._estimates.tried
        self.share: FloatArray = self._estimates.share
        size = len(self.states)
        self.follows: FloatArray = np.asarray(self._estimates.follows.todense()).reshape(size, -1, size)
        self.ends = np.where(self.tried, _rest(self.follows), 0.0)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return T V: float64 [states]; the value of a terminal state is 0 before and after."""
        values = np.where(self.terminal, 0.0, values)
        q_values = self._estimates.backup(values, float(values.max()), self.reward_max, 1.0)
        return np.where(self.terminal, 0.0, q_values.max(axis=1))

    def widened(self, weights: FloatArray) -> FloatArray:
        """Return by how much T can widen differences of at most `weights`: float64 [states].

        max_x [ P(x | s) sum_s' T~(s, x, s') w(s') + P(not x | s) max w ], with w = 0 at the end. The weighted norm of
        T V - T V' is at most the largest widened(w) / w times that of V - V'.
        """
        weights = np.where(self.terminal, 0.0, weights)
        spread = self.share * (self.follows @ weights) + (1 - self.share) * weights.max()
        return np.where(self.terminal, 0.0, np.where(self.tried, spread, -np.inf).max(axis=1))


@dataclass(frozen=True, eq=False)
class Contraction:
    """What the appendix's proposition says of a source.

    Attributes:
        applies: whether the sets S_k cover all states.
        why: why not, in words; empty if it applies.
        level: int32 [states], the k of the set S_k that a state is in, 1 for terminal ones, 0 for none.
        epsilon: the least chance of stepping to an earlier set.
        delta: the least P(x | s).
        weights: float64 [sets], y_1 < y_2 < ...
        shrinks: 1 - modulus by the proposition's inequality, 0 if it does not apply.
        longest: the largest expected time to the end when free mass goes to the worst state; inf if there is no
            weighted norm in which T contracts.
    """

    applies: bool
    why: str
    level: IntArray
    epsilon: float
    delta: float
    weights: FloatArray
    shrinks: float
    longest: float

    @property
    def modulus(self) -> float:
        """The proposition's factor by which differences shrink, 1 if it does not apply."""
        return 1.0 - self.shrinks

    @property
    def modulus_by_times(self) -> float:
        """The factor in the norm weighted with expected times: 1 - 1 / longest; 1 if no weighted norm contracts."""
        return 1.0 - 1.0 / self.longest

    @property
    def verdict(self) -> str:
        """The answer in words."""
        if not self.applies:
            return f"does not apply: {self.why}"
        return (
            f"contracts: {len(self.weights)} sets, epsilon {self.epsilon:.3g}, delta {self.delta:.3g}, 1 - modulus "
            f"{self.shrinks:.3g} by the proposition, {1 / self.longest:.3g} with expected times as weights"
        )

    def __repr__(self) -> str:
        return f"Contraction({self.verdict})"


def contraction(operator: CausalBellman, follows: FloatArray | None = None) -> Contraction:
    """Return the sets, weights and modulus of the proposition for a source, or why it does not apply.

    S_1 is the end; S_k holds the states that are in no earlier set and from which every action may lead to one. With
    q = epsilon delta and r = q / (1 - q), weights y_k with steps d_1 = 1, d_2 = r / 2, d_{k+1} = d_k min(1, r) / 2 (the
    recursion of the appendix, solved) give

        1 - modulus = min over k >= 2 of  ( q d_k - (1 - q) (y_m - y_k) ) / y_k  >  0.

    Args:
        operator: of the source.
        follows: float64 [states, actions, states], other transitions to build the sets from: the appendix takes those
            under do(x), for which the proof does not go through. By default those that the source shows.
    """
    terminal, follows = operator.terminal, operator.follows if follows is None else follows
    ends = operator.ends if follows is operator.follows else _rest(follows[..., ~terminal])
    level = np.where(terminal, 1, 0).astype(np.int32)
    nothing = (level, 0.0, 0.0, np.ones(1), 0.0, _longest(operator))
    untried = ~operator.tried & ~terminal[:, None]
    if untried.any():
        s, x = np.argwhere(untried)[0]
        return Contraction(
            False,
            f"{operator.actions[x]} was never tried in {operator.states[s]} ({untried.sum():,} such pairs)",
            *nothing,
        )
    epsilon = math.inf
    while (level == 0).any():
        closer = ends + follows[..., (level > 0) & ~terminal].sum(axis=-1)
        found = (level == 0) & (closer > 0).all(axis=1)
        if not found.any():
            left = (level == 0)[:, None] & (closer <= 0)
            stays = left & (np.einsum("sxs->sx", follows) >= 1 - 1e-12)
            s, x = np.argwhere(stays if stays.any() else left)[0]
            what = "never leaves it" if stays.any() else "never leads closer to the end"
            away = f"{operator.actions[x]} in {operator.states[s]} {what}"
            return Contraction(False, f"{away}; {(level == 0).sum():,} states are in no set", *nothing)
        epsilon = min(epsilon, float(closer[found].min()))
        level[found] = level.max() + 1
    delta = float(operator.share[~terminal].min()) if (~terminal).any() else 1.0
    epsilon = min(epsilon, 1.0)
    q, sets = epsilon * delta, int(level.max())
    ratio = 0.5 * q / (1.0 - q) if q < 1 else 1.0
    step = np.append(1.0, ratio * min(ratio, 0.5 if q < 1 else 1.0) ** np.arange(sets - 1))
    weights = np.cumsum(step)
    above = np.append(np.cumsum(step[::-1])[::-1][1:], 0.0)  # y_m - y_k
    gains = (q * step - (1.0 - q) * above) / weights
    shrinks = float(gains[1:].min()) if sets > 1 else 1.0
    return Contraction(True, "", level, epsilon, delta, weights, shrinks, _longest(operator))


def expected_times(operator: CausalBellman) -> FloatArray:
    """Return w = 1 + widened(w), expected times to the end, as weights: float64 [states]; inf if there are none.

    T contracts by 1 - 1 / max w in the norm weighted with w, since widened(w) = w - 1. If there is no such w, some
    choice of actions, with free mass sent to some state, is a nonnegative matrix whose spectral radius is 1, and
    `widened` shrinks no positive weights. By policy iteration: w > 0 can solve w = 1 + A w only if A has a smaller
    one.
    """
    alive = np.flatnonzero(~operator.terminal)
    none = np.where(operator.terminal, 0.0, math.inf)
    share, follows = operator.share[alive], operator.follows[alive][..., alive]
    every, action, worst = np.arange(len(alive)), np.zeros(len(alive), dtype=np.int64), 0
    if not len(alive) or not operator.tried[alive].all():
        return none
    while True:
        matrix = share[every, action, None] * follows[every, action]
        matrix[:, worst] += 1 - share[every, action]
        try:
            weights = np.linalg.solve(np.eye(len(alive)) - matrix, np.ones(len(alive)))
        except np.linalg.LinAlgError:
            return none
        if not (weights >= 1 - 1e-9).all() or weights.max() > LONGEST:
            return none
        spread = share * (follows @ weights) + (1 - share) * weights.max()
        better = spread.max(axis=1) > spread[every, action] * (1 + 1e-9)
        if not better.any() and weights[worst] >= weights.max() * (1 - 1e-9):
            result = np.zeros(len(operator.terminal))
            result[alive] = weights
            return result
        action, worst = np.where(better, spread.argmax(axis=1), action), int(weights.argmax())


def _rest(follows: FloatArray) -> FloatArray:
    """Return the mass that is missing to 1, 0 if that is rounding: float64 [states, actions]."""
    rest = 1.0 - follows.sum(axis=-1)
    return np.where(rest < PROBABILITY_TOLERANCE, 0.0, rest)


def _longest(operator: CausalBellman) -> float:
    return float(max(expected_times(operator).max(initial=0.0), 1.0))
