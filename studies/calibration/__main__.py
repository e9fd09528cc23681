"""What is too long for the test suite: checks that run in parts, resume where they stopped, and keep their figures.

    make calibrate                           # all of it: some hours
    make calibrate ARGS='coverage'           # one check
    make calibrate ARGS='--quick sources'    # the last part of a check, printed and not kept

A check is a list of parts and a function that returns the figures of one. The figures of all are written to
`figures/CHECK.json` beside this file; a part that is there is not run again, unless --again says so or the check's
version has changed. To add a check, write those two and put it into `CHECKS`.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from studies import ROOT, parts
from studies.calibration import (
    continuous_tests as continuous,
    fitted_tests,
    learner,
    listed_tests as listed,
    prior,
    validity,
    verdict,
    worth,
)

FIGURES = Path(__file__).parent / "figures"


class Check(NamedTuple):
    """A check that takes long: its parts, what returns the figures of one, and what judges the figures of all by name.

    What it shows is the first line of the docstring of `holds`. The version is raised when figures are no longer
    comparable with earlier ones.
    """

    parts: Sequence[str]
    run: Callable
    holds: Callable
    version: int = 1

    @property
    def text(self):
        """What the check shows, in a sentence."""
        return self.holds.__doc__.partition("\n")[0]


FILES = sorted((ROOT / "tests").rglob("test_*.py"))
PROPERTIES = [path.relative_to(ROOT).as_posix() for path in FILES if "@given" in path.read_text()]


def run_properties(part):
    """Run the tests of a file with many examples, other ones each time."""
    command = [sys.executable, "-m", "pytest", part, "-n", "auto"]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "long"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return {"passed": ran.returncode == 0, "end": ran.stdout[-2_000:] if ran.returncode else ""}


def properties_hold(parts):
    """The suite's properties hold with 50 times as many examples, other ones each time; slow ones with fewer."""
    return all(part["passed"] for part in parts.values())


CHECKS = {
    "properties": Check(PROPERTIES, run_properties, properties_hold),
    "persistence": Check(listed.NOTHING_LASTS, listed.run_persistence, listed.persistence_holds),
    "sources": Check([*listed.SOURCES], listed.run_sources, listed.sources_hold),
    "validity": Check(validity.PARTS, validity.run_part, validity.holds),
    "coverage": Check([*validity.WORLDS], validity.covered, validity.covers),
    "verdict": Check(verdict.PARTS, verdict.run_part, verdict.holds, 2),
    "hard-worlds": Check(learner.HARD_PARTS, learner.run_hard, learner.hard_holds),
    "bandits": Check(learner.BANDIT_PARTS, learner.run_bandits, learner.bandits_hold),
    "posterior": Check(learner.PAPER_PARTS, learner.run_paper, learner.paper_holds),
    "calibration": Check(prior.PARTS, prior.run_part, prior.holds),
    "worth": Check(worth.PARTS, worth.run_part, worth.holds),
    "continuous-persistence": Check(
        continuous.LASTING_PARTS, continuous.run_persistence, continuous.persistence_holds, 2
    ),
    "continuous-sources": Check(continuous.SOURCE_PARTS, continuous.run_sources, continuous.sources_hold, 2),
    "fitted-tests": Check(fitted_tests.PARTS, fitted_tests.run_part, fitted_tests.holds),
}


def run(name, again=False, workers=1):
    """Run the parts of a check that are missing, keep their figures, and return whether all is as promised."""
    check = CHECKS[name]
    path = FIGURES / f"{name}.json"
    found = parts.run_figures(path, check.version, check.parts, check.run, workers=workers, again=again)
    passed = check.holds({part: found[part] for part in check.parts})
    print(f"{name}: {'as promised' if passed else 'NOT AS PROMISED'}. {check.text}")
    return passed


def main(arguments):
    """Run what is asked for; return the exit code."""
    lines = "\n".join(f"  {name:12} {check.text}" for name, check in CHECKS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\nThe checks:\n\n{lines}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="which to run; all if left out")
    parser.add_argument("--again", action="store_true", help="run also what is there already")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="run the last part of each, print it, keep nothing")
    given = parser.parse_args(arguments)
    chosen = given.checks or [*CHECKS]
    if unknown := [name for name in chosen if name not in CHECKS]:
        parser.error(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    if given.quick:
        for name in chosen:
            part = CHECKS[name].parts[-1]
            print(f"{name}, {part}: {CHECKS[name].run(part)}")
        return 0
    passed = [run(name, given.again, given.workers) for name in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
