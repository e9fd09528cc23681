"""Opening what a user names to be read: one file or folder, literally, and the same one to the end.

- `InputFile`: a regular file; it remembers which file it was when it was named, and notices a change.
- `input_folder`: a folder.
- `read_json`, `checked_json`, `with_checksum`: JSON with a checksum inside.
- `read_arrays`: named arrays, whose sizes are checked before memory is taken.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import checksum_of
from causal_shaping.errors import FileError

CHECKSUM = "checksum"
MAX_HEADER = 10_000
"""The header of an array in an .npz file is not longer than this."""

NUMBERS = "biuf"
"""The kinds of arrays that are read: truth values, integers, real numbers."""


@dataclass(frozen=True)
class InputFile:
    """A regular file that is to be read, and which one it was when it was named: device, inode, size and time."""

    path: Path
    identity: tuple[int, int, int, int]

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> InputFile:
        """Return the file of a name; refuse what is none: folders, pipes, devices, addresses on a network."""
        return cls(Path(path), _identity(_status(path), path))

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.identity[2]

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file to read bytes; what was read in between is refused if the file was changed meanwhile."""
        try:  # without O_NONBLOCK a pipe that takes the file's place would block for ever
            handle = os.open(self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        with os.fdopen(handle, "rb") as file:
            self._check(os.fstat(handle))
            try:
                yield file
            finally:
                self._check(os.fstat(handle))

    def check_unchanged(self) -> None:
        """Refuse a file that is no longer what it was when it was named."""
        self._check(_status(self.path))

    def _check(self, status: os.stat_result) -> None:
        if _identity(status, self.path) != self.identity:
            raise FileError(f"{self.path} was changed while it was read. Read it again when nobody writes to it.")


def _status(path: str | os.PathLike[str]) -> os.stat_result:
    text = os.fspath(path)
    try:
        return os.stat(path)
    except FileNotFoundError:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text):
            raise FileError(f"{text} is an address. Only files of this machine are read: copy it here first.") from None
        raise FileError(f"{text} does not exist.") from None
    except (OSError, ValueError) as error:  # a zero byte in a name is a ValueError
        raise FileError(f"{text!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _identity(status: os.stat_result, path: str | os.PathLike[str]) -> tuple[int, int, int, int]:
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{os.fspath(path)} is a folder. Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{os.fspath(path)} is not a regular file, but a pipe or a device. Write its contents to one.")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def input_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of a folder that is to be read."""
    if not stat.S_ISDIR(_status(path).st_mode):
        raise FileError(f"{os.fspath(path)} is not a folder.")
    return Path(path)


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Return the object that a JSON text holds; any other text is a ValueError."""
    try:
        held = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(held, dict):
        raise ValueError("the JSON is not an object")
    return held


def read_json(path: str | os.PathLike[str], hint: str = "", check: bool = True) -> dict[str, Any]:
    """Return the object in a JSON file, without its checksum if that is checked; see `checked_json`.

    `hint` says what to do about a file that cannot be read.
    """
    try:
        with InputFile.at(path).open() as file:
            held = parse_json(file.read())
    except ValueError as error:  # UnicodeDecodeError is one
        raise FileError(f"{path} cannot be read: {error}. {hint}".rstrip()) from error
    return checked_json(held, path, hint) if check else held


def checked_json(
    held: Mapping[str, Any], path: str | os.PathLike[str], hint: str = "", needed: bool = False
) -> dict[str, Any]:
    """Return what `with_checksum` was given; refuse what was changed since.

    Old files have no checksum: that is allowed, unless it is `needed`.
    """
    content = {key: value for key, value in held.items() if key != CHECKSUM}
    if (CHECKSUM in held or needed) and held.get(CHECKSUM) != with_checksum(content)[CHECKSUM]:
        raise FileError(f"{path} was changed after it was written: its checksum does not fit. {hint}".rstrip())
    return content


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values for JSON, with a SHA-256 of them."""
    plain = json.loads(json.dumps(content))
    return {**plain, CHECKSUM: checksum_of(json.dumps(plain, sort_keys=True), [])}


def read_arrays(path: str | os.PathLike[str]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of an .npz file by name, unpickling nothing.

    No more memory is taken than the file has bytes. The format has a checksum of each array (CRC-32), which is checked.
    """
    opened, arrays = InputFile.at(path), dict[str, npt.NDArray[Any]]()
    try:
        with opened.open() as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("it is compressed")
            if sum(max(member.file_size, member.compress_size) for member in members) > opened.size:
                raise ValueError("it declares more bytes than the file has")  # or the same ones many times
            for member in members:
                with archive.open(member) as held:
                    arrays[member.filename.removesuffix(".npy")] = _array(held, member)
    except FileError:
        raise
    except Exception as error:  # a damaged archive shows itself in many ways
        raise FileError(f"{path} is not a complete file of arrays: {error}. Was it changed?") from error
    return arrays


def _array(file: Any, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return the array of an open .npy file, whose header must be of the size that the file has."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, columns_first, dtype = read[np.lib.format.read_magic(file)](file, max_header_size=MAX_HEADER)
    content = file.read()  # to the end, where the checksum is checked
    size = dtype.itemsize * math.prod(int(size) for size in shape)
    if dtype.kind not in NUMBERS or len(content) != size:
        raise ValueError(f"{member.filename} does not hold what its header says")
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if columns_first else "C")
    return array.copy()  # writable, in the usual order
