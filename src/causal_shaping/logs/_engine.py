"""The embedded engine that reads files: DuckDB, locked in with the files that the user named.

It can open no other file, no address on a network, no extension. Names of files are literal: nothing in them is a
pattern, and folders called `column=value` are folders. What does not fit into memory goes to a temporary folder, not to
the user's.
"""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any

import duckdb
import ibis
import ibis.expr.operations as ops
import pyarrow as pa
from ibis.backends.sql.datatypes import DuckDBType

from causal_shaping.data.space import shortened
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.logs.table import watch
from causal_shaping.storage import InputFile, Scratch

MAX_LINE_BYTES = 2_000_000
"""A line of a CSV that is longer than this is taken for a broken file."""

BLOCK_BYTES = 2**20

INTEGER = "0|-?[1-9][0-9]*"
"""A whole number, as labels write it: 007 and 0x10 are texts."""

PLAIN = {"BIGINT": [INTEGER], "BOOLEAN": ["(?i)true|false", "(?i)t|f", "(?i)yes|no"]}
"""Of a type that DuckDB reads off a CSV, how all values of a column must be written; in one of several ways."""

SETTINGS = (
    "python_enable_replacements = false",
    "autoload_known_extensions = false",
    "autoinstall_known_extensions = false",
    "enable_external_access = false",  # for good: it cannot be undone
)


