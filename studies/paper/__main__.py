"""The paper's study, run again with what is missing there, and one HTML report: `make reproduce`.

Interrupted runs resume when it is called again. Nothing is fetched from a network.

    make reproduce ARGS='--quick'
    make reproduce ARGS='--only world=lavacross-easy method=zero,causal-bound,joint'
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from causal_shaping.cli._terminal import progress_bar
from causal_shaping.errors import CausalShapingError
from studies.paper.plan import QUICK_SEEDS, SEEDS, Plan, parse_only
from studies.paper.report import reproduce


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and missing, write the report; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("report"), help="the folder for results and report")
    parser.add_argument("--seeds", type=int, help=f"how many to run (default: {SEEDS}, quick {QUICK_SEEDS})")
    parser.add_argument("--quick", action="store_true", help="a tenth of every budget, two seeds: a few minutes")
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY=VALUE,...", help="world=, method=, coins=, seed=")
    parser.add_argument("--counted-in", default="steps", choices=("steps", "episodes"), help="what budgets count")
    parser.add_argument("--no-bcq", action="store_true", help="leave out BCQ")
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    given = parser.parse_args(arguments)
    seeds = (QUICK_SEEDS if given.quick else SEEDS) if given.seeds is None else given.seeds
    try:
        plan = Plan(seeds, given.quick, given.counted_in, not given.no_bcq, parse_only(given.only))
        with progress_bar() as progress:
            results, page = reproduce(plan, given.output, workers=given.workers, progress=progress)
    except CausalShapingError as error:
        parser.exit(2, f"error: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"Stopped. What is done is kept in {given.output}; call again to resume.\n")
    print(f"{len(results.runs):,} runs and {len(results.potentials):,} potentials are in {given.output}.")
    print(f"Report written to {page}. Open it in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
