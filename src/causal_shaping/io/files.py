"""Writing files so that nothing is lost: under a temporary name first, renamed when complete.

- `check_target`, `check_folder`, `check_outputs`: what can be known before long work.
- `replacing`, `replacing_together`: one file; all the files of a command.
- `write_text`, `write_table`: text, and tables for other programs.
- `claim_run_folder`: a folder of many, whose settings never mix; `holding`: one file that is read and written again.
- `Scratch`: a folder that is removed when it is no longer needed.

Temporary files and folders are locked by who writes them. What a killed process left is removed by the next write to
the same folder.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import uuid
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.csv as pc
import pyarrow.parquet as pq

from causal_shaping.errors import FileError
from causal_shaping.io._locks import NO_FOLLOW, hold, hold_folder, is_abandoned, make_locked
from causal_shaping.io.inputs import read_json, with_checksum

PARQUET = (".parquet",)
CSV = (".csv", ".csv.gz", ".csv.zst")
TABLES = (*PARQUET, *CSV)
"""The endings of a table that other programs can open, and of a file of logs."""
SETTINGS, LOCK = "settings.json", ".lock"
TEMPORARY, SCRATCH = ".causal-shaping-", "causal_shaping_"
"""How the names of temporary files and folders begin."""
FORMULA, NUMBER = r"^[=+\-@\t\r\n]", r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""Text that a spreadsheet computes instead of showing it, unless it is a number."""


