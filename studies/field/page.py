"""The page of the field study: one HTML file without network, with the figures and tables beside it.

- `study_field`: run what is missing, and write the page.
- `write_page`: write it from results.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from causal_shaping import __version__
from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.data.result import json_text
from causal_shaping.io.files import write_text
from studies.field import figures, tables
from studies.field.continuous import Parts, continuous_table, read_agents
from studies.field.metrics import worth_scores
from studies.field.plan import FAMILIES, METHODS, RECOMMENDED, Plan
from studies.field.run import Results, field_folder, run_held
from studies.pages import Drawing, Table, write_figures, write_page, write_tables

SUMMARY = "summary.json"
RUNNING = 0.97
"""How much of the work is running the study."""


def study_field(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    continuous: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> tuple[Results, Path, list[str]]:
    """Run what a plan asks for and the folder does not hold yet, and write the page.

    Args:
        plan: see `run_field`.
        folder: see `run_field`.
        continuous: a file of `studies.field.fitted` to show on the page: its `figures/agents.json`.
        workers: see `run_field`.
        progress: called with the share of all work that is done, 1, and what is being worked on.

    Returns:
        The results, the page, and for each family that was left out, why.
    """
    agents = None if continuous is None else read_agents(continuous)
    with field_folder(plan, folder) as path:
        results, missing = run_held(plan, path, workers, part_of(progress, 0, RUNNING))
        progress(RUNNING, 1, "Writing the page")
        page = write_field_page(results, missing, agents)
    return results, page, missing


def write_field_page(results: Results, missing: list[str] | None = None, agents: Parts | None = None) -> Path:
    """Write the page of results, its tables and its figures, into their folder, and return its path.

    Args:
        results: what was run.
        missing: for each family that was left out, why.
        agents: what `read_agents` returned of worlds whose states cannot be listed; without it the page has none.
    """
    given = list(_tables(results)) + ([] if agents is None else [continuous_table(agents)])
    made = {table.name: table for table in given if table.rows}
    write_tables(results.folder, made)
    drawn = write_figures(results.folder, list(_drawings(results)))
    page = write_page(
        results.folder,
        "studies.field",
        "field.html",
        tables=made,
        figures={name: one["source"] for name, one in drawn.items()},
        targets=tables.targets(results),
        families={name: FAMILIES[name].title for name in tables.ran(results)},
        decisions=list(decisions(results)),
        missing=missing or [],
        facts=_facts(results),
        quick=results.settings["quick"],
        command="python -m studies.field" + (" --quick" if results.settings["quick"] else ""),
    )
    write_text(results.folder / SUMMARY, json_text(_summary(results, made)), [".json"])
    return page


def _summary(results: Results, made: Mapping[str, Table]) -> dict[str, Any]:
    """Return what the page says, for other pages: tables as texts, what was asked, what to use when."""
    dates = sorted({row["date"] for row in results.timings if row["date"]})
    return {
        "version": __version__,
        "quick": results.settings["quick"],
        "dates": [dates[0], dates[-1]] if dates else [],
        "minutes": _facts(results)["minutes"],
        "targets": tables.targets(results),
        "decisions": list(decisions(results)),
        "tables": {
            name: {"title": one.title, "caption": one.caption, "columns": one.columns, "rows": one.rows}
            for name, one in made.items()
        },
    }


def _drawings(results: Results) -> Iterator[Drawing]:
    if results.runs:
        yield Drawing("overview", "", partial(figures.draw_overview, results))
        yield Drawing("cases", "", partial(figures.draw_cases, results))
        worth = worth_scores(results)
        if len(worth.predicted):
            yield Drawing("worth", "", partial(figures.draw_worth, worth))


def _tables(results: Results) -> Iterator[Table]:
    for family in tables.ran(results):
        yield tables.family_table(results, family)
    if results.runs:
        yield tables.confounding_table(results)
        yield tables.losses_table(results)
    yield tables.claims_table(results)
    yield tables.lalonde_table(results)
    yield tables.clinic_table(results)


def _facts(results: Results) -> dict[str, Any]:
    spent: dict[str, float] = {}
    for row in results.timings:
        spent[row["family"]] = spent.get(row["family"], 0.0) + row["cpu_seconds"]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "runs": len(results.runs),
        "steps": sum(row["steps"] for row in results.runs),
        "cases": len({(row["family"], row["case"]) for row in results.worths}),
        "minutes": {name: seconds / 60 for name, seconds in spent.items()},
    }


def decisions(results: Results) -> Iterator[tuple[str, str, str]]:
    """Yield what to use when: the situation, the method with the least mean regret there, and the evidence."""
    situations = (
        ("Nothing can be hidden from the log: whoever acted saw no more than it holds.", ("none",), None),
        ("Whoever acted may have seen more, and nobody set the logs against the truth.", ("mild", "strong"), None),
        ("Logs may be set against the truth.", ("hostile",), None),
        (
            "An agent of another kind is to be helped by its reward alone.",
            ("none", "mild", "strong", "hostile"),
            ("paper", "behaviour", "ceilings", "guess"),
        ),
    )
    for situation, levels, allowed in situations:
        means = {}
        for method in METHODS.values():
            if method.uses_logs and (allowed is None or method.name in allowed):
                some = [one for level in levels for one in tables.by_confounding(results, method.name, level)]
                if some:
                    ratios = np.concatenate([one.ratio for one in some])
                    means[method.name] = float(ratios.mean()), float((ratios > 1.1).mean()), len(ratios)
        if not means:
            continue
        first, *others = sorted(means, key=lambda name: means[name][0])
        evidence = [_evidence(first, means[first])]
        if others:
            evidence.append(f"next is {_evidence(others[0], means[others[0]])}")
        if RECOMMENDED in others[1:]:
            evidence.append(_evidence(RECOMMENDED, means[RECOMMENDED]))
        yield situation, METHODS[first].title, "; ".join(evidence) + f" ({means[first][2]} cases)"


def _evidence(name: str, found: tuple[float, float, int]) -> str:
    mean, harmed, _ = found
    return f"{METHODS[name].title}: {mean:.2f} times the regret without logs, over 1.1 in {harmed:.0%}"
