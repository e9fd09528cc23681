"""Asking an engine: queries in, Arrow out.

Whatever an engine cannot read becomes a `FileError` that names the log, and a file that was
changed after it was opened is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from causal_shaping.data.space import shortened
from causal_shaping.errors import CausalShapingError, FileError
from causal_shaping.logs.constants import QUERIES_TOGETHER
from causal_shaping.storage import InputFile

INTERRUPTED = "Query interrupted"
"""The message of DuckDB's error if Ctrl-C stopped a query."""


def fetch(query: ibis.Table, origin: str) -> pa.Table:
    """Run a query and return its result."""
    with reading(origin), _running(query) as backend:
        if backend.name != "pyspark":
            return query.to_pyarrow()
        # Ibis 12 converts results of Spark by way of pandas, which turns nullable integers into
        # floats and NaN into null.
        backend._run_pre_execute_hooks(query)
        rows = backend.raw_sql(backend.compile(query)).toArrow()
        return rows.cast(query.schema().to_pyarrow())


def fetch_each(queries: Sequence[ibis.Table], origins: Sequence[str]) -> list[pa.Table]:
    """Run one query for each log and return the results in their order.

    Queries of one engine whose results have the same columns are sent as one statement.
    """
    alike: dict[Any, list[int]] = defaultdict(list)
    for i, query in enumerate(queries):
        alike[id(query.get_backend()), tuple(query.schema().items())].append(i)
    results: dict[int, pa.Table] = {}
    for group in alike.values():
        for start in range(0, len(group), QUERIES_TOGETHER):
            part = group[start : start + QUERIES_TOGETHER]
            origin = shortened(origins[i] for i in part)
            if len(part) == 1:
                results[part[0]] = fetch(queries[part[0]], origin)
                continue
            # The column `log` tells the results apart again.
            rows = fetch(ibis.union(*(queries[i].mutate(log=i) for i in part)), origin)
            for i in part:
                results[i] = rows.filter(pc.equal(rows["log"], i)).drop_columns("log")
    return [results[i] for i in range(len(queries))]


def batches(query: ibis.Table, origin: str, rows: int) -> Generator[pa.RecordBatch, None, None]:
    """Run a query and yield its result, about as many rows at a time as `rows` says."""
    with reading(origin), _running(query) as backend:
        if backend.name == "pyspark":  # Ibis would bring all rows at once, too
            yield from fetch(query, origin).to_batches(max_chunksize=rows)
            return
        if backend.name != "duckdb":
            yield from query.to_pyarrow_batches(chunk_size=rows)
            return
        # Ibis 12 asks for batches by a name that DuckDB 2 no longer has, and keeps a copy of all
        # rows.
        relation = backend._to_duckdb_relation(query)
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        stream = reader(rows)
        try:
            yield from stream
        finally:
            stream.close()  # DuckDB answers no other query before


def watch(backend: Any, files: Sequence[InputFile]) -> None:
    """Let queries of an engine that this package started refuse its files once they changed."""
    backend.causal_shaping_files = tuple(files)


def is_ours(backend: Any) -> bool:
    """Return whether this package started an engine, so that nobody else uses it."""
    return hasattr(backend, "causal_shaping_files")


@contextmanager
def _running(query: ibis.Table) -> Iterator[Any]:
    """Give the engine of a query, and check its files afterwards."""
    backend = query.get_backend()
    try:
        with _reading_all_rows(backend):
            yield backend
    finally:
        for file in getattr(backend, "causal_shaping_files", ()):
            file.check_unchanged()


FROM_STATISTICS = "statistics_propagation"
"""The optimizer of DuckDB that answers from the statistics of a Parquet file. They leave NaN out,
so "is this NaN?" would be answered with no, without reading the rows. It is always off in engines
of this package."""


@contextmanager
def _reading_all_rows(backend: Any) -> Iterator[None]:
    """Keep a DuckDB of the user from answering out of statistics, for as long as a query runs."""
    if backend.name != "duckdb" or is_ours(backend):
        yield
        return
    ((before,),) = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    backend.raw_sql(f"SET disabled_optimizers = '{FROM_STATISTICS}'").fetchall()
    try:
        yield
    finally:
        with suppress(Exception):  # an engine that a query broke answers nothing
            backend.raw_sql(f"SET disabled_optimizers = '{before}'").fetchall()


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Turn the many errors of engines and file formats into a `FileError` that names the log."""
    try:
        yield
    except (CausalShapingError, Warning):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        if text == INTERRUPTED:
            raise KeyboardInterrupt from error
        if len(text) > 400:
            text = f"{text[:400]} ..."
        raise FileError(f"{origin} cannot be read: {text}") from error
