"""What the suite and the whole study cost beside those of the first version, on one machine.

The first version is checked out from this repository's history, into a folder and an environment of its own
(`studies/speed/.rivals`), and its suite is run once before anything is measured. Ours is the checkout that this file is
in: run `make suite` once before, so that what it compiles is there, too. Half an hour, on all cores; not part of
`make bench`. Counted is the CPU time of all processes that have ended, which leaves out Spark's own.

    python -m studies.speed.run --only history
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from studies.speed._table import Row, main

ROOT = Path(__file__).parents[2]
FIRST, FOLDER = "e5c69c3", ROOT / "studies" / "speed" / ".rivals" / "first"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
SUITE, SAME, STUDY = round(12 / 11.6, 2), round(8 / 11.6, 2), 0.5
"""The goals: 12 CPU minutes where 1,305 tests had taken 11.6, 8 for those tests alone, and half of the study."""


def check_out():
    """Check out the first version and install it, if it is not there."""
    if (FOLDER / "ready").exists():
        return
    if not (FOLDER / ".git").exists():
        run(["git", "clone", "--quiet", "--no-checkout", ROOT, FOLDER], ROOT)
    run(["git", "checkout", "--quiet", FIRST], FOLDER)
    run(["make", ".venv/.test"], FOLDER)
    suite(FOLDER)
    (FOLDER / "ready").touch()


def run(command, folder):
    """Run a command and return its CPU seconds, and those of all that it started."""
    before = os.times()
    subprocess.run([str(part) for part in command], cwd=folder, env=ENVIRONMENT, stdout=sys.stderr, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def suite(folder):
    """Run a suite; return its CPU seconds, and those of its tests by name, all cases and modules together."""
    with tempfile.TemporaryDirectory() as scratch:
        path, seconds = Path(scratch) / "tests.xml", defaultdict(float)
        taken = run([folder / ".venv" / "bin" / "python", "-m", "pytest", f"--junitxml={path}"], folder)
        for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314 - written just now
            seconds[case.get("name").split("[")[0]] += float(case.get("time"))
        return taken, seconds


def study(folder):
    """Run a whole study; return its CPU seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        return run([folder / ".venv" / "bin" / "causal-shaping", "reproduce", "--output", scratch], folder)


def rows(quick):
    check_out()
    (theirs, before), (ours, now) = suite(FOLDER), suite(ROOT)
    yield Row("suite: all tests", ours, yardstick="the first version's", theirs=theirs, most=SUITE)
    both = before.keys() & now.keys()
    seconds = [sum(each[name] for name in both) for each in (now, before)]
    work = f"suite: {len(both):,} tests of the same name"
    yield Row(work, seconds[0], "s", "the first version's", seconds[1], most=SAME)
    if not quick:
        yield Row("reproduce: whole", study(ROOT), yardstick="the first version's", theirs=study(FOLDER), most=STUDY)


if __name__ == "__main__":
    main(rows, __doc__)
