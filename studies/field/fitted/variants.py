"""The default forest in windy fields that nothing was chosen on: other logs, noise, winds, steps, maps."""

from __future__ import annotations

from typing import Any

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds.field import WindyField
from causal_shaping.worlds.published import GRID_WORLDS
from studies.field.fitted.cases import TRUTH, logged
from studies.field.fitted.measure import compare, cpu_seconds
from studies.parts import Found
from studies.worlds.optimum import solve

VERSION = 4
ROWS, GRID, MARGIN = 100_000, 6, 0.02

TWO_GAPS = """\
#########
#...L...#
#...L...#
#.......#
#...L...#
#...L...#
#...L...#
#......G#
#########"""
VARIANTS: dict[str, tuple[dict[str, Any], int]] = {
    "other logs": ({}, 101),
    "other logs again": ({}, 102),
    "twice the noise": ({"noise_sd": 0.1}, 103),
    "a fifth of the noise": ({"noise_sd": 0.01}, 104),
    "steps of 0.8": ({"step_length": 0.8}, 105),
    "wind from two sides": ({"wind": (0.3, 0.4, 0, 0, 0.3)}, 106),
    "weaker wind": ({"wind": (0, 0.5, 0, 0, 0.5)}, 107),
    "two gaps": ({"map": TWO_GAPS}, 108),
}


def parts() -> list[str]:
    """Return the names of all variants."""
    return list(VARIANTS)


def world_of(name: str) -> WindyField:
    """Return the world of a variant; the demonstrators are those of the usual map."""
    options = dict(VARIANTS[name][0])
    if "map" in options:
        usual = GRID_WORLDS["lavacross-easy"]
        options |= {"wind": usual.wind, "demonstrators": usual.demonstrators}
    return WindyField(**options)


def run_part(name: str) -> Found:
    """Return the figures of the default fit in a variant."""
    world, seed = world_of(name), VARIANTS[name][1]
    coarse = solve(world, GRID)
    points = np.asarray(coarse.points[~coarse.terminal])
    rows = logged(world, tuple(world.demonstrators), ROWS, seed)
    basics = {"horizon": world.horizon, "reward_max": world.reward_max}
    fitted, seconds = cpu_seconds(lambda: cs.fit_ceilings(rows, **basics))
    values = fitted(points)
    from population import population_ceilings

    population = np.asarray(population_ceilings(world, grid=GRID)(points))
    truth = solve(world, TRUTH)(points)
    figures = compare(values, truth, MARGIN) | {"seconds": round(seconds, 1), "rows": len(rows)}
    return figures | {
        "below": float((values < truth - MARGIN).mean()),
        "zero": float(np.abs(truth).mean()),
        "from population": float(np.abs(values - population).mean()),
        "population": compare(population, truth, MARGIN)["distance"],
    }


def tables(done: dict[str, Found]) -> list[str]:
    """Return the table, in Markdown."""
    columns = {
        "zero potential": ("zero", ".3f"),
        "distance to V*": ("distance", ".3f"),
        "correlation": ("correlation", ".3f"),
        "more than .02 below": ("below", ".1%"),
        "to the population's": ("from population", ".3f"),
        "the population's distance": ("population", ".3f"),
        "CPU s": ("seconds", ".0f"),
    }
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, one in done.items():
        lines.append(f"| {name} | " + " | ".join(format(one[key], form) for key, form in columns.values()) + " |")
    return [*lines, ""]