def check_target(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written, or say why not; to be asked before long work."""
    target = Path(path)
    if not target.name.lower().endswith(tuple(suffixes)):
        raise FileError(f"{target} must end in {' or '.join(suffixes)}.")
    place = _place(target)
    if place.is_dir():
        raise FileError(f"{target} is a folder. Give the name of a file in it.")
    if not place.parent.is_dir():
        folder = place.parent if target.is_symlink() else target.parent  # as it was spelled
        raise FileError(f"{target} cannot be written: the folder {folder} does not exist. Make it first.")
    if os.path.lexists(place) and not place.is_file():
        raise FileError(f"{target} is no ordinary file, but a device, a pipe, or a circle of links. Give another name.")
    if place.exists() and not os.access(place, os.W_OK):
        raise FileError(f"{target} is write-protected. Give another name, or allow writing it.")
    return target


def check_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that can be made or written to, or say why not; to be asked before long work."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    there = _place(folder)
    while not there.exists():
        there = there.parent
    _check_writable(folder, there)
    return folder


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse files that are to be written twice, are read, too, or lie in a folder that cannot be written to.

    Files are compared by what they are, not by how they are spelled: links and hard links are seen through.
    """
    known: dict[object, tuple[Path, str]] = {}
    for path in inputs:
        known |= dict.fromkeys(_identities(path), (path, "is read, too"))
    for path in outputs:
        for identity in _identities(path):
            if identity in known:
                other, why = known[identity]
                same = "" if other == path else f" as {other}"
                raise FileError(f"{path} is to be written, but {why}{same}. Give another name.")
        known |= dict.fromkeys(_identities(path), (path, "is written already"))
        if _place(path).parent.is_dir():
            _check_writable(path, _place(path).parent)


def _place(path: Path) -> Path:
    """Return where a file is written to: a link stays, and what it points to is replaced."""
    try:
        return Path(os.path.realpath(path))
    except ValueError as error:
        raise FileError(f"{os.fspath(path)!r} cannot be the name of a file: {error}.") from None


def _identities(path: Path) -> set[object]:
    found: set[object] = {os.path.normcase(_place(path))}
    with suppress(OSError):
        about = path.stat()
        found.add((about.st_dev, about.st_ino))
    return found


def _check_writable(path: Path, folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(f"{path} cannot be written: {folder}: {error.strerror}. Give another folder.") from error


_together: ContextVar[list[_Write] | None] = ContextVar("together", default=None)
"""The files that wait to take their places together."""


@contextmanager
def replacing_together() -> Iterator[None]:
    """Let all files that are written inside take their places at the end, or none of them if anything fails.

    They are complete and on the disk by then, and only renamed. A kill in that moment can leave some new files and some
    old ones, each of them complete.
    """
    waiting: list[_Write] = []
    token = _together.set(waiting)
    try:
        yield
        for write in waiting:
            write.finish()
    finally:
        _together.reset(token)
        for write in waiting:
            write.release()


@contextmanager
def replacing(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Give a temporary path to write to; on success it takes the place of `path`, on failure it is removed.

    The contents are on the disk before the new name is, so that a crash leaves the old file or the new one. A file
    that is replaced keeps its permissions; a link stays, and what it points to is replaced.
    """
    write, waiting = _Write(path, suffixes), _together.get()
    try:
        with write.errors():
            yield write.begin()
            write.flush()
        if waiting is None:
            write.finish()
        else:
            waiting.append(write)
    finally:
        if waiting is None or write not in waiting:
            write.release()


class _Write:
    """A file that is written under a temporary name in the folder of its target."""

    def __init__(self, path: str | os.PathLike[str], suffixes: Sequence[str]) -> None:
        self.target = check_target(path, suffixes)
        self.place = _place(self.target)
        self.ending = next(suffix for suffix in suffixes if self.target.name.lower().endswith(suffix))
        self.temporary: Path | None = None
        self.handle: int | None = None

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the file in what the system says."""
        try:
            yield
        except OSError as error:
            raise FileError(f"{self.target} cannot be written: {error.strerror or error}.") from error

    def begin(self) -> Path:
        """Return the temporary file: empty, locked, and readable to nobody who could not read the old one."""
        remove_abandoned(self.place.parent)
        mode = stat.S_IMODE(self.place.stat().st_mode) & 0o700 if self.place.exists() else 0o666
        while self.handle is None:
            self.temporary = self.place.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:12]}{self.ending}")
            self.handle = make_locked(self.temporary, mode)
        assert self.temporary is not None
        if os.name != "posix":  # there, what is open cannot be renamed
            self._close()
        return self.temporary

    def flush(self) -> None:
        """Wait until the contents are on the disk, with the permissions of the old file."""
        assert self.temporary is not None
        if self.place.exists():
            self.temporary.chmod(stat.S_IMODE(self.place.stat().st_mode))
        _flush(self.temporary, os.O_RDWR)

    def finish(self) -> None:
        """Take the place of the old file."""
        assert self.temporary is not None
        with self.errors():
            self.temporary.replace(self.place)
            if os.name == "posix":  # elsewhere a folder cannot be opened
                _flush(self.place.parent, os.O_RDONLY)

    def release(self) -> None:
        """Remove the temporary file, if it is still there, and its lock."""
        if self.temporary is not None:
            with suppress(OSError):  # its folder may be gone, or read-only by now
                self.temporary.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
        self.handle = None


def remove_abandoned(folder: Path, beginning: str = TEMPORARY) -> None:
    """Remove the temporary files and folders in a folder whose writers are gone."""
    with suppress(OSError), os.scandir(folder) as held:
        found = [Path(item.path) for item in held if item.name.startswith(beginning) and not item.is_symlink()]
        for path in found:
            with suppress(OSError):  # another one's, or gone by now
                _remove_abandoned(path)


def _remove_abandoned(path: Path) -> None:
    is_folder = path.is_dir()
    handle = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | NO_FOLLOW)
    try:
        if is_abandoned(path, handle) and os.fstat(handle).st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True) if is_folder else path.unlink()
    finally:
        os.close(handle)


