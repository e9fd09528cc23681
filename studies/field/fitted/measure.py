"""Measures: how far values are from the optimum, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from causal_shaping.data.arrays import FloatArray

T = TypeVar("T")
ROUNDING = 1e-9


def cpu_seconds(make: Callable[[], T]) -> tuple[T, float]:
    """Return what a function makes, and the CPU seconds that it took."""
    began = time.process_time()
    made = make()
    return made, time.process_time() - began


def compare(values: FloatArray, truth: FloatArray, margin: float) -> dict[str, Any]:
    """Return how far values are from the truth.

    Args:
        values: float64 [points].
        truth: float64 [points].
        margin: a value is too low if it is below the truth by more than this share of the truth's range.
    """
    gap, spread = values - truth, float(np.ptp(truth))
    flat = np.ptp(values) < ROUNDING or spread < ROUNDING
    return {
        "distance": float(np.abs(gap).mean()),
        "above": float(gap.mean()),
        "correlation": None if flat else float(np.corrcoef(values, truth)[0, 1]),
        "below": float((gap < -margin * spread).mean()),
        "lowest": float(gap.min()),
        "range": spread,
    }
