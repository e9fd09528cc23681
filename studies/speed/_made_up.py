"""Counts that are made up, for benchmarks of what is done with counts."""

import numpy as np

from causal_shaping import Counts, Space


def regular_counts(states, actions=5, sources=3, successors=3, shared=True, steps=1, seed=0):
    """Counts with random successors, every state left and every action tried by every source.

    `shared`: all sources see the same successors, so that their masses merge.
    """
    rng = np.random.default_rng(seed)
    size = states * actions * successors
    after = []
    for _ in range(1 if shared else sources):
        first = rng.integers(0, states, (states * actions, 1), dtype=np.int32)
        offset = np.sort(rng.integers(1, states // 2, (states * actions, successors), dtype=np.int32), axis=1)
        offset += np.arange(successors, dtype=np.int32)  # no two alike
        after.append(np.sort((first + offset) % states, axis=1).ravel())
    state = np.repeat(np.arange(states, dtype=np.int32), actions * successors)
    action = np.tile(np.repeat(np.arange(actions, dtype=np.int32), successors), states)
    blocks = sources * steps
    n = rng.integers(1, 100, size * blocks).astype(np.float64)
    columns = {
        "source": np.repeat(np.arange(sources, dtype=np.int32), size * steps),
        "step": np.tile(np.repeat(np.arange(steps, dtype=np.int32), size), sources) if steps > 1 else None,
        "state": np.tile(state, blocks),
        "action": np.tile(action, blocks),
        "next_state": np.concatenate([after[i % len(after)] for i in range(sources) for _ in range(steps)]),
        "terminated": np.zeros(size * blocks, dtype=bool),
        "n": n,
        "reward_sum": -0.1 * n,
        "reward_min": np.full(size * blocks, -0.1),
        "reward_max": np.full(size * blocks, -0.1),
    }
    return Counts(Space(range(states), range(actions)), [f"s{i}" for i in range(sources)], **columns)


def sampled_counts(states, actions, sources, rows, outcomes, confounded=0.2, seed=0):
    """Counts of sources that act at random in one world; the last sees other outcomes in a share of the cells."""
    rng = np.random.default_rng(seed)
    cells = (states, actions)
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
    return Counts.combined(Space(range(states), range(actions)), [f"s{i}" for i in range(sources)], columns)
