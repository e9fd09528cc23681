"""What starting costs: CPU time of `import causal_shaping` and of the command, as multiples of `import numpy`.

All are measured in processes of their own, in turn; the fastest of each counts. `tests/test_startup.py` tests which
modules are loaded.
"""

import resource
import subprocess
import sys

from studies import ROOT
from studies.speed._table import Row

COMMAND = "import sys; sys.argv = ['causal-shaping', {argument!r}]; from causal_shaping.cli import main; main()"
YARDSTICK = "import numpy"
STARTS = {
    "import causal_shaping": ("import causal_shaping", 3.0),
    "causal-shaping --version": (COMMAND.format(argument="--version"), 4.0),
}
PEAK = """
import atexit, sys
sys.path.append({folder!r})
from studies.speed._table import peak
atexit.register(lambda: print(peak()))
"""


def cpu_seconds(code):
    """Return the CPU time of a new process that runs some code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def peak_of(code):
    """Return the most memory that some code held, in MB."""
    code = f"{PEAK.format(folder=str(ROOT))}\n{code}"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(ran.stdout.splitlines()[-1])


def rows(quick):
    codes = {YARDSTICK: YARDSTICK, **{name: code for name, (code, _) in STARTS.items()}}
    found = {name: [] for name in codes}
    for _ in range(4 if quick else 15):  # the first compiles files and fills the disk's cache
        for name, code in codes.items():
            found[name].append(cpu_seconds(code))
    for name, (code, most) in STARTS.items():
        yield Row(name, min(found[name]), "CPU s", YARDSTICK, min(found[YARDSTICK]), most=most, peak=peak_of(code))
