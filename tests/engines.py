"""Engines that the tests start by themselves: DuckDB to compare with, and a local Spark session.

Each is a function to be used with `with`, which gives a function from an Arrow table to a table of the engine.
"""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS, KEYS = 8, {"step", "day"}
"""A table of Spark is spread over so many partitions, by whichever of these columns it has: episodes are torn apart."""


def plain(rows):
    """Return a table whose labels are plain text, in another order of rows."""
    kinds = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
    return rows.take(np.random.default_rng(0).permutation(len(rows))).cast(pa.schema(kinds))


@contextmanager
def duckdb():
    """The embedded engine, with tables as the others have them."""
    connection = ibis.duckdb.connect()

    def table(rows, name="steps"):
        connection.con.register(name, plain(rows))
        return connection.table(name)

    yield table
    connection.disconnect()


@contextmanager
def spark():
    """A local session of two threads; a table is several files, spread over partitions by another key."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "3")
            # Compiling takes longest.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .getOrCreate()
        )
        connection = ibis.pyspark.connect(session)

        def table(rows, name="steps"):
            target = Path(tempfile.mkdtemp(dir=folder))
            for i, part in enumerate(np.array_split(np.arange(len(rows)), 3)):
                pq.write_table(plain(rows).take(part), target / f"part{i}.parquet")
            spread = session.read.parquet(str(target)).repartition(PARTITIONS, *KEYS.intersection(rows.column_names))
            spread.createOrReplaceTempView(name)
            return connection.table(name)

        yield table
        session.stop()
