"""Long work in parts: run side by side, each kept as it ends, so that an interrupted run goes on where it stopped.

A part is a name and a function that returns plain values. It is one JSON file, `{"checksum": ..., "part": ...}`,
written under another name first; the checksum is that of the text of the part, and nothing else may be in the file, so
that any byte that changes is noticed.

- `run`: run the parts that are missing, one by one or side by side, and return what all of them found.
- `run_figures`, `figures`: the same for parts whose figures are committed, in one file once all are there.
- `side_by_side`: run jobs in processes; one that has several parts keeps each of them itself.
- `with_progress`: the same for jobs that say how long they take.
- `keep`, `is_kept`, `read`: a part, written and read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from causal_shaping._checks import check_integer
from causal_shaping._progress import Progress
from causal_shaping.errors import FileError

Found = Mapping[str, Any]
Job = TypeVar("Job")


class Costed(Protocol):
    """A job with its approximate duration in seconds on one core."""

    @property
    def cost(self) -> float:
        """The seconds."""


AnyCosted = TypeVar("AnyCosted", bound=Costed)

FILES = "parts/[!.]*.json"
"""The parts in a folder: what a kill left half written has a name that begins with a dot."""

WORK = Path(__file__).parent / "work"
MOST_WORKERS = 256
WATCHED_EVERY = 0.5
"""Seconds between a worker's looks at whether the process that started it is still there."""


def run(
    folder: Path, names: Sequence[str], work: Callable[[str], Found], *, workers: int = 1, again: bool = False
) -> dict[str, Found]:
    """Run the parts that are missing, print each as it ends, and return what all of them found, by name.

    Args:
        folder: where parts are kept; made if it is not there.
        names: the parts, in their order.
        work: returns what a part found; sent to other processes if there are several workers.
        workers: how many processes.
        again: run also what is there already.
    """
    left = [name for name in names if again or not is_kept(folder, name)]
    done = len(names) - len(left)
    for name in side_by_side(left, partial(keep, folder, work=work), workers):
        done += 1
        print(f"{done}/{len(names)}: {name}, {_load(_path(folder, name))['seconds']:.0f} s", flush=True)
    return {name: _load(_path(folder, name))["found"] for name in names}


def figures(path: Path, version: int) -> dict[str, Found]:
    """Return the figures of a file, by part; none if it is not there, or of another version."""
    held = json.loads(path.read_text()) if path.exists() else {}
    return dict(held["parts"]) if held.get("version") == version else {}


def run_figures(
    path: Path,
    version: int,
    names: Sequence[str],
    work: Callable[[str], Found],
    *,
    workers: int = 1,
    again: bool = False,
) -> dict[str, Found]:
    """Run the parts that a file of figures lacks, write them into it once all are there, and return all that it holds.

    Args:
        path: the file, which is committed; until then parts are kept in a folder `work`, which is not.
        version: of how figures are made: figures of another one are left out.
        names: the parts that are wanted.
        work: returns the figures of a part.
        workers: how many processes.
        again: run also what is there already.
    """
    known = figures(path, version)
    wanted = [name for name in names if again or name not in known]
    folder = WORK / f"{path.parent.parent.name}-{path.stem}-{version}"
    found = known | run(folder, wanted, work, workers=workers)
    if wanted:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
        _write(path, f'{{\n "version": {version},\n "parts": {{\n{lines}\n }}\n}}\n')
        shutil.rmtree(folder)
    return found


def keep(folder: Path, name: str, work: Callable[[str], Any]) -> None:
    """Run a part and write what it found, and how long that took; a kill leaves no file, or a whole one."""
    began, used = time.perf_counter(), time.process_time()
    found = work(name)
    spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
    part = json.dumps({"name": name, "found": found} | spent)
    _write(_path(folder, name), _sealed(part))


def is_kept(folder: Path, name: str) -> bool:
    """Return whether a part is there."""
    return _path(folder, name).exists()


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the parts of a folder, each with its name, what it found, and the seconds that it took."""
    for path in sorted(folder.glob(FILES)):
        yield _load(path)


def _write(path: Path, text: str) -> None:
    """Write a file under another name, which then takes its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _path(folder: Path, name: str) -> Path:
    return folder / "parts" / f"{quote(name, safe=' ,=+')}.json"


def _sealed(part: str) -> str:
    return f'{{"checksum": "{hashlib.sha256(part.encode()).hexdigest()}", "part": {part}}}\n'


def _load(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode()
        part = text.partition('"part": ')[2].removesuffix("}\n")
        if text != _sealed(part):
            raise ValueError("its checksum does not fit")
        held: dict[str, Any] = json.loads(part)
        return held
    except ValueError as error:
        raise FileError(f"{path} is damaged ({error}). Remove it to run that part again.") from error


def side_by_side(jobs: Sequence[Job], work: Callable[[Job], object], workers: int | None = None) -> Iterator[Job]:
    """Run jobs in processes, and yield each as it ends; with one worker they run in this process, in order.

    Args:
        jobs: what to run; those that begin first come first.
        work: runs one of them; it and the jobs are sent to other processes.
        workers: how many processes; None for one per core.
    """
    count = _cores() if workers is None else check_integer("workers", workers, least=1, most=MOST_WORKERS)
    count = min(count, len(jobs))
    if count <= 1:
        for job in jobs:
            work(job)
            yield job
        return
    with ProcessPoolExecutor(count, get_context("spawn"), initializer=_follow, initargs=(os.getpid(),)) as pool:
        waiting = iter(jobs)
        running: dict[Future[object], Job] = {pool.submit(work, job): job for job in islice(waiting, count)}
        while running:
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(ended)
                ended.result()
                # No more jobs at a time than workers: an interruption shall not wait for all of them.
                running |= {pool.submit(work, following): following for following in islice(waiting, 1)}
                yield job


def with_progress(
    jobs: Sequence[AnyCosted],
    work: Callable[[AnyCosted], object],
    total: float,
    workers: int | None,
    progress: Progress,
) -> None:
    """Run jobs side by side; `progress` is called with the cost that is done, the total, and what ended last."""
    done = total - sum(job.cost for job in jobs)
    progress(done, total, "Starting")
    for job in side_by_side(jobs, work, workers):
        done += job.cost
        progress(done, total, str(job))


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _follow(parent: int) -> None:
    """End this worker once the process that started it is gone, which a killed one cannot ask for."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCHED_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
