"""The logs of one case, and what is made of them; each is computed once, when needed."""

from __future__ import annotations

import math
import warnings
from functools import cached_property
from typing import Any

import numpy as np

from causal_shaping.beliefs import Posterior, posterior
from causal_shaping.bounds import Ceilings, Floors, value_ceilings, value_floors
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.errors import AssumptionWarning
from causal_shaping.logs import count
from causal_shaping.worlds import World
from studies.field.plan import LOG_SEED, TRIAL, Case
from studies.field.rivals import Pooled, pooled

CONFIDENCE = 0.95


class Materials:
    """The logs of a case, and what is computed from them.

    Args:
        case: the case.
    """

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def world(self) -> World:
        """The world."""
        return self.case.world()

    @cached_property
    def gaps(self) -> FloatArray:
        """What each action costs: float64 [horizon, states, actions], NaN where it does not exist."""
        return self.world.model.gaps(self.world.horizon)

    @cached_property
    def logs(self) -> list[Logs]:
        """The logs, one source per demonstrator."""
        return [
            self.world.collect(name, self.case.trial if name == TRIAL else self.case.rows, LOG_SEED + self.case.number)
            for name in self.world.demonstrators
        ]

    @cached_property
    def counts(self) -> Counts:
        """The counts of all sources; states and actions are declared."""
        return count(self.logs, states=self.world.states, actions=self.world.actions, admissible=self._admissible)

    @property
    def _admissible(self) -> Any:
        return self.world.space.is_admissible if self.world.space.admissible else None

    @cached_property
    def pooled(self) -> Pooled:
        """The counts of all sources, taken as one."""
        return pooled(self.world, self.counts)

    @property
    def gammas(self) -> dict[str, float]:
        """The confounding that is declared for each source."""
        return {name: 1.0 if name == TRIAL else self.case.gamma for name in self.world.demonstrators}

    @property
    def reward_max(self) -> float:
        """The most that a step can pay."""
        return self.world.model.reward_range[1]

    @cached_property
    def belief(self) -> Posterior:
        """What is believed from the logs."""
        return posterior(self.counts, self.world.horizon, self.reward_max, confounding=self.gammas, draws=50)

    def ceilings(self, **options: Any) -> Ceilings:
        """Return ceilings, by default of the declared confounding."""
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):  # facts are kept instead
            given = {"confounding": self.gammas} | options
            return value_ceilings(self.counts, self.world.horizon, self.reward_max, **given)

    def floors(self, **options: Any) -> Floors:
        """Return floors, by default of the declared confounding."""
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
            given = {"confounding": self.gammas} | options
            return value_floors(self.counts, self.world.horizon, self.world.model.reward_range[0], **given)

    @cached_property
    def at_random(self) -> float:
        """What acting at random costs a step, on average."""
        model, exists = self.world.model, self.world.space.is_admissible
        policy = exists / exists.sum(axis=1, keepdims=True)
        visits = model.occupancy(np.tile(policy, (self.world.horizon, 1, 1)), self.world.horizon)
        return float((visits * np.nan_to_num(self.gaps)).sum() / visits.sum())

    @cached_property
    def true_gammas(self) -> dict[str, float]:
        """The confounding of each source, computed from its table; a trial's is 1."""
        from studies.field.demonstrators import gamma_of

        found = {name: gamma_of(self.world.model, beta) for name, beta in self.world.demonstrators.items()}
        return {name: 1.0 if gamma < 1 + 1e-9 else math.nextafter(gamma, math.inf) for name, gamma in found.items()}
