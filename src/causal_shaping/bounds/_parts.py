"""Where the entries of a source, and those of a step, stand in counts, which are ordered by source and then by step."""

from __future__ import annotations

import numpy as np

from causal_shaping.data.arrays import IntArray, LongArray
from causal_shaping.data.counts import Counts


def part_of(counts: Counts, source: int, step: int | None = None) -> slice:
    """Return where the entries of a source stand, for counts by step those of one step."""
    begin, end = _range(counts.source, source)
    if counts.step is None:
        return slice(begin, end)
    first, last = _range(counts.step[begin:end], 0 if step is None else step)
    return slice(begin + first, begin + last)


def parts_of(counts: Counts, step: int | None = None) -> list[slice]:
    """Return the same of each source."""
    return [part_of(counts, source, step) for source in range(len(counts.sources))]


def entries_of(counts: Counts, step: int | None = None) -> slice | LongArray:
    """Return where the entries of a step stand, rising; all of them for counts that pool steps."""
    if counts.step is None:
        return slice(None)
    return np.concatenate([np.arange(part.start, part.stop) for part in parts_of(counts, step)])


def _range(column: IntArray, value: int) -> tuple[int, int]:
    """Return where a value stands in a sorted column."""
    wanted = np.int32(value)
    return int(np.searchsorted(column, wanted)), int(np.searchsorted(column, wanted, side="right"))
