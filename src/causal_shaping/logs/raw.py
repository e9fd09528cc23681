"""A user's table as it is, before its columns have a meaning: found by the user's names."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ibis

from causal_shaping.data.space import Space, shortened
from causal_shaping.errors import ArgumentError, AssumptionWarning, DataError
from causal_shaping.logs.constants import SHOWN_COLUMNS, SHOWN_VALUES
from causal_shaping.logs.engine import FILE, ROW
from causal_shaping.logs.queries import fetch

Flag: TypeAlias = str | Sequence[str] | Mapping[str, Sequence[Any]]
"""A column; several columns, any of which sets the flag; or columns with the values that set it."""

NamedColumn: TypeAlias = tuple[str, ibis.Column]
"""A column and the user's name for it."""


@dataclass(frozen=True)
class RawLogs:
    """The rows of a log, and what is known of them before they are read."""

    rows: ibis.Table
    origin: str  # what to call it in messages
    name: str = ""  # the source's, if neither the user nor the metadata give one
    state: tuple[str, ...] = ("state",)  # its columns, if neither the user nor the metadata do
    source: str | None = None  # this and the next two: from the metadata of files of this package
    space: Space | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    odd: frozenset[str] = frozenset()  # columns of numbers that are text; see `CsvFile`
    header: bool = False  # whether a line of column names comes before the first row
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of flat lists

    def column(self, name: str, argument: str) -> ibis.Column:
        """Return a column; `argument` is the argument that can name another one."""
        if name in self.rows.columns:
            return self.rows[name]
        shown = [column for column in self.rows.columns if column not in (ROW, FILE)]
        hint = "".join(
            f" Did you mean {near!r}?" for near in difflib.get_close_matches(str(name), shown, n=1)
        )
        raise ArgumentError(
            f"{self.origin} has no column {name!r}.{hint} Its columns are "
            f"{shortened(map(repr, shown), SHOWN_COLUMNS)}. Name the right one in "
            f"{argument}= or --{argument.replace('_', '-')}."
        )

    def typed(self, column: ibis.Column, wanted: str, *kinds: str) -> ibis.Column:
        """Return a column that must have one of some kinds: "integer", "numeric", "string"."""
        name = column.get_name()
        if "string" not in kinds and name in self.odd:
            return column.cast("int64").name(name)
        if not any(getattr(column.type(), f"is_{kind}")() for kind in kinds):
            raise DataError(
                f"{self.origin}, column {name!r} holds {column.type()}; it must hold {wanted}."
            )
        return column

    def state_columns(
        self, prefix: str, names: Sequence[str], argument: str, lists: bool
    ) -> dict[str, NamedColumn]:
        """Return the columns that make a state, as `prefix` and a number.

        A struct gives a column for each of its fields, and a list one for each of its entries,
        unless `lists` keeps it whole.
        """
        parts: list[NamedColumn] = []
        for name in names:
            column = self.column(name, argument)
            kind = column.type()
            if kind.is_struct():
                parts += [(f"{name}_{part}", column[part]) for part in kind.names]
            elif kind.is_array() and not lists:
                parts += [(f"{name}_{i}", column[i]) for i in range(self._list_length(name))]
            else:
                parts.append((name, column))
        return {f"{prefix}{i}": part for i, part in enumerate(parts)}

    def _list_length(self, name: str) -> int:
        """Return how many entries all lists of a column have."""
        length = self.rows[name].length()
        sizes = self.rows.aggregate(least=length.min(), most=length.max())
        ((least, most),) = (row.values() for row in fetch(sizes, self.origin).to_pylist())
        if not least or least != most:
            raise DataError(
                f"{self.origin}, column {name!r}: its lists have {least} to {most} entries; a "
                "state needs the same number in every row."
            )
        return int(least)

    def flag(self, flag: Flag, argument: str) -> ibis.Column:
        """Return a flag as a boolean, null where it is neither true nor false."""
        if isinstance(flag, Mapping):
            parts = [self._is_one_of(name, values, argument) for name, values in flag.items()]
        else:
            parts = [self._truth(name, argument) for name in listed(flag)]
        if not parts:
            raise ArgumentError(f"{argument} names no column.")
        return ibis.or_(*parts)

    def _truth(self, name: str, argument: str) -> ibis.Column:
        column = self.column(name, argument)
        if column.type().is_boolean():
            return column
        if column.type().is_string():
            values = [repr(value) for value in self._values(name)]
            example = next(iter(values), "...")
            raise DataError(
                f"{self.origin}, column {name!r} holds text: {', '.join(values)}. Say which of "
                f"these end an episode: {argument}={{{name!r}: [{example}]}} or --{argument} "
                f"{name}=VALUE."
            )
        number = self.typed(column, "true and false, or 1 and 0", "integer")
        return ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))

    def _is_one_of(self, name: str, wanted: Sequence[Any], argument: str) -> ibis.Column:
        column, says = self.column(name, argument), f"{argument}={{{name!r}: {wanted!r}}}"
        if isinstance(wanted, str) or not wanted:
            raise ArgumentError(f"{says} must list values, as in {{{name!r}: ['died']}}.")
        held, values = column.cast("string"), list[Any](map(str, wanted))
        if column.type().is_boolean():
            values = [value.lower() for value in values]
        elif column.type().is_numeric():  # pandas holds 1 as 1.0 in a column with gaps
            try:
                values = [float(value) for value in wanted]
            except (TypeError, ValueError):
                raise ArgumentError(f"{says}, but {self.origin} holds numbers there.") from None
            held = column.cast("float64")
        seen = self.rows.filter(held.isin(values)).select(held.name("held")).distinct()
        never = set(values) - set(fetch(seen, self.origin)["held"].to_pylist())
        if never:
            warnings.warn(
                f"{self.origin}, column {name!r} never holds "
                f"{', '.join(map(repr, sorted(never)))}, which {argument} names. It holds "
                f"{', '.join(map(repr, self._values(name)))}.",
                AssumptionWarning,
                stacklevel=4,
            )
        return held.isin(values).fill_null(False)

    def _values(self, name: str) -> list[Any]:
        """Return some of the values that a column holds, in their order."""
        values = self.rows.select(name).distinct().order_by(name).limit(SHOWN_VALUES)
        found = fetch(values, self.origin)[name].to_pylist()
        return [value for value in found if value is not None]


def listed(names: Flag) -> tuple[str, ...]:
    """Return one name or several as several; of a flag, the columns that it is made of."""
    return (names,) if isinstance(names, str) else tuple(names)
