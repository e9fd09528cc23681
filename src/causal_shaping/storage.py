"""Files: one codec between results and Parquet, and writing and reading that lose nothing.

A file of ours is a Parquet file that any tool can open. Its columns hold labels and arrays. One
metadata key, `causal_shaping`, holds JSON: the kind of the contents, the version of its format, the
space, and all plain values; another holds the checksum, the SHA-256 of all other bytes of the file.
The checksum is verified before anything is made of the rows. It detects damage, it is no signature.

- `save`, `load`: a table with metadata, of some kind and version; `save_result`: a result.
- `read_metadata`, `kind_of`: what a file says beside its rows.
- `replacing`, `replacing_together`: one file, or all files of a command, appear when complete.
- `check_target`, `check_folder`, `check_outputs`: what can be refused before long work.
- `InputFile`: a regular file, which notices if it changes while it is read.
- `write_json`, `write_arrays` and their readers: JSON and `.npz` with a checksum inside.
- `write_table`: tables for other programs.
- `claim_run_folder`, `locked`: folders that one process works in at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import re
import shutil
import stat
import tempfile
import uuid
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeVar

import filelock
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.lib.format import read_array

from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.columns import label_column
from causal_shaping.data.result import Contents, Written
from causal_shaping.errors import DataError, FileError

PARQUET = (".parquet",)
CSV = (".csv", ".csv.gz", ".csv.zst")
TABLES = (*PARQUET, *CSV)
"""The endings of a table that other programs can open, and of a file of logs."""

TEMPORARY = ".causal-shaping-"
"""How the names of temporary files and of locks begin: hidden, and nobody else's."""
SETTINGS, LOCK = "settings.json", f"{TEMPORARY}lock"
"""What a folder of runs was made with, and the file that the process working in it holds."""

METADATA_KEY, CHECKSUM_KEY = b"causal_shaping", b"causal_shaping_checksum"
CHECKSUM_KEYS = CHECKSUM_KEY, b"causal_shaping_seal"
"""Under which names a Parquet file keeps its checksum; version 0.2 used the second one."""
CHECKSUM = "checksum"
"""The same in JSON."""
BLANK = b"0" * 64
"""Stands where the checksum will be: as long as a SHA-256 in hexadecimal digits."""
MARK = re.compile(b"(?:" + b"|".join(CHECKSUM_KEYS) + rb").{0,8}[0-9a-f]{64}", re.DOTALL)
"""A checksum and its name, as the bytes of a Parquet footer have them."""
FOOTER_END = 8
"""A Parquet file ends with the size of its footer, 4 bytes, and 4 letters."""
ARCHIVE_END, ARCHIVE_END_BYTES = b"PK\x05\x06", 22
"""How the last record of a .npz file begins, and its size if it has no comment."""

MAX_TEXT = 2**31 - 1
"""Arrow's limit of a text in the metadata; its default of 100 MB is too small for 1e6 states."""
MAX_RATIO, FREE_BYTES = 512, 2**20
"""Most values for each byte of a Parquet file, beyond so many bytes: constant columns reach 100."""

