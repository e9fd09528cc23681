"""Backups on several threads, where there are many outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from causal_shaping.data.arrays import LongArray

MANY_OUTCOMES = 100_000
"""With fewer outcomes than this one thread is as fast as several."""

Parts = list[tuple[int, int]]


def share_out(ends: LongArray, outcomes: int) -> Parts:
    """Return what each thread does: ranges with about equally much work, which for each item ends where `ends` says."""
    threads = numba.get_num_threads() if outcomes >= MANY_OUTCOMES else 1
    cuts = np.searchsorted(ends, np.arange(1, threads) * (ends[-1] / threads)).tolist() if threads > 1 else []
    return list(itertools.pairwise([0, *cuts, len(ends)]))


def run_parts(kernel: Callable[..., None], parts: Parts, *arguments: Any) -> None:
    """Run a compiled function, which takes where its part begins and ends, on all parts."""
    if len(parts) == 1:
        kernel(*parts[0], *arguments)
        return
    with ThreadPoolExecutor(len(parts)) as threads:
        for done in [threads.submit(kernel, *part, *arguments) for part in parts]:
            done.result()
