"""Sweeps over all states that are repeated until the values are stable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from causal_shaping.data.arrays import FloatArray

VALUE_TOLERANCE = 1e-13
"""Values are stable when a sweep changes them by less than this, relative to the largest that any sweep had."""

Sweep: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From values [states] to new values and action values [states, actions]."""


@dataclass(frozen=True, eq=False)
class Sweeps:
    """What a number of sweeps came to."""

    values: FloatArray  # [states]
    q_values: FloatArray  # [states, actions]
    change: FloatArray  # [states], by how much the last sweep changed each value
    changes: list[float]  # the largest change of each sweep
    size: float  # the largest value that any sweep had, whatever its sign

    @property
    def stable(self) -> bool:
        """Whether the last sweep changed nothing that matters."""
        return self.changes[-1] <= VALUE_TOLERANCE * self.size


def repeat(sweep: Sweep, values: FloatArray, most: int, size: float = 0.0) -> Sweeps:
    """Return what sweeps from some values come to: until they are stable, at most so many.

    `size` is that of earlier sweeps, if these go on.
    """
    changes: list[float] = []
    size = max(size, float(np.abs(values).max()))
    for _ in range(most):
        before, (values, q_values) = values, sweep(values)
        change = np.abs(values - before)
        changes.append(float(change.max()))
        size = max(size, float(np.abs(values).max()))
        result = Sweeps(values, q_values, change, changes, size)
        if result.stable:
            break
    return result
