"""Logs that are open but not read yet: rows of an engine, with one schema for all logs.

The columns of `LogTable.rows` are source, episode, step, s0, s1, ... for the parts of the state,
action, reward, n0, n1, ... for the parts of the next state, terminated, truncated, h0, h1, ... for
columns that are carried along and, for files, row and file. Those with `raw_` in front hold the
values of the user's table, for messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from causal_shaping.data.columns import read_off, row_positions
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs.queries import fetch


@dataclass(frozen=True)
class Dropped:
    """What was left out of logs: bad episodes, their rows, and the number of rows by reason."""

    episodes: int
    rows: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, eq=False, repr=False)
class LogTable:
    """Logs that have not been read yet; made by `open_logs`.

    Attributes:
        rows: an Ibis table of any backend with the columns of this module. Where states are
            numbers, it has those of `number_states` and `mark_known` too.
        origin: where it comes from, for messages.
        names: the user's name of each column of `rows`.
        source: the source's name; None if `rows` has a column of sources.
        columns: what the parts of a state are called.
        declared: what is known of the space before the rows are read, by the arguments of `Space`;
            states and actions that it lacks are read off the rows.
        metadata: that of the file.
        sound: whether the rows have been checked.
        dropped: what `check_logs` left out.
        header: whether a line of column names comes before the first row.
        hidden: the columns that are carried along: the user's name to the name in `rows`.
        shape: that of an observation, if states are numbers: float32, or there is one part of
            lists of float32 or uint8. Empty if states are labels.
    """

    rows: ibis.Table
    origin: str
    names: Mapping[str, str]
    source: str | None
    columns: tuple[str, ...]
    declared: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    sound: bool = False
    dropped: Dropped | None = None
    header: bool = False
    hidden: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[int, ...] = ()

    @property
    def numbers(self) -> bool:
        """Whether states are numbers instead of labels."""
        return self.shape != ()

    @property
    def states(self) -> tuple[str, ...]:
        """The columns of `rows` that make a state."""
        return tuple(f"s{i}" for i in range(len(self.columns)))

    @property
    def next_states(self) -> tuple[str, ...]:
        """The columns of `rows` that make a next state."""
        return tuple(f"n{i}" for i in range(len(self.columns)))

    @property
    def episode_key(self) -> list[str]:
        """The columns that tell episodes apart."""
        if self.source is None:
            return ["source", "episode"]
        return ["episode"]

    def sources_of(self, table: pa.Table) -> list[str]:
        """Return the names of the sources in a table that was fetched."""
        if self.source is not None:
            return [self.source]
        return list(table["source"].unique().sort().to_pylist())

    def row_of(self, key: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first row that holds these values, by the names of `rows`."""
        rows = self.rows
        for name, value in key.items():
            # In SQL, nothing equals NULL.
            condition = rows[name].isnull() if value is None else rows[name] == value
            rows = rows.filter(condition)
        order = ["episode", "step"]
        if "row" in rows.columns:
            order = ["row"]
        return dict(fetch(rows.order_by(order).limit(1), self.origin).to_pylist()[0])

    def place(self, row: Mapping[str, Any], *columns: str) -> str:
        """Return where a row is, for messages: file, row, columns to blame, episode and step."""
        number, source = "", ""
        if row.get("row") is not None:
            number = f", row {row['row'] + 1}" + " after the header" * self.header
        if "source" in row:
            source = f"source {row['source']!r}, "
        blamed = ", ".join(repr(self.names.get(name, name)) for name in columns)
        return (
            f"{row.get('file') or self.origin}{number}, column {blamed} ({source}episode "
            f"{row['episode']!r}, step {row.get('raw_step', row['step'])})"
        )

    def check_labels(self) -> None:
        """Refuse logs that were opened with states as numbers, where labels are needed."""
        if self.numbers:
            raise ArgumentError(
                f"{self.origin} was opened with numbers=True, but here states must be labels. Open "
                "it without, and cut real numbers into bins."
            )

    def space_of(self, table: pa.Table) -> Space:
        """Return the space: what is declared, and the rest as a table that was fetched shows it."""
        known = dict(self.declared)
        if "states" not in known:
            known["states"] = read_off(table, (self.states, self.next_states))
        if "actions" not in known:
            known["actions"] = read_off(table, (("action",),))
        known["terminal"] = set(known["states"]).intersection(known.get("terminal", ()))
        return Space(columns=self.columns, **known)

    def read(self) -> Logs:
        """Read the logs into memory, ordered by episode and step."""
        self.check_labels()
        wanted = [*self.episode_key, "step", *self.states, "action", "reward"]
        wanted += [*self.next_states, "terminated", "truncated"]
        table = fetch(self.rows.select(wanted).order_by(["episode", "step"]), self.origin)
        if table.num_rows == 0:
            raise DataError(f"{self.origin} has no rows.")
        sources = self.sources_of(table)
        if len(sources) > 1:
            raise ArgumentError(
                f"{self.origin} holds {len(sources)} sources ({', '.join(sources[:8])}). Logs are "
                "of one: name the source, or hand the file to count() as it is."
            )
        space = self.space_of(table)
        episode = table["episode"].to_numpy()
        if not pa.types.is_integer(table["episode"].type):
            _, episode = np.unique(episode.astype(str), return_inverse=True)
        names = ("step", "reward", "terminated", "truncated")
        columns = {name: table[name].to_numpy() for name in names} | {"episode": episode}
        columns |= row_positions(table, space, self.states, self.next_states)
        return Logs(space, sources[0], **columns, metadata=self.metadata)

    def __repr__(self) -> str:
        source = "sources by column"
        if self.source:
            source = f"source {self.source!r}"
        return f"LogTable({self.origin}, {source}, states by ({', '.join(self.columns)}))"


@ibis.udf.scalar.builtin
def md5(text: str) -> str:
    """Return the hexadecimal digits of a hash, by a function that all engines have."""
    raise NotImplementedError


def drawn(table: LogTable, episodes: ibis.Table, seed: int) -> ibis.Column:
    """Return a text for each episode that puts episodes in random order.

    It depends on their names alone, so it is the same on every engine.
    """
    source = ibis.literal(table.source)
    if table.source is None:
        source = episodes["source"]
    return md5(ibis.literal(f"{seed}/") + source + "/" + episodes["episode"].cast("string"))
