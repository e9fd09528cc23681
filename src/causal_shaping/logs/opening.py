"""From a user's file or table to the one schema of logs.

- `open_logs`: find the columns and give them their meaning; the rows are not read yet.
- `read_logs`: the same, checked and read into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ibis

from causal_shaping._checks import check_integer, check_line, check_names
from causal_shaping.data.columns import logs_table
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import NEXT, Bins, plain
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.constants import FIRST_STEP_LIMIT
from causal_shaping.logs.engine import FILE, ROW, Engine
from causal_shaping.logs.finding import Where, engine_for, find
from causal_shaping.logs.labels import action_label, label_states, state_bins
from causal_shaping.logs.next_states import fill_labels, mark_known
from causal_shaping.logs.numbers import masks, number_states
from causal_shaping.logs.queries import fetch
from causal_shaping.logs.raw import Flag, NamedColumn, RawLogs, listed
from causal_shaping.logs.table import LogTable

OF_ACTIONS = ("actions", "missing", "reward_bins")
DECLARED = (*OF_ACTIONS, "states", "bins", "terminal", "complete", "admissible")
"""What a file of this package, or logs in memory, say of their space."""


def read_logs(
    where: Where, *, source: str | None = None, skip_bad_episodes: bool = False, **columns: Any
) -> Logs:
    """Read the logs of one source into memory, checked.

    Args:
        where: a Parquet or CSV file (.csv, .csv.gz, .csv.zst), several files that make up one log,
            a Minari data set ("minari:namespace/name-v0"), a data frame of pandas or Polars, an
            Arrow table, a DuckDB relation, or an Ibis table of any backend.
        source: the name of the logs' origin. By default what the file says, or the file's name.
        skip_bad_episodes: leave out every episode that holds a bad row instead of refusing the
            file.
        columns: what the file calls its columns, declared states and actions, bins: see
            `open_logs`.

    Examples:
        >>> logs = read_logs("ward.csv", source="ward-3", action="drug")  # doctest: +SKIP
    """
    check_names(columns, "read_logs", read_logs, open_logs)
    table = open_logs(where, source=source, **columns)
    return check_logs(table, skip_bad_episodes=skip_bad_episodes).read()


def open_logs(
    where: Where | RawLogs,
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
    - terminated: every row that another one follows did not end the episode. The last row may or
      may not have ended it, unless it is `truncated`; so its outcome is unknown. It still counts as
      an action taken, and is never read as an end.
    - truncated: no row is known to be cut by a time limit.

    Args:
        where: see `read_logs`.
        source: the name of the logs' origin. If the file has a column `source` with several, the
            one to take.
        state: the column that holds the state, or several. A column of lists or structs counts as
            several.
        action: the column of the action taken, integers or strings.
        reward: the column of the reward. A minus in front, as in "-cost", makes rewards of costs.
        next_state: the column or columns of the state after the action; by default `next_` and the
            state's name, if there is such a column.
        episode: the column that identifies the episode, integers or strings.
        step: the column that numbers the steps of an episode.
        first_step: the number of an episode's first step.
        terminated: the column that says whether the world ended the episode with this row, or
            several columns of which any may say so. Of a column that says more, the values that end
            an episode: `{"outcome": ["died", "cured"]}`.
        truncated: the same for an episode that was cut after this row.
        states: all state labels, in the order that tables shall have; by default read off the logs.
        actions: all actions, tried or not; by default read off the logs.
        bins: for a state column of real numbers, how to cut it.
        missing: the label of missing values in state columns, such as "unknown"; by default they
            are an error. In a column of integers or bins, whose labels are numbers, -1 takes its
            place. A next state of which every column is missing is the state of the episode's
            following row, and unknown if there is none.
        hidden: logged columns that are no part of the state, as if nobody had logged them. They are
            carried along for `confounding_of`, which measures what that amounts to. Parts of the
            state need not be named.
        numbers: keep states as the numbers that their columns hold, for `fit_ceilings`, instead of
            making labels of them. `states`, `bins` and `missing` are of labels, and cannot be given
            then. A next state may be missing if another row of the episode follows. A column of
            lists, nested or not, is the whole state then; lists of bytes (uint8) are images.
        shape: for numbers in flat lists, the shape of a state, such as (84, 84, 3).
        mask: for numbers, the column that says which actions are admissible: a list of true and
            false, one for each action in the order of `actions`. The same with `next_` in front, if
            there is such a column, is of the next state.
        partitions: columns that the folders of files name, as in `day=3/logs.parquet`; unless they
            are listed here, such names of folders mean nothing.
        memory_limit: the most memory that the embedded engine may use, such as "2GB"; beyond, it
            spills to a folder where Python makes temporary files, which TMPDIR chooses.
    """
    first_step = check_integer("first_step", first_step, -FIRST_STEP_LIMIT, FIRST_STEP_LIMIT)
    _check_kind(numbers, (states, bins, missing), (shape, mask))
    # The rows of one source, or of all.
    raw = where
    if not isinstance(raw, RawLogs):
        engine = engine_for([where], memory_limit)
        raw = find(where, engine, is_whole(numbers, state), listed(partitions))
    raw, name = _of_source(raw, source)
    # What a state is made of, and what is known of states and actions.
    now, following = _state_columns(raw, state, next_state, numbers)
    parts = tuple(part for part, _ in now.values())
    cuts = state_bins(raw, now, bins or {}, action)
    declared = _declared(raw, parts, states, actions, cuts)
    # The columns of a row beside its state.
    columns, names = _own_columns(raw, episode, step, first_step, reward, action)
    columns["action"] = action_label(raw, action, declared.get("actions"))
    flags = {"terminated": terminated, "truncated": truncated}
    columns |= _flags(raw, flags) | _places(raw, name)
    names |= {flag: ", ".join(listed(given)) for flag, given in flags.items()}
    carried = {part: f"h{i}" for i, part in enumerate(listed(hidden)) if part not in parts}
    columns |= _hidden(raw, carried, [*names.values(), *listed(terminated), *listed(truncated)])
    # Its state and next state.
    names |= {f"n{i}": NEXT + part for i, part in enumerate(parts)}
    for key, (part, column) in {**now, **following}.items():
        names[key], columns[f"raw_{key}"] = part, column
    if numbers:
        if shape is None:
            shape = raw.shapes.get(parts[0])
        made, size = number_states(raw, now, following, shape)
        rows = mark_known(raw.rows.select(**columns, **made, **masks(raw, mask)), len(parts))
        names |= {"mask": str(mask), "next_mask": f"{NEXT}{mask}"}
    else:
        size = ()
        made, absent = label_states(raw, now, following, cuts, declared, missing)
        rows = fill_labels(raw.rows.select(**columns, **made), len(parts), absent)
        if absent:
            declared["missing"] = {parts[i]: label for i, label in absent.items()}
    table = LogTable(rows, raw.origin, names, name, parts, declared, raw.metadata)
    return replace(table, header=raw.header, hidden=carried, shape=size)


