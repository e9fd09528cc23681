"""Each compiled function is compiled once for all processes of the suite, if their cache is empty."""

import fcntl
import functools
import os
from pathlib import Path

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


def share_compilation():
    """Let a process that needs a function which another one compiles wait for it, and read it from the cache.

    Functions call each other in one direction, so that no two processes wait for each other.
    """
    compile_alone, held = Dispatcher.compile, set()

    @functools.wraps(compile_alone)
    def compile_once(self, sig):
        folder, name = (
            getattr(self._cache, "cache_path", None),
            f"{self.py_func.__module__}.{self.py_func.__qualname__}",
        )
        with global_compiler_lock:  # first: a thread that waits for it must hold no file
            if folder is None or name in held:
                return compile_alone(self, sig)
            os.makedirs(folder, exist_ok=True)
            with (Path(folder) / f"{name}.lock").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                held.add(name)
                try:
                    return compile_alone(self, sig)
                finally:
                    held.remove(name)

    Dispatcher.compile = compile_once
