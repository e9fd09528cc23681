"""Running the field study: in parallel, a file per finished case; interrupted runs resume.

A folder holds `settings.json`, what is run; `parts/`, a JSON file per case; and, made of those, `results.parquet`, a
row per method, case and seed, `claims.parquet`, a row per claim, `worth.parquet`, a row per case, and `timings.csv`.
All but the last depend on the settings and the seeds alone, not on interruptions.

- `run_field`: run what is missing, and return all that the folder holds.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from causal_shaping.errors import AssumptionWarning, ShapingWarning
from causal_shaping.storage import claim_run_folder
from studies import parts
from studies.field import clinic
from studies.field.claims import bound_claims
from studies.field.methods import METHODS, Materials
from studies.field.plan import DRAW_SEED, FAMILIES, LEARNER_SEED, NO_LOGS, Case, Plan
from studies.field.sepsis import MissingPackageError, package_folder
from studies.pages import filled, write_rows

FILES = {"runs": "results.parquet", "claims": "claims.parquet", "worths": "worth.parquet", "timings": "timings.csv"}
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a field study.

    Attributes:
        folder: where it is kept.
        quick: whether it is a quick one.
        runs: a row per method, case and seed.
        claims: a row per claim.
        worths: a row per case: what was predicted.
        timings: a row per method, or other work, and case.
    """

    folder: Path
    quick: bool
    runs: tuple[Row, ...]
    claims: tuple[Row, ...]
    worths: tuple[Row, ...]
    timings: tuple[Row, ...]


def run_field(plan: Plan, folder: Path, workers: int | None = 1) -> tuple[Results, list[str]]:
    """Run what a plan asks for and the folder does not hold yet, merge all that it holds, and return that.

    Args:
        plan: what to run.
        folder: where to keep it; made if it is not there. One that holds other settings is refused.
        workers: how many processes; None for one per core.

    Returns:
        What the folder holds, and for each family that was left out, why: the package that holds it is missing.
    """
    missing = {}
    if "sepsis" in plan.families:
        try:
            package_folder()
        except MissingPackageError as error:
            if plan.families == ("sepsis",):
                raise
            missing["sepsis"] = f"sepsis: {error}"
    names = [name for name, case in plan.jobs().items() if case.family not in missing]
    with claim_run_folder(folder, plan.settings(), parts.FILES):
        parts.run(folder, names, partial(run_case, plan), workers=workers or len(os.sched_getaffinity(0)))
        return merge(folder, plan.quick), list(missing.values())


def run_case(plan: Plan, name: str) -> dict[str, Any]:
    """Return the rows of a case: regret of all methods, claims and whether they hold, and the predicted worth."""
    numba.set_num_threads(1)  # cases run side by side
    case = plan.jobs()[name]
    family, on = plan.family(case.family), Materials(case)
    steps, free = family.budget(case.kind), case.skill == NO_LOGS
    found: dict[str, Any] = {"about": _about(case), "date": date.today().isoformat()}
    found |= {kind: [] for kind in FILES}

    def add(kind: str, what: str, rows: Callable[[], list[dict[str, Any]]]) -> None:
        began = time.process_time()
        found[kind] += rows()
        found["timings"].append({"name": what, "cpu_seconds": time.process_time() - began})

    def runs(method: str) -> list[dict[str, Any]]:
        seeds = range(LEARNER_SEED, LEARNER_SEED + family.seeds)
        regret = {seed: float(METHODS[method].run(on, steps, seed).sum()) for seed in seeds}
        return [{"name": method, "seed": seed, "steps": steps, "regret": lost} for seed, lost in regret.items()]

    def worth() -> list[dict[str, Any]]:
        predicted = on.belief.worth(steps=steps, seeds=range(DRAW_SEED, DRAW_SEED + family.draws))
        return [{"predicted": predicted.share, "draws": family.draws}]

    with warnings.catch_warnings():  # facts are kept instead; and learners that drop logs go on without
        warnings.simplefilter("ignore", AssumptionWarning)
        warnings.simplefilter("ignore", ShapingWarning)
        if not free:
            add("claims", "claims", clinic.claims if case.family == "clinic" else partial(bound_claims, on))
        for method in METHODS if family.steps else ():
            if METHODS[method].uses_logs != free:
                add("runs", method, partial(runs, method))
        if family.steps and not free:
            add("worths", "worth", worth)
    return found


def _about(case: Case) -> dict[str, Any]:
    """Return what the rows of a case say of it."""
    columns = {key: value for key, value in asdict(case).items() if key not in ("kind", "number", "gamma")}
    gamma = case.gamma if np.isfinite(case.gamma) else None
    return columns | {"case": case.name, "place": case.place, "kind_of_world": case.kind, "gamma": gamma}


def merge(folder: Path, quick: bool) -> Results:
    """Merge all parts of a folder into its tables, by family and case, and return them."""
    families, rows = list(FAMILIES), dict[str, list[Row]]({kind: [] for kind in FILES})
    held = [part["found"] for part in parts.read(folder)]
    for part in sorted(held, key=lambda one: (families.index(one["about"]["family"]), one["about"]["case"])):
        for kind in FILES:
            about = part["about"] | ({"date": part["date"]} if kind == "timings" else {})
            rows[kind] += [about | row for row in part[kind]]
    tables = {kind: filled(some) for kind, some in rows.items()}
    for kind, file in FILES.items():
        write_rows(folder / file, tables[kind])
    return Results(folder, quick, **tables)
