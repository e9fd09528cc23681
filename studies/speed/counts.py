"""How time grows with the size of counts: ceilings, and the inspection of counts. Counts are made up.

The first size of the inspection is that of a hospital's logs. Every pair of sources that took an action in a state is
compared, so that time grows with the square of the sources where all of them go everywhere.
"""

import time

import numpy as np

import causal_shaping as cs
from studies.speed._table import Row, alone, beside, peak

HOSPITAL = (716, 25, 3, 487_000, 12)
MINUTE = 60.0


def regular_counts(states, actions=5, sources=3, successors=3, steps=1):
    """Counts with random successors, every state left and every action tried by every source."""
    rng = np.random.default_rng(0)
    cells, size, blocks = states * actions, states * actions * successors, sources * steps
    first = rng.integers(0, states, (cells, 1), dtype=np.int32)
    offset = np.sort(rng.integers(1, states // 2, (cells, successors), dtype=np.int32), axis=1)
    after = np.sort((first + offset + np.arange(successors, dtype=np.int32)) % states, axis=1)  # no two alike
    n = rng.integers(1, 100, size * blocks).astype(np.float64)
    columns = {
        "source": np.repeat(np.arange(sources, dtype=np.int32), size * steps),
        "step": np.tile(np.repeat(np.arange(steps, dtype=np.int32), size), sources) if steps > 1 else None,
        "state": np.tile(np.repeat(np.arange(states, dtype=np.int32), actions * successors), blocks),
        "action": np.tile(np.repeat(np.arange(actions, dtype=np.int32), successors), states * blocks),
        "next_state": np.tile(after.ravel(), blocks),
        "terminated": np.zeros(size * blocks, dtype=bool),
        "n": n,
        "reward_sum": -0.1 * n,
        **dict.fromkeys(("reward_min", "reward_max"), np.full(size * blocks, -0.1)),
    }
    return cs.Counts(cs.Space(range(states), range(actions)), [f"s{i}" for i in range(sources)], **columns)


def sampled_counts(states, actions, sources, rows, outcomes, confounded=0.2):
    """Counts of sources that act at random in one world; the last sees other outcomes in a share of the cells."""
    rng, cells = np.random.default_rng(0), (states, actions)
    gaps = rng.integers(1, 5, (*cells, outcomes))
    after = (rng.integers(0, states, (*cells, 1)) + np.cumsum(gaps, axis=2)) % states
    law, other = (rng.dirichlet(np.full(outcomes, 0.5), cells) for _ in range(2))
    tilted = np.where(rng.random((*cells, 1)) < confounded, other, law)
    weight = rng.dirichlet(np.ones(states))
    parts = []
    for i in range(sources):
        policy = weight[:, None] * rng.dirichlet(np.full(actions, 0.5), states)
        taken = rng.multinomial(rows // sources, policy.ravel()).reshape(cells)
        n = rng.multinomial(taken, tilted if i == sources - 1 else law)
        s, x, o = np.nonzero(n)
        parts.append((np.full(len(s), i), s, x, after[s, x, o], n[s, x, o]))
    names = ("source", "state", "action", "next_state", "n")
    columns = {name: np.concatenate(column) for name, column in zip(names, zip(*parts, strict=True), strict=True)}
    nothing = np.zeros(len(columns["n"]))
    columns |= {"step": None, "terminated": nothing > 0}
    columns |= dict.fromkeys(("reward_sum", "reward_min", "reward_max"), nothing)
    return cs.Counts.combined(cs.Space(range(states), range(actions)), [f"s{i}" for i in range(sources)], columns)


def inspected(name, *sizes):
    """Measure the inspection of counts once."""
    cs.contradictions(sampled_counts(20, 3, 3, 2000, 4))  # compile
    counts = sampled_counts(*sizes)
    began = time.process_time()
    for part in (cs.contradictions, cs.coverage, cs.unseen_mass, cs.unseen_limit):
        part(counts)
    return Row(f"inspection of counts: {name}", time.process_time() - began, most=MINUTE, peak=peak())


def grown(name, small, short, large, long):
    """Measure a whole pass with twice of something beside one with half of it."""
    half, whole = regular_counts(**small), regular_counts(**large)
    ours, theirs = (lambda: cs.value_ceilings(whole, long, -0.1)), (lambda: cs.value_ceilings(half, short, -0.1))
    return beside(f"ceilings: twice {name}", ours, "half of them", theirs, most=2.3)


def rows(quick):
    states, sources = (10_000, 100) if quick else (100_000, 1_000)
    small = {"states": states, "actions": 5, "sources": 3}
    few, many = small | {"states": states // 100}, small | {"states": states // 1000, "sources": 500}
    for name in small:
        yield alone(grown, f"the {name}", small, 10, small | {name: 2 * small[name]}, 10)
    yield alone(grown, "the steps", small, 10, small, 20)
    yield alone(grown, "the steps, step-indexed", few | {"steps": 50}, 50, few | {"steps": 100}, 100)
    yield alone(grown, "500 sources", many, 10, many | {"sources": 1000}, 10)
    yield alone(inspected, "hospital, 716 states", *HOSPITAL)
    yield alone(inspected, f"{10 * states:,} states", 10 * states, 5, 3, 1000 * states, 3)
    # Each source has been in a few of the states, and then all of them in all.
    yield alone(inspected, f"{sources:,} small sources", 10_000, 5, sources, 500 * sources, 3)
    yield alone(inspected, f"{sources:,} sources everywhere", 20, 5, sources, 1000 * sources, 3)
