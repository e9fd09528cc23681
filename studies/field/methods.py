"""What is compared: the logs of a case with what is made of them, and how each method runs on them.

- `Materials`: the logs of a case; each thing is computed once, when it is needed.
- `METHODS`: the rows of the tables. A method takes materials, a budget and a seed, and returns the regret of each step,
  V*_h(s) - Q*_h(s, x) with h counted to the horizon, for all methods alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from causal_shaping.beliefs import Posterior, posterior
from causal_shaping.bounds import Ceilings, Floors, value_ceilings, value_floors
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.learners import train
from causal_shaping.learners._posterior import enough_steps
from causal_shaping.learners.rules import POSTERIOR
from causal_shaping.logs import count
from causal_shaping.worlds import World
from studies.field.demonstrators import gamma_of
from studies.field.plan import LOG_SEED, TRIAL, Case
from studies.field.rivals import SETTINGS, Pooled, pooled, run_psrl, run_q, run_ucbvi, vacuous
from studies.paper.baselines import behaviour_potential


class Materials:
    """The logs of a case, and what is computed from them."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def world(self) -> World:
        """The world."""
        return self.case.world()

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
        admissible: Any = self.world.space.is_admissible if self.world.space.admissible else None
        return count(self.logs, states=self.world.states, actions=self.world.actions, admissible=admissible)

    @cached_property
    def pooled(self) -> Pooled:
        """The counts of all sources, taken as one."""
        return pooled(self.world, self.counts)

    @property
    def gammas(self) -> dict[str, float]:
        """The confounding that is declared for each source."""
        return {name: 1.0 if name == TRIAL else self.case.gamma for name in self.world.demonstrators}

    @cached_property
    def true_gammas(self) -> dict[str, float]:
        """The confounding of each source, computed from its table; a trial's is 1."""
        found = {name: gamma_of(self.world.model, beta) for name, beta in self.world.demonstrators.items()}
        return {name: 1.0 if gamma < 1 + 1e-9 else math.nextafter(gamma, math.inf) for name, gamma in found.items()}

    @property
    def reward_max(self) -> float:
        """The most that a step can pay."""
        return self.world.model.reward_range[1]

    @property
    def by_step(self) -> bool:
        """Whether only time ends episodes: one table would look beyond the limit, where it is paid for ever."""
        return not self.world.model.terminal.any()

    @cached_property
    def belief(self) -> Posterior:
        """What is believed from the logs."""
        return posterior(self.counts, self.world.horizon, self.reward_max, confounding=self.gammas, draws=50)

    def ceilings(self, **options: Any) -> Ceilings:
        """Return ceilings, by default of the declared confounding."""
        given = {"confounding": self.gammas} | options
        return value_ceilings(self.counts, self.world.horizon, self.reward_max, **given)

    def floors(self, **options: Any) -> Floors:
        """Return floors, by default of the declared confounding."""
        given = {"confounding": self.gammas} | options
        return value_floors(self.counts, self.world.horizon, self.world.model.reward_range[0], **given)


def _sampling(on: Materials, belief: Any, steps: int, seed: int, samples: bool | None = None) -> FloatArray:
    options: Any = {"learner": POSTERIOR, "steps": steps, "seed": seed, "step_indexed": True, "samples": samples}
    return np.diff(train(on.world, belief, **options).step_regret, prepend=0.0)


def _no_logs(on: Materials, steps: int, seed: int) -> FloatArray:
    """Plan as the learner with logs does: in the worlds of this study, that is the better way without logs, too."""
    samples = enough_steps(steps, on.world.space.is_admissible, on.world.space.is_terminal)
    return _sampling(on, None, steps, seed, samples=samples)


