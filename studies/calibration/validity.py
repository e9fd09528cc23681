"""How often bounds and limits hold in worlds whose truth comes from independent code, many worlds and samples.

- `judged`: the bounds of one random world under `any` and up to three other sets of assumptions that are true there.
- `run_part`: bounds of many random worlds, added up by assumptions.
- `covered`: how often limits at a confidence hold, all at once, in many samples of a small world.
"""

import math
import warnings
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from independent import (
    NOWHERE,
    adversarial,
    counts_of,
    optimum,
    random_demonstrators,
    random_edges,
    random_features,
    random_world,
    rarest_share,
    rows,
    sampled_rows,
    support_holds,
    true_gamma,
    vacuous,
)

import causal_shaping as cs
from studies.worlds.small import WORLDS

PARTS = [f"{first}-{first + 499}" for first in range(0, 10_000, 500)]
"""Seeds of random worlds."""

CONFIDENCE = 0.95

TOLERANCE = 1e-9
"""How far a bound may lie on the wrong side, relative to the largest value, before it is a failure."""


@dataclass(frozen=True)
class Case:
    """A random world as its logs show it in the limit, with what is true of it."""

    world: object
    counts: cs.Counts
    assumptions: dict  # name -> options of bounds that are true here
    low: float  # a true lower and upper bound of rewards
    high: float


@dataclass
class Verdict:
    """What came out of one set of assumptions in one world."""

    assumptions: str
    failures: list = field(default_factory=list)
    closed: float = math.nan  # the share of the gap between the vacuous value and V* that the ceilings close
    masked: int = 0
    refused: bool = False  # an endless episode without a discount, of which no bound is finite


def random_case(seed):
    """Draw a world, its demonstrators, how they are counted, and the assumptions that are true."""
    rng = np.random.default_rng([15, seed])
    features = random_features(rng)
    world = random_world(rng, features)
    demonstrators = random_demonstrators(rng, world, features)
    if rng.random() < 0.7:
        world = adversarial(rng, world, demonstrators)
    pooled = world.stationary or "much is proven" in features or rng.random() < 0.6
    step_indexed = "time-varying" in features or not pooled
    shown = {name: rows(world, demonstrator) for name, demonstrator in demonstrators.items()}
    if step_indexed:  # bounds by step need a horizon that holds the logs
        shown = {name: {row: n for row, n in held.items() if row[0] < world.horizon} for name, held in shown.items()}
    edges = random_edges(rng, world) if "continuous rewards" in features and rng.random() < 0.8 else None
    complete = bool(rng.random() < (0.3 if "hidden states" in features else 0.6))
    declare = bool(rng.random() < 0.5)
    counts = counts_of(
        world, shown, step_indexed=step_indexed, complete=complete, declare_terminal=declare, edges=edges
    )
    gammas = {name: true_gamma(world, demonstrator, step_indexed) for name, demonstrator in demonstrators.items()}
    declared = {
        name: gamma * float(rng.choice([1 + 1e-9, 1.0 + rng.random()]))
        for name, gamma in gammas.items()
        if math.isfinite(gamma) and rng.random() < 0.8
    }
    true = [name for name in ("observed", "observed-action") if support_holds(world, shown, name, step_indexed, edges)]
    supports = {name: name for name in ("any", *true)}
    if complete and not step_indexed:
        supports["given"] = _true_successors(world)
    assumptions = {name: {"support": support} for name, support in supports.items()}
    if declared:
        for name, support in supports.items():
            assumptions[f"{name}, finite Gamma"] = {"support": support, "confounding": declared}
    others = [name for name in assumptions if name != "any"]
    chosen = {"any", *rng.permutation(others)[:3].tolist()}
    assumptions = {name: options for name, options in assumptions.items() if name in chosen}
    slack = float(rng.choice([0.0, 0.3]))
    low, high = world.reward_range
    return Case(world, counts, assumptions, low - slack, high + slack)


