"""From logs to the arrays that estimators are fitted to, for states that are numbers.

Rows are streamed from the engine in their order, a batch at a time, so that memory is bounded.
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
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.constants import BATCH_BYTES, IN_MEMORY, ROW_BYTES
from causal_shaping.logs.counting import Item, keep_origin, opened_logs
from causal_shaping.logs.numbers import fault, nesting
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.queries import batches, fetch
from causal_shaping.logs.table import LogTable
from causal_shaping.storage import Scratch

Mask: TypeAlias = Callable[[npt.NDArray[Any]], npt.ArrayLike]
"""Which actions are admissible: from observations [n, *shape] to bool [n, actions]."""

Block: TypeAlias = dict[str, npt.NDArray[Any]]
"""Some rows of each of the arrays of `Transitions`."""


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

    Rows come ordered by source, episode and step, whatever their order in the logs. What may be
    missing is read as `open_logs` reads it; and a next state may be missing if another row of the
    episode follows.

    A column that never changes, an action that is always the same, a single source: none of these
    is an error here.

    Args:
        logs: one or several of: files, tables, data frames, Minari data sets, what
            `open_logs(..., numbers=True)` returned, and `Logs` or `open_logs(...)` whose labels are
            made of integers. Each must hold sources that the others do not.
        actions: all actions, tried or not, in the order that tables shall have; by default those
            that the logs declare or show.
        mask: which actions are admissible: a function from observations [n, *shape] to bool
            [n, actions], or the name of a column of lists of true and false, in the order of
            `actions`. With a column all actions are admissible in the last state of an episode,
            unless there is a column with `next_` in front of the name.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        progress: called with the number of rows that are read, and of those in all.
        columns: what the logs call their columns, as in `state=["x", "y"]`, and how they are read:
            see `open_logs`. This does not apply to logs that were opened before. The columns of a
            state are numbers, integers or booleans, and are kept with 32 bits; or there is one
            column of lists, nested or not, of the same lengths in all rows. Lists of bytes (uint8),
            such as images, are kept as bytes.

    Examples:
        >>> import pyarrow as pa
        >>> rows = {"episode": [0, 0], "step": [0, 1], "state": [[0.5, 1.0], [0.7, 1.1]]}
        >>> rows |= {"action": ["left", "right"], "reward": [0.0, 1.0]}
        >>> read_transitions(pa.table(rows), source="ward")
        Transitions(2 steps in 1 episodes of ward; states of shape (2,) by (state); 2 actions)
    """
    # A misspelt name must not pass where all logs are open already.
    check_names(columns, "read_transitions", read_transitions, open_logs)
    columns |= {"numbers": True}
    if isinstance(mask, str):
        columns["mask"] = mask
    if actions is not None:
        columns["actions"] = actions = [plain(label) for label in actions]
    tables = opened_logs(logs, **columns)
    for i, table in enumerate(tables):
        progress(0, 1, f"Checking {table.origin}")
        tables[i] = _with_numbers(check_logs(table, skip_bad_episodes=skip_bad_episodes))
    _check_alike(tables)
    # How often each action was taken says what there is to read.
    taken = [_actions_taken(table) for table in tables]
    total = sum(sum(rows["n"].to_pylist()) for rows in taken)
    if total == 0:
        origins = ", ".join(table.origin for table in tables)
        raise DataError(f"{origins}: there are no rows.")
    labels = tuple(actions or _actions(tables, taken))
    reader = _Reader(_sources(tables, taken), labels, tables[0].shape, _kind(tables[0]))
    if callable(mask):
        reader.mask = mask
    reader.masked = callable(mask) or any(_says_admissible(table) for table in tables)
    arrays = _Arrays()
    for table in tables:
        with closing(reader.blocks(table)) as blocks:
            for block in blocks:
                arrays.append(block)
                progress(reader.rows, total, f"Reading {table.origin}")
    held = arrays.whole()
    names = tables[0].columns
    return Transitions(reader.sources, labels, names, reader.shape, **held, files=arrays.scratch)


def transitions_of(
    logs: Item | Iterable[Item] | Transitions, columns: Mapping[str, Any], progress: Progress
) -> Transitions:
    """Return transitions as they are, and those of logs, which are read.

    Args:
        logs: of one or several sources, or transitions.
        columns: for `read_transitions`.
        progress: told how many rows are read.
    """
    if not isinstance(logs, Transitions):
        return read_transitions(logs, **columns, progress=progress)
    if columns:
        raise ArgumentError(
            f"{next(iter(columns))}= is for logs that are to be read; these were read before."
        )
    return logs


