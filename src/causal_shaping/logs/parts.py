"""Counts that grow part by part, such as day by day: no part is counted twice.

- `update_counts`: count new parts into a file of counts, which lists the parts that are in it.
- `counted_parts`: that list.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from causal_shaping._checks import check_line
from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import Result, json_text
from causal_shaping.data.space import shortened
from causal_shaping.errors import ArgumentError, AssumptionWarning, DataError, FileError
from causal_shaping.io.container import Contents, load
from causal_shaping.io.convert import counts_columns, counts_from, save_counts
from causal_shaping.io.files import PARQUET, TEMPORARY, check_target, locked
from causal_shaping.logs._translation import sql_of
from causal_shaping.logs.counting import Item, count, counting, opened_logs
from causal_shaping.logs.table import LogTable, is_ours

if TYPE_CHECKING:
    import pandas as pd

READING = ("states", "actions", "missing", "partitions", "memory_limit")
"""Options of `count` that say how files and tables are read."""

DECLARED = ("terminal", "complete", "admissible")
"""Options of `count` that are of all parts together."""


@dataclass(frozen=True)
class Part:
    """What a file of counts says of a part that is in it.

    Attributes:
        rows: how many there are.
        sources: the names of its sources.
        fingerprint: a SHA-256 of what was counted; the order of rows, files and labels does not matter.
        files: a SHA-256 of the bytes of its files and of how they were read; None where its rows are in no files.
    """

    rows: int
    sources: tuple[str, ...]
    fingerprint: str
    files: str | None = None

    @property
    def text(self) -> str:
        """What it holds, in words."""
        return f"{self.rows:,} rows of {shortened(self.sources)}"


@dataclass(frozen=True, eq=False, repr=False)
class CountsUpdate(Result):
    """What `update_counts` did.

    Attributes:
        path: the file.
        counts: what it holds now.
        parts: all parts that are in it, by name.
        added: the names of those that were counted now.
        known: the names of those that were given, but are counted already.
    """

    path: Path
    counts: Counts
    parts: Mapping[str, Part]
    added: tuple[str, ...]
    known: tuple[str, ...]

    def summary(self) -> str:
        """Return which parts were counted, which were not counted again, and what the file holds."""
        lines = [f"Counted {name}: {self.parts[name].text}" for name in self.added]
        if self.known:
            lines.append(f"Counted before, and not again: {shortened(self.known)}")
        held = f"{self.counts.n.sum():,.0f} rows of {shortened(self.counts.sources)}"
        return "\n".join([*lines, f"{self.path} holds {len(self.parts):,} part{'s' * (len(self.parts) > 1)}: {held}"])

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per part of the file, with whether it was added now."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["part", "rows", "sources", "added"])

    def to_json(self) -> str:
        """Return everything but the counts as JSON."""
        return json_text({"path": str(self.path), "known": self.known, "parts": self._rows()})

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"part": name, "rows": part.rows, "sources": ", ".join(part.sources), "added": name in self.added}
            for name, part in self.parts.items()
        ]

    def __repr__(self) -> str:
        return f"CountsUpdate({self.path}: {len(self.added)} of {len(self.parts)} parts added, {len(self.known)} known)"


def counted_parts(path: str | os.PathLike[str]) -> dict[str, Part]:
    """Return the parts that are in a file of counts, by name; none if there is no such file yet.

    So only parts that are new have to be opened, and read.

    Raises:
        FileError: if the file holds something else, or counts that `update_counts` did not write.
    """
    return _held(Path(path))[1] if Path(path).exists() else {}


def update_counts(
    path: str | os.PathLike[str],
    parts: Mapping[Any, Item | Sequence[Item]],
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> CountsUpdate:
    """Count new parts of logs, such as days, into a file of counts; a part that is in it is not counted again.

    The file lists its parts: name, sources, rows, and what tells whether a part is still the same. Counts and list are
    one file, written as a whole after each part: a kill leaves a part counted and listed, or neither, and the same call
    goes on. Sources and labels are matched by name. Any split of the same episodes into parts, in any order, gives the
    same counts; where rewards take many values, if `reward_bins` has edges.

    A part that is counted already and still the same is left out. It is the same if the bytes of its files are, and how
    they are read; otherwise it is read, and what is counted must be the same. If it is not, that is an error, as counts
    cannot be taken out again.

    Each part must hold whole episodes, and no episode of another part: split by the day on which episodes began. All
    parts of a source need its name: `open_logs(..., source="ward-3")`. Without it, a file is a source of its own.

    Args:
        path: the file (.parquet), made if it is not there. `Counts.load` opens it.
        parts: by the name of the part, what `count` takes, such as what `open_logs` returned.
        progress: called before each part.
        options: those of `count`, the same in each call. `terminal`, `complete` and `admissible` are of all parts
            together. Rewards are cut as in the first part: its bins are those of the file.

    Raises:
        DataError: if a part has changed since it was counted, or cannot be merged with those before.
        ArgumentError: if the same files are given under two names.
        FileError: if the file holds something else, or another process updates it.

    Examples:
        >>> import tempfile
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> days = {f"2026-11-0{seed}": world.collect("good", 1000, seed=seed) for seed in (1, 2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = update_counts(f"{folder}/counts.parquet", days)
        ...     again = update_counts(f"{folder}/counts.parquet", days)
        >>> first.added, again.added, again.known
        (('2026-11-01', '2026-11-02'), (), ('2026-11-01', '2026-11-02'))
        >>> again.counts.n.sum()
        np.float64(2000.0)
    """
    target = check_target(path, PARQUET)
    given = {str(name): logs for name, logs in parts.items()}
    for name in given:
        check_line("The part", name)
    if not given or "" in given or len(given) < len(parts):
        raise ArgumentError(f"parts must name each part once, as in {{'2026-11-01': logs}}, but names {list(parts)}.")
    declared = {name: options.pop(name) for name in DECLARED if name in options}
    lock = target.with_name(f"{TEMPORARY}{target.name}.lock")
    with locked(lock, f"Another process updates {path}. Wait until it ends."):
        held, manifest = _held(target) if target.exists() else (None, {})
        added, known = [], []
        for done, name in enumerate(sorted(given, key=lambda name: name not in manifest)):  # what can be refused first
            progress(done, len(given), f"Counting {name}")
            tables = _opened(name, given[name], options)
            files = _files_checksum(tables, options)
            before = manifest.get(name)
            if before is not None and files is not None and files == before.files:
                known.append(name)
                continue
            if twins := [other for other, part in manifest.items() if files is not None and part.files == files]:
                raise ArgumentError(
                    f"Part {name!r} has the same files as part {twins[0]!r} of {path}, which is counted already. Leave "
                    "it out."
                )
            counts = _counted(tables, held, name, path, options)
            part = Part(int(counts.n.sum()), tuple(sorted(counts.sources)), _fingerprint(counts), files)
            if before is not None:
                _check_same(name, before, part, path)
                known.append(name)
                continue
            _note_twins(name, part, manifest)
            held = counts if held is None else held.merge(counts)
            if declared:
                held = held.to_space(held.space.declared(None, None, **{"admissible": None, **declared}))
            manifest |= {name: part}
            save_counts(held, target, {other: asdict(listed) for other, listed in manifest.items()})
            added.append(name)
    assert held is not None
    return CountsUpdate(target, held, manifest, tuple(added), tuple(known))


@dataclass(frozen=True)
class _Held:
    """What a file holds: the counts, and their parts by name; None where it does not list them."""

    counts: Counts
    parts: dict[str, Part] | None

    @classmethod
    def of(cls, contents: Contents) -> _Held:
        counts, parts = counts_from(contents), contents.metadata.get("parts")
        if parts is None:
            return cls(counts, None)
        held = {name: Part(**part | {"sources": tuple(part["sources"])}) for name, part in parts.items()}
        if sum(part.rows for part in held.values()) != counts.n.sum():
            raise DataError("its parts have other rows than its counts")
        return cls(counts, held)

    @property
    def checksum(self) -> str:
        return self.counts.checksum


def _held(path: Path) -> tuple[Counts, dict[str, Part]]:
    """Return the counts of a file and its parts."""
    held = load(path, "counts", _Held.of)
    if held.parts is None:
        raise FileError(
            f"{path} holds counts that do not say which parts are in them, so that one could be counted twice. Give a "
            "new file, and count all parts into it."
        )
    return held.counts, held.parts


def _opened(name: str, logs: Item | Sequence[Item], options: Mapping[str, Any]) -> list[LogTable]:
    """Return the logs of a part as tables, not read yet, which say in messages to which part they belong."""
    tables = opened_logs(logs, **{option: options[option] for option in READING if option in options})
    return [replace(table, origin=f"{table.origin} (part {name})") for table in tables]


def _counted(
    tables: list[LogTable], held: Counts | None, name: str, path: str | os.PathLike[str], options: Mapping[str, Any]
) -> Counts:
    """Return the counts of a part, with rewards in the bins of the counts before."""
    if held is None:
        return count(tables, **options)
    bins = options.get("reward_bins")
    if bins is None or bins.quantiles is not None:
        options = {**options, "reward_bins": held.space.reward_bins or bins}
    counts = count(tables, **options)
    if held.discrete_rewards and not counts.discrete_rewards:
        raise DataError(
            f"Part {name!r} has rewards of many values, which need bins, but those in {path} are kept as they are. "
            "Count all parts into a new file, and say how to cut rewards with reward_bins."
        )
    return counts


def _files_checksum(tables: Sequence[LogTable], options: Mapping[str, Any]) -> str | None:
    """Return a SHA-256 of the files of a part and of the queries that count them, None where there are no files."""
    how: list[Any] = [bool(options.get("skip_bad_episodes"))]
    for table in tables:
        engine = table.rows.get_backend()
        if not is_ours(engine) or not engine.causal_shaping_files:
            return None
        query = counting(replace(table, reward_bins=None), bool(options.get("step_indexed")))
        digests = []
        for file in engine.causal_shaping_files:
            with file.open() as opened:
                digests.append(hashlib.file_digest(opened, "sha256").hexdigest())
        how.append([table.source, engine.causal_shaping_view, sql_of(query, engine), sorted(digests)])
    return hashlib.sha256(json.dumps(how).encode()).hexdigest()


def _fingerprint(counts: Counts) -> str:
    """Return a SHA-256 of entries by label; without sums, whose last bits depend on the order of rows."""
    columns = counts_columns(counts)
    del columns[counts.space.free_name("reward_sum")]
    texts = {name: column.cast(pa.string()) for name, column in columns.items() if _has_labels(column)}
    table = pa.table(columns | texts)
    return _rows_checksum(table.sort_by([(name, "ascending") for name in table.column_names]))


def _rows_checksum(table: pa.Table) -> str:
    """Return a SHA-256 of the rows of a table, in their order."""
    texts, arrays = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_primitive(column.type) and not column.null_count:
            texts.append([name, str(column.type)])
            arrays.append(column.to_numpy())
        else:
            texts.append([name, column.to_pylist()])
    return checksum_of(json.dumps(texts), arrays)


def _has_labels(column: Any) -> bool:
    return isinstance(column, pa.DictionaryArray)


def _check_same(name: str, before: Part, now: Part, path: str | os.PathLike[str]) -> None:
    """Refuse a part of which something else was counted before."""
    if now.fingerprint != before.fingerprint:
        raise DataError(
            f"Part {name!r} is in {path} already, with other counts: {before.text} then, {now.text} now. Its logs were "
            "changed, or they are read in another way (columns, bins, flags). Counts cannot be taken out again: count "
            "all parts into a new file. If these are other logs, give the part another name."
        )


def _note_twins(name: str, part: Part, manifest: Mapping[str, Part]) -> None:
    """Warn of a part in which exactly the same was counted as in another one."""
    twins = [other for other, held in manifest.items() if held.fingerprint == part.fingerprint]
    if twins:
        warnings.warn(
            f"Part {name!r} and part {twins[0]!r} give exactly the same counts ({part.text}). If they are the same "
            "logs under two names, they are counted twice: count all parts into a new file, each once.",
            AssumptionWarning,
            stacklevel=3,
        )
