"""Opening what a user names to be read: one file or folder, literally, and the same one to the end.

- `InputFile`: a regular file, which notices if it was changed since it was named.
- `input_folder`: a folder.
- `filled`, `fits`: the checksum inside a file, of all its other bytes.
- `parse_json`, `with_checksum`, `read_json`: JSON with a checksum inside.
- `read_arrays`: named arrays with a checksum behind them.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy.typing as npt
from numpy.lib.format import read_array

from causal_shaping.data.arrays import checksum_of
from causal_shaping.errors import FileError

CHECKSUM = "checksum"
BLANK = b"0" * 64
"""What stands in a file where its checksum will be: as long as a SHA-256 in hexadecimal digits."""

ARCHIVE_END, ARCHIVE_END_BYTES = b"PK\x05\x06", 22
"""How the last record of a .npz file begins, and its size if nothing stands behind it."""


@dataclass(frozen=True)
class InputFile:
    """A regular file to be read, and its device, inode, size and time when it was named."""

    path: Path
    identity: tuple[int, int, int, int]

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> InputFile:
        """Return the file of a name; refuse folders, pipes, devices and addresses on a network."""
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
        """Refuse a file that is no longer what it was when it was named."""
        if _identity(self.path) != self.identity:
            hint = "Read it again when nobody writes to it."
            raise FileError(f"{self.path} was changed while it was read. {hint}")


def _identity(path: str | os.PathLike[str]) -> tuple[int, int, int, int]:
    text = os.fspath(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text):
            hint = "Only files of this machine are read: copy it here first."
            raise FileError(f"{text} is an address. {hint}") from None
        if isinstance(error, FileNotFoundError):
            raise FileError(f"{text} does not exist.") from None
        why = getattr(error, "strerror", None) or error
        raise FileError(f"{text!r} cannot be read: {why}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{text} is a folder. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        hint = "Write its contents to one."
        raise FileError(f"{text} is not a regular file, but a pipe or a device. {hint}")
    if not os.access(path, os.R_OK):
        raise FileError(f"{text} cannot be read: permission denied. Allow reading it.")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def input_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that is to be read."""
    if not os.path.isdir(path):
        raise FileError(f"{os.fspath(path)} is not a folder.")
    return Path(path)


def filled(content: bytes) -> bytes:
    """Return the bytes of a file with the SHA-256 of all others in place of the last `BLANK`."""
    before, _, after = content.rpartition(BLANK)
    return before + hashlib.sha256(before + after).hexdigest().encode() + after


def fits(content: bytes | mmap.mmap, checksum: bytes) -> bool:
    """Return whether a checksum that stands in a file is the SHA-256 of all its other bytes."""
    at = content.rfind(checksum)
    with memoryview(content) as whole, whole[:at] as before, whole[at + len(checksum) :] as after:
        others = hashlib.sha256(before)
        others.update(after)
    return others.hexdigest().encode() == checksum


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


def read_json(path: str | os.PathLike[str], hint: str = "") -> dict[str, Any]:
    """Return what `files.write_json` wrote; refuse a file in which a single byte was changed.

    `hint` says what to do about a file that cannot be read.
    """
    try:
        text = InputFile.at(path).read().decode()
        stored = parse_json(text)
    except ValueError as error:  # UnicodeDecodeError is one
        raise FileError(f"{path} cannot be read: {error}. {hint}".rstrip()) from error
    content = {key: value for key, value in stored.items() if key != CHECKSUM}
    # The values are the same for 1e-05 and 1E-05, so the text must be as it was written, too.
    short, indented = json.dumps(stored), json.dumps(stored, indent=2) + "\n"
    as_written = text in (indented, short, short + "\n")  # version 0.2 wrote the last two
    if not as_written or stored.get(CHECKSUM) != with_checksum(content)[CHECKSUM]:
        why = "its checksum does not fit"
        raise FileError(f"{path} was changed after it was written: {why}. {hint}".rstrip())
    return content


def read_arrays(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `files.write_arrays` wrote, by name; nothing is unpickled."""
    content = InputFile.at(path).read()
    # Archives of version 0.2 end without a checksum; they have one (CRC-32) of each array.
    last = content[-ARCHIVE_END_BYTES:]
    is_old = last.startswith(ARCHIVE_END) and last.endswith(b"\0\0")
    try:
        if not is_old and not fits(content, content[-len(BLANK) :]):
            raise ValueError("its checksum does not fit")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ValueError("it declares more bytes than it has")
            members = {name: io.BytesIO(archive.read(name)) for name in archive.namelist()}
        return {name.removesuffix(".npy"): read_array(member, allow_pickle=False) for name, member in members.items()}
    except Exception as error:  # a damaged archive shows itself in many ways
        why = f"{path} is not a complete file of arrays: {error}. Was it changed?"
        raise FileError(why) from error
