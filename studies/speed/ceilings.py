"""How fast ceilings are: one backup beside a scipy CSR product over the same entries, and how a whole pass grows.

1,000,000 states x 5 actions x 3 successors x 3 sources are 45 million entries. In the first setting all sources see
the same successors, so that their masses merge into 15 million outcomes; in the second each sees its own, and all 45
million stay. With finite confounding masses have upper limits, and free mass fills outcomes from the best down: the
backup is measured beside one without limits. All on one thread.
"""

import numba
import numpy as np
from scipy.sparse import csr_array

from causal_shaping import value_ceilings
from causal_shaping.bounds._joint import Layer
from causal_shaping.bounds._masses import Evidence
from causal_shaping.bounds.settings import CEILING, Settings
from studies.speed._made_up import regular_counts
from studies.speed._table import Row, alone, best_of, forget_peak, in_turns, main, peak

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


def backup(states, shared):
    """Measure a backup beside a CSR product over the same entries."""
    counts = regular_counts(states, successors=SUCCESSORS, shared=shared)
    starts = np.arange(0, len(counts) + 1, SUCCESSORS, dtype=np.int64)
    matrix = csr_array((counts.n, counts.next_state, starts), shape=(len(starts) - 1, states))
    following, evidence = values_of(states), evidence_of(counts)
    building = best_of(evidence.masses, 1)
    works = {"backup": backup_of(evidence), "product": lambda: matrix @ following}
    seconds = in_turns(works, REPEATS)
    size = f"{states:,} states, 3 sources, {SEES[shared]}"
    yield Row(f"masses: {size}", building, "CPU s", "CSR product", seconds["product"])
    yield Row(f"backup: {size}", seconds["backup"], "CPU s", "CSR product", seconds["product"])


def memory(states, shared):
    """Measure the peak of building masses and one backup beside the counts' own arrays; needs a process of its own."""
    held = peak()
    counts = regular_counts(states, successors=SUCCESSORS, shared=shared)
    own = sum(getattr(counts, name).nbytes for name in counts.COLUMNS if getattr(counts, name) is not None) / 1e6
    forget_peak()
    backup_of(evidence_of(counts))()
    yield Row(f"backup: memory, {states:,} states, {SEES[shared]}", peak() - held, "MB", "the counts' arrays", own)


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
        yield from alone(backup, states, shared)
    for shared in SEES:
        yield from alone(memory, states, shared)
    for shared in SEES:
        yield from alone(capped, states // 10, shared)
    yield from alone(growth, states // 10)


if __name__ == "__main__":
    main(rows, __doc__)
