"""What a backward pass finds, and passes that go on until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from causal_shaping.cmdp import VALUE_TOLERANCE
from causal_shaping.data import BoolArray, FloatArray, Label
from causal_shaping.errors import ModelError

MOST_SWEEPS = 10_000
"""Sweeps without discount after which a fixed point is called missing."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds of one side.

    Attributes:
        values: float64 [steps, states], or [states] at a fixed point.
        q_values: the same for each action, float64 [..., actions]; NaN for actions that were skipped.
        vacuous: bool like `values`, states that no source ever left: theirs is what any state could have.
        terminal: bool [states].
        sweeps: how many passes a fixed point took, None without one.
        contraction: by how much a sweep shrank the change, geometric mean over the sweeps.
        caveats: why the bounds are not guaranteed, in sentences.
    """

    values: FloatArray
    q_values: FloatArray
    vacuous: BoolArray
    terminal: BoolArray
    sweeps: int | None = None
    contraction: float | None = None
    caveats: tuple[str, ...] = ()


def fixed_point(
    sweep: Callable[[FloatArray], tuple[FloatArray, FloatArray]], states: Sequence[Label], discount: float
) -> tuple[FloatArray, FloatArray, int, float]:
    """Return values that a sweep does not change, their action values, the number of sweeps and the contraction.

    Sweeps start at 0, as a backward pass does: the fixed point is the limit of ever longer horizons.

    Args:
        sweep: from values [states] to values and action values.
        states: labels, for a message.
        discount: the factor on future reward; below 1 it says how many sweeps are enough.

    Raises:
        ModelError: if there is no fixed point.
    """
    values = np.zeros(len(states))
    most = MOST_SWEEPS if discount == 1 else int(np.log(VALUE_TOLERANCE) / np.log(discount)) + MOST_SWEEPS
    changes: list[float] = []
    for done in range(1, most + 1):
        before, (values, q_values) = values, sweep(values)
        change = np.abs(values - before)
        if change.max() <= VALUE_TOLERANCE * max(1.0, np.abs(values).max()):
            shrunk = (changes[-1] / changes[0]) ** (1 / (len(changes) - 1)) if len(changes) > 1 else 0.0
            return values, q_values, done, shrunk
        changes.append(float(change.max()))
    worst = int(change.argmax())
    raise ModelError(
        f"There is no fixed point: after {most:,} sweeps the bound of {states[worst]!r} still changes by "
        f"{change[worst]:.3g} a sweep (it is {values[worst]:.4g}). Pass stationary=False for a horizon, or a discount "
        "below 1."
    )
