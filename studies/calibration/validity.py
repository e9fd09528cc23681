"""How often bounds and limits hold in worlds whose truth comes from independent code, many worlds and samples.

- `tallied`: bounds of many random worlds, added up by feature of the world and by assumptions.
- `covered`: how often limits at a confidence hold, all at once, in many samples of a small world.
"""

import math
import warnings
from collections import defaultdict

import numpy as np
from independent import FEATURES, counts_of, optimum, rarest_share, sampled_rows
from validity import TOLERANCE, judged, random_case

import causal_shaping as cs
from studies.worlds.small import WORLDS

CONFIDENCE = 0.95


def tallied(seeds):
    """Return worlds, checks, failures and the mean share of the gap that is closed: by feature and by assumptions."""
    by_feature = {name: {"worlds": 0, "failures": 0} for name in (*FEATURES, "none of these")}
    by_assumptions = defaultdict(lambda: {"worlds": 0, "refused": 0, "failures": 0, "masked actions": 0, "closed": []})
    failures, worlds, failed = [], 0, 0
    for seed in seeds:
        case = random_case(seed)
        verdicts = judged(case)
        wrong = [(verdict.assumptions, failure) for verdict in verdicts for failure in verdict.failures]
        worlds += 1
        failed += bool(wrong)
        failures += [{"seed": int(seed), "assumptions": name, "failure": failure} for name, failure in wrong]
        for name in case.features or ("none of these",):
            by_feature[name]["worlds"] += 1
            by_feature[name]["failures"] += bool(wrong)
        for verdict in verdicts:
            held = by_assumptions[verdict.assumptions]
            held["worlds"] += 1
            held["refused"] += verdict.refused
            held["failures"] += bool(verdict.failures)
            held["masked actions"] += verdict.masked
            if not math.isnan(verdict.closed):
                held["closed"].append(verdict.closed)
    for held in by_assumptions.values():
        closed = held.pop("closed")
        held["with a vacuous gap"] = len(closed)
        held["mean share of the gap closed"] = float(np.mean(closed)) if closed else math.nan
    return {
        "worlds": worlds,
        "worlds with a failure": failed,
        "by feature": by_feature,
        "by assumptions": dict(by_assumptions),
        "failures": failures,
    }


# Confidence ------------------------------------------------------------------------------------------------------


def covered(name, samples, first_seed=0):
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
    for seed in range(first_seed, first_seed + samples):
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
