"""The theory of one world: what the theorems promise for its potentials, what runs do, and which assumptions hold.

- `examine`: compute it; `Examination`: the result.
- `usual_potentials`: zero, the paper's bound, the joint ceiling and V* itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from causal_shaping._checks import MOST_SEEDS, check_integer
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds import value_ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.potential import Potential
from causal_shaping.errors import AssumptionWarning
from causal_shaping.learners.intervals import mean_interval
from causal_shaping.learners.rules import Rule, resolve
from causal_shaping.worlds import World
from studies.paper.theory.contraction import CausalBellman, Contraction, contraction
from studies.paper.theory.events import INEQUALITIES, PRINTED, Watched, proven_rule, watch
from studies.paper.theory.regret import printed_regret_bound, q_ucb, regret_bound, useful_from, visit_bound
from studies.paper.theory.shaped import Shaped

MOST_EPISODES = 10_000_000
"""Longer runs are refused, since the regret of every episode is kept."""

SMALLER = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
"""The values of c tried with the corrected learner; 1 is proven."""

PRINTED_SMALLER = (4.0, 0.1, 0.01, 0.003, 0.001, 0.0)
"""The values of c tried with the printed learner; 4 as in the paper's experiments."""

POTENTIALS = ("zero", "paper", "joint", "V*")


