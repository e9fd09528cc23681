"""What a backward pass finds, and passes that go on until nothing changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.space import Label
from causal_shaping.errors import ModelError
from causal_shaping.models.cmdp import VALUE_TOLERANCE

SWEEPS = 10_000
"""So many sweeps must at least halve the change, or there is no fixed point."""


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
    sweep: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    start: FloatArray,
    states: Sequence[Label],
    discount: float,
) -> tuple[FloatArray, FloatArray, int, float, float]:
    """Return values that a sweep does not change, action values, the number of sweeps, the contraction, the remainder.

    From 0, as a backward pass, the fixed point is the limit of ever longer horizons. The remainder is how far off it
    may still be: with a discount at most discount / (1 - discount) times the last change, without one the same with
    the contraction that was observed.

    Args:
        sweep: from values [states] to values and action values.
        start: float64 [states], the values to start from.
        states: labels, for a message.
        discount: the factor on future reward.

    Raises:
        ModelError: if there is no fixed point.
    """
    values = start
    changes = [math.inf]
    for done in itertools.count(1):
        before, (values, q_values) = values, sweep(values)
        change = np.abs(values - before)
        changes.append(float(change.max()))
        if changes[-1] <= VALUE_TOLERANCE * max(1.0, np.abs(values).max()):
            shrunk = (changes[-2] / changes[1]) ** (1 / (done - 2)) if done > 2 else 0.0
            rate = discount if discount < 1 else min(shrunk, 1 - VALUE_TOLERANCE)
            return values, q_values, done, shrunk, changes[-1] * rate / (1 - rate)
        if done % SWEEPS == 0 and changes[-1] > changes[max(1, done - SWEEPS)] / 2:
            break
    state = int(change.argmax())
    raise ModelError(
        f"There is no fixed point: after {done:,} sweeps the bound of {states[state]!r} still changes by "
        f"{change[state]:.3g} a sweep (it is {values[state]:.4g}). Pass stationary=False for a horizon, or a discount "
        "below 1."
    )
