"""The causal Bellman operator: whether it is a contraction, in which norm, and with which modulus.

    T V(s) = max_x [ P(x | s) ( R~(s, x) + sum_s' T~(s, x, s') V(s') ) + P(not x | s) ( b + max_s'' V(s'') ) ],

with V = 0 after termination, and the propensities P, mean rewards R~ and transitions T~ of one source.

- `CausalBellman`: the operator of a source.
- `contraction`: the sets S_k, the weights y_k and the modulus of the appendix's proposition, or why it does not apply;
  and whether T contracts in any weighted norm.
- `expected_times`: the weights of such a norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from causal_shaping.bounds.published import Estimates
from causal_shaping.bounds.support import terminal_states
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.data.counts import Counts
from causal_shaping.models.constants import PROBABILITY_TOLERANCE

LONGEST = 1e15
"""Longer expected times cannot be distinguished from infinite ones."""


class CausalBellman:
    """The operator T of one source; it maximises over the actions that the source tried in a state.

    Args:
        counts: the counts of one source, with steps pooled.
        reward_max: b.

    Attributes:
        share: float64 [states, actions], P(x | s).
        follows: float64 [states, actions, states], T~(s, x, s'), without termination.
        ends: float64 [states, actions], the probability of termination.
        terminal: bool [states].
        tried: bool [states, actions], whether the source took the action there.
    """

    def __init__(self, counts: Counts, reward_max: float) -> None:
        assert (len(counts.sources), counts.step_indexed) == (1, False)
        self.states, self.actions = counts.space.states, counts.space.actions
        self.reward_max = float(reward_max)
        self._estimates = Estimates(counts, 0)
        self.terminal: BoolArray = terminal_states(counts)
        self.tried: BoolArray = self._estimates.tried
        self.share: FloatArray = self._estimates.share
        size = len(self.states)
        self.follows: FloatArray = np.asarray(self._estimates.follows.todense()).reshape(size, -1, size)
        self.ends = np.where(self.tried, _rest(self.follows), 0.0)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return T V: float64 [states]; terminal states have value 0 in V and in T V."""
        values = np.where(self.terminal, 0.0, values)
        q_values = self._estimates.backup(values, float(values.max()), self.reward_max, 1.0)
        return np.where(self.terminal, 0.0, q_values.max(axis=1))

    def widened(self, weights: FloatArray) -> FloatArray:
        """Return the largest |T V - T V'| if |V - V'| is at most `weights`: float64 [states].

        max_x [ P(x | s) sum_s' T~(s, x, s') w(s') + P(not x | s) max w ], with w = 0 after termination. The weighted
        norm of T V - T V' is at most the largest widened(w) / w times that of V - V'.
        """
        weights = np.where(self.terminal, 0.0, weights)
        spread = self.share * (self.follows @ weights) + (1 - self.share) * weights.max()
        return np.where(self.terminal, 0.0, np.where(self.tried, spread, -np.inf).max(axis=1))


@dataclass(frozen=True, eq=False)
class Contraction:
    """The appendix's proposition for one source.

    Attributes:
        applies: whether the sets S_k cover all states.
        why: the reason why it does not apply, in words; empty if it does.
        level: int32 [states], the k of the set S_k that holds a state: 1 for terminal states, 0 if none does.
        epsilon: the smallest probability of stepping to an earlier set.
        delta: the smallest P(x | s).
        weights: float64 [sets], y_1 < y_2 < ...
        shrinks: 1 - modulus by the proposition's inequality; 0 if it does not apply.
        longest: the largest expected time until termination if unproven mass goes to the worst state; inf if T
            contracts in no weighted norm.
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
        """The factor by which differences shrink, by the proposition; 1 if it does not apply."""
        return 1.0 - self.shrinks

    @property
    def modulus_by_times(self) -> float:
        """The factor in the norm weighted with expected times, 1 - 1 / longest; 1 if T contracts in no such norm."""
        return 1.0 - 1.0 / self.longest

    @property
    def verdict(self) -> str:
        """Whether it applies, in words."""
        if not self.applies:
            return f"does not apply: {self.why}"
        return (
            f"contracts: {len(self.weights)} sets, epsilon {self.epsilon:.3g}, delta {self.delta:.3g}, 1 - modulus "
            f"{self.shrinks:.3g} by the proposition, {1 / self.longest:.3g} with expected times as weights"
        )


def contraction(operator: CausalBellman, follows: FloatArray | None = None) -> Contraction:
    """Return the sets, weights and modulus of the proposition for a source, or why it does not apply.

    S_1 is termination; S_k holds the states in no earlier set from which every action can lead to an earlier set. With
    q = epsilon delta and r = q / (1 - q), weights y_k with steps d_1 = 1, d_2 = r / 2, d_{k+1} = d_k min(1, r) / 2 (the
    recursion of the appendix, solved) give

        1 - modulus = min over k >= 2 of  ( q d_k - (1 - q) (y_m - y_k) ) / y_k  =  q d_m / y_m  >  0.

    The least is that of the last set: the numerator falls with k, since q d_k >= d_{k+1}, and y_k rises.

    Args:
        operator: the operator of the source.
        follows: float64 [states, actions, states], other transitions to build the sets from; by default those that the
            source shows. The appendix uses the transitions under do(x), for which its proof fails.
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
    shrinks = q * float(step[-1] / weights[-1]) if sets > 1 else 1.0
    return Contraction(True, "", level, epsilon, delta, weights, shrinks, _longest(operator))


def expected_times(operator: CausalBellman) -> FloatArray:
    """Return the solution of w = 1 + widened(w), expected times to termination: float64 [states]; inf without one.

    T contracts with modulus 1 - 1 / max w in the norm weighted with w, since widened(w) = w - 1. If there is no such w,
    some choice of actions, with the unproven mass sent to some state, gives a nonnegative matrix of spectral radius 1,
    and `widened` shrinks no positive weights. Solved by policy iteration: w = 1 + A w has a positive solution only if
    the spectral radius of A is below 1.
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
    """Return 1 less the mass of the next states, rounding errors set to 0: float64 [states, actions]."""
    rest = 1.0 - follows.sum(axis=-1)
    return np.where(rest < PROBABILITY_TOLERANCE, 0.0, rest)


def _longest(operator: CausalBellman) -> float:
    return float(max(expected_times(operator).max(initial=0.0), 1.0))
