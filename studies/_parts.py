"""Work that resumes: jobs of units side by side, a JSON file for each finished unit, read and checked again.

Every file is written under another name first, so that a kill loses the units that run, and nothing else.

- `run_jobs`: run jobs in processes, with progress.
- `keep`, `is_kept`: a finished unit, as a part.
- `read_parts`, `check_columns`, `table_of`: what parts hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import joblib
import pyarrow as pa

from causal_shaping._checks import check_integer
from causal_shaping._progress import Progress
from causal_shaping.errors import FileError
from causal_shaping.io.files import write_text
from causal_shaping.io.inputs import read_json, with_checksum
from studies._processes import processes

PARTS = "parts"
PART_FILES = f"{PARTS}/*/*/[!.]*.json"
"""The complete parts: a kill can leave a temporary file, whose name begins with a dot."""

MOST_WORKERS = 256
"""The most processes at a time."""

HINT = "Remove it to run that part again."


class Unit(Protocol):
    """A unit of work."""

    @property
    def path(self) -> str:
        """Its file, relative to the folder of the parts."""


class Job(Protocol):
    """Units that one process runs one after another; its text is shown while it runs."""

    @property
    def cost(self) -> float:
        """Its approximate duration, in seconds on one core."""


AnyJob = TypeVar("AnyJob", bound=Job)


def run_jobs(
    jobs: Sequence[AnyJob],
    run: Callable[[AnyJob], object],
    *,
    total: float,
    workers: int | None,
    progress: Progress,
) -> None:
    """Run jobs in processes; `run` keeps what it has done by itself.

    Args:
        jobs: those that are left.
        run: runs one of them; it is sent to other processes.
        total: the cost of all jobs, those that are done among them.
        workers: how many processes; None for one per core.
        progress: called with the cost that is done, the total, and what runs now.
    """
    done = total - sum(job.cost for job in jobs)
    running: list[str] = []
    progress(done, total, "Starting")

    def dispatched() -> Iterator[Any]:
        for job in jobs:
            running.append(str(job))
            progress(done, total, " | ".join(running))
            yield joblib.delayed(_run)(run, job)

    count = joblib.cpu_count() if workers is None else check_integer("workers", workers, least=1, most=MOST_WORKERS)
    for label, cost in processes(count, pre_dispatch=count, batch_size=1)(dispatched()):
        running.remove(label)
        done += cost
        progress(done, total, " | ".join(running) or "Merging")


def _run(run: Callable[[AnyJob], object], job: AnyJob) -> tuple[str, float]:
    run(job)
    return str(job), job.cost


def keep(folder: Path, unit: Unit, about: Mapping[str, Any], work: Callable[[], Mapping[str, Any]]) -> None:
    """Run a unit and write its part: what it is about, what it found, and how long that took."""
    begin, used = time.perf_counter(), time.process_time()
    found = work()
    spent = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - used}
    target = folder / PARTS / unit.path
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, json.dumps(with_checksum({**about, **found, **spent})), [".json"])


def is_kept(folder: Path, unit: Unit) -> bool:
    """Return whether the part of a unit is there."""
    return (folder / PARTS / unit.path).exists()


def read_parts(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the complete parts of a folder with their files, in the order of their names."""
    for file in sorted(folder.glob(PART_FILES)):
        yield file, read_json(file, HINT)


def check_columns(file: Path, rows: Sequence[Mapping[str, Any]], *schemas: pa.Schema) -> None:
    """Refuse a part whose values are not of the types of its columns."""
    try:
        for schema in schemas:
            table_of(rows, schema)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FileError(f"{file} is not a part of the study ({error}). {HINT}") from error


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table of a schema; what a row does not hold is null."""
    return pa.Table.from_pylist([{column: row.get(column) for column in schema.names} for row in rows], schema)
