"""Whether one world can have shown what all sources prove together.

Masses that add up to more than 1 are a contradiction, and so are upper limits that leave no
distribution: a source is more confounded than declared, or the sources watched different worlds,
or a hidden cause lasts over an episode. In a sample small contradictions happen by chance, so they
are tested. Whether sources fit together does not depend on the confidence of the bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv

from causal_shaping.bounds.limits import PlugIn
from causal_shaping.bounds.masses import Masses, limits_for, mass_intervals
from causal_shaping.bounds.outcomes import Outcomes, find_outcomes, with_equal_outcomes
from causal_shaping.bounds.settings import Settings
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins
from causal_shaping.data.counts import MAX_REWARDS, Counts
from causal_shaping.errors import ArgumentError, ContradictionError

ROUNDING = 1e-9
"""A mass that contradicts another by less than this does so by rounding."""

FALSE_ALARM_RATE = 1e-3
"""The probability of refusing sources that do not contradict each other."""

DOUBTFUL_LEVEL = 0.05
"""Sources that look this unlikely to have watched one world void the guarantee."""

LIMITS_A_ROW = 4
"""Each row of the counts takes part in so many limits: the union bound divides by their number."""

SAME_TOTAL = 1e-12
"""Masses that sum to no more than 1 plus this sum to 1."""

UNSHARED_PART = 0.1
"""The part of a source's alpha that is kept for outcomes which no other source saw."""

SMALLEST_P_VALUE = 1e-100
"""P-values below this are not distinguished."""

HALVINGS = 30
"""The interval of log p in which a p-value lies is halved so often, to within 3e-7 of its size."""

LARGEST_TABLE = 10_000_000
"""A table by cell, source and reward bin holds at most so many numbers at once."""


@dataclass(frozen=True)
class Agreement:
    """How far the sources agree.

    Attributes:
        scaled: of how many cells the sources prove more mass than 1, which was scaled down.
        largest_total: the most mass that they prove of one cell.
        caveats: why the bound is not guaranteed, in sentences.
    """

    scaled: int
    largest_total: float
    caveats: tuple[str, ...]


def check_agreement(
    counts: Counts, settings: Settings, outcomes: Outcomes, masses: Masses
) -> Agreement:
    """Raise `ContradictionError` if no world fits the masses, up to rounding and chance.

    Args:
        counts: in which equal outcomes look equal.
        settings: of the bound.
        outcomes: of the counts.
        masses: what the bound takes as proven, at its confidence.
    """
    gammas = [settings.gamma(name) for name in counts.sources]
    limited = any(math.isfinite(gamma) for gamma in gammas)
    shares = masses
    if settings.confidence is not None:
        shares = mass_intervals(outcomes, gammas, PlugIn())

    # Masses of several sources that sum to more than 1 are tested whatever the confounding.
    p_value, several = 1.0, len(counts.sources) > 1 and not counts.population
    if several and (shares.proven > 1 + ROUNDING).any():
        p_value = _refuse_excess(counts, outcomes, gammas)
    # Upper limits and population masses must fit exactly, or within confidence limits.
    if limited or counts.population:
        conflict = _conflict(outcomes, shares)
        if (conflict > ROUNDING).any() and not counts.population:
            limits = limits_for(counts, FALSE_ALARM_RATE / (LIMITS_A_ROW * len(counts)))
            conflict = _conflict(outcomes, mass_intervals(outcomes, gammas, limits))
        if len(conflict) and conflict.max() > ROUNDING:
            _refuse_conflict(counts, outcomes, conflict, limited)

    caveats = []
    if p_value < DOUBTFUL_LEVEL:
        caveats.append(
            "the sources prove more mass than 1 of an action in a state, which chance hardly "
            f"explains (p = {p_value:.1g}): they did not watch the same world, or a hidden cause "
            "lasts over the episode."
        )
    over = masses.proven > 1 + ROUNDING
    if over.any() and settings.confidence is not None:
        caveats.append(
            "limits that hold at this confidence prove more mass than 1 of an action in a state: "
            "the sources did not watch the same world, or a hidden cause lasts over the episode, "
            "or this sample is a rare one."
        )
    largest = float(masses.proven.max(initial=1.0, where=over))
    return Agreement(int(over.sum()), largest, tuple(caveats))