def _with_numbers(table: LogTable) -> LogTable:
    """Return a table of labels as one of numbers."""
    if table.numbers:
        return table
    rows = table.rows
    for name, column in zip(table.states, table.columns, strict=True):
        if not rows[name].type().is_integer():
            raise DataError(
                f"{table.origin}: the labels of states hold text in column {column!r}. Encode it "
                "as numbers first."
            )
    parts = {name: rows[name].cast("float32") for name in (*table.states, *table.next_states)}
    known = ibis.and_(*(rows[name].notnull() for name in table.next_states))
    return replace(table, rows=rows.mutate(**parts, next_known=known), shape=(len(table.columns),))


def _kind(table: LogTable) -> type[np.generic]:
    """Return the type of observations: bytes if the state is a list of them."""
    depth, entry = nesting(table.rows["s0"])
    if depth and entry.is_uint8():
        return np.uint8
    return np.float32


def _check_alike(tables: Sequence[LogTable]) -> None:
    """Refuse tables whose states differ in columns, shape or type."""
    words = [
        f"{', '.join(table.columns)} of shape {table.shape} and type {_kind(table).__name__}"
        for table in tables
    ]
    for table, here in zip(tables, words, strict=True):
        if here != words[0]:
            raise DataError(
                f"{tables[0].origin} and {table.origin} have different states: {words[0]} against "
                f"{here}."
            )


def _actions_taken(table: LogTable) -> pa.Table:
    """Return how many rows there are of each source and action."""
    rows = table.rows.group_by([*table.episode_key[:-1], "action"])
    return fetch(rows.aggregate(n=lambda t: t.count()), table.origin)


def _sources(tables: Sequence[LogTable], taken: Sequence[pa.Table]) -> tuple[str, ...]:
    """Return the names of all sources, each of one log."""
    origins: dict[str, str] = {}
    for table, rows in zip(tables, taken, strict=True):
        for name in table.sources_of(rows):
            keep_origin(origins, name, table)
    if len(origins) > np.iinfo(ROWS["source"]).max:
        raise DataError(
            f"There are {len(origins):,} sources. Is the column `source` what it seems to be?"
        )
    return tuple(origins)


def _actions(tables: Sequence[LogTable], taken: Sequence[pa.Table]) -> Iterable[Label]:
    """Return the actions that the logs declare or show."""
    found: dict[Label, None] = {}
    for table, rows in zip(tables, taken, strict=True):
        shown = table.declared.get("actions")
        if shown is None:
            shown = read_off(rows, (("action",),))
            if "mask" in table.rows.columns and any(isinstance(label, str) for label in shown):
                raise ArgumentError(
                    f"{table.origin}, column {table.names['mask']!r}: masks are lists in the order "
                    f"of the actions. Declare actions in that order, such as {shown}."
                )
        found |= dict.fromkeys(shown)
    return found


def _says_admissible(table: LogTable) -> bool:
    """Return whether a log says which actions are admissible."""
    return "mask" in table.rows.columns or bool(table.declared.get("admissible"))


def _in_order(table: LogTable) -> ibis.Table:
    """Return the query for the rows in their order; `last` marks the last row of each episode.

    All other rows have no next state, as it is the state of the following row.
    """
    rows, key = table.rows, table.episode_key
    # Flat lists: nested ones take many times the memory while rows are put in order.
    for name in (name for name in ("s0", "n0") if name in rows.columns):
        for _ in range(nesting(rows[name])[0] - 1):
            rows = rows.mutate(**{name: rows[name].flatten()})
    ends = rows.group_by(key).aggregate(step=rows.step.max()).mutate(last=ibis.literal(True))
    rows = rows.left_join(ends, [*key, "step"])
    last = rows["last"].fill_null(False)
    nexts = {
        name: ibis.ifelse(last, rows[name], ibis.null(rows[name].type()))
        for name in (*table.next_states, "next_mask")
        if name in rows.columns
    }
    kept = [*key, "step", *table.states, "action", "reward", "terminated", "truncated"]
    kept += [name for name in ("next_known", "mask") if name in rows.columns]
    return rows.select(*kept, last=last, **nexts).order_by([*key, "step"])


