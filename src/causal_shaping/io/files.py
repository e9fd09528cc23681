"""Writing files so that nothing is lost: under a temporary name first, renamed when complete.

- `check_target`, `replacing`: one file.
- `write_text`, `write_table`: text, and tables for other programs.
- `claim_run_folder`: a folder of many, whose settings never mix.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from causal_shaping.errors import FileError
from causal_shaping.io.inputs import read_json, with_checksum

PARQUET = (".parquet",)
CSV = (".csv", ".csv.gz", ".csv.zst")
TABLES = (*PARQUET, *CSV)
"""The endings of a table that other programs can open, and of a file of logs."""
SETTINGS = "settings.json"


def check_target(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written, or say why not; to be asked before long work."""
    target = Path(path)
    if not target.name.lower().endswith(tuple(suffixes)):
        raise FileError(f"{target} must end in {' or '.join(suffixes)}.")
    if target.is_dir():
        raise FileError(f"{target} is a folder. Give the name of a file in it.")
    if not target.parent.is_dir():
        raise FileError(f"{target} cannot be written: the folder {target.parent} does not exist. Make it first.")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Give a temporary path to write to; on success it takes the place of `path`, on failure it is removed.

    The contents are on the disk before the new name is, so that a crash leaves the old file or the new one. A file
    that is replaced keeps its permissions.
    """
    target = check_target(path, suffixes)
    temporary = target.with_name(f".{uuid.uuid4().hex[:12]}.{target.name}")
    try:
        if target.exists():  # readable to nobody who could not read the old file, not even while it is written
            temporary.touch(stat.S_IMODE(target.stat().st_mode) & 0o700)
        yield temporary
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        _flush(temporary, os.O_RDWR)
        temporary.replace(target)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            _flush(target.parent, os.O_RDONLY)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


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


def write_table(path: str | os.PathLike[str], table: Any) -> None:
    """Write a table, a data frame, or columns by name, to a .parquet or .csv (.csv.gz, .csv.zst) file."""
    rows = pa.table(table).replace_schema_metadata(None)
    with replacing(path, TABLES) as temporary:
        if temporary.name.lower().endswith(PARQUET):
            pq.write_table(rows, temporary)
            return
        plain = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in rows.schema]
        packed = {".gz": "gzip", ".zst": "zstd"}.get(temporary.suffix.lower())
        with pa.output_stream(str(temporary), compression=packed) as stream:
            pc.write_csv(rows.cast(pa.schema(plain)), stream)


def claim_run_folder(folder: Path, settings: Mapping[str, Any], held: str) -> None:
    """Make a folder for runs of some settings, or check that the runs in it have the same ones.

    `held` is the pattern of what is kept there; a folder without any is free for other settings.
    """
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    path, plain = folder / SETTINGS, json.loads(json.dumps(settings))
    if any(folder.glob(held)):
        if not path.exists():
            raise FileError(f"{folder} holds runs without {SETTINGS}. Give another folder.")
        before = read_json(path, "Give another folder.")
        other = sorted(key for key in plain if before.get(key) != plain[key])
        if other:
            raise FileError(f"{folder} holds runs with another {', '.join(other)}. Give another folder, or remove it.")
    else:  # nothing is done yet
        write_text(path, json.dumps(with_checksum(plain), indent=2) + "\n", [".json"])


class Scratch:
    """A temporary folder, which is removed together with this object, or when Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="causal_shaping_"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
