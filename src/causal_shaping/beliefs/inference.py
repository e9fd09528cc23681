"""What is believed of do(x), from logs: a posterior over worlds that agree with what the logs prove."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from causal_shaping._progress import Progress, no_progress
from causal_shaping.beliefs.model import Model
from causal_shaping.bounds.settings import Confounding, Settings, merge_counts
from causal_shaping.bounds.support import Support
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import Result
from causal_shaping.data.space import Space

if TYPE_CHECKING:
    from causal_shaping.learners.worth import Worth


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

    def worth(
        self,
        *,
        steps: int = 20_000,
        seeds: int | Iterable[int] = 40,
        start: Any = None,
        trial: int = 0,
        folder: str | os.PathLike[str] | None = None,
        progress: Progress = no_progress,
    ) -> Worth:
        """Return what the logs are expected to save the learner "posterior": regret and episodes, by simulation.

        Worlds are drawn that agree with what the logs prove, from a wider prior than this one, worlds among them in
        which the logs are set against the truth; in each of them the learner runs with the logs and without.

        Args:
            steps: the budget of environment steps.
            seeds: how many worlds to draw, or the seeds to draw them by.
            start: the state in which episodes start, or a mapping of states to weights; by default as far as the logs
                tell.
            trial: ask also what a randomised source would add that has so many rows of each action in each state.
            folder: a folder to keep each world's results in; interrupted runs resume.
            progress: called with the number of worlds that are done, that of all, and what is done.
        """
        from causal_shaping.learners.worth import simulate_worth  # the stage to the right: a method people look for

        return simulate_worth(
            self, steps=steps, seeds=seeds, start=start, trial=trial, folder=folder, progress=progress
        )

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
