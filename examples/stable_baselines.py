"""Train Stable-Baselines3 on a MiniGrid world whose reward is shaped with ceilings from confounded logs.

    pip install stable-baselines3
    python stable_baselines.py

Agents are always evaluated by the unshaped return.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from minigrid.core.constants import OBJECT_TO_IDX
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import causal_shaping as cs

output = Path("out")
output.mkdir(exist_ok=True)
torch.set_num_threads(1)  # nets this small are faster on one core

ID = "causal_shaping/LavaCrossEasy-v0"
DISCOUNT = 0.97  # the agent's; the ceilings must have the same
CHECKPOINTS = (600, 1200, 2000)
SEEDS = range(3)
SETTINGS = {"learning_rate": 2e-3, "learning_starts": 200, "target_update_interval": 200, "exploration_fraction": 0.5}

# 1. Logs of three demonstrators who saw the wind, and what they prove
world = cs.load_world("lavacross-easy")
counts = cs.count([world.collect(name, steps=300_000, seed=0) for name in world.demonstrators])
ceilings = cs.value_ceilings(counts, horizon=world.horizon, reward_max=-0.1, confidence=0.95, discount=DISCOUNT)
print(ceilings.verdict)

# 2. A potential that is not step-indexed, because the agent does not see the step either
phi = ceilings.potential(step_indexed=False)
phi.save(output / "phi.parquet")

# 3. Does it fit the environment? Check it on ten random episodes
print(cs.check_potential(gym.make(ID), phi))
env = cs.ShapeReward(gym.make(ID), phi)
env.reset(seed=3)
over = False
while not over:
    _, reward, terminated, truncated, info = env.step(3)  # right, right, right
    over = terminated or truncated
print({key: round(value, 3) for key, value in info.items()})


# 4. Train on shaped rewards, evaluate the unshaped return
def train(potential: cs.Potential, seed: int) -> list[float]:
    """Train one agent and return its mean unshaped return at the checkpoints."""
    env = Monitor(gym.make(ID))  # inside the shaping, so that it logs the unshaped return
    judge = Monitor(gym.make(ID))
    shaped = cs.ShapeReward(env, potential)
    agent = DQN("MlpPolicy", shaped, gamma=DISCOUNT, seed=seed, device="cpu", **SETTINGS)
    earned, done = [], 0
    for checkpoint in CHECKPOINTS:
        agent.learn(checkpoint - done, reset_num_timesteps=not done)
        done = checkpoint
        judge.reset(seed=1000)  # the same starts and winds for every agent
        earned.append(float(evaluate_policy(agent, judge, n_eval_episodes=50)[0]))
    return earned


level = phi.values[~world.model.terminal].mean()  # a control: the ceilings' mean level, the same in every state
potentials = {
    "zero": cs.Potential.zero(world, discount=DISCOUNT),
    "constant": cs.Potential(np.full(len(world.states), level), world, discount=DISCOUNT),
    "ceilings": phi,
}
best = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
print(f"mean unshaped return after {CHECKPOINTS} steps; the best possible is {best:.2f}")
for name, potential in potentials.items():
    results = np.array([train(potential, seed) for seed in SEEDS])
    for seed, earned in enumerate(results):
        print(f"{name:>8}, seed {seed}: {earned.round(2)}")
    print(f"{name:>8},   mean: {results.mean(axis=0).round(2)}")
    np.save(output / f"{name}.npy", results)

# 5. Several environments at once: wrap each one for Stable-Baselines3; Gymnasium's vectors are wrapped as a whole
several = make_vec_env(ID, n_envs=4, seed=0, wrapper_class=cs.ShapeReward, wrapper_kwargs={"potential": phi})
A2C("MlpPolicy", several, gamma=DISCOUNT, seed=0, device="cpu").learn(400)
vector = cs.VectorShapeReward(gym.make_vec(ID, num_envs=4, vectorization_mode="sync"), phi)
vector.reset(seed=0)
_, rewards, _, _, info = vector.step(np.array([3, 3, 1, 1]))
print("shaped", rewards.round(2), "unshaped", info["unshaped_reward"].round(2))


# 6. Observations that are not states need a label: here the cell in which the agent is drawn
def cell_of(image: np.ndarray) -> tuple[int, int]:
    """Return (x, y) of the agent in MiniGrid's encoding of the full grid."""
    x, y = np.argwhere(image[:, :, 0] == OBJECT_TO_IDX["agent"])[0]
    return int(x), int(y)


print(cs.check_potential(gym.make(ID, observation="image"), phi, label=cell_of))
print(f"Written to {output.name}: {', '.join(sorted(path.name for path in output.iterdir()))}")