def _flush(path: Path, flags: int) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | os.PathLike[str], text: str, suffixes: Sequence[str]) -> None:
    """Write text, such as HTML or JSON, to a file."""
    with replacing(path, suffixes) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_table(path: str | os.PathLike[str], table: Any, *, exact: bool = False) -> None:
    """Write a table, a data frame, or columns by name, to a .parquet or .csv (.csv.gz, .csv.zst) file.

    CSV is for people: text that a spreadsheet would take for a formula gets an apostrophe in front, unless it is to be
    `exact`, such as logs, which are read again.
    """
    rows = pa.table(table).replace_schema_metadata(None)
    with replacing(path, TABLES) as temporary:
        if temporary.name.endswith(PARQUET):
            pq.write_table(rows, temporary)
            return
        packed = {".gz": "gzip", ".zst": "zstd"}.get(temporary.suffix)
        plain = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
        rows = rows.cast(pa.schema(plain))
        with pa.output_stream(str(temporary), compression=packed) as stream:
            pc.write_csv(rows if exact else _without_formulas(rows), stream)


def _without_formulas(rows: pa.Table) -> pa.Table:
    """Return a table whose heads and texts no spreadsheet computes."""
    columns = [
        escape_formulas(column) if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) else column
        for column in rows.columns
    ]
    return pa.table(columns, names=escape_formulas(pa.array(rows.column_names, pa.string())).to_pylist())


def escape_formulas(texts: Any) -> Any:
    """Return an Arrow array of texts with an apostrophe in front of those that a spreadsheet would compute."""
    formula = pac.and_not(pac.match_substring_regex(texts, FORMULA), pac.match_substring_regex(texts, NUMBER))
    return pac.if_else(formula, pac.binary_join_element_wise("'", texts, ""), texts)


@contextmanager
def claim_run_folder(folder: Path, settings: Mapping[str, Any], held: str) -> Iterator[None]:
    """Hold a folder for runs of some settings, made if it is not there; refuse one that holds others.

    `held` is the pattern of what is kept there; a folder without any is free for other settings. One process works in a
    folder at a time: a second one is refused, whatever its settings. What a kill leaves stops nobody.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / LOCK, f"Another process works in {folder}. Wait until it ends, or give another folder."):
        remove_abandoned(folder)
        _settle(folder, json.loads(json.dumps(settings)), held)
        yield


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold a file that is read, and written again: who else wants to is refused meanwhile."""
    place = _place(path)
    lock = place.with_name(f"{TEMPORARY}{place.name}.lock")
    with _locked(lock, f"Another process updates {path}. Wait until it ends."):
        yield


@contextmanager
def _locked(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock; `busy` is what to say if another process does."""
    try:
        handle = hold(lock)
    except OSError as error:
        raise FileError(f"{lock} cannot be written: {error.strerror}. Give another folder.") from error
    if handle is None:
        raise FileError(busy)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        os.close(handle)


def _settle(folder: Path, settings: dict[str, Any], held: str) -> None:
    """Write the settings of a folder, or compare them with those of the runs in it."""
    path = folder / SETTINGS
    if not any(folder.glob(held)):  # nothing is done yet
        write_text(path, json.dumps(with_checksum(settings), indent=2) + "\n", [".json"])
        return
    if not path.exists():
        raise FileError(f"{folder} holds runs without {SETTINGS}. Give another folder.")
    before = read_json(path, "Give another folder.")
    other = sorted(key for key in settings if before.get(key) != settings[key])
    if other:
        raise FileError(f"{folder} holds runs with another {', '.join(other)}. Give another folder, or remove it.")


class Scratch:
    """A temporary folder, which is removed together with this object, or when Python ends.

    What processes left that were killed is removed by the next one.
    """

    def __init__(self) -> None:
        remove_abandoned(Path(tempfile.gettempdir()), SCRATCH)
        handle = None
        while handle is None:
            self.path = Path(tempfile.mkdtemp(prefix=SCRATCH))
            handle = hold_folder(self.path)
        weakref.finalize(self, _remove_scratch, self.path, handle)


def _remove_scratch(folder: Path, handle: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle >= 0:
        os.close(handle)
