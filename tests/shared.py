"""What is made once for all processes of the suite."""

import fcntl
import os
from contextlib import contextmanager


@contextmanager
def shared_folder(tmp_path_factory, name):
    """Give a folder, and whether it is still to be filled: the first process that asks fills it, others wait for it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    with (base / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        folder, filled = base / name, base / f"{name}.filled"
        folder.mkdir(exist_ok=True)
        yield folder, not filled.exists()
        filled.touch()