def _check_kind(numbers: bool, of_labels: Sequence[Any], of_numbers: Sequence[Any]) -> None:
    """Refuse arguments about labels if states are numbers, and the other way round."""
    if numbers and any(given is not None for given in of_labels):
        raise ArgumentError(
            "states, bins and missing make labels of states; with numbers=True leave them out."
        )
    if not numbers and any(given is not None for given in of_numbers):
        raise ArgumentError("shape and mask are of states that are numbers: pass numbers=True.")


def table_of(logs: Logs, engine: Engine) -> LogTable:
    """Return logs in memory as a table that can be counted."""
    space = logs.space
    names = {f"s{i}": name for i, name in enumerate(space.columns)}
    names |= {f"n{i}": name for i, name in enumerate(space.next_columns)}
    own = {name: column for column, name in names.items()}
    table = logs_table(logs).drop_columns("source")
    return LogTable(
        rows=engine.table(
            table.rename_columns([own.get(name, name) for name in table.column_names])
        ),
        origin=f"the logs of {logs.source}",
        names=names,
        source=logs.source,
        columns=space.columns,
        declared={name: getattr(space, name) for name in DECLARED},
        metadata=logs.metadata,
        sound=True,
    )


def is_whole(numbers: bool, state: str | Sequence[str] | None) -> bool:
    """Return whether an observation of a Minari data set is read as one list."""
    return numbers and (state is None or listed(state) == ("state",))


def _of_source(raw: RawLogs, source: str | None) -> tuple[RawLogs, str | None]:
    """Return the logs of the wanted source and its name; no name if a column holds several."""
    check_line("The source", source or raw.source or raw.name)
    if raw.source is not None:
        return raw, source or raw.source
    if "source" not in raw.rows.columns:
        if not (source or raw.name):
            raise ArgumentError(
                f"{raw.origin} does not say where its rows come from. Name the source: "
                "open_logs(..., source='ward')."
            )
        return raw, source or raw.name
    if source is None:
        return raw, None
    column = raw.rows["source"].cast("string")
    wanted = raw.rows.filter(column == source)
    if fetch(wanted.select("source").limit(1), raw.origin).num_rows:
        return replace(raw, rows=wanted), source
    distinct = raw.rows.select(column.name("source")).distinct()
    names = fetch(distinct.limit(9), raw.origin)["source"].to_pylist()
    if len(names) <= 1:  # the user gives the only source another name
        return raw, source
    raise ArgumentError(
        f"{raw.origin} holds no rows of source {source!r}. Its sources are "
        f"{', '.join(map(str, names[:8]))}."
    )


