"""What the learner `posterior` costs in the paper's worlds, at the paper's budgets, as a share of a zero potential.

Logs and learners have seeds that nobody chose by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

SEEDS, FIRST_SEED = 10, 500
"""How many seeds, each that of the logs and of the learner."""

ZERO, NO_LOGS, LOGS, CONFOUNDED = "zero potential", "no logs", "logs", "without the blind source"

LIMIT, ONCE_LIMIT, CONFOUNDED_LIMIT = 0.08, 0.2, 0.3
"""The most regret with logs, as a share of a zero potential's: with standing coins, with coins that pay once, and
without the source that does not look at the wind."""

ONCE = ("lavacross-hard", "lavacross-maze")
"""Where `ONCE_LIMIT` is promised."""

OPTIMAL = 0.95
"""The share of states whose recommended action is truly optimal, with logs and standing coins."""


def paper_parts() -> list[str]:
    """Return the worlds with their coin rules, and how each is learned."""
    from studies.paper.plan import WORLDS

    variants = [f"{world}, standing" for world in WORLDS] + [f"{world}, once" for world in ONCE]
    variants.sort(key=lambda variant: variant.startswith("windy-empty"))  # the longest comes last
    return [f"{variant}; {way}" for variant in variants for way in (ZERO, LOGS, CONFOUNDED, NO_LOGS)]


def run_paper_world(part: str) -> dict[str, Any]:
    """Return regret and the share of states with a truly optimal action, seed by seed."""
    import causal_shaping as cs
    from causal_shaping.learners.seeds import optimal_ratios
    from studies.paper.materials import Materials
    from studies.paper.plan import BUDGETS, LOG_STEPS

    variant, way = part.split("; ")
    name, coins = variant.split(", ")
    world = cs.load_world(name, coins=coins)
    regret, optimal = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        materials = Materials(world, LOG_STEPS, seed)
        start: Any = {
            ZERO: lambda: cs.Potential.zero(world),
            NO_LOGS: lambda: None,
            LOGS: lambda m=materials: m.belief("posterior"),
            CONFOUNDED: lambda m=materials: m.belief("posterior-confounded"),
        }[way]()
        learner = "q-ucb-shaping" if way == ZERO else "posterior"
        run = cs.train(world, start, learner=learner, steps=BUDGETS[name], seed=seed)
        regret.append(float(run.step_regret[-1]))
        optimal.append(optimal_ratios(world.model, run.recommended)[1])
    return {"regret": regret, "optimal": optimal}


def limit_of(variant: str, way: str) -> float | None:
    """Return the most regret that is promised, as a share of a zero potential's; None for no promise."""
    world, coins = variant.split(", ")
    if way == LOGS:
        return LIMIT if coins == "standing" else ONCE_LIMIT
    if way == CONFOUNDED and coins == "standing" and world != "windy-empty":
        return CONFOUNDED_LIMIT
    return None


def paper_holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether regret is at most what is promised, and recommended actions are optimal."""
    from causal_shaping.learners.intervals import bootstrap_interval
    from studies.statistics import ratio_of_means

    held = True
    for part, figures in parts.items():
        variant, way = part.split("; ")
        if way == ZERO:
            continue
        pair = np.array(figures["regret"]), np.array(parts[f"{variant}; {ZERO}"]["regret"])
        share, low, high = bootstrap_interval(ratio_of_means, *pair, paired=True)
        optimal, limit = float(np.mean(figures["optimal"])), limit_of(variant, way)
        states = OPTIMAL if way == LOGS and variant.endswith("standing") else 0.0
        good = (limit is None or share <= limit) and optimal >= states
        aim = "" if limit is None else f", {'as promised' if good else 'NOT AS PROMISED'}: at most {limit}"
        words = f"  {part}: {share:.3f} ({low:.3f} to {high:.3f}) of a zero potential's regret"
        print(f"{words}; {optimal:.1%} of states with an optimal action{aim}")
        held &= good
    return held
