"""From a user's file or table to the one schema of logs.

- `open_logs`: find the columns and give them their meaning; the rows are not read yet.
- `read_logs`: the same, checked and read into memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ibis

from causal_shaping._checks import check_integer, check_line, check_names
from causal_shaping.data.columns import logs_table
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import NEXT, Bins, Label, Space, plain
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs._columns import MISSING_NUMBER, Flag, RawColumns, fits, list_shape, listed, nesting
from causal_shaping.logs._engine import table_in_memory
from causal_shaping.logs._finding import RawLogs, Where, find
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.table import LogTable, fetch, look_at_rows

DECLARED = ("states", "actions", "bins", "terminal", "missing", "complete", "admissible")
"""What a file of ours, or logs in memory, say of their space; bins of rewards are a matter of counting."""


def read_logs(where: Where, *, source: str | None = None, skip_bad_episodes: bool = False, **columns: Any) -> Logs:
    """Read the logs of one source into memory, checked.

    Args:
        where: a Parquet or CSV file (.csv, .csv.gz, .csv.zst), several files that make up one log, a Minari data set
            ("minari:namespace/name-v0"), a data frame of pandas or Polars, an Arrow table, a DuckDB relation, or an
            Ibis table of any backend.
        source: the name of the logs' origin. By default what the file says, or the file's name.
        skip_bad_episodes: leave out every episode that holds a bad row instead of refusing the file.
        columns: what the file calls its columns, declared states and actions, bins: see `open_logs`.

    Examples:
        >>> logs = read_logs("ward.csv", source="ward-3", state=["age", "stage"], action="drug")  # doctest: +SKIP
    """
    check_names(columns, "read_logs", read_logs, open_logs)
    return check_logs(open_logs(where, source=source, **columns), skip_bad_episodes=skip_bad_episodes).read()


def open_logs(
    where: Where,
    *,
    source: str | None = None,
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    next_state: str | Sequence[str] | None = None,
    episode: str = "episode",
    step: str = "step",
    first_step: int = 0,
    terminated: Flag = "terminated",
    truncated: Flag = "truncated",
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    bins: Mapping[str, Bins] | None = None,
    missing: str | None = None,
    hidden: str | Sequence[str] = (),
    numbers: bool = False,
    shape: Sequence[int] | None = None,
    mask: str | None = None,
    partitions: str | Sequence[str] = (),
    memory_limit: str | None = None,
) -> LogTable:
    """Find the columns of somebody's logs and give them their meaning; the rows are not read yet.

    What may be missing, and how the rows are read then:

    - next state: the state of the episode's following row. In the last row it is unknown.
    - terminated: every row that another one follows did not end the episode. The last row may or may not have ended
      it, unless it is `truncated`; so its outcome is unknown. It still counts as an action taken, and is never read as
      an end.
    - truncated: no row is known to be cut by a time limit.

    Args:
        where: see `read_logs`.
        source: the name of the logs' origin. Where the file has a column `source` with several, the one to take.
        state: the column that holds the state, or several. A column of lists or structs counts as several.
        action: the column of the action taken, integers or strings.
        reward: the column of the reward. A minus in front, as in "-cost", makes rewards of costs.
        next_state: the column or columns of the state after the action; by default `next_` and the state's name,
            if there is such a column.
        episode: the column that identifies the episode, integers or strings.
        step: the column that numbers the steps of an episode.
        first_step: the number of an episode's first step.
        terminated: the column that says whether the world ended the episode with this row, or several columns of which
            any may say so. Of a column that says more, the values that end an episode:
            `{"outcome": ["died", "cured"]}`.
        truncated: the same for an episode that was cut after this row.
        states: all state labels, in the order that tables shall have; by default read off the logs.
        actions: all actions, tried or not; by default read off the logs.
        bins: for a state column of real numbers, how to cut it.
        missing: the label of missing values in state columns, such as "unknown"; by default they are an error. In a
            column of integers or bins, whose labels are numbers, -1 takes its place. A next state of which every
            column is missing is the state of the episode's following row, and unknown if there is none.
        hidden: logged columns that are no part of the state, as if nobody had logged them. They are carried along for
            `confounding_of`, which measures what that amounts to. Parts of the state need not be named.
        numbers: keep states as the numbers that their columns hold, for `fit_ceilings`, instead of making labels of
            them. `states`, `bins` and `missing` are of labels, and cannot be given then. A next state may be missing
            where another row of the episode follows. A column of lists, nested or not, is the whole state then; lists
            of bytes (uint8) are images.
        shape: for numbers in flat lists, the shape of a state, such as (84, 84, 3).
        mask: for numbers, the column that says which actions are admissible: a list of true and false, one for each
            action in the order of `actions`. The same with `next_` in front, if there is such a column, is of the
            next state.
        partitions: columns that the folders of files name, as in `day=3/logs.parquet`; unless they are listed here,
            such names of folders mean nothing.
        memory_limit: the most memory that the embedded engine may use, such as "2GB"; beyond, it spills to a folder
            where Python makes temporary files, which TMPDIR chooses.
    """
    first_step = check_integer("first_step", first_step, least=-(10**9), most=10**9)
    if numbers and (states, bins, missing) != (None,) * 3:
        raise ArgumentError("states, bins and missing make labels of states; with numbers=True leave them out.")
    if not numbers and (shape, mask) != (None, None):
        raise ArgumentError("shape and mask are of states that are numbers: pass numbers=True.")
    whole = numbers and (state is None or listed(state) == ("state",))
    found = find(where, memory_limit, whole, listed(partitions))
    origin = found.origin
    rows, named = _named(found, source)
    check_line("The source", named or "")
    raw = RawColumns(rows, origin, tuple(found.places.values()), found.written)
    if bins:
        look_at_rows(rows)
    wanted = listed(state) if state is not None else (found.space.columns if found.space else found.state)
    parts = raw.parts(wanted, "state", lists=numbers)
    held = found.space if found.space and found.space.columns == tuple(parts) else None
    for name in bins or ():
        if held and name in held.bins:
            raise ArgumentError(
                f"{origin}, column {name!r} was binned before the file was written: leave its bins out."
            )
    followers = listed(next_state) if next_state is not None else tuple(NEXT + name for name in wanted)
    has_next = next_state is not None or any(name in rows.columns for name in followers)
    next_parts = raw.parts(followers, "next_state", lists=numbers) if has_next else {}
    if has_next and len(next_parts) != len(parts):
        raise DataError(f"{origin}: the state has {len(parts)} part(s), but the next state has {len(next_parts)}.")
    cuts = {name: raw.edges(parts, name, cut, action) for name, cut in (bins or {}).items()}
    declared = _declared(held, states, actions, cuts)
    kinds = _kinds(declared["states"], len(parts)) if declared.get("states") else _common(parts, next_parts)
    (action_kind,) = _kinds(declared["actions"], 1) if declared.get("actions") else (None,)
    negated = reward.startswith("-") and reward not in rows.columns
    reward = reward.removeprefix("-") if negated else reward
    theirs = {  # our name: the user's name and column
        "episode": (episode, raw.typed(raw.column(episode, "episode"), "integers or strings", "string", "integer")),
        "step": (step, raw.typed(raw.column(step, "step"), "integers", "integer")),
        "action": (action, raw.column(action, "action")),
        "reward": (reward, raw.typed(raw.column(reward, "reward"), "numbers", "numeric")),
        **{f"s{i}": item for i, item in enumerate(parts.items())},
        **{f"n{i}": item for i, item in enumerate(next_parts.items())},
    }
    names = {f"n{i}": NEXT + name for i, name in enumerate(parts)} | {key: name for key, (name, _) in theirs.items()}
    columns = {key: column for key, (_, column) in theirs.items()}
    columns |= {f"raw_{key}": column for key, column in columns.items()}
    columns["step"] = columns["step"].cast("int64") - first_step
    columns["action"] = raw.action(action, action_kind)
    columns["reward"] = columns["reward"].cast("float64")
    if negated:
        columns["reward"] = 0.0 - columns["reward"]  # never -0.0
    absent: dict[str, int | str] = {}
    if numbers:
        columns |= _number_columns(raw, columns, names)
        shape = _shape(raw, columns, names, shape if shape is not None else found.shapes.get(names["s0"]))
        columns |= _list_columns(columns, shape)
        columns |= _masks(raw, mask)
        names |= {"mask": str(mask), "next_mask": f"{NEXT}{mask}"}
    else:
        known = declared.get("missing", {})
        columns |= _label_columns(raw, columns, names, list(zip(parts, kinds, strict=True)), cuts, missing, known)
        if missing is not None:
            for i, part in enumerate(parts):
                absent[part] = str(missing) if columns[f"s{i}"].type().is_string() else MISSING_NUMBER
                columns[f"s{i}"] = columns[f"s{i}"].fill_null(absent[part])
    for flag, given in (("terminated", terminated), ("truncated", truncated)):
        names[flag] = ", ".join(listed(given))
        if given != flag or flag in rows.columns:
            columns[flag] = raw.flag(given, flag)
            if isinstance(given, str):
                columns[f"raw_{flag}"] = rows[given]
    if named is None:
        columns["source"] = rows["source"].cast("string")
    elif found.source is not None and "source" in rows.columns:
        columns["source_fits"] = rows["source"].cast("string") == found.source
    columns |= {name: rows[column] for name, column in found.places.items()}
    carried = {name: f"h{i}" for i, name in enumerate(listed(hidden)) if name not in parts}
    taken = {action, reward, episode, step, *listed(terminated), *listed(truncated)}
    if outcome := sorted(taken & carried.keys()):
        raise ArgumentError(
            f"hidden names {outcome[0]!r}, which has another meaning in these logs. Only what was known before the "
            "action can have been hidden from the log."
        )
    columns |= {inside: raw.column(name, "hidden") for name, inside in carried.items()}
    logged = rows.select(**columns)
    logged = _completed_numbers(logged) if numbers else _completed(logged, list(absent.values()) or [None] * len(parts))
    return LogTable(
        rows=logged,
        origin=origin,
        names=names,
        source=named,
        columns=tuple(parts),
        declared=declared | ({"missing": absent} if absent else {}),
        reward_bins=held.reward_bins if held else None,
        metadata=found.metadata,
        header=found.header,
        hidden=carried,
        numbers=numbers,
        shape=tuple(shape or ()),
        files=found.files,
    )


def table_of(logs: Logs) -> LogTable:
    """Return logs in memory as a table that can be counted."""
    space = logs.space
    names = {f"s{i}": name for i, name in enumerate(space.columns)}
    names |= {f"n{i}": name for i, name in enumerate(space.next_columns)}
    inside = {name: column for column, name in names.items()}
    table = logs_table(logs).drop_columns("source")
    return LogTable(
        rows=table_in_memory(table.rename_columns([inside.get(name, name) for name in table.column_names])),
        origin=f"the logs of {logs.source}",
        names=names,
        source=logs.source,
        columns=space.columns,
        declared={name: getattr(space, name) for name in DECLARED},
        reward_bins=space.reward_bins,
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
            raise ArgumentError(
                f"{found.origin} does not say where its rows come from. Name the source: open_logs(..., source='ward')."
            )
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


def _declared(
    held: Space | None, states: Iterable[Any] | None, actions: Iterable[Any] | None, cuts: Mapping[str, Bins]
) -> dict[str, Any]:
    """Return what is known of the space before rows are read: what the user says, otherwise what the file says of it.

    `held` is the space of the file, `cuts` are bins that make other states of its columns.
    """
    declared: dict[str, Any] = {"complete": False}
    if held is not None:
        declared |= {name: getattr(held, name) for name in (("actions", "missing") if cuts else DECLARED)}
    if cuts or held is None:
        declared["bins"] = cuts
    if states is not None:
        declared |= {"states": [plain(label) for label in states], "complete": True}
    if actions is not None:
        declared["actions"] = [plain(label) for label in actions]
    if states is not None or actions is not None:
        declared.pop("admissible", None)
    return declared


def _common(parts: Mapping[str, ibis.Column], next_parts: Mapping[str, ibis.Column]) -> list[type | None]:
    """Return str for the parts that are strings in the state or in the next state: both are read as strings then."""
    pairs = zip(parts.values(), next_parts.values() or parts.values(), strict=True)
    return [str if any(column.type().is_string() for column in pair) else None for pair in pairs]


def _kinds(labels: Sequence[Label], width: int) -> list[type | None]:
    """Return whether each part of the declared labels is an int or a str."""
    first = labels[0] if isinstance(labels[0], tuple) else (labels[0],)
    if len(first) != width:
        raise ArgumentError(f"The declared label {labels[0]!r} has {len(first)} part(s), but the columns make {width}.")
    return [type(part) for part in first]


def _label_columns(
    raw: RawColumns,
    columns: Mapping[str, ibis.Column],
    names: Mapping[str, str],
    parts: Sequence[tuple[str, type | None]],
    cuts: Mapping[str, Bins],
    missing: str | None,
    known: Mapping[str, int | str],
) -> dict[str, ibis.Column]:
    """Return the parts of states and next states as labels, and what else is to be checked of them.

    `parts` are the names of the parts and their kinds, `known` those in which the file itself says what is missing.
    """
    made: dict[str, ibis.Column] = {}
    for i, (part, kind) in enumerate(parts):
        for key in (key for key in (f"s{i}", f"n{i}") if key in columns):
            made[key] = raw.label(columns[key], names[key], cuts.get(part), kind)
            if missing is not None and part not in known and not made[key].type().is_string():
                made[f"taken_{key}"] = made[key] == MISSING_NUMBER
        if f"n{i}" in columns:
            made[f"lost_n{i}"] = columns[f"raw_n{i}"].notnull() & made[f"n{i}"].isnull()
    return made


def _number_columns(
    raw: RawColumns, columns: Mapping[str, ibis.Column], names: Mapping[str, str]
) -> dict[str, ibis.Column]:
    """Return the parts of states and next states as numbers."""
    return {key: raw.number(column, names[key]) for key, column in columns.items() if re.fullmatch(r"[sn]\d+", key)}


def _shape(
    raw: RawColumns, columns: Mapping[str, ibis.Column], names: Mapping[str, str], given: Sequence[int] | None
) -> tuple[int, ...]:
    """Return the shape of an observation."""
    states = {names[key]: column for key, column in columns.items() if re.fullmatch(r"s\d+", key)}
    lists = [name for name, column in states.items() if nesting(column)[0]]
    if not lists:
        if given is not None:
            raise ArgumentError(f"{raw.origin}: shape is of a state in one column of lists; leave it out for numbers.")
        return (len(states),)
    if len(states) > 1:
        others = ", ".join(repr(name) for name in states if name != lists[0])
        raise DataError(
            f"{raw.origin}, column {lists[0]!r} holds lists, which must be the whole state, but there is {others} too. "
            "Put all numbers of the state into one list."
        )
    if "n0" in columns and nesting(columns["n0"]) != nesting(columns["s0"]):
        raise DataError(
            f"{raw.origin}: column {names['s0']!r} holds {columns['raw_s0'].type()}, but {names['n0']!r} holds "
            f"{columns['raw_n0'].type()}. A state and the next one must be of one type."
        )
    return raw.shape(columns["s0"], names["s0"], given)


def _list_columns(columns: Mapping[str, ibis.Column], shape: Sequence[int]) -> dict[str, ibis.Column]:
    """Return what is to be checked of columns of lists, small enough to be ordered: whether they fit, and a hash."""
    made: dict[str, ibis.Column] = {}
    for key in (key for key in ("s0", "n0") if key in columns and nesting(columns[key])[0]):
        column = columns[key]
        absent = columns[f"raw_{key}"].isnull() & ibis.literal(key == "n0")  # a next state may be missing
        made[f"fits_{key}"] = absent | fits(column, list_shape(column, shape)).fill_null(False)
        made[f"hash_{key}"] = ibis.ifelse(column.isnull(), ibis.null("int64"), column.hash())
    return made


def _masks(raw: RawColumns, mask: str | None) -> dict[str, ibis.Column]:
    """Return the columns that say which actions are admissible."""
    if mask is None:
        return {}
    made = {"mask": raw.truths(mask)}
    if NEXT + mask in raw.rows.columns:
        made["next_mask"] = raw.truths(NEXT + mask)
    return made


def _completed_numbers(rows: ibis.Table) -> ibis.Table:
    """Return rows whose states are numbers with what may be missing: terminated, truncated, and `next_known`.

    The next state of a row that another one follows is that one's state: nothing has to be filled in.
    """
    nexts = [rows[name].notnull() for name in rows.columns if re.fullmatch(r"n\d+", name)]
    known = ibis.and_(*nexts) if nexts else ibis.literal(False)
    if "terminated" not in rows.columns:  # the last row may have ended the episode, unless it was cut
        known = known & (rows.truncated if "truncated" in rows.columns else ibis.literal(False))
    flags = {flag: ibis.literal(False) for flag in ("terminated", "truncated") if flag not in rows.columns}
    return rows.mutate(next_known=known, **flags)


def _completed(rows: ibis.Table, absent: Sequence[int | str | None]) -> ibis.Table:
    """Return the rows with what may be missing: next state, terminated, truncated; see `open_logs`.

    `absent` is what stands for a missing value in each part of the state, None if nothing does.
    """
    episode = ["source", "episode"] if "source" in rows.columns else ["episode"]

    def following(name: str) -> ibis.Column:
        return rows[name].lead().over(ibis.window(group_by=episode, order_by="step"))

    if "n0" not in rows.columns:
        nexts = {f"n{i}": following(f"s{i}") for i in range(len(absent))}
    else:
        nexts = {f"n{i}": rows[f"n{i}"] for i in range(len(absent))}
        if absent[0] is not None:
            none = ibis.and_(*(column.isnull() for column in nexts.values()))
            nexts = {
                name: ibis.ifelse(none, following(f"s{i}"), column.fill_null(absent[i]))
                for i, (name, column) in enumerate(nexts.items())
            }
        if "terminated" not in rows.columns:
            unknown = following("step").isnull()
            if "truncated" in rows.columns:
                unknown = unknown & ~rows.truncated
            nexts = {name: ibis.ifelse(unknown, ibis.null(column.type()), column) for name, column in nexts.items()}
    flags = {flag: ibis.literal(False) for flag in ("terminated", "truncated") if flag not in rows.columns}
    return rows.mutate(**nexts, **flags)
