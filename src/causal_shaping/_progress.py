"""One kind of progress callback for all long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float, float, str], None]
"""Called with how much is done, of how much in all, and what is being worked on."""


def no_progress(done: float, total: float, what: str) -> None:
    """Tell nobody."""
