"""States as labels: integers, strings and bins of real numbers, with a label for missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis

from causal_shaping.data.space import Bins, Label, shortened
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs.constants import MISSING_NUMBER
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.raw import NamedColumn, RawLogs


def label_states(
    raw: RawLogs,
    states: Mapping[str, NamedColumn],
    next_states: Mapping[str, NamedColumn],
    cuts: Mapping[str, Bins],
    declared: Mapping[str, Any],
    missing: str | None,
) -> tuple[dict[str, ibis.Column], dict[int, int | str]]:
    """Return states and next states as labels, and the labels of missing values.

    Columns are named as in `LogTable.rows`, with two more that the row check reads: `taken_s0` says
    whether a value is the number that stands for missing ones, and `lost_n0` whether the value of a
    next state makes no label. The labels of missing values, if `missing` gives them one, are by the
    number of the part of a state.

    Args:
        raw: the log.
        states: the columns of a state, as s0, s1, ...
        next_states: those of a next state, as n0, n1, ..., if there are any.
        cuts: the bins of columns.
        declared: that of `LogTable`.
        missing: see `open_logs`.
    """
    kinds = _kinds(states, next_states, declared.get("states"))
    known = declared.get("missing", {})
    columns: dict[str, ibis.Column] = {}
    absent: dict[int, int | str] = {}
    for i, (part, kind) in enumerate(zip(states.values(), kinds, strict=True)):
        both = {f"s{i}": part}
        if next_states:
            both[f"n{i}"] = next_states[f"n{i}"]
        for key, (name, column) in both.items():
            label = columns[key] = label_of(raw, column, name, cuts.get(part[0]), kind)
            is_text = label.type().is_string()
            if missing is not None and not is_text and part[0] not in known:
                columns[f"taken_{key}"] = label == MISSING_NUMBER
            if key == f"n{i}":
                columns[f"lost_{key}"] = column.notnull() & label.isnull()
        if missing is not None:
            absent[i] = MISSING_NUMBER
            if columns[f"s{i}"].type().is_string():
                absent[i] = str(missing)
            columns[f"s{i}"] = columns[f"s{i}"].fill_null(absent[i])
    return columns, absent


def label_of(
    raw: RawLogs, column: ibis.Column, name: str, cut: Bins | None, kind: type | None
) -> ibis.Column:
    """Return a part of a label, int64 or string as `kind` says, null where there is none."""
    held = column.type()
    if cut is not None:
        number = raw.typed(column.name(name), "numbers", "numeric").cast("float64")
        return ibis.ifelse(number.isnan(), ibis.null("int64"), bin_of(number, cut))
    if held.is_boolean() or held.is_integer():
        if kind is str:
            return column.cast("string")
        return column.cast("int64")
    if held.is_string():
        if kind is int:
            return column.try_cast("int64")
        return column
    hint = "Turn it into one of those."
    if held.is_numeric():
        hint = (
            f"Cut it, bins={{{name!r}: Bins(quantiles=8)}} or --bins {name}=8; or make it integers "
            "if it is whole."
        )
    raise DataError(
        f"{raw.origin}, column {name!r} holds {held}; a label must be an integer or a string. "
        f"{hint}"
    )


def action_label(raw: RawLogs, name: str, actions: Sequence[Label] | None) -> ibis.Column:
    """Return the label of the action, which must be discrete."""
    column = raw.column(name, "action")
    kind = column.type()
    if kind.is_floating() or kind.is_decimal() or kind.is_array():
        raise DataError(f"{raw.origin}, column {name!r} holds {kind}. {_discrete_actions(name)}")
    (declared,) = _declared_kinds(actions, 1)
    return label_of(raw, column, name, None, declared)


def _kinds(
    states: Mapping[str, NamedColumn],
    next_states: Mapping[str, NamedColumn],
    declared: Sequence[Label] | None,
) -> list[type | None]:
    """Return the type of each part of a state: that of declared labels, or str.

    A part that is text in the state or in the next state is text in both.
    """
    if declared:
        return _declared_kinds(declared, len(states))
    pairs = zip(states.values(), next_states.values() or states.values(), strict=True)
    kinds: list[type | None] = [None] * len(states)
    for i, pair in enumerate(pairs):
        if any(column.type().is_string() for _, column in pair):
            kinds[i] = str
    return kinds


def _declared_kinds(labels: Sequence[Label] | None, width: int) -> list[type | None]:
    """Return whether each part of declared labels is an int or a str."""
    if not labels:
        return [None] * width
    first = labels[0]
    parts = first if isinstance(first, tuple) else (first,)
    if len(parts) != width:
        raise ArgumentError(
            f"The declared label {first!r} has {len(parts)} part(s), but the columns make {width}."
        )
    return [type(part) for part in parts]


def state_bins(
    raw: RawLogs, states: Mapping[str, NamedColumn], bins: Mapping[str, Bins], action: str
) -> dict[str, Bins]:
    """Return the bins of state columns with edges; quantiles are those of all rows."""
    columns = dict(states.values())
    found: dict[str, Bins] = {}
    for name, cut in bins.items():
        if name == action:
            raise ArgumentError(
                f"{raw.origin}: bins are given for the action {name!r}. {_discrete_actions(name)}"
            )
        if name not in columns:
            raise ArgumentError(
                f"{raw.origin}: bins are given for {name!r}, which is not a state column "
                f"({shortened(columns)})."
            )
        found[name] = cut
        if cut.quantiles is not None:
            found[name] = _quantiles(raw, columns[name], name, cut.quantiles)
    return found


def _quantiles(raw: RawLogs, column: ibis.Column, name: str, parts: int) -> Bins:
    """Return bins of equal mass."""
    number = raw.typed(column.name(name), "numbers", "numeric").cast("float64")
    numbers = raw.rows.select(number.name("number"), number.isnan().name("bad"))
    numbers = numbers.filter(~numbers.bad)
    shares = {f"q{i}": numbers.number.quantile(i / parts) for i in range(1, parts)}
    edges = fetch(numbers.aggregate(**shares), raw.origin).to_pylist()[0].values()
    if None in edges:
        raise DataError(f"{raw.origin}, column {name!r} holds no number to take quantiles of.")
    return Bins(edges=tuple(sorted(set(edges))))


def bin_of(number: ibis.Column, bins: Bins) -> ibis.Column:
    """Return the bin of each number: how many edges are at or below it."""
    return sum((number >= edge).cast("int32") for edge in bins.edges).cast("int64")


def _discrete_actions(name: str) -> str:
    """Return what to do about actions that are real numbers."""
    return (
        "Actions must be discrete. Cut them into bins, in a column of their own, such as "
        f"frame['bin'] = pandas.cut(frame[{name!r}], 5, labels=False), and name that column as "
        "the action: 'bin'."
    )