class _BadRow(Exception):
    """A row that cannot be read: how to find it again, the columns to blame, and what is wrong."""

    def __init__(self, batch: pa.RecordBatch, row: int, columns: Sequence[str], text: str) -> None:
        key = [name for name in ("source", "episode", "step") if name in batch.schema.names]
        self.key = {name: batch[name][row].as_py() for name in key}
        self.columns, self.text = columns, text
        super().__init__(text)


@dataclass
class _Reader:
    """Makes blocks of arrays from the batches of tables, one table after another."""

    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    shape: tuple[int, ...]
    kind: type[np.generic]  # of observations
    mask: Mask | None = None
    masked: bool = False  # whether not all actions are admissible
    rows: int = 0  # this and the next two: how many were read
    observations: int = 0
    episodes: int = 0

    def blocks(self, table: LogTable) -> Generator[Block, None, None]:
        """Yield the rows of a table, part by part, in their order."""
        size = ROW_BYTES + np.dtype(self.kind).itemsize * math.prod(self.shape)
        at_once = max(1, BATCH_BYTES // size)
        try:
            with closing(batches(_in_order(table), table.origin, at_once)) as stream:
                for batch in stream:
                    if batch.num_rows:
                        yield self._block(batch, table)
        except _BadRow as bad:  # only now the engine can be asked where the row is
            place = table.place(table.row_of(bad.key), *bad.columns)
            raise DataError(f"{place}: {bad.text}") from None

    def _block(self, batch: pa.RecordBatch, table: LogTable) -> Block:
        """Return the arrays of one batch."""
        size, last = batch.num_rows, _array(batch["last"])
        # An observation for each row, and behind it one of its next state if no row shows it.
        extra = last & _array(batch["next_known"])
        place = np.arange(size) + np.cumsum(extra) - extra
        observations = np.empty((size + int(extra.sum()), *self.shape), dtype=self.kind)
        observations[place] = self._observed(batch, np.arange(size), table.states)
        if extra.any():
            ends = np.flatnonzero(extra)
            observations[place[extra] + 1] = self._observed(batch, ends, table.next_states)
        action = _index(batch["action"], self.actions)
        self._check_row(batch, action < 0, "is not one of the declared ones. Declare it")
        source = np.full(size, self.sources.index(table.source or self.sources[0]))
        if table.source is None:
            source = _index(batch["source"], self.sources)
        state = self.observations + place
        begins = np.append(0, last[:-1])
        columns = {name: _array(batch[name]) for name in ("reward", "terminated", "truncated")}
        block = columns | {
            "observations": observations,
            "state": state,
            "next_state": np.where(last & ~extra, UNKNOWN, state + 1),
            "action": action,
            "source": source,
            "episode": self.episodes + np.cumsum(begins),
            "step": _array(batch["step"]),
        }
        if self.masked:
            ends = np.flatnonzero(extra)
            block["mask"] = self._allowed(batch, table, observations, place, ends)
            excluded = ~block["mask"][place, action]
            text = "was taken, but is not admissible there. Correct the mask"
            self._check_row(batch, excluded, text)
        self.rows += size
        self.observations += len(observations)
        self.episodes += int(last.sum())
        return block

    def _check_row(self, batch: pa.RecordBatch, bad: BoolArray, text: str) -> None:
        """Refuse the first action that is bad."""
        if bad.any():
            row = int(np.argmax(bad))
            action = batch["action"][row].as_py()
            raise _BadRow(batch, row, ["action"], f"action {action!r} {text}, or correct the logs.")

    def _observed(
        self, batch: pa.RecordBatch, rows: npt.NDArray[np.intp], names: Sequence[str]
    ) -> npt.NDArray[Any]:
        """Return the states, or next states, of some rows of a batch."""
        if _is_list(batch[names[0]].type):
            found = _array(batch[names[0]].take(pa.array(rows)).flatten())
        else:
            parts = [_array(batch[name])[rows] for name in names]
            found = np.stack(parts, axis=1, dtype=self.kind)
        return found.reshape(len(rows), *self.shape)

    def _allowed(
        self,
        batch: pa.RecordBatch,
        table: LogTable,
        observations: npt.NDArray[Any],
        place: npt.NDArray[np.intp],
        ends: npt.NDArray[np.intp],
    ) -> BoolArray:
        """Return which actions are admissible: bool [observations, actions].

        `place` is where the states of the rows are, `ends` are the rows that an observation of
        their next state follows.
        """
        allowed = np.ones((len(observations), len(self.actions)), dtype=bool)
        if "mask" in batch.schema.names:
            allowed[place] = self._masks(batch, np.arange(batch.num_rows), "mask")
        if "next_mask" in batch.schema.names:
            ends = ends[_array(batch["next_mask"].is_valid())[ends]]
            allowed[place[ends] + 1] = self._masks(batch, ends, "next_mask")
        if admissible := table.declared.get("admissible"):
            allowed &= _admissible(admissible, self.actions, observations)
        if self.mask is not None:
            found = np.asarray(self.mask(observations))
            if found.shape != allowed.shape or found.dtype != np.bool_:
                raise ArgumentError(
                    f"mask returned {found.dtype} of shape {found.shape} for observations of shape "
                    f"{observations.shape}; it must return bool of shape {allowed.shape}, a truth "
                    f"for each of the actions {', '.join(map(repr, self.actions))}."
                )
            allowed &= found
        return allowed

    def _masks(self, batch: pa.RecordBatch, rows: npt.NDArray[np.intp], name: str) -> BoolArray:
        """Return the masks in some rows of a column: bool [rows, actions], none of them short."""
        column, shape = batch[name].take(pa.array(rows)), (len(self.actions),)
        lengths = pc.equal(pc.list_value_length(column), len(self.actions))
        fits = _array(pc.fill_null(lengths, False))
        if fits.all():
            column = column.flatten()
            fits = np.all(_array(column.is_valid()).reshape(len(rows), *shape), axis=1)
        if not fits.all():
            row = int(rows[np.argmin(fits)])
            text = (
                f"lists must be of shape {shape}, without gaps; found "
                f"{fault(batch[name][row].as_py(), shape)}. One entry is needed for each of the "
                f"actions {', '.join(map(repr, self.actions))}; declare them all."
            )
            raise _BadRow(batch, row, [name], text)
        return _array(column).reshape(len(rows), *shape)


def _admissible(
    admissible: Mapping[Label, Collection[Label]],
    actions: Sequence[Label],
    observations: npt.NDArray[Any],
) -> BoolArray:
    """Return which actions exist in observations that are labels; see `Space.admissible`."""
    distinct, where = np.unique(observations, axis=0, return_inverse=True)
    masks = []
    for row in distinct:
        parts = tuple(int(number) for number in row)
        allowed = admissible.get(parts[0] if len(parts) == 1 else parts, actions)
        masks.append([action in allowed for action in actions])
    return np.array(masks)[where]


def _array(column: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _index(column: pa.Array, values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return the positions of the entries of a column among values, -1 for others."""
    found = pc.index_in(column, value_set=pa.array(values, column.type))
    return _array(pc.fill_null(found, -1))


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


class _Arrays:
    """Arrays that grow at their end, in files; in memory at last if they are small enough."""

    def __init__(self) -> None:
        self.scratch: Scratch | None = Scratch()
        self.kinds: dict[str, npt.NDArray[Any]] = {}  # of each array no row, but type and shape
        self.bytes = 0

    def append(self, block: Block) -> None:
        """Add rows to each of the arrays."""
        assert self.scratch is not None
        for name, rows in block.items():
            part = np.ascontiguousarray(rows, dtype=ROWS.get(name, rows.dtype))
            self.kinds[name], self.bytes = part[:0].copy(), self.bytes + part.nbytes
            try:
                with (self.scratch.path / name).open("ab") as file:
                    file.write(part.data)
            except OSError as error:
                raise FileError(
                    f"The rows of the logs cannot be written to {self.scratch.path}: {error}. They "
                    f"need {self.bytes:,} bytes so far; TMPDIR chooses a folder with more space."
                ) from error

    def whole(self) -> Block:
        """Return the arrays, read-only; nothing can be added any more."""
        assert self.scratch is not None
        result: Block = {}
        for name, kind in self.kinds.items():
            flat: npt.NDArray[Any] = np.memmap(self.scratch.path / name, kind.dtype, "r")
            if self.bytes <= IN_MEMORY:
                flat = np.array(flat)
                flat.flags.writeable = False
            result[name] = flat.reshape(-1, *kind.shape[1:])
        if self.bytes <= IN_MEMORY:
            self.scratch = None
        return result
