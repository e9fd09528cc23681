"""Count a table of log rows where it is stored, with Spark, and check that DuckDB gives the same counts.

    python spark.py

A local Spark session stands in for the warehouse. Without pyspark or Java 17 the script says so and exits.
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np

import causal_shaping as cs

output = Path("out").resolve()
output.mkdir(exist_ok=True)


def skip(reason: str) -> None:
    """Say why there is nothing to do, and exit normally."""
    print(f"Skipped: {reason}")
    sys.exit(0)


# 1. Is Spark there?
if importlib.util.find_spec("pyspark") is None:
    skip("pyspark is missing. Install it: pip install 'causal-shaping[spark]'")
if shutil.which("java") is None:
    skip("Spark needs Java 17, and there is no java on the path. On Debian: apt-get install openjdk-17-jre-headless")

import ibis  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

# 2. A local session. Yours already exists: SparkSession.builder.getOrCreate()
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.warehouse.dir", str(output / "warehouse"))
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")

# 3. A table of several sources, as a warehouse would hold it: one row per step, and a column that names the source
world = cs.load_world("lavacross-easy")
files = [output / f"{name}.parquet" for name in world.demonstrators]
for name, file in zip(world.demonstrators, files, strict=True):
    world.collect(name, steps=300_000, seed=0).save(file)
rows = session.read.parquet(*map(str, files))
rows.write.mode("overwrite").partitionBy("source").saveAsTable("episodes")
session.sql(
    "SELECT source, count(*) AS steps, round(avg(reward), 4) AS reward FROM episodes GROUP BY 1 ORDER BY 1"
).show()

# 4. Count it there. Only the counts leave the cluster
table = ibis.pyspark.connect(session).table("episodes")
logs = cs.open_logs(table, state=["x", "y"], states=world.states, actions=world.actions)
print(logs)
counts = cs.count(logs)
print(counts)

# 5. The same rows counted by DuckDB, from the files
ours = cs.count(sorted(files))
equal = [np.array_equal(getattr(counts, column), getattr(ours, column)) for column in cs.Counts.COLUMNS]
print(f"sources: {', '.join(counts.sources)}; equal to DuckDB in {sum(equal)} of {len(equal)} columns")

# 6. From here on it does not matter which engine counted
counts.save(output / "counts.parquet")
session.stop()
ceilings = cs.value_ceilings(cs.Counts.load(output / "counts.parquet"), horizon=20, reward_max=-0.1, confidence=0.95)
print(ceilings.verdict)
ceilings.save(output / "phi.parquet")
print(f"Written to {output.name}: {', '.join(sorted(path.name for path in output.iterdir()))}")
