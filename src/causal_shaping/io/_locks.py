"""Locks that end with their process, however it ends: who still works on a file or in a folder.

- `make_locked`, `hold`, `hold_folder`: a new file that is locked, one that everybody locks by its name, and a folder.
- `is_abandoned`: whether nobody holds what somebody made.

Where there are no such locks (outside of POSIX, and on some network file systems) everybody gets theirs, and nothing
counts as abandoned.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def make_locked(path: Path, mode: int) -> int | None:
    """Make a file and return its handle, locked; None if somebody took it for abandoned before it was."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    if _lock(handle, otherwise=True) and os.fstat(handle).st_nlink:
        return handle
    os.close(handle)
    return None


def hold(path: Path) -> int | None:
    """Return the handle of a file, made if it is not there, which others cannot hold meanwhile; None if one does.

    Who holds it may remove it before closing the handle.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        if not _lock(handle, otherwise=True):
            os.close(handle)
            return None
        if os.fstat(handle).st_nlink:
            return handle
        os.close(handle)  # it was removed by who held it before


def hold_folder(path: Path) -> int | None:
    """Return the handle of a new folder, locked, -1 where that cannot be; None if somebody took it for abandoned."""
    if sys.platform == "win32":
        return -1
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    if _lock(handle, otherwise=True) and path.exists():
        return handle
    os.close(handle)
    return None


def is_abandoned(path: Path, handle: int) -> bool:
    """Lock what was opened if nobody holds it; False also if it is another one's by now, or cannot be told."""
    if not _lock(handle, otherwise=False):
        return False
    opened, there = os.fstat(handle), path.lstat()
    return (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)


def _lock(handle: int, otherwise: bool) -> bool:
    """Return whether a file could be locked; `otherwise` where there are no locks."""
    if sys.platform == "win32":
        return otherwise
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return otherwise
    return True