class Engine:
    """A DuckDB that can read some files, and nothing else.

    Attributes:
        files: the files.
        written: columns of CSVs that hold whole numbers, but not all written plainly: they are texts.
    """

    def __init__(self, files: Sequence[InputFile], memory_limit: str | None) -> None:
        self.files, self.written = files, set[str]()
        self._duckdb = ibis.duckdb.connect()
        self._duckdb.db_identity = object()  # Ibis would take all engines in memory for one, and their tables, too
        if memory_limit is not None:
            try:
                self._run(f"SET memory_limit = {_text(memory_limit)}")
            except Exception as error:
                raise ArgumentError(
                    f"memory_limit is {memory_limit!r}; write it as '2GB' or '500MB'. ({error})"
                ) from error
        self._run(f"SET temp_directory = {_text(_spill_folder())}")
        names = [name for file in files for name in {os.path.abspath(file.path), _literal(file)}]
        for setting in (f"allowed_paths = [{', '.join(map(_text, names))}]", *SETTINGS):
            self._run(f"SET {setting}")
        with suppress(duckdb.CatalogException):  # older versions lack the first, and cannot be locked then
            self._run("SET allowed_configs = ['disabled_optimizers']")  # see `look_at_rows`
            self._run("SET lock_configuration = true")
        watch(self._duckdb, files)

    def parquet(self, row: str | None = None, file: str | None = None) -> ibis.Table:
        """Return the rows of Parquet files; `row` and `file` are columns to add, of their number and their file."""
        options = f"hive_partitioning = false, union_by_name = false, file_row_number = {row is not None}"
        if file is not None:
            options += f", filename = {_text(file)}"
        kinds = [self._kinds(f"read_parquet({_text(_literal(one))}, {options})") for one in self.files]
        self._check_alike(kinds)
        names = ", ".join(_text(_literal(one)) for one in self.files)
        return self._table(kinds[0], f"SELECT * FROM read_parquet([{names}], {options})")

    def csv(self, file: str) -> ibis.Table:
        """Return the rows of CSV files; `file` is a column to add, of their file."""
        for one in self.files:
            _check_gzip(one)
        calls = [
            f"read_csv({_text(_literal(one))}, {self._csv_options(one)}, filename = {_text(file)})"
            for one in self.files
        ]
        kinds = [self._kinds(call) for call in calls]
        self._check_alike(kinds)
        return self._table(kinds[0], " UNION ALL ".join(f"SELECT * FROM {call}" for call in calls))

    def _csv_options(self, file: InputFile) -> str:
        """Return how a CSV is to be read: found out once, from all of it, so that all passes read it alike."""
        name, limit = _text(_literal(file)), f"max_line_size = {MAX_LINE_BYTES}"
        (found,) = self._rows(f"SELECT * FROM sniff_csv({name}, header = true, sample_size = -1, {limit})")
        signs = {"delim": "Delimiter", "quote": "Quote", "escape": "Escape", "comment": "Comment"}
        style = {option: "" if found[key] == "(empty)" else found[key] for option, key in signs.items()}
        options = ", ".join(f"{option} = {_text(sign)}" for option, sign in style.items())
        options += f", auto_detect = false, {limit}, skip = {found['SkipRows']}"
        kinds = {column["name"]: column["type"] for column in found["Columns"]}
        texts = _columns(dict.fromkeys(kinds, "VARCHAR"))
        header = self._run(f"SELECT * FROM read_csv({name}, {options}, {texts}, header = false) LIMIT 1")
        check_distinct([str(column) for column in header[0]] if header else [], str(file.path))
        doubtful = {column: ways for column, kind in kinds.items() if (ways := PLAIN.get(kind))}
        tests = [
            " OR ".join(f"bool_and(regexp_full_match(trim({_name(column)}), {_text(way)}))" for way in ways)
            for column, ways in doubtful.items()
        ]
        if tests:
            (plain,) = self._run(f"SELECT {', '.join(tests)} FROM read_csv({name}, {options}, {texts}, header = true)")
            odd = [column for column, fits in zip(doubtful, plain, strict=True) if fits is False]
            self.written |= {column for column in odd if kinds[column] == "BIGINT"}
            kinds |= dict.fromkeys(odd, "VARCHAR")
        for option, key in (("dateformat", "DateFormat"), ("timestampformat", "TimestampFormat")):
            if found[key]:
                options += f", {option} = {_text(found[key])}"
        return f"{options}, header = true, {_columns(kinds)}"

    def _check_alike(self, kinds: Sequence[dict[str, str]]) -> None:
        """Refuse parts of one log whose columns differ: those that only some have would be lost."""
        first = kinds[0]
        for file, here in zip(self.files, kinds, strict=True):
            if list(here.items()) != list(first.items()):
                differs = sorted({column for column, _ in first.items() ^ here.items()}) or ["their order"]
                raise DataError(
                    f"{self.files[0].path} and {file.path} are parts of one log, but differ in columns: "
                    f"{shortened(differs)}. Give both the same names, types and order."
                )

    def _kinds(self, call: str) -> dict[str, str]:
        """Return the columns that a reader gives, and their types."""
        return {row[0]: row[1] for row in self._run(f"DESCRIBE SELECT * FROM {call}")}

    def _table(self, kinds: dict[str, str], query: str) -> ibis.Table:
        """Return a query as a table, without the columns of types that Ibis does not know, such as maps' shapes."""
        types = {name: known for name, kind in kinds.items() if (known := _type(kind)) is not None}
        if not types:
            raise FileError("there is no column of a type that can be read")
        self._run(f"CREATE TEMP VIEW logs AS SELECT {', '.join(map(_name, types))} FROM ({query})")
        return ops.DatabaseTable("logs", schema=ibis.schema(types), source=self._duckdb).to_expr()

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._duckdb.raw_sql(statement).fetchall()  # type: ignore[no-any-return]

    def _rows(self, query: str) -> list[dict[str, Any]]:
        found = self._duckdb.raw_sql(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def table_in_memory(table: pa.Table) -> ibis.Table:
    """Return an Arrow table as one of an engine, which sees nothing else: that of Ibis is shared with the user.

    Engines of tables share one DuckDB, whose start takes longer than most of what is asked of a small table.
    """
    rows = ibis.memtable(table).op()
    backend = ibis.duckdb.from_connection(_memory(os.getpid()).cursor())
    backend.db_identity = object()
    backend.con.register("logs", rows.data.to_pyarrow(rows.schema))
    watch(backend, ())
    return ops.DatabaseTable("logs", schema=rows.schema, source=backend).to_expr()


@cache
def _memory(process: int) -> duckdb.DuckDBPyConnection:  # a fork has none of its threads
    """Return the DuckDB of tables in memory, one for each process."""
    shared = duckdb.connect()
    for setting in (f"temp_directory = {_text(_spill_folder())}", *SETTINGS):
        shared.execute(f"SET {setting}")
    return shared


_scratch = cache(Scratch)  # holds the folders of all engines, which can be a thousand


def _spill_folder() -> str:
    """Return a folder for what does not fit into an engine's memory.

    It is the empty text, with which nothing is spilled, where no temporary folder can be written to.
    """
    try:
        return tempfile.mkdtemp(dir=_scratch().path)
    except OSError:
        return ""


def check_distinct(names: Sequence[str], origin: str) -> None:
    """Refuse a table in which two columns have one name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{origin} has more than one column {shortened(map(repr, twice))}. Give each its own name.")


def _check_gzip(file: InputFile) -> None:
    """Compare what a .gz file holds with the checksum of its format, which DuckDB does not look at."""
    if file.path.name.lower().endswith(".gz"):
        with file.open() as packed, gzip.GzipFile(fileobj=packed) as held:
            while held.read(BLOCK_BYTES):
                pass


def _literal(file: InputFile) -> str:
    """Return the name of a file so that DuckDB, which takes names for patterns, finds that file and no other."""
    return re.sub(r"[*?[]", r"[\g<0>]", os.path.abspath(file.path))


@lru_cache(maxsize=1024)
def _type(kind: str) -> Any:
    """Return a type of DuckDB as one of Ibis, None if Ibis does not know it."""
    try:
        return DuckDBType.from_string(kind)
    except Exception:  # noqa: BLE001 - sqlglot and Ibis raise many kinds for a type that they do not know
        return None


def _columns(kinds: dict[str, str]) -> str:
    return "columns = {" + ", ".join(f"{_text(column)}: {_text(kind)}" for column, kind in kinds.items()) + "}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
