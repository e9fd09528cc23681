"""How fast logs are collected: the compiled walk beside the same walk in plain Python.

Both walk the same tables from the same stream of uniforms and must give the same rows; only then are they timed.
"""

import time
from types import FunctionType

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import simulate
from causal_shaping.worlds.simulate import cumulative, tables_of, watch

WORLD, DEMONSTRATOR = "lavacross-maze", "better"
COMPILED_STEPS, PLAIN_STEPS = 10_000_000, 200_000
REPEATS = 3


# The same source without the compiler: both functions as Python runs them.
plain_watch = FunctionType(watch.py_func.__code__, {**vars(simulate), "pick": simulate.pick.py_func})


def tables():
    world = cs.load_world(WORLD)
    return world.horizon, tables_of(world.model), cumulative(world.demonstrators[DEMONSTRATOR])


def best_of(run):
    """The shortest of some runs: what the machine can do when it is left alone."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main():
    arguments = tables()
    compiled = watch(np.random.default_rng(0), PLAIN_STEPS, *arguments)
    plain = plain_watch(np.random.default_rng(0), PLAIN_STEPS, *arguments)
    for ours, theirs in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)

    fast = COMPILED_STEPS / best_of(lambda: watch(np.random.default_rng(0), COMPILED_STEPS, *arguments))
    slow = PLAIN_STEPS / best_of(lambda: plain_watch(np.random.default_rng(0), PLAIN_STEPS, *arguments))
    world = cs.load_world(WORLD)
    whole = COMPILED_STEPS / best_of(lambda: world.collect(DEMONSTRATOR, COMPILED_STEPS))
    print(f"collect: {WORLD}, demonstrator {DEMONSTRATOR}")
    print(f"  compiled walk         {fast / 1e6:8.2f} million steps a second")
    print(f"  collect, validated    {whole / 1e6:8.2f} million steps a second ({whole / fast:.0%} of the walk)")
    print(f"  plain Python          {slow / 1e6:8.2f} million steps a second")
    print(f"  compiled / plain      {fast / slow:8.0f} times")


if __name__ == "__main__":
    main()
