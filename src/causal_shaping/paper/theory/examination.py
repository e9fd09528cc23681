"""All of the theory for one world: what its potentials promise, what runs do, and which assumptions hold.

- `examine`: compute it; `Examination`: the answer, for people and for JSON.
- `usual_potentials`: zero, the paper's bound, the joint ceiling and V* itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping.bounds import value_ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, AssumptionWarning
from causal_shaping.learners.intervals import Interval, mean_interval
from causal_shaping.learners.rules import PRESETS, Rule, resolve
from causal_shaping.paper.theory.contraction import CausalBellman, Contraction, contraction
from causal_shaping.paper.theory.events import INEQUALITIES, Watched, iota_of, proven_rule, watch
from causal_shaping.paper.theory.regret import (
    RegretBound,
    number_text,
    printed_regret_bound,
    q_ucb,
    regret_bound,
    useful_from,
    visit_bound,
)
from causal_shaping.paper.theory.shaped import Optimism, Shaped
from causal_shaping.worlds import World

PRINTED = PRESETS["q-ucb-shaping"]
SMALLER = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
"""The c of the corrected learner; 1 is proven."""

PRINTED_SMALLER = (4.0, 0.1, 0.01, 0.003, 0.001, 0.0)
"""The c of the printed learner; 4 as in the paper's experiments."""

POTENTIALS = ("zero", "paper", "joint", "V*")


class Sweep(NamedTuple):
    """What a smaller bonus does.

    Attributes:
        c: its factor.
        held: the share of runs in which each inequality held.
        regret: the mean over runs, in units of the world's reward.
    """

    c: float
    held: Mapping[str, float]
    regret: float


@dataclass(frozen=True, eq=False)
class Examined:
    """What the theory says of one potential. Regret and bounds are in units of the world's reward.

    Attributes:
        name: of the potential.
        optimism: whether it is conservatively optimistic.
        pairs: how many (s, x) have a positive gap, and so a Delta.
        in_sub_delta: how many of them are in Sub_Delta as printed, for rewards from 0 to 1.
        suboptimal: how many (h, s, x) have a positive gap.
        settled: how many of them the potential settles; None if it is no ceiling.
        visits: the most visits of a settled (h, s, x) over all runs, as a share of its bound; None without any.
        printed_visits: the most visits of a pair in Sub_Delta at one step, as a share of the printed bound.
        printed: the printed bound of the regret, as read kindly; None if the potential is no ceiling.
        printed_from: from how many episodes on that says something; None without a bound.
        printed_regret: of the printed learner, for rewards from 0 to 1, over seeds.
        bound: the corrected bound; None if the potential is no ceiling.
        bound_from: from how many episodes on that says something; None without a bound.
        regret: of the corrected learner, over seeds.
        needed: the smallest c for which the concentration lemma, of y + V* and of y + phi, held in all of its runs.
        held: the share of its runs in which each inequality held.
        printed_held: the same for the printed learner.
    """

    name: str
    optimism: Optimism
    pairs: int
    in_sub_delta: int
    suboptimal: int
    settled: int | None
    visits: float | None
    printed_visits: float
    printed: RegretBound | None
    printed_from: float | None
    printed_regret: Interval
    bound: RegretBound | None
    bound_from: float | None
    regret: Interval
    needed: float
    held: Mapping[str, float]
    printed_held: Mapping[str, float]

    @property
    def tightness(self) -> float:
        """The corrected bound over measured regret; NaN without a bound, inf without regret."""
        return _ratio(self.bound, self.regret[0])

    @property
    def printed_tightness(self) -> float:
        """The same for the printed bound and learner."""
        return _ratio(self.printed, self.printed_regret[0])


