"""What confounded logs save, and where they do harm, outside of the paper's worlds: `make field`.

    python -m studies.field                                       everything, some 25 CPU minutes
    python -m studies.field --quick --families random,clinic      a few worlds, a quarter of every budget

Families: random worlds of five shapes; standard problems with a hidden gust or hint; ICU-Sepsis; a clinic whose hidden
cause lasts. Cases are kept as they end: when it is called again, it goes on where it stopped. Nothing is fetched from a
network. A family whose data are not installed is left out, with a note on what to install. The last line says where
the page is.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from causal_shaping import __version__
from causal_shaping.data.result import json_text
from causal_shaping.errors import CausalShapingError
from causal_shaping.storage import write_text
from studies.field.plan import FAMILIES, Plan
from studies.field.run import Results, run_field
from studies.field.tables import all_tables, decisions, ran, targets
from studies.pages import write_page, write_tables


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for and missing, write the page; return the exit code."""
    parser = argparse.ArgumentParser("python -m studies.field", None, __doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-o", "--output", type=Path, default=Path("field"), help="the folder for results and page")
    parser.add_argument("--families", default=",".join(FAMILIES), help="run only these: %(default)s")
    parser.add_argument("--quick", action="store_true", help="few worlds, a quarter of every budget: a few minutes")
    parser.add_argument("--workers", type=int, help="processes (default: one per core)")
    given = parser.parse_args(arguments)
    try:
        plan = Plan(given.quick, tuple(dict.fromkeys(given.families.split(","))))
        results, missing = run_field(plan, given.output, given.workers)
        page = write_field_page(results, missing)
    except CausalShapingError as error:
        parser.exit(2, f"error: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"Stopped. What is done is kept in {given.output}; call again to resume.\n")
    for why in missing:
        print(f"Left out: {why}", file=sys.stderr)
    print(f"{len(results.runs):,} runs and {len(results.claims):,} claims are in {given.output}.")
    print(f"Page written to {page}. Open it in a browser.")
    return 0


def write_field_page(results: Results, missing: list[str]) -> Path:
    """Write the page of results, and what is beside it, into their folder, and return its path.

    Args:
        results: what was run.
        missing: for each family that was left out, why.
    """
    made = {table.name: table for table in all_tables(results)}
    minutes: dict[str, float] = {}
    for row in results.timings:
        minutes[row["family"]] = minutes.get(row["family"], 0.0) + row["cpu_seconds"] / 60
    dates = sorted(row["date"] for row in results.timings)
    said: dict[str, Any] = {
        "version": __version__,
        "quick": results.quick,
        "dates": dates[:: max(len(dates) - 1, 1)],  # the first and the last
        "minutes": minutes,
        "targets": targets(results),
        "decisions": list(decisions(results)),
    }
    shown = ("title", "caption", "columns", "rows")
    tables = {name: {key: getattr(one, key) for key in shown} for name, one in made.items()}
    write_tables(results.folder, made)
    write_text(results.folder / "summary.json", json_text(said | {"tables": tables}), [".json"])
    return write_page(
        results.folder,
        "field.html",
        **said,
        tables=made,
        families=[name for name in FAMILIES if name in ran(results)],
        missing=missing,
        python=platform.python_version(),
        runs=len(results.runs),
        steps=sum(row["steps"] for row in results.runs),
        command="python -m studies.field" + (" --quick" if results.quick else ""),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
