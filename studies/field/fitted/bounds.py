"""Estimators and bounds against the optimum: each method in each world is a part."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from studies.field.fitted import rivals
from studies.field.fitted.cases import CASES, TRUTH, Study, logs_of, optimum_of, where
from studies.parts import Found
from studies.worlds.optimum import solve
from studies.worlds.population import population_ceilings

VERSION = 3
MEMBERS = 3
LEAST_BELOW = 0.02
"""Values count as too low if they are below the optimum by more than this share of the values' range."""

METHODS: dict[str, Callable[[Study], FloatArray]] = {
    "zero potential": lambda given: np.zeros(len(given.points)),
    "endless logs, observed": lambda given: endless(given),
    "forest, observed (default)": lambda given: fitted(given)(given.points),
    "best guess": lambda given: fitted(given).potential(kind="mean").values(given.points, 0),
    "the paper's formula, fitted": lambda given: rivals.swept(given, naive=False),
    "naive fitted Q": lambda given: rivals.swept(given, naive=True),
    "behaviour values": rivals.behaviour_values,
    "10 bins, tabular": lambda given: rivals.binned(given, 10),
    "30 bins, tabular": lambda given: rivals.binned(given, 30),
}


def parts() -> list[str]:
    """Return each method in each world."""
    return [f"{case}; {method}" for case in CASES for method in METHODS]


def fitted(given: Study) -> cs.FittedCeilings:
    """Return ceilings with the defaults."""
    return cs.fit_ceilings(given.rows, members=MEMBERS, **given.basics)


def endless(given: Study) -> FloatArray:
    """Return the ceilings of endless logs."""
    case = CASES[given.name]
    return np.asarray(population_ceilings(case.load(), case.grid)(given.points))


@lru_cache(maxsize=1)
def study(name: str) -> Study:
    """Return the logs of all demonstrators of a case, with the truth."""
    case = CASES[name]
    world, optimum = case.load(), optimum_of(name)
    points = where(world, case, optimum)
    truth = (solve(world, TRUTH) if case.on_grid else optimum)(points)
    return replace(logs_of(name, tuple(world.demonstrators), 1.0), points=points, truth=truth)


def run_part(part: str) -> Found:
    """Return the figures of a method in a world."""
    name, method = part.split("; ")
    given = study(name)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = METHODS[method](given)
    figures = {"seconds": round(time.process_time() - began, 1), "rows": len(given.rows)}
    return compare(values, given.truth) | figures


def compare(values: FloatArray, truth: FloatArray) -> dict[str, Any]:
    """Return how far values are from the truth, both float64 [points]."""
    gap, spread = values - truth, float(np.ptp(truth))
    return {
        "distance": float(np.abs(gap).mean()),
        "above": float(gap.mean()),
        "correlation": float(np.corrcoef(values, truth)[0, 1]) if np.ptp(values) > 1e-9 else None,
        "below": float((gap < -LEAST_BELOW * spread).mean()),
        "range": spread,
    }


COLUMNS = {
    "distance to V*": ("distance", ".3f"),
    "mean of it": ("above", "+.3f"),
    "correlation": ("correlation", ".3f"),
    "too low": ("below", ".1%"),
    "CPU s": ("seconds", ".0f"),
}


def tables(done: dict[str, Found]) -> list[str]:
    """Return a table for each world, in Markdown."""
    lines: list[str] = []
    for case in CASES:
        own = {method: done[f"{case}; {method}"] for method in METHODS if f"{case}; {method}" in done}
        if own:
            first = next(iter(own.values()))
            lines += [f"**{case}**: {first['rows']:,} rows in all, values of a range of {first['range']:.3g}", ""]
            lines += ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * len(COLUMNS)]
        for method, one in own.items():
            cells = ["" if one.get(key) is None else format(one[key], form) for key, form in COLUMNS.values()]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines += [""] if own else []
    return lines