def _shaped(on: Materials, potential: Any, steps: int, seed: int, **changes: Any) -> FloatArray:
    """Return the regret of Q-learning under a potential, in one table, which learns faster, or in one per step."""
    options: Any = {"learner": "q-ucb-shaping", "steps": steps, "seed": seed, "step_indexed": on.by_step}
    logs = train(on.world, potential, record=True, **options, **changes).logs
    assert logs is not None
    gaps = on.world.model.gaps(on.world.horizon)
    return np.asarray(gaps[logs.step, logs.state, logs.action])


def _zero(on: Materials, steps: int, seed: int) -> FloatArray:
    """A zero potential promises nothing, so that optimism is in the initial values."""
    initial = float(vacuous(on.world)[0][0])
    return _shaped(on, Potential.zero(on.world), steps, seed, initial=initial, bonus=0.0, clip="none")


def _paper(on: Materials, steps: int, seed: int) -> FloatArray:
    potential = on.ceilings(method="paper", confounding=np.inf).potential(step_indexed=on.by_step)
    return _shaped(on, potential, steps, seed, **SETTINGS["paper"])


def _behaviour(on: Materials, steps: int, seed: int) -> FloatArray:
    options = dict(SETTINGS["behaviour"])
    return _shaped(on, behaviour_potential(on.logs, combine=options.pop("combine")), steps, seed, **options)


def _guess(on: Materials, steps: int, seed: int) -> FloatArray:
    potential = on.belief.potential(step_indexed=on.by_step)
    return _shaped(on, potential, steps, seed, bonus=0.0, clip="none")


@dataclass(frozen=True)
class Method:
    """A method: a row of a table.

    Attributes:
        title: its title in tables.
        run: from materials, a budget and a seed to the regret of each step.
        ours: whether it is ours, or a rival.
        uses_logs: whether it uses logs.
    """

    title: str
    run: Callable[[Materials, int, int], FloatArray]
    ours: bool = False
    uses_logs: bool = True


METHODS: Mapping[str, Method] = {
    "no-logs": Method("Posterior sampling, no logs", _no_logs, ours=True, uses_logs=False),
    "psrl": Method(
        "PSRL, no logs", lambda on, steps, seed: run_psrl(on.world, steps, seed, **SETTINGS["psrl"]), uses_logs=False
    ),
    "ucbvi": Method(
        "UCBVI, no logs", lambda on, steps, seed: run_ucbvi(on.world, steps, seed, **SETTINGS["ucbvi"]), uses_logs=False
    ),
    "zero": Method("Optimistic Q-learning, zero potential", _zero, uses_logs=False),
    "paper": Method("The paper's method", _paper),
    "behaviour": Method("Behaviour values as potential", _behaviour),
    "naive-model": Method(
        "Logs believed: PSRL from their counts",
        lambda on, steps, seed: run_psrl(on.world, steps, seed, on.counts, **SETTINGS["naive-model"]),
    ),
    "naive-q": Method(
        "Logs believed: fitted Q, then Q-learning",
        lambda on, steps, seed: run_q(on.world, steps, seed, on.logs, on.pooled, **SETTINGS["naive-q"]),
    ),
    "replay": Method(
        "Logs believed: fitted Q, then replayed half and half",
        lambda on, steps, seed: run_q(on.world, steps, seed, on.logs, on.pooled, **SETTINGS["replay"]),
    ),
    "envelopes": Method(
        "Value envelopes in UCBVI",
        lambda on, steps, seed: run_ucbvi(on.world, steps, seed, on.pooled, **SETTINGS["envelopes"]),
    ),
    "ceilings": Method(
        "Ceilings as potential",
        lambda on, steps, seed: _shaped(on, on.ceilings(), steps, seed, bonus=0.0, clip="zero"),
        ours=True,
    ),
    "guess": Method("Best guess as potential", _guess, ours=True),
    "posterior": Method(
        "Posterior sampling with logs", lambda on, steps, seed: _sampling(on, on.belief, steps, seed), ours=True
    ),
}
"""The methods, by their names in files."""

BASELINE, RECOMMENDED = "no-logs", "posterior"
"""What all others are compared with: the same learner with logs and without."""
