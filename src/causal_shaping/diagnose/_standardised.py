"""How strongly a column ties actions and outcomes: what chance and standardisation make of a table of counts.

Let a source be unconfounded given the state s and a column c. Among the steps in which it took another action than x,
outcome o would have followed x with the standardised share

    P(o_x = o | s, not x) = sum over c of  p(c | s, not x) p(o | s, x, c).

By Bayes' rule the odds of x against not x given s and o_x = o, over the odds given s alone, are

    p(o | s, x) / P(o_x = o | s, not x).

If c is hidden, this ratio or its inverse is what Gamma has to bound, at each (s, x, o). (In bounds: the mass that do(x)
gives to o is p(x | s) p(o | s, x) + p(not x | s) P(o_x = o | s, not x), which lies between L and U.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causal_shaping.data.arrays import FloatArray, LongArray, ranges

ROUNDING = 1e-9
"""Log ratios below this are rounding."""

PRIOR_ROWS = 1.0
"""Both shares are averaged with what do(x) does, which weighs as many rows as this: a ratio of 1 if nothing else."""


@dataclass(frozen=True)
class Ties:
    """The ratios of one source, a row per (s, x, o).

    Attributes:
        log_ratio: float64 [outcomes], the logarithm of the ratio; 0 where nothing is known of it, with a weight of 0.
        weight: float64 [outcomes], the visits to s times p(x | s) (1 - p(x | s)) times the mass that do(x) gives to o.
            So a rare action weighs as little as its rows tell, and an action that is nearly always taken as little as
            it leaves open.
        without_overlap: the share of steps with another action than x, weighted alike, whose value of the column never
            came with x: what x would have done there is unknown.
    """

    log_ratio: FloatArray
    weight: FloatArray
    without_overlap: float

    def quantile(self, share: float) -> float:
        """Return the ratio, or its inverse, that `share` of the weight does not exceed."""
        if self.weight.sum() <= 0:
            return 1.0
        size = np.abs(self.log_ratio)
        order = np.argsort(size)
        reached = np.cumsum(self.weight[order])
        place = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
        return float(np.exp(size[order][min(place, len(order) - 1)]))


@dataclass(frozen=True, eq=False)
class Table:
    """Counts of one source by state, action, value of the column, and outcome; see `tabulate`.

    A group is a (state, action), a pair is a group and a value of the column that occurs in its state, an outcome is a
    group and what was seen to follow, and a cell is a pair and an outcome of its group. Pairs are sorted by group,
    cells by pair.
    """

    group_n: FloatArray
    pair_group: LongArray
    pair_stratum: LongArray  # which (state, value)
    pair_n: FloatArray
    outcome_group: LongArray
    cell_pair: LongArray
    cell_outcome: LongArray
    cell_n: FloatArray

    @cached_property
    def outcome_n(self) -> FloatArray:
        """How often each outcome was seen."""
        return np.bincount(self.cell_outcome, self.cell_n).astype(np.float64)

    def ties(self) -> Ties:
        """Return the ratios that were measured."""
        return self._ties(self.pair_n, self.cell_n)

    def _ties(self, pair_n: FloatArray, cell_n: FloatArray) -> Ties:
        groups = len(self.group_n)
        stratum_n = np.bincount(self.pair_stratum, pair_n)
        others = stratum_n[self.pair_stratum] - pair_n
        covered = np.where(pair_n > 0, others, 0.0)
        total = np.bincount(self.pair_group, covered, groups)
        not_taken = np.bincount(self.pair_group, others, groups)
        seen = np.maximum(pair_n, 1.0)
        known = np.maximum(total, 1e-300)[self.outcome_group]
        standardised = np.bincount(self.cell_outcome, (covered / seen)[self.cell_pair] * cell_n) / known
        # As many rows as would give a plain share the same error.
        effective = total**2 / np.maximum(np.bincount(self.pair_group, covered**2 / seen, groups), 1e-300)
        share = np.bincount(self.cell_outcome, cell_n) / self.group_n[self.outcome_group]
        taken = (self.group_n / (self.group_n + not_taken))[self.outcome_group]
        done = taken * share + (1 - taken) * standardised
        weight = self.group_n[self.outcome_group] * (1 - taken) * done
        weight[total[self.outcome_group] == 0] = 0.0
        rows, other_rows = self.group_n[self.outcome_group], effective[self.outcome_group]
        first = (rows * share + PRIOR_ROWS * done) / (rows + PRIOR_ROWS)
        second = (other_rows * standardised + PRIOR_ROWS * done) / (other_rows + PRIOR_ROWS)
        log_ratio = np.log(np.where(weight > 0, first, 1.0) / np.where(weight > 0, second, 1.0))
        size = self.group_n * not_taken / (self.group_n + not_taken)
        lost = np.average(1 - total / np.maximum(not_taken, 1.0), weights=size)
        return Ties(log_ratio, weight, float(lost))

    def without_outcome_tie(self, rng: np.random.Generator) -> Ties:
        """Return ratios of a sample in which outcomes do not depend on the column, given state and action."""
        shares = (self.outcome_n / self.group_n[self.outcome_group])[self.cell_outcome]
        return self._ties(self.pair_n, self._outcomes.draw(rng, self.pair_n, shares))

    def without_action_tie(self, rng: np.random.Generator) -> Ties:
        """Return ratios of a sample in which actions do not depend on the column, given the state."""
        strata = np.bincount(self.pair_stratum, self.pair_n).astype(np.float64)[self.pair_stratum]
        pair_n = self._values.draw(rng, self.group_n, strata)
        unseen = self.pair_n[self.cell_pair] == 0  # no row tells what would follow: as without the column
        shares = np.where(unseen, self.outcome_n[self.cell_outcome], self.cell_n)
        return self._ties(pair_n, self._outcomes.draw(rng, pair_n, shares))

    @cached_property
    def _values(self) -> _Parts:
        return _Parts(self.pair_group, len(self.group_n))

    @cached_property
    def _outcomes(self) -> _Parts:
        return _Parts(self.cell_pair, len(self.pair_group))


class _Parts:
    """Draws from many multinomial distributions of different sizes, those of all wholes together."""

    def __init__(self, whole: LongArray, wholes: int) -> None:
        self.whole = whole  # sorted
        self.first = np.searchsorted(whole, np.arange(wholes))
        self.size = np.bincount(whole, minlength=wholes)
        self.by_size = np.argsort(-self.size, kind="stable")
        self.reaching = np.searchsorted(-self.size[self.by_size], -np.arange(self.size.max(initial=0)))

    def draw(self, rng: np.random.Generator, n: FloatArray, weights: FloatArray) -> FloatArray:
        """Divide each of `n` [wholes] at random among its parts, by their weights; return float64 [parts]."""
        after = np.cumsum(weights[::-1])[::-1]
        end = np.append(after, 0.0)[self.first + self.size]
        rest = np.maximum(after - end[self.whole], weights)
        chance = np.divide(weights, rest, out=np.zeros_like(weights), where=rest > 0)
        chance[self.first[self.size > 0] + self.size[self.size > 0] - 1] = 1.0  # the last part takes what is left
        left, result = n.astype(np.int64), np.zeros(len(weights))
        for rank, reaching in enumerate(self.reaching):
            wholes = self.by_size[:reaching]
            parts = self.first[wholes] + rank
            drawn = rng.binomial(left[wholes], np.minimum(chance[parts], 1.0))
            left[wholes] -= drawn
            result[parts] = drawn
        return result


def p_value(found: Ties, without: Sequence[Ties]) -> float:
    """Return how often samples without a tie show as much: by squared log ratios, each in units of its own error."""
    ratios = np.array([ties.log_ratio for ties in (found, *without)])
    squares = np.where(np.abs(ratios) > ROUNDING, ratios, 0.0) ** 2
    error = squares.mean(axis=0)
    scaled = np.divide(squares, error, out=np.zeros_like(squares), where=error > 0) @ found.weight
    return float((scaled >= scaled[0] * (1 - 1e-12)).mean())


def tabulate(state: LongArray, action: LongArray, value: LongArray, outcome: LongArray, n: FloatArray) -> Table | None:
    """Arrange counts of one source, each row a different (state, action, value, outcome).

    States in which one action was always taken are left out: nothing could be hidden that moved it. None if no other
    state is left.
    """
    actions = int(action.max()) + 1
    taken = np.unique(state * actions + action) // actions
    kept = np.bincount(taken)[state] > 1
    if not kept.any():
        return None
    state, action, value, outcome = (column[kept] for column in (state, action, value, outcome))
    n = n[kept]
    _, group_first, group = np.unique(state * actions + action, return_index=True, return_inverse=True)
    values, outcomes = int(value.max()) + 1, int(outcome.max()) + 1
    strata, stratum = np.unique(state * values + value, return_inverse=True)
    pair_group, pair_stratum = _product(state[group_first], strata // values)
    pair_key = pair_group * len(strata) + pair_stratum
    row_pair = np.searchsorted(pair_key, group * len(strata) + stratum)
    kinds, kind = np.unique(group * outcomes + outcome, return_inverse=True)
    outcome_group = kinds // outcomes
    cell_pair, cell_outcome = _product(pair_group, outcome_group)
    cell = np.searchsorted(cell_pair * len(kinds) + cell_outcome, row_pair * len(kinds) + kind)
    return Table(
        group_n=np.bincount(group, n).astype(np.float64),
        pair_group=pair_group,
        pair_stratum=pair_stratum,
        pair_n=np.bincount(row_pair, n, len(pair_group)).astype(np.float64),
        outcome_group=outcome_group,
        cell_pair=cell_pair,
        cell_outcome=cell_outcome,
        cell_n=np.bincount(cell, n, len(cell_pair)).astype(np.float64),
    )


def _product(wholes: LongArray, parts: LongArray) -> tuple[LongArray, LongArray]:
    """Return every (position in `wholes`, position in `parts`) of equal entries; `parts` is sorted."""
    first, last = np.searchsorted(parts, wholes), np.searchsorted(parts, wholes, side="right")
    return np.repeat(np.arange(len(wholes)), last - first), ranges(first, last - first)
