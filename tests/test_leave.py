"""A process ends quietly, and its exit handlers have run."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, types
from causal_shaping._leave import leave_quietly
sys.modules |= {name: types.ModuleType(name) for name in ("torch", "duckdb")}
atexit.register(lambda: print("of those before"))
"""


@pytest.mark.parametrize("ending", ["leave_quietly(3)", "atexit.register(leave_quietly, 3)"])
def test_a_process_ends_quietly_after_its_exit_handlers_also_if_leaving_is_one_of_them(ending):
    """Workers of the study register it, and end when they are idle or have grown."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM + ending], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "of those before\n", "")
