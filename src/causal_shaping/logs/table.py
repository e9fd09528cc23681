"""Logs as they lie somewhere: a file or a table of an engine, seen through one schema, not yet read.

Columns of `LogTable.rows` have fixed names, whatever the user calls them: source, episode, step, s0, s1, ... for the
parts of the state, action, reward, n0, n1, ... for the parts of the next state, terminated, truncated, h0, h1, ... for
columns that are carried along and, for files, row and file. Those with `raw_` in front hold what stands in the user's
table, for messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from causal_shaping.data.columns import read_off, row_positions
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Bins, Space
from causal_shaping.errors import ArgumentError, CausalShapingError, DataError, FileError
from causal_shaping.storage import InputFile


@dataclass(frozen=True)
class Dropped:
    """What was left out of the logs: bad episodes, their rows, and the reasons with how many rows had them."""

    episodes: int
    rows: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, eq=False, repr=False)
class LogTable:
    """Logs that have not been read yet; made by `open_logs`.

    Where states are numbers, `rows` has a column `next_known` too: whether the next state of a row, if the row is the
    last of its episode, is known.

    Attributes:
        rows: an Ibis table of any backend with the columns of this module.
        origin: where it comes from, for messages.
        names: the user's name of each column of `rows`.
        source: the source's name; None if `rows` has a column of sources.
        columns: what the parts of a state are called.
        declared: what is known of the space before the rows are read, by the arguments of `Space`; states and actions
            that are not there are read off the rows.
        reward_bins: the bins of rewards, None to find out.
        metadata: that of the file.
        sound: whether the rows have been checked.
        dropped: what `check_logs` left out.
        header: whether a line of column names comes before the first row.
        hidden: columns that are no part of the state, by the user's name: what they are called in `rows`.
        numbers: the parts of states are numbers, float32, instead of parts of a label; or there is one part, which
            holds lists of float32 or uint8. Then `fits_s0` says whether a row's list is sound, `hash_s0` tells lists
            apart, and so for `n0`; `mask` and `next_mask`, where they are known, hold a truth for each action.
        shape: that of an observation, where states are numbers.
        files: what keeps temporary files that hold the rows from being removed.
    """

    rows: ibis.Table
    origin: str
    names: Mapping[str, str]
    source: str | None
    columns: tuple[str, ...]
    declared: Mapping[str, Any] = field(default_factory=dict)
    reward_bins: Bins | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    sound: bool = False
    dropped: Dropped | None = None
    header: bool = False
    hidden: Mapping[str, str] = field(default_factory=dict)
    numbers: bool = False
    shape: tuple[int, ...] = ()
    files: Any = None

    @property
    def states(self) -> tuple[str, ...]:
        """The columns of `rows` that make a state."""
        return tuple(f"s{i}" for i in range(len(self.columns)))

    @property
    def next_states(self) -> tuple[str, ...]:
        """The columns of `rows` that make a next state."""
        return tuple(f"n{i}" for i in range(len(self.columns)))

    def row_of(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first row that holds these values, by the names of `rows`."""
        rows = self.rows
        for name, value in key.items():
            rows = rows.filter(rows[name].isnull() if value is None else rows[name] == value)
        order = ["row"] if "row" in rows.columns else ["episode", "step"]
        return dict(fetch(rows.order_by(order).limit(1), self.origin).to_pylist()[0])

    def place(self, row: Mapping[str, Any], *columns: str) -> str:
        """Return where a row stands, for messages: file, row if it is known, columns to blame, episode and step."""
        number = "" if row.get("row") is None else f", row {row['row'] + 1}{' after the header' if self.header else ''}"
        source = f"source {row['source']!r}, " if "source" in row else ""
        blamed = ", ".join(repr(self.names.get(name, name)) for name in columns)
        return (
            f"{row.get('file') or self.origin}{number}, column {blamed} ({source}episode {row['episode']!r}, step "
            f"{row.get('raw_step', row['step'])})"
        )

    def check_labels(self) -> None:
        """Refuse logs that were opened with states as numbers, where labels are needed."""
        if self.numbers:
            raise ArgumentError(
                f"{self.origin} was opened with numbers=True, but here states must be labels. Open it without, and cut "
                "real numbers into bins."
            )

    def space_of(self, table: pa.Table) -> Space:
        """Return the space: what is declared, and the rest as a fetched table shows it."""
        known = dict(self.declared)
        if "states" not in known:
            known["states"] = read_off(table, (self.states, self.next_states))
        if "actions" not in known:
            known["actions"] = read_off(table, (("action",),))
        known["terminal"] = set(known["states"]).intersection(known.get("terminal", ()))
        return Space(columns=self.columns, reward_bins=self.reward_bins, **known)

    def read(self) -> Logs:
        """Read the logs into memory, ordered by episode and step."""
        self.check_labels()
        wanted = ["episode", "step", *self.states, "action", "reward", *self.next_states, "terminated", "truncated"]
        if self.source is None:
            wanted.append("source")
        table = fetch(self.rows.select(wanted).order_by(["episode", "step"]), self.origin)
        if table.num_rows == 0:
            raise DataError(f"{self.origin} has no rows.")
        if self.source is None and len(names := table["source"].unique().to_pylist()) > 1:
            raise ArgumentError(
                f"{self.origin} holds {len(names)} sources ({', '.join(map(str, names[:8]))}). Logs are of one: name "
                "the source, or hand the file to count() as it is."
            )
        space = self.space_of(table)
        episode = table["episode"].to_numpy()
        if not pa.types.is_integer(table["episode"].type):
            _, episode = np.unique(episode.astype(str), return_inverse=True)
        columns = {name: table[name].to_numpy() for name in ("step", "reward", "terminated", "truncated")}
        columns |= {"episode": episode, **row_positions(table, space, self.states, self.next_states)}
        return Logs(space, self.source or str(table["source"][0]), **columns, metadata=self.metadata)

    def __repr__(self) -> str:
        source = f"source {self.source!r}" if self.source else "sources by column"
        return f"LogTable({self.origin}, {source}, states by ({', '.join(self.columns)}))"