def _ratio(bound: RegretBound | None, regret: float) -> float:
    if bound is None:
        return math.nan
    return bound.total / regret if regret > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Examination:
    """The theory of one world.

    Attributes:
        world: its name.
        horizon: H.
        episodes: K of the runs and bounds.
        seeds: how many runs.
        p: the chance of failure inside iota of the runs.
        reward_range: the smallest and the largest reward.
        random_rewards: whether a reward depends on the hidden noise, which the paper's proof excludes.
        value_range: the lowest and the highest V* over all steps, terminal states counting 0.
        value_span: what a bonus must scale with for the potential V*: the widest range of y + V*_{h+1}(s').
        smallest_gap: Delta_min.
        potentials: one answer each.
        q_ucb: the gap-dependent bound of Q-UCB, by the same theorem.
        q_ucb_from: from how many episodes on that says something.
        swept: the potential whose bonus was made smaller.
        smaller: runs of the corrected learner with smaller bonuses.
        printed_smaller: the same of the printed one.
        contractions: of the causal Bellman operator of each source.
    """

    world: str
    horizon: int
    episodes: int
    seeds: int
    p: float
    reward_range: tuple[float, float]
    random_rewards: bool
    value_range: tuple[float, float]
    value_span: float
    smallest_gap: float
    potentials: tuple[Examined, ...]
    q_ucb: RegretBound
    q_ucb_from: float
    swept: str
    smaller: tuple[Sweep, ...]
    printed_smaller: tuple[Sweep, ...]
    contractions: Mapping[str, Contraction]

    def findings(self) -> list[str]:
        """Return what the numbers say, in sentences."""
        low, high = self.value_range
        result = []
        if self.reward_range[0] < 0:
            result.append(
                f"Rewards go down to {self.reward_range[0]:g} and V* to {low:.3g}: the printed theorem does not apply. "
                "It is evaluated for rewards moved to 0 to 1, terminal states paying what is added."
            )
        if self.random_rewards:
            result.append(
                "Rewards depend on the hidden noise, which the printed proof excludes. The corrected bonus covers it: "
                f"y + V*(s') spreads by {self.value_span:.3g} after one action, V* by {high - low:.3g} over all states."
            )
        broken = [one.name for one in self.potentials if not one.optimism.holds.all()]
        if broken:
            result.append(f"Below V* somewhere, so that no theorem speaks of them: {', '.join(broken)}.")
        bounds = [one.bound for one in self.potentials if one.bound is not None]
        if bounds and all(bound.vacuous for bound in bounds) and self.q_ucb.vacuous:
            result.append(
                f"Every regret bound is vacuous at {self.episodes:,} episodes, for none can lose more than "
                f"{bounds[0].trivial / self.episodes:.3g}. The corrected one says something from "
                f"{min(one.bound_from for one in self.potentials if one.bound_from is not None):.2g} episodes on."
            )
        if bounds:
            worst = min(min(one.held.values()) for one in self.potentials if one.bound is not None)
            result.append(
                f"The proven events held in at least {worst:.0%} of the runs for every ceiling; "
                f"{max(1 - 3 * self.p, 0.0):.0%} are promised."
            )
            breaks = [one.c for one in self.smaller if one.held["optimism"] < 1 - self.p]
            smaller = f"With a bonus of c = {max(breaks):g} or less" if any(breaks) else "Without a bonus"
            result.append(
                f"{smaller}, where c = 1 is proven, optimism breaks ({self.swept})."
                if breaks
                else f"Optimism never broke, not even without a bonus ({self.swept})."
            )
        if not any(one.applies for one in self.contractions.values()):
            result.append("The proposition on convergence applies to none of the sources.")
        return result

    def headline(self) -> str:
        """Return the numbers that all of it rests on, in a sentence."""
        low, high = self.reward_range
        return (
            f"{self.world}: {self.horizon} steps, rewards from {low:g} to {high:g}, V* from {self.value_range[0]:.3g} "
            f"to {self.value_range[1]:.3g}, smallest gap {self.smallest_gap:.3g}; {self.episodes:,} episodes, "
            f"{self.seeds} runs each."
        )

    def tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Return all of it as tables for people: title, heads and rows of each."""
        measured = ("bound", "useful from", "regret", "bound / regret")
        corrected: list[tuple[str, ...]] = [
            (
                one.name,
                "-" if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
                "-" if one.visits is None else f"{one.visits:.2g}",
                _bound_text(one.bound),
                number_text(one.bound_from),
                f"{one.regret[0]:.4g}",
                number_text(one.tightness),
                f"{min(one.held.values()):.0%}",
                f"{one.needed:.2g}",
            )
            for one in self.potentials
        ]
        corrected.append(("Q-UCB", "", "", _bound_text(self.q_ucb), number_text(self.q_ucb_from), "", "", "", ""))
        return [
            (
                "Definition 4.1: V* <= phi <= H b, at every step",
                ("potential", "conservative optimism"),
                [(one.name, one.optimism.verdict) for one in self.potentials],
            ),
            (
                "As printed, for rewards from 0 to 1, in units of this world",
                ("potential", "in Sub_Delta", "visits / bound", *measured),
                [
                    (
                        one.name,
                        f"{one.in_sub_delta} of {one.pairs}",
                        f"{one.printed_visits:.2g}",
                        _bound_text(one.printed),
                        number_text(one.printed_from),
                        f"{one.printed_regret[0]:.4g}",
                        number_text(one.printed_tightness),
                    )
                    for one in self.potentials
                ],
            ),
            (
                "Corrected, for any sign",
                ("potential", "settled", "visits / bound", *measured, "events held", "smallest c"),
                corrected,
            ),
            *(
                (
                    f"Smaller bonuses: {title}",
                    ("c", *sweeps[0].held, "regret"),
                    [
                        (f"{one.c:g}", *(f"{held:.0%}" for held in one.held.values()), f"{one.regret:.4g}")
                        for one in sweeps
                    ],
                )
                for title, sweeps in (
                    (f"corrected learner, {self.swept}; c = 1 is proven", self.smaller),
                    (f"printed learner, {self.swept}, rewards from 0 to 1", self.printed_smaller),
                )
            ),
            (
                "Proposition H.2: is it a contraction?",
                ("source", "the causal Bellman operator"),
                [(source, one.verdict) for source, one in self.contractions.items()],
            ),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""

        def number(value: float | None) -> float | None:
            return None if value is None or not math.isfinite(value) else float(value)

        def bound(given: RegretBound | None) -> dict[str, Any] | None:
            if given is None:
                return None
            parts = ("settled", "unsettled", "optimal", "first", "failure", "trivial", "total")
            return {part: number(getattr(given, part)) for part in parts} | {"vacuous": given.vacuous}

        names = ("world", "horizon", "episodes", "seeds", "p", "random_rewards", "value_span", "swept")
        return {name: getattr(self, name) for name in names} | {
            "reward_range": list(self.reward_range),
            "value_range": list(self.value_range),
            "smallest_gap": number(self.smallest_gap),
            "potentials": [
                {
                    "potential": one.name,
                    "conservatively_optimistic": bool(one.optimism),
                    "verdict": one.optimism.verdict,
                    "distance": [[number(d) for d in row] for row in one.optimism.distance],
                    "pairs": one.pairs,
                    "in_sub_delta": one.in_sub_delta,
                    "suboptimal": one.suboptimal,
                    "settled": one.settled,
                    "visits_over_bound": one.visits,
                    "printed_visits_over_bound": one.printed_visits,
                    "printed_bound": bound(one.printed),
                    "printed_useful_from": number(one.printed_from),
                    "printed_regret": list(one.printed_regret),
                    "printed_tightness": number(one.printed_tightness),
                    "bound": bound(one.bound),
                    "useful_from": number(one.bound_from),
                    "regret": list(one.regret),
                    "tightness": number(one.tightness),
                    "needed_c": one.needed,
                    "held": dict(one.held),
                    "printed_held": dict(one.printed_held),
                }
                for one in self.potentials
            ],
            "q_ucb_bound": bound(self.q_ucb),
            "q_ucb_useful_from": number(self.q_ucb_from),
            "smaller_bonus": [{"c": one.c, "regret": one.regret, **one.held} for one in self.smaller],
            "printed_smaller_bonus": [{"c": one.c, "regret": one.regret, **one.held} for one in self.printed_smaller],
            "contraction": {
                source: {
                    "applies": one.applies,
                    "verdict": one.verdict,
                    "one_minus_modulus": one.shrinks,
                    "longest": number(one.longest),
                }
                for source, one in self.contractions.items()
            },
            "findings": self.findings(),
        }


def usual_potentials(world: World) -> dict[str, Potential | None]:
    """Return the four potentials that are compared, from population counts: no sampling error.

    The paper's bound has the b behind its results: 0 in the grid worlds, 1 for the robot.
    """
    model, horizon = world.model, world.horizon
    counts = [model.observe(beta, name) for name, beta in world.demonstrators.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        b = 0.0 if world.grid is not None else model.reward_range[1]
        paper = value_ceilings(counts, horizon, b, method="paper").potential()
        joint = value_ceilings(counts, horizon, model.reward_range[1]).potential()
    best = Potential(model.optimum(horizon).values, model.space, origin="the optimum")
    return dict(zip(POTENTIALS, (None, paper, joint, best), strict=True))


def examine(
    world: World,
    potentials: Mapping[str, Any] | None = None,
    episodes: int = 1_000,
    seeds: int = 20,
    p: float = 0.1,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Examination:
    """Return what the theory says of a world, and what runs show.

    Args:
        world: the world; its model must be the same at each step.
        potentials: potentials by name; `usual_potentials` by default.
        episodes: K, of each run and of the bounds.
        seeds: how many runs of each learner.
        p: the chance of failure inside iota of the runs; the bounds choose their own, so that it costs little.
        progress: called with the number of groups of runs that are done, of all, and what comes next.
    """
    episodes, seeds = check_integer("episodes", episodes, least=1), check_integer("seeds", seeds, least=1)
    model, horizon = world.model, world.horizon
    given = usual_potentials(world) if potentials is None else potentials
    if not given:
        raise ArgumentError("There is no potential to examine.")
    problems = {name: Shaped(model, potential, horizon) for name, potential in given.items()}
    ceilings = [name for name, shaped in problems.items() if shaped.optimism().holds.all()]
    swept = "joint" if "joint" in ceilings else (ceilings or list(problems))[-1]
    first = next(iter(problems.values()))
    scaled, scale = first.nonnegative()
    best = first.values
    examined: list[Examined] = []
    smaller: list[Sweep] = []
    printed_smaller: list[Sweep] = []
    total = len(problems) + len(SMALLER) + len(PRINTED_SMALLER)

    def next_is(what: str) -> None:
        progress(len(examined) + len(smaller) + len(printed_smaller), total, what)

    for name, shaped in problems.items():
        next_is(f"potential {name}")
        examined.append(_examined(name, shaped, episodes, seeds, p))
    chosen, moved = problems[swept], problems[swept].nonnegative()[0]
    for c in SMALLER:
        next_is(f"corrected, c = {c:g}")
        smaller.append(_sweep(chosen, proven_rule(chosen, episodes, p, c), 1.0, episodes, seeds))
    for c in PRINTED_SMALLER:
        next_is(f"printed, c = {c:g}")
        printed_smaller.append(_sweep(moved, resolve(PRINTED, c=c, p=p), scale, episodes, seeds))
    return Examination(
        world=world.name,
        horizon=horizon,
        episodes=episodes,
        seeds=seeds,
        p=p,
        reward_range=model.reward_range,
        random_rewards=first.span(np.zeros_like(best)) > 0,
        value_range=(float(best.min()), float(best.max())),
        value_span=first.span(best),
        smallest_gap=first.smallest_gap,
        potentials=tuple(examined),
        q_ucb=in_units(regret_bound(q_ucb(scaled), episodes, scale=horizon), scale),
        q_ucb_from=useful_from(lambda k: regret_bound(q_ucb(scaled), k, scale=horizon)),
        swept=swept,
        smaller=tuple(smaller),
        printed_smaller=tuple(printed_smaller),
        contractions={
            name: contraction(CausalBellman(model.observe(beta, name), model.reward_range[1]))
            for name, beta in world.demonstrators.items()
        },
    )


def _examined(name: str, shaped: Shaped, episodes: int, seeds: int, p: float) -> Examined:
    moved, scale = shaped.nonnegative()
    rule = proven_rule(shaped, episodes, p)
    runs = _runs(shaped, rule, episodes, seeds)
    printed = _runs(moved, resolve(PRINTED, p=p), episodes, seeds)
    inside, iota = moved.pseudo_suboptimal(), iota_of(moved, episodes, p)
    printed_limit = visit_bound(
        PRINTED.c * float(moved.potential.max()), shaped.horizon, iota, moved.pair_gaps, printed=True
    )
    ceiling = bool(shaped.optimism().holds.all())
    margins = shaped.margins()
    settled = (margins > 0) & (shaped.gaps > 0)
    share = None
    if ceiling and settled.any():
        limit = visit_bound(shaped.needed_span, shaped.horizon, iota_of(shaped, episodes, p), margins)
        share = max(float((run.visits / limit)[settled].max()) for run in runs)
    return Examined(
        name=name,
        optimism=shaped.optimism(),
        pairs=int(np.isfinite(shaped.pair_gaps).sum()),
        in_sub_delta=int(inside.sum()),
        suboptimal=int((shaped.gaps > 0).sum()),
        settled=int(settled.sum()) if ceiling else None,
        visits=share,
        printed_visits=max(float((run.visits[:, inside] / printed_limit[inside]).max(initial=0.0)) for run in printed),
        printed=in_units(printed_regret_bound(moved, episodes), scale) if ceiling else None,
        printed_from=useful_from(lambda k: printed_regret_bound(moved, k)) if ceiling else None,
        printed_regret=mean_interval(_last(printed) / scale),
        bound=regret_bound(shaped, episodes) if ceiling else None,
        bound_from=useful_from(lambda k: regret_bound(shaped, k)) if ceiling else None,
        regret=mean_interval(_last(runs)),
        needed=_ratio_or_zero(
            max(max(run.value_deviation, run.value_excess, run.potential_excess) for run in runs), shaped.needed_span
        ),
        held=_held(runs),
        printed_held=_held(printed),
    )


def _runs(shaped: Shaped, rule: Rule, episodes: int, seeds: int) -> list[Watched]:
    return [watch(shaped, episodes, seed, rule) for seed in range(seeds)]


def _sweep(shaped: Shaped, rule: Rule, scale: float, episodes: int, seeds: int) -> Sweep:
    runs = _runs(shaped, rule, episodes, seeds)
    return Sweep(rule.c, _held(runs), float(_last(runs).mean()) / scale)


def _held(runs: Sequence[Watched]) -> dict[str, float]:
    return {name: float(np.mean([run.held[name] for run in runs])) for name in INEQUALITIES}


def _last(runs: Sequence[Watched]) -> FloatArray:
    return np.array([run.regret[-1] for run in runs])


def _ratio_or_zero(number: float, scale: float) -> float:
    return number / scale if scale > 0 else 0.0


def in_units(bound: RegretBound, scale: float) -> RegretBound:
    """Return a bound for rewards from 0 to 1 in units of the world's own rewards."""
    parts = (bound.settled, bound.unsettled, bound.optimal, bound.first, bound.failure, bound.trivial)
    return RegretBound(*(part / scale for part in parts))


def _bound_text(bound: RegretBound | None) -> str:
    """Return a bound of the regret, and whether it is vacuous."""
    return "-" if bound is None else f"{bound.total:.2g}{' (vacuous)' if bound.vacuous else ''}"
