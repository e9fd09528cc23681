"""How often the tests of `inspect_continuous` raise false alarms, and what they find: small logs, many times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.calibration.continuous_worlds import blind_rule, linear_logs, load, transitions, world_logs

LEVEL, CLEAN, POWER = 0.05, 60, 10
CLEAN_PAIRS, POWER_PAIRS = 12, 5
FIRST_SEED = 5_000
"""Seeds below were looked at while the tests were made."""

DEMONSTRATORS = (
    "windy-field: good",
    "windy-field: random",
    "windy-field, maze: better",
    "windy-field, all winds: good",
    "cart-pole: good",
    "mountain-car: good",
    "linear: 2 coordinates",
    "linear: 6 coordinates",
)
LASTING = ("windy-field: good", "windy-field, all winds: random", "linear: 2 coordinates", "linear: 6 coordinates")
STRENGTHS = (0.25, 0.5, 1.0)
BLIND = ("windy-field", "windy-field, all winds", "cart-pole", "mountain-car", "linear: 2", "linear: 6")
SEEING = ("windy-field: good", "cart-pole: bad", "mountain-car: bad", "linear: 2", "linear: 6")


def logs_of(name: str, seed: int, lasting: float = 0.0) -> Any:
    """Return the logs of a demonstrator."""
    world, demonstrator = name.split(": ")
    if world == "linear":
        return linear_logs(int(demonstrator.split()[0]), seed, lasting=lasting)
    return world_logs(load(world), demonstrator, seed, demonstrator, lasting)


def pair_of(name: str, seed: int, sees: float) -> list[Any]:
    """Return the logs of two demonstrators that differ in what they do; the first sees the hidden cause, or not."""
    world, _, rest = name.partition(": ")
    if world == "linear":
        return [
            linear_logs(int(rest), seed, "one", sees=sees),
            linear_logs(int(rest), seed, "two", sees=0.0, taste=-1.0),
        ]
    loaded = load(world)
    first = rest if sees else blind_rule(loaded, 2 * seed)
    return [world_logs(loaded, first, seed, "one"), world_logs(loaded, blind_rule(loaded, 2 * seed + 1), seed, "two")]


def past_p_value(logs: Any, seed: int) -> float:
    """Return the p-value of a past that tells nothing."""
    from causal_shaping.diagnose.continuous import _persistence, _Sample

    return _persistence(_Sample.of(transitions(logs), seed), 0, seed).p_value


def pair_p_value(logs: list[Any], seed: int) -> float:
    """Return the p-value of two sources with equal outcomes."""
    from causal_shaping.diagnose.continuous import _compare, _Sample

    return _compare(_Sample.of(transitions(*logs), seed), 0, 1, seed)[0]


def persistence_parts() -> list[str]:
    """Return demonstrators of worlds in which nothing lasts, and of such where the cause does, for a share of steps."""
    return [f"clean; {name}" for name in DEMONSTRATORS] + [
        f"{share:g}; {name}" for name in LASTING for share in STRENGTHS
    ]


def run_persistence(part: str) -> dict[str, Any]:
    """Return how often the past is found to tell of outcomes."""
    share, name = part.split("; ")
    clean = share == "clean"
    seeds = range(FIRST_SEED, FIRST_SEED + (CLEAN if clean else POWER))
    return tallied([past_p_value(logs_of(name, seed, 0.0 if clean else float(share)), seed) for seed in seeds])


def source_parts() -> list[str]:
    """Return pairs of demonstrators that are blind, and pairs of one who sees and one who does not."""
    return [f"clean; {name}" for name in BLIND] + [f"sees; {name}" for name in SEEING]


def run_sources(part: str) -> dict[str, Any]:
    """Return how often two sources are found to differ in their outcomes."""
    kind, name = part.split("; ")
    seeds = range(FIRST_SEED, FIRST_SEED + (CLEAN_PAIRS if kind == "clean" else POWER_PAIRS))
    return tallied([pair_p_value(pair_of(name, seed, float(kind == "sees")), seed) for seed in seeds])


def tallied(p_values: list[float]) -> dict[str, Any]:
    """Return the figures of some logs."""
    held = np.array(p_values)
    return {"logs": len(held), "alarms": int((held <= LEVEL).sum()), "p_values": held.round(4).tolist()}


def holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether clean logs raise alarms as rarely as the level says, within two standard errors: together, and each."""
    clean = [figures for part, figures in parts.items() if part.startswith("clean")]
    together = {"logs": sum(one["logs"] for one in clean), "alarms": sum(one["alarms"] for one in clean)}

    def rare(one: Mapping[str, Any], errors: float) -> bool:
        n = one["logs"]
        return bool(one["alarms"] <= LEVEL * n + errors * (LEVEL * (1 - LEVEL) * n) ** 0.5)

    for part, figures in parts.items():
        print(f"  {part}: {figures['alarms']} of {figures['logs']}")
    return rare(together, 2) and all(rare(one, 3) for one in clean)