FORMULA, NUMBER = r"^[=+\-@\t\r\n]", r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""Text that a spreadsheet computes instead of showing it, unless it is a number."""


class Format(NamedTuple):
    """What this version reads and writes of a kind of file: versions, and what makes a new file."""

    oldest: int
    newest: int
    command: str


FORMATS = {
    "logs": Format(2, 2, "causal-shaping collect, or logs.save(...)"),
    "counts": Format(4, 4, "causal-shaping ceilings --counts, or cs.count(...).save(...)"),
    "posterior": Format(2, 2, "cs.posterior(...).save(...)"),
    "potential": Format(3, 4, "causal-shaping ceilings -o, or potential.save(...)"),
    "ceilings": Format(6, 7, "causal-shaping ceilings -o, or cs.value_ceilings(...).save(...)"),
    "floors": Format(5, 5, "cs.value_floors(...).save(...)"),
    "sensitivity": Format(3, 3, "causal-shaping sensitivity -o, or cs.sensitivity(...).save(...)"),
    "run": Format(4, 4, "causal-shaping train in a new folder, or cs.train_seeds(...)"),
    "learned table": Format(4, 4, "causal-shaping train in a new folder, or cs.train_seeds(...)"),
    "training run": Format(4, 4, "cs.train(...).save(...)"),
    "worth": Format(2, 2, "posterior.worth(...).save(...)"),
}
"""By kind. Changes that an older reader would misread raise `newest`; `oldest` is that of 0.2."""

FilePath: TypeAlias = str | os.PathLike[str]
Made = TypeVar("Made")


def save_result(path: FilePath, result: Written) -> None:
    """Write a result to a Parquet file, or to a CSV table if its class allows that."""
    table = pa.table(result.labelled(label_column))
    exact = result.EXACT_CSV
    if exact is not None and _ends_in(check_target(path, TABLES), CSV):
        write_table(path, table, exact=exact)
        return
    header, space = dict(result.header), getattr(result, "space", None)
    if space is not None:
        header["space"] = space.as_plain()
    save(path, result.KIND, table, header)


def save(path: FilePath, kind: str, table: Any, metadata: Mapping[str, Any]) -> None:
    """Write a table, or columns by name, and plain values as metadata to a Parquet file."""
    header = {"kind": kind, "version": FORMATS[kind].newest, **metadata}
    # The checksum comes last: labels that look like its place stand before it.
    keys = {METADATA_KEY: json.dumps(header), CHECKSUM_KEY: BLANK}
    with replacing(path, PARQUET) as temporary:
        pq.write_table(pa.table(table).replace_schema_metadata(keys), temporary)
        temporary.write_bytes(insert_checksum(temporary.read_bytes()))


def load(path: FilePath, kind: str, build: Callable[[Contents], Made]) -> Made:
    """Return what `build` makes of the contents that `save` wrote.

    Raises:
        FileError: if the file does not exist, is damaged, holds another kind, or has a version that
            cannot be read.
    """
    content = InputFile.at(path).read()
    metadata = _metadata(path, content, kind)
    if metadata is None:
        raise FileError(f"{path} holds no {kind} of this package.")
    try:
        parquet = _parquet(content)
        values = parquet.metadata.num_rows * parquet.metadata.num_columns
        if values > MAX_RATIO * (len(content) + FREE_BYTES):
            raise DataError("it declares far more values than its size allows for")
        return build(Contents(parquet.read(use_threads=False), metadata))
    except Warning:
        raise
    except Exception as error:  # the checksum fits, so whatever fails was wrong in the file
        why = str(error).rstrip(".")
        if isinstance(error, KeyError):
            why = f"it lacks {error}"
        message = f"{path} is not a complete file of {kind}: {why}. Was it changed?"
        raise FileError(message) from error


def read_metadata(file: InputFile, kind: str) -> dict[str, Any] | None:
    """Return the metadata of a Parquet file of this package; None for one of another program.

    Logs can be larger than memory, so the file is mapped. Only the footer of files of other
    programs is read.
    """
    with file.open() as opened:
        content: bytes | mmap.mmap = b""
        if file.size:
            content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        return _metadata(file.path, content, kind)


def kind_of(path: FilePath) -> str | None:
    """Return the kind of a file of this package, None for any other file."""
    try:
        keys = _parquet(InputFile.at(path).read()).metadata.metadata
        return str(parse_json(keys[METADATA_KEY])["kind"])
    except (FileError, OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return None


def _metadata(path: FilePath, content: bytes | mmap.mmap, kind: str) -> dict[str, Any] | None:
    """Return the metadata of a sound file of ours of some kind; None for a file of others."""
    try:
        keys = _parquet(content).metadata.metadata or {}
    except Exception as error:  # Arrow has many kinds
        why = str(error).rstrip(".")
        raise FileError(f"{path} is not a complete Parquet file: {why}.") from error
    # Damage can hide the metadata of a file of ours, but its footer still has the checksum.
    footer = content[-FOOTER_END - int.from_bytes(content[-FOOTER_END:][:4], "little") :]
    if METADATA_KEY not in keys and not MARK.search(footer):
        return None
    changed = f"{path} was changed after it was written:"
    try:
        metadata = parse_json(keys[METADATA_KEY])
        stored, version = metadata["kind"], int(metadata["version"])
    except KeyError as error:
        raise FileError(f"{changed} it has lost its metadata.") from error
    except (ValueError, TypeError) as error:
        raise FileError(f"{changed} its metadata cannot be read ({error}).") from error
    if stored != kind:
        raise FileError(f"{path} holds {stored}, not {kind}.")
    # The version comes before the checksum, which another version may compute in another way.
    known = FORMATS[kind]
    if not known.oldest <= version <= known.newest:
        age = ["an older", "a newer"][version > known.newest]
        raise FileError(
            f"{path} was written by {age} version of this package (format {version} of {kind}; "
            f"this one reads {known.oldest} to {known.newest}). Make it again with "
            f"{known.command}, or use that version."
        )
    checksum = next((keys[name] for name in CHECKSUM_KEYS if name in keys), b"")
    if not has_checksum(content, checksum):
        raise FileError(f"{changed} its checksum does not fit its contents.")
    return metadata


def _parquet(content: bytes | mmap.mmap) -> pq.ParquetFile:
    """Open the bytes of a Parquet file.

    Arrow's reader threads stay off (here and in `load`): releasing Python's bytes from one of them
    while the interpreter shuts down aborts the process.
    """
    longest = max(1, min(len(content), MAX_TEXT))
    buffer = pa.BufferReader(content)
    return pq.ParquetFile(buffer, pre_buffer=False, thrift_string_size_limit=longest)


def insert_checksum(content: bytes) -> bytes:
    """Return the bytes of a file with the SHA-256 of all others in place of the last `BLANK`."""
    before, _, after = content.rpartition(BLANK)
    return before + hashlib.sha256(before + after).hexdigest().encode() + after


def has_checksum(content: bytes | mmap.mmap, checksum: bytes) -> bool:
    """Return whether a checksum that stands in a file is the SHA-256 of all its other bytes."""
    at = content.rfind(checksum)
    end = at + len(checksum)
    with memoryview(content) as whole, whole[:at] as before, whole[end:] as after:
        digest = hashlib.sha256(before)
        digest.update(after)
    return digest.hexdigest().encode() == checksum


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Return the object that a JSON text holds; any other text is a ValueError."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("the JSON is not an object")
    return content


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values for JSON, with a SHA-256 of them."""
    plain = json.loads(json.dumps(content))
    return {**plain, CHECKSUM: checksum_of(json.dumps(plain, sort_keys=True), [])}


