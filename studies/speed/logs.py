"""How fast logs are counted and checked, beside the bare SQL query, and how much memory that takes."""

import tempfile
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import causal_shaping as cs
from causal_shaping.data.columns import logs_table
from causal_shaping.logs import check_logs
from studies.speed._table import Row, alone, beside

MILLION = 1_000_000
ROWS_A_FILE = 100
BARE = """
    select source, x, y, action, next_x, next_y, terminated, reward,
           count(*) as n, sum(reward) as reward_sum, min(reward) as reward_min, max(reward) as reward_max
    from read_parquet({}) group by all
"""


def write_rows(path, millions):
    """Write collected logs, a million rows at a time; episodes are numbered on."""
    world = cs.load_world("lavacross-maze")
    writer, first = None, 0
    for seed in range(millions):
        logs = world.collect("better", MILLION, seed=seed)
        table = logs_table(logs)
        table = table.set_column(1, "episode", pa.array(logs.episode + first))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        first += logs.episodes
    writer.close()


def write_files(folder, files):
    """Write collected logs as many small files, and return their paths."""
    table = logs_table(cs.load_world("lavacross-maze").collect("better", files * ROWS_A_FILE))
    paths = [str(folder / f"{i}.parquet") for i in range(files)]
    for i, path in enumerate(paths):
        pq.write_table(table.slice(i * ROWS_A_FILE, ROWS_A_FILE), path)
    return paths


def bare(paths):
    duckdb.connect().sql(BARE.format(paths)).fetchall()  # a new engine each time, as in count


def count(paths):
    cs.count(cs.open_logs(paths, state=["x", "y"]), check=False)


def check_rows(paths):
    check_logs(cs.open_logs(paths, state=["x", "y"]))


WORKS = {"count": count, "row check": check_rows}


def rows(quick):
    millions, files = (2, 1_000) if quick else (10, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        half, whole, text = (str(Path(folder) / name) for name in ("half.parquet", "whole.parquet", "whole.csv"))
        alone(write_rows, half, millions // 2)
        alone(write_rows, whole, millions)
        duckdb.connect().sql(f"copy (from '{whole}') to '{text}'")
        sizes = {
            f"{millions} million rows": ([whole], [whole]),
            f"{millions} million rows of CSV": ([text], [whole]),
            f"{files:,} files of {ROWS_A_FILE} rows": (small := write_files(Path(folder), files), small),
        }
        for size, (paths, queried) in sizes.items():
            for name, work in WORKS.items():
                yield alone(beside, f"{name}: {size}", partial(work, paths), "the bare query", partial(bare, queried))
        for name, work in WORKS.items():
            title = f"{name}: twice the rows, {millions} million"
            yield alone(beside, title, partial(work, [whole]), "half of them", partial(work, [half]), most=2.3)
    if not quick:
        yield from hundred_million()


def hundred_million():
    """Give what rows take that do not fit into memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "100.parquet")
        alone(write_rows, path, 100)
        for name, work in WORKS.items():
            title = f"{name}: 100 million rows"
            row = alone(beside, title, partial(work, [path]), "the bare query", partial(bare, [path]), 1)
            yield row
            yield Row(f"{title}, peak", row.peak, "MB", most=1500.0)