def _conflict(outcomes: Outcomes, masses: Masses) -> FloatArray:
    """Return by how much mass each cell misses every distribution: float64 [cells]."""
    upper_total = outcomes.sum_by_cell(masses.upper) + masses.unseen
    unscaled = masses.lower * np.maximum(masses.proven, 1.0)[outcomes.cell_of]
    crossed = np.full(len(outcomes.cell), -math.inf)
    np.maximum.at(crossed, outcomes.cell_of, unscaled - masses.upper)
    return np.asarray(np.maximum.reduce([masses.proven - 1, crossed, 1 - upper_total]))


def _refuse_conflict(
    counts: Counts, outcomes: Outcomes, conflict: FloatArray, limited: bool
) -> None:
    """Refuse masses that leave no distribution in some cell."""
    worst = int(np.argmax(conflict))
    confounded, advice = "", "Leave"
    if limited:
        confounded, advice = (
            "at least one is more confounded than declared, or ",
            "Raise confounding, or leave",
        )
    raise ContradictionError(
        f"The sources contradict each other on what {_where(counts, outcomes.cell[worst])}: no "
        f"outcome distribution fits what they prove, by a mass of {conflict[worst]:.3g}. Either "
        f"{confounded}they did not watch the same world, or a hidden cause lasts over the episode. "
        f"{advice} a source out."
    )


def _refuse_excess(counts: Counts, outcomes: Outcomes, gammas: Sequence[float]) -> float:
    """Refuse masses that sum to more than 1 beyond chance; otherwise return the p-value.

    Both whatever the confounding, and with sources unconfounded that are declared so.
    """
    trials = tuple(i for i, gamma in enumerate(gammas) if gamma == 1)
    tests = list(dict.fromkeys([(), trials]))
    smallest = 1.0
    for unconfounded in tests:
        excess = excess_masses(counts, unconfounded, outcomes)
        if not len(excess.p_value):
            continue
        worst = int(excess.p_value.argmin())
        p_value = min(1.0, float(excess.p_value[worst]) * len(tests))
        smallest = min(smallest, p_value)
        if p_value >= FALSE_ALARM_RATE:
            continue
        names = ", ".join(counts.sources[i] for i in unconfounded)
        declared, confounded = "whatever their confounding", ""
        if names:
            declared, confounded = f"with {names} unconfounded", f"{names} is confounded, or "
        if len(unconfounded) > 1:
            confounded = f"one of {confounded}"
        raise ContradictionError(
            f"The sources contradict each other on what {_where(counts, excess.cell[worst])}, "
            f"{declared}: they prove a mass of {excess.total[worst]:.4g}, more than 1 and more "
            f"than chance allows (p = {p_value:.1g} over all states and actions). Either "
            f"{confounded}they did not watch the same world, or a hidden cause lasts over the "
            "episode. Leave a source out."
        )
    return smallest


def _where(counts: Counts, cell: int) -> str:
    """Return the action, the state and the step of a cell in words."""
    step, state, action = cell_parts(counts, np.array(cell))
    where = f"{counts.space.actions[int(action)]!r} does in {counts.space.states[int(state)]!r}"
    if counts.step_indexed:
        where += f" at step {int(step)}"
    return where


