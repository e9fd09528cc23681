"""Running the field study: in parallel, a file per finished unit, merged in order; interrupted runs resume.

A folder holds `settings.json`, what is run; `parts/`, a JSON file per unit; and, made of those, `results.parquet`, a
row per method, case and seed, `claims.parquet`, a row per claim, `worth.parquet`, a row per case, and `timings.csv`.
All but the last depend on the settings and the seeds alone, not on interruptions.

- `run_field`: run what is missing, merge all.
- `Results`: what a folder holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.io.files import SETTINGS, claim_run_folder
from causal_shaping.io.inputs import read_json
from studies import parts
from studies.field import clinic, lalonde
from studies.field._packages import MissingPackageError, package_folder
from studies.field.claims import bound_claims
from studies.field.materials import Materials
from studies.field.methods import RUNNERS
from studies.field.plan import (
    CLAIM,
    DRAW_SEED,
    FAMILIES,
    LEARNER_SEED,
    METHODS,
    RUN,
    WORTH,
    Case,
    Family,
    Job,
    Plan,
    Unit,
)
from studies.pages import filled, write_rows

RESULTS, CLAIMS, WORTHS, TIMINGS = "results.parquet", "claims.parquet", "worth.parquet", "timings.csv"
POINTS = 40
"""Regret is kept after each fortieth of the budget."""

ABOUT = ("family", "case", "place", "kind_of_world", "skill", "confounding", "rows", "gamma", "trial")
TABLES = {RUN: RESULTS, CLAIM: CLAIMS, WORTH: WORTHS}

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a field study.

    Attributes:
        folder: where it is kept.
        settings: what was run.
        runs: a row per method, case and seed.
        claims: a row per claim.
        worths: a row per case: what was predicted.
        timings: a row per unit.
    """

    folder: Path
    settings: Row
    runs: tuple[Row, ...]
    claims: tuple[Row, ...]
    worths: tuple[Row, ...]
    timings: tuple[Row, ...]


def run_field(
    plan: Plan, folder: str | os.PathLike[str], *, workers: int | None = None, progress: Progress = no_progress
) -> tuple[Results, list[str]]:
    """Run what a plan asks for and the folder does not hold yet, merge all that it holds, and return that.

    Args:
        plan: what to run.
        folder: where to keep it; made if it is not there. One that holds other settings is refused.
        workers: how many processes; by default one per core.
        progress: called with the work that is done, all of it, and what runs now.

    Returns:
        What the folder holds, and for each family that was left out, why: the package that holds it is
        missing.
    """
    with field_folder(plan, folder) as path:
        return run_held(plan, path, workers, progress)


@contextmanager
def field_folder(plan: Plan, folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Hold the folder of a study: nobody else works in it meanwhile."""
    with claim_run_folder(Path(folder), plan.settings(), parts.FILES):
        yield Path(folder)


def run_held(plan: Plan, path: Path, workers: int | None, progress: Progress) -> tuple[Results, list[str]]:
    """Run a study in a folder that is held; see `run_field`."""
    missing = {}
    for name in plan.families:
        package = FAMILIES[name].package
        try:
            if package is not None:
                package_folder(package)
        except MissingPackageError as error:
            missing[name] = f"{name}: {error}"
    if len(missing) == len(plan.families):
        raise MissingPackageError(" ".join(missing.values()))
    jobs = replace(plan, families=tuple(name for name in plan.families if name not in missing)).jobs()
    left = [replace(job, units=tuple(one for one in job.units if not parts.is_kept(path, one.path))) for job in jobs]
    total = sum(job.cost for job in jobs)
    waiting = [job for job in left if job.units]
    parts.with_progress(waiting, partial(run_job, plan, folder=path), total, workers, progress)
    return merge(path), list(missing.values())


def run_job(plan: Plan, job: Job, folder: Path) -> None:
    """Run the units of a job, each kept as soon as it is done."""
    numba.set_num_threads(1)  # jobs run side by side
    family, materials = plan.family(job.case.family), Materials(job.case)
    for unit in job.units:
        about = {"unit": asdict(unit), "date": date.today().isoformat()} | _about(unit, job.case)
        parts.keep(
            folder,
            unit.path,
            lambda _, unit=unit, about=about: about | {"rows_found": run_unit(family, materials, unit)},
        )


def _about(unit: Unit, case: Case) -> dict[str, Any]:
    held = asdict(case)
    kind, gamma = held.pop("kind"), held.pop("gamma")
    held.pop("number")
    finite = gamma if np.isfinite(gamma) else None
    return held | {"case": unit.case, "place": case.place, "kind_of_world": kind, "gamma": finite}


def run_unit(family: Family, materials: Materials, unit: Unit) -> list[dict[str, Any]]:
    """Return the rows of a unit."""
    if unit.kind == RUN:
        steps = family.budget(materials.case.kind)
        return [run_facts(materials, unit.name, steps, LEARNER_SEED + seed) for seed in range(family.seeds)]
    if unit.kind == WORTH:
        return [worth_facts(materials, family)]
    if family.name == "lalonde":
        return lalonde.claims()
    return clinic.claims() if family.name == "clinic" else bound_claims(materials)


def run_facts(materials: Materials, method: str, steps: int, seed: int) -> dict[str, Any]:
    """Return the regret of one run, and its course."""
    regret = RUNNERS[method](materials, steps, seed)
    ends = np.linspace(0, steps, POINTS + 1).round().astype(np.int64)
    course = np.append(0.0, np.cumsum(regret))[ends]
    return {
        "name": method,
        "seed": seed,
        "steps": steps,
        "regret": float(course[-1]),
        "at_random": materials.at_random * steps,
        "curve": course[1:].tolist(),
    }


def worth_facts(materials: Materials, family: Family) -> dict[str, Any]:
    """Return what the logs are predicted to save, before the first step."""
    seeds = range(DRAW_SEED, DRAW_SEED + family.draws)
    found = materials.belief.worth(steps=family.budget(materials.case.kind), seeds=seeds)
    low, high = found.share_interval
    return {
        "predicted": found.share,
        "low": low,
        "high": high,
        "chance_of_help": found.chance_of_help,
        "draws": family.draws,
    }


def merge(folder: str | os.PathLike[str]) -> Results:
    """Merge all parts of a folder into its tables, in the order of the plan, and return them."""
    path = Path(folder)
    rows: dict[str, list[Row]] = {kind: [] for kind in TABLES}
    timings: list[Row] = []
    held = [(Unit(**part["found"]["unit"]), part) for part in parts.read(path)]
    families, methods = list(FAMILIES), list(METHODS)
    held.sort(
        key=lambda one: (
            families.index(one[0].family),
            one[0].case,
            one[0].kind,
            methods.index(one[0].name) if one[0].kind == RUN else 0,
        )
    )
    for unit, part in held:
        about = {column: part["found"].get(column) for column in ABOUT}
        rows[unit.kind] += [about | found for found in part["found"]["rows_found"]]
        spent = {key: part[key] for key in ("seconds", "cpu_seconds")}
        timings.append(asdict(unit) | spent | {"date": part["found"]["date"]})
    runs, claims, worths = (filled(rows[kind]) for kind in (RUN, CLAIM, WORTH))
    for kind, found in ((RUN, runs), (CLAIM, claims), (WORTH, worths)):
        write_rows(path / TABLES[kind], found)
    write_rows(path / TIMINGS, timings)
    return Results(path, read_json(path / SETTINGS), runs, claims, worths, tuple(timings))
