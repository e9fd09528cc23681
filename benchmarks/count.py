"""How fast logs are counted: `count` beside the bare SQL query, at 1, 10 and 100 million rows.

Every measurement runs in a process of its own, so that its peak of memory is its own; times are the best of three,
without the start of Python. The check of the rows is measured apart: once as it is, and once with rows put in order, as
where ends of episodes are not flagged. `python benchmarks/count.py 1 10` measures fewer sizes.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MILLION = 1_000_000
SIZES = (1, 10, 100)
REPEATS = 3
LIMIT = "1GB"
BARE = """
    select source, x, y, action, next_x, next_y, terminated, reward,
           count(*) as n, sum(reward) as reward_sum, min(reward) as reward_min, max(reward) as reward_max
    from '{}' group by all
"""


def write_rows(path, millions):
    """Write collected logs, a million rows at a time; episodes are numbered on."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import causal_shaping as cs
    from causal_shaping.io.convert import logs_table

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


def run(what, path):
    """Return a function that does the work once and gives the number of entries."""
    import duckdb

    import causal_shaping as cs

    columns = {"state": ["x", "y"]}
    if what == "bare":
        return lambda: len(duckdb.connect().sql(BARE.format(path)).fetchall())  # a new engine each time, as in count
    if what == "count":
        return lambda: len(cs.count(cs.open_logs(path, **columns), check=False))
    if what == "count, 1 GB":
        return lambda: len(cs.count(cs.open_logs(path, memory_limit=LIMIT, **columns), check=False))
    from causal_shaping.logs import check, check_logs

    if what == "check, in order":
        check.HASHED = ()
    limit = LIMIT if what == "check, 1 GB" else None
    return lambda: check_logs(cs.open_logs(path, memory_limit=limit, **columns)) and 0


def measure(what, path):
    """Measure in a process of its own."""
    answer = subprocess.run([sys.executable, __file__, "--one", what, path], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def one(what, path):
    work = run(what, path)
    seconds = []
    for _ in range(1 if what.startswith("check") else REPEATS):
        began = time.perf_counter()
        entries = work()
        seconds.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MILLION  # kilobytes to gigabytes
    print(json.dumps({"seconds": min(seconds), "entries": entries, "peak": peak}))


def main(sizes):
    print("count: lavacross-maze, rewards in the key")
    print(f"  {'rows':>12} {'what':15} {'seconds':>8} {'M rows/s':>9} {'of bare':>8} {'peak GB':>8}")
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for millions in sizes:
            path = str(Path(folder) / f"{millions}.parquet")
            write_rows(path, millions)
            bare = None
            for what in ("bare", "count", "count, 1 GB", "check", "check, 1 GB", "check, in order"):
                found = measure(what, path)
                bare = bare or found
                assert what.startswith("check") or found["entries"] == bare["entries"]
                seconds[what, millions] = found["seconds"]
                rate, ratio = millions / found["seconds"], found["seconds"] / bare["seconds"]
                numbers = f"{found['seconds']:8.2f} {rate:9.1f} {ratio:8.2f} {found['peak']:8.2f}"
                print(f"  {millions * MILLION:12,} {what:15} {numbers}")
            Path(path).unlink()
    if len(sizes) > 1:
        first, last = sizes[-2:]
        growth = {what: seconds[what, last] / seconds[what, first] for what in ("bare", "count", "check")}
        shown = ", ".join(f"{what} {times:.1f}" for what, times in growth.items())
        print(f"  {last / first:.0f} times the rows take times the seconds: {shown}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:4])
    else:
        main([int(size) for size in sys.argv[1:]] or list(SIZES))
