"""Writing files so that nothing is lost: under a temporary name first, renamed when complete."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from causal_shaping.errors import FileError

PARQUET = (".parquet",)


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
    """Give a temporary path to write to; rename it to `path` on success, remove it on failure.

    Args:
        path: the file to make or replace.
        suffixes: the endings that it may have, such as [".png", ".svg"].
    """
    target = check_target(path, suffixes)
    temporary = target.with_name(f".{uuid.uuid4().hex[:12]}.{target.name}")
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
