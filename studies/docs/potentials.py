"""Which potential to shape with: none, the ceiling, or a best guess; measured with three agents in the paper's worlds.

    python -m studies.docs.potentials    # an hour; interrupted runs resume

- *Q-learning* on a table, greedy, without bonus or clip: regret at the paper's budget.
- *DQN* and *PPO* of Stable-Baselines3 (one thread, small budgets): the exact, unshaped return of what they learned.

Each seed has logs of its own. Figures go to `figures/potentials.json`, from which `table` makes that of
`docs/learners.md`.
"""

import argparse
import warnings
from functools import cache
from pathlib import Path

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from causal_shaping.learners.intervals import mean_interval
from studies import parts
from studies.paper.plan import BUDGETS, LOG_STEPS, WORLDS

FIGURES = Path(__file__).parent / "figures" / "potentials.json"
VERSION = 1
KINDS = ("zero", "ceiling", "mean", "quantile 0.9")
GUESSES = {"mean": "mean", "quantile 0.9": 0.9}
PLAIN = cs.Rule(bonus=0.0, clip="none")
SEEDS, DEEP_SEEDS, FIRST_SEED = 10, 3, 600
DEEP_WORLDS = {"lavacross-easy": "LavaCrossEasy", "lavacross-hard": "LavaCrossHard", "lavacross-maze": "LavaCrossMaze"}
DISCOUNT = 0.97
DQN = {"learning_rate": 2e-3, "learning_starts": 200, "target_update_interval": 200, "exploration_fraction": 0.5}
PPO = {"learning_rate": 2e-3, "n_steps": 256, "batch_size": 64}
STEPS = {"DQN": 3_000, "PPO": 4_000}


@cache
def counts_of(name, seed):
    world = cs.load_world(name)
    return cs.count([world.collect(source, LOG_STEPS, seed) for source in world.demonstrators])


def potential_of(name, seed, kind, discount=1.0):
    """A potential of a world, without step index, from logs of a seed."""
    world = cs.load_world(name)
    if kind == "zero":
        return cs.Potential.zero(world, discount=discount)
    given = (counts_of(name, seed), world.horizon, world.model.reward_range[1])
    if kind == "ceiling":
        return cs.value_ceilings(*given, discount=discount).potential(step_indexed=False)
    return cs.posterior(*given, discount=discount).potential(GUESSES[kind], step_indexed=False)


def correlation(world, phi, discount=1.0):
    """With V* of the first step, over the states in which episodes start; None for a potential that is flat."""
    order, _ = phi.space.positions(world.space)
    start = world.model.start > 0
    values, best = phi.values[order][start], world.model.optimum(world.horizon, discount=discount).values[0][start]
    return None if np.ptp(values) < 1e-12 else float(np.corrcoef(values, best)[0, 1])


def q_learning(name, kind, seed):
    world, phi = cs.load_world(name), potential_of(name, seed, kind)
    run = cs.train(world, phi, learner=PLAIN, steps=BUDGETS[name], seed=seed)
    return {"regret": float(run.step_regret[-1]), "correlation": correlation(world, phi)}


def deep(agent, name, kind, seed):
    import stable_baselines3 as sb3
    import torch

    torch.set_num_threads(1)
    world, phi = cs.load_world(name), potential_of(name, seed, kind, DISCOUNT)
    env = cs.ShapeReward(gym.make(f"causal_shaping/{DEEP_WORLDS[name]}-v0"), phi)
    settings = {"DQN": DQN, "PPO": PPO}[agent]
    learner = getattr(sb3, agent)("MlpPolicy", env, gamma=DISCOUNT, seed=seed, device="cpu", **settings)
    earned = []
    for _ in range(4):
        learner.learn(STEPS[agent] // 4, reset_num_timesteps=False)
        policy, _ = learner.predict(np.arange(len(world.states)), deterministic=True)
        earned.append(float(world.model.evaluate(np.asarray(policy), world.horizon).values[0] @ world.model.start))
    best = float(world.model.optimum(world.horizon).values[0] @ world.model.start)
    return {"returns": earned, "best": best, "correlation": correlation(world, phi, DISCOUNT)}


def tasks():
    for name in WORLDS:
        for kind in KINDS:
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                yield f"q-learning; {name}; {kind}; {seed}"
    for agent in STEPS:
        for seed in range(FIRST_SEED, FIRST_SEED + DEEP_SEEDS):
            for name in DEEP_WORLDS:
                for kind in KINDS:
                    yield f"{agent}; {name}; {kind}; {seed}"


def run_part(part):
    """Return what one agent earned with one potential from the logs of one seed."""
    agent, name, kind, seed = part.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # potentials that are no bounds; what is measured says it better
        return q_learning(name, kind, int(seed)) if agent == "q-learning" else deep(agent, name, kind, int(seed))


def table():
    """Return the table of the documentation: regret, or by how much returns fall short, and the correlation with V*."""
    found = {}
    for part, figure in parts.figures(FIGURES, VERSION).items():
        agent, world, kind, _ = part.split("; ")
        found.setdefault(f"{agent}, {world}", {}).setdefault(kind, []).append(figure)
    lines = ["|  | " + " | ".join(KINDS) + " |", "| --- |" + " ---: |" * len(KINDS)]
    for title, row in found.items():
        lines.append(f"| {title} | " + " | ".join(cell(row[kind]) for kind in KINDS) + " |")
    return [*lines, ""]


def cell(figures):
    if "regret" in figures[0]:
        text = "{:.0f} ({:.0f} to {:.0f})".format(*mean_interval(np.array([one["regret"] for one in figures])))
    else:
        short = [np.mean(one["best"] - np.array(one["returns"])) for one in figures]
        text = "{:.2f} ({:.2f} to {:.2f})".format(*mean_interval(np.array(short)))
    known = [one["correlation"] for one in figures if one["correlation"] is not None]
    return f"{text}; r {np.mean(known):.2f}" if known else text


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    parts.run_figures(FIGURES, VERSION, list(tasks()), run_part)
