"""What the columns of somebody's table mean: parts of a label, flags, bins."""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import ibis
import numpy as np

from causal_shaping.data.space import Bins, shortened
from causal_shaping.errors import ArgumentError, AssumptionWarning, DataError
from causal_shaping.logs.table import fetch

SHOWN_COLUMNS = 24
"""So many names of columns are shown, where one is missing."""

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
    written: frozenset[str] = frozenset()  # whole numbers that are kept as they were written; see `Engine`

    def column(self, name: str, argument: str) -> ibis.Column:
        """Return a column; `argument` is the name of the argument that could name another one."""
        if name in self.rows.columns:
            return self.rows[name]
        shown = [column for column in self.rows.columns if column not in self.hidden]
        near = difflib.get_close_matches(str(name), shown, n=1)
        raise ArgumentError(
            f"{self.origin} has no column {name!r}.{f' Did you mean {near[0]!r}?' if near else ''} Its columns are "
            f"{shortened(map(repr, shown), SHOWN_COLUMNS)}. Name the right one in {argument}= or "
            f"--{argument.replace('_', '-')}."
        )

    def typed(self, column: ibis.Column, wanted: str, *kinds: str) -> ibis.Column:
        """Return a column that must be of one of some kinds: "integer", "numeric", "string"."""
        if "string" not in kinds and column.get_name() in self.written:
            return column.cast("int64").name(column.get_name())
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
            return column.cast("string" if kind is str else "int64")
        if held.is_string():
            return column.try_cast("int64") if kind is int else column
        hint = "Turn it into one of those."
        if held.is_numeric():
            hint = (
                f"Cut it, bins={{{name!r}: Bins(quantiles=8)}} or --bins {name}=8; or make it integers if it is whole."
            )
        raise DataError(f"{self.origin}, column {name!r} holds {held}; a label must be an integer or a string. {hint}")

    def number(self, column: ibis.Column, name: str) -> ibis.Column:
        """Return a part of a state that is a number, or a list of them, with 32 bits; null where there is none.

        Lists of bytes (uint8), such as images, stay what they are.
        """
        held, (depth, entry) = column.type(), nesting(column)
        if entry.is_uint8() and depth:
            return column.try_cast(_list_type("uint8", depth))
        if entry.is_boolean() or entry.is_integer():
            return column.cast(_list_type("float32", depth))
        if entry.is_numeric():
            return column.cast(_list_type("float64", depth)).try_cast(_list_type("float32", depth))
        raise DataError(
            f"{self.origin}, column {name!r} holds {held}; here a state must be made of numbers. Encode it before: one "
            "column of 0 and 1 for each category, or a number for what has an order."
        )

    def truths(self, name: str) -> ibis.Column:
        """Return a column of lists of true and false, one for each action."""
        column = self.column(name, "mask")
        depth, entry = nesting(column)
        if depth != 1 or not (entry.is_boolean() or entry.is_integer()):
            raise DataError(
                f"{self.origin}, column {name!r} holds {column.type()}; a mask must be a list of true and false, one "
                "for each action."
            )
        return column.cast("array<boolean>")

    def shape(self, column: ibis.Column, name: str, given: Sequence[int] | None) -> tuple[int, ...]:
        """Return the shape of the lists of a column: what is given, or what its first row shows."""
        depth, _ = nesting(column)
        if given is not None:
            if not given or any(size < 1 for size in given):
                raise ArgumentError(f"shape is {tuple(given)}; pass sizes of at least 1, such as (84, 84, 3).")
            if depth not in (1, len(given)):
                raise DataError(
                    f"{self.origin}, column {name!r} holds lists that are nested {depth} deep, not in shape "
                    f"{tuple(given)}."
                )
            return tuple(int(size) for size in given)
        first = fetch(self.rows.select(first=column).filter(lambda rows: rows.first.notnull()).limit(1), self.origin)
        entry, shape = first["first"][0].as_py() if len(first) else None, []
        for _ in range(depth):
            if not entry:
                held = "an empty list in its first row" if len(first) else "no list, or there are no rows"
                raise DataError(f"{self.origin}, column {name!r} has {held}: the shape of a state cannot be told.")
            shape.append(len(entry))
            entry = entry[0]
        return tuple(shape)

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
                f"{self.origin}: bins are given for {name!r}, which is not a state column ({shortened(parts)})."
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
                f"{argument}={{{name!r}: [{values[0] if values else '...'}]}} or --{argument} {name}=VALUE."
            )
        number = self.typed(column, "true and false, or 1 and 0", "integer")
        return ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))

    def _is_one_of(self, name: str, wanted: Sequence[Any], argument: str) -> ibis.Column:
        column = self.column(name, argument)
        if isinstance(wanted, str) or not wanted:
            raise ArgumentError(f"{argument}={{{name!r}: {wanted!r}}} must list values, as in {{{name!r}: ['died']}}.")
        held, values = column.cast("string"), list[Any](map(str, wanted))
        if column.type().is_boolean():
            values = [value.lower() for value in values]
        elif column.type().is_numeric():  # 1 is 1.0, as a column with gaps holds it
            try:
                values = [float(value) for value in wanted]
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"{argument}={{{name!r}: {wanted!r}}}, but {self.origin} holds numbers there."
                ) from None
            held = column.cast("float64")
        seen = column.as_table().filter(held.isin(values)).select(held.name("held")).distinct()
        never = set(values) - set(fetch(seen, self.origin)["held"].to_pylist())
        if never:
            others = ", ".join(repr(value) for value in self._values(column))
            warnings.warn(
                f"{self.origin}, column {name!r} never holds {', '.join(map(repr, sorted(never)))}, which {argument} "
                f"names. It holds {others}.",
                AssumptionWarning,
                stacklevel=4,
            )
        return held.isin(values).fill_null(False)

    def _values(self, column: ibis.Column) -> list[Any]:
        """Return some of the values that a column holds, in their order."""
        name = column.get_name()
        values = column.as_table().distinct().order_by(name).limit(SHOWN_VALUES)
        return [value for value in fetch(values, self.origin)[name].to_pylist() if value is not None]


