"""How fast ceilings are: one backup beside a scipy CSR product over the same entries, and how a whole pass grows.

1,000,000 states x 5 actions x 3 successors x 3 sources are 45 million entries. In the first setting all sources see
the same successors, so that their masses merge into 15 million outcomes; in the second each sees its own, and all 45
million stay. With finite confounding masses have upper limits, and free mass fills outcomes from the best down: the
backup is measured beside one without limits. Times are the best of several, taken in turns. Memory is the peak while
masses are built and one backup runs, above what Python held before there were counts, as a multiple of the counts' own
arrays. `python benchmarks/ceilings.py 100000` takes fewer states.
"""

import gc
import sys
import time
from pathlib import Path

import numba
import numpy as np
from scipy.sparse import csr_array

from causal_shaping import Counts, Space, value_ceilings
from causal_shaping.bounds._joint import Layer
from causal_shaping.bounds._masses import Evidence
from causal_shaping.bounds.settings import CEILING, Settings

ACTIONS, SUCCESSORS, SOURCES, REPEATS = 5, 3, 3, 15


def made_up_counts(states, sources=SOURCES, shared=True, steps=1, seed=0):
    """Counts with random successors, every state left and every action tried by every source."""
    rng = np.random.default_rng(seed)
    size = states * ACTIONS * SUCCESSORS
    after = []
    for _ in range(1 if shared else sources):
        first = rng.integers(0, states, (states * ACTIONS, 1), dtype=np.int32)
        offset = np.sort(rng.integers(1, states // 2, (states * ACTIONS, SUCCESSORS), dtype=np.int32), axis=1)
        offset += np.arange(SUCCESSORS, dtype=np.int32)  # no two alike
        after.append(np.sort((first + offset) % states, axis=1).ravel())
    state = np.repeat(np.arange(states, dtype=np.int32), ACTIONS * SUCCESSORS)
    action = np.tile(np.repeat(np.arange(ACTIONS, dtype=np.int32), SUCCESSORS), states)
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
    space = Space(range(states), range(ACTIONS))
    return Counts(space, [f"s{i}" for i in range(sources)], **columns)


def best_of(work, repeats=REPEATS):
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def memory(what):
    """Resident memory in bytes: "VmRSS" now, "VmHWM" at its peak since the last `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def forget_peak():
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def backup_of(evidence, threads):
    """Return a function that does one backup."""
    numba.set_num_threads(threads)
    states = len(evidence.counts.space.states)
    layer = Layer(evidence.masses(), np.zeros((states, ACTIONS), dtype=bool), CEILING)
    following, q_values = np.append(made_up_values(states), 0.0), np.empty((states, ACTIONS))
    return lambda: layer.backup(following, q_values)


def made_up_values(states):
    return np.random.default_rng(1).random(states)


def one_setting(states, shared):
    gc.collect()
    before = memory("VmRSS")
    counts = made_up_counts(states, shared=shared)
    own = sum(getattr(counts, name).nbytes for name in counts.COLUMNS if getattr(counts, name) is not None)
    forget_peak()
    evidence = Evidence(counts, Settings(horizon=1, reward_bound=-0.1).checked(counts), CEILING)
    building = best_of(evidence.masses, repeats=1)
    work = {"one": backup_of(evidence, 1)}
    work["one"]()
    peak = (memory("VmHWM") - before) / own
    work["two"] = backup_of(evidence, 2)

    rows = SOURCES * states * ACTIONS
    starts = np.arange(rows + 1, dtype=np.int64) * SUCCESSORS
    matrix, following = csr_array((counts.n, counts.next_state, starts), shape=(rows, states)), made_up_values(states)
    work["product"] = lambda: matrix @ following
    seconds = dict.fromkeys(work, np.inf)
    for _ in range(REPEATS):
        for name, once in work.items():
            seconds[name] = min(seconds[name], best_of(once, repeats=1))
    one, two, product = seconds["one"], seconds["two"], seconds["product"]
    print(
        f"  {len(counts):12,} {len(evidence.masses().lower):12,} {building:8.2f} {product:8.3f} {one:8.3f} "
        f"{one / product:8.2f} {two / product:8.2f} {peak:8.2f}"
    )


def limited(states, confounding):
    """Print what upper limits of mass cost: one backup with them as a multiple of one without, on one thread."""
    for shared in (True, False):
        counts, work = made_up_counts(states, shared=shared), {}
        for gamma in (np.inf, confounding):
            settings = Settings(horizon=1, reward_bound=-0.1, confounding=gamma).checked(counts)
            work[gamma] = backup_of(Evidence(counts, settings, CEILING), 1)
        seconds = dict.fromkeys(work, np.inf)
        for _ in range(REPEATS):
            for gamma, once in work.items():
                seconds[gamma] = min(seconds[gamma], best_of(once, repeats=1))
        what = "the same" if shared else "its own"
        ratio = seconds[confounding] / seconds[np.inf]
        print(f"  each source sees {what} successors: {ratio:.2f} times a backup without limits")


def growth(name, small, large):
    """Print how the time of a whole pass grows with one size; `small` and `large` are (counts, horizon)."""
    seconds = [best_of(lambda c=c, h=h: value_ceilings(c, h, -0.1), repeats=3) for c, h in (small, large)]
    print(f"  twice the {name}: {seconds[1] / seconds[0]:.2f} times the seconds")


def main(states):
    value_ceilings(made_up_counts(20), 2, -0.1)  # compile
    print("ceilings: seconds; one backup as a multiple of the CSR product; memory as a multiple of the counts' arrays")
    print("        entries     outcomes    build  product   backup 1 thread 2 thread   memory")
    for shared in (True, False):
        one_setting(states, shared)
    size = states // 10
    print(f"masses with upper limits, confounding 10, {size:,} states:")
    limited(size, 10.0)
    print(f"a whole pass over {size:,} states, 3 sources, 10 steps:")
    base = (made_up_counts(size), 10)
    growth("states", base, (made_up_counts(2 * size), 10))
    growth("sources", base, (made_up_counts(size, sources=2 * SOURCES), 10))
    growth("steps", base, (base[0], 20))
    growth("steps, kept apart", (made_up_counts(size // 5, steps=5), 5), (made_up_counts(size // 5, steps=10), 10))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
