"""How far one machine goes: many sources, many states. Run by hand, as it takes minutes; not a part of `make bench`.

    python -m studies.speed.scale sources 250 500 1000   # of 1,000 rows each, in one file with a column `source`
    python -m studies.speed.scale files 50 100           # the same, a file for each source
    python -m studies.speed.scale states 1000000         # three rows each: count, ceilings of two steps, potential

Each stage is a row: its CPU seconds, and the most memory that the process held during it.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import causal_shaping as cs
from studies.speed._table import MILLION, Row, alone, best_of, forget_peak, peak, show

ROWS, STATES, ACTIONS, LENGTH = 1000, 200, 5, 10  # of a source, and of its episodes
ROWS_A_STATE = 3


def source_rows(name, rng):
    """Return the rows of a source that goes everywhere by chance."""
    i, states = np.arange(ROWS), rng.integers(0, STATES, ROWS + 1)
    step = i % LENGTH
    rows = {"episode": i // LENGTH, "step": step, "state": states[:-1], "action": rng.integers(0, ACTIONS, ROWS)}
    rows |= {"reward": rng.choice([0.0, -0.1], ROWS), "next_state": states[1:]}
    return pa.table(
        rows | {"terminated": np.zeros(ROWS, bool), "truncated": step == LENGTH - 1, "source": [name] * ROWS}
    )


def write_states(path, states):
    """Write rows that visit all states, a few million at a time; episodes have one step."""
    rng, writer = np.random.default_rng(0), None
    for begin in range(0, ROWS_A_STATE * states, 3 * MILLION):
        i = np.arange(begin, min(begin + 3 * MILLION, ROWS_A_STATE * states))
        state = (i // 3 * 7919 + i % 3 * 13) % states
        rows = {"source": np.where(i % 3 == 0, "a", "b"), "episode": i, "step": np.zeros_like(i), "state": state}
        rows |= {"action": rng.integers(0, 4, len(i)), "reward": rng.choice([0.0, -0.1], len(i))}
        rows |= {"next_state": (state + rng.integers(0, 50, len(i))) % states, "terminated": np.zeros(len(i), bool)}
        table = pa.table(rows | {"truncated": np.ones(len(i), bool)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def stage(work, function):
    """Return what a function returns, and its row."""
    found = []
    forget_peak()
    seconds = best_of(lambda: found.append(function()), 1)
    return found[0], Row(work, seconds, peak=peak())


def of_sources(size, each):
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    tables = [source_rows(f"s{i}", rng) for i in range(size)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"s{i}.parquet") for i in range(size if each else 1)]
        for path, table in zip(paths, tables if each else [pa.concat_tables(tables)], strict=True):
            pq.write_table(table, path)
        of = f"{size:,} sources, {'a file each' if each else 'one file'}"
        counts, row = stage(f"count: {of}", lambda: cs.count(paths))
        yield row
        yield stage(f"ceilings: {of}", lambda: cs.value_ceilings(counts, 10, 0.0))[1]
        yield stage(f"inspect: {of}", lambda: cs.inspect(paths))[1]


def of_states(size):
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        logs, saved = (str(Path(folder) / name) for name in ("logs.parquet", "potential.parquet"))
        write_states(logs, size)
        counts, row = stage(f"count: {size:,} states", lambda: cs.count(logs))
        yield row
        ceilings, row = stage(f"ceilings: {size:,} states", lambda: cs.value_ceilings(counts, 2, 0.0))
        yield row
        potential = ceilings.potential()
        yield stage(f"potential saved: {size:,} states", lambda: potential.save(saved))[1]
        yield stage(f"potential loaded: {size:,} states", lambda: cs.load_potential(saved))[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("sources", "files", "states"))
    parser.add_argument("sizes", type=int, nargs="+")
    given = parser.parse_args()
    for size in given.sizes:
        show(alone(of_states, size) if given.what == "states" else alone(of_sources, size, given.what == "files"))


if __name__ == "__main__":
    main()
