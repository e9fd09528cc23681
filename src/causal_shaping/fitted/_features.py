"""Features in place of observations: those of the user's own encoder, `observe=`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import ArgumentError, DataError

Observe: TypeAlias = Callable[[npt.NDArray[Any]], npt.ArrayLike]
"""From observations [n, *shape], as the logs hold them, to features [n, k], which the ceilings take."""

AT_ONCE = 2**26
"""An encoder gets observations of about so many bytes at a time: images are large."""


def features_of(observe: Observe, observations: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return the features of observations, float32 [n, k]; or say what is wrong with what the encoder gives."""
    found = np.asarray(observe(observations))
    if found.ndim != 2 or len(found) != len(observations) or found.dtype.kind not in "biuf":
        raise ArgumentError(
            f"observe= returned {found.dtype} of shape {found.shape} for observations of shape {observations.shape}; "
            f"it must return an array of numbers [{len(observations)}, k], a row of features for each observation."
        )
    features = np.ascontiguousarray(found, dtype=np.float32)
    if not np.isfinite(features).all():
        raise DataError("observe= returned features that are not finite numbers.")
    return features


def with_features(rows: Transitions, observe: Observe | None) -> Transitions:
    """Return the rows of logs with the features of their observations; without an encoder as they are."""
    if observe is None:
        if len(rows.shape) != 1:
            raise ArgumentError(
                f"The states are arrays of shape {rows.shape}, such as images. In Python, pass observe=, a function "
                "of your own from such arrays [n, ...] to features [n, k], for example an encoder."
            )
        return rows
    each = max(1, AT_ONCE // max(1, rows.observations[:1].nbytes))
    # copies, which the encoder may write to
    batches = (np.array(rows.observations[begin : begin + each]) for begin in range(0, len(rows.observations), each))
    features = [features_of(observe, batch) for batch in batches]
    sizes = sorted({part.shape[1] for part in features})
    if len(sizes) > 1:
        raise ArgumentError(f"observe= returned {sizes[0]} features for some observations and {sizes[1]} for others.")
    joined = np.concatenate(features)
    return replace(rows, observations=joined, shape=joined.shape[1:], columns=("feature",))
