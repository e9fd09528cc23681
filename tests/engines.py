"""Engines that the tests start by themselves: DuckDB to compare with, a local Spark session, a PostgreSQL server.

Each is a function to be used with `with`, which gives a function from an Arrow table to a table of the engine.
"""

import glob
import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PARTITIONS, KEYS = 8, {"step", "day"}
"""A table of Spark is spread over so many partitions, by whichever of these columns it has: episodes are torn apart."""
SERVER = ("initdb", "pg_ctl")


def programs():
    """Return where the programs of a PostgreSQL server are: on the path, or where Debian puts them."""
    places = [shutil.which(SERVER[0]), *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)]
    folders = [Path(place).resolve().parent for place in places if place]
    return next((folder for folder in folders if all((folder / name).exists() for name in SERVER)), None)


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


@contextmanager
def postgres():
    """A server in a temporary folder, reached by a socket in it; not as root, which it refuses."""
    folder = tempfile.mkdtemp()
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, user["user"])

    def run(program, *arguments):
        command = [programs() / program, "-D", f"{folder}/data", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=60, **user)

    try:
        run("initdb", "-U", "tester", "--auth", "trust", "-E", "UTF8", "--locale", "C", "--no-sync")
        run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", f"-c listen_addresses='' -k {folder} -c fsync=off", "start")
        try:
            connection = ibis.postgres.connect(host=folder, user="tester", database="postgres")

            def table(rows, name="steps"):
                with connection.begin() as cursor:  # Ibis 12 loses the name when it is to overwrite
                    cursor.execute(f'DROP TABLE IF EXISTS "{name}"')
                return connection.create_table(name, plain(rows))

            yield table
            connection.disconnect()
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def missing(engine):
    """Return why an engine cannot be started here, None if it can."""
    if engine == "spark" and shutil.which("java") is None:
        return "Spark needs Java 17: apt-get install openjdk-17-jre-headless"
    if engine == "postgres" and programs() is None:
        return "there is no PostgreSQL server: apt-get install postgresql"
    if engine == "postgres" and importlib.util.find_spec("psycopg") is None:
        return "PostgreSQL needs psycopg: pip install 'psycopg[binary]'"
    return None


def parameter(engine):
    """Return an engine as a parameter of tests; those of a file share one session of it."""
    skip = pytest.mark.skipif(missing(engine) is not None, reason=str(missing(engine)))
    return pytest.param(globals()[engine], id=engine, marks=skip)