@dataclass(frozen=True, eq=False)
class Examination:
    """The theory of one world. Regret and bounds are in units of the world's reward.

    Attributes:
        world: the name of the world.
        episodes: K, of the runs and in the bounds.
        setting: the world and the runs, in one sentence.
        potentials: the results for each potential, see `_examined`.
        sweeps: a record for each learner, "corrected" and "printed", and each size c of its bonus: the share of runs in
            which each inequality held, and the mean regret, under the joint ceiling.
        contractions: the contraction of the causal Bellman operator, by source.
    """

    world: str
    episodes: int
    setting: str
    potentials: Sequence[Mapping[str, Any]]
    sweeps: Sequence[Mapping[str, Any]]
    contractions: Mapping[str, Contraction]


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
        potentials: potentials by name, "joint" among them; `usual_potentials` by default.
        episodes: K, the number of episodes of each run and in the bounds.
        seeds: the number of runs of each learner.
        progress: told how many groups of runs are done.
    """
    episodes = check_integer("episodes", episodes, least=1, most=MOST_EPISODES)
    seeds = check_integer("seeds", seeds, least=1, most=MOST_SEEDS)
    model, horizon = world.model, world.horizon
    given = usual_potentials(world) if potentials is None else potentials
    problems = {name: Shaped(model, potential, horizon) for name, potential in given.items()}
    joint, total = problems["joint"], len(problems) + len(SMALLER) + len(PRINTED_SMALLER)
    moved, scale = joint.nonnegative()
    vanilla = q_ucb(moved)
    of_q_ucb = {
        "q_ucb_bound": regret_bound(vanilla, episodes, scale=horizon).unscaled(scale).total,
        "q_ucb_useful_from": useful_from(lambda k: regret_bound(vanilla, k, scale=horizon)),
    }
    examined: list[dict[str, Any]] = []
    sweeps: list[dict[str, Any]] = []
    for name, shaped in problems.items():
        progress(len(examined), total, f"potential {name}")
        examined.append({"world": world.name, "potential": name} | _examined(shaped, episodes, seeds) | of_q_ucb)
    corrected = [("corrected", joint, proven_rule(joint, episodes, c=c), 1.0) for c in SMALLER]
    printed = [("printed", moved, resolve(PRINTED, c=c), scale) for c in PRINTED_SMALLER]
    for learner, shaped, rule, unit in (*corrected, *printed):
        progress(len(examined) + len(sweeps), total, f"{learner}, c = {rule.c:g}")
        runs = _runs(shaped, rule, episodes, seeds)
        about = {"world": world.name, "learner": learner, "potential": "joint", "c": rule.c}
        sweeps.append(about | _held(runs) | {"regret": float(_regrets(runs).mean()) / unit})
    (low, high), values = model.reward_range, joint.values
    return Examination(
        world.name,
        episodes,
        f"{world.name}: {horizon} steps, rewards from {low:g} to {high:g}, V* from {values.min():.3g} to "
        f"{values.max():.3g}, smallest gap {joint.smallest_gap:.3g}; {episodes:,} episodes, {seeds} runs each.",
        examined,
        sweeps,
        {
            name: contraction(CausalBellman(model.observe(beta, name), high))
            for name, beta in world.demonstrators.items()
        },
    )


def _examined(shaped: Shaped, episodes: int, seeds: int) -> dict[str, Any]:
    """Return the theory of one potential; what concerns a ceiling is None for other potentials.

    - `optimism`: whether it is conservatively optimistic.
    - `pairs`: the number of (s, x) with a positive gap; `in_sub_delta`: how many of them are in Sub_Delta as printed,
      for rewards from 0 to 1; `suboptimal`: the number of (h, s, x) with a positive gap; `settled`: how many of them
      the potential settles.
    - `visits_over_bound`: the largest number of visits to a settled (h, s, x) in any run, as a share of its bound;
      `printed_visits_over_bound`: the same for pairs in Sub_Delta at one step and the printed bound.
    - `bound`, `printed_bound`: on the regret; `useful_from`: the number of episodes from which on it is not vacuous.
    - `regret`, `printed_regret`: the means over runs of the corrected and of the printed learner.
    - `needed_c`: the smallest c for which the concentration lemma, of y + V* and of y + phi, held in all runs.
    - `held_...`: the share of the runs in which each inequality held.
    """
    (moved, scale), optimism, span, H = shaped.nonnegative(), shaped.optimism(), shaped.needed_span, shaped.horizon
    runs = _runs(shaped, proven_rule(shaped, episodes), episodes, seeds)
    printed = _runs(moved, PRINTED, episodes, seeds)
    inside, margins = moved.pseudo_suboptimal(), shaped.margins()
    settled = (margins > 0) & (shaped.gaps > 0)
    scale_of_bonus = PRINTED.c * float(moved.potential.max())
    most = visit_bound(scale_of_bonus, H, moved.iota(episodes, PRINTED.p), moved.pair_gaps, printed=True)[inside]
    of_ceiling: dict[str, Any] = dict.fromkeys(("settled", "visits_over_bound", "bound", "useful_from"))
    printed_bound, printed_useful_from = None, None
    if optimism.holds.all():
        limit = visit_bound(span, H, shaped.iota(episodes, PRINTED.p), margins)
        shares = [float((run.visits / limit)[settled].max()) for run in runs] if settled.any() else []
        of_ceiling = {
            "settled": int(settled.sum()),
            "visits_over_bound": max(shares, default=None),
            "bound": regret_bound(shaped, episodes).total,
            "useful_from": useful_from(lambda k: regret_bound(shaped, k)),
        }
        printed_bound = printed_regret_bound(moved, episodes).unscaled(scale).total
        printed_useful_from = useful_from(lambda k: printed_regret_bound(moved, k))
    regret, low, high = mean_interval(_regrets(runs))
    deviation = max(max(run.value_deviation, run.value_excess, run.potential_excess) for run in runs)
    return {
        "optimism": optimism,
        "conservatively_optimistic": bool(optimism),
        "pairs": int(np.isfinite(shaped.pair_gaps).sum()),
        "in_sub_delta": int(inside.sum()),
        "printed_visits_over_bound": max(float((run.visits[:, inside] / most).max(initial=0.0)) for run in printed),
        "printed_bound": printed_bound,
        "printed_useful_from": printed_useful_from,
        "printed_regret": float(_regrets(printed).mean() / scale),
        "suboptimal": int((shaped.gaps > 0).sum()),
        **of_ceiling,
        "regret": regret,
        "regret_low": low,
        "regret_high": high,
        "needed_c": deviation / span if span > 0 else 0.0,
        **{f"held_{name}": share for name, share in _held(runs).items()},
    }


def _runs(shaped: Shaped, rule: Rule, episodes: int, seeds: int) -> list[Watched]:
    return [watch(shaped, episodes, seed=seed, learner=rule) for seed in range(seeds)]


def _held(runs: Sequence[Watched]) -> dict[str, float]:
    return {name: float(np.mean([run.held[name] for run in runs])) for name in INEQUALITIES}


def _regrets(runs: Sequence[Watched]) -> FloatArray:
    return np.array([run.regret[-1] for run in runs])