def write_json(path: FilePath, content: Mapping[str, Any]) -> None:
    """Write plain values with their checksum, for `read_json`."""
    write_text(path, json.dumps(with_checksum(content), indent=2) + "\n", [".json"])


def read_json(path: FilePath, hint: str = "") -> dict[str, Any]:
    """Return what `write_json` wrote; `hint` says what to do about a file that cannot be read."""
    try:
        text = InputFile.at(path).read().decode()
        stored = parse_json(text)
    except ValueError as error:  # UnicodeDecodeError is one
        raise FileError(f"{path} cannot be read: {error}. {hint}".rstrip()) from error
    content = {key: value for key, value in stored.items() if key != CHECKSUM}
    # 1e-05 and 1E-05 have one value, so the text must be what was written, too. Version 0.2 wrote
    # one line, with a line break at its end or without.
    line, lines = json.dumps(stored), json.dumps(stored, indent=2) + "\n"
    is_as_written = text in (lines, line, line + "\n")
    if not is_as_written or stored.get(CHECKSUM) != with_checksum(content)[CHECKSUM]:
        changed = f"{path} was changed after it was written: its checksum does not fit."
        raise FileError(f"{changed} {hint}".rstrip())
    return content


def write_arrays(path: FilePath, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays to an .npz file with a checksum at its end, for `read_arrays`."""
    with replacing(path, [".npz"]) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = BLANK  # the last bytes of the file
        temporary.write_bytes(insert_checksum(temporary.read_bytes()))


def read_arrays(path: FilePath) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `write_arrays` wrote, by name; nothing is unpickled."""
    content = InputFile.at(path).read()
    # Archives of version 0.2 end without a comment; each of their arrays has a CRC-32.
    last = content[-ARCHIVE_END_BYTES:]
    is_old = last.startswith(ARCHIVE_END) and last.endswith(b"\0\0")
    arrays = {}
    try:
        if not is_old and not has_checksum(content, content[-len(BLANK) :]):
            raise ValueError("its checksum does not fit")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ValueError("it declares more bytes than it has")
            for name in archive.namelist():
                member = io.BytesIO(archive.read(name))
                arrays[name.removesuffix(".npy")] = read_array(member, allow_pickle=False)
    except Exception as error:  # a damaged archive fails in many ways
        why = f"{path} is not a complete file of arrays: {error}. Was it changed?"
        raise FileError(why) from error
    return arrays


@dataclass(frozen=True)
class InputFile:
    """A regular file to read, with its device, inode, size and time of when it was named."""

    path: Path
    identity: tuple[int, int, int, int]

    @classmethod
    def at(cls, path: FilePath) -> InputFile:
        """Return a regular file; refuse directories, pipes, devices and URLs."""
        return cls(Path(path), _identity(path))

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.identity[2]

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file to read bytes; refuse it if it was changed before or meanwhile."""
        self.check_unchanged()
        with self.path.open("rb") as file:
            yield file
        self.check_unchanged()

    def read(self) -> bytes:
        """Return all bytes of the file."""
        with self.open() as file:
            return file.read()

    def check_unchanged(self) -> None:
        """Refuse a file that was changed since it was named."""
        if _identity(self.path) != self.identity:
            hint = "Read it again when nobody writes to it."
            raise FileError(f"{self.path} was changed while it was read. {hint}")


def _identity(path: FilePath) -> tuple[int, int, int, int]:
    name = os.fspath(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name):
            hint = "Only files of this machine are read: copy it here first."
            raise FileError(f"{name} is an address. {hint}") from None
        if isinstance(error, FileNotFoundError):
            raise FileError(f"{name} does not exist.") from None
        why = getattr(error, "strerror", None) or error
        raise FileError(f"{name!r} cannot be read: {why}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{name} is a folder. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        hint = "Write its contents to one."
        raise FileError(f"{name} is not a regular file, but a pipe or a device. {hint}")
    if not os.access(path, os.R_OK):
        raise FileError(f"{name} cannot be read: permission denied. Allow reading it.")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def input_folder(path: FilePath) -> Path:
    """Return the path of a folder that is to be read."""
    if not os.path.isdir(path):
        raise FileError(f"{os.fspath(path)} is not a folder.")
    return Path(path)


def check_target(path: FilePath, suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written, or say why not, before long work."""
    target, place = Path(path), _resolved(Path(path))
    missing = f"the folder {place.parent} does not exist. Make it first."
    odd = "a device, a pipe, or a circle of links. Give another name."
    problems = (
        (not _ends_in(target, suffixes), f"must end in {' or '.join(suffixes)}."),
        (place.is_dir(), "is a folder. Give the name of a file in it."),
        (not place.parent.is_dir(), f"cannot be written: {missing}"),
        (os.path.lexists(place) and not place.is_file(), f"is no ordinary file, but {odd}"),
        (
            place.exists() and not os.access(place, os.W_OK),
            "is write-protected. Give another name, or allow writing it.",
        ),
    )
    for exists, problem in problems:
        if exists:
            raise FileError(f"{target} {problem}")
    return target


def _ends_in(path: Path, suffixes: Sequence[str]) -> bool:
    return path.name.lower().endswith(tuple(suffixes))


def check_folder(path: FilePath) -> Path:
    """Return the path of a folder that can be made or written to, or say why not."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    nearest = _resolved(folder)
    while not nearest.exists():
        nearest = nearest.parent
    _check_writable(folder, nearest)
    return folder


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse files that are written twice, are read, too, or lie where nothing can be written.

    Files are compared by what they are, not by their names: links are followed.
    """
    used = [(path, "is read, too") for path in inputs]
    for path in outputs:
        for other, how in used:
            same = _resolved(path) == _resolved(other)
            if same or (path.exists() and other.exists() and path.samefile(other)):  # hard links
                hint = "Give another name."
                raise FileError(f"{path} is to be written, but {how} as {other}. {hint}")
        used.append((path, "is written already"))
        if _resolved(path).parent.is_dir():
            _check_writable(path, _resolved(path).parent)


def _resolved(path: Path) -> Path:
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


_complete: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("complete", default=None)
"""Complete temporary files that are to be renamed together, and what to rename them to."""


@contextmanager
def replacing_together() -> Iterator[None]:
    """Let all files that are written inside take their places at the end, or none of them.

    They are complete and on the disk by then, and only renamed. A kill in that moment can leave
    some new files and some old ones, each of them complete.
    """
    complete: list[tuple[Path, Path]] = []
    token = _complete.set(complete)
    try:
        yield
        for temporary, target in complete:
            with _naming(target):
                os.replace(temporary, _resolved(target))
                if os.name == "posix":  # elsewhere a folder cannot be opened
                    _flush(_resolved(target).parent, os.O_RDONLY)
    finally:
        _complete.reset(token)
        for temporary, _ in complete:
            _discard(temporary)


@contextmanager
def replacing(path: FilePath, suffixes: Sequence[str]) -> Iterator[Path]:
    """Give a temporary path to write to; on success it takes the place of `path`.

    The contents are on the disk before the new name is, so that a crash leaves the old file or the
    new one. A file that is replaced keeps its permissions; a link stays, and what it points to is
    replaced. After a kill the temporary file stays behind; no other write uses its name.
    """
    target = check_target(path, suffixes)
    place = _resolved(target)
    ending = next(suffix for suffix in suffixes if _ends_in(target, [suffix]))
    temporary = place.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:12]}{ending}")
    together = nullcontext() if _complete.get() is not None else replacing_together()
    with together, _naming(target):
        try:
            mode, private = None, 0o666
            if place.exists():
                mode = stat.S_IMODE(place.stat().st_mode)
                private = mode & 0o700  # until the file is complete
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private))
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            _flush(temporary, os.O_RDWR)
        except BaseException:
            _discard(temporary)
            raise
        waiting = _complete.get()
        assert waiting is not None
        waiting.append((temporary, target))


