"""What all results have in common: words, a table, a figure, a file, and a view for notebooks.

- `Result`: a summary, a table, a figure. `PlainResult`: also JSON.
- `Written`, `Saved`: a file, from columns and plain values that a class names once.
- `SavedByState`: the same for arrays with a value per state, or per step and state.
- `data_frame`, `text_table`, `json_text`: tables and JSON.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import escaped
from causal_shaping.data.space import MakeColumn, Space, plain_column

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
DataFrame: TypeAlias = "pd.DataFrame"  # imported only where a frame is made

SHOWN_ROWS = 20
"""Rows of a result's table in a notebook: about a screen."""


class Result:
    """A base for results: `repr` is one line, `print` shows the `summary`, notebooks the table."""

    def summary(self) -> str:
        """Return what the result says, in several lines of text."""
        raise NotImplementedError

    def to_pandas(self) -> DataFrame:
        """Return the result's table, with labels in the columns."""
        raise NotImplementedError

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result and return the axes, or an array of axes (extra `plot`).

        Args:
            ax: axes for the main panel, or an empty figure for all of them; by default a new figure
                of pyplot.
            options: what the figure of this kind of result takes, see `causal_shaping.plot`.
        """
        from causal_shaping.plot import draw  # the stage to the right: people look for it here

        return draw(self, ax, **options)

    def __str__(self) -> str:
        return escaped(self.summary(), keep="\n")  # names can hold control characters

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        more, rest = len(frame) - SHOWN_ROWS, ""
        if more > 0:
            rest = f"<p>{more:,} more rows: to_pandas()</p>"
        table = frame.head(SHOWN_ROWS).to_html(index=False)
        return f"<p>{html.escape(repr(self))}</p>{table}{rest}"


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


@dataclass(frozen=True)
class Contents:
    """What a file of a result holds: an Arrow table, and everything else as plain values."""

    table: Any
    metadata: Mapping[str, Any]

    @cached_property
    def space(self) -> Space:
        """The states and actions that were saved."""
        return Space.from_plain(self.metadata["space"])


class Written:
    """What can be written to a Parquet file: a table with labels, and everything else as metadata.

    A subclass gives `KIND`, the columns in `labelled` and all other values in `header`;
    `causal_shaping.storage` does the rest.
    """

    KIND: ClassVar[str] = ""
    """What the file is called in `storage.FORMATS`."""
    EXACT_CSV: ClassVar[bool | None] = None
    """Whether a CSV file holds text as it is, or escaped for spreadsheets; None: no CSV file."""

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return the columns of the table, states and actions by label, as `make` makes them."""
        raise NotImplementedError

    @property
    def header(self) -> dict[str, Any]:
        """Everything else that the file holds beside the space, as plain values."""
        raise NotImplementedError

    def to_pandas(self) -> DataFrame:
        """Return the table, with labels in the columns; a next state that is not known is None."""
        return data_frame(self.labelled())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file: labels and arrays in its columns, everything else as metadata."""
        from causal_shaping.storage import save_result  # the stage to the right: people look here

        save_result(path, self)


class Saved(Written):
    """What can be written to a Parquet file and loaded again; `from_contents` makes it anew."""

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """Return what a file holds."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote, verified against its checksum."""
        from causal_shaping.storage import load  # the stage to the right: people look here

        return load(path, cls.KIND, cls.from_contents)


class SavedByState(Saved):
    """Arrays with a value per state, or per step and state, in a file with a row for each.

    A subclass names its arrays once, in `columns`, everything else in `metadata`, and makes a
    result of both in `from_columns`.
    """

    space: Space

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name, all [states] or all [steps, states]."""
        raise NotImplementedError

    @property
    def metadata(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values for JSON."""
        raise NotImplementedError

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Any], space: Space, metadata: Mapping[str, Any]
    ) -> Self:
        """Return the result that has these `columns`, space and `metadata`."""
        raise NotImplementedError

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return a row per (step and) state: its label, and the entries of the arrays."""
        return self.space.columns_by_state(self.columns(), make)

    @property
    def header(self) -> dict[str, Any]:
        """The metadata and the number of steps, None without steps."""
        *steps, _ = next(iter(self.columns().values())).shape
        return {**self.metadata, "steps": next(iter(steps), None)}

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """Return what a file holds."""
        from causal_shaping.data.columns import arrays_by_state  # late, as it imports Arrow

        space, metadata = contents.space, contents.metadata
        arrays = arrays_by_state(contents.table, space, metadata["steps"])
        return cls.from_columns(arrays, space, metadata)


def data_frame(rows: Any, columns: Sequence[str] | None = None) -> DataFrame:
    """Return columns by name, or rows, as a pandas frame."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def frame_by_state(space: Space, columns: Mapping[str, npt.NDArray[Any]]) -> DataFrame:
    """Return arrays [states] or [steps, states] as a frame, see `Space.columns_by_state`."""
    return data_frame(space.columns_by_state(columns))


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Return a table as text: the first column flush left, the others flush right."""
    cells = [list(heads), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = []
    for first, *others in cells:
        right = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *right]).rstrip())
    return "\n".join([title] * bool(title) + lines)


def state_parts(space: Space, state: int) -> dict[str, int | str]:
    """Return a state's label by column."""
    return dict(zip(space.columns, space.parts[state], strict=True))


def json_text(value: Any) -> str:
    """Return plain values and numbers of NumPy as JSON: inf as a string, NaN as null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value