def nesting(column: ibis.Column) -> tuple[int, Any]:
    """Return how deep the lists of a column are nested, 0 where it holds none, and the type of their entries."""
    depth, entry = 0, column.type()
    while entry.is_array():
        depth, entry = depth + 1, entry.value_type
    return depth, entry


def _list_type(entry: str, depth: int) -> str:
    return "array<" * depth + entry + ">" * depth


def list_shape(column: ibis.Column, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the lists of a column that holds observations of a shape: the same, or flat."""
    return tuple(shape) if nesting(column)[0] == len(shape) else (math.prod(shape),)


def fits(column: Any, shape: Sequence[int]) -> Any:
    """Return whether the lists of a column have a shape, with no gap, and all numbers in them are finite."""
    whole = column.length() == shape[0]
    if len(shape) > 1:
        return whole & column.map(lambda part: fits(part, shape[1:]).fill_null(False)).alls()
    whole = whole & (column.filter(lambda entry: entry.isnull()).length() == 0)
    if not column.type().value_type.is_floating():
        return whole
    return whole & is_finite(column.sums().cast("float64"))  # 32 bits never overflow in 64


def is_finite(number: ibis.Column) -> ibis.Column:
    """Return whether a number is finite, false where it is missing; `isinf` of Ibis 12 is never true on Spark."""
    return (number.abs() <= sys.float_info.max).fill_null(False)  # engines take NaN for larger than all numbers


def fault(value: Any, shape: Sequence[int], at: tuple[int, ...] = ()) -> str | None:
    """Return what is wrong with the value of a list column that does not fit, None for nothing."""
    place = f" at {list(at)}" if at else ""
    if value is None:
        return f"nothing{place}"
    if not shape:
        with np.errstate(over="ignore"):
            return None if np.isfinite(np.float32(value)) else f"{value}{place}"
    if len(value) != shape[0]:
        return f"{len(value)} instead of {shape[0]} entries{place}"
    faults = (fault(part, shape[1:], (*at, i)) for i, part in enumerate(value))
    return next((text for text in faults if text), None)


def bin_of(number: ibis.Column, bins: Bins) -> ibis.Column:
    """Return the bin of each number: how many edges are at or below it."""
    return sum((number >= edge).cast("int32") for edge in bins.edges).cast("int64")


def listed(names: Flag) -> tuple[str, ...]:
    """Return one name or several as several; of a flag, the columns that it is made of."""
    return (names,) if isinstance(names, str) else tuple(names)


def discrete_actions(name: str) -> str:
    """Return what to do about actions that are real numbers."""
    return (
        "Actions must be discrete. Cut them into bins, in a column of their own, such as frame['bin'] = "
        f"pandas.cut(frame[{name!r}], 5, labels=False), and name that column as the action: 'bin'."
    )
