"""The table of outcomes: everything that followed an action somewhere, and what each source saw.

A *cell* is a state and an action, at one step if the counts are kept apart by step. An *outcome* is
what may follow a cell: a next state or an end, with a reward (or the bin of a reward). Ceilings,
floors and the comparison of sources all read this one table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_shaping.bounds.settings import CEILING
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins, groups
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN

SAME_REWARD = 2.0**-22
"""Rewards closer than this, relative to the largest, are one: float32 cannot tell them apart."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What one source shows: a row for each outcome that it saw, in the order of `Outcomes`."""

    outcome: LongArray  # [rows], a position in the table of outcomes, rising
    cell_of: LongArray  # [rows], a position in `cells`
    n: FloatArray  # [rows], how often the source saw the outcome
    gap: FloatArray  # [rows], |safe reward - mean reward of the source|; 0 without reward bins
    cells: LongArray  # the cells of which the source knows an outcome, by position in `Outcomes`
    taken: FloatArray  # [cells], how often it took the action there
    visits: FloatArray  # [cells], how often it was in the state
    complete: BoolArray  # [cells], whether it knows what followed each time
    places: LongArray  # step * states + state wherever the source acted, rising
    place_visits: FloatArray  # [places], how often it acted there


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The distinct outcomes, cell by cell; those of cell c are `first[c]` to `first[c + 1] - 1`."""

    cell: LongArray  # [cells], (step * states + state) * actions + action, rising
    first: LongArray  # [cells + 1]
    cell_of: LongArray  # [outcomes], a position in `cell`
    after: IntArray  # [outcomes], the next state; the number of states if the episode ended
    level: LongArray  # [outcomes], a position in `rewards`
    rewards: FloatArray  # [levels], the reward, or the best reward that the bin can hold
    widths: FloatArray  # [levels], of the bin; 0 for a bin without an end, or without bins
    shown: tuple[Shown, ...]  # by source

    def sum_by_cell(self, values: FloatArray) -> FloatArray:
        """Return the sum over the outcomes of each cell: float64 [cells]."""
        return np.bincount(self.cell_of, values, len(self.cell)).astype(np.float64)


def find_outcomes(
    counts: Counts, side: float = CEILING, reward_bound: float = math.inf
) -> Outcomes:
    """Return the table of outcomes.

    Args:
        counts: of all sources.
        side: `CEILING` or `FLOOR`, which decides what a bin of rewards pays at best.
        reward_bound: the largest possible reward, for floors the smallest.
    """
    # Give equal outcomes of different sources equal rows, and find the best reward of each level.
    counts = with_equal_outcomes(counts, side)
    rewards, widths, level = _reward_levels(counts, side, reward_bound)
    states, actions = counts.space.is_admissible.shape
    place = place_of_rows(counts)
    cell = place * actions + counts.action

    # Number the outcomes cell by cell.
    known = np.flatnonzero(counts.outcome_known)
    key = (cell, counts.next_state, counts.terminated, level)
    order, first = groups([column[known] for column in key])
    outcome = np.empty(len(known), dtype=np.int64)
    outcome[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(known))))
    example = known[order[first]]
    cells, first_of_cell, cell_of = np.unique(cell[example], return_index=True, return_inverse=True)

    # What each source saw. Counts are ordered by source and cell, so its rows follow one another.
    mean = counts.reward_sum / counts.n
    gap = np.maximum(side * (rewards[level] - mean), 0.0)
    if counts.space.reward_bins is None:
        gap[:] = 0.0  # rewards that were merged differ from the level by rounding only
    edges = np.searchsorted(counts.source, np.arange(len(counts.sources) + 1))
    known_edges = np.searchsorted(known, edges)
    shown = []
    for i in range(len(counts.sources)):
        every, own = slice(*edges[i : i + 2]), slice(*known_edges[i : i + 2])
        rows = known[own]
        places, place_visits = _totals(place[every], counts.n[every])
        tried, taken = _totals(cell[every], counts.n[every])
        sure, known_times = _totals(cell[rows], counts.n[rows])
        taken = taken[np.searchsorted(tried, sure)]
        shown.append(
            Shown(
                outcome=outcome[own],
                cell_of=np.cumsum(begins(cell[rows])) - 1,
                n=counts.n[rows],
                gap=gap[rows],
                cells=np.searchsorted(cells, sure),
                taken=taken,
                visits=place_visits[np.searchsorted(places, sure // actions)],
                complete=known_times == taken,
                places=places,
                place_visits=place_visits,
            )
        )
    return Outcomes(
        cell=cells,
        first=np.append(first_of_cell, len(example)),
        cell_of=cell_of.astype(np.int64),
        after=np.where(counts.terminated, states, counts.next_state)[example].astype(np.int32),
        level=level[example],
        rewards=rewards,
        widths=widths,
        shown=tuple(shown),
    )


def place_of_rows(counts: Counts) -> LongArray:
    """Return step * states + state of each row; the step is 0 where steps are pooled."""
    if counts.step is None:
        return counts.state.astype(np.int64)
    return counts.step.astype(np.int64) * len(counts.space.states) + counts.state


def _totals(key: LongArray, n: FloatArray) -> tuple[LongArray, FloatArray]:
    """Return the distinct values of a sorted key, and the sum of n over the rows of each."""
    if not len(key):
        return key, n
    first = np.flatnonzero(begins(key))
    return key[first], np.add.reduceat(n, first)


# What makes two outcomes equal ------------------------------------------------------------------


def with_equal_outcomes(counts: Counts, side: float = CEILING) -> Counts:
    """Return counts in which equal outcomes of different sources look equal.

    If one source does not record in which state its episodes end, an end is the same outcome for
    all. Rewards that differ by rounding become one: the largest of them for a ceiling, the smallest
    for a floor. Rewards in bins stay as they are.
    """
    changed: dict[str, Any] = {}
    if (counts.terminated & (counts.next_state == UNKNOWN)).any():
        changed["next_state"] = np.where(counts.terminated, UNKNOWN, counts.next_state)
    if counts.space.reward_bins is None and len(counts):
        distinct, position = np.unique(counts.reward_min, return_inverse=True)
        group = equal_rewards(distinct)
        if group[-1] + 1 < len(distinct):
            best = np.full(group[-1] + 1, -math.inf)
            np.maximum.at(best, group, side * distinct)
            changed["reward_min"] = changed["reward_max"] = side * best[group][position]
    if not changed:
        return counts
    columns = {name: getattr(counts, name) for name in counts.COLUMNS} | changed
    return Counts.combined(counts.space, counts.sources, columns, population=counts.population)


def equal_rewards(distinct: FloatArray) -> LongArray:
    """Number rising rewards; those that differ from one by rounding share its number."""
    tolerance = SAME_REWARD * np.abs(distinct).max(initial=0.0)
    if not (np.diff(distinct) <= tolerance).any():
        return np.arange(len(distinct))
    numbers, number, start = [], -1, -math.inf
    for reward in distinct.tolist():
        if reward > start + tolerance:
            start, number = reward, number + 1
        numbers.append(number)
    return np.array(numbers)


def reward_keys(counts: Counts) -> FloatArray:
    """Return what distinguishes the rewards of rows: the reward, or the number of its bin."""
    bins = counts.space.reward_bins
    if bins is None:
        return counts.reward_min
    return bins(counts.reward_min).astype(np.float64)


def _reward_levels(
    counts: Counts, side: float, reward_bound: float
) -> tuple[FloatArray, FloatArray, LongArray]:
    """Return the best reward and the width of each level of rewards, and the level of each row.

    Without bins each reward is a level. The outermost bin has no edge: there the largest possible
    reward is the best one, for a floor the smallest. The worst bin has no width.
    """
    bins = counts.space.reward_bins
    if bins is None:
        rewards, level = np.unique(counts.reward_min, return_inverse=True)
        return rewards, np.zeros(len(rewards)), level.astype(np.int64)
    low, high = np.append(-math.inf, bins.edges), np.append(bins.edges, math.inf)
    best, worst = np.minimum(high, reward_bound), low
    if side < 0:
        best, worst = np.maximum(low, reward_bound), high
    width = side * (best - worst)
    closed = np.isfinite(width) & (width > 0)
    return best, np.where(closed, width, 0.0), bins(counts.reward_min).astype(np.int64)
