"""What is believed of do(x), from logs: a posterior over worlds that agree with what the logs prove."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from causal_shaping.beliefs.model import Model
from causal_shaping.bounds.settings import Confounding, Settings, merge_counts
from causal_shaping.bounds.support import Support
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import Result
from causal_shaping.data.space import Space


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """What is believed of do(x), from logs.

    Attributes:
        counts: what the logs show.
        settings: how it is read, checked.
    """

    counts: Counts
    settings: Settings

    @property
    def space(self) -> Space:
        """The states and actions."""
        return self.counts.space

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken to be true, in words."""
        return ("No other actions exist.",)

    @cached_property
    def model(self) -> Model:
        """The arrays of the sampler."""
        return Model(self.space, self.counts, self.settings)

    @property
    def checksum(self) -> str:
        """A SHA-256 of the counts and the settings."""
        return self.counts.checksum

    def __repr__(self) -> str:
        return f"Posterior({self.settings.horizon} steps from {', '.join(self.counts.sources)})"


def posterior(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_max: float,
    *,
    support: Support = "observed",
    confounding: Confounding = math.inf,
    confidence: float | None = None,
    discount: float = 1.0,
    rarest: float | None = None,
) -> Posterior:
    """Return what is believed of do(x), from counts."""
    merged = merge_counts(counts)
    options: dict[str, Any] = {"support": support, "confounding": confounding, "confidence": confidence}
    settings = Settings(horizon=horizon, reward_bound=reward_max, discount=discount, rarest=rarest, **options)
    return Posterior(merged, settings.checked(merged))
