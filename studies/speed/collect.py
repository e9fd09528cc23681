"""How fast logs are collected: the compiled walk beside the same walk in plain Python.

Both walk the same tables from the same stream of uniforms and must give the same rows; only then are they timed.
"""

from types import FunctionType

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import simulate
from causal_shaping.worlds.simulate import cumulative, tables_of, watch
from studies.speed._table import MILLION, SPEED, Row, alone, best_of, in_turns, main

WORLD, DEMONSTRATOR = "lavacross-maze", "better"
PLAIN_STEPS = 200_000

# The same source without the compiler: both functions as Python runs them.
plain_watch = FunctionType(watch.py_func.__code__, {**vars(simulate), "pick": simulate.pick.py_func})


def walks(steps):
    world = cs.load_world(WORLD)
    tables = world.horizon, tables_of(world.model), cumulative(world.demonstrators[DEMONSTRATOR])
    compiled = watch(np.random.default_rng(0), PLAIN_STEPS, *tables)
    plain = plain_watch(np.random.default_rng(0), PLAIN_STEPS, *tables)
    for ours, theirs in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)

    slow = PLAIN_STEPS / MILLION / best_of(lambda: plain_watch(np.random.default_rng(0), PLAIN_STEPS, *tables))
    works = {
        "walk": lambda: watch(np.random.default_rng(0), steps, *tables),
        "collect": lambda: world.collect(DEMONSTRATOR, steps),
    }
    fast, whole = (steps / MILLION / seconds for seconds in in_turns(works, 3).values())
    yield Row("collect: the compiled walk", fast, SPEED, "plain Python", slow)
    yield Row("collect: logs, validated", whole, SPEED, "the walk alone", fast)


def rows(quick):
    yield from alone(walks, MILLION if quick else 10 * MILLION)


if __name__ == "__main__":
    main(rows, __doc__)
