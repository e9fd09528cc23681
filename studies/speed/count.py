"""How fast logs are counted: `count` and the row check beside the bare SQL query, and how much memory they take.

Times are taken in turns; what is said to have a peak of memory then runs once more in a process of its own.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import causal_shaping as cs
from causal_shaping.io.convert import logs_table
from causal_shaping.logs import check_logs
from studies.speed._table import MILLION, Row, alone, best_of, in_turns

LIMIT = "1GB"
BARE = """
    select source, x, y, action, next_x, next_y, terminated, reward,
           count(*) as n, sum(reward) as reward_sum, min(reward) as reward_min, max(reward) as reward_max
    from read_parquet({}) group by all
"""
YARDSTICK = "the bare query"
FILES, ROWS_A_FILE = 10_000, 100


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
    return []


def write_files(folder, files):
    """Write collected logs as many small files, and return their paths."""
    logs = cs.load_world("lavacross-maze").collect("better", files * ROWS_A_FILE)
    table, paths = logs_table(logs), [str(folder / f"{i}.parquet") for i in range(files)]
    for i, path in enumerate(paths):
        pq.write_table(table.slice(i * ROWS_A_FILE, ROWS_A_FILE), path)
    return paths


def bare(paths):
    return len(duckdb.connect().sql(BARE.format(paths)).fetchall())  # a new engine each time, as in count


def opened(paths, limit=None):
    return cs.open_logs(paths, state=["x", "y"], memory_limit=limit)


def count(paths, limit=None):
    return len(cs.count(opened(paths, limit), check=False))


def check_rows(paths, limit=None):
    check_logs(opened(paths, limit))


def once(work, *arguments):
    """Give a row without a name: for its peak of memory."""
    yield Row("", best_of(lambda: work(*arguments), 1))


def of_size(paths, millions):
    """Time everything in turns; the peaks are of other processes."""
    assert bare(paths) == count(paths)
    works = {
        "bare": lambda: bare(paths),
        "count": lambda: count(paths),
        f"count, {LIMIT}": lambda: count(paths, LIMIT),
        "row check": lambda: check_rows(paths),
        f"row check, {LIMIT}": lambda: check_rows(paths, LIMIT),
    }
    seconds = in_turns(works, 3)
    for name in list(works)[1:]:
        work = f"{name}: {millions} million rows"
        yield Row(work, seconds[name], "CPU s", YARDSTICK, seconds["bare"])


def of_files(paths):
    works = {
        "bare": lambda: bare(paths),
        "count": lambda: count(paths),
        "count and row check": lambda: cs.count(opened(paths)),
    }
    seconds = in_turns(works, 2)
    for name in list(works)[1:]:
        work = f"{name}: {len(paths):,} files of {ROWS_A_FILE} rows"
        yield Row(work, seconds[name], "CPU s", YARDSTICK, seconds["bare"])


def growth(half, whole, millions):
    """Time twice the rows beside the half of them."""
    for name, work in (("count", count), ("row check", check_rows)):
        seconds = in_turns({"half": lambda work=work: work(half), "whole": lambda work=work: work(whole)}, 3)
        work = f"{name}: twice the rows, {millions} million"
        yield Row(work, seconds["whole"], "CPU s", "half of them", seconds["half"], most=2.3)


def rows(quick):
    millions = 2 if quick else 10
    with tempfile.TemporaryDirectory() as folder:
        half, whole = ([str(Path(folder) / f"{name}.parquet")] for name in ("half", "whole"))
        alone(write_rows, half[0], millions // 2)
        alone(write_rows, whole[0], millions)
        peaks = {"count": (count, whole), "row check": (check_rows, whole)}
        peaks |= {f"{name}, {LIMIT}": (*peaks[name], LIMIT) for name in ("count", "row check")}
        for row in alone(of_size, whole, millions):
            [other] = alone(once, *peaks[row.work.split(":")[0]])
            yield replace(row, peak=other.peak)
        yield from alone(growth, half, whole, millions)
    with tempfile.TemporaryDirectory() as folder:
        yield from alone(of_files, write_files(Path(folder), FILES // 10 if quick else FILES))
    if not quick:
        yield from hundred_million()


def hundred_million():
    """Give what counting with the row check takes where rows do not fit into memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "100.parquet")
        alone(write_rows, path, 100)
        [theirs] = alone(once, bare, [path])
        for name, work, goal in (("count", count, None), ("row check", check_rows, 1500.0)):
            [found] = alone(once, work, [path])
            yield replace(found, work=f"{name}: 100 million rows", yardstick=YARDSTICK, theirs=theirs.ours)
            if goal is not None:
                yield Row(f"{name}: 100 million rows, peak", found.peak, "MB", most=goal)
