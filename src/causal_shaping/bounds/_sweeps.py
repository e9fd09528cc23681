"""What a backward pass finds, and infinite-horizon bounds by sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.space import Label
from causal_shaping.errors import ModelError
from causal_shaping.models.backward import Sweep, repeat
from causal_shaping.models.constants import VALUE_TOLERANCE

SWEEPS = 10_000
"""So many sweeps must at least halve the change, or there is no infinite-horizon bound."""

SOON_SETTLED = 0.9999
"""A discount that halves the change in fewer sweeps than that."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Bounds of one side; for the fields see `Bounds`."""

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
    """Return the value of the best action; NaN stands for one that does not exist: float64 [..., states]."""
    best = q_values[..., 0].copy()
    for x in range(1, q_values.shape[-1]):  # several times faster than many short reductions
        np.fmax(best, q_values[..., x], out=best)
    return best


def fixed_point(
    sweep: Sweep, start: FloatArray, states: Sequence[Label], discount: float
) -> tuple[FloatArray, FloatArray, int, float, float]:
    """Return values that a sweep does not change, action values, the number of sweeps, the contraction, the remainder.

    The remainder is how far off the values may still be: with a discount at most discount / (1 - discount) times the
    last change, without one the same with the contraction that was observed, a geometric mean over the sweeps. From a
    start of 0 the values are the limit of ever longer horizons.
    """
    found = repeat(sweep, start, SWEEPS)
    changes = found.changes
    while not found.stable:
        if changes[-1] > changes[max(0, len(changes) - 1 - SWEEPS)] / 2:
            state = int(found.change.argmax())
            less = "a discount below 1" if discount == 1 else f"a smaller discount, {SOON_SETTLED} or less"
            raise ModelError(
                f"There is no infinite-horizon bound: after {len(changes):,} sweeps the bound of {states[state]!r} "
                f"still changes by {found.change[state]:.3g} a sweep (it is {found.values[state]:.4g}). Leave "
                f"out stationary to bound a horizon, or choose {less}."
            )
        found = repeat(sweep, found.values, SWEEPS, found.size)
        changes = changes + found.changes
    contraction = (changes[-2] / changes[0]) ** (1 / (len(changes) - 2)) if len(changes) > 2 else 0.0
    rate = discount if discount < 1 else min(contraction, 1 - VALUE_TOLERANCE)
    return found.values, found.q_values, len(changes), contraction, changes[-1] * rate / (1 - rate)
