"""What the worlds with a hidden push share."""

from __future__ import annotations

import numpy as np

from causal_shaping._checks import check_finite
from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.dynamics import Numbers


def mostly(preferred: Numbers, actions: int, random: float) -> FloatArray:
    """Return the rule that takes the preferred actions [states, noises], but any with probability `random`."""
    return (1 - random) * np.eye(actions)[preferred] + random / actions


def check_push(push: float) -> float:
    """Return the size of a hidden push; or say what is wrong."""
    check_finite("push", push)
    if push < 0:
        raise ArgumentError(f"push is {push}; it must be at least 0.")
    return push
