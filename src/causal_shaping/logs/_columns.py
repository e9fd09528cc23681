"""What the columns of somebody's table mean: parts of a label, flags, bins."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ibis

from causal_shaping.data.space import Bins
from causal_shaping.errors import ArgumentError, AssumptionWarning, DataError
from causal_shaping.logs.table import fetch

SHOWN_VALUES = 12
"""So many values of a column of text are shown, where flags are wanted."""

MISSING_NUMBER = -1
"""The part of a label that stands for a missing value in a column of integers or of bins."""

Flag: TypeAlias = str | Sequence[str] | Mapping[str, Sequence[Any]]
"""A column, several columns of which any may be set, or the values of a column (or several) that set the flag."""


@dataclass(frozen=True)
class RawColumns:
    """The columns of a table as its owner calls them."""

    rows: ibis.Table
    origin: str  # what to call it in messages
    hidden: Sequence[str] = ()  # columns that we added

    def column(self, name: str, argument: str) -> ibis.Column:
        """Return a column; `argument` is the name of the argument that could name another one."""
        if name in self.rows.columns:
            return self.rows[name]
        shown = [column for column in self.rows.columns if column not in self.hidden]
        near = difflib.get_close_matches(str(name), shown, n=1)
        raise ArgumentError(
            f"{self.origin} has no column {name!r}.{f' Did you mean {near[0]!r}?' if near else ''} Its columns are "
            f"{', '.join(map(repr, shown))}. Name the right one with {argument}=."
        )

    def typed(self, column: ibis.Column, wanted: str, *kinds: str) -> ibis.Column:
        """Return a column that must be of one of some kinds: "integer", "numeric", "string"."""
        if not any(getattr(column.type(), f"is_{kind}")() for kind in kinds):
            name = column.get_name()
            raise DataError(f"{self.origin}, column {name!r} holds {column.type()}; it must hold {wanted}.")
        return column

    def parts(self, names: Sequence[str], argument: str, lists: bool = False) -> dict[str, ibis.Column]:
        """Return the columns that make a state, by name; structs become several, and lists unless they are kept."""
        parts: dict[str, ibis.Column] = {}
        for name in names:
            column = self.column(name, argument)
            kind = column.type()
            if kind.is_struct():
                parts |= {f"{name}_{part}": column[part] for part in kind.names}
            elif kind.is_array() and not lists:
                sizes = self.rows.aggregate(least=column.length().min(), most=column.length().max())
                ((least, most),) = (row.values() for row in fetch(sizes, self.origin).to_pylist())
                if not least or least != most:
                    raise DataError(
                        f"{self.origin}, column {name!r}: its lists have {least} to {most} entries; a state needs the "
                        "same number in every row."
                    )
                parts |= {f"{name}_{i}": column[i] for i in range(least)}
            else:
                parts[name] = column
        return parts

    def label(self, column: ibis.Column, name: str, cut: Bins | None, kind: type | None) -> ibis.Column:
        """Return a part of a label, int64 or string as `kind` says, null where there is none."""
        held = column.type()
        if cut is not None:
            number = self.typed(column, "numbers", "numeric").cast("float64")
            return ibis.ifelse(number.isnan(), ibis.null("int64"), bin_of(number, cut))
        if held.is_boolean() or held.is_integer():
            return column.cast("string") if kind is str else column.cast("int64")
        if held.is_string():
            return column.try_cast("int64") if kind is int else column
        hint = "Turn it into one of those."
        if held.is_numeric():
            hint = f"Cut it: bins={{{name!r}: Bins(quantiles=8)}}; or make it integers if it holds whole numbers."
        raise DataError(f"{self.origin}, column {name!r} holds {held}; a label must be an integer or a string. {hint}")

    def number(self, column: ibis.Column, name: str) -> ibis.Column:
        """Return a part of a state that is a number, with 32 bits; null where there is none."""
        held = column.type()
        if held.is_boolean() or held.is_integer():
            return column.cast("float32")
        if held.is_numeric():
            return column.cast("float64").try_cast("float32")
        raise DataError(
            f"{self.origin}, column {name!r} holds {held}; here a state must be made of numbers. Encode it before: one "
            "column of 0 and 1 for each category, or a number for what has an order."
        )

    def action(self, name: str, kind: type | None) -> ibis.Column:
        """Return the label of the action, which must be discrete."""
        column = self.column(name, "action")
        if column.type().is_floating() or column.type().is_decimal() or column.type().is_array():
            raise DataError(f"{self.origin}, column {name!r} holds {column.type()}. {discrete_actions(name)}")
        return self.label(column, name, None, kind)

    def edges(self, parts: Mapping[str, ibis.Column], name: str, cut: Bins, action: str) -> Bins:
        """Return bins with edges, taken from the logs where they are quantiles."""
        if name == action:
            raise ArgumentError(f"{self.origin}: bins are given for the action {name!r}. {discrete_actions(name)}")
        if name not in parts:
            raise ArgumentError(
                f"{self.origin}: bins are given for {name!r}, which is not a state column ({', '.join(parts)})."
            )
        if cut.quantiles is None:
            return cut
        column = self.typed(parts[name], "numbers", "numeric").cast("float64")
        numbers = self.rows.select(column.name("number"), column.isnan().name("bad"))
        numbers = numbers.filter(~numbers.bad)
        shares = {f"q{i}": numbers.number.quantile(i / cut.quantiles) for i in range(1, cut.quantiles)}
        edges = fetch(numbers.aggregate(**shares), self.origin).to_pylist()[0].values()
        if None in edges:
            raise DataError(f"{self.origin}, column {name!r} holds no number to take quantiles of.")
        return Bins(edges=tuple(sorted(set(edges))))

    def flag(self, flag: Flag, argument: str) -> ibis.Column:
        """Return a flag as a boolean, null where it is neither true nor false; see `Flag`."""
        if isinstance(flag, Mapping):
            found = [self._is_one_of(name, values, argument) for name, values in flag.items()]
        else:
            found = [self._truth(name, argument) for name in listed(flag)]
        if not found:
            raise ArgumentError(f"{argument} names no column.")
        return ibis.or_(*found)

    def _truth(self, name: str, argument: str) -> ibis.Column:
        column = self.column(name, argument)
        if column.type().is_boolean():
            return column
        if column.type().is_string():
            values = [repr(value) for value in self._values(column)]
            raise DataError(
                f"{self.origin}, column {name!r} holds text: {', '.join(values)}. Say which of these end an episode: "
                f"{argument}={{{name!r}: [{values[0] if values else '...'}]}}."
            )
        number = self.typed(column, "true and false, or 1 and 0", "integer")
        return ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))

    def _is_one_of(self, name: str, wanted: Sequence[Any], argument: str) -> ibis.Column:
        column = self.column(name, argument)
        if isinstance(wanted, str) or not wanted:
            raise ArgumentError(f"{argument}={{{name!r}: {wanted!r}}} must list values, as in {{{name!r}: ['died']}}.")
        text, texts = column.cast("string"), [str(value) for value in wanted]
        if column.type().is_boolean():
            texts = [value.lower() for value in texts]
        elif column.type().is_numeric():  # 1 is 1.0, as a column with gaps holds it
            try:
                texts = [str(float(value)) for value in wanted]
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"{argument}={{{name!r}: {wanted!r}}}, but {self.origin} holds numbers there."
                ) from None
            text = column.cast("float64").cast("string")
        seen = column.as_table().filter(text.isin(texts)).select(text.name("held")).distinct()
        never = set(texts) - set(fetch(seen, self.origin)["held"].to_pylist())
        if never:
            values = ", ".join(repr(value) for value in self._values(column))
            warnings.warn(
                f"{self.origin}, column {name!r} never holds {', '.join(map(repr, sorted(never)))}, which {argument} "
                f"names. It holds {values}.",
                AssumptionWarning,
                stacklevel=4,
            )
        return text.isin(texts).fill_null(False)

    def _values(self, column: ibis.Column) -> list[Any]:
        """Return some of the values that a column holds, in their order."""
        name = column.get_name()
        values = column.as_table().distinct().order_by(name).limit(SHOWN_VALUES)
        return [value for value in fetch(values, self.origin)[name].to_pylist() if value is not None]


def bin_of(number: ibis.Column, bins: Bins) -> ibis.Column:
    """Return the bin of each number: how many edges are at or below it."""
    return sum((number >= edge).cast("int64") for edge in bins.edges)


def listed(names: Flag) -> tuple[str, ...]:
    """Return one name or several as several; of a flag, the columns that it is made of."""
    return (names,) if isinstance(names, str) else tuple(names)


def discrete_actions(name: str) -> str:
    """Return what to do about actions that are real numbers."""
    return (
        "Actions must be discrete. Cut them into bins, in a column of their own, such as frame['bin'] = "
        f"pandas.cut(frame[{name!r}], 5, labels=False), and name that column: action='bin'."
    )
