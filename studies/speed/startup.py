"""What starting costs: CPU time of `import causal_shaping` and of the command, as multiples of `import numpy`.

All are measured in processes of their own, in turn; the fastest of each counts. `tests/test_startup.py` tests which
modules are loaded.
"""

import resource
import subprocess
import sys

from studies.speed._table import SECONDS, Row

YARDSTICK = "import numpy"
COMMAND = "import sys; sys.argv = ['causal-shaping', '--version']; from causal_shaping.cli import main; main()"
STARTS = {"import causal_shaping": ("import causal_shaping", 3.0), "causal-shaping --version": (COMMAND, 4.0)}


def cpu_seconds(code):
    """Return the CPU time of a new process that runs some code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def rows(quick):
    codes = {YARDSTICK: YARDSTICK} | {name: code for name, (code, _) in STARTS.items()}
    # The first turn compiles files and fills the disk's cache.
    turns = [{name: cpu_seconds(code) for name, code in codes.items()} for _ in range(4 if quick else 15)]
    least = {name: min(turn[name] for turn in turns) for name in codes}
    for name, (_, most) in STARTS.items():
        yield Row(name, least[name], SECONDS, YARDSTICK, least[YARDSTICK], most=most)
