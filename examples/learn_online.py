"""Learn online, and trust logs as far as they turn out to be right. See docs/tutorials/learn-online.md."""

from pathlib import Path

import gymnasium as gym
import numpy as np

import causal_shaping as cs

folder = Path("out")
folder.mkdir(exist_ok=True)

world = cs.load_world("lavacross-hard")
counts = cs.count([world.collect(name, steps=100_000, seed=0) for name in world.demonstrators])
ceilings = cs.value_ceilings(counts, horizon=20, reward_max=0.1)
print(ceilings.verdict)

belief = cs.posterior(counts, horizon=20, reward_max=0.1)
print(belief.trust.summary())
belief.save(folder / "belief.parquet")

run = cs.train(world, belief, steps=20_000, seed=0)
print(run)

settings = {"steps": 20_000, "seeds": range(5)}
without = cs.train_seeds(world, None, learner="posterior", folder=folder / "no-logs", **settings)
zero = cs.train_seeds(world, None, learner="q-ucb-shaping", folder=folder / "zero", **settings)
informed = cs.train_seeds(world, belief, folder=folder / "logs", **settings)
for name, found in {"logs": informed, "no logs": without, "zero potential": zero}.items():
    print(f"{name}: regret {found.interval('regret')[0]:.1f}, optimal {found.interval('optimal')[0]:.0%}")

watching = [one for one in world.demonstrators if one != "random"]
doubtful = cs.count([world.collect(name, steps=100_000, seed=0) for name in watching])
run = cs.train(world, cs.posterior(doubtful, horizon=20, reward_max=0.1), steps=20_000, seed=0)
print(run)

optimal = world.model.gaps()[np.arange(len(world.states)), run.recommended] < 1e-3
print(f"{optimal[~world.model.terminal].mean():.0%} of the states have an optimal action")

phi = belief.potential(step_indexed=False)  # the mean of V*; belief.potential(0.9) is a quantile
env = cs.ShapeReward(gym.make("causal_shaping/LavaCrossHard-v0"), phi)
print(cs.check_potential(gym.make("causal_shaping/LavaCrossHard-v0"), phi))
env.close()
plain = cs.Rule(bonus=0.0, clip="none")
for name, potential in {"best guess": phi, "ceilings": ceilings, "zero": None}.items():
    runs = [cs.train(world, potential, learner=plain, steps=20_000, seed=seed) for seed in range(5)]
    print(f"Q-learning, {name}: regret {np.mean([one.step_regret[-1] for one in runs]):.0f}")
