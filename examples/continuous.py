"""From a CSV file of real numbers to a DQN whose reward is shaped: states that cannot be listed.

    pip install "causal-shaping[fitted]" stable-baselines3
    python continuous.py

Logs, training and seeds are few here, so that it takes one to two minutes; real use has 10 to 100 times as many.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import causal_shaping as cs

output = Path("out")
output.mkdir(exist_ok=True)
torch.set_num_threads(1)  # nets this small are faster on one core

ID = "causal_shaping/WindyField-v0"
CHECKPOINTS = (1000, 2000, 3000)
SEEDS = range(2)
SETTINGS = {"learning_rate": 2e-3, "learning_starts": 200, "target_update_interval": 200, "exploration_fraction": 0.5}

# 1. Logs of three demonstrators who felt the wind, which the files do not hold
world = cs.load_world("windy-field")
files = []
for name in world.demonstrators:
    files.append(output / f"{name}.csv")
    world.collect(name, 10_000, seed=0).to_pandas().to_csv(files[-1], index=False)
print(pd.read_csv(files[0]).head(3).to_string(index=False))

# 2. What are they worth?
print("\n".join(cs.inspect_continuous(files, state=["x", "y"]).findings()))

# 3. Ceilings, and how far to trust them
DISCOUNT = 0.97  # the agent's; the ceilings must have the same
fitted = cs.fit_ceilings(
    files, state=["x", "y"], horizon=world.horizon, discount=DISCOUNT, reward_max=-0.1, save=output / "phi"
)
print(fitted)
print("ceilings", fitted([[6.0, 6.0], [1.0, 1.0]]).round(2), "beyond the logs", fitted.is_beyond([[20.0, 1.0]]))
fitted.plot(x="x", y="y").get_figure().savefig(output / "ceilings.png")

# 4. A potential without steps, because the agent does not see the step either
phi = cs.load_potential(output / "phi").fitted.potential(step_indexed=False)
print(cs.check_potential(gym.make(ID), phi))


# 5. Train on shaped rewards, evaluate the unshaped return
def train(potential: cs.ObservationPotential | None, seed: int) -> list[float]:
    """Train one agent and return its mean unshaped return at the checkpoints."""
    env: gym.Env = Monitor(gym.make(ID))  # inside the shaping, so that it logs the unshaped return
    judge = Monitor(gym.make(ID))
    if potential is not None:
        env = cs.ShapeReward(env, potential)
    agent = DQN("MlpPolicy", env, gamma=DISCOUNT, seed=seed, device="cpu", **SETTINGS)
    earned, done = [], 0
    for checkpoint in CHECKPOINTS:
        agent.learn(checkpoint - done, reset_num_timesteps=not done)
        done = checkpoint
        judge.reset(seed=1000)  # the same starts and winds for every agent
        earned.append(float(evaluate_policy(agent, judge, n_eval_episodes=40)[0]))
    return earned


potentials = {"no logs": None, "ceilings": phi, "best guess": fitted.potential("mean", step_indexed=False)}
print(f"mean unshaped return after {CHECKPOINTS} steps, {len(SEEDS)} seeds: too few to tell how much logs save")
for name, potential in potentials.items():
    results = np.array([train(potential, seed) for seed in SEEDS])
    print(f"{name:>10}: {results.mean(axis=0).round(2)}")
    np.save(output / f"{name.replace(' ', '-')}.npy", results)
print(f"Written to {output.name}: {', '.join(sorted(path.name for path in output.iterdir()))}")
