"""What sources prove about do(x): intervals of mass for each outcome.

Fix a state s and an action x. Source i shows p_i(x | s), how often it took x, and p_i(o | s, x), how often outcome o
followed. Under confounding Gamma_i (marginal sensitivity model) do(x) gives o a mass between

    L_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) / Gamma_i)    and
    U_i(o) = p_i(o | s, x) (p_i(x | s) + (1 - p_i(x | s)) Gamma_i),

and since all sources watch the same world, between max_i L_i(o) and min_i U_i(o). With Gamma_i = inf the lower one is
Manski's p_i(x, o | s) and there is no upper one. A row whose outcome is unknown proves that x was taken; its outcome
may have been anything, so it adds to no L, and a source with such rows sets no U there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from causal_shaping.data import BoolArray, Counts, FloatArray, IntArray, LongArray, groups
from causal_shaping.errors import DataError


@dataclass(frozen=True, eq=False)
class Masses:
    """Intervals of mass for the outcomes of do(x), (s, x) by (s, x), for one step or all steps pooled.

    Outcomes are (next state, ended) and, if `rewards`, the reward. They lie in one row of arrays, ordered by (s, x);
    those of cell k are `first[k]` .. `first[k + 1]` - 1.

    Attributes:
        state: int32 [cells].
        action: int32 [cells].
        first: int64 [cells + 1].
        capped: bool [cells], whether a source with finite confounding took x in s, so that masses have upper limits.
        next_state: int32 [outcomes].
        ended: bool [outcomes].
        reward: float64 [outcomes], the reward; the extreme one where outcomes do not tell rewards apart.
        lower: float64 [outcomes], max_i L_i.
        upper: float64 [outcomes], min_i U_i; 1 where there is none.
        deficit: float64 [outcomes], max_i L_i(o) |extreme - mean reward of i there|; 0 if rewards are told apart.
        rewards: whether outcomes tell rewards apart.
    """

    state: IntArray
    action: IntArray
    first: LongArray
    capped: BoolArray
    next_state: IntArray
    ended: BoolArray
    reward: FloatArray
    lower: FloatArray
    upper: FloatArray
    deficit: FloatArray
    rewards: bool

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays in the order above, for a kernel."""
        return tuple(getattr(self, item.name) for item in fields(self) if item.name != "rewards")


def source_confounding(counts: Counts, confounding: float | Mapping[str, float]) -> FloatArray:
    """Return Gamma of each source: one number for all, or a mapping by name in which the others are unlimited."""
    if isinstance(confounding, Mapping):
        for name in confounding:
            if name not in counts.sources:
                raise DataError(f"confounding names {name!r}, but the sources are {', '.join(counts.sources)}.")
        gammas = np.array([float(confounding.get(name, math.inf)) for name in counts.sources])
    else:
        gammas = np.full(len(counts.sources), float(confounding))
    for name, gamma in zip(counts.sources, gammas, strict=True):
        if not gamma >= 1:
            raise DataError(f"The confounding of {name!r} is {gamma}; it must be 1 (none) or more, up to inf.")
    return gammas


def masses(counts: Counts, gammas: FloatArray, extreme: float) -> Masses:
    """Return what the sources prove together.

    Args:
        counts: with steps pooled.
        gammas: float64 [sources], see `source_confounding`.
        extreme: the largest possible reward for a ceiling, the smallest for a floor.
    """
    n_sources, n_states, n_actions = len(counts.sources), len(counts.space.states), len(counts.space.actions)
    visits, taken = np.zeros((n_sources, n_states)), np.zeros((n_sources, n_states, n_actions))
    np.add.at(visits, (counts.source, counts.state), counts.n)
    np.add.at(taken, (counts.source, counts.state, counts.action), counts.n)
    known = counts.outcome_known
    proven = np.zeros_like(taken)
    np.add.at(proven, (counts.source[known], counts.state[known], counts.action[known]), counts.n[known])
    unknown = taken - proven  # rows whose outcome is not known

    rewards = all(counts.discrete_rewards)
    value = counts.reward_min if rewards else np.zeros(len(counts))
    columns = [counts.state, counts.action, counts.next_state, counts.terminated, value]
    key: list[Any] = [column[known] for column in columns]
    order, begins = groups(key)
    outcome = np.empty(len(order), dtype=np.int64)  # the outcome that each known entry belongs to
    outcome[order] = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(order))))
    state, action, next_state, ended, reward = (column[order][begins] for column in key)

    # Entries of one source and outcome are one: pool the rewards that are not told apart.
    n, paid = np.zeros((n_sources, len(begins))), np.zeros((n_sources, len(begins)))
    np.add.at(n, (counts.source[known], outcome), counts.n[known])
    np.add.at(paid, (counts.source[known], outcome), counts.reward_sum[known])

    with np.errstate(invalid="ignore", divide="ignore"):
        share = taken[:, state, action] / visits[:, state]
        often = n / taken[:, state, action]
        lower = np.nan_to_num(often * (share + (1 - share) / gammas[:, None]))
        upper = often * (share + (1 - share) * np.where(np.isinf(gammas), 1.0, gammas)[:, None])
        deficit = np.nan_to_num(lower * np.abs(extreme - paid / n)) if not rewards else np.zeros_like(lower)
    # A source that does not know all its outcomes limits none: the unknown ones may have been anything.
    limits = (taken > 0)[:, state, action] & (unknown == 0)[:, state, action] & np.isfinite(gammas)[:, None]
    upper = np.where(limits, np.minimum(upper, 1.0), 1.0)

    _, starts = groups([state, action])
    return Masses(
        state=state[starts],
        action=action[starts],
        first=np.append(starts, len(state)),
        capped=limits[:, starts].any(axis=0),
        next_state=next_state,
        ended=ended,
        reward=reward if rewards else np.full(len(reward), extreme),
        lower=lower.max(axis=0),
        upper=upper.min(axis=0),
        deficit=deficit.max(axis=0),
        rewards=rewards,
    )
