"""Writing files so that nothing is lost: under a temporary name first, renamed when complete.

- `check_target`, `replacing`: one file.
- `claim_run_folder`: a folder of many, whose settings never mix.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causal_shaping.errors import FileError

PARQUET = (".parquet",)
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


def claim_run_folder(folder: Path, settings: Mapping[str, Any], held: str) -> None:
    """Make a folder for runs of some settings, or check that the runs in it have the same ones.

    Args:
        folder: where; its `settings.json` says what was run.
        settings: plain values.
        held: the pattern of what is kept there; a folder without any is free for other settings.
    """
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    path, plain = folder / SETTINGS, json.loads(json.dumps(settings))
    if any(folder.glob(held)):
        if not path.exists():
            raise FileError(f"{folder} holds runs without {SETTINGS}. Give another folder.")
        try:
            before = dict(json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise FileError(f"{path} cannot be read ({error}). Give another folder.") from error
        other = sorted(key for key in plain if before.get(key) != plain[key])
        if other:
            raise FileError(f"{folder} holds runs with another {', '.join(other)}. Give another folder, or remove it.")
    else:  # nothing is done yet
        with replacing(path, [".json"]) as temporary:
            temporary.write_text(json.dumps(plain, indent=2) + "\n")
