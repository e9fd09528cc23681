"""Choose the settings of the field study's rivals, in worlds that are not of the study.

    python -m studies.speed.tuning_field                 # all rivals: about three minutes
    python -m studies.speed.tuning_field replay psrl
    python -m studies.speed.tuning_field bcq cql dovi    # separate ones: about half an hour; DOVI needs causalrl

Prints the mean regret of each setting over that of posterior sampling without logs, in 18 worlds of four shapes with
logs of confounding none to strong. The best ones are `studies.field.rivals.SETTINGS`.
"""

import itertools
import math
import sys
import warnings

import numpy as np

from studies.field import materials, methods, plan

WORLD_SEED, LOG_SEED, SEEDS = 3_000_000, 3_100_000, range(3_200_000, 3_200_003)
STEPS = 5_000
SHAPES = ("dense", "wide", "walk", "stages")
BONUSES = ((0, 0.01), (0, 0.1), (0.1, 0), (0.1, 0.01), (0.1, 0.1), (0.03, 0.01), (0.03, 0.1), (0.3, 0.01), (0.3, 0.1))
WIDE = [{"bonus": 0.03, "lower_order": 0.01, "width": 3.0}]
GRIDS = {
    "psrl": [{"prior": prior} for prior in (0.1, 0.3, 1.0, 3.0, 6.0)],
    "naive-model": [{"prior": prior, "most": most} for prior in (0.3, 1.0, 3.0) for most in (5, 20, 100, math.inf)],
    "ucbvi": [{"bonus": bonus, "lower_order": order} for bonus, order in (*BONUSES, (1.0, 0.1))],
    "envelopes": WIDE
    + [
        {"bonus": bonus, "lower_order": order, "width": width}
        for bonus, order in ((0.1, 0.01), (0, 0.1), (0.03, 0.01), (0.3, 0.01), (0.3, 0.1), (1.0, 0.1), (0.1, 0.3))
        for width in (0.03, 0.1, 0.3, 1.0)
    ],
    "naive-q": [{"most": most} for most in (1, 3, 5, 10, 20, 30, 100, 1_000)] + [{"most": 10, "explore": 0.02}],
    "replay": [
        {"initial": initial, "replays": replays, "rate": rate}
        for initial in ("vacuous", "fitted")
        for replays, rate in ((4, 0.03), (16, 0.03), (16, 0.01), (64, 0.03), (64, 0.01), (64, 0.005), (128, 0.005))
    ],
    "paper": [{}, *({"bonus": 0.0, "clip": clip} for clip in ("zero", "none", "potential"))],
    "behaviour": [{"combine": combine, "bonus": 0.0, "clip": "none"} for combine in ("min", "avg", "max")],
}
STATIONARY = {"timed": False, "discount": 0.95, "updates": 5_000}
"""The best of what a network sees, its discount and its training, by BCQ with an exploration of 0.05."""

SEPARATE = {
    "bcq": [
        {"threshold": (0.1, 0.0)} | change
        for change in (
            *({"every": every} for every in (4, 1)),
            *({"rate": rate} for rate in (3e-3, 3e-4)),
            *({"explore": explore} for explore in (0.2, 0.0)),
            *({"updates": 5_000}, {"batch": 128}, {"timed": False, "discount": 0.95}),
            *({"threshold": threshold} for threshold in ((0.0, 0.0), (0.03, 0.0), (0.3, 0.0), (0.1, 0.1), (0.1, 0.03))),
            *(STATIONARY | {"discount": discount} for discount in (0.9, 0.95, 0.99)),
            STATIONARY | {"explore": 0.02},
        )
    ],
    "cql": [{"conservative": (0.1, 0.0)}]
    + [STATIONARY | {"conservative": (weight, 0.0)} for weight in (0.03, 0.1, 0.3)]
    + [STATIONARY | {"conservative": (0.03, 0.0), "explore": 0.02}],
    "dovi": [{"bonus": bonus} for bonus in (0.03, 0.1, 0.3, 1.0)],
}


def cases():
    """Return the tuning cases: every other combination of shape, skill and confounding."""
    for i, (confounding, skill) in enumerate(itertools.product(("none", "mild", "strong"), ("good", "bad", "mixed"))):
        for j, shape in enumerate(SHAPES):
            if (i + j) % 2 == 0:
                rows = (500, 3_000, 20_000)[(i + j) // 2 % 3]
                yield plan.Case("random", shape, 500 + i, skill, confounding, rows)


def main():
    plan.WORLD_SEED, materials.LOG_SEED = WORLD_SEED, LOG_SEED
    warnings.simplefilter("ignore")
    held = [materials.Materials(case) for case in cases()]

    def regret(name):
        return np.array([np.mean([methods.RUNNERS[name](one, STEPS, seed).sum() for seed in SEEDS]) for one in held])

    without = regret("no-logs")
    print(f"posterior: {np.mean(regret('posterior') / without):.2f}", flush=True)
    for name in sys.argv[1:] or GRIDS:
        for setting in (GRIDS | SEPARATE)[name]:
            methods.SETTINGS[name] = setting
            print(f"{name} {setting}: {np.mean(regret(name) / without):.2f}", flush=True)


if __name__ == "__main__":
    main()
