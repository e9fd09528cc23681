"""From logs to counts: one Ibis expression, run by the engine that holds the rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import ibis
import numpy as np
import pyarrow as pa

from causal_shaping.data.columns import positions, row_positions
from causal_shaping.data.counts import MAX_REWARDS, REWARD_BINS, REWARDS, Counts, add_counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Admissible, Bins, plain
from causal_shaping.errors import ArgumentError, DataError, UnknownLabelError
from causal_shaping.logs._columns import bin_of
from causal_shaping.logs._finding import Where, is_table
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.opening import open_logs, table_of
from causal_shaping.logs.table import LogTable, fetch

SAMPLE_ROWS = 100_000
"""Rows that are looked at first, to see whether rewards take few values."""

TILES = 8
"""Into how many parts each bin of rewards is cut on each engine, before the parts of all logs are put together."""

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
    """Count the outcomes in logs: per source, [step,] state, action, next state, whether the episode ended, and reward.

    Rewards of many values are cut into bins, which become part of the space. The rows stay where they are: files are
    streamed by DuckDB, which spills to disk; tables of another Ibis backend are counted by that backend.

    Args:
        logs: one or several of: `Logs`, what `open_logs` returned, and whatever `open_logs` takes. Each must hold
            sources that the others do not; parts of one source go together, as in
            `open_logs(["day1.csv", "day2.csv"], source="ward")`.
        states: all state labels, in the order that tables shall have; by default those that the logs declare or show. A
            list that is read off the logs is not taken to be complete: bounds then allow for states that no log holds.
        actions: all actions, tried or not; by default those that the logs declare or show.
        step_indexed: count each step of an episode on its own.
        terminal: the states that end every episode; by default those that the logs declare.
        complete: no other states exist than those that the logs declare or show.
        admissible: the actions that exist in each state, where not all do: a mapping {state: actions}, in which a state
            that is left out admits all; a function of state and action; a mask; or an environment. See
            `Space.restricted`.
        missing: for files and tables, the label of missing values in state columns; see `open_logs`.
        partitions: for files, columns that their folders name; see `open_logs`.
        max_rewards: if a log has more distinct rewards than this, all rewards are cut into bins.
        reward_bins: the bins of rewards, `Bins` by edges or by quantiles; by default 32 quantiles of all logs, where
            bins are needed. Counts that are to be added need the same edges: `reward_bins=counts.space.reward_bins`.
        check: look for bad rows first. This needs the rows of an episode in order, and so takes longer than the
            counting; leave it out only for files that have been checked before.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        memory_limit: for files, the most memory that DuckDB may use, such as "2GB".

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 1000) for name in world.demonstrators])
        >>> counts.sources, counts.n.sum()
        (('good', 'bad', 'random'), np.float64(3000.0))
    """
    states = None if states is None else [plain(label) for label in states]
    actions = None if actions is None else [plain(label) for label in actions]
    how: dict[str, Any] = {"missing": missing, "partitions": partitions, "memory_limit": memory_limit}
    tables = opened_logs(logs, states=states, actions=actions, **how)
    if check:
        tables = [check_logs(table, skip_bad_episodes=skip_bad_episodes) for table in tables]
    if not isinstance(reward_bins, Bins | None):
        raise ArgumentError(f"reward_bins is {reward_bins!r}; pass Bins(edges=...) or Bins(quantiles=...).")
    bins = reward_bins or next((table.reward_bins for table in tables if table.reward_bins), None)
    if bins is None and any(_samples_many_rewards(table, max_rewards) for table in tables):
        bins = Bins(quantiles=REWARD_BINS)
    bins = bins and _reward_edges(tables, bins)
    parts = [count_table(table, step_indexed, bins) for table in tables]
    origins: dict[str, str] = {}
    for part, table in zip(parts, tables, strict=True):
        for name in part.sources:
            keep_origin(origins, name, table)
    counts = add_counts(parts)
    if bins is None and any(len(np.unique(part.reward_min)) > max_rewards for part in parts):
        counts = counts.with_reward_bins(_reward_edges(tables, Bins(quantiles=REWARD_BINS)))
    if all(given is None for given in (states, actions, terminal, admissible)) and complete <= counts.space.complete:
        return counts
    space = counts.space.declared(states, actions, admissible, terminal=terminal, complete=complete)
    return counts.to_space(space)


def keep_origin(origins: dict[str, str], source: str, table: LogTable) -> None:
    """Remember which log holds a source; refuse a second one."""
    if source in origins:
        raise ArgumentError(
            f"Two logs are called {source!r}: {origins[source]} and {table.origin}. Give each a name of its own with "
            "source=, or open them together if they are parts of one source."
        )
    origins[source] = table.origin


def opened_logs(logs: Item | Iterable[Item], **options: Any) -> list[LogTable]:
    """Return what `count` was given as tables, not read yet; `options` are those of `open_logs`."""
    single = isinstance(logs, (Logs, LogTable, str, os.PathLike)) or is_table(logs)
    items: list[Any] = [logs] if single else list(logs) if isinstance(logs, Iterable) else []
    if not items or isinstance(logs, Mapping):
        raise ArgumentError(
            f"There are no logs to count in {logs!r}. Give files, data frames, tables, Logs, or a list of these."
        )
    held = [table_of(item) if isinstance(item, Logs) else item for item in items]
    tables = [item if isinstance(item, LogTable) else open_logs(item, **options) for item in held]
    if not options.get("numbers"):
        for table in tables:
            table.check_labels()
    return tables


def count_table(table: LogTable, step_indexed: bool, bins: Bins | None) -> Counts:
    """Count one table, with rewards in bins or as they are."""
    table = replace(table, reward_bins=bins)
    counted = fetch(counting(table, step_indexed), table.origin)
    if counted.num_rows == 0:
        raise DataError(f"{table.origin} has no rows.")
    space = table.space_of(counted)
    names = [table.source] if table.source else counted["source"].unique().sort().to_pylist()
    try:
        columns = row_positions(counted, space, table.states, table.next_states)
    except UnknownLabelError as error:
        place = table.place(table.row_of(dict(zip(error.columns, error.parts, strict=True))), *error.columns)
        raise DataError(f"{place}: {error}. Declare it, or correct the logs.") from error
    columns |= {"source": np.zeros(counted.num_rows), "step": None}
    if table.source is None:
        columns["source"] = positions(counted, ["source"], {name: i for i, name in enumerate(names)}, "source")
    numbers = {"step", "terminated", "n", "reward", *REWARDS}.intersection(counted.column_names)
    columns |= {name: counted[name].to_numpy() for name in numbers}
    if bins is None:
        columns |= dict.fromkeys(REWARDS, columns["reward"])
    return Counts.combined(space, names, columns)


def counting(table: LogTable, step_indexed: bool) -> ibis.Table:
    """Return the one expression: group by the outcome, add up."""
    rows = table.rows
    key = [*table.states, "action", *table.next_states, "terminated"]
    if table.source is None:
        key.insert(0, "source")
    if step_indexed:
        key.append("step")
    if table.reward_bins is None:
        return rows.group_by([*key, "reward"]).aggregate(n=rows.count())
    rows = rows.mutate(reward_bin=bin_of(rows.reward, table.reward_bins))
    return rows.group_by([*key, "reward_bin"]).aggregate(
        n=rows.count(), reward_sum=rows.reward.sum(), reward_min=rows.reward.min(), reward_max=rows.reward.max()
    )


def _samples_many_rewards(table: LogTable, max_rewards: int) -> bool:
    """Whether the first rows hold more distinct rewards than this."""
    sample = table.rows.select("reward").limit(SAMPLE_ROWS).distinct().limit(max_rewards + 1)
    return bool(fetch(sample, table.origin).num_rows > max_rewards)


def _reward_edges(tables: Iterable[LogTable], bins: Bins) -> Bins:
    """Return bins with edges, where they are quantiles those of the rewards of all tables."""
    if bins.quantiles is None:
        return bins
    tiles = []
    for table in tables:  # each on its own engine: the smallest reward of each of many parts of equal size
        reward = table.rows.select("reward")
        ranked = reward.mutate(tile=ibis.ntile(TILES * bins.quantiles).over(order_by=reward.reward))
        tiles.append(fetch(ranked.group_by("tile").aggregate(low=ranked.reward.min(), n=ranked.count()), table.origin))
    merged = pa.concat_tables(tiles)
    low, n = merged["low"].to_numpy(), merged["n"].to_numpy()
    order = np.argsort(low, kind="stable")
    before = np.cumsum(n[order]) - n[order]  # how many rows come before each part
    first = np.searchsorted(before, np.arange(1, bins.quantiles) / bins.quantiles * n.sum())
    edges = np.unique(low[order][np.minimum(first, len(order) - 1)])
    return Bins(edges=tuple(edges))
