"""From logs to the arrays that estimators are fitted to: streamed from the engine, a batch at a time.

- `read_transitions`: the rows of several sources, their states as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from causal_shaping._checks import check_names
from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.arrays import BoolArray
from causal_shaping.data.columns import read_off
from causal_shaping.data.space import UNKNOWN, Label, plain
from causal_shaping.data.transitions import ROWS, Transitions
from causal_shaping.errors import ArgumentError, DataError, FileError
from causal_shaping.logs._columns import fault, list_shape, nesting
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import Item, keep_origin, opened_logs
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.table import LogTable, batches, fetch
from causal_shaping.storage import Scratch

IN_MEMORY = 2**30
"""Arrays of more bytes than this, taken together, lie in files."""

BATCH_BYTES = 2**24
"""About so many bytes of rows are read at a time."""

ROW_BYTES = 64
"""About so many bytes has a row, without its observation."""

Mask: TypeAlias = Callable[[npt.NDArray[Any]], npt.ArrayLike]
"""Which actions are admissible: from observations [n, *shape] to truths [n, actions]."""


def read_transitions(
    logs: Item | Iterable[Item],
    *,
    actions: Iterable[Any] | None = None,
    mask: str | Mask | None = None,
    skip_bad_episodes: bool = False,
    progress: Progress = no_progress,
    **columns: Any,
) -> Transitions:
    """Read the rows of logs whose states are numbers, in bounded memory.

    Rows come ordered by source, episode and step, whatever their order in the logs. What may be missing is read as
    `open_logs` reads it; and a next state may be missing where another row of the episode follows.

    A column that never changes, an action that is always the same, a single source: none of these is an error here.

    Args:
        logs: one or several of: files, tables, data frames, Minari data sets, what `open_logs(..., numbers=True)`
            returned, and `Logs` or `open_logs(...)` whose labels are made of integers. Each must hold sources that the
            others do not.
        actions: all actions, tried or not, in the order that tables shall have; by default those that the logs declare
            or show.
        mask: which actions are admissible: a function from observations [n, *shape] to truths [n, actions], or the
            name of a column of lists of truths, in the order of `actions`. With a column all actions are admissible in
            the last state of an episode, unless there is a column with `next_` in front of the name.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        progress: called with the number of rows that are read, and of those in all.
        columns: what the logs call their columns, as in `state=["x", "y"]`, and how they are read: see `open_logs`.
            This does not apply to logs that were opened before. The columns of a state are numbers, integers or
            booleans, and are kept with 32 bits; or there is one column of lists, nested or not, of the same lengths in
            all rows. Lists of bytes (uint8), such as images, are kept as bytes.

    Examples:
        >>> import pyarrow as pa
        >>> rows = {"episode": [0, 0], "step": [0, 1], "state": [[0.5, 1.0], [0.7, 1.1]]}
        >>> rows |= {"action": ["left", "right"], "reward": [0.0, 1.0]}
        >>> read_transitions(pa.table(rows), source="ward")
        Transitions(2 steps in 1 episodes of ward; states of shape (2,) by (state); 2 actions)
    """
    check_names(columns, "read_transitions", read_transitions, open_logs)  # also where all logs are open
    declared = None if actions is None else [plain(label) for label in actions]
    named = mask if isinstance(mask, str) else None
    tables = opened_logs(logs, numbers=True, actions=declared, mask=named, **columns)
    for i, table in enumerate(tables):
        progress(0, 1, f"Checking {table.origin}")
        tables[i] = _with_numbers(check_logs(table, skip_bad_episodes=skip_bad_episodes))
    _check_alike(tables)
    held = [_held(table) for table in tables]
    origins: dict[str, str] = {}
    for table, one in zip(tables, held, strict=True):
        for name in [table.source] if table.source is not None else one["source"].unique().sort().to_pylist():
            keep_origin(origins, name, table)
    if len(origins) > np.iinfo(ROWS["source"]).max:
        raise DataError(f"There are {len(origins):,} sources. Is the column `source` what it seems to be?")
    reader = _Reader(
        tuple(origins),
        tuple(declared) if declared is not None else _actions(tables, held),
        tables[0].shape,
        _kind(tables[0]),
        None if isinstance(mask, str) else mask,
        masked=callable(mask)
        or any("mask" in table.rows.columns or table.declared.get("admissible") for table in tables),
    )
    total = sum(sum(one["n"].to_pylist()) for one in held)
    if total == 0:
        raise DataError(f"{', '.join(table.origin for table in tables)}: there are no rows.")
    arrays = _Arrays()
    for table in tables:
        with closing(reader.blocks(table)) as blocks:
            for block in blocks:
                arrays.append(block)
                progress(reader.rows, total, f"Reading {table.origin}")
    names = tables[0].columns
    return Transitions(reader.sources, reader.actions, names, reader.shape, **arrays.whole(), files=arrays.scratch)


def transitions_of(
    logs: Item | Iterable[Item] | Transitions, columns: Mapping[str, Any], progress: Progress
) -> Transitions:
    """Return transitions as they are, and those of logs, which are read; `columns` are for `read_transitions`."""
    if not isinstance(logs, Transitions):
        return read_transitions(logs, **columns, progress=progress)
    if columns:
        raise ArgumentError(f"{next(iter(columns))}= is for logs that are to be read; these were read before.")
    return logs


def _with_numbers(table: LogTable) -> LogTable:
    """Return a table of labels as one of numbers."""
    if table.numbers:
        return table
    rows = table.rows
    for name, column in zip(table.states, table.columns, strict=True):
        if not rows[name].type().is_integer():
            raise DataError(
                f"{table.origin}: the labels of states hold text in column {column!r}. Encode it as numbers first."
            )
    parts = {name: rows[name].cast("float32") for name in (*table.states, *table.next_states)}
    known = ibis.and_(*(rows[name].notnull() for name in table.next_states))
    shape = (len(table.columns),)
    return replace(table, rows=rows.mutate(**parts, next_known=known), numbers=True, shape=shape)


def _kind(table: LogTable) -> type[np.generic]:
    """Return the type of observations: bytes where the state is a list of them."""
    depth, entry = nesting(table.rows["s0"])
    return np.uint8 if depth and entry.is_uint8() else np.float32


def _check_alike(tables: Sequence[LogTable]) -> None:
    """Refuse tables whose states differ in columns, shape or type."""
    kinds = [(table.columns, table.shape, _kind(table).__name__) for table in tables]
    for table, kind in zip(tables, kinds, strict=True):
        if kind != kinds[0]:
            (columns, shape, entry), (others, other_shape, other_entry) = kinds[0], kind
            raise DataError(
                f"{tables[0].origin} and {table.origin} have different states: {', '.join(columns)} of shape {shape} "
                f"and type {entry} against {', '.join(others)} of shape {other_shape} and type {other_entry}."
            )


def _episode(table: LogTable) -> list[str]:
    """Return the columns that tell episodes apart."""
    return ["episode"] if table.source is not None else ["source", "episode"]


def _held(table: LogTable) -> pa.Table:
    """Return how many rows there are of each source and action."""
    key = ["action"] if table.source is not None else ["source", "action"]
    return fetch(table.rows.group_by(key).aggregate(n=table.rows.count()), table.origin)


def _actions(tables: Sequence[LogTable], held: Sequence[pa.Table]) -> tuple[Label, ...]:
    """Return the actions that the logs declare or show."""
    found: dict[Label, None] = {}
    for table, one in zip(tables, held, strict=True):
        shown = table.declared.get("actions")
        if shown is None:
            shown = read_off(one, (("action",),))
            if "mask" in table.rows.columns and any(isinstance(label, str) for label in shown):
                raise ArgumentError(
                    f"{table.origin}, column {table.names['mask']!r}: masks are lists in the order of the actions. "
                    f"Declare actions in that order, such as {shown}."
                )
        found |= dict.fromkeys(shown)
    return tuple(found)


class _BadRow(Exception):
    """A row that cannot be read: how it is found again, the columns to blame, and what is wrong."""

    def __init__(self, batch: pa.RecordBatch, row: int, columns: Sequence[str], text: str) -> None:
        key = [name for name in ("source", "episode", "step") if name in batch.schema.names]
        self.key = {name: batch[name][row].as_py() for name in key}
        self.columns = columns
        self.text = text
        super().__init__(text)


@dataclass
class _Reader:
    """Makes blocks of arrays of the batches of tables, one table after another."""

    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    shape: tuple[int, ...]
    kind: type[np.generic]  # of observations
    mask: Mask | None
    masked: bool  # whether not all actions are admissible
    lists: tuple[int, ...] | None = None  # the shape of lists in the table that is being read, None for numbers
    rows: int = 0  # this and the next two: how many were read
    observations: int = 0
    episodes: int = 0

    def blocks(self, table: LogTable) -> Generator[dict[str, npt.NDArray[Any]], None, None]:
        """Yield the rows of a table, part by part, in their order."""
        table = _flattened(table)
        nested = nesting(table.rows["s0"])[0]
        self.lists = list_shape(table.rows["s0"], self.shape) if nested else None
        try:
            with closing(batches(_in_order(table), table.origin, self._batch_rows())) as stream:
                for batch in stream:
                    if batch.num_rows:
                        yield self._block(batch, table)
        except _BadRow as bad:  # only now the engine can be asked where the row stands
            raise DataError(f"{table.place(table.row_of(bad.key), *bad.columns)}: {bad.text}") from None

    def _batch_rows(self) -> int:
        return max(1, BATCH_BYTES // (ROW_BYTES + np.dtype(self.kind).itemsize * math.prod(self.shape)))

    def _block(self, batch: pa.RecordBatch, table: LogTable) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of one batch."""
        last = _array(batch["last"])
        known = last & _array(batch["next_known"])  # a row that an observation of its next state follows
        size = batch.num_rows
        place = np.arange(size) + np.cumsum(known) - known
        observations = np.empty((size + int(known.sum()), *self.shape), dtype=self.kind)
        observations[place] = self._observed(batch, np.arange(size), table.states)
        if known.any():
            observations[place[known] + 1] = self._observed(batch, np.flatnonzero(known), table.next_states)
        action = pc.index_in(batch["action"], value_set=pa.array(self.actions, batch["action"].type))
        if action.null_count:
            row = int(np.argmax(_array(action.is_null())))
            held = batch["action"][row].as_py()
            text = f"action {held!r} is not one of the declared ones. Declare it, or correct the logs."
            raise _BadRow(batch, row, ["action"], text)
        named = [table.source] * size if table.source is not None else batch["source"]
        state = self.observations + place
        followed = np.where(last & ~known, UNKNOWN, state + 1)
        begins = np.append(0, last[:-1])
        block = {
            "observations": observations,
            "state": state,
            "next_state": followed,
            "action": _array(action),
            "reward": _array(batch["reward"]),
            "terminated": _array(batch["terminated"]),
            "truncated": _array(batch["truncated"]),
            "source": _array(pc.index_in(pa.array(named, pa.string()), value_set=pa.array(self.sources, pa.string()))),
            "episode": self.episodes + np.cumsum(begins),
            "step": _array(batch["step"]),
        }
        if self.masked:
            allowed = self._allowed(batch, table, observations, place, np.flatnonzero(known))
            excluded = ~allowed[place, block["action"]]
            if excluded.any():
                row = int(np.argmax(excluded))
                held = batch["action"][row].as_py()
                text = f"action {held!r} was taken, but is not admissible there. Correct the mask, or the logs."
                raise _BadRow(batch, row, ["action"], text)
            block["mask"] = allowed
        self.rows += size
        self.observations += len(observations)
        self.episodes += int(last.sum())
        return block

    def _observed(self, batch: pa.RecordBatch, rows: npt.NDArray[np.intp], names: Sequence[str]) -> npt.NDArray[Any]:
        """Return the states, or next states, of some rows of a batch."""
        if self.lists is None:
            found = np.stack([_array(batch[name])[rows] for name in names], axis=1, dtype=self.kind)
        else:
            column = batch[names[0]].take(pa.array(rows))
            for _ in self.lists:
                column = column.flatten()
            found = _array(column)
        return found.reshape(len(rows), *self.shape)

    def _truths(self, batch: pa.RecordBatch, rows: npt.NDArray[np.intp], name: str) -> BoolArray:
        """Return the masks of some rows of a column: bool [rows, actions]; refuse those that leave an action out."""
        column, shape = batch[name].take(pa.array(rows)), (len(self.actions),)
        fits = _array(pc.fill_null(pc.equal(pc.list_value_length(column), len(self.actions)), False))
        if fits.all():
            column = column.flatten()
            fits = np.all(_array(column.is_valid()).reshape(len(rows), *shape), axis=1)
        if not fits.all():
            row = int(rows[np.argmin(fits)])
            text = f"lists must be of shape {shape}, without gaps; found {fault(batch[name][row].as_py(), shape)}. One "
            text += f"entry is needed for each of the actions {', '.join(map(repr, self.actions))}; declare them all."
            raise _BadRow(batch, row, [name], text)
        return _array(column).reshape(len(rows), *shape)

    def _allowed(
        self,
        batch: pa.RecordBatch,
        table: LogTable,
        observations: npt.NDArray[Any],
        place: npt.NDArray[np.intp],
        ends: npt.NDArray[np.intp],
    ) -> BoolArray:
        """Return which actions are admissible: bool [observations, actions].

        `place` is where the states of the rows stand, `ends` are the rows that a next state follows.
        """
        allowed = np.ones((len(observations), len(self.actions)), dtype=bool)
        if "mask" in batch.schema.names:
            allowed[place] = self._truths(batch, np.arange(batch.num_rows), "mask")
        if "next_mask" in batch.schema.names:
            ends = ends[_array(batch["next_mask"].is_valid())[ends]]
            allowed[place[ends] + 1] = self._truths(batch, ends, "next_mask")
        if admissible := table.declared.get("admissible"):
            allowed &= _admissible(admissible, self.actions, observations)
        if self.mask is not None:
            found = np.asarray(self.mask(observations))
            if found.shape != allowed.shape or found.dtype != np.bool_:
                raise ArgumentError(
                    f"mask returned {found.dtype} of shape {found.shape} for observations of shape "
                    f"{observations.shape}; it must return bool of shape {allowed.shape}, a truth for each of the "
                    f"actions {', '.join(map(repr, self.actions))}."
                )
            allowed &= found
        return allowed


