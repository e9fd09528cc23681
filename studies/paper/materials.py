"""The logs of one world and one seed, and their counts, bounds and potentials; each is computed once, when needed."""

from __future__ import annotations

import warnings
from functools import cache, cached_property
from typing import Any

import numpy as np

from causal_shaping.beliefs import Posterior, posterior
from causal_shaping.bounds import Ceilings, value_ceilings, value_floors
from causal_shaping.bounds.results import Bounds
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.errors import AssumptionWarning
from causal_shaping.logs import count
from causal_shaping.models.cmdp import Values
from causal_shaping.worlds import World
from studies.paper.baselines import behaviour_potential
from studies.paper.baselines.bcq import BCQ, train_bcq
from studies.paper.plan import BCQ_THRESHOLDS, BELIEFS, BLIND, CONFIDENCE, PAPER_BOUND, RAREST, VALUE_MAX

TRIAL, ADDED_TRIAL = "random", "trial"
"""The randomised source: the demonstrator that acts at random where a world has one, else a trial that is added."""


class Materials:
    """The logs of a world's demonstrators under one seed, and what is computed from them.

    Args:
        world: the world.
        log_steps: the number of logged steps of each demonstrator.
        seed: the seed of the logs and of BCQ.
        bcq_steps: the number of training steps of BCQ; None for its own default.
    """

    def __init__(self, world: World, log_steps: int, seed: int, bcq_steps: int | None = None) -> None:
        self.world, self.log_steps, self.seed, self.bcq_steps = world, log_steps, seed, bcq_steps
        self.potential, self.belief, self.bcq = cache(self._potential), cache(self._belief), cache(self._bcq)

    @cached_property
    def logs(self) -> list[Logs]:
        """The logs, one source per demonstrator."""
        return [self.world.collect(name, self.log_steps, self.seed) for name in self.world.demonstrators]

    @cached_property
    def counts_by_source(self) -> dict[str, Counts]:
        """The counts of each source."""
        return {one.source: count([one]) for one in self.logs}

    @cached_property
    def counts(self) -> Counts:
        """The counts of all sources."""
        first, *others = self.counts_by_source.values()
        return sum(others, first)

    @cached_property
    def best(self) -> Values:
        """The optimum over an infinite horizon."""
        return self.world.model.optimum()

    def _bcq(self, name: str) -> BCQ:
        """Return BCQ with one of its thresholds, trained on the logs of all sources."""
        steps = {} if self.bcq_steps is None else {"steps": self.bcq_steps}
        return train_bcq(self.logs, seed=self.seed, threshold=BCQ_THRESHOLDS[name], **steps)

    def bound(self, name: str) -> Bounds:
        """Return ceilings, or the floors, by name."""
        horizon, (reward_min, reward_max) = self.world.horizon, self.world.model.reward_range
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):  # kept with the results instead
            if name == "floor":
                return value_floors(self.counts, horizon, reward_min)
            if name == "paper":
                return value_ceilings(self.counts, horizon, PAPER_BOUND, method="paper")
            if name == "joint-trial":
                trial = TRIAL if TRIAL in self.world.demonstrators else ADDED_TRIAL
                return value_ceilings(self._with_trial, horizon, reward_max, confounding={trial: 1.0})
            options: dict[str, dict[str, Any]] = {
                "joint": {},
                "joint-any": {"support": "any"},
                "joint-sure": {"confidence": CONFIDENCE, "rarest": RAREST},
                "joint-capped": {"stationary": True, "value_max": VALUE_MAX},
            }
            return value_ceilings(self.counts, horizon, reward_max, **options[name])

    def _belief(self, name: str) -> Posterior:
        """Return what is believed from all sources, or from all but the one that does not look at the wind."""
        assert name in BELIEFS
        left_out = None if name == "posterior" else BLIND[self.world.name]
        counts = [one for source, one in self.counts_by_source.items() if source != left_out]
        return posterior(counts, self.world.horizon, self.world.model.reward_range[1])

    @cached_property
    def _with_trial(self) -> Counts:
        """The counts with a randomised source: the world's own, or an added one of as many steps."""
        if TRIAL in self.world.demonstrators:
            return self.counts
        shape = (*self.world.model.noise.shape, len(self.world.actions))
        trial = self.world.collect(np.full(shape, 1 / shape[-1]), self.log_steps, self.seed, ADDED_TRIAL)
        return self.counts + count([trial])

    def _potential(self, name: str) -> Potential | Bounds:
        """Return what shapes rewards, by name; bounds are not reduced to potentials, since they hold Q-values."""
        if name == "zero":
            return Potential.zero(self.world)
        if name == "optimum":
            return Potential(self.best.values, self.world.space, origin="the optimum")
        if name in ("min", "max", "avg"):
            return behaviour_potential(self.logs, combine=name)
        if name in BCQ_THRESHOLDS:
            return self.bcq(name).potential()
        if name == "guess":
            return self.belief("posterior").potential(step_indexed=False)
        found = self.bound(name)
        if name == "paper":  # as a potential: its Q-values skip actions that were never tried
            assert isinstance(found, Ceilings)
            with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
                return found.potential(step_indexed=False)
        return found
