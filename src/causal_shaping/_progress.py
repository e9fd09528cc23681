"""One kind of progress callback for all long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, float, str], None]
"""Called with how much is done, of how much in all, and what is being worked on."""


def no_progress(done: float, total: float, what: str) -> None:
    """Tell nobody."""


def part_of(progress: Progress, begin: float, end: float) -> Progress:
    """Return the progress of a part of the work, told as that of all of it: from `begin` to `end`, of 1."""
    return lambda done, total, what: progress(begin + (end - begin) * (done / total if total else 1.0), 1.0, what)