def _discard(temporary: Path) -> None:
    with suppress(OSError):  # it took its place, or its folder is gone or read-only by now
        temporary.unlink()


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Name the file in errors of the operating system."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error


def _flush(path: Path, flags: int) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: FilePath, text: str, suffixes: Sequence[str]) -> None:
    """Write text, such as HTML, to a file."""
    with replacing(path, suffixes) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_table(path: FilePath, table: Any, *, exact: bool = False) -> None:
    """Write a table, a data frame, or columns by name, to .parquet or .csv (.csv.gz, .csv.zst).

    CSV is for people: text that a spreadsheet would take for a formula gets an apostrophe in front,
    unless it is to be `exact`, such as logs, which are read again.
    """
    rows = pa.table(table).replace_schema_metadata(None)
    with replacing(path, TABLES) as temporary:
        if temporary.name.endswith(PARQUET):
            pq.write_table(rows, temporary)
            return
        heads = _csv_column(pa.array(rows.column_names, pa.string()), exact).to_pylist()
        columns = [_csv_column(column, exact) for column in rows.columns]
        packed = {".gz": "gzip", ".zst": "zstd"}.get(temporary.suffix)
        with pa.output_stream(str(temporary), compression=packed) as stream:
            pc.write_csv(pa.table(columns, names=heads), stream)


