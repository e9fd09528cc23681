"""What the posterior reads of the proven masses: those of one step, by cell and outcome."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from causal_shaping.bounds.agreement import check_agreement
from causal_shaping.bounds.masses import mass_intervals, simultaneous_limits
from causal_shaping.bounds.outcomes import find_outcomes, with_equal_outcomes
from causal_shaping.bounds.settings import CEILING, Settings
from causal_shaping.data.counts import Counts


class Evidence:
    """Counts in which equal outcomes look equal, and the masses that they prove."""

    def __init__(self, counts: Counts, settings: Settings) -> None:
        self.original, self.settings = counts, settings
        self.counts = with_equal_outcomes(counts)
        self.outcomes = find_outcomes(self.counts, CEILING, settings.reward_bound)
        self.rewards = self.keys = self.outcomes.rewards
        if counts.space.reward_bins is not None:
            self.keys = np.arange(len(self.rewards), dtype=np.float64)
        self.gammas = [settings.gamma(name) for name in counts.sources]
        limits = simultaneous_limits(counts, settings)
        self._masses = mass_intervals(self.outcomes, self.gammas, limits)

    def caveats(self) -> tuple[str, ...]:
        """Refuse sources that contradict each other beyond chance; return what is doubtful."""
        return check_agreement(self.counts, self.settings, self.outcomes, self._masses).caveats

    def masses(self, step: int | None = None) -> SimpleNamespace:
        """Return the masses of a step, of all steps for counts that pool them.

        `upper` and `rest` are empty where no source has a finite Gamma.
        """
        outcomes, masses = self.outcomes, self._masses
        states, actions = self.counts.space.is_admissible.shape
        size, step = states * actions, step or 0
        begin, end = np.searchsorted(outcomes.cell, [step * size, (step + 1) * size])
        first = outcomes.first[begin : end + 1]
        rows, cells = slice(first[0], first[-1]), slice(begin, end)
        pair = outcomes.cell[cells] - step * size
        unscaled = masses.lower * np.maximum(masses.proven, 1.0)[outcomes.cell_of]
        upper, rest = masses.upper[rows], masses.unseen[cells]
        if np.isinf(self.gammas).all():
            upper, rest = upper[:0], rest[:0]
        return SimpleNamespace(
            state=pair // actions,
            action=pair % actions,
            first=first - first[0],
            after=outcomes.after[rows],
            reward=outcomes.level[rows],
            lower=unscaled[rows],
            upper=upper,
            rest=rest,
            total=masses.proven[cells],
        )
