"""What all results have in common: words, a table, a figure, and a view for notebooks."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

    from causal_shaping.data.space import Space

SHOWN_ROWS = 20
"""Rows of a result's table that a notebook shows."""


class Result:
    """A base for results: `repr` is one line, `print` tells the `summary`, and notebooks show the table."""

    def summary(self) -> str:
        """Return what it says, in words: several lines."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return its table, with labels in the columns."""
        raise NotImplementedError

    def plot(self, ax: Any = None) -> Any:
        """Draw it, into `ax` if given, and return the axes (extra `plot`)."""
        from causal_shaping.plot import draw  # the stage to the right: a method people look for

        return draw(self, ax)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        more = len(frame) - SHOWN_ROWS
        rest = f"<p>{more:,} more rows: to_pandas()</p>" if more > 0 else ""
        return f"<p>{html.escape(repr(self))}</p>{frame.head(SHOWN_ROWS).to_html(index=False)}{rest}"


def frame_by_state(space: Space, columns: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame:
    """Return arrays [states] or [steps, states] as a table: a row per (step and) state, with its label in columns.

    A column whose name is one of the state's has underscores in front.
    """
    import pandas as pd

    shape = next(iter(columns.values())).shape
    labels = [label if isinstance(label, tuple) else (label,) for label in space.states]
    frame = pd.DataFrame(labels * (shape[0] if len(shape) == 2 else 1), columns=list(space.columns))
    if len(shape) == 2:
        frame.insert(0, "step", np.repeat(np.arange(shape[0]), shape[1]))
    for name, values in columns.items():
        while name in space.columns:
            name = "_" + name
        frame[name] = np.ravel(values)
    return frame


def json_text(value: Any) -> str:
    """Return plain values, numbers of NumPy among them, as JSON: inf as a string, NaN as null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return None if math.isnan(number) else str(number)
    return number
