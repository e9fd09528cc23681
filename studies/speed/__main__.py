"""All benchmarks in one table: ours, the yardstick, the ratio, the goal, the peak of memory, and the last run's result.

    python -m studies.speed                     # all: about half an hour, and 2 GB in the folder for temporary files
    python -m studies.speed --quick             # smaller sizes: a few minutes; kept only with --json
    python -m studies.speed --only logs agents  # some of them

A goal that is missed has a "!". Figures are kept in `figures/bench.json`; those of earlier runs are in git.
"""

import argparse
import importlib
import sys
from pathlib import Path

from studies.speed._table import show

NAMES = ("startup", "logs", "counts", "agents")
FIGURES = Path(__file__).parent / "figures" / "bench.json"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="smaller sizes; kept only if --json says where")
    parser.add_argument("--json", type=Path, help=f"keep the figures here; by default in {FIGURES.name}")
    given = parser.parse_args(arguments)
    # Imported one by one: what a benchmark imports would count in the peak of another one's processes.
    scripts = (importlib.import_module(f"studies.speed.{name}") for name in given.only)
    rows = (row for script in scripts for row in script.rows(given.quick))
    show(rows, given.json or (None if given.quick else FIGURES), some=given.only != NAMES)


if __name__ == "__main__":
    main(sys.argv[1:])
