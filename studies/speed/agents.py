"""How fast learners are, and what shaping costs in an environment.

The compiled learners have a goal in steps a second. What steps through an environment is measured beside the
environment alone: with `ShapeReward`, by the share of the steps a second that are left. Bare and shaped environments
step in short turns, and the median over the turns of the ratio of their CPU times counts: a busy machine hits both
alike.
"""

import time

import gymnasium as gym
import minigrid  # noqa: F401 - registers its environments
import numpy as np

import causal_shaping as cs
import studies.worlds
from studies.speed._table import Row, alone, beside, in_turns

MILLION = 1_000_000
STEPS, SIDE_BY_SIDE = 800, 16
CART, GRID, MINIGRID = "CartPole-v1", "causal_shaping/LavaCrossEasy-v0", "MiniGrid-Empty-8x8-v0"
GOALS = {(CART, "16 in turn"): 0.9, (GRID, "alone"): 0.97, (GRID, "16 in turn"): 0.97, (MINIGRID, "alone"): 0.97}
"""Which share of the steps a second is to be left."""


# Learners ------------------------------------------------------------------------------------------------------------


def compiled(steps):
    """Measure the printed learners over a table."""
    world = cs.load_world("lavacross-maze")
    starts = {"q-ucb-shaping": cs.Potential(world.model.optimum().values, world), "q-ucb": None}
    works = {
        name: lambda name=name, phi=phi: cs.train(world, phi, learner=name, steps=steps) for name, phi in starts.items()
    }
    for name, seconds in in_turns(works, 5).items():
        yield Row(f"learner {name}: steps", steps / MILLION / seconds, "million/s", least=20.0)


def posterior_run(episodes):
    """Measure posterior sampling, which plans ever less often, with twice the episodes beside half of them."""
    world = cs.load_world("lavacross-easy")
    steps = 2 * episodes * world.horizon

    def learn(most):
        cs.train(world, learner="posterior", steps=steps, episodes=most)

    title = f"posterior, a run: {world.name}, {2 * episodes:,} episodes"
    return beside(title, lambda: learn(2 * episodes), "half of them", lambda: learn(episodes), 2, most=2.3)


def in_an_environment(steps):
    """Measure learners that step through an environment."""
    world, env = cs.load_world("lavacross-easy"), gym.make(GRID)
    counts = cs.count([world.collect(name, 20_000) for name in ("bad", "random")])
    belief = cs.posterior(counts, horizon=world.horizon, reward_max=-0.1)
    works = {
        "alone": lambda: step_through(env, steps),
        "posterior": lambda: cs.train(env, belief, steps=steps),
        "q-ucb-shaping": lambda: cs.train(env, learner="q-ucb-shaping", steps=steps),
    }
    for work in works.values():
        work()  # compile
    speed = {name: steps / 1e3 / seconds for name, seconds in in_turns(works, 5).items()}
    for name in list(works)[1:]:
        title = f"learner {name}: steps in an environment"
        yield Row(title, speed[name], "thousand/s", "the environment alone", speed["alone"])


# Shaping -------------------------------------------------------------------------------------------------------------


def potentials_of(name):
    """Potentials for an environment: of a fit, of an optimum and of ceilings, or of the cells of a grid."""
    if name == CART:
        world = studies.worlds.load("cart-pole")
        rows = [world.collect(source, 20_000) for source in ("good", "bad")]
        options = {"state": world.columns, "discount": 0.98, "reward_max": 1.0, "members": 1, "atoms": 21}
        return {"forest": cs.fit_ceilings(rows, **options).potential(step_indexed=False)}
    if name == MINIGRID:
        labels = [(x, y) for x in range(8) for y in range(8)]
        return {"table": cs.Potential(np.arange(64.0), cs.Space(labels, range(7), ("x", "y")))}
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(source, 20_000) for source in ("good", "random")])
    ceilings = cs.value_ceilings(counts, 20, 0.1, confidence=0.95, reward_min=-1.1)
    return {"table": cs.Potential(world.model.optimum().values, world), "ceilings": ceilings.potential()}


def shaped(name, phi):
    env = gym.make(name)
    grid = env.unwrapped
    label = (lambda _: tuple(map(int, grid.agent_pos))) if name == MINIGRID else None
    return cs.ShapeReward(env, phi, label=label)


def step_through(env, steps=STEPS):
    """Take random steps, and return their CPU seconds."""
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()
    began = time.process_time()
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - began


def step_side_by_side(envs):
    envs.reset(seed=0)
    shape = (STEPS // SIDE_BY_SIDE, SIDE_BY_SIDE)
    actions = np.random.default_rng(0).integers(envs.single_action_space.n, size=shape)
    began = time.process_time()
    for action in actions:
        envs.step(action)
    return time.process_time() - began


def wrapped(name, turns):
    """Measure shaped environments beside the bare one: alone, and, but for MiniGrid's images, side by side."""
    potentials = potentials_of(name)
    found = {"alone": ([gym.make(name), *(shaped(name, phi) for phi in potentials.values())], step_through)}
    if name != MINIGRID:
        sync = {"num_envs": SIDE_BY_SIDE, "vectorization_mode": "sync"}
        bare, *others = (gym.make_vec(name, **sync) for _ in range(len(potentials) + 1))
        vectors = map(cs.VectorShapeReward, others, potentials.values())
        found["16 in turn"] = ([bare, *vectors], step_side_by_side)
    for how, (envs, measure) in found.items():
        for env in envs:
            measure(env)  # compiles what is compiled
        taken = np.array([[measure(env) for env in envs] for _ in range(turns)])
        speed, kept = STEPS / 1e3 / np.median(taken[:, 0]), np.median(taken[:, :1] / taken, axis=0)[1:]
        for what, share in zip(potentials, kept, strict=True):
            title = f"wrapper: {name.split('/')[-1]}, {how}, {what}"
            yield Row(title, share * speed, "thousand/s", "without shaping", speed, least=GOALS.get((name, how)))


def listed(function, *arguments):
    return list(function(*arguments))


def rows(quick):
    yield from alone(listed, compiled, MILLION // 2 if quick else 2 * MILLION)
    yield alone(posterior_run, 20_000)
    yield from alone(listed, in_an_environment, 2_000)
    for name in (CART, GRID, MINIGRID):
        yield from alone(listed, wrapped, name, 30 if quick else 200)
