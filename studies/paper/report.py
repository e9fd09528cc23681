"""The report: one HTML file without network, with the figures and tables beside it as files of their own.

- `reproduce`: run the study and write its report, with one progress for all of it.
- `write_report`: write `index.html`, `figures/` and `tables/` into the folder of the results.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from causal_shaping import __version__
from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.worlds import World, load_world
from studies.pages import Table, write_figures, write_page, write_tables
from studies.paper.figures import all_figures
from studies.paper.findings import findings
from studies.paper.plan import LOG_STEPS, METHODS, QUICK_SEEDS, SEEDS, Plan, is_deep
from studies.paper.run import Results, run_study
from studies.paper.tables import all_tables

LIBRARIES = ("numpy", "numba", "scipy", "pyarrow", "duckdb", "matplotlib")
STUDY_SHARE, QUICK_SHARE, TABLES_SHARE = 0.95, 0.4, 0.25
"""How much of the work is running the study, running a quick one, and, of the report, making the tables."""


def reproduce(
    plan: Plan, folder: str | os.PathLike[str], *, workers: int | None = None, progress: Progress = no_progress
) -> tuple[Results, Path]:
    """Run what a plan asks for and the folder does not hold yet, write the report, and return results and page.

    Args:
        plan: see `run_study`.
        folder: see `run_study`.
        workers: see `run_study`.
        progress: called with the share of all work that is done, 1, and what is being worked on.
    """
    share = QUICK_SHARE if plan.quick else STUDY_SHARE
    results = run_study(plan, folder, workers=workers, progress=part_of(progress, 0, share))
    return results, write_report(results, workers=workers, progress=part_of(progress, share, 1))


def write_report(results: Results, *, workers: int | None = None, progress: Progress = no_progress) -> Path:
    """Write the report of results into their folder and return the path of its page.

    Args:
        results: what was run.
        workers: how many processes draw figures; by default one per core.
        progress: called with the share of the work that is done, 1, and what is being worked on.
    """
    worlds = {name: load_world(name) for name, _ in results.variants}
    tables = all_tables(results, progress=part_of(progress, 0, TABLES_SHARE))
    write_tables(results.folder, tables)
    drawings, drawing = all_figures(results, worlds), part_of(progress, TABLES_SHARE, 1)
    drawing(0, len(drawings), "Drawing figures")
    figures = write_figures(results.folder, drawings, workers, drawing)
    page = write_page(results.folder, "paper.html", **shown(results, worlds, tables, figures))
    progress(1, 1, "Writing the report")
    return page


def shown(
    results: Results, worlds: Mapping[str, World], tables: Mapping[str, Table], figures: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Return what the page shows."""
    seeds = sorted({row["seed"] for row in results.runs})
    return {
        "findings": list(findings(results)),
        "tables": tables,
        "figures": figures,
        "worlds": {name: world.title for name, world in worlds.items()},
        "quick": results.settings["quick"],
        "command": _command(results),
        "version": __version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "".join(map(str, seeds)),
        "runs": len(results.runs),
        "potentials": len(results.potentials),
        "steps": sum(row["steps"] for row in results.runs),
        "log_steps": LOG_STEPS,
        "counted_in": results.settings["counted_in"],
    }


def _command(results: Results) -> str:
    """Return the command that runs all of this again."""
    options = ["--quick"] if results.settings["quick"] else []
    if results.settings["counted_in"] != "steps":
        options.append(f"--counted-in {results.settings['counted_in']}")
    seeds = 1 + max(row["seed"] for row in results.runs)
    if seeds != (QUICK_SEEDS if results.settings["quick"] else SEEDS):
        options.append(f"--seeds {seeds}")
    if not any(is_deep(METHODS[row["name"]]) for row in results.runs):
        options.append("--no-bcq")
    return " ".join(["python -m studies.paper", *options])
