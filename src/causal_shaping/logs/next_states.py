"""Where the log does not say the next state: that of the episode's following row, or unknown."""

from __future__ import annotations

from collections.abc import Mapping

import ibis


def fill_labels(rows: ibis.Table, width: int, missing: Mapping[int, int | str]) -> ibis.Table:
    """Return rows whose states are labels with next states, terminated and truncated.

    `width` is the number of parts of a state, `missing` their labels of missing values; see
    `open_logs` for what may be missing.
    """
    episode = [name for name in ("source", "episode") if name in rows.columns]

    def following(name: str) -> ibis.Column:
        return rows[name].lead().over(ibis.window(group_by=episode, order_by="step"))

    # Without columns for it, the next state is the state of the following row.
    if "n0" not in rows.columns:
        nexts = {f"n{i}": following(f"s{i}") for i in range(width)}
        return _with_flags(rows.mutate(**nexts))
    nexts = {f"n{i}": rows[f"n{i}"] for i in range(width)}
    # Where missing values have a label, a next state of which everything is missing is none.
    if missing:
        none = ibis.and_(*(column.isnull() for column in nexts.values()))
        for i in range(width):
            filled = nexts[f"n{i}"].fill_null(missing[i])
            nexts[f"n{i}"] = ibis.ifelse(none, following(f"s{i}"), filled)
    # Without a column that says so, the last row may have ended the episode, unless it was cut.
    if "terminated" not in rows.columns:
        unknown = following("step").isnull()
        if "truncated" in rows.columns:
            unknown = unknown & ~rows.truncated
        for name, column in nexts.items():
            nexts[name] = ibis.ifelse(unknown, ibis.null(column.type()), column)
    return _with_flags(rows.mutate(**nexts))


def mark_known(rows: ibis.Table, width: int) -> ibis.Table:
    """Return rows whose states are numbers with `next_known`, terminated and truncated.

    `next_known` says whether a row's next state is known if the row is the last of its episode;
    that of any other row is the state of the following one.
    """
    nexts = [rows[f"n{i}"].notnull() for i in range(width) if f"n{i}" in rows.columns]
    known = ibis.and_(ibis.literal(bool(nexts)), *nexts)
    if "terminated" not in rows.columns:
        cut = ibis.literal(False)
        if "truncated" in rows.columns:
            cut = rows.truncated
        known = known & cut
    return _with_flags(rows.mutate(next_known=known))


def _with_flags(rows: ibis.Table) -> ibis.Table:
    """Return rows with both flags, false if the log has no column for one."""
    absent = [flag for flag in ("terminated", "truncated") if flag not in rows.columns]
    return rows.mutate(**dict.fromkeys(absent, ibis.literal(False)))
