"""How fast ceilings are: a backup whose masses have upper limits, and how a whole pass grows; all on one thread.

In the first setting all sources see the same successors, so that their masses merge; in the second each sees its own.
With finite confounding masses have upper limits, and free mass fills outcomes from the best down: the backup is
measured beside one without limits.
"""

import numba
import numpy as np

from causal_shaping import value_ceilings
from causal_shaping.bounds._joint import Layer
from causal_shaping.bounds._masses import Evidence
from causal_shaping.bounds.settings import CEILING, Settings
from studies.speed._made_up import regular_counts
from studies.speed._table import Row, alone, in_turns

SUCCESSORS, REPEATS = 3, 15
SEES = {True: "shared successors", False: "own successors"}


def evidence_of(counts, confounding=np.inf):
    settings = Settings(horizon=1, reward_bound=-0.1, confounding=confounding).checked(counts)
    return Evidence(counts, settings, CEILING)


def backup_of(evidence):
    """Return a function that does one backup."""
    numba.set_num_threads(1)
    states, actions = len(evidence.counts.space.states), len(evidence.counts.space.actions)
    layer = Layer(evidence.masses(), np.zeros((states, actions), dtype=bool), CEILING)
    following, q_values = np.append(values_of(states), 0.0), np.empty((states, actions))
    return lambda: layer.backup(following, q_values)


def values_of(states):
    return np.random.default_rng(1).random(states)


def capped(states, shared):
    """Measure what upper limits of mass cost."""
    counts = regular_counts(states, successors=SUCCESSORS, shared=shared)
    works = {gamma: backup_of(evidence_of(counts, gamma)) for gamma in (np.inf, 10.0)}
    seconds = in_turns(works, REPEATS)
    work = f"capped backup: {states:,} states, {SEES[shared]}"
    yield Row(work, seconds[10.0], "CPU s", "an uncapped one", seconds[np.inf], most=3.0)


def growth(states):
    """Measure a whole pass with twice of something beside one with half of it."""
    small = {"states": states, "actions": 5, "sources": 3}
    value_ceilings(regular_counts(20), 2, -0.1)  # compile
    for name in small:
        yield grown(f"ceilings: twice the {name}", small, 10, small | {name: 2 * small[name]}, 10)
    yield grown("ceilings: twice the steps", small, 10, small, 20)
    few = small | {"states": states // 100}
    yield grown("ceilings: twice the steps, step-indexed", few | {"steps": 50}, 50, few | {"steps": 100}, 100)
    many = {"states": states // 1000, "actions": 5}
    yield grown("ceilings: twice 500 sources", many | {"sources": 500}, 10, many | {"sources": 1000}, 10)


def grown(work, small, short, large, long):
    half, whole = regular_counts(**small), regular_counts(**large)
    works = {
        "half": lambda: value_ceilings(half, short, -0.1),
        "whole": lambda: value_ceilings(whole, long, -0.1),
    }
    seconds = in_turns(works, 3)
    return Row(work, seconds["whole"], "CPU s", "half of them", seconds["half"], most=2.3)


def rows(quick):
    states = 100_000 if quick else 1_000_000
    for shared in SEES:
        yield from alone(capped, states // 10, shared)
    yield from alone(growth, states // 10)