def look_at_rows(table: ibis.Table) -> None:
    """Keep DuckDB from answering out of the statistics of a Parquet file, from now on.

    They leave NaN out, so that "is this NaN?" would be answered with no, without a look at the rows.
    """
    backend = table.get_backend()
    if backend.name == "duckdb":
        backend.raw_sql("SET disabled_optimizers = 'statistics_propagation'").fetchall()


@contextmanager
def looking_at_rows(table: ibis.Table) -> Iterator[None]:
    """The same for a while: counting is faster with statistics, and harmless."""
    backend = table.get_backend()
    if backend.name != "duckdb":
        yield
        return
    ((before,),) = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    look_at_rows(table)
    try:
        yield
    finally:
        with suppress(Exception):  # an engine that a file has broken answers nothing; the file is to be told of
            backend.raw_sql(f"SET disabled_optimizers = '{before}'").fetchall()


def fetch(expression: ibis.Table, origin: str) -> pa.Table:
    """Run a query and return its result; what the engine cannot read becomes a `FileError`."""
    with reading(origin), _same_files(expression) as backend:
        if backend.name != "pyspark":
            return expression.to_pyarrow()
        # Ibis 12 would go by way of pandas, where whole numbers with gaps lose digits, and NaN is missing.
        backend._run_pre_execute_hooks(expression)
        return backend.raw_sql(backend.compile(expression)).toArrow().cast(expression.schema().to_pyarrow())


def batches(expression: ibis.Table, origin: str, rows: int) -> Generator[pa.RecordBatch, None, None]:
    """Run a query and yield its result, about so many rows at a time."""
    with reading(origin), _same_files(expression) as backend:
        if backend.name == "pyspark":  # there, Ibis brings all rows at once, too
            yield from fetch(expression, origin).to_batches(max_chunksize=rows)
            return
        if backend.name != "duckdb":
            yield from expression.to_pyarrow_batches(chunk_size=rows)
            return
        # Ibis 12 asks for batches by a name that DuckDB 2 has given up, and would have it keep a copy of all rows.
        relation = backend._to_duckdb_relation(expression)
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        stream = reader(rows)
        try:
            yield from stream
        finally:
            stream.close()  # DuckDB answers no other query before


@ibis.udf.scalar.builtin
def md5(text: str) -> str:
    """Return the hexadecimal digits of a hash, by a function that engines have under this name."""
    raise NotImplementedError


def drawn(table: LogTable, episodes: ibis.Table, seed: int) -> ibis.Column:
    """Return a text for each episode that orders them at random: the same on every engine, by their names alone."""
    source = episodes["source"] if table.source is None else ibis.literal(table.source)
    return md5(ibis.literal(f"{seed}/") + source + "/" + episodes["episode"].cast("string"))


def watch(backend: Any, files: Sequence[InputFile]) -> None:
    """Remember the files that an engine reads, for `fetch` and `batches` to notice when one was changed."""
    backend.causal_shaping_files = tuple(files)


def is_ours(backend: Any) -> bool:
    """Return whether an engine is one that we started to read files, and that nobody else uses."""
    return hasattr(backend, "causal_shaping_files")


INTERRUPTED = "Query interrupted"
"""What DuckDB's error says if Ctrl-C stopped a query."""


@contextmanager
def _same_files(expression: ibis.Table) -> Iterator[Any]:
    """Give the engine of a query; refuse what was read if one of its files is no longer the one that was opened."""
    backend = expression.get_backend()
    try:
        yield backend
    finally:
        for file in getattr(backend, "causal_shaping_files", ()):
            file.check_unchanged()


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """Turn the errors of engines and file formats, which are of many kinds, into a `FileError` that names the file."""
    try:
        yield
    except (CausalShapingError, Warning):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        if text == INTERRUPTED:
            raise KeyboardInterrupt from error
        raise FileError(f"{origin} cannot be read: {text[:400]}{' ...' if len(text) > 400 else ''}") from error
