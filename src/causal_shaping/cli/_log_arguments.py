"""Logs as the command line names them: `[NAME=]FILE[,FILE...]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from causal_shaping.data.space import Bins
from causal_shaping.errors import ArgumentError
from causal_shaping.logs._finding import MINARI
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.table import LogTable


def open_all(texts: Sequence[str], bins: Mapping[str, Bins] | None = None, **columns: Any) -> list[LogTable]:
    """Open what several arguments name, each a source of its own.

    Args:
        texts: arguments, see `named_logs`.
        bins: quantiles are those of the first log, so that all are cut alike.
        columns: see `open_logs`.
    """
    opened: list[LogTable] = []
    for text in texts:
        cuts = {name: opened[0].bins[name] for name in bins or ()} if opened else bins
        opened.append(named_logs(text, bins=cuts or None, **columns))
        for other in opened[:-1]:
            if opened[-1].source is not None and opened[-1].source == other.source:
                raise ArgumentError(
                    f"{other.origin} and {opened[-1].origin} are both called {other.source!r}. Name them, as in "
                    f"NAME={opened[-1].origin}, or put a comma between the parts of one source."
                )
    return opened


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
    if equals and not (name and where):
        raise ArgumentError(f"{text!r} must have a name in front of '=' and a file behind it.")
    single = where.startswith(MINARI) or Path(where).exists()
    files: Any = where if single else [part for part in where.split(",") if part]
    return open_logs(files, source=name or None, **columns)