def _true_successors(world):
    """The states that can follow, None for an end without one, as a user's own support."""

    def successors(s, x):
        found = {after for after, _, _ in world.outcomes(0, s, x)}
        return [None if after == NOWHERE else after for after in sorted(found)]

    return successors


def judged(case, value_max=None):
    """Return a verdict for each set of assumptions."""
    world, counts = case.world, case.counts
    best, best_q = optimum(world)
    labels = list(counts.space.states)
    states = [s for s in labels if world.alive[s]]
    at = [labels.index(s) for s in states]
    best, best_q = best[..., states], best_q[..., states, :]
    exists = world.admissible[states]
    margin = TOLERANCE * (1 + np.abs(best).max())
    found = []
    for name, options in case.assumptions.items():
        verdict = Verdict(name)
        found.append(verdict)
        options = {**options, "discount": world.discount, "stationary": world.stationary}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cs.AssumptionWarning)
                above = cs.value_ceilings(counts, world.horizon, case.high, value_max=value_max, **options)
                below = cs.value_floors(counts, world.horizon, case.low, **options)
                masked = cs.provably_suboptimal(above, below)
        except cs.CausalShapingError as error:
            if "There is no infinite-horizon bound" in str(error):
                verdict.refused = True
            else:
                verdict.failures.append(f"error: {type(error).__name__}: {error}")
            continue
        values, q_values, floor, floor_q = (
            np.take(table, at, axis=axis)
            for table, axis in ((above.values, -1), (above.q_values, -2), (below.values, -1), (below.q_values, -2))
        )
        masked = np.take(masked, at, axis=-2)
        shaped = np.broadcast_to(exists, q_values.shape)
        wrong = {
            "ceiling": ~(values >= best - margin),
            "ceiling of an action": ~(q_values >= best_q - margin)[shaped],
            "floor": ~(floor <= best + margin),
            "floor of an action": ~(floor_q <= best_q + margin)[shaped],
            "mask": masked & shaped & (best_q >= best[..., None] - margin),
            "inadmissible action with a value": ~(np.isnan(q_values) & np.isnan(floor_q))[~shaped],
        }
        verdict.failures += [what for what, where in wrong.items() if where.any()]
        verdict.masked = int((masked & shaped).sum())
        worst = vacuous(world, case.high)
        if np.isfinite(worst).all():
            gap = (worst if world.stationary else worst[:, None]) - best
            distance = np.where(np.isfinite(values), values - best, gap)
            if gap.sum() > 1e-6:
                verdict.closed = 1 - float(distance.sum() / gap.sum())
    return found


def run_part(part):
    """Return how many worlds have a failure, and by assumptions the checks, the failures and the gap that is closed."""
    first, last = map(int, part.split("-"))
    seeds, failures = range(first, last + 1), []
    by_assumptions = defaultdict(list)
    for seed in seeds:
        for verdict in judged(random_case(seed)):
            by_assumptions[verdict.assumptions].append(verdict)
            failures += [{"seed": seed, "assumptions": verdict.assumptions, "failure": one} for one in verdict.failures]
    tables = {}
    for name, verdicts in by_assumptions.items():
        closed = [verdict.closed for verdict in verdicts if not math.isnan(verdict.closed)]
        tables[name] = {
            "worlds": len(verdicts),
            "refused": sum(verdict.refused for verdict in verdicts),
            "failures": sum(bool(verdict.failures) for verdict in verdicts),
            "masked actions": sum(verdict.masked for verdict in verdicts),
            "with a vacuous gap": len(closed),
            "mean share of the gap closed": float(np.mean(closed)) if closed else math.nan,
        }
    failed = len({failure["seed"] for failure in failures})
    return {"worlds": len(seeds), "worlds with a failure": failed, "by assumptions": tables, "failures": failures}


def holds(parts):
    """Bounds and masks of 10,000 random worlds, at population level, hold wherever their assumptions are true."""
    return not any(part["worlds with a failure"] for part in parts.values())


