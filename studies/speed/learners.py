"""How fast compiled learners are, beside the goal.

Ceilings with a `reward_min` are tested while a learner acts; that is measured beside a learner that does not test.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from studies.speed._table import MILLION, SPEED, Row, alone, in_turns

WORLD = "lavacross-maze"
GOAL = 20.0
"""Million steps a second of a core."""


def speeds(steps):
    world = cs.load_world(WORLD)
    phi = cs.Potential(world.model.optimum().values, world)
    counts = cs.count([world.collect(name, 20_000) for name in world.demonstrators])
    low, high = world.model.reward_range
    with warnings.catch_warnings(action="ignore"):  # optimism of ceilings that are pooled over steps
        ceilings = cs.value_ceilings(counts, world.horizon, high, confidence=0.95, reward_min=low)
        tested = ceilings.potential(step_indexed=False)
    printed = {"learner": "q-ucb-shaping"}
    arms = {
        "q-ucb-shaping": (phi, printed),
        "q-ucb": (None, {"learner": "q-ucb"}),
        "ceilings, tested": (tested, printed),
    }
    works = {
        name: lambda potential=potential, more=more: cs.train(world, potential, steps=steps, **more)
        for name, (potential, more) in arms.items()
    }
    for work in works.values():
        assert work().alarm is None  # else the test would be over
    found = {name: steps / MILLION / seconds for name, seconds in in_turns(works, 5).items()}
    shaping = found["q-ucb-shaping"]
    for name in ("q-ucb-shaping", "q-ucb"):
        yield Row(f"learner {name}: steps", found[name], SPEED, least=GOAL)
    yield Row("learner q-ucb-shaping, ceilings tested: steps", found["ceilings, tested"], SPEED, "no test", shaping)
    yield grown(works["q-ucb-shaping"], lambda: cs.train(world, phi, steps=2 * steps, **printed))


def grown(half, whole):
    seconds = in_turns({"half": half, "whole": whole}, 3)
    return Row("learner: twice the steps", seconds["whole"], "CPU s", "half of them", seconds["half"], most=2.3)


def seeds(steps):
    """Measure what running seeds in threads costs in CPU time."""
    world = cs.load_world(WORLD)
    phi = cs.Potential(world.model.optimum().values, world)

    def run(seed):
        return cs.train(world, phi, learner="q-ucb-shaping", steps=steps, seed=seed)

    def train(workers):
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, range(8)))

    seconds = in_turns({"one": lambda: train(1), "two": lambda: train(2)}, 3)
    yield Row("learner: 8 seeds on two threads", seconds["two"], "CPU s", "on one thread", seconds["one"], most=1.2)


def in_an_environment(steps):
    """Measure learners that step through an environment, beside the environment alone."""
    world, env = cs.load_world("lavacross-easy"), gym.make("causal_shaping/LavaCrossEasy-v0")
    counts = cs.count([world.collect(name, 20_000) for name in ("bad", "random")])
    belief = cs.posterior(counts, horizon=world.horizon, reward_max=-0.1)
    actions = np.random.default_rng(0).integers(len(world.actions), size=steps).tolist()

    def act():
        env.reset(seed=0)
        for action in actions:
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    options = {"posterior": (belief, {}), "q-ucb-shaping": (None, {"learner": "q-ucb-shaping"})}
    works = {
        name: lambda given=given, more=more: cs.train(env, given, steps=steps, **more)
        for name, (given, more) in options.items()
    }
    for work in works.values():
        work()  # compile
    seconds = in_turns({"alone": act, **works}, 5)
    speed = {name: steps / 1e3 / taken for name, taken in seconds.items()}
    for name in works:
        work = f"learner {name}: steps in an environment"
        yield Row(work, speed[name], "thousand/s", "the environment alone", speed["alone"])


def rows(quick):
    steps = MILLION // 2 if quick else 2 * MILLION
    yield from alone(speeds, steps)
    yield from alone(seeds, steps // 2)
    yield from alone(in_an_environment, 2_000)
