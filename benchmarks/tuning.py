"""How the presets were chosen: one bonus and one rate_offset for all grid worlds, and one bonus of the causal model.

Regret at the paper's budgets as a share of the printed method's on the same logs and seeds, and the geometric mean over
the worlds; for the causal model also the share of states in which the recommended action is optimal. Logs (seed 77) and
seeds (10,000 and up) are for tuning alone; no report or test uses them.
"""

import warnings

import numpy as np

import causal_shaping as cs
from causal_shaping.learners.seeds import optimal_ratios

LOG_SEED, SEEDS = 77, range(10_000, 10_050)
STEPS = {"windy-empty": 100_000}
FEWER, CAUSAL_BONUSES = range(10_000, 10_012), (0.05, 0.1, 0.15, 0.2, 0.3)
BONUSES, MEMORIES = (0.0, 0.02, 0.05, 0.1), (5.0, 8.0, 10.0, None)


def mean_regret(world, potential, learner, **changes):
    steps = STEPS.get(world.name, 20_000)
    return np.mean(
        [
            cs.train(world, potential, learner=learner, steps=steps, seed=seed, **changes).step_regret[-1]
            for seed in SEEDS
        ]
    )


def main():
    warnings.simplefilter("ignore", cs.AssumptionWarning)
    problems = []
    for name in cs.list_worlds():
        if name == "walking-robot":
            continue
        world = cs.load_world(name)
        counts = cs.count([world.collect(who, 100_000, seed=LOG_SEED) for who in world.demonstrators])
        paper = cs.value_ceilings(counts, world.horizon, 0.0, method="paper").potential(step_indexed=False)
        joint = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
        problems.append((world, joint, counts, mean_regret(world, paper, "q-ucb-shaping")))
    print("tuning:", ", ".join(world.name for world, *_ in problems))
    for bonus in BONUSES:
        for rate_offset in MEMORIES:
            shares = [
                mean_regret(world, joint, "q-ucb-shaping-tight", bonus=bonus, rate_offset=rate_offset) / printed
                for world, joint, _, printed in problems
            ]
            shown = " ".join(f"{share:6.2f}" for share in shares)
            mean = np.exp(np.mean(np.log(shares)))
            print(
                f"  bonus {bonus:4} offset {rate_offset or 'H':>4}: {shown}   geometric mean {mean:.3f}",
                flush=True,
            )
    for bonus in CAUSAL_BONUSES:
        cells = []
        for world, joint, counts, printed in problems:
            steps = STEPS.get(world.name, 20_000)
            runs = [
                cs.train(world, joint, learner="ucbvi-causal", steps=steps, seed=seed, counts=counts, bonus=bonus)
                for seed in FEWER
            ]
            regret = np.mean([run.step_regret[-1] for run in runs]) / printed
            optimal = np.mean([optimal_ratios(world.model, run.recommended)[1] for run in runs])
            cells.append(f"{regret:.2f} ({optimal:.3f})")
        print(f"  causal model, bonus {bonus:4}: {'  '.join(cells)}   regret (optimal actions)", flush=True)


if __name__ == "__main__":
    main()
