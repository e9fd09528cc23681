"""What confounded logs cost or save the learner `posterior` in worlds that nobody tuned, hostile ones among them.

Regret is over the mean gap of a world, see `studies/worlds/hard.py`. Worlds and seeds are none that anybody chose by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

WORLDS, PER_PART, FIRST_WORLD = 100, 25, 10_000
STEPS, SEEDS = 20_000, range(700, 703)
LOG_SEED = 300

NO_LOGS = "no logs"
LIMITS = {
    "random": 0.7,
    "erratic": None,  # not promised
    "hostile": 1.1,
    "partly hostile": 0.9,
    "slander": 1.2,
    "slander, second unconfounded": 1.5,
}
"""The most regret with logs, as a share of that without."""

WORST_DECILE = 1.5
"""The most that nine worlds of ten have, as a share of the same world without logs."""

BANDITS, SCALES, ARMS = 1_000, (0.01, 1.0, 100.0), (2, 3, 5)
LOCKED_IN = 0.01
"""A run is locked in if it takes the best action in fewer of its steps."""


def hard_parts() -> list[str]:
    """Return the kinds of worlds, in parts: all kinds of the first worlds, then of the next."""
    kinds = (NO_LOGS, *LIMITS)
    return [f"{kind}; {at}-{at + PER_PART - 1}" for at in range(0, WORLDS, PER_PART) for kind in kinds]


def run_hard(part: str) -> dict[str, Any]:
    """Return the regret in each world of a part, the mean of three seeds."""
    import causal_shaping as cs
    from studies.worlds import hard as hard_worlds

    kind, worlds = part.split("; ")
    first, last = map(int, worlds.split("-"))
    regret = []
    for seed in range(FIRST_WORLD + first, FIRST_WORLD + last + 1):
        world = hard_worlds.KINDS["random" if kind == NO_LOGS else kind](seed)
        belief = None
        if kind != NO_LOGS:
            counts = hard_worlds.counts_of(world, seed=LOG_SEED)
            belief = cs.posterior(counts, horizon=world.horizon, reward_max=max(hard_worlds.REWARDS))
        runs = [cs.train(world, belief, learner="posterior", steps=STEPS, seed=own) for own in SEEDS]
        regret.append(float(np.mean([run.step_regret[-1] for run in runs]) / hard_worlds.mean_gap(world)))
    return {"regret": regret}


def bandit_parts() -> list[str]:
    """Return the numbers of the bandits, in parts."""
    return [f"{at}-{at + BANDITS // 4 - 1}" for at in range(0, BANDITS, BANDITS // 4)]


def run_bandits(part: str) -> dict[str, Any]:
    """Return how many runs were locked in: without logs, with those of either demonstrator, and with both."""
    import causal_shaping as cs
    from studies.worlds import hard as hard_worlds

    ways = {"no logs": [], "slander": ["slander"], "flatter": ["flatter"], "both": ["slander", "flatter"]}
    found: dict[str, Any] = {"runs": 0, "locked in": dict.fromkeys(ways, 0), "least share": 1.0}
    first, last = map(int, part.split("-"))
    for i in range(first, last + 1):
        scale, arms = SCALES[i % len(SCALES)], ARMS[i // len(SCALES) % len(ARMS)]
        world = hard_worlds.bandit(FIRST_WORLD + i, scale, arms)
        way = list(ways)[i % len(ways)]
        belief = None
        if ways[way]:
            counts = hard_worlds.counts_of(world, seed=LOG_SEED, sources=ways[way])
            belief = cs.posterior(counts, horizon=1, reward_max=2 * scale)
        run = cs.train(world, belief, learner="posterior", steps=STEPS, seed=i)
        share = run.visits[0, hard_worlds.order_of(world.model)[0, 0]] / STEPS
        found["runs"] += 1
        found["locked in"][way] += bool(share < LOCKED_IN)
        found["least share"] = min(found["least share"], float(share))
    return found


def ratios(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """Return for each kind regret as a share of that without logs: all in all, the ninth decile, the worst tenth's."""

    def regret(kind: str) -> np.ndarray:
        pieces: Sequence[Any] = [figures["regret"] for part, figures in parts.items() if part.startswith(f"{kind};")]
        return np.concatenate(pieces)

    without, found = regret(NO_LOGS), {}
    for kind in LIMITS:
        share = regret(kind) / without
        worst = np.sort(share)[-max(1, len(share) // 10) :].mean()
        found[kind] = (float(regret(kind).mean() / without.mean()), float(np.quantile(share, 0.9)), float(worst))
    return found


def holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether logs cost no more than promised."""
    found = ratios(parts)
    for kind, (share, decile, worst) in found.items():
        print(f"  {kind}: {share:.2f} of no logs; nine worlds of ten below {decile:.2f}, the worst tenth {worst:.2f}")
    return all(found[kind][0] <= limit and found[kind][1] <= WORST_DECILE for kind, limit in LIMITS.items() if limit)