def _state_columns(
    raw: RawLogs,
    state: str | Sequence[str] | None,
    next_state: str | Sequence[str] | None,
    numbers: bool,
) -> tuple[dict[str, NamedColumn], dict[str, NamedColumn]]:
    """Return the columns of states and next states, as s0, s1, ... and n0, n1, ..."""
    wanted = raw.state
    if state is not None:
        wanted = listed(state)
    elif raw.space is not None:
        wanted = raw.space.columns
    now = raw.state_columns("s", wanted, "state", numbers)
    followers = tuple(NEXT + name for name in wanted)
    if next_state is not None:
        followers = listed(next_state)
    elif not any(name in raw.rows.columns for name in followers):
        return now, {}
    following = raw.state_columns("n", followers, "next_state", numbers)
    if len(following) != len(now):
        raise DataError(
            f"{raw.origin}: the state has {len(now)} part(s), but the next state has "
            f"{len(following)}."
        )
    return now, following


def _declared(
    raw: RawLogs,
    parts: tuple[str, ...],
    states: Iterable[Any] | None,
    actions: Iterable[Any] | None,
    bins: Mapping[str, Bins],
) -> dict[str, Any]:
    """Return what is known of the space before rows are read: what the user says, then the file."""
    declared: dict[str, Any] = {"complete": False, "bins": bins}
    space = raw.space
    if space is not None and space.columns == parts:
        for name in bins:
            if name in space.bins:
                raise ArgumentError(
                    f"{raw.origin}, column {name!r} was binned before the file was written: leave "
                    "its bins out."
                )
        # Bins make other states of the columns than those of the file.
        kept = OF_ACTIONS if bins else DECLARED
        declared |= {name: getattr(space, name) for name in kept}
    if states is not None:
        declared |= {"states": [plain(label) for label in states], "complete": True}
    if actions is not None:
        declared["actions"] = [plain(label) for label in actions]
    if states is not None or actions is not None:
        declared.pop("admissible", None)
    return declared


def _own_columns(
    raw: RawLogs, episode: str, step: str, first_step: int, reward: str, action: str
) -> tuple[dict[str, ibis.Column], dict[str, str]]:
    """Return the columns of a row beside its states, and the user's names for them.

    Those with `raw_` in front are as they are in the log, the others as they are checked.
    """
    negated = reward.startswith("-") and reward not in raw.rows.columns
    reward = reward[negated:]
    names = {"episode": episode, "step": step, "action": action, "reward": reward}
    columns = {key: raw.column(name, key) for key, name in names.items()}
    columns |= {f"raw_{key}": column for key, column in columns.items()}
    columns["episode"] = raw.typed(columns["episode"], "integers or strings", "string", "integer")
    number = raw.typed(columns["step"], "integers", "integer")
    columns["step"] = number.cast("int64") - first_step
    earned = raw.typed(columns["reward"], "numbers", "numeric").cast("float64")
    columns["reward"] = 0.0 - earned if negated else earned  # 0 - x is never -0.0
    return columns, names


def _flags(raw: RawLogs, flags: Mapping[str, Flag]) -> dict[str, ibis.Column]:
    """Return the flags that the log has, and the columns that they are made of."""
    columns: dict[str, ibis.Column] = {}
    for flag, given in flags.items():
        if given != flag or flag in raw.rows.columns:
            columns[flag] = raw.flag(given, flag)
            if isinstance(given, str):
                columns[f"raw_{flag}"] = raw.rows[given]
    return columns


def _hidden(
    raw: RawLogs, carried: Mapping[str, str], taken: Iterable[str]
) -> dict[str, ibis.Column]:
    """Return the columns that are carried along; `taken` are columns with another meaning."""
    for name in sorted(carried.keys() & set(taken)):
        raise ArgumentError(
            f"hidden names {name!r}, which has another meaning in these logs. Only what was known "
            "before the action can have been hidden from the log."
        )
    return {key: raw.column(name, "hidden") for name, key in carried.items()}


def _places(raw: RawLogs, name: str | None) -> dict[str, ibis.Column]:
    """Return the columns that locate a row: its source, its number and its file."""
    rows = raw.rows
    places = {"row": ROW, "file": FILE}
    columns = {key: rows[place] for key, place in places.items() if place in rows.columns}
    if name is None:
        columns["source"] = rows["source"].cast("string")
    elif raw.source is not None and "source" in rows.columns:
        columns["source_fits"] = rows["source"].cast("string") == raw.source
    return columns
