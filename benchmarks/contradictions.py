"""How fast sources are compared: CPU seconds of `contradictions`, per pair of sources and (s, x), and how they grow.

Counts are made up: three sources of one world, of which the last is confounded in a fifth of the cells. The first size
is that of a hospital's logs (716 states, 25 actions, 487,000 rows), on which the code before it was compiled took more
than 300 CPU seconds; the others show that time grows with the number of cells. `python benchmarks/contradictions.py 10`
divides the numbers of states by 10.
"""

import sys
import time

import numpy as np

from causal_shaping import Counts, Space, contradictions


def made_up_counts(states, actions, sources, rows, outcomes, confounded=0.2, seed=0):
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


def main(divisor):
    contradictions(made_up_counts(20, 3, 3, 2000, 4))  # compile
    print("  states actions sources      pairs  found  CPU s  us a pair")
    for states, actions, sources, rows, outcomes in (
        (716, 25, 3, 487_000, 12),
        (50_000, 5, 3, 5_000_000, 3),
        (100_000, 5, 3, 10_000_000, 3),
        (200, 5, 100, 1_000_000, 3),
    ):
        counts = made_up_counts(max(20, states // divisor), actions, sources, rows // divisor, outcomes)
        began = time.process_time()
        found = contradictions(counts)
        seconds = time.process_time() - began
        size = len(counts.space.states)
        print(
            f"{size:8,} {actions:7} {sources:7} {found.compared:10,} {len(found):6,} {seconds:6.2f} "
            f"{1e6 * seconds / found.compared:10.1f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
