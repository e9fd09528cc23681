"""One kind of progress callback for all long work, and work that is done side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")
Progress: TypeAlias = Callable[[float, float, str], None]
"""Called with how much is done, of how much in all, and what is being worked on."""


def no_progress(done: float, total: float, what: str) -> None:
    """Tell nobody."""


def part_of(progress: Progress, begin: float, end: float) -> Progress:
    """Return the progress of a part of the work, told as that of all of it: from `begin` to `end`, of 1."""
    return lambda done, total, what: progress(begin + (end - begin) * (done / total if total else 1.0), 1.0, what)


def in_threads(work: Callable[[Item], Made], items: Iterable[Item], workers: int) -> Iterator[Made]:
    """Yield what work makes of each item, as it is done; an error, or Ctrl-C, stops what has not begun."""
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(work, item) for item in items]
        try:
            for job in as_completed(jobs):
                yield job.result()
        finally:
            for job in jobs:
                job.cancel()
