"""Running the study: in parallel, a file per finished unit, merged in order; interrupted runs resume.

A folder holds `settings.json`, what is run; `parts/`, a JSON file per unit; and, made of those, `results.parquet`, a
row per run, `potentials.parquet`, a row per potential, and `timings.csv`, how long each took. Every file is written
under another name first. The first two depend on the settings and the seeds alone, not on interruptions.

- `run_study`: run what is missing, merge all.
- `merge`: what a folder holds, as `Results`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.beliefs import Posterior
from causal_shaping.bounds import Ceilings
from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, AssumptionWarning, ShapingWarning
from causal_shaping.learners import train
from causal_shaping.learners.seeds import curve_points
from causal_shaping.storage import SETTINGS, claim_run_folder, read_json
from causal_shaping.worlds import load_world
from causal_shaping.worlds.world import COINS
from studies import parts
from studies.pages import filled, write_rows
from studies.paper.materials import Materials
from studies.paper.metrics import deployed_facts, potential_facts, run_facts
from studies.paper.plan import BELIEFS, METHODS, POTENTIAL, RUN, WORLDS, Job, Plan, Unit

RESULTS, POTENTIALS, TIMINGS = "results.parquet", "potentials.parquet", "timings.csv"
TIMED = ("kind", "world", "coins", "name", "seed", "seconds")

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a study.

    Attributes:
        folder: where it is kept.
        settings: what was run.
        runs: a row per run, by world, coin rule, method and seed.
        potentials: a row per potential, in the same order.
    """

    folder: Path
    settings: Row
    runs: tuple[Row, ...]
    potentials: tuple[Row, ...]

    def runs_of(self, world: str, method: str, coins: str = "standing") -> list[Row]:
        """Return the runs of a method in a world, by seed."""
        return self._by_name.get((RUN, world, coins, method), [])

    def potentials_of(self, world: str, name: str, coins: str = "standing") -> list[Row]:
        """Return the facts of a potential in a world, by seed."""
        return self._by_name.get((POTENTIAL, world, coins, name), [])

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str, str], list[Row]]:
        result: dict[tuple[str, str, str, str], list[Row]] = {}
        for kind, rows in ((RUN, self.runs), (POTENTIAL, self.potentials)):
            for row in rows:
                result.setdefault((kind, row["world"], row["coins"], row["name"]), []).append(row)
        return result

    def values(self, world: str, method: str, what: str, coins: str = "standing") -> FloatArray:
        """Return one number of each seed: float64 [seeds]."""
        return np.array([row[what] for row in self.runs_of(world, method, coins)], dtype=np.float64)

    def curves(self, world: str, method: str, coins: str = "standing") -> tuple[LongArray, FloatArray]:
        """Return steps and the regret of each seed there: int64 [points] and float64 [seeds, points].

        Runs that are counted in episodes have different lengths: their curves are drawn over the shortest one's steps.
        """
        rows = self.runs_of(world, method, coins)
        shortest = min(row["steps"] for row in rows)
        points = curve_points(shortest)
        return points, np.array([np.interp(points, curve_points(row["steps"]), row["curve"]) for row in rows])

    @property
    def variants(self) -> list[tuple[str, str]]:
        """The worlds and coin rules that there are runs of, in the order of the plan."""
        return list(dict.fromkeys((row["world"], row["coins"]) for row in self.runs))


def run_study(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Results:
    """Run what a plan asks for and the folder does not hold yet, merge all that it holds, and return that.

    Args:
        plan: what to run.
        folder: where to keep it; made if it is not there. One that holds other settings is refused.
        workers: how many processes; by default one per core.
        progress: called with the work that is done, all of it, and what runs now.
    """
    jobs = plan.jobs()
    if not jobs:
        raise ArgumentError("There is nothing to run: no world that was chosen has these methods, coins and seeds.")
    with claim_run_folder(Path(folder), plan.settings(), parts.FILES):  # nobody else works in it meanwhile
        left = [job for job in (_missing(job, Path(folder)) for job in jobs) if job.units]
        total = sum(job.cost for job in jobs)
        parts.with_progress(left, partial(run_job, plan, folder=Path(folder)), total, workers, progress)
        return merge(folder)


def run_job(plan: Plan, job: Job, folder: Path) -> None:
    """Run the units of a job, each kept as soon as it is done."""
    world = load_world(job.world, coins=job.coins)
    materials = Materials(world, plan.log_steps(), job.seed, plan.bcq_steps)
    for unit in job.units:
        find = (
            partial(potential_facts, materials, unit.name)
            if unit.kind == POTENTIAL
            else partial(run_unit, materials, unit, plan)
        )
        parts.keep(folder, unit.path, lambda _, unit=unit, find=find: asdict(unit) | find())


def run_unit(materials: Materials, unit: Unit, plan: Plan) -> dict[str, Any]:
    """Run a method for its budget."""
    method, world, budget = METHODS[unit.name], materials.world, plan.budget(unit.world)
    in_episodes = plan.counted_in == "episodes"
    steps = budget * world.horizon if in_episodes else budget
    if method.learner is None:
        assert method.potential is not None
        return deployed_facts(materials, materials.bcq(method.potential).policy, budget, plan.counted_in)
    known = materials.belief if method.potential in BELIEFS else materials.potential
    potential = None if method.potential is None else known(method.potential)
    assert isinstance(potential, (Posterior, Potential, Ceilings, type(None)))
    with warnings.catch_warnings():
        # The facts of the potential say what these would; the clip of the printed method is part of what is shown.
        warnings.simplefilter("ignore", AssumptionWarning)
        warnings.simplefilter("ignore", ShapingWarning)
        run = train(
            world,
            potential,
            learner=method.learner,
            steps=steps,
            seed=unit.seed,
            episodes=budget if in_episodes else None,
            **method.changes,
        )
    return run_facts(materials, run)


def merge(folder: str | os.PathLike[str]) -> Results:
    """Return all parts of a folder, in the order of the plan; write them as tables, too."""
    path = Path(folder)
    rows = [part["found"] | {"seconds": part["seconds"]} for part in parts.read(path)]
    names = {name: number for number, name in enumerate(METHODS)}

    def place(row: Row) -> tuple[Any, ...]:
        method = names.get(row["name"], len(names))
        return WORLDS.index(row["world"]), COINS.index(row["coins"]), method, row["name"], row["seed"]

    rows.sort(key=place)
    runs, potentials = (
        filled({key: row[key] for key in row if key not in ("kind", "seconds")} for row in rows if row["kind"] == kind)
        for kind in (RUN, POTENTIAL)
    )
    write_rows(path / RESULTS, runs)
    write_rows(path / POTENTIALS, potentials)
    write_rows(path / TIMINGS, [{key: row[key] for key in TIMED} for row in rows])
    return Results(path, read_json(path / SETTINGS), runs, potentials)


def _missing(job: Job, folder: Path) -> Job:
    """Return what is left of a job."""
    return replace(job, units=tuple(unit for unit in job.units if not parts.is_kept(folder, unit.path)))
