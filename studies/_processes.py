"""Worker processes that end quietly, and with the process that started them, however that ends."""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from multiprocessing import parent_process
from typing import Any

import joblib

from causal_shaping._leave import leave_quietly

WATCHED_EVERY = 0.5
"""Seconds between looks at whether the parent is still there."""


def processes(count: int, **options: Any) -> joblib.Parallel:
    """Return a pool of processes that gives results as they come."""
    # A worker that has come to hold much memory is replaced, and its job is not lost: nothing that a user need know.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    prepared = {} if count == 1 else {"initializer": _begin}  # one job runs in this process
    return joblib.Parallel(n_jobs=count, return_as="generator_unordered", **prepared, **options)


def _begin() -> None:
    """Prepare a worker process for its end."""
    atexit.register(leave_quietly)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.pid,), daemon=True).start()


def _follow(parent: int) -> None:
    """End this process once its parent is gone, which a killed one cannot ask for."""
    while os.getppid() == parent:
        time.sleep(WATCHED_EVERY)
    os._exit(1)
