"""Count a table that grows by a day each night: the counts of new days are added to those before.

    python by_day.py

It writes a small table, partitioned by day, into the folder `out`, and counts it day by day.
"""

import os
from pathlib import Path

import ibis
import numpy as np
import pandas as pd

import causal_shaping as cs

output = Path("out")
output.mkdir(exist_ok=True)
os.chdir(output)

# 1. A table by day, as a warehouse would hold it: a folder for each day, and in it the episodes that began on it
world = cs.load_world("lavacross-easy")
days = [f"2026-11-{day:02}" for day in range(1, 6)]


def write(day, seed):
    """Write the rows of a day, of two sources."""
    rows = pd.concat([world.collect(name, 60_000, seed=seed).to_pandas() for name in ("bad", "random")])
    rows["episode"] = day + "/" + rows["episode"].astype(str)
    folder = Path("episodes") / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_parquet(folder / "rows.parquet")


for seed, day in enumerate(days):
    write(day, seed)


# 2. The counts of a day
def counts_of(day):
    """Count the logs of a day; the column `source` names their sources."""
    file = Path("episodes") / f"day={day}" / "rows.parquet"
    return cs.count(cs.open_logs(file, state=["x", "y"], states=world.states, actions=world.actions))


# 3. The first night: three days are there
counts = sum(counts_of(day) for day in days[:3])
counts.save("counts.parquet")
print(counts.summary())

# 4. Each night after it: add what is new
for day in days[3:]:
    counts = cs.Counts.load("counts.parquet") + counts_of(day)
    counts.save("counts.parquet")
    print(f"{counts.n.sum():,.0f} rows after {day}")

# 5. The same from a table of an engine: of Spark, ibis.pyspark.connect(session).table("episodes")
table = ibis.duckdb.connect().read_parquet("episodes/*/rows.parquet", hive_partitioning=True)
columns = {"state": ["x", "y"], "states": world.states, "actions": world.actions}
by_day = sum(cs.count(cs.open_logs(table.filter(table.day == day), **columns)) for day in days)

# 6. Day by day or all at once, from files or from a table: the counts are the same
at_once = cs.count(cs.open_logs(table, **columns))
for found in (by_day, cs.Counts.load("counts.parquet")):
    equal = [np.array_equal(getattr(found, name), getattr(at_once, name)) for name in cs.Counts.COLUMNS]
    print(f"{found.n.sum():,.0f} rows; equal to all at once in {sum(equal)} of {len(equal)} columns")

# 7. Go on with the counts
ceilings = cs.value_ceilings(cs.Counts.load("counts.parquet"), horizon=20, reward_max=-0.1, confidence=0.95)
print(ceilings.verdict)
