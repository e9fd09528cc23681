"""From logs to the arrays that estimators are fitted to: streamed from the engine, a batch at a time.

- `read_transitions`: the rows of several sources, their states as numbers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.space import UNKNOWN, Label, plain
from causal_shaping.data.transitions import ROWS, Transitions
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.labels import read_off
from causal_shaping.logs._columns import Flag
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import Item, keep_origin, opened_logs
from causal_shaping.logs.table import LogTable, batches, fetch

IN_MEMORY = 2**30
"""By default, arrays of more bytes than this lie in files."""

BATCH_BYTES = 2**24
"""About so many bytes of observations are read at a time."""


def read_transitions(
    logs: Item | Iterable[Item],
    *,
    source: str | None = None,
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    next_state: str | Sequence[str] | None = None,
    episode: str = "episode",
    step: str = "step",
    first_step: int = 0,
    terminated: Flag = "terminated",
    truncated: Flag = "truncated",
    actions: Iterable[Any] | None = None,
    check: bool = True,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
    in_memory: int = IN_MEMORY,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Transitions:
    """Read the rows of logs whose states are numbers, in bounded memory.

    Rows come ordered by source, episode and step, whatever their order in the logs. What may be missing is read as
    `open_logs` reads it; and a next state may be missing where another row of the episode follows.

    A column that never changes, an action that is always the same, a single source: none of these is an error here.

    Args:
        logs: one or several of: files, tables, data frames, Minari data sets, what `open_logs(..., numbers=True)`
            returned, and `Logs` or `open_logs(...)` whose labels are made of integers. Each must hold sources that the
            others do not.
        source: the name of the logs' origin, where there is one log; see `open_logs`.
        state: the columns of the state, all of them numbers; integers and booleans count as numbers. They are kept
            with 32 bits.
        action: this and the following up to `truncated`: see `open_logs`. They apply to all logs but those that were
            opened before.
        reward: the column of the reward.
        next_state: the columns of the next state.
        episode: the column that identifies the episode.
        step: the column that numbers the steps.
        first_step: the number of an episode's first step.
        terminated: the column of ends, or several, or values.
        truncated: the same for cuts.
        actions: all actions, tried or not, in the order that tables shall have; by default those that the logs declare
            or show.
        check: look for bad rows first, see `check_logs`. Numbers that are not finite are refused all the same.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        memory_limit: for files, the most memory that DuckDB may use, such as "2GB"; it orders rows on disk beyond.
        in_memory: arrays of more bytes than this, taken together, are kept in files.
        folder: where these files are written; by default in a temporary folder, which is removed with the result.
        progress: called with the number of rows that are read, and of those in all.
    """
    declared = None if actions is None else [plain(label) for label in actions]
    options = {
        "source": source,
        "state": state,
        "action": action,
        "reward": reward,
        "next_state": next_state,
        "episode": episode,
        "step": step,
        "first_step": first_step,
        "terminated": terminated,
        "truncated": truncated,
        "actions": declared,
        "memory_limit": memory_limit,
    }
    tables = opened_logs(logs, numbers=True, **options)
    if check:
        tables = [check_logs(table, skip_bad_episodes=skip_bad_episodes) for table in tables]
    tables = [_with_numbers(table) for table in tables]
    for table in tables[1:]:
        if table.columns != tables[0].columns:
            raise DataError(
                f"{tables[0].origin} and {table.origin} have states of different columns: "
                f"{', '.join(tables[0].columns)} against {', '.join(table.columns)}."
            )
    names = [_sources(table) for table in tables]
    origins: dict[str, str] = {}
    for table, held in zip(tables, names, strict=True):
        for name in held:
            keep_origin(origins, name, table)
    if len(origins) > np.iinfo(ROWS["source"]).max:
        raise DataError(f"There are {len(origins):,} sources. Is the column `source` what it seems to be?")
    shape = (len(tables[0].columns),)
    reader = _Reader(tuple(origins), _actions(tables, declared), shape)
    columns = _Columns(in_memory, folder)
    total = sum(_size(table) for table in tables)
    if total == 0:
        raise DataError(f"{', '.join(table.origin for table in tables)}: there are no rows.")
    try:
        for table in tables:
            for block in reader.blocks(table):
                columns.append(block)
                progress(reader.rows, total, f"Reading {table.origin}")
        arrays = columns.arrays()
    except BaseException:
        columns.close()
        raise
    return Transitions(reader.sources, reader.actions, tables[0].columns, shape, **arrays, files=columns.temporary)


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
    return replace(table, rows=rows.mutate(**parts, next_known=known), numbers=True)


def _sources(table: LogTable) -> list[str]:
    """Return the names of the sources that a table holds, in their order."""
    if table.source is not None:
        return [table.source]
    return sorted(fetch(table.rows.select("source").distinct(), table.origin)["source"].to_pylist())


def _size(table: LogTable) -> int:
    """Return the number of rows."""
    return int(fetch(table.rows.aggregate(n=table.rows.count()), table.origin)["n"][0].as_py())


def _actions(tables: Sequence[LogTable], declared: Sequence[Label] | None) -> tuple[Label, ...]:
    """Return the actions: those that were declared, or those that the logs declare or show."""
    if declared is not None:
        return tuple(declared)
    held = [
        read_off(fetch(table.rows.select("action").distinct(), table.origin), (("action",),))
        if table.declared_actions is None
        else table.declared_actions
        for table in tables
    ]
    return tuple(dict.fromkeys(label for labels in held for label in labels))


@dataclass
class _Reader:
    """Makes blocks of arrays of the batches of tables, one table after another."""

    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    shape: tuple[int, ...]
    rows: int = 0  # this and the next two: how many were read
    observations: int = 0
    episodes: int = 0

    def blocks(self, table: LogTable) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Yield the rows of a table, part by part, in their order."""
        for batch in batches(_in_order(table), table.origin, self._batch_rows()):
            if batch.num_rows:
                yield self._block(batch, table)

    def _batch_rows(self) -> int:
        return max(1, BATCH_BYTES // (4 * int(np.prod(self.shape))))

    def _block(self, batch: pa.RecordBatch, table: LogTable) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of one batch."""
        last = _array(batch["last"])
        known = last & _array(batch["next_known"])  # a row that an observation of its next state follows
        size = batch.num_rows
        place = np.arange(size) + np.cumsum(known) - known
        observations = np.empty((size + int(known.sum()), *self.shape), dtype=np.float32)
        for i, name in enumerate(table.states):
            observations[place, i] = _array(batch[name])
        for i, name in enumerate(table.next_states if known.any() else ()):
            observations[place[known] + 1, i] = _array(batch[name])[known]
        finite = np.isfinite(observations).all(axis=tuple(range(1, observations.ndim)))
        if not finite.all():
            row = int(np.searchsorted(place, np.argmin(finite), side="right")) - 1
            raise DataError(
                f"{self._place(batch, row, table, *table.states)}: the state must be made of finite numbers."
            )
        action = pc.index_in(batch["action"], value_set=pa.array(self.actions, batch["action"].type))
        if action.null_count:
            row = int(np.argmax(_array(action.is_null())))
            raise DataError(
                f"{self._place(batch, row, table, 'action')}: action {batch['action'][row].as_py()!r} is not one of "
                "the declared ones. Declare it, or correct the logs."
            )
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
        self.rows += size
        self.observations += len(observations)
        self.episodes += int(last.sum())
        return block

    def _place(self, batch: pa.RecordBatch, row: int, table: LogTable, *columns: str) -> str:
        key = [name for name in ("source", "episode", "step") if name in batch.schema.names]
        return table.place_of({name: batch[name][row].as_py() for name in key}, *columns)


def _in_order(table: LogTable) -> ibis.Table:
    """Return the query for the rows in their order; next states only where no row of the episode follows."""
    rows = table.rows
    key = ["episode"] if table.source is not None else ["source", "episode"]
    ends = rows.group_by(key).aggregate(step=rows.step.max()).mutate(last=ibis.literal(True))
    rows = rows.left_join(ends, [*key, "step"])
    last = rows["last"].fill_null(False)
    nexts = {
        name: ibis.ifelse(last, rows[name], ibis.null(rows[name].type()))
        for name in table.next_states
        if name in rows.columns
    }
    kept = [*key, "step", *table.states, "action", "reward", "terminated", "truncated", "next_known"]
    return rows.select(*kept, last=last, **nexts).order_by([*key, "step"])


def _array(column: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


class _Columns:
    """Arrays that grow at their end: in memory, and in files once they are too large for it."""

    def __init__(self, in_memory: int, folder: str | os.PathLike[str] | None) -> None:
        self.in_memory = in_memory
        self.folder = folder
        self.temporary: tempfile.TemporaryDirectory[str] | None = None
        self.held: dict[str, list[npt.NDArray[Any]]] = {}
        self.files: dict[str, BinaryIO] = {}
        self.bytes = 0

    def append(self, block: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows to each of the arrays."""
        for name, rows in block.items():
            self.held.setdefault(name, []).append(np.ascontiguousarray(rows, dtype=ROWS.get(name, rows.dtype)))
            self.bytes += self.held[name][-1].nbytes
        if self.bytes > self.in_memory:
            self._write()

    def _write(self) -> None:
        """Move what is in memory to the files, but for an empty part that keeps type and shape."""
        try:
            if not self.files:
                self._open()
            for name, parts in self.held.items():
                for rows in parts:
                    self.files[name].write(rows.data)
                parts[:] = [parts[-1][:0].copy()]
        except OSError as error:
            raise FileError(
                f"The rows of the logs cannot be written: {error}. They need {self.bytes:,} bytes so far; name a "
                "folder with more space, or allow more memory with in_memory=."
            ) from error

    def _open(self) -> None:
        if self.folder is None:
            self.temporary = tempfile.TemporaryDirectory(prefix="causal_shaping_")
            self.folder = self.temporary.name
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in self.held:
            path = folder / f"{name}.array"
            path.unlink(missing_ok=True)  # somebody may still read the file of an earlier call
            self.files[name] = path.open("wb")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays, read-only; nothing is left to be added to."""
        self.close()
        result: dict[str, npt.NDArray[Any]] = {}
        for name, parts in self.held.items():
            kind = parts[0]
            if name in self.files:
                flat = np.memmap(self.files[name].name, kind.dtype, "r")
                result[name] = flat.reshape(-1, *kind.shape[1:])
            else:
                result[name] = np.concatenate(parts)
                result[name].flags.writeable = False
            parts.clear()
        return result

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()
