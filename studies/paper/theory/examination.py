"""The theory of one world: what the theorems promise for its potentials, what runs do, and which assumptions hold.

- `examine`: compute it; `Examination`: the result.
- `usual_potentials`: zero, the paper's bound, the joint ceiling and V* itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._checks import MOST_SEEDS, check_integer
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds import value_ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, AssumptionWarning
from causal_shaping.learners.intervals import Interval, mean_interval
from causal_shaping.learners.rules import Rule, resolve
from causal_shaping.worlds import World
from studies.paper.theory.contraction import CausalBellman, Contraction, contraction
from studies.paper.theory.events import INEQUALITIES, MOST_EPISODES, PRINTED, Watched, proven_rule, watch
from studies.paper.theory.regret import (
    RegretBound,
    printed_regret_bound,
    q_ucb,
    regret_bound,
    useful_from,
    visit_bound,
)
from studies.paper.theory.shaped import Optimism, Shaped

SMALLER = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
"""The values of c tried with the corrected learner; 1 is proven."""

PRINTED_SMALLER = (4.0, 0.1, 0.01, 0.003, 0.001, 0.0)
"""The values of c tried with the printed learner; 4 as in the paper's experiments."""

POTENTIALS = ("zero", "paper", "joint", "V*")


class Sweep(NamedTuple):
    """Runs with one size of the bonus.

    Attributes:
        c: the factor of the bonus.
        held: the share of runs in which each inequality held.
        regret: the mean regret over runs, in units of the world's reward.
    """

    c: float
    held: Mapping[str, float]
    regret: float


@dataclass(frozen=True, eq=False)
class ExaminedPotential:
    """The theory of one potential. Regret and bounds are in units of the world's reward.

    Attributes:
        name: the name of the potential.
        optimism: whether it is conservatively optimistic.
        pairs: the number of (s, x) with a positive gap, and so with a Delta.
        in_sub_delta: how many of them are in Sub_Delta as printed, for rewards from 0 to 1.
        suboptimal: the number of (h, s, x) with a positive gap.
        settled: how many of them the potential settles; None if it is not a ceiling.
        visits_over_bound: the largest number of visits to a settled (h, s, x) in any run, as a share of its bound; None
            if nothing is settled.
        printed_visits_over_bound: the same for pairs in Sub_Delta at one step and the printed bound.
        printed_bound: the printed bound on the regret, interpreted charitably; None if the potential is not a ceiling.
        printed_useful_from: the number of episodes from which on that is not vacuous; None without a bound.
        printed_regret: the regret of the printed learner, for rewards from 0 to 1, over seeds.
        bound: the corrected bound; None if the potential is not a ceiling.
        useful_from: the number of episodes from which on that is not vacuous; None without a bound.
        regret: the regret of the corrected learner, over seeds.
        needed_c: the smallest c for which the concentration lemma, of y + V* and of y + phi, held in all of its runs.
        held: the share of its runs in which each inequality held.
    """

    name: str
    optimism: Optimism
    pairs: int
    in_sub_delta: int
    suboptimal: int
    settled: int | None
    visits_over_bound: float | None
    printed_visits_over_bound: float
    printed_bound: RegretBound | None
    printed_useful_from: float | None
    printed_regret: Interval
    bound: RegretBound | None
    useful_from: float | None
    regret: Interval
    needed_c: float
    held: Mapping[str, float]

    @property
    def tightness(self) -> float:
        """The corrected bound over the measured regret; NaN without a bound, inf without regret."""
        return _ratio(self.bound, self.regret[0])

    @property
    def printed_tightness(self) -> float:
        """The same for the printed bound and learner."""
        return _ratio(self.printed_bound, self.printed_regret[0])


