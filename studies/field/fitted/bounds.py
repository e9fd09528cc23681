"""Estimators and bounds against the optimum: each method in each world is a part."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from causal_shaping.data.arrays import FloatArray
from studies.field.fitted import rivals
from studies.field.fitted.cases import CASES, LEAST_BELOW, Study, available, study
from studies.field.fitted.measure import compare, cpu_seconds
from studies.parts import Found
from studies.worlds.population import population_ceilings

VERSION = 3
Estimate = tuple[FloatArray, float]
"""Values at the study's points, and CPU seconds."""


def _default(given: Study) -> Estimate:
    fitted, seconds = given.fitted
    return fitted(given.points), seconds


def _guess(given: Study) -> Estimate:
    fitted, seconds = given.fitted
    return fitted.potential(kind="mean").values(given.points, 0), seconds


def _swept(given: Study, kind: int, **options: object) -> Estimate:
    return cpu_seconds(lambda: rivals.swept(given, kind, **options))


def _made(make: Callable[[Study], FloatArray], given: Study) -> Estimate:
    return cpu_seconds(lambda: make(given))


def _zero(given: Study) -> Estimate:
    return np.zeros(len(given.points)), 0.0


def _endless(given: Study) -> Estimate:
    return cpu_seconds(lambda: population(given.name))


def _tabular(given: Study, bins: int) -> Estimate:
    return cpu_seconds(lambda: rivals.binned(given, bins))


METHODS: dict[str, Callable[[Study], Estimate]] = {
    "zero potential": _zero,
    "endless logs, observed": _endless,
    "forest, observed (default)": _default,
    "one member": partial(_swept, kind=rivals.OURS),
    "one member, observed-action": partial(_swept, kind=rivals.OURS, support="observed-action"),
    "one member, any": partial(_swept, kind=rivals.OURS, support="any"),
    "one member, minimum over sources": partial(_swept, kind=rivals.SOURCE),
    "best guess": _guess,
    "the paper's formula, fitted": partial(_swept, kind=rivals.PAPER),
    "naive fitted Q": partial(_swept, kind=rivals.NAIVE),
    "behaviour values": partial(_made, rivals.behaviour_values),
    "of the sequel's kind": partial(_made, rivals.sequel),
    "10 bins, tabular": partial(_tabular, bins=10),
    "30 bins, tabular": partial(_tabular, bins=30),
}


def parts() -> list[str]:
    """Return each method in each world."""
    return [f"{case}; {method}" for case in available() for method in METHODS]


_study = lru_cache(maxsize=1)(study)


@lru_cache(maxsize=1)
def population(name: str) -> FloatArray:
    """Return the ceilings of endless logs at the study's points."""
    given = _study(name)
    return np.asarray(population_ceilings(given.world, grid=CASES[name].grid)(given.points))


def run_part(part: str) -> Found:
    """Return the figures of a method in a world."""
    name, method = part.split("; ")
    given = _study(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, seconds = METHODS[method](given)
    figures = compare(values, given.truth, LEAST_BELOW) | {"seconds": round(seconds, 1), "rows": len(given.rows)}
    figures["from population"] = float(np.abs(values - population(name)).mean())
    return figures


COLUMNS = {
    "distance to V*": ("distance", ".3f"),
    "mean of it": ("above", "+.3f"),
    "correlation": ("correlation", ".3f"),
    "too low": ("below", ".1%"),
    "to the population's": ("from population", ".3f"),
    "CPU s": ("seconds", ".0f"),
}


def tables(done: dict[str, Found]) -> list[str]:
    """Return a table for each world, in Markdown."""
    lines: list[str] = []
    for case in [name for name in CASES if any(part.startswith(f"{name}; ") for part in done)]:
        own = {part.split("; ")[1]: one for part, one in done.items() if part.startswith(f"{case}; ")}
        spread, rows = next(iter(own.values()))["range"], next(iter(own.values()))["rows"]
        lines += [f"**{case}**: {rows:,} rows in all, values of a range of {spread:.3g}", ""]
        shown = {name: how for name, how in COLUMNS.items() if any(how[0] in one for one in own.values())}
        lines += ["| | " + " | ".join(shown) + " |", "|---|" + "---:|" * len(shown)]
        for method in [name for name in METHODS if name in own]:
            one = own[method]
            cells = ["" if one.get(key) is None else format(one[key], form) for key, form in shown.values()]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines
