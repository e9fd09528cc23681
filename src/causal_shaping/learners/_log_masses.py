"""What logs prove of one step, as tables for a model-based rule.

Ceilings are computed once, from the logs alone. What is behind them, a mass of each outcome of do(x) that is proven,
goes on being true while a learner finds out what states are worth: one more backup with its own optimistic values

    Q(s, x) <= w - sum over o of  max_i L_i(o) * (w - r(o) - discount * V(s'(o)))

bounds actions that it has hardly tried, and gets tighter as it learns.

- `LogMasses`: the tables.
- `log_masses`: made from counts, as ceilings read them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causal_shaping.bounds._masses import Evidence, sampling_of, source_confounding
from causal_shaping.bounds.results import Ceilings
from causal_shaping.bounds.support import unrestricted_states
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError


class LogMasses(NamedTuple):
    """What is proven of the outcomes of each (s, x), in the order of the learner's space.

    Attributes:
        known: False if there are no logs to go by.
        cell: int64 [states, actions], where its outcomes are found; -1 for what no source tried.
        first: int64 [cells + 1], outcomes of cell k are first[k] .. first[k + 1] - 1.
        after: int32 [outcomes], the next state; the number of states if it ended.
        reward: float64 [outcomes].
        lower: float64 [outcomes], the mass that is proven.
        free: float64 [cells], the mass that is not; 0 where sampling error makes all masses add to more than 1.
        scale: float64 [cells], what they are divided by then, else 1.
        deficit: float64 [cells], by how much rewards that are not told apart are below the largest possible one.
        anything: bool [states], whether free mass may do anything there, not only what was seen to follow.
        reward_max: the largest possible reward.
    """

    known: bool
    cell: LongArray
    first: LongArray
    after: IntArray
    reward: FloatArray
    lower: FloatArray
    free: FloatArray
    scale: FloatArray
    deficit: FloatArray
    anything: BoolArray
    reward_max: float


def no_log_masses() -> LogMasses:
    """Return tables for a learner without counts."""
    none, numbers = np.zeros(0), np.zeros(1, dtype=np.int64)
    return LogMasses(
        *(False, np.zeros((0, 0), dtype=np.int64), numbers, np.zeros(0, dtype=np.int32), none, none, none, none, none),
        *(np.zeros(0, dtype=np.bool_), 0.0),
    )


def log_masses(counts: Counts, ceilings: Ceilings, space: Space) -> LogMasses:
    """Return what counts prove of one step, read as the ceilings that were computed from them.

    Upper limits of mass, which come with a finite confounding, are left out: that is valid, and less tight.

    Raises:
        ArgumentError: if the ceilings are not of these counts, or cannot be computed again from them.
    """
    if counts.checksum != ceilings.counts_checksum:
        raise ArgumentError("The counts are not those that the ceilings were computed from. Merge all sources first.")
    if ceilings.method != "joint" or ceilings.support == "given" or counts.step is not None:
        raise ArgumentError(
            "To plan with counts, pool their steps, and compute ceilings by method='joint' with support 'observed' or "
            "'any'."
        )
    sampling = None if ceilings.confidence is None else sampling_of(counts, ceilings.confidence, ceilings.horizon)
    gammas = source_confounding(counts, ceilings.confounding)
    masses = Evidence(counts, gammas, ceilings.reward_bound, 1.0, sampling).masses(None)
    states, actions = counts.space.positions(space)
    if len(states) != len(counts.space.states):
        raise ArgumentError("The counts have states that the learner does not know.")
    place, action = np.empty(len(states) + 1, dtype=np.int32), np.empty(len(actions), dtype=np.int32)
    place[states], place[-1], action[actions] = np.arange(len(states)), len(states), np.arange(len(actions))
    cell = np.full((len(states), len(actions)), -1, dtype=np.int64)
    cell[place[masses.state], action[masses.action]] = np.arange(len(masses.state))
    total = np.add.reduceat(masses.lower, masses.first[:-1])
    lacking = masses.deficit if len(masses.deficit) else np.zeros(len(masses.lower))
    return LogMasses(
        known=True,
        cell=cell,
        first=np.ascontiguousarray(masses.first, dtype=np.int64),
        after=place[masses.after],
        reward=masses.rewards[masses.reward],
        lower=np.array(masses.lower, dtype=np.float64),
        free=np.maximum(0.0, 1 - total),
        scale=np.maximum(1.0, total),
        deficit=np.add.reduceat(lacking, masses.first[:-1]),
        anything=(unrestricted_states(counts, ceilings.support) | (masses.visits < ceilings.min_visits))[states],
        reward_max=float(ceilings.reward_bound),
    )
