"""What a fit costs, and how good it is, with more rows, coordinates, atoms and sources: one at a time in the field."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache

import numpy as np

from studies.field.fitted.cases import CASES, LEAST_BELOW, Study, logged, optimum_of
from studies.field.fitted.measure import compare
from studies.parts import Found

VERSION = 1
CASE = "windy-field"
ROWS, ATOMS, SOURCES, EXTRA = (10_000, 30_000, 100_000, 300_000, 1_000_000), (11, 21, 51, 101), (1, 2, 4, 8), (2, 4, 8)
USUAL_ROWS = 30_000


def parts() -> list[str]:
    """Return what varies, and its value: rows a source, atoms, sources, coordinates of noise."""
    varied = {"rows": ROWS, "coordinates of noise": EXTRA, "atoms": ATOMS, "sources": SOURCES}
    return [f"{what}; {value}" for what, values in varied.items() for value in values]


def run_part(part: str) -> Found:
    """Return the figures of a fit, from a process of its own: memory is the most that it ever held."""
    ran = subprocess.run(
        [sys.executable, "-m", "studies.field.fitted.growth", part], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr[-2_000:])
    return dict(json.loads(ran.stdout.splitlines()[-1]))


@lru_cache(maxsize=1)
def _points() -> tuple[np.ndarray, np.ndarray]:
    optimum = optimum_of(CASE)
    points = optimum.points[~optimum.terminal]
    return points, optimum(points)


def study_of(what: str, value: int) -> tuple[Study, dict[str, int]]:
    """Return the logs of a part, and the options of its fit."""
    world, (points, truth) = CASES[CASE].load(), _points()
    names = tuple(world.demonstrators)
    rows = logged(world, names, value if what == "rows" else USUAL_ROWS)
    if what == "sources":  # more of the same demonstrators, each with logs of its own
        tables = [(names[i % 3], i) for i in range(value)]
        from causal_shaping.logs.transitions import read_transitions

        collected = [world.collect(name, USUAL_ROWS, seed=i, source=f"{name} {i}") for name, i in tables]
        rows = read_transitions(collected, state=list(world.columns), actions=range(len(world.actions)))
    if what == "coordinates of noise":
        rng = np.random.default_rng(0)
        seen, points = (
            np.concatenate([one, rng.random((len(one), value), dtype=np.float32)], axis=1)
            for one in (rows.observations, points)
        )
        columns = (*rows.columns, *(f"noise_{i}" for i in range(value)))
        rows = replace(rows, observations=seen, shape=seen.shape[1:], columns=columns)
    options = {"atoms": value} if what == "atoms" else {}
    return Study(CASE, rows, world.horizon, world.reward_max, world.reward_min, points, truth), options


def measure(part: str) -> Found:
    """Fit with one member and return figures: most of the time and memory is proportional to the members."""
    import resource

    import causal_shaping as cs
    from studies.field.fitted.measure import cpu_seconds

    what, value = part.split("; ")
    study, options = study_of(what, int(value))
    cs.fit_ceilings(study.rows, **study.basics | {"horizon": 1}, members=1, sample=1_000, **options)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fitted, seconds = cpu_seconds(lambda: cs.fit_ceilings(study.rows, **study.basics, members=1, **options))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = compare(fitted(study.points), study.truth, LEAST_BELOW)
    return found | {
        "rows": len(study.rows),
        "seconds": round(seconds, 1),
        "megabytes": round(memory / 1024),
        "more megabytes": round((memory - before) / 1024),
    }


def tables(done: dict[str, Found]) -> list[str]:
    """Return the table, in Markdown."""
    head = ["", "rows in all", "CPU s", "peak MB", "distance to V*", "correlation", "too low"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for part, one in done.items():
        what, value = part.split("; ")
        cells = [f"{one['rows']:,}", f"{one['seconds']:.0f}", f"{one['megabytes']:,}"]
        cells += [f"{one['distance']:.3f}", f"{one['correlation']:.3f}", f"{one['below']:.1%}"]
        lines.append(f"| {int(value):,} {what}{' a source' if what == 'rows' else ''} | " + " | ".join(cells) + " |")
    return [*lines, ""]


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
