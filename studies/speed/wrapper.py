"""What shaping costs in an environment: steps a second with `ShapeReward`, as a share of those without.

- CartPole, alone and 16 side by side, shaped by a fit.
- A world of the paper's, made of MiniGrid, whose observations are numbers of states: shaped by a table, and by
  ceilings, which the wrapper also tests.
- MiniGrid's own, which encodes an image at each step, shaped by a table of cells; side by side the cell's number takes
  the place of the image, since a vector shows observations alone.

Bare and shaped environments step in short turns, and the median over the turns of the ratio of their CPU times counts:
a busy machine hits both alike.
"""

import time

import gymnasium as gym
import minigrid  # noqa: F401 - registers its environments
import numpy as np
import pyarrow as pa

import causal_shaping as cs
from studies.speed._table import Row, alone

NAMES = ("position", "velocity", "angle", "turning")
ROWS, STEPS, SIDE_BY_SIDE = 20_000, 800, 16
CART, GRID, MINIGRID = "CartPole-v1", "causal_shaping/LavaCrossEasy-v0", "MiniGrid-Empty-8x8-v0"
GOALS = {
    (CART, "16 in turn"): 0.9,
    **{(name, how): 0.97 for name in (GRID, MINIGRID) for how in ("alone", "16 in turn")},
}


def logs(source, careful):
    """Rows of somebody who mostly pushes towards the side to which the pole falls, or of somebody careless."""
    env, rng = gym.make(CART), np.random.default_rng(careful)
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


def fits():
    """The potential of a fit, with CartPole's usual discount."""
    rows = [logs("careful", True), logs("careless", False)]
    options = {"state": NAMES, "discount": 0.98, "reward_max": 1.0, "members": 1, "atoms": 21}
    return {"forest": cs.fit_ceilings(rows, **options).potential(step_indexed=False)}


def tables():
    """The optimum of the MiniGrid world, and ceilings from logs of two demonstrators."""
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 20_000) for name in ("good", "random")])
    ceilings = cs.value_ceilings(counts, 20, 0.1, confidence=0.95, reward_min=-1.1)
    return {"table": cs.Potential(world.model.optimum().values, world), "ceilings": ceilings.potential()}


def cells():
    """A potential without meaning for the cells of a grid of 8 by 8."""
    labels = [(x, y) for x in range(8) for y in range(8)]
    return {"table": cs.Potential(np.arange(64.0), cs.Space(labels, range(7), ("x", "y")))}


class Cell(gym.ObservationWrapper):
    """Shows the number of the agent's cell instead of the image, which is made all the same."""

    observation_space = gym.spaces.Discrete(64)

    def __init__(self, env):
        super().__init__(env)
        self.grid = env.unwrapped

    def observation(self, observation):
        """Return the number of the agent's cell."""
        x, y = self.grid.agent_pos
        return int(8 * x + y)


def shaped(name, phi):
    env = gym.make(name)
    grid = env.unwrapped
    label = (lambda _: tuple(map(int, grid.agent_pos))) if name == MINIGRID else None
    return cs.ShapeReward(env, phi, label=label)


def seconds_alone(env):
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=STEPS).tolist()
    began = time.process_time()
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - began


def seconds_side_by_side(env):
    env.reset(seed=0)
    shape = (STEPS // SIDE_BY_SIDE, SIDE_BY_SIDE)
    actions = np.random.default_rng(0).integers(env.single_action_space.n, size=shape)
    began = time.process_time()
    for action in actions:
        env.step(action)
    return time.process_time() - began


def shares(envs, measure, turns):
    """The steps a second of the first environment, and the share of them that each of the others keeps."""
    for env in envs:
        measure(env)  # compiles what is compiled
    taken = np.array([[measure(env) for env in envs] for _ in range(turns)])
    return STEPS / np.median(taken[:, 0]), np.median(taken[:, :1] / taken, axis=0)[1:]


def one_environment(name, make, turns):
    sync = {"num_envs": SIDE_BY_SIDE, "vectorization_mode": "sync"}
    potentials = make()
    envs = [gym.make(name), *(shaped(name, phi) for phi in potentials.values())]
    found = {"alone": shares(envs, seconds_alone, turns)}
    if name != MINIGRID:
        vectors = [gym.make_vec(name, **sync) for _ in range(len(potentials) + 1)]
        wrapped = map(cs.VectorShapeReward, vectors[1:], potentials.values())
        found["16 in turn"] = shares([vectors[0], *wrapped], seconds_side_by_side, turns)
    for how, (speed, kept) in found.items():
        for what, share in zip(potentials, kept, strict=True):
            work = f"wrapper: {name.split('/')[-1]}, {how}, {what}"
            yield Row(
                work, share * speed / 1e3, "thousand/s", "without shaping", speed / 1e3, least=GOALS.get((name, how))
            )


def minigrid_vectors(turns):
    options = {"num_envs": SIDE_BY_SIDE, "vectorization_mode": "sync", "wrappers": (Cell,)}
    bare, inner = (gym.make_vec(MINIGRID, **options) for _ in range(2))
    table = cs.Potential(np.arange(64.0), cs.Space(range(64), range(7)))
    speed, (share,) = shares([bare, cs.VectorShapeReward(inner, table)], seconds_side_by_side, turns)
    work = f"wrapper: {MINIGRID}, 16 in turn, table"
    yield Row(work, share * speed / 1e3, "thousand/s", "without shaping", speed / 1e3, least=0.97)


def rows(quick):
    yield from alone(minigrid_vectors, 30 if quick else 200)
    for name, make in ((CART, fits), (GRID, tables), (MINIGRID, cells)):
        yield from alone(one_environment, name, make, 30 if quick else 200)
