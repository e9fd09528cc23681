"""Ending a process quietly.

- `leave_quietly`: at the end of a process.
- `interrupt_quietly`: by Ctrl-C, while a command still starts.

With torch and compiled code loaded, Python cannot take DuckDB's module apart at its end, and the module then prints its
own constants as leaks: some hundred lines that look like a crash. Nothing of ours is among them. So such a process ends
without that.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

INTERRUPTED = 130
"""The exit code of what Ctrl-C ended."""


def interrupt_quietly() -> None:
    """Let Ctrl-C end the command line without a traceback, if that is what this process is."""
    if os.path.basename(sys.argv[0] if sys.argv else "") in ("-m", "causal-shaping", "causal-shaping.exe"):
        ordinary = sys.excepthook

        def end(kind: Any, error: Any, trace: Any) -> None:
            if issubclass(kind, KeyboardInterrupt):
                os._exit(INTERRUPTED)
            ordinary(kind, error, trace)

        sys.excepthook = end


def leave_quietly(code: int = 0) -> None:
    """End the process now, after its exit handlers, if its ordinary end would not be quiet."""
    if {"torch", "duckdb"} <= set(sys.modules):
        atexit.unregister(leave_quietly)  # as an exit handler it would call itself without end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