def cell_parts(counts: Counts, cell: LongArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the step, state and action of cells."""
    place, action = np.divmod(cell, len(counts.space.actions))
    step, state = np.divmod(place, len(counts.space.states))
    return step.astype(np.int32), state.astype(np.int32), action.astype(np.int32)


# The test of masses that sum to more than 1 ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Excess:
    """The cells whose proven masses sum to more than 1, the largest sum first."""

    cell: LongArray  # (step * states + state) * actions + action
    total: FloatArray  # sum over o of max over i of p_i(x, o | s)
    p_value: FloatArray  # of the hypothesis that this is chance, corrected for all cells


def excess_masses(
    counts: Counts, unconfounded: Sequence[int] = (), outcomes: Outcomes | None = None
) -> Excess:
    """Return the cells of which sources prove more mass than there is, whatever their confounding.

    Source i proves that do(x) gives outcome o a mass of at least p_i(x, o | s), Manski's mass. If
    all sources watch one world, with hidden causes drawn afresh at each step, then for all (s, x)

        sum over o of  max over i of  p_i(x, o | s)  <=  1.

    In a sample the sum can be larger by chance. The p-value of a cell is the smallest alpha at
    which exact lower limits of these masses (Clopper and Pearson, 1934), all of which hold with
    probability 1 - alpha, still sum to more than 1.

    *Proof.* Fix how often each source was in s, n_i, and divide alpha among the sources in
    proportion to 1 / sqrt(n_i). Given what the other sources show, which is independent of source
    i, 90% of its part is divided equally among the outcomes that they saw, and 10% among all
    outcomes that the space allows. Both lists are fixed before source i is looked at, so by the
    union bound all limits hold at once with probability 1 - alpha. While they hold, and the sources
    watch one world, they sum to at most 1. Each p-value is multiplied by the number of cells in
    states where two sources acted, which does not depend on what was done there. So the probability
    that any corrected p-value is alpha or less is at most alpha.

    Limits of single outcomes say little where rewards are in many bins. There, rewards are also
    divided in two: for each edge of the bins and each ordered pair of sources i, j, do(x) gives
    rewards below the edge a mass of p_i(x, below | s) or more, and the others p_j(x, above | s) or
    more. Their p-value is multiplied by the number of edges and of ordered pairs, and the cell gets
    twice the smaller of the two p-values. Edges are taken as fixed.

    Rows with an unknown outcome add to no mass. With steps pooled, how often s was visited is taken
    as given, so that p-values are approximate there.

    Args:
        counts: of a sample.
        unconfounded: sources, by position, that are declared unconfounded. They prove p_i(o | s, x)
            instead of p_i(x, o | s); how often they took x in s is taken as given.
        outcomes: those of the counts, if they are known already.
    """
    if counts.population:
        raise ArgumentError(
            "The test is for samples; masses of population counts can be added up as they are."
        )
    if outcomes is None:
        outcomes = find_outcomes(with_equal_outcomes(counts))
    rows = _rows_above_one(outcomes, unconfounded)
    if not len(rows.cell):
        return Excess(rows.cell, np.zeros(0), np.zeros(0))
    share, tests = _shares_of_alpha(counts, outcomes, rows, unconfounded)
    p_value = _p_values(rows, share, tests)
    if counts.space.reward_bins is not None:
        by_reward = _p_values_by_reward(counts, outcomes, rows, tests)
        p_value = np.minimum(1.0, 2 * np.minimum(p_value, by_reward))
    total = rows.sum_of_maxima(rows.n / rows.visits)
    order = np.argsort(-total, kind="stable")
    cell = outcomes.cell[rows.cell[begins(rows.cell)]]
    return Excess(cell[order], total[order], p_value[order])


@dataclass(frozen=True, eq=False)
class _Rows:
    """What sources saw of some cells: a row by source and outcome, ordered by outcome."""

    cell: LongArray  # position in `Outcomes.cell`, rising
    outcome: LongArray  # position in `Outcomes`, rising
    source: IntArray
    n: FloatArray
    visits: FloatArray  # of the source to the state; for an unconfounded one, times it took x

    def of(self, which: BoolArray | LongArray) -> _Rows:
        """Return some of the rows, or all in another order."""
        columns = {name: column[which] for name, column in vars(self).items()}
        return replace(self, **columns)

    @property
    def number(self) -> LongArray:
        """The cells numbered from 0: int64 [rows]."""
        return np.cumsum(begins(self.cell)) - 1

    def sum_of_maxima(self, mass: FloatArray) -> FloatArray:
        """Return by cell the sum over its outcomes of the largest mass that a source shows."""
        new = begins(self.outcome)
        most = np.maximum.reduceat(mass, np.flatnonzero(new))
        return np.bincount(self.number[new], most).astype(np.float64)

    def exceed(self, share: FloatArray, log_alpha: FloatArray) -> BoolArray:
        """Return by cell whether its lower limits, at an alpha of its own, sum to more than 1."""
        alpha = np.exp(log_alpha)[self.number] * share
        limits = betaincinv(self.n, self.visits - self.n + 1, alpha)
        return np.asarray(self.sum_of_maxima(limits) > 1)


def _rows_above_one(outcomes: Outcomes, unconfounded: Sequence[int]) -> _Rows:
    """Return what the sources saw of cells whose proven masses sum to more than 1."""
    parts = []
    for i, shown in enumerate(outcomes.shown):
        trials = shown.visits
        if i in unconfounded:
            trials = shown.taken
        source = np.full(len(shown.n), i, dtype=np.int32)
        cell = outcomes.cell_of[shown.outcome]
        parts.append((cell, shown.outcome, source, shown.n, trials[shown.cell_of]))
    rows = _Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    # A cheap limit first: the sum over all sources instead of the maximum.
    limit = np.bincount(rows.cell, rows.n / rows.visits, len(outcomes.cell))
    rows = rows.of(limit[rows.cell] > 1 + SAME_TOTAL)
    if not len(rows.cell):
        return rows
    rows = rows.of(np.argsort(rows.outcome, kind="stable"))
    above = rows.sum_of_maxima(rows.n / rows.visits) > 1 + SAME_TOTAL
    return rows.of(above[rows.number])


def _shares_of_alpha(
    counts: Counts, outcomes: Outcomes, rows: _Rows, unconfounded: Sequence[int]
) -> tuple[FloatArray, int]:
    """Return the part of alpha that the limit of each row gets, and the number of cells tested."""
    states, actions = counts.space.is_admissible.shape
    confounded = [i for i in range(len(outcomes.shown)) if i not in unconfounded]
    places = np.unique(np.concatenate([shown.places for shown in outcomes.shown]))
    sources = np.zeros(len(places))
    weight_of_place = np.zeros(len(places))
    for i, shown in enumerate(outcomes.shown):
        here = np.searchsorted(places, shown.places)
        sources[here] += 1
        if i in confounded:
            weight_of_place[here] += shown.place_visits**-0.5
    weight_of_cell = np.zeros(len(outcomes.cell))
    for i in unconfounded:
        shown = outcomes.shown[i]
        weight_of_cell[shown.cells] += shown.taken**-0.5
    admissible = counts.space.is_admissible.sum(axis=1)
    tests = max(1, int(admissible[places[sources >= 2] % states].sum()))

    # Within a source: outcomes that other sources saw, and all that the space allows.
    number = rows.number
    new_outcome = begins(rows.outcome)
    sharers = np.diff(np.append(np.flatnonzero(new_outcome), len(number)))
    unshared = np.repeat(sharers, sharers) == 1
    own = number * len(outcomes.shown) + rows.source
    own_unshared = np.bincount(own, unshared)[own]
    shared = np.bincount(number, new_outcome)[number] - own_unshared
    possible = (2 * states + 1) * max(MAX_REWARDS, len(outcomes.rewards))
    share = (1 - UNSHARED_PART) / np.maximum(shared, 1)
    share[unshared] = UNSHARED_PART / possible

    place = np.searchsorted(places, outcomes.cell[rows.cell] // actions)
    weight = weight_of_place[place] + weight_of_cell[rows.cell]
    return share * rows.visits**-0.5 / weight, tests


def _p_values(rows: _Rows, share: FloatArray, tests: int) -> FloatArray:
    """Return by cell the smallest alpha, times `tests`, at which its limits sum to more than 1.

    Args:
        rows: of some cells.
        share: the part of its cell's alpha that the limit of each row gets.
        tests: the number of tests to correct for.
    """
    cells = int(rows.number[-1]) + 1
    result, largest = np.ones(cells), -math.log(tests)
    notable = rows.exceed(share, np.full(cells, largest))  # the p-values of the others are 1
    if not notable.any():
        return result
    here = notable[rows.number]
    rows, share = rows.of(here), share[here]
    below = np.full(int(notable.sum()), math.log(SMALLEST_P_VALUE))
    above = np.full(len(below), largest)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        reached = rows.exceed(share, middle)
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
    result[notable] = np.exp(above) * tests
    return result


def _p_values_by_reward(counts: Counts, outcomes: Outcomes, rows: _Rows, tests: int) -> FloatArray:
    """Return the p-values of cells whose rewards are divided in two, at the worst edge and pair."""
    sources, bins = len(counts.sources), counts.space.reward_bins
    assert bins is not None
    number, level = rows.number, outcomes.level[rows.outcome]
    cells = int(number[-1]) + 1
    corrected = tests * len(bins.edges) * sources * (sources - 1)
    result = np.ones(cells)
    size = max(1, LARGEST_TABLE // (sources * (len(bins.edges) + 1)))
    for begin in range(0, cells, size):
        # How often each source saw each bin, in some of the cells.
        here = (number >= begin) & (number < begin + size)
        place = number[here] - begin, rows.source[here]
        n = np.zeros((min(size, cells - begin), sources, len(bins.edges) + 1))
        np.add.at(n, (*place, level[here]), rows.n[here])
        visits = np.ones(n.shape[:2])  # 1 where a source was never seen: it proves nothing
        visits[place] = rows.visits[here]
        pair, notable = _worst_division(n, visits)
        if not notable.any():
            continue
        # Two rows a cell, as if they were two outcomes; each gets its share of alpha.
        chosen = np.repeat(np.arange(int(notable.sum())), 2)
        count, trials = (column[notable].ravel() for column in pair)
        divided = _Rows(chosen, np.arange(len(chosen)), chosen.astype(np.int32), count, trials)
        weight = trials**-0.5
        share = weight / np.bincount(chosen, weight)[chosen]
        result[begin + np.flatnonzero(notable)] = _p_values(divided, share, corrected)
    return result


def _worst_division(
    n: FloatArray, visits: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], BoolArray]:
    """Return the counts and visits of the pair of sources and edge that look most contradictory.

    Args:
        n: float64 [cells, sources, bins].
        visits: float64 [cells, sources].

    Returns:
        Counts and visits, each float64 [cells, 2], and which cells have such a pair.
    """
    cells = np.arange(len(n))
    below = n.cumsum(axis=2)[..., :-1]
    above = n.sum(axis=2, keepdims=True) - below
    count, trials = np.zeros((len(n), 2)), np.zeros((len(n), 2))
    most = np.zeros(len(n))
    for i, j in itertools.permutations(range(n.shape[1]), 2):
        one, two = below[:, i] / visits[:, i, None], above[:, j] / visits[:, j, None]
        variance = one * (1 - one) / visits[:, i, None] + two * (1 - two) / visits[:, j, None]
        score = (one + two - 1) / np.maximum(np.sqrt(variance), ROUNDING)
        score = np.where((one > 0) & (two > 0), score, 0.0)
        edge = score.argmax(axis=1)
        worse = score[cells, edge] > most
        most[worse] = score[cells, edge][worse]
        count[worse] = np.stack([below[cells, i, edge], above[cells, j, edge]], axis=1)[worse]
        trials[worse] = visits[worse][:, [i, j]]
    return (count, trials), most > 0
