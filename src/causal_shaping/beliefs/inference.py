"""What is believed of do(x), from logs: a posterior over worlds that agree with what the logs prove.

- `posterior`: from counts to a `Posterior`.
- `Posterior`: worlds, values, actions, trust and a potential.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_finite, check_integer
from causal_shaping._progress import Progress, no_progress
from causal_shaping.beliefs import words
from causal_shaping.beliefs._evidence import Evidence
from causal_shaping.beliefs.draws import each_draw, table_of
from causal_shaping.beliefs.model import Model
from causal_shaping.beliefs.trust import Trust, trust_of
from causal_shaping.bounds.settings import SUPPORTS, Confounding, Settings, Support, merge_counts, refuse_reward
from causal_shaping.data.arrays import FloatArray, checksum_of, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.potential import Potential
from causal_shaping.data.result import Contents, DataFrame, Result, Saved, frame_by_state
from causal_shaping.data.space import MakeColumn, Space, plain_column
from causal_shaping.errors import ArgumentError
from causal_shaping.models.cmdp import TabularCMDP, Values

if TYPE_CHECKING:
    from causal_shaping.learners.worth import Worth


DRAWS = 200
"""How many worlds are drawn for means and quantiles, unless told otherwise."""

MOST_BYTES = 2**31
"""Values of all draws that would take more memory than this are not kept."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Saved, Result):
    """What is believed of do(x), from logs: a distribution over worlds that agree with what the logs prove.

    Nothing here is guaranteed: see `assumptions`, and the page "What logs suggest". Means, quantiles and probabilities
    are computed from `draws` worlds, the same ones each time.

    Attributes:
        counts: what the logs show.
        settings: how it is read, checked.
        draws: how many worlds means and quantiles are computed from.
    """

    KIND = "posterior"

    counts: Counts
    settings: Settings
    draws: int = DRAWS

    @property
    def space(self) -> Space:
        """The states and actions."""
        return self.counts.space

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken to be true, and what is only believed, in plain words."""
        return tuple(words.assumptions(self.counts, self.settings, self.model))

    @cached_property
    def caveats(self) -> tuple[str, ...]:
        """What in the logs speaks against the assumptions, in sentences."""
        return Evidence(self.counts, self.settings).caveats()

    @cached_property
    def model(self) -> Model:
        """The arrays of the sampler."""
        return Model(self.space, self.counts, self.settings)

    @cached_property
    def trust(self) -> Trust:
        """How far each source is trusted before the first online step, and where."""
        return trust_of(self.model, self.model.memory(0))

    def sample(self, n: int, seed: int = 0, *, start: npt.ArrayLike | None = None) -> list[TabularCMDP]:
        """Return worlds drawn from what is believed, as tables.

        Each agrees with the proven masses of its own draw. Its noise is one number for all actions of a state: only
        what an action does is believed something of, not what would have happened under another. An outcome that
        nobody has seen pays any of the rewards that were seen, or `reward_max`, and leads to any state that was met, or
        to an end, if one was seen. Where episodes end and the
        counts know no terminal state, the worlds have one more, called "end". Steps are told apart only if the counts
        do.

        Args:
            n: how many.
            seed: equal seeds give equal worlds.
            start: probabilities [states] of the first state, which counts do not hold. By default those of step 0 for
                counts by step, and otherwise the same for all states in which a source acted.
        """
        check_integer("n", n, least=0)
        check_integer("seed", seed)
        begin = self._start() if start is None else np.asarray(start, dtype=np.float64)
        if begin.shape != (len(self.space.states),):
            raise ArgumentError(f"start has shape {begin.shape}; it must hold {len(self.space.states)} probabilities.")
        return [table_of(self.model, one, begin) for one in each_draw(self.model, n, seed)]

    def _start(self) -> FloatArray:
        """Return where episodes start, as far as counts tell."""
        counts, states = self.counts, len(self.space.states)
        if counts.step is not None:
            here = counts.step == 0
            visits = np.bincount(counts.state[here], counts.n[here], minlength=states).astype(np.float64)
        else:
            visits = (np.bincount(counts.state, minlength=states) > 0).astype(np.float64)
        visits[self.model.terminal] = 0.0
        return np.asarray(visits / visits.sum())

    def draw(self, progress: Progress = no_progress) -> Self:
        """Draw the worlds now, with progress; otherwise they are drawn when they are first needed."""
        vars(self)["_moments"] = self._computed(progress)
        return self

    @cached_property
    def _moments(self) -> tuple[Values, FloatArray]:
        return self._computed(no_progress)

    def _computed(self, progress: Progress) -> tuple[Values, FloatArray]:
        """Return the means of V* and Q*, and how often each action was best."""
        shape = (self.settings.horizon, len(self.space.states), len(self.space.actions))
        q_values, values, best = np.zeros(shape), np.zeros(shape[:-1]), np.zeros(shape)
        for done, sample in enumerate(each_draw(self.model, self.draws, 0), 1):
            found = sample.q_values
            most = found.max(axis=-1)
            best += found == most[..., None]
            q_values += found
            values += most
            progress(done, self.draws, "Drawing worlds")
        outside = ~self.space.is_admissible
        q_values[:, outside], best[:, outside] = np.nan, np.nan
        n = self.draws
        return _frozen_values(values / n, q_values / n), frozen(best / n, np.float64)

    @cached_property
    def _drawn(self) -> tuple[FloatArray, FloatArray]:
        """V* and Q* of each draw: float64 [draws, steps, states], and with actions."""
        shape = (self.draws, self.settings.horizon, len(self.space.states), len(self.space.actions))
        size = 8 * math.prod(shape)
        if size > MOST_BYTES:
            raise ArgumentError(
                f"The values of {self.draws} draws take {size / 1e9:.0f} GB. Ask for fewer: posterior(..., "
                f"draws={max(1, self.draws * MOST_BYTES // size)})."
            )
        q_values = np.empty(shape)
        for i, sample in enumerate(each_draw(self.model, self.draws, 0)):
            q_values[i] = sample.q_values
        values = q_values.max(axis=-1)
        q_values[:, :, ~self.space.is_admissible] = np.nan
        return values, q_values

    @property
    def mean(self) -> Values:
        """The means of V* and Q*: `.values` [steps, states], `.q_values` [steps, states, actions]."""
        return self._moments[0]

    @property
    def probability_optimal(self) -> FloatArray:
        """The probability that no action is better: float64 [steps, states, actions], NaN if not admissible.

        Actions that are equally good count each: a row may add to more than 1.
        """
        return self._moments[1]

    def quantile(self, q: float) -> Values:
        """Return a quantile of V* and of Q*, each on its own: `quantile(0.9)` is exceeded in a tenth of the draws."""
        if not 0 <= q <= 1:
            raise ArgumentError(f"q is {q}; a quantile needs a number from 0 to 1.")
        values, q_values = (np.quantile(drawn, q, axis=0) for drawn in self._drawn)
        return _frozen_values(values, q_values)

    def potential(self, kind: str | float = "mean", *, step_indexed: bool = True) -> Potential:
        """Return a best guess of V* as a potential for reward shaping: no bound, and nothing monitors it.

        Args:
            kind: "mean", or a quantile between 0 and 1.
            step_indexed: one per step; otherwise that of the first step.
        """
        if isinstance(kind, str):
            check_choice("kind", kind, ("mean",), " or a quantile between 0 and 1")
            what, values = "mean", self.mean.values
        else:
            what, values = f"quantile {kind:g}", self.quantile(kind).values
        return Potential(
            values if step_indexed else values[0],
            self.space,
            discount=self.settings.discount,
            origin=f"posterior {what} of {', '.join(self.counts.sources)}",
            kind="guess",
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """The settings and the number of draws, as plain values for JSON."""
        settings = self.settings
        assert isinstance(settings.confounding, Mapping)
        names = ("horizon", "reward_bound", "support", "confidence", "discount", "rarest")
        gammas = {name: "inf" if math.isinf(gamma) else gamma for name, gamma in settings.confounding.items()}
        return {name: getattr(settings, name) for name in names} | {"confounding": gammas, "draws": self.draws}

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the counts, the settings and the number of draws."""
        return checksum_of(json.dumps([self.counts.checksum, self.metadata], sort_keys=True), [])

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return the entries of the counts by column: from them and the settings `load` makes the posterior anew."""
        return self.counts.labelled(make)

    @property
    def header(self) -> dict[str, Any]:
        """What a file holds beside the counts."""
        return {**self.counts.header, **self.metadata, "assumptions": self.assumptions}

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """Return the posterior that a file holds."""
        held = contents.metadata
        names = ("horizon", "reward_bound", "support", "confidence", "discount", "rarest")
        gammas = {name: float(gamma) for name, gamma in held["confounding"].items()}
        settings = Settings(**{name: held[name] for name in names}, confounding=gammas)
        return cls(Counts.from_contents(contents), settings, held["draws"])

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

    def summary(self) -> str:
        """Return what is believed, whom it trusts and what it assumes, in words."""
        return words.summary(self)

    def to_pandas(self) -> DataFrame:
        """Return a row per step and state: mean and quantiles of V*, the action that is most likely best, and how."""
        probability = np.nan_to_num(self.probability_optimal, nan=-1.0)
        names = np.array([str(action) for action in self.space.actions], dtype=object)
        columns: dict[str, Any] = {"mean": self.mean.values}
        columns |= {f"quantile_{q:02.0f}": self.quantile(q / 100).values for q in (5, 50, 95)}
        columns |= {"best_action": names[probability.argmax(axis=-1)], "probability": probability.max(axis=-1)}
        return frame_by_state(self.space, columns)


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
    draws: int = DRAWS,
) -> Posterior:
    """Return what is believed of do(x), from counts: a distribution over worlds that agree with what they prove.

    In state s, action x leads to outcome o (next state, end, reward) with a probability of

        p(o | s, do x) = L(o) + F q(o),     L = max_i L_i (proven, as for ceilings),     F = 1 - sum of L (free),

    where free mass is guessed: q is one of the shares that the sources show, if they are trusted, or a flat guess over
    the outcomes that the support allows. Whom to trust, and where, is a belief, too, which online steps and trials
    change. The page "What logs suggest" derives it. A ceiling promises; this guesses, inside what ceilings prove.

    Args:
        counts: of one or several sources, or several counts to be merged.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay; an error if a source saw more.
        support: "observed", "observed-action" or "any", see `value_ceilings`. Where anything may follow, one unknown
            outcome is possible, too.
        confounding: Gamma from 1 (a randomised trial, or the agent's own data) to inf, for all sources or by name.
        confidence: take lower limits of proven masses that all hold at once with this probability as proven; None
            draws masses from what is believed of them.
        discount: the factor on future reward.
        rarest: see `value_ceilings`.
        draws: how many worlds means and quantiles are computed from.

    Raises:
        ContradictionError: if the sources prove more mass than 1 beyond chance.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> belief = posterior(counts, horizon=20, reward_max=-0.1)
        >>> belief
        Posterior(20 steps from good, bad, random)
        >>> belief.mean.values.shape
        (20, 49)
    """
    merged = merge_counts(counts)
    if not isinstance(support, str):
        raise ArgumentError("A posterior takes support by name: 'any', 'observed' or 'observed-action'.")
    check_choice("support", support, SUPPORTS)
    check_integer("draws", draws, least=1)
    check_finite("reward_max", reward_max)
    options: dict[str, Any] = {"support": support, "confounding": confounding, "confidence": confidence}
    stated = Settings(horizon=horizon, reward_bound=reward_max, discount=discount, rarest=rarest, **options)
    settings = stated.checked(merged)
    most = int(merged.reward_max.argmax())
    refuse_reward("reward_max", settings.reward_bound, merged.sources[merged.source[most]], merged.reward_max[most])
    made = Posterior(merged, settings, int(draws))
    vars(made)["caveats"] = Evidence(merged, settings).caveats()
    return made


def _frozen_values(values: FloatArray, q_values: FloatArray) -> Values:
    return Values(frozen(values, np.float64), frozen(q_values, np.float64))
