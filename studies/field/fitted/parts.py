"""Units of work that are kept as they end, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures"
WORK = Path(__file__).parent / "work"
Figures = dict[str, Any]


def kept(name: str, version: int, folder: Path = FIGURES) -> dict[str, Figures]:
    """Return the figures that are there already, by part; none of another version."""
    path = folder / f"{name}.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    return dict(held["parts"]) if held.get("version") == version else {}


def keep(name: str, version: int, parts: dict[str, Figures], folder: Path = FIGURES) -> None:
    """Write the figures of all parts; a kill leaves the old file or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.json"
    lines = ",\n".join(f"  {json.dumps(part)}: {json.dumps(figures)}" for part, figures in parts.items())
    temporary.write_text(f'{{\n "version": {version},\n "parts": {{\n{lines}\n }}\n}}\n')
    temporary.replace(folder / f"{name}.json")


def run(
    name: str,
    version: int,
    parts: Iterable[str],
    work: Callable[[str], Figures],
    *,
    again: bool = False,
    jobs: int = 1,
    folder: Path = FIGURES,
) -> dict[str, Figures]:
    """Run the parts that are missing, in order, `jobs` at a time, and return the figures of all."""
    wanted = list(parts)
    done = {part: one for part, one in kept(name, version, folder).items() if not again or part not in wanted}
    missing = [part for part in wanted if part not in done]
    for part, figures, seconds in _each(work, missing, jobs):
        done[part] = figures
        keep(name, version, done, folder)
        print(f"{name} {sum(one in done for one in wanted)}/{len(wanted)}: {part}, {seconds:.0f} s", flush=True)
    return {part: done[part] for part in wanted}


def _each(work: Callable[[str], Figures], parts: list[str], jobs: int) -> Iterable[tuple[str, Figures, float]]:
    """Yield each part with its figures and the seconds that it took, as it ends."""
    if jobs == 1:
        for part in parts:
            yield _timed(work, part)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        left, running = list(parts), set[Future[tuple[str, Figures, float]]]()
        while left or running:
            while left and len(running) < jobs:  # no more at once: an interruption shall not wait for all
                running.add(pool.submit(_timed, work, left.pop(0)))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for one in ended:
                yield one.result()


def _timed(work: Callable[[str], Figures], part: str) -> tuple[str, Figures, float]:
    began = time.monotonic()
    return part, work(part), time.monotonic() - began
