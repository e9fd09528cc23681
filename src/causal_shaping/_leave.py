"""Ending a process quietly.

With torch and compiled code loaded, Python cannot take DuckDB's module apart at its end, and the module then prints its
own constants as leaks: some hundred lines that look like a crash. Nothing of ours is among them. So such a process ends
without that.
"""

from __future__ import annotations

import atexit
import os
import sys


def leave_quietly(code: int = 0) -> None:
    """End the process now, after its exit handlers, if its ordinary end would not be quiet."""
    if {"torch", "duckdb"} <= set(sys.modules):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
