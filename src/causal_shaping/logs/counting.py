"""From logs to counts: one query for each engine that holds rows, and one `Counts` of all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeAlias

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from causal_shaping.data.columns import positions, row_positions
from causal_shaping.data.counts import MAX_REWARDS, REWARD_BINS, REWARDS, Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Admissible, Bins, Space, plain
from causal_shaping.errors import ArgumentError, DataError, UnknownLabelError
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.constants import SAMPLE_ROWS, TILES
from causal_shaping.logs.finding import Where, engine_for, find, is_table
from causal_shaping.logs.labels import bin_of
from causal_shaping.logs.opening import is_whole, open_logs, table_of
from causal_shaping.logs.queries import fetch_each
from causal_shaping.logs.raw import listed
from causal_shaping.logs.table import LogTable

Item: TypeAlias = Logs | LogTable | Where


def count(
    logs: Item | Iterable[Item],
    *,
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    step_indexed: bool = False,
    terminal: Iterable[Any] | None = None,
    complete: bool = False,
    admissible: Admissible | None = None,
    missing: str | None = None,
    partitions: str | Sequence[str] = (),
    max_rewards: int = MAX_REWARDS,
    reward_bins: Bins | None = None,
    check: bool = True,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
) -> Counts:
    """Count the outcomes in logs.

    There is an entry for each source, [step,] state, action, next state, whether the episode ended,
    and reward. Rewards of many values are cut into bins, which become part of the space. The rows
    stay where they are: files are streamed by DuckDB, which spills to disk; tables of another Ibis
    backend are counted by that backend.

    Args:
        logs: one or several of: `Logs`, what `open_logs` returned, and whatever `open_logs` takes.
            Each must hold sources that the others do not; parts of one source go together, as in
            `open_logs(["day1.csv", "day2.csv"], source="ward")`.
        states: all state labels, in the order that tables shall have; by default those that the
            logs declare or show. A list that is read off the logs is not taken to be complete:
            bounds then allow for states that no log holds.
        actions: all actions, tried or not; by default those that the logs declare or show.
        step_indexed: count each step of an episode on its own.
        terminal: the states that end every episode; by default those that the logs declare.
        complete: no other states exist than those that the logs declare or show.
        admissible: the actions that exist in each state, where not all do: a mapping
            {state: actions}, in which a state that is left out admits all; a function of state and
            action; a mask; or an environment. See `Space.restricted`.
        missing: for files and tables, the label of missing values in state columns; see
            `open_logs`.
        partitions: for files, columns that their folders name; see `open_logs`.
        max_rewards: if a log has more distinct rewards than this, all rewards are cut into bins.
        reward_bins: the bins of rewards, `Bins` by edges or by quantiles; by default 32 quantiles
            of all logs, where bins are needed. Counts that are to be added need the same edges:
            `reward_bins=counts.space.reward_bins`.
        check: look for bad rows first. It takes two to three times as long as counting; leave it
            out only for files that have been checked before.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        memory_limit: for files, the most memory that DuckDB may use, such as "2GB".

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 1000) for name in world.demonstrators])
        >>> counts.sources, counts.n.sum()
        (('good', 'bad', 'random'), np.float64(3000.0))
    """
    states, actions = _plain(states), _plain(actions)
    how: dict[str, Any] = {"missing": missing, "partitions": partitions}
    how |= {"states": states, "actions": actions, "memory_limit": memory_limit}
    tables = opened_logs(logs, **how)
    if check:
        tables = [check_logs(table, skip_bad_episodes=skip_bad_episodes) for table in tables]
    if not isinstance(reward_bins, Bins | None):
        raise ArgumentError(
            f"reward_bins is {reward_bins!r}; pass Bins(edges=...) or Bins(quantiles=...)."
        )
    declared = (table.declared.get("reward_bins") for table in tables)
    bins = reward_bins or next(filter(None, declared), None)
    if bins is None and _samples_many_rewards(tables, max_rewards):
        bins = Bins(quantiles=REWARD_BINS)
    if bins is not None:
        bins = reward_edges(tables, bins)
    queries = [_outcomes(table, step_indexed, bins) for table in tables]
    outcomes = fetch_each(queries, [table.origin for table in tables])
    counts = _counts(tables, outcomes, bins)
    # Rewards that took few values at first may take many later.
    if bins is None and any(_distinct(rows) > max_rewards for rows in outcomes):
        counts = counts.with_reward_bins(reward_edges(tables, Bins(quantiles=REWARD_BINS)))
    nothing = all(given is None for given in (states, actions, terminal, admissible))
    if nothing and complete <= counts.space.complete:
        return counts
    space = counts.space.declared(states, actions, admissible, terminal=terminal, complete=complete)
    return counts.to_space(space)


def _plain(labels: Iterable[Any] | None) -> list[Any] | None:
    """Return labels in plain Python."""
    if labels is None:
        return None
    return [plain(label) for label in labels]


def opened_logs(
    logs: Item | Iterable[Item],
    *,
    memory_limit: str | None = None,
    partitions: str | Sequence[str] = (),
    **options: Any,
) -> list[LogTable]:
    """Return logs as tables, not read yet; `options` are those of `open_logs`.

    All files and tables in memory are opened by one engine, so that one query can count them.
    """
    single = isinstance(logs, (Logs, LogTable, str, os.PathLike)) or is_table(logs)
    items: list[Any] = []
    if single:
        items = [logs]
    elif isinstance(logs, Iterable) and not isinstance(logs, Mapping):
        items = list(logs)
    if not items:
        raise ArgumentError(
            f"There are no logs to count in {logs!r}. Give files, data frames, tables, Logs, or a "
            "list of these."
        )
    wheres = [item for item in items if not isinstance(item, (Logs, LogTable))]
    engine = engine_for(wheres, memory_limit)
    numbers = options.get("numbers", False)
    whole = is_whole(numbers, options.get("state"))
    tables = []
    for item in items:
        if isinstance(item, LogTable):
            tables.append(item)
        elif isinstance(item, Logs):
            tables.append(table_of(item, engine))
        else:
            found = find(item, engine, whole, listed(partitions))
            tables.append(open_logs(found, **options))
        if not numbers:
            tables[-1].check_labels()
    return tables


def keep_origin(origins: dict[str, str], source: str, table: LogTable) -> None:
    """Remember which log holds a source; refuse a second one."""
    if source in origins:
        raise ArgumentError(
            f"Two logs are called {source!r}: {origins[source]} and {table.origin}. Give each a "
            "name of its own with source=, or open them together if they are parts of one source."
        )
    origins[source] = table.origin


def _outcomes(table: LogTable, step_indexed: bool, bins: Bins | None) -> ibis.Table:
    """Return the query that counts a log: group by the outcome, add up."""
    rows = table.rows
    key = [*table.states, "action", *table.next_states, "terminated"]
    key += ["source"] * (table.source is None) + ["step"] * step_indexed
    if bins is None:
        return rows.group_by([*key, "reward"]).aggregate(n=rows.count())
    rows = rows.mutate(reward_bin=bin_of(rows.reward, bins))
    return rows.group_by([*key, "reward_bin"]).aggregate(
        n=rows.count(),
        reward_sum=rows.reward.sum(),
        reward_min=rows.reward.min(),
        reward_max=rows.reward.max(),
    )


def _counts(tables: Sequence[LogTable], outcomes: Sequence[pa.Table], bins: Bins | None) -> Counts:
    """Return the outcomes of all logs as one `Counts`."""
    origins: dict[str, str] = {}
    spaces: list[Space] = []
    for table, rows in zip(tables, outcomes, strict=True):
        if rows.num_rows == 0:
            raise DataError(f"{table.origin} has no rows.")
        for name in table.sources_of(rows):
            keep_origin(origins, name, table)
        spaces.append(replace(table.space_of(rows), reward_bins=bins))
    # Labels of all logs become positions in one space, which begins with those of the first log.
    space, sources = reduce(Space.merge, spaces), tuple(origins)
    parts = [
        _positions(table, rows, own, space, sources)
        for table, rows, own in zip(tables, outcomes, spaces, strict=True)
    ]
    columns: dict[str, Any] = {"step": None}
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Counts.combined(space, sources, columns)


def _positions(
    table: LogTable, rows: pa.Table, own: Space, space: Space, sources: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    """Return the outcomes of one log as columns of `Counts`; `own` is the space of this log."""
    try:
        columns = row_positions(rows, own, table.states, table.next_states)
    except UnknownLabelError as error:
        row = table.row_of(dict(zip(error.columns, error.parts, strict=True)))
        raise DataError(
            f"{table.place(row, *error.columns)}: {error}. Declare it, or correct the logs."
        ) from error
    states, actions = space.positions(own)
    columns["state"] = states[columns["state"]]
    columns["action"] = actions[columns["action"]]
    columns["next_state"] = np.append(states, UNKNOWN)[columns["next_state"]]  # -1 is the last
    known = {name: i for i, name in enumerate(sources)}
    if table.source is None:
        columns["source"] = positions(rows, ["source"], known, "source")
    else:
        columns["source"] = np.full(rows.num_rows, known[table.source])
    numbers = ("step", "terminated", "n", *REWARDS)
    columns |= {name: rows[name].to_numpy() for name in numbers if name in rows.column_names}
    if "reward" in rows.column_names:
        columns |= dict.fromkeys(REWARDS, rows["reward"].to_numpy())
    return columns


def _distinct(rows: pa.Table) -> int:
    """Return how many rewards outcomes have."""
    return len(np.unique(rows["reward"].to_numpy()))


def _samples_many_rewards(tables: Sequence[LogTable], max_rewards: int) -> bool:
    """Return whether the first rows of a log hold more distinct rewards than this."""
    samples = [
        table.rows.select("reward").limit(SAMPLE_ROWS).distinct().limit(max_rewards + 1)
        for table in tables
    ]
    found = fetch_each(samples, [table.origin for table in tables])
    return any(rows.num_rows > max_rewards for rows in found)


def reward_edges(tables: Sequence[LogTable], bins: Bins) -> Bins:
    """Return the bins of rewards with edges: quantiles are those of the rewards of all logs."""
    if bins.quantiles is None:
        return bins
    # Each engine cuts its rows into groups of equal size, by reward.
    queries = []
    for table in tables:
        reward = table.rows.select("reward")
        group = ibis.ntile(TILES * bins.quantiles).over(order_by=reward.reward)
        ranked = reward.mutate(tile=group).group_by("tile")
        queries.append(ranked.aggregate(low=lambda t: t.reward.min(), n=lambda t: t.count()))
    groups = pa.concat_tables(fetch_each(queries, [table.origin for table in tables]))
    # An edge is the smallest reward of the first group that a share of all rows lies below.
    low, n = groups["low"].to_numpy(), groups["n"].to_numpy()
    order = np.argsort(low, kind="stable")
    below = np.cumsum(n[order]) - n[order]
    first = np.searchsorted(below, np.arange(1, bins.quantiles) / bins.quantiles * n.sum())
    edges = np.unique(low[order][np.minimum(first, len(order) - 1)])
    return Bins(edges=tuple(edges))
