"""Whether fitted ceilings help: parts are kept as they end, and an interrupted run resumes.

    python -m studies.field.fitted                   # everything that is missing, then all tables
    python -m studies.field.fitted bounds           # estimators and bounds against the optimum
    python -m studies.field.fitted agents --seeds 10  # DQN with and without logs
    python -m studies.field.fitted bounds --only maze # the parts whose names hold a text
    python -m studies.field.fitted --only nothing     # only the tables, of what is there

Figures are kept in `studies/field/fitted/figures/*.json`; what is removed there is run again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from studies import parts
from studies.field.fitted import agents, bounds

FIGURES = Path(__file__).parent / "figures"
STUDIES = {
    "bounds": (bounds.VERSION, lambda seeds: bounds.parts(), bounds.run_part, bounds.tables),
    "agents": (agents.VERSION, agents.parts, agents.run_part, agents.tables),
}


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and missing, print the tables; return the exit code."""
    parser = argparse.ArgumentParser("python -m studies.field.fitted", None, __doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"of {', '.join(STUDIES)}; all if left out")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each agent (default: 10)")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time (default: 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only parts whose names hold this text")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.studies if name not in STUDIES]
    if unknown:
        parser.error(f"there is no study {unknown[0]!r}; there are {', '.join(STUDIES)}")
    for name in given.studies or STUDIES:
        version, every, work, tables = STUDIES[name]
        chosen = [part for part in every(given.seeds) if given.only in part]
        done = parts.run_figures(FIGURES / f"{name}.json", version, chosen, work, workers=given.workers)
        print("\n".join(["", *tables(done)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
