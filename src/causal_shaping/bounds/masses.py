"""The mass that logs prove of each outcome of an action, whatever the hidden causes were.

Fix a state s and an action x. Source i took x with propensity p_i(x | s), and outcome o followed
with probability p_i(o | s, x). If hidden causes tie action and outcome by odds of at most Gamma_i
(the marginal sensitivity model; Tan, 2006), then under do(x) outcome o has a mass between

    L_i(o) = p_i(o | s, x) * (p_i(x | s) + (1 - p_i(x | s)) / Gamma_i)
    U_i(o) = p_i(o | s, x) * (p_i(x | s) + (1 - p_i(x | s)) * Gamma_i).

With Gamma_i = inf, L_i is Manski's p_i(x, o | s) and there is no U_i. All sources watch one world,
so the mass lies between max_i L_i(o) and min_i U_i(o). A row whose outcome is unknown proves that x
was taken and no more; a source with such rows sets no U there.

*Example.* In s, a source took x in 40 of 100 visits, and o followed 30 of these 40 times. Then
L = .75 * .4 = .3 if hidden causes may have done anything. With Gamma = 2 it is
.75 * (.4 + .6 / 2) = .525, and U = min(1, .75 * (.4 + .6 * 2)) = 1. A trial (Gamma = 1) has
L = U = .75.

**Rewards in bins.** The *safe reward* e of a bin is the best reward that it can hold. Let source i
have the mean reward m_i(o) within the bin. Of the mass M(o) of an outcome a part L_i(o) earns
m_i(o) on average, as the model limits the odds reward by reward, and the rest earns e at most:

    sum of rewards in o  <=  M(o) * e - max_i L_i(o) * (e - m_i(o)).

The last term is the *deficit* of o. Finer bins never loosen a bound. With one source and Gamma = 1
the bound is the mean itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causal_shaping.bounds.limits import AnyTrials, FixedTrials, Limits, PlugIn
from causal_shaping.bounds.outcomes import Outcomes, Shown
from causal_shaping.bounds.settings import Settings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import MAX_REWARDS, Counts


@dataclass(frozen=True, eq=False)
class Masses:
    """The interval of mass of each outcome, in the order of `Outcomes`.

    Lower masses that sum to more than 1 in a cell, by sampling error, are scaled down to 1.
    """

    lower: FloatArray  # [outcomes], max_i L_i
    upper: FloatArray  # [outcomes], min_i U_i; 1 where no source has a finite Gamma
    unseen: FloatArray  # [cells], the most mass that all other outcomes have together
    deficit: FloatArray  # [cells], the sum of the outcomes' deficits
    proven: FloatArray  # [cells], the sum of max_i L_i before scaling


def mass_intervals(outcomes: Outcomes, gammas: Sequence[float], limits: Limits) -> Masses:
    """Return the masses that all sources prove together.

    Args:
        outcomes: what the sources saw.
        gammas: the confounding of each source.
        limits: how a probability is read off a count.
    """
    lower, deficit = np.zeros(len(outcomes.after)), np.zeros(len(outcomes.after))
    upper, unseen = np.ones(len(outcomes.after)), np.ones(len(outcomes.cell))
    for shown, gamma in zip(outcomes.shown, gammas, strict=True):
        here, source = shown.outcome, _Source(shown, gamma, limits)
        proven = source.proven(shown.n, limits)
        lower[here] = np.maximum(lower[here], proven)
        if outcomes.widths.any() or shown.gap.any():
            widths = outcomes.widths[outcomes.level[here]]
            deficit[here] = np.maximum(deficit[here], source.deficit(proven, widths))
        if math.isfinite(gamma):
            _lower_caps(outcomes, source, upper, unseen)

    total = outcomes.sum_by_cell(lower)
    scale = np.maximum(total, 1.0)
    return Masses(
        lower=lower / scale[outcomes.cell_of],
        upper=upper,
        unseen=unseen,
        deficit=outcomes.sum_by_cell(deficit) / scale,
        proven=total,
    )


class _Source:
    """What one source proves of the outcomes that it saw."""

    def __init__(self, shown: Shown, gamma: float, limits: Limits) -> None:
        self.shown, self.gamma, self.limits = shown, gamma, limits
        self.propensity = limits.lower(shown.taken, shown.visits)
        self.taken, self.visits = shown.taken[shown.cell_of], shown.visits[shown.cell_of]

    def proven(self, happened: FloatArray, limits: Limits) -> FloatArray:
        """Return L of what `happened` so often after the action: float64 [rows]."""
        manski = limits.lower(happened, self.visits)
        if math.isinf(self.gamma):
            return manski
        factor = self.propensity + (1 - self.propensity) / self.gamma
        # With confidence, the one limit of p(x, o | s) can beat a product of two limits.
        share = self.share
        if happened is not self.shown.n:
            share = limits.lower(happened, self.taken)
        return np.maximum(manski, share * factor[self.shown.cell_of])

    @cached_property
    def share(self) -> FloatArray:
        """A lower limit of p(o | s, x): float64 [rows]."""
        return self.limits.lower(self.shown.n, self.taken)

    def deficit(self, proven: FloatArray, widths: FloatArray) -> FloatArray:
        """Return L * |safe reward - mean reward|, or a limit of it: float64 [rows]."""
        if isinstance(self.limits, PlugIn):
            return np.asarray(proven * self.shown.gap)
        # Each visit is a trial in [0, 1]: by which share of the bin its reward misses the safe one.
        # Fractional trials need time-uniform limits. A bin without an end has no such share.
        share = np.divide(self.shown.gap, widths, out=np.zeros(len(widths)), where=widths > 0)
        missed = self.shown.n * np.clip(share, 0.0, 1.0)
        return np.asarray(widths * self.proven(missed, AnyTrials(self.limits.alpha)))

    def caps(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U of each outcome that the source saw; by cell of any other one, of all others."""
        shown, limits = self.shown, self.limits
        factor = self.propensity + (1 - self.propensity) * self.gamma
        of_seen = limits.upper(shown.n, self.taken) * factor[shown.cell_of]
        of_one = limits.upper(np.zeros(len(shown.taken)), shown.taken) * factor
        of_others = np.zeros(len(shown.taken))  # as observed, what was never seen never happens
        if not isinstance(limits, PlugIn):
            seen = np.bincount(shown.cell_of, self.share, len(shown.taken))
            of_others = np.maximum(1.0 - seen, 0.0) * factor
        # Outcomes that the source does not know may have been any, so then it limits none.
        return (
            np.where(shown.complete[shown.cell_of], np.minimum(of_seen, 1.0), 1.0),
            np.where(shown.complete, np.minimum(of_one, 1.0), 1.0),
            np.where(shown.complete, np.minimum(of_others, 1.0), 1.0),
        )


