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
    each = max(1, AT_ONCE // max(1, observations[:1].nbytes))
    parts = []
    for begin in range(0, max(1, len(observations)), each):
        batch = np.array(observations[begin : begin + each])  # a copy, which the encoder may write to
        part = np.asarray(observe(batch))
        if part.ndim != 2 or len(part) != len(batch) or part.dtype.kind not in "biuf":
            raise ArgumentError(
                f"observe= returned {part.dtype} of shape {part.shape} for observations of shape {batch.shape}; "
                f"it must return an array of numbers [{len(batch)}, k], a row of features for each observation."
            )
        parts.append(part.astype(np.float32))
    if len({part.shape[1] for part in parts}) > 1:
        raise ArgumentError("observe= returned more features for some observations than for others.")
    features = np.concatenate(parts)
    if not np.isfinite(features).all():
        raise DataError("observe= returned features that are not finite numbers.")
    return features


def with_features(rows: Transitions, observe: Observe | None) -> Transitions:
    """Return the rows of logs with the features of their observations; without an encoder as they are."""
    if observe is not None:
        if not callable(observe):
            raise ArgumentError(f"observe is {observe!r}; pass a function, from observations to rows of features.")
        features = features_of(observe, rows.observations)
        return replace(rows, observations=features, shape=features.shape[1:], columns=("feature",))
    if len(rows.shape) != 1:
        raise ArgumentError(
            f"The states are arrays of shape {rows.shape}, such as images, but a forest takes vectors. Pass "
            "observe=, a function from such arrays [n, ...] to features [n, k], for example an encoder of your own."
        )
    return rows
