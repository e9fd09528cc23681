"""What all results have in common: words, a table, a figure, and a view for notebooks."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import escaped
from causal_shaping.data.space import Space

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
DataFrame: TypeAlias = "pd.DataFrame"  # imported only where a frame is made

SHOWN_ROWS = 20
"""Rows of a result's table that a notebook shows."""


class Result:
    """A base for results: `repr` is one line, `print` tells the `summary`, and notebooks show the table."""

    def summary(self) -> str:
        """Return what it says, in words: several lines."""
        raise NotImplementedError

    def to_pandas(self) -> DataFrame:
        """Return its table, with labels in the columns."""
        raise NotImplementedError

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it and return the axes, an array of them if there are several (extra `plot`).

        Args:
            ax: axes for the main panel, or an empty figure for all of them; by default a new figure of pyplot.
            options: what the figure of this kind of result takes, see `causal_shaping.plot`.
        """
        from causal_shaping.plot import draw  # the stage to the right: a method people look for

        return draw(self, ax, **options)

    def __str__(self) -> str:
        return escaped(self.summary(), keep="\n")  # names can hold anything

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        more = len(frame) - SHOWN_ROWS
        rest = f"<p>{more:,} more rows: to_pandas()</p>" if more > 0 else ""
        return f"<p>{html.escape(repr(self))}</p>{frame.head(SHOWN_ROWS).to_html(index=False)}{rest}"


def data_frame(rows: Any, columns: Sequence[str] | None = None) -> DataFrame:
    """Return columns by name, or rows, as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def frame_by_state(space: Space, columns: Mapping[str, npt.NDArray[Any]]) -> DataFrame:
    """Return arrays [states] or [steps, states] as a table, see `Space.columns_by_state`."""
    return data_frame(space.columns_by_state(columns))


class PlainResult(Result):
    """A result that is plain values, too."""

    def as_plain(self) -> Any:
        """Return everything as plain values, for JSON."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json_text(self.as_plain())


class ResultSequence(PlainResult, Sequence[T], Generic[T]):
    """A result that is a sequence of its `items`."""

    items: tuple[T, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Return a table as plain text: the first column to the left, the others to the right."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    rule = ["-" * width for width in widths]
    text = [
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(parts)).rstrip()
        for parts in (list(zip(line, widths, strict=True)) for line in (lines[0], rule, *lines[1:]))
    ]
    return "\n".join([title, *text] if title else text)


def state_parts(space: Space, state: int) -> dict[str, int | str]:
    """Return a state's label by column."""
    return dict(zip(space.columns, space.parts[state], strict=True))


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