def _lower_caps(outcomes: Outcomes, source: _Source, upper: FloatArray, unseen: FloatArray) -> None:
    """Lower the caps of outcomes and of what nobody saw, in place, to those that a source sets."""
    shown = source.shown
    of_seen, of_one, of_others = source.caps()
    cap_of_cell = np.ones(len(outcomes.cell))
    cap_of_cell[shown.cells] = of_one
    cap = cap_of_cell[outcomes.cell_of]
    cap[shown.outcome] = of_seen
    np.minimum(upper, cap, out=upper)
    unseen[shown.cells] = np.minimum(unseen[shown.cells], of_others)


def simultaneous_limits(counts: Counts, settings: Settings) -> Limits:
    """Return limits that all hold at once with probability 1 - `settings.limits_error`.

    The union bound counts every limit that could be asked for, seen or not: by source, step, state
    and action one for p(x | s), and by outcome a lower one for p(x, o | s), a lower and an upper
    one for p(o | s, x), and with reward bins four more for the deficits of ceilings and floors. So
    ceilings and floors of the same counts share their limits.

    Counts by step are binomial given the number of visits, so their limits are exact if the number
    of episodes was fixed beforehand. With steps pooled, the number of visits depends on what
    happened before, so limits are time-uniform; they hold for logs of any length. Reward bins are
    taken as chosen beforehand: edges found in the same logs make the limits approximate.
    """
    if settings.confidence is None:
        return PlugIn()
    states, actions = counts.space.is_admissible.shape
    bins = counts.space.reward_bins
    if bins is None:
        rewards, limits_an_outcome = max(MAX_REWARDS, len(np.unique(counts.reward_min))), 3
    else:
        rewards, limits_an_outcome = len(bins.edges) + 1, 7
    outcomes = (2 * states + 1) * rewards  # a next state, ended or not, or an end without one
    cells = len(counts.sources) * states * actions
    if counts.step_indexed:
        cells *= settings.horizon
    return limits_for(counts, settings.limits_error / (cells * (1 + outcomes * limits_an_outcome)))


def limits_for(counts: Counts, alpha: float) -> Limits:
    """Return limits that are each wrong with probability `alpha` at most."""
    if counts.step_indexed:
        return FixedTrials(alpha)
    return AnyTrials(alpha)
