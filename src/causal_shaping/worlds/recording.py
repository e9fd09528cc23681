"""What a log of a demonstrator begins with, in worlds of tables and continuous ones alike."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from causal_shaping._checks import check_integer, check_memory
from causal_shaping.errors import ArgumentError, UnknownNameError


def source_of(demonstrator: Any, source: str | None) -> str:
    """Return the name of a log's origin: the one that was passed, or the demonstrator's."""
    if source is not None:
        return source
    if isinstance(demonstrator, str):
        return demonstrator
    raise ArgumentError("Logs of a demonstrator of your own need a name: pass source=.")


def stream_of(steps: int, seed: int, source: str, bytes_a_step: int) -> np.random.Generator:
    """Check the size of a log and return its stream of randomness, by seed and source."""
    steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
    check_memory(f"A log of {steps:,} steps", bytes_a_step * steps)
    return np.random.default_rng([seed, zlib.crc32(source.encode())])


def demonstrator_of(world: Any, name: str) -> Any:
    """Return a world's demonstrator by its name."""
    if name not in world.demonstrators:
        known = ", ".join(world.demonstrators)
        raise UnknownNameError(f"{world.name} has no demonstrator {name!r}. It has {known}.")
    return world.demonstrators[name]
