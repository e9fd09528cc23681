"""What a backward pass finds, and infinite-horizon bounds by sweeps over all states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.space import Label
from causal_shaping.errors import ModelError

VALUE_TOLERANCE = 1e-13
"""Sweeps stop when no value changes by more than this, relative to the largest value so far."""

SWEEPS_TO_HALVE = 10_000
"""If so many sweeps do not halve the change, there is no infinite-horizon bound."""

SETTLING_DISCOUNT = 0.9999
"""A discount that halves the change in fewer sweeps than that."""

Sweep: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From values [states] to new values and action values [states, actions]."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds of one side; `Bounds` explains the fields."""

    values: FloatArray
    q_values: FloatArray
    vacuous: BoolArray
    unrestricted: BoolArray
    terminal: BoolArray
    sweeps: int | None = None
    contraction: float | None = None
    caveats: tuple[str, ...] = ()
    no_other_states: bool = False
    scaled: int = 0
    largest_total: float = 1.0


def best_of(q_values: FloatArray) -> FloatArray:
    """Return the value of the best action, where NaN stands for one that does not exist.

    A loop over the actions is several times faster than many reductions of a few numbers.
    """
    best = q_values[..., 0].copy()
    for x in range(1, q_values.shape[-1]):
        np.fmax(best, q_values[..., x], out=best)
    return best


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Values that a sweep does not change."""

    values: FloatArray  # [states]
    q_values: FloatArray  # [states, actions]
    sweeps: int
    contraction: float  # the factor by which a sweep shrank the change, on average
    remainder: float  # how far off the values may still be


def fixed_point(
    sweep: Sweep, values: FloatArray, states: Sequence[Label], discount: float
) -> FixedPoint:
    """Sweep until the values are stable.

    The last change c leaves an error of at most c * d / (1 - d), with d the discount. Without a
    discount d is the mean factor by which sweeps shrank the change, and the error an estimate.
    """
    changes, largest = list[float](), float(np.abs(values).max())
    while not changes or changes[-1] > VALUE_TOLERANCE * largest:
        before = values
        values, q_values = sweep(values)
        change = np.abs(values - before)
        changes.append(float(change.max()))
        largest = max(largest, float(np.abs(values).max()))
        if len(changes) % SWEEPS_TO_HALVE == 0:
            earlier = changes[max(0, len(changes) - 1 - SWEEPS_TO_HALVE)]
            if changes[-1] > earlier / 2:
                _refuse_endless_sweeps(values, change, len(changes), states, discount)
    contraction = 0.0
    if len(changes) > 2:
        contraction = (changes[-2] / changes[0]) ** (1 / (len(changes) - 2))
    rate = discount
    if discount == 1:
        rate = min(contraction, 1 - VALUE_TOLERANCE)
    remainder = changes[-1] * rate / (1 - rate)
    return FixedPoint(values, q_values, len(changes), contraction, remainder)


def _refuse_endless_sweeps(
    values: FloatArray, change: FloatArray, sweeps: int, states: Sequence[Label], discount: float
) -> None:
    """Refuse an infinite-horizon bound whose sweeps do not settle."""
    state = int(change.argmax())
    advice = f"a smaller discount, {SETTLING_DISCOUNT} or less"
    if discount == 1:
        advice = "a discount below 1"
    raise ModelError(
        f"There is no infinite-horizon bound: after {sweeps:,} sweeps the bound of "
        f"{states[state]!r} still changes by {change[state]:.3g} a sweep (it is "
        f"{values[state]:.4g}). Leave out stationary to bound a horizon, or choose {advice}."
    )
