"""Whether a shaped environment keeps its memory however long an agent acts: resident memory over many steps.

CartPole shaped by a function, alone and 16 side by side; images that never repeat, whose potential is costly, so that
the wrapper keeps the latest values; a MiniGrid world shaped by ceilings, which the wrapper tests. The first tenth of
the steps warms up; memory must not grow by more than 20 MB after it.

    python -m studies.speed.soak [--steps 1000000] [--only LavaCross]
"""

import argparse
import os
from pathlib import Path

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from studies.speed._table import Row, alone, show

SIDE_BY_SIDE, MOST_GROWTH = 16, 20.0


class Height(cs.ObservationPotential):
    """The mean of an observation, said to be costly if it is an image."""

    @property
    def costly(self):
        """Images are."""
        return len(self.shape) > 1

    def values(self, observations, h):
        """Return the means."""
        return observations.reshape(len(observations), -1).mean(axis=1).astype(np.float64)


class Noise(gym.Env):
    """Images that never repeat."""

    observation_space = gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Start an episode."""
        super().reset(seed=seed)
        return self._seen(), {}

    def step(self, action):
        """Give another image; one step in twenty is the last."""
        return self._seen(), 1.0, self.np_random.random() < 0.05, False, {}

    def _seen(self):
        return self.np_random.integers(256, size=(8, 8, 3), dtype=np.uint8)


def megabytes():
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def worlds():
    """Give the name of each environment, how to make it, and its potential."""
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 20_000) for name in ("good", "random")])
    ceilings = cs.value_ceilings(counts, 20, 0.1, confidence=0.95, reward_min=-1.1).potential()
    yield "CartPole", lambda: gym.make("CartPole-v1"), Height(shape=(4,), discount=0.99)
    yield "images", Noise, Height(shape=(8, 8, 3), dtype="uint8", discount=0.99)
    yield "LavaCross", lambda: gym.make("causal_shaping/LavaCrossEasy-v0"), ceilings


def act_alone(env, steps, rng):
    for action in rng.integers(env.action_space.n, size=steps).tolist():
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def act_side_by_side(env, steps, rng):
    for action in rng.integers(env.single_action_space.n, size=(steps // SIDE_BY_SIDE, SIDE_BY_SIDE)):
        env.step(action)


def soak(steps, only=None):
    for name, make, phi in worlds():
        if only not in (None, name):
            continue
        vector = gym.vector.SyncVectorEnv([make] * SIDE_BY_SIDE)
        for how, env, act in (
            ("alone", cs.ShapeReward(make(), phi), act_alone),
            (f"{SIDE_BY_SIDE} in turn", cs.VectorShapeReward(vector, phi), act_side_by_side),
        ):
            rng = np.random.default_rng(0)
            env.reset(seed=0)
            act(env, steps // 10, rng)
            held = megabytes()
            act(env, steps - steps // 10, rng)
            yield Row(f"soak: {name}, {how}, {steps:,} steps", megabytes() - held, "MB more", most=MOST_GROWTH)


def rows(quick):
    yield from alone(soak, 20_000 if quick else 100_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1_000_000, help="of each environment")
    parser.add_argument("--only", help="one of the environments: CartPole, images, LavaCross")
    given = parser.parse_args()
    show(alone(soak, given.steps, given.only))