def _flattened(table: LogTable) -> LogTable:
    """Return a table with flat lists: nested ones take many times the memory while rows are ordered."""
    rows, depth = table.rows, nesting(table.rows["s0"])[0]
    flat: dict[str, ibis.Column] = {}
    for name in (name for name in ("s0", "n0") if depth > 1 and name in rows.columns):
        column: Any = rows[name]
        for _ in range(depth - 1):
            column = column.flatten()
        flat[name] = column
    return replace(table, rows=rows.mutate(**flat)) if flat else table


def _in_order(table: LogTable) -> ibis.Table:
    """Return the query for the rows in their order; next states only where no row of the episode follows."""
    rows, key = table.rows, _episode(table)
    ends = rows.group_by(key).aggregate(step=rows.step.max()).mutate(last=ibis.literal(True))
    rows = rows.left_join(ends, [*key, "step"])
    last = rows["last"].fill_null(False)
    nexts = {
        name: ibis.ifelse(last, rows[name], ibis.null(rows[name].type()))
        for name in (*table.next_states, "next_mask")
        if name in rows.columns
    }
    kept = [*key, "step", *table.states, "action", "reward", "terminated", "truncated", "next_known"]
    kept += ["mask"] if "mask" in rows.columns else []
    return rows.select(*kept, last=last, **nexts).order_by([*key, "step"])


