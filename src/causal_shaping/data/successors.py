"""What may follow a state and action, as far as ceilings exclude anything: for the monitor."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from causal_shaping.data.arrays import FloatArray, IntArray, LongArray, frozen
from causal_shaping.errors import DataError

ANYTHING = -1
"""The row of a state and action that anything may follow."""

KINDS: Mapping[str, str] = {"row": "<i4", "first": "<i8", "after": "<i4", "highest": "<f8"}
"""The arrays, and what their bytes are in a file."""


@dataclass(frozen=True, eq=False)
class AllowedSuccessors:
    """The outcomes that are allowed after each state and action, at any step.

    Attributes:
        row: int32 [states, actions], the row of the list below for a state and action; `ANYTHING`
            if none.
        first: int64 [rows + 1], where the successors of each row begin.
        after: int32 [successors], the states that may follow; the number of states stands for an
            end.
        highest: float64 [successors], the most that a step to each may pay.
    """

    row: IntArray
    first: LongArray
    after: IntArray
    highest: FloatArray

    def __post_init__(self) -> None:
        for name, kind in KINDS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), np.dtype(kind), name))
        rows = len(self.first) - 1
        size = len(self.after)
        is_list = self.row.ndim == 2 and rows >= 0 and size == len(self.highest) == self.first[-1]
        if not is_list or (self.row >= rows).any() or (np.diff(self.first) < 0).any():
            raise DataError("The allowed successors are not a list for each state and action.")

    def as_plain(self) -> dict[str, Any]:
        """Return the bytes of each array in base64, and the number of actions, for JSON."""
        arrays = {name: getattr(self, name).astype(kind) for name, kind in KINDS.items()}
        texts = {name: b64encode(array).decode() for name, array in arrays.items()}
        return {**texts, "actions": self.row.shape[1]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return what `as_plain` gave; the first files of version 0.2 have lists instead."""
        if "actions" not in plain:
            return cls(**{name: plain[name] for name in KINDS})
        arrays = {
            name: np.frombuffer(b64decode(plain[name], validate=True), kind)
            for name, kind in KINDS.items()
        }
        return cls(**arrays | {"row": arrays["row"].reshape(-1, plain["actions"])})
