"""How fast learners and wrappers are, each beside what it replaces, measured in one run.

- Compiled learning beside the same updates in plain Python on NumPy tables.
- `ShapeReward` beside the bare MiniGrid environment.
- Seeds in parallel beside one after the other.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np

import causal_shaping as cs

WORLD = "lavacross-maze"
REPEATS = 5


def seconds(work, repeats=REPEATS):
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def plain_python(world, phi, steps, seed):
    """Q-UCB Shaping on NumPy tables, as one would write it down."""
    model, horizon, rng = world.model, world.horizon, np.random.default_rng(seed)
    states, actions = len(world.states), len(world.actions)
    q_values, values, visits = np.zeros((states, actions)), np.zeros(states), np.zeros((states, actions))
    iota = math.log((~model.terminal).sum() * actions * steps / 0.1)
    scale = 4 * math.sqrt(horizon * iota) * max(phi.max(), 0.0)
    s, h = rng.choice(states, p=model.start), 0
    for _ in range(steps):
        x = int(np.argmax(q_values[s]))
        u = rng.choice(len(model.noise[s]), p=model.noise[s])
        after, reward = model.next_state[s, x, u], model.reward[s, x, u]
        visits[s, x] += 1
        t = visits[s, x]
        alpha = (horizon + 1) / (horizon + t)
        ended = model.terminal[after]
        shaped = reward - phi[s] + (0.0 if ended else phi[after])
        following = 0.0 if ended else values[after]
        q_values[s, x] = (1 - alpha) * q_values[s, x] + alpha * (shaped + following + scale / math.sqrt(t))
        values[s] = min(phi[s], q_values[s].max())
        h += 1
        s, h = (rng.choice(states, p=model.start), 0) if ended or h == horizon else (after, h)
    return q_values


def play(env, steps):
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 5, steps)
    env.reset(seed=0)
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def main():
    world = cs.load_world(WORLD)
    phi = cs.Potential(world.model.optimum().values, world)
    cs.train(world, phi, steps=10)  # compile
    many, few = 2_000_000, 5_000
    compiled = many / seconds(lambda: cs.train(world, phi, steps=many))
    plain = few / seconds(lambda: plain_python(world, phi.values, few, 0), repeats=3)
    print(f"learners: {WORLD}")
    print(f"  compiled {compiled / 1e6:.1f} million steps/s, plain Python {plain:,.0f}: {compiled / plain:,.0f} times")

    bare = gym.make("causal_shaping/LavaCrossMaze-v0")
    shaped = cs.ShapeReward(gym.make("causal_shaping/LavaCrossMaze-v0"), phi)
    speeds = {"bare": 0.0, "shaped": 0.0}
    for _ in range(2 * REPEATS):  # in turns
        for name, env in (("bare", bare), ("shaped", shaped)):
            speeds[name] = max(speeds[name], 3000 / seconds(lambda env=env: play(env, 3000), repeats=1))
    share = speeds["shaped"] / speeds["bare"]
    print(f"  bare environment {speeds['bare']:,.0f} steps/s, shaped {speeds['shaped']:,.0f}: {share:.0%} remains")

    def seeds(workers):
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda seed: cs.train(world, phi, steps=1_000_000, seed=seed), range(8)))

    alone, together = seconds(lambda: seeds(1), repeats=3), seconds(lambda: seeds(2), repeats=3)
    print(f"  8 seeds on two threads: {alone / together:.2f} times as fast as on one")


if __name__ == "__main__":
    main()