def _admissible(
    admissible: Mapping[Label, Collection[Label]], actions: Sequence[Label], observations: npt.NDArray[Any]
) -> BoolArray:
    """Return which actions exist in observations that are labels; `admissible` is that of `Space`."""
    distinct, where = np.unique(observations, axis=0, return_inverse=True)
    labels = [tuple(int(number) for number in row) for row in distinct]
    held = [admissible.get(label if len(label) > 1 else label[0], actions) for label in labels]
    return np.array([[action in admitted for action in actions] for admitted in held])[where]


def _array(column: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


class _Arrays:
    """Arrays that grow at their end: in memory, and in files once they are too large for it."""

    def __init__(self) -> None:
        self.scratch: Scratch | None = None
        self.held: dict[str, list[npt.NDArray[Any]]] = {}
        self.bytes = 0

    def append(self, block: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows to each of the arrays."""
        for name, rows in block.items():
            self.held.setdefault(name, []).append(np.ascontiguousarray(rows, dtype=ROWS.get(name, rows.dtype)))
            self.bytes += self.held[name][-1].nbytes
        if self.bytes > IN_MEMORY:
            self._write()

    def _write(self) -> None:
        """Move what is in memory to the files, but for an empty part that keeps type and shape."""
        self.scratch = self.scratch or Scratch()
        try:
            for name, parts in self.held.items():
                with (self.scratch.path / name).open("ab") as file:
                    for rows in parts:
                        file.write(rows.data)
                parts[:] = [parts[-1][:0].copy()]
        except OSError as error:
            raise FileError(
                f"The rows of the logs cannot be written to {self.scratch.path}: {error}. They need {self.bytes:,} "
                "bytes so far; TMPDIR chooses a folder with more space."
            ) from error

    def whole(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays, read-only; nothing can be added any more."""
        result: dict[str, npt.NDArray[Any]] = {}
        for name, parts in self.held.items():
            if self.scratch is None:
                result[name] = np.concatenate(parts)
                result[name].flags.writeable = False
            else:
                kind = parts[0]
                flat = np.memmap(self.scratch.path / name, kind.dtype, "r")
                result[name] = flat.reshape(-1, *kind.shape[1:])
            parts.clear()
        return result
