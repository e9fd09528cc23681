"""Writing files so that nothing is lost: under a temporary name first, renamed when complete.

- `check_target`, `check_folder`, `check_outputs`: what can be known before long work.
- `replacing`, `replacing_together`: one file; all the files of a command.
- `write_text`, `write_json`, `write_arrays`: text; JSON and arrays with a checksum inside.
- `write_table`: tables for other programs.
- `claim_run_folder`: a folder of many, whose settings never mix; `locked`: one process at a time.
- `Scratch`: a folder that is removed when it is no longer needed.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import uuid
import weakref
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.csv as pc
import pyarrow.parquet as pq

from causal_shaping.errors import FileError
from causal_shaping.io.inputs import BLANK, filled, read_json, with_checksum

PARQUET = (".parquet",)
CSV = (".csv", ".csv.gz", ".csv.zst")
TABLES = (*PARQUET, *CSV)
"""The endings of a table that other programs can open, and of a file of logs."""
TEMPORARY = ".causal-shaping-"
"""How the names of temporary files and of locks begin."""
SETTINGS, LOCK = "settings.json", f"{TEMPORARY}lock"
FORMULA, NUMBER = r"^[=+\-@\t\r\n]", r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""Text that a spreadsheet computes instead of showing it, unless it is a number."""


def check_target(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written, or say why not, before long work."""
    target = Path(path)
    if not target.name.lower().endswith(tuple(suffixes)):
        raise FileError(f"{target} must end in {' or '.join(suffixes)}.")
    place = _place(target)
    if place.is_dir():
        raise FileError(f"{target} is a folder. Give the name of a file in it.")
    if not place.parent.is_dir():
        folder = place.parent if target.is_symlink() else target.parent
        hint = f"the folder {folder} does not exist. Make it first."
        raise FileError(f"{target} cannot be written: {hint}")
    if os.path.lexists(place) and not place.is_file():
        kind = "a device, a pipe, or a circle of links"
        raise FileError(f"{target} is no ordinary file, but {kind}. Give another name.")
    if place.exists() and not os.access(place, os.W_OK):
        raise FileError(f"{target} is write-protected. Give another name, or allow writing it.")
    return target


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that can be made or written to, or say why not."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    there = _place(folder)
    while not there.exists():
        there = there.parent
    _check_writable(folder, there)
    return folder


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse files that are written twice, are read, too, or lie where nothing can be written.

    Files are compared by what they are, not by how they are spelled: links are seen through.
    """
    known = [(path, "is read, too") for path in inputs]
    for path in outputs:
        for other, why in known:
            if _are_same(path, other):
                hint = "Give another name."
                raise FileError(f"{path} is to be written, but {why} as {other}. {hint}")
        known.append((path, "is written already"))
        folder = _place(path).parent
        if folder.is_dir():
            _check_writable(path, folder)


def _are_same(one: Path, other: Path) -> bool:
    if _place(one) == _place(other):
        return True
    return one.exists() and other.exists() and one.samefile(other)  # hard links


def _place(path: Path) -> Path:
    """Return where a file is written to: a link stays, and what it points to is replaced."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise FileError(f"{os.fspath(path)!r} cannot be the name of a file: {error}.") from None


def _check_writable(path: Path, folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = f"{folder}: {error.strerror}. Give another folder."
        raise FileError(f"{path} cannot be written: {why}") from error


_together: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("together", default=None)
"""Complete temporary files that wait to be renamed together, and what to rename them to."""


@contextmanager
def replacing_together() -> Iterator[None]:
    """Let all files that are written inside take their places at the end, or none of them.

    They are complete and on the disk by then, and only renamed. A kill in that moment can leave
    some new files and some old ones, each of them complete.
    """
    waiting: list[tuple[Path, Path]] = []
    token = _together.set(waiting)
    try:
        yield
        for temporary, target in waiting:
            _rename(temporary, target)
    finally:
        _together.reset(token)
        for temporary, _ in waiting:
            _discard(temporary)


@contextmanager
def replacing(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Give a temporary path to write to; on success it takes the place of `path`.

    The contents are on the disk before the new name is, so that a crash leaves the old file or the
    new one. A file that is replaced keeps its permissions; a link stays, and what it points to is
    replaced. After a kill the temporary file stays behind; no other write uses its name.
    """
    target = check_target(path, suffixes)
    place, waiting = _place(target), _together.get()
    ending = next(suffix for suffix in suffixes if target.name.lower().endswith(suffix))
    temporary = place.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:12]}{ending}")
    try:
        with _naming(target):
            mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
            private = 0o666 if mode is None else mode & 0o700  # until it is complete
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private))
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            _flush(temporary, os.O_RDWR)
        if waiting is None:
            _rename(temporary, target)
        else:
            waiting.append((temporary, target))
    except BaseException:
        _discard(temporary)
        raise


