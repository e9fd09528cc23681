"""From a user's file or table to the one schema of logs.

- `open_logs`: find the columns and give them their meaning; the rows are not read yet.
- `read_logs`: the same, checked and read into memory.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ibis

from causal_shaping.data.logs import Logs
from causal_shaping.data.space import NEXT, Bins, Label, plain
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.io.convert import logs_table
from causal_shaping.logs._finding import ROW, RawLogs, Where, find
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.table import LogTable, fetch, look_at_rows

SHOWN_VALUES = 12
"""So many values of a column of text are shown, where flags are wanted."""


def read_logs(where: Where, source: str | None = None, *, skip_bad_episodes: bool = False, **columns: Any) -> Logs:
    """Read the logs of one source into memory, checked.

    Args:
        where: a Parquet or CSV file (.csv, .csv.gz, .csv.zst), several files that make up one log, a Minari data set
            ("minari:namespace/name-v0"), an Ibis or an Arrow table.
        source: the name of the logs' origin. By default what the file says, or the file's name.
        skip_bad_episodes: leave out whole episodes that hold a bad row instead of refusing the file.
        columns: what the file calls its columns, declared states and actions, bins: see `open_logs`.

    Examples:
        >>> logs = read_logs("ward.csv", source="ward-3", state=["age", "stage"], action="drug")  # doctest: +SKIP
    """
    return check_logs(open_logs(where, source, **columns), skip_bad_episodes=skip_bad_episodes).load()


def open_logs(
    where: Where,
    source: str | None = None,
    *,
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    next_state: str | Sequence[str] | None = None,
    episode: str = "episode",
    step: str = "step",
    first_step: int = 0,
    terminated: str = "terminated",
    truncated: str = "truncated",
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    bins: Mapping[str, Bins] | None = None,
    memory_limit: str | None = None,
) -> LogTable:
    """Find the columns of somebody's logs and give them their meaning; the rows are not read yet.

    What may be missing, and how the rows are read then:

    - next state: the state of the episode's following row. In the last row it is unknown.
    - terminated: every row that another one follows did not end the episode. The last row may have or may not, unless
      it is `truncated`; so its outcome is unknown. It still counts as an action taken, and is never read as an end.
    - truncated: no row is known to be cut by a time limit.

    Args:
        where: see `read_logs`.
        source: the name of the logs' origin. Where the file has a column `source` with several, the one to take.
        state: the column that holds the state, or several. A column of lists or structs counts as several.
        action: the column of the action taken.
        reward: the column of the reward.
        next_state: the column or columns of the state after the action; by default `next_` and the state's name,
            if there is such a column.
        episode: the column that tells episodes apart, integers or strings.
        step: the column that numbers the steps of an episode.
        first_step: the number of an episode's first step.
        terminated: the column that says whether the world ended the episode with this row.
        truncated: the column that says whether the episode was cut after this row.
        states: all state labels, in the order that tables shall have; by default read off the logs.
        actions: all actions, tried or not; by default read off the logs.
        bins: for a state column of real numbers, how to cut it.
        memory_limit: the most memory that the embedded engine may use, such as "2GB"; it spills to disk beyond.
    """
    found = find(where, memory_limit)
    origin = found.origin
    raw, named = _named(found, source)
    if bins:
        look_at_rows(raw)
    wanted = _listed(state) if state is not None else (found.space.columns if found.space else found.state)
    parts = _parts(raw, wanted, origin)
    held = found.space if found.space and found.space.columns == tuple(parts) else None
    for name in bins or ():
        if held and name in held.bins:
            raise ArgumentError(
                f"{origin}, column {name!r} was binned before the file was written: leave its bins out."
            )
    followers = _listed(next_state) if next_state is not None else tuple(NEXT + name for name in wanted)
    has_next = next_state is not None or any(name in raw.columns for name in followers)
    next_parts = _parts(raw, followers, origin) if has_next else {}
    if has_next and len(next_parts) != len(parts):
        raise DataError(f"{origin}: the state has {len(parts)} part(s), but the next state has {len(next_parts)}.")
    cuts = {name: _found(raw, parts, name, cut, origin) for name, cut in (bins or {}).items()}
    declared_states = _declared(states, held.states if held and not bins else None)
    declared_actions = _declared(actions, held.actions if held else None)
    kinds = _kinds(declared_states, len(parts)) if declared_states else _common(parts, next_parts)

    def labels(columns: Mapping[str, ibis.Column], prefix: str) -> dict[str, ibis.Column]:
        return {
            f"{prefix}{i}": _label(column, name, cuts.get(part), kinds[i], origin)
            for i, (part, (name, column)) in enumerate(zip(parts, columns.items(), strict=True))
        }

    columns = {
        "episode": _typed(_column(raw, episode, origin), origin, "integers or strings", "is_integer", "is_string"),
        "step": _typed(_column(raw, step, origin), origin, "integers", "is_integer").cast("int64") - first_step,
        **labels(parts, "s"),
        "action": _label(
            _column(raw, action, origin),
            action,
            None,
            _kinds(declared_actions, 1)[0] if declared_actions else None,
            origin,
        ),
        "reward": _typed(_column(raw, reward, origin), origin, "numbers", "is_numeric").cast("float64"),
        **(labels(next_parts, "n") if has_next else {}),
    }
    for flag, name in (("terminated", terminated), ("truncated", truncated)):
        if name in raw.columns or name != flag:
            columns[flag] = _flag(_column(raw, name, origin), origin)
    for i, column in enumerate(next_parts.values()):
        columns[f"lost_n{i}"] = column.notnull() & columns[f"n{i}"].isnull()
    if named is None:
        columns["source"] = raw["source"].cast("string")
    elif found.source is not None and "source" in raw.columns:
        columns["source_fits"] = raw["source"].cast("string") == found.source
    columns |= found.numbered(raw)
    names = {"episode": episode, "step": step, "action": action, "reward": reward}
    names |= {"terminated": terminated, "truncated": truncated}
    names |= {f"s{i}": name for i, name in enumerate(parts)}
    names |= {f"n{i}": name for i, name in enumerate(next_parts or [NEXT + name for name in parts])}
    return LogTable(
        rows=_completed(raw.select(**columns), len(parts)),
        origin=origin,
        names=names,
        source=named,
        columns=tuple(parts),
        bins=held.bins if held and not bins else cuts,
        declared_states=declared_states,
        declared_actions=declared_actions,
        terminal=held.terminal if held and not bins else (),
        metadata=found.metadata,
        checksum=found.checksum if (states, actions, bins, state) == (None,) * 4 else None,
    )


def table_of(logs: Logs) -> LogTable:
    """Return logs in memory as a table that can be counted."""
    space = logs.space
    names = {f"s{i}": name for i, name in enumerate(space.columns)}
    names |= {f"n{i}": name for i, name in enumerate(space.next_columns)}
    inside = {name: column for column, name in names.items()}
    table = logs_table(logs).drop_columns("source")
    return LogTable(
        rows=ibis.memtable(table.rename_columns([inside.get(name, name) for name in table.column_names])),
        origin=f"the logs of {logs.source}",
        names=names,
        source=logs.source,
        columns=space.columns,
        bins=space.bins,
        declared_states=space.states,
        declared_actions=space.actions,
        terminal=space.terminal,
        metadata=logs.metadata,
        sound=True,
    )


def _named(found: RawLogs, source: str | None) -> tuple[ibis.Table, str | None]:
    """Return the rows of the wanted source and its name; None as name for all that the column `source` holds."""
    rows = found.rows
    if found.source is not None:
        return rows, source or found.source
    if "source" not in rows.columns:
        if not (source or found.name):
            raise ArgumentError(f"{found.origin} does not say where its rows come from: pass source=.")
        return rows, source or found.name
    if source is None:
        return rows, None
    column = rows["source"].cast("string")
    wanted = rows.filter(column == source)
    if fetch(wanted.select("source").limit(1), found.origin).num_rows:
        return wanted, source
    names = fetch(rows.select(column.name("source")).distinct().limit(9), found.origin)["source"].to_pylist()
    if len(names) <= 1:
        return rows, source
    shown = ", ".join(map(str, names[:8]))
    raise ArgumentError(f"{found.origin} holds no rows of source {source!r}. Its sources are {shown}.")


# What the columns mean -----------------------------------------------------------------------------------------------


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _column(raw: ibis.Table, name: str, origin: str) -> ibis.Column:
    if name not in raw.columns:
        shown = [column for column in raw.columns if column != ROW]
        near = difflib.get_close_matches(str(name), shown, n=1)
        raise ArgumentError(
            f"{origin} has no column {name!r}.{f' Did you mean {near[0]!r}?' if near else ''} Its columns are "
            f"{', '.join(shown)}. Say which one it is, for example read_logs(..., state=['x', 'y'], action='a', "
            "reward='r', episode='id', step='t'); on the command line --state x,y --action a --reward r --episode id "
            "--step t."
        )
    return raw[name]


def _parts(raw: ibis.Table, names: Sequence[str], origin: str) -> dict[str, ibis.Column]:
    """Return the columns that make a state, by name; lists and structs are taken apart."""
    parts: dict[str, ibis.Column] = {}
    for name in names:
        column = _column(raw, name, origin)
        kind = column.type()
        if kind.is_struct():
            parts |= {f"{name}_{part}": column[part] for part in kind.names}
        elif kind.is_array():
            lengths = fetch(raw.aggregate(least=column.length().min(), most=column.length().max()), origin).to_pylist()[
                0
            ]
            if not lengths["least"] or lengths["least"] != lengths["most"]:
                raise DataError(
                    f"{origin}, column {name!r}: its lists have {lengths['least']} to {lengths['most']} entries; a "
                    "state needs the same number in every row."
                )
            parts |= {f"{name}_{i}": column[i] for i in range(lengths["least"])}
        else:
            parts[name] = column
    return parts


def _declared(given: Iterable[Any] | None, held: Sequence[Label] | None) -> Sequence[Label] | None:
    return held if given is None else [plain(label) for label in given]


def _common(parts: Mapping[str, ibis.Column], next_parts: Mapping[str, ibis.Column]) -> list[type | None]:
    """Return str for the parts that are strings in the state or in the next state: both are read as strings then."""
    kinds: list[type | None] = [str if column.type().is_string() else None for column in parts.values()]
    for i, column in enumerate(next_parts.values()):
        if column.type().is_string():
            kinds[i] = str
    return kinds


def _kinds(labels: Sequence[Label], width: int) -> list[type | None]:
    """Return whether each part of the declared labels is an int or a str."""
    first = labels[0] if isinstance(labels[0], tuple) else (labels[0],)
    if len(first) != width:
        raise ArgumentError(f"The declared label {labels[0]!r} has {len(first)} part(s), but the columns make {width}.")
    return [type(part) for part in first]


def _found(raw: ibis.Table, parts: Mapping[str, ibis.Column], name: str, cut: Bins, origin: str) -> Bins:
    """Return bins with edges, taken from the logs where they are quantiles."""
    if name not in parts:
        raise ArgumentError(f"{origin}: bins are given for {name!r}, which is not a state column ({', '.join(parts)}).")
    if cut.quantiles is None:
        return cut
    column = _typed(parts[name], origin, "numbers", "is_numeric").cast("float64")
    numbers = raw.select(column.name("number"), column.isnan().name("bad"))
    numbers = numbers.filter(~numbers.bad)
    shares = {f"q{i}": numbers.number.quantile(i / cut.quantiles) for i in range(1, cut.quantiles)}
    edges = fetch(numbers.aggregate(**shares), origin).to_pylist()[0].values()
    if None in edges:
        raise DataError(f"{origin}, column {name!r} holds no number to take quantiles of.")
    return Bins(edges=tuple(sorted(set(edges))))


def _typed(column: ibis.Column, origin: str, wanted: str, *kinds: str) -> ibis.Column:
    if not any(getattr(column.type(), kind)() for kind in kinds):
        raise DataError(f"{origin}, column {column.get_name()!r} holds {column.type()}; it must hold {wanted}.")
    return column


def _label(column: ibis.Column, name: str, cut: Bins | None, kind: type | None, origin: str) -> ibis.Column:
    """Return a part of a label: int64 or string; null where there is none."""
    held = column.type()
    if cut is not None:
        number = _typed(column, origin, "numbers", "is_numeric").cast("float64")
        above = [(number >= edge).cast("int64") for edge in cut.edges]
        total = above[0]
        for one in above[1:]:
            total = total + one
        return ibis.ifelse(number.isnan(), ibis.null("int64"), total)
    if held.is_boolean() or held.is_integer():
        return column.cast("string") if kind is str else column.cast("int64")
    if held.is_string():
        return column.try_cast("int64") if kind is int else column
    hint = (
        f"Cut it: bins={{{name!r}: Bins(quantiles=8)}}, or --bins {name}=8."
        if held.is_numeric()
        else "Turn it into one of those."
    )
    raise DataError(f"{origin}, column {name!r} holds {held}; a label must be an integer or a string. {hint}")


def _flag(column: ibis.Column, origin: str) -> ibis.Column:
    """Return a flag as a boolean, null where it is neither true nor false."""
    if column.type().is_boolean():
        return column
    if column.type().is_string():
        name = column.get_name()
        values = column.as_table().distinct().order_by(name).limit(SHOWN_VALUES)
        found = ", ".join(repr(value) for value in fetch(values, origin)[name].to_pylist() if value is not None)
        raise DataError(
            f"{origin}, column {name!r} holds string: {found}. Which of these end an episode? Make a column of true "
            f"and false of it, such as frame['ended'] = frame[{name!r}].isin([...]), and pass that one."
        )
    number = _typed(column, origin, "true and false, or 1 and 0", "is_integer")
    return ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))


def _completed(rows: ibis.Table, width: int) -> ibis.Table:
    """Return the rows with what may be missing: next state, terminated, truncated; see `open_logs`."""
    episode = ["source", "episode"] if "source" in rows.columns else ["episode"]
    window = ibis.window(group_by=episode, order_by="step")
    nexts = [f"n{i}" for i in range(width)]
    added: dict[str, Any] = {}
    if "n0" not in rows.columns:
        added |= {name: rows[f"s{i}"].lead().over(window) for i, name in enumerate(nexts)}
    elif "terminated" not in rows.columns:
        unknown = rows.step.lead().over(window).isnull()
        if "truncated" in rows.columns:
            unknown = unknown & ~rows.truncated
        added |= {name: ibis.ifelse(unknown, ibis.null(rows[name].type()), rows[name]) for name in nexts}
    for flag in ("terminated", "truncated"):
        if flag not in rows.columns:
            added[flag] = ibis.literal(False)
    return rows.mutate(**added) if added else rows
