"""Logs as the command line names them: `[NAME=]FILE[,FILE...]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from causal_shaping.errors import DataError
from causal_shaping.logs.opening import MINARI, open_logs
from causal_shaping.logs.table import LogTable


def named_logs(text: str, **columns: Any) -> LogTable:
    """Open what an argument names.

    Args:
        text: a file, files of one source with commas between them, or a Minari data set; with `NAME=` in front to name
            the source. A name that exists as a file is that file, whatever signs it holds.
        columns: see `open_logs`.
    """
    if Path(text).exists():
        return open_logs(text, **columns)
    name, equals, where = text.rpartition("=")
    if equals and not name:
        raise DataError(f"{text!r} has an empty name in front of '='.")
    where = where if equals else text
    files: Any = where if where.startswith(MINARI) or Path(where).exists() else where.split(",")
    return open_logs(files, name or None, **columns)