def _ratio(bound: RegretBound | None, regret: float) -> float:
    if bound is None:
        return math.nan
    return bound.total / regret if regret > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Examination:
    """The theory of one world.

    Attributes:
        world: the name of the world.
        horizon: H.
        episodes: K, the number of episodes of the runs and in the bounds.
        seeds: the number of runs.
        reward_range: the smallest and the largest reward.
        value_range: the lowest and the highest V* over all steps; terminal states count as 0.
        smallest_gap: Delta_min.
        potentials: the results for each potential.
        q_ucb: the gap-dependent bound of Q-UCB, by the same theorem.
        q_ucb_useful_from: the number of episodes from which on that is not vacuous.
        swept: the potential whose bonus was made smaller.
        smaller: runs of the corrected learner with smaller bonuses.
        printed_smaller: runs of the printed learner with smaller bonuses.
        contractions: the contraction of the causal Bellman operator, by source.
    """

    world: str
    horizon: int
    episodes: int
    seeds: int
    reward_range: tuple[float, float]
    value_range: tuple[float, float]
    smallest_gap: float
    potentials: tuple[ExaminedPotential, ...]
    q_ucb: RegretBound
    q_ucb_useful_from: float
    swept: str
    smaller: tuple[Sweep, ...]
    printed_smaller: tuple[Sweep, ...]
    contractions: Mapping[str, Contraction]

    @property
    def setting(self) -> str:
        """The world and the runs, in one sentence."""
        (low, high), (lowest, highest) = self.reward_range, self.value_range
        return (
            f"{self.world}: {self.horizon} steps, rewards from {low:g} to {high:g}, V* from {lowest:.3g} to "
            f"{highest:.3g}, smallest gap {self.smallest_gap:.3g}; {self.episodes:,} episodes, {self.seeds} runs each."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the numbers of each potential as plain values, one row each."""
        return [
            {
                "world": self.world,
                "potential": one.name,
                "conservatively_optimistic": bool(one.optimism),
                "pairs": one.pairs,
                "in_sub_delta": one.in_sub_delta,
                "printed_visits_over_bound": one.printed_visits_over_bound,
                "printed_bound": None if one.printed_bound is None else one.printed_bound.total,
                "printed_useful_from": one.printed_useful_from,
                "printed_regret": one.printed_regret[0],
                "suboptimal": one.suboptimal,
                "settled": one.settled,
                "visits_over_bound": one.visits_over_bound,
                "bound": None if one.bound is None else one.bound.total,
                "useful_from": one.useful_from,
                "regret": one.regret[0],
                "regret_low": one.regret[1],
                "regret_high": one.regret[2],
                "q_ucb_bound": self.q_ucb.total,
                "q_ucb_useful_from": self.q_ucb_useful_from,
                "needed_c": one.needed_c,
                **{f"held_{name}": share for name, share in one.held.items()},
            }
            for one in self.potentials
        ]


def usual_potentials(world: World) -> dict[str, Potential | None]:
    """Return the four potentials that are compared, from population counts, that is, without sampling error.

    The paper's bound has the b behind its results: 0 in the grid worlds, 1 for the robot.
    """
    model, horizon = world.model, world.horizon
    counts = [model.observe(beta, name) for name, beta in world.demonstrators.items()]
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        b = 0.0 if world.grid is not None else model.reward_range[1]
        paper = value_ceilings(counts, horizon, b, method="paper").potential()
        joint = value_ceilings(counts, horizon, model.reward_range[1]).potential()
    best = Potential(model.optimum(horizon).values, model.space, origin="the optimum")
    return dict(zip(POTENTIALS, (None, paper, joint, best), strict=True))


def examine(
    world: World,
    potentials: Mapping[str, Any] | None = None,
    *,
    episodes: int = 1_000,
    seeds: int = 20,
    progress: Progress = no_progress,
) -> Examination:
    """Evaluate the theorems for a world, and run the learners that they are about.

    Args:
        world: the world; its model must be the same at every step.
        potentials: potentials by name; `usual_potentials` by default.
        episodes: K, the number of episodes of each run and in the bounds.
        seeds: the number of runs of each learner.
        progress: told how many groups of runs are done.
    """
    episodes = check_integer("episodes", episodes, least=1, most=MOST_EPISODES)
    seeds = check_integer("seeds", seeds, least=1, most=MOST_SEEDS)
    model, horizon = world.model, world.horizon
    given = usual_potentials(world) if potentials is None else potentials
    if not given:
        raise ArgumentError("There is no potential to examine.")
    problems = {name: Shaped(model, potential, horizon) for name, potential in given.items()}
    ceilings = [name for name, shaped in problems.items() if shaped.optimism().holds.all()]
    swept = "joint" if "joint" in ceilings else (ceilings or list(problems))[-1]
    first = next(iter(problems.values()))
    scaled, scale = first.nonnegative()
    vanilla, values = q_ucb(scaled), first.values
    examined: list[ExaminedPotential] = []
    smaller: list[Sweep] = []
    printed_smaller: list[Sweep] = []
    total = len(problems) + len(SMALLER) + len(PRINTED_SMALLER)

    def next_is(what: str) -> None:
        progress(len(examined) + len(smaller) + len(printed_smaller), total, what)

    for name, shaped in problems.items():
        next_is(f"potential {name}")
        examined.append(_examined(name, shaped, episodes, seeds))
    chosen, moved = problems[swept], problems[swept].nonnegative()[0]
    for c in SMALLER:
        next_is(f"corrected, c = {c:g}")
        smaller.append(_sweep(chosen, proven_rule(chosen, episodes, c=c), 1.0, episodes, seeds))
    for c in PRINTED_SMALLER:
        next_is(f"printed, c = {c:g}")
        printed_smaller.append(_sweep(moved, resolve(PRINTED, c=c), scale, episodes, seeds))
    next_is("contraction")
    return Examination(
        world=world.name,
        horizon=horizon,
        episodes=episodes,
        seeds=seeds,
        reward_range=model.reward_range,
        value_range=(float(values.min()), float(values.max())),
        smallest_gap=first.smallest_gap,
        potentials=tuple(examined),
        q_ucb=regret_bound(vanilla, episodes, scale=horizon).unscaled(scale),
        q_ucb_useful_from=useful_from(lambda k: regret_bound(vanilla, k, scale=horizon)),
        swept=swept,
        smaller=tuple(smaller),
        printed_smaller=tuple(printed_smaller),
        contractions={
            name: contraction(CausalBellman(model.observe(beta, name), model.reward_range[1]))
            for name, beta in world.demonstrators.items()
        },
    )


def _examined(name: str, shaped: Shaped, episodes: int, seeds: int) -> ExaminedPotential:
    moved, scale = shaped.nonnegative()
    runs = _runs(shaped, proven_rule(shaped, episodes), episodes, seeds)
    printed = _runs(moved, PRINTED, episodes, seeds)
    inside, printed_scale = moved.pseudo_suboptimal(), PRINTED.c * float(moved.potential.max())
    printed_limit = visit_bound(
        printed_scale, shaped.horizon, moved.iota(episodes, PRINTED.p), moved.pair_gaps, printed=True
    )
    ceiling = bool(shaped.optimism().holds.all())
    margins, span = shaped.margins(), shaped.needed_span
    settled = (margins > 0) & (shaped.gaps > 0)
    share = None
    if ceiling and settled.any():
        limit = visit_bound(span, shaped.horizon, shaped.iota(episodes, PRINTED.p), margins)
        share = max(float((run.visits / limit)[settled].max()) for run in runs)
    deviation = max(max(run.value_deviation, run.value_excess, run.potential_excess) for run in runs)
    return ExaminedPotential(
        name=name,
        optimism=shaped.optimism(),
        pairs=int(np.isfinite(shaped.pair_gaps).sum()),
        in_sub_delta=int(inside.sum()),
        suboptimal=int((shaped.gaps > 0).sum()),
        settled=int(settled.sum()) if ceiling else None,
        visits_over_bound=share,
        printed_visits_over_bound=max(
            float((run.visits[:, inside] / printed_limit[inside]).max(initial=0.0)) for run in printed
        ),
        printed_bound=printed_regret_bound(moved, episodes).unscaled(scale) if ceiling else None,
        printed_useful_from=useful_from(lambda k: printed_regret_bound(moved, k)) if ceiling else None,
        printed_regret=mean_interval(_final_regrets(printed) / scale),
        bound=regret_bound(shaped, episodes) if ceiling else None,
        useful_from=useful_from(lambda k: regret_bound(shaped, k)) if ceiling else None,
        regret=mean_interval(_final_regrets(runs)),
        needed_c=deviation / span if span > 0 else 0.0,
        held=_held(runs),
    )


def _runs(shaped: Shaped, rule: Rule, episodes: int, seeds: int) -> list[Watched]:
    return [watch(shaped, episodes, seed=seed, learner=rule) for seed in range(seeds)]


def _sweep(shaped: Shaped, rule: Rule, scale: float, episodes: int, seeds: int) -> Sweep:
    runs = _runs(shaped, rule, episodes, seeds)
    return Sweep(rule.c, _held(runs), float(_final_regrets(runs).mean()) / scale)


def _held(runs: Sequence[Watched]) -> dict[str, float]:
    return {name: float(np.mean([run.held[name] for run in runs])) for name in INEQUALITIES}


def _final_regrets(runs: Sequence[Watched]) -> FloatArray:
    return np.array([run.regret[-1] for run in runs])