def _csv_column(column: Any, exact: bool) -> Any:
    """Return an Arrow column as CSV can hold it, with an apostrophe before formulas."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        return pac.if_else(pac.is_nan(column), None, column)
    if exact or not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    is_number = pac.match_substring_regex(column, NUMBER)
    is_formula = pac.and_not(pac.match_substring_regex(column, FORMULA), is_number)
    return pac.if_else(is_formula, pac.binary_join_element_wise("'", column, ""), column)


@contextmanager
def locked(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock file, which ends with the process; `busy` is the error if another has it."""
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
def claim_run_folder(folder: Path, settings: Mapping[str, Any], pattern: str) -> Iterator[None]:
    """Hold a folder for runs of some settings, made if it is not there; refuse one of others.

    `pattern` is that of the names of runs; a folder without any is free for other settings. One
    process works in a folder at a time: a second one is refused, whatever its settings.
    """
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    busy = f"Another process works in {folder}. Wait until it ends, or give another folder."
    with locked(folder / LOCK, busy):
        path, plain = folder / SETTINGS, json.loads(json.dumps(settings))
        if not any(folder.glob(pattern)):
            write_json(path, plain)
        elif not path.exists():
            raise FileError(f"{folder} holds runs without {SETTINGS}. Give another folder.")
        before = read_json(path, "Give another folder.")
        other = ", ".join(sorted(key for key in plain if before.get(key) != plain[key]))
        if other:
            hint = "Give another folder, or remove this one to begin anew."
            which = f"runs with another {other}, of another call or version"
            raise FileError(f"{folder} holds {which}. {hint}")
        yield


class Scratch:
    """A temporary folder, which is removed together with this object, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="causal_shaping_"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
