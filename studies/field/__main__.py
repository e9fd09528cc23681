"""What confounded logs save, and where they do harm, outside of the paper's worlds: `make field`.

Interrupted runs resume when it is called again. Nothing is fetched from a network. A family whose data are not
installed is left out, with a note on what to install.

    make field ARGS='--quick --families random,clinic'
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from causal_shaping.cli._terminal import progress_bar
from causal_shaping.errors import CausalShapingError
from studies.field.continuous import AGENTS
from studies.field.page import study_field
from studies.field.plan import FAMILIES, Plan


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and missing, write the page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("field"), help="the folder for results and page")
    parser.add_argument("--families", default=",".join(FAMILIES), help="run only these: %(default)s")
    parser.add_argument("--quick", action="store_true", help="few worlds, a quarter of every budget: a few minutes")
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    given = parser.parse_args(arguments)
    families = tuple(dict.fromkeys(given.families.split(",")))
    try:
        with progress_bar() as progress:
            results, page, missing = study_field(
                Plan(given.quick, families),
                given.output,
                continuous=AGENTS,
                workers=given.workers,
                progress=progress,
            )
    except CausalShapingError as error:
        parser.exit(2, f"error: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"Stopped. What is done is kept in {given.output}; call again to resume.\n")
    for why in missing:
        print(f"Left out: {why}", file=sys.stderr)
    print(f"{len(results.runs):,} runs and {len(results.claims):,} claims are in {given.output}.")
    print(f"Page written to {page}. Open it in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
