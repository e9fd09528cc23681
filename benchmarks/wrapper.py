"""What shaping costs in an environment: steps a second with `ShapeReward`, as a share of those without.

CartPole, alone and 16 side by side, bare and shaped by a forest; FrozenLake, whose states can be listed, shaped by a
table. All are measured in one run, in turns, and the best of some rounds counts.
"""

import time

import gymnasium as gym
import numpy as np
import pyarrow as pa

import causal_shaping as cs

NAMES = ("position", "velocity", "angle", "turning")
ROWS, STEPS, SIDE_BY_SIDE, ROUNDS = 20_000, 5_000, 16, 9


def logs(source, careful):
    """Rows of somebody who mostly pushes towards the side to which the pole falls, or of somebody careless."""
    env, rng = gym.make("CartPole-v1"), np.random.default_rng(careful)
    rows, episode, h = [], 0, 0
    state, _ = env.reset(seed=int(careful))
    for _ in range(ROWS):
        action = int(state[2] + 0.3 * state[3] > 0) if careful and rng.random() < 0.8 else int(rng.integers(2))
        after, reward, terminated, truncated, _ = env.step(action)
        rows.append((episode, h, *state.tolist(), action, reward, *after.tolist(), terminated, truncated))
        state, h = after, h + 1
        if terminated or truncated:
            state, _ = env.reset()
            episode, h = episode + 1, 0
    columns = ("episode", "step", *NAMES, "action", "reward", *(f"next_{name}" for name in NAMES))
    held = dict(zip((*columns, "terminated", "truncated"), zip(*rows, strict=True), strict=True))
    return pa.table({"source": [source] * ROWS, **held})


def forest():
    """The potential of a fit; its discount is CartPole's usual one."""
    rows = [logs("careful", True), logs("careless", False)]
    return cs.fit_ceilings(rows, state=NAMES, discount=0.98, reward_max=1.0, members=1, atoms=21).potential()


def seconds_alone(env, steps):
    env.action_space.seed(0)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=steps).tolist()
    began = time.process_time()
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - began


def seconds_side_by_side(env, steps):
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(2, size=(steps // SIDE_BY_SIDE, SIDE_BY_SIDE))
    began = time.process_time()
    for action in actions:
        env.step(action)
    return time.process_time() - began


def shares(bare, shaped, measure):
    """The steps a second of an environment, and the share of them that each shaped one keeps."""
    envs = {"bare": bare, **shaped}
    for env in envs.values():
        measure(env, STEPS // 10)  # compiles what is compiled
    best = dict.fromkeys(envs, np.inf)
    for _ in range(ROUNDS):
        for name, env in envs.items():
            best[name] = min(best[name], measure(env, STEPS))
    return STEPS / best["bare"], {name: best["bare"] / best[name] for name in shaped}


def main():
    phi = forest()
    table = cs.Potential(np.arange(16.0), cs.Space(range(16), range(4)))

    def vector(name):
        return gym.vector.SyncVectorEnv([lambda: gym.make(name)] * SIDE_BY_SIDE)

    print("wrapper: steps a second of CPU time, and the share that is left with shaping")
    for name, held, what in (("CartPole-v1", phi, "forest"), ("FrozenLake-v1", table, "table")):
        speed, kept = shares(gym.make(name), {what: cs.ShapeReward(gym.make(name), held)}, seconds_alone)
        print(f"  {name:14s} alone     {speed:10,.0f}   {what} {kept[what]:.0%}")
        shaped = cs.VectorShapeReward(vector(name), held)
        speed, kept = shares(vector(name), {what: shaped}, seconds_side_by_side)
        print(f"  {name:14s} {SIDE_BY_SIDE} of them {speed:10,.0f}   {what} {kept[what]:.0%}")


if __name__ == "__main__":
    main()
