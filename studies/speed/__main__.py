"""All benchmarks in one table: ours, the yardstick, the ratio, the goal, the peak of memory, and the last run's result.

    python -m studies.speed                       # all: about half an hour, and 2 GB in the folder for temporary files
    python -m studies.speed --quick               # smaller sizes: a few minutes; kept only with --json
    python -m studies.speed --only count wrapper  # some of them
    python -m studies.speed --runs 3              # each three times, with the spread of the results

A goal that is missed has a "!". Figures are kept in `figures/bench.json`; those of earlier runs are in git.
"""

import argparse
import importlib
import sys
from pathlib import Path

from studies.speed._table import middle_of, show

NAMES = ("startup", "count", "ceilings", "contradictions", "learners", "posterior", "wrapper")
FIGURES = Path(__file__).parent / "figures" / "bench.json"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="smaller sizes; kept only if --json says where")
    parser.add_argument("--runs", type=int, default=1, help="run each so often: the middle result, and the spread")
    parser.add_argument("--json", type=Path, help=f"keep the figures here; by default in {FIGURES.name}")
    given = parser.parse_args(arguments)
    path = given.json or (None if given.quick else FIGURES)
    scripts = (importlib.import_module(f"studies.speed.{name}") for name in given.only)
    rows = (row for script in scripts for row in middle_of(script.rows(given.quick) for _ in range(given.runs)))
    show(rows, path, some=given.only != NAMES)


if __name__ == "__main__":
    main(sys.argv[1:])