# Confidence ------------------------------------------------------------------------------------------------------


def covered(name, samples=400):
    """Return how often ceilings, floors and masks of samples of a small world hold, all of them at once.

    Under `observed`, `rarest` lies below the share of the world's rarest outcome, or is the default. `distance` is the
    mean of the first step's ceilings less V*; in a share of states "anything may follow".
    """
    small = WORLDS[name]()
    world = small.world
    best, best_q = optimum(world)
    alive, exists = world.alive, world.admissible[world.alive]
    best, best_q = best[..., alive], best_q[..., alive, :]
    low, high = world.reward_range[0] - small.jitter, world.reward_range[1] + small.jitter
    rarest = 0.8 * rarest_share(world, small.demonstrators, small.episodes, small.step_indexed, small.edges)
    shared = {"discount": world.discount, "stationary": world.stationary}
    limited, blind = {"confidence": CONFIDENCE}, {"confounding": {"blind": 1.0}}
    settings = {
        "any": {"support": "any", **limited},
        "any, blind source declared": {"support": "any", **limited, **blind},
        "observed": {"support": "observed", **limited, "rarest": rarest},
        "observed, blind source declared": {"support": "observed", **limited, **blind, "rarest": rarest},
        "observed, default rarest": {"support": "observed", **limited},
        "plug-in any": {"support": "any"},
        "plug-in any, blind source declared": {"support": "any", **blind},
        "plug-in observed": {"support": "observed"},
        "plug-in observed, blind source declared": {"support": "observed", **blind},
    }
    if small.jitter:  # every reward is new, and so is every outcome
        settings = {key: options for key, options in settings.items() if "any" in key or "default" in key}
    found = {
        key: dict.fromkeys(("ceilings", "floors", "masks", "distance", "anything may follow"), 0.0) for key in settings
    }
    for seed in range(samples):
        rng = np.random.default_rng([95, seed])
        shown = {
            source: sampled_rows(world, demonstrator, small.episodes[source], rng, small.jitter)
            for source, demonstrator in small.demonstrators.items()
        }
        edges = small.edges
        if small.jitter:
            edges = cs.Bins(quantiles=32).fit([row[-1] for held in shown.values() for row in held]).edges
        counts = counts_of(world, shown, step_indexed=small.step_indexed, complete=True, population=False, edges=edges)
        for key, options in settings.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cs.AssumptionWarning)
                above = cs.value_ceilings(counts, world.horizon, high, **options, **shared)
                below = cs.value_floors(counts, world.horizon, low, **options, **shared)
                try:
                    masked = cs.provably_suboptimal(above, below, plug_in="confidence" not in options)
                except cs.ContradictionError:  # a ceiling below its floor: one of the two is wrong
                    masked = np.ones(above.q_values.shape, dtype=bool)
            values = above.values[..., alive]
            held = found[key]
            held["ceilings"] += bool((values >= best - TOLERANCE).all()) / samples
            held["floors"] += bool((below.values[..., alive] <= best + TOLERANCE).all()) / samples
            optimal = exists & (best_q >= best[..., None] - TOLERANCE)
            held["masks"] += bool(not (masked[..., alive, :] & optimal).any()) / samples
            first = (values - best) if world.stationary else (values - best)[0]
            held["distance"] += float(first.mean()) / samples
            held["anything may follow"] += float(above.unrestricted[..., alive].mean()) / samples
    return {"samples": samples, "rarest": rarest, "settings": found}


def covers(parts):
    """Limits at 0.95 hold at once in that share of 400 samples of small worlds with rare outcomes."""
    return all(  # those whose assumptions are true; the default of `rarest` is no promise
        min(found[what] for what in ("ceilings", "floors", "masks")) >= CONFIDENCE
        for part in parts.values()
        for name, found in part["settings"].items()
        if "plug-in" not in name and "default" not in name
    )