def _discard(temporary: Path) -> None:
    with suppress(OSError):  # its folder may be gone, or read-only by now
        temporary.unlink()


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Name the file in what the system says."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error


def _rename(temporary: Path, target: Path) -> None:
    place = _place(target)
    with _naming(target):
        os.replace(temporary, place)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            _flush(place.parent, os.O_RDONLY)


def _flush(path: Path, flags: int) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | os.PathLike[str], text: str, suffixes: Sequence[str]) -> None:
    """Write text, such as HTML, to a file."""
    with replacing(path, suffixes) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Write plain values, with their checksum, for `inputs.read_json`."""
    write_text(path, json.dumps(with_checksum(content), indent=2) + "\n", [".json"])


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays to an .npz file, with a checksum at its end, for `inputs.read_arrays`."""
    with replacing(path, [".npz"]) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = BLANK  # the last bytes of the file
        temporary.write_bytes(filled(temporary.read_bytes()))


def write_table(path: str | os.PathLike[str], table: Any, *, exact: bool = False) -> None:
    """Write a table, a data frame, or columns by name, to .parquet or .csv (.csv.gz, .csv.zst).

    CSV is for people: text that a spreadsheet would take for a formula gets an apostrophe in front,
    unless it is to be `exact`, such as logs, which are read again.
    """
    rows = pa.table(table).replace_schema_metadata(None)
    with replacing(path, TABLES) as temporary:
        if temporary.name.endswith(PARQUET):
            pq.write_table(rows, temporary)
            return
        packed = {".gz": "gzip", ".zst": "zstd"}.get(temporary.suffix)
        names, columns = rows.column_names, [_plain(column) for column in rows.columns]
        if not exact:
            names = escape_formulas(pa.array(names, pa.string())).to_pylist()
            columns = [_escaped(column) for column in columns]
        with pa.output_stream(str(temporary), compression=packed) as stream:
            pc.write_csv(pa.table(columns, names=names), stream)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def _escaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return escape_formulas(column) if text else column


def escape_formulas(texts: Any) -> Any:
    """Return Arrow texts with an apostrophe before those that a spreadsheet would compute."""
    number = pac.match_substring_regex(texts, NUMBER)
    formula = pac.and_not(pac.match_substring_regex(texts, FORMULA), number)
    return pac.if_else(formula, pac.binary_join_element_wise("'", texts, ""), texts)


@contextmanager
def locked(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock file, which ends with the process; `busy` is what to say if another has it."""
    try:
        held = filelock.FileLock(lock).acquire(blocking=False)
    except filelock.Timeout:
        raise FileError(busy) from None
    except OSError as error:
        why = f"{error.strerror}. Give another folder."
        raise FileError(f"{lock} cannot be written: {why}") from error
    with held:
        yield


@contextmanager
def claim_run_folder(folder: Path, settings: Mapping[str, Any], held: str) -> Iterator[None]:
    """Hold a folder for runs of some settings, made if it is not there; refuse one of others.

    `held` is the pattern of what is kept there; a folder without any is free for other settings.
    One process works in a folder at a time: a second one is refused, whatever its settings.
    """
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    busy = f"Another process works in {folder}. Wait until it ends, or give another folder."
    with locked(folder / LOCK, busy):
        _settle(folder, json.loads(json.dumps(settings)), held)
        yield


def _settle(folder: Path, settings: dict[str, Any], held: str) -> None:
    """Write the settings of a folder, or compare them with those of the runs in it."""
    path = folder / SETTINGS
    if not any(folder.glob(held)):  # nothing is done yet
        write_json(path, settings)
        return
    if not path.exists():
        raise FileError(f"{folder} holds runs without {SETTINGS}. Give another folder.")
    before = read_json(path, "Give another folder.")
    other = sorted(key for key in settings if before.get(key) != settings[key])
    if other:
        which = f"with another {', '.join(other)}, of another call or version"
        raise FileError(f"{folder} holds runs {which}. Give another folder, or remove this one to begin anew.")


class Scratch:
    """A temporary folder, which is removed together with this object, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="causal_shaping_"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
