"""States as numbers, for estimators: one column for each number, or one column of lists."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np

from causal_shaping.data.space import NEXT
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.raw import NamedColumn, RawLogs


def number_states(
    raw: RawLogs,
    states: Mapping[str, NamedColumn],
    next_states: Mapping[str, NamedColumn],
    shape: Sequence[int] | None,
) -> tuple[dict[str, ibis.Column], tuple[int, ...]]:
    """Return states as numbers by their names in `LogTable.rows`, and the shape of an observation.

    Lists have two columns more, small enough to be put in order: `fits_s0` says whether a list is
    sound, and `hash_s0` tells lists apart; so for `n0`.
    """
    both = {**states, **next_states}
    columns = {key: _number(raw, column, name) for key, (name, column) in both.items()}
    size = _shape(raw, both, columns, shape)
    for key in [key for key in ("s0", "n0") if key in columns and nesting(columns[key])[0]]:
        column = columns[key]
        fits = _fits(column, list_shape(column, size)).fill_null(False)
        if key == "n0":  # a next state may be missing
            fits = fits | both[key][1].isnull()
        columns[f"fits_{key}"] = fits
        columns[f"hash_{key}"] = ibis.ifelse(column.isnull(), ibis.null("int64"), column.hash())
    return columns, size


def masks(raw: RawLogs, mask: str | None) -> dict[str, ibis.Column]:
    """Return the columns that say which actions are admissible: lists of true and false."""
    if mask is None:
        return {}
    names = {"mask": mask}
    if NEXT + mask in raw.rows.columns:
        names["next_mask"] = NEXT + mask
    found = {}
    for key, name in names.items():
        column = raw.column(name, "mask")
        depth, entry = nesting(column)
        if depth != 1 or not (entry.is_boolean() or entry.is_integer()):
            raise DataError(
                f"{raw.origin}, column {name!r} holds {column.type()}; a mask must be a list of "
                "true and false, one for each action."
            )
        found[key] = column.cast("array<boolean>")
    return found


def _number(raw: RawLogs, column: ibis.Column, name: str) -> ibis.Column:
    """Return a number, or a list of them, with 32 bits; null where there is none.

    Lists of bytes (uint8), such as images, stay what they are.
    """
    depth, entry = nesting(column)

    def lists_of(kind: str) -> str:
        return "array<" * depth + kind + ">" * depth

    if entry.is_uint8() and depth:
        return column.try_cast(lists_of("uint8"))
    if entry.is_boolean() or entry.is_integer():
        return column.cast(lists_of("float32"))
    if entry.is_numeric():
        return column.cast(lists_of("float64")).try_cast(lists_of("float32"))
    raise DataError(
        f"{raw.origin}, column {name!r} holds {column.type()}; here a state must be made of "
        "numbers. Encode it before: one column of 0 and 1 for each category, or a number for what "
        "has an order."
    )


def _shape(
    raw: RawLogs,
    both: Mapping[str, NamedColumn],
    columns: Mapping[str, ibis.Column],
    given: Sequence[int] | None,
) -> tuple[int, ...]:
    """Return the shape of an observation: what is given, or what the first row shows."""
    states = {both[key][0]: column for key, column in columns.items() if key.startswith("s")}
    lists = [name for name, column in states.items() if nesting(column)[0]]
    if not lists:
        if given is not None:
            raise ArgumentError(
                f"{raw.origin}: shape is of a state in one column of lists; leave it out for "
                "numbers."
            )
        return (len(states),)
    (name, *_), others = lists, [repr(other) for other in states if other != lists[0]]
    if others:
        raise DataError(
            f"{raw.origin}, column {name!r} holds lists, which must be the whole state, but there "
            f"is {', '.join(others)} too. Put all numbers of the state into one list."
        )
    if "n0" in columns and nesting(columns["n0"]) != nesting(columns["s0"]):
        other, column = both["n0"]
        raise DataError(
            f"{raw.origin}: column {name!r} holds {both['s0'][1].type()}, but {other!r} holds "
            f"{column.type()}. A state and the next one must be of one type."
        )
    depth, _ = nesting(columns["s0"])
    if given is None:
        return _first_shape(raw, columns["s0"], name, depth)
    if not given or any(size < 1 for size in given):
        raise ArgumentError(
            f"shape is {tuple(given)}; pass sizes of at least 1, such as (84, 84, 3)."
        )
    if depth not in (1, len(given)):
        raise DataError(
            f"{raw.origin}, column {name!r} holds lists that are nested {depth} deep, not in "
            f"shape {tuple(given)}."
        )
    return tuple(int(size) for size in given)


def _first_shape(raw: RawLogs, column: ibis.Column, name: str, depth: int) -> tuple[int, ...]:
    """Return the shape of the first list of a column."""
    lists = raw.rows.select(first=column)
    first = fetch(lists.filter(lists["first"].notnull()).limit(1), raw.origin)["first"].to_pylist()
    if not first:
        why = "no list, or there are no rows"
    else:
        (entry,), why = first, "an empty list in its first row"
        shape: list[int] = []
        while entry and len(shape) < depth:
            shape.append(len(entry))
            entry = entry[0]
        if len(shape) == depth:
            return tuple(shape)
    raise DataError(
        f"{raw.origin}, column {name!r} has {why}: the shape of a state cannot be told."
    )


def nesting(column: ibis.Column) -> tuple[int, Any]:
    """Return how deep the lists of a column are nested, 0 for no lists, and their entries' type."""
    depth, entry = 0, column.type()
    while entry.is_array():
        depth, entry = depth + 1, entry.value_type
    return depth, entry


def list_shape(column: ibis.Column, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the lists that hold observations: that of observations, or flat."""
    if nesting(column)[0] == len(shape):
        return tuple(shape)
    return (math.prod(shape),)


def _fits(column: Any, shape: Sequence[int]) -> Any:
    """Return whether lists have a shape, without gaps, and all their numbers are finite."""
    whole = column.length() == shape[0]
    if len(shape) > 1:
        return whole & column.map(lambda part: _fits(part, shape[1:]).fill_null(False)).alls()
    whole = whole & (column.filter(lambda entry: entry.isnull()).length() == 0)
    if not column.type().value_type.is_floating():
        return whole
    return whole & is_finite(column.sums().cast("float64"))  # 32 bits never overflow in 64


def is_finite(number: ibis.Column) -> ibis.Column:
    """Return whether a number is finite, false where it is missing.

    `isinf` of Ibis 12 is never true on Spark; all engines order NaN above all numbers.
    """
    return (number.abs() <= sys.float_info.max).fill_null(False)


def fault(value: Any, shape: Sequence[int], at: tuple[int, ...] = ()) -> str | None:
    """Return what is wrong with the value of a column of lists; None for nothing."""
    place = f" at {list(at)}" if at else ""
    if value is None:
        return f"nothing{place}"
    if not shape:
        with np.errstate(over="ignore"):
            if np.isfinite(np.float32(value)):
                return None
        return f"{value}{place}"
    if len(value) != shape[0]:
        return f"{len(value)} instead of {shape[0]} entries{place}"
    faults = (fault(part, shape[1:], (*at, i)) for i, part in enumerate(value))
    return next((text for text in faults if text), None)
