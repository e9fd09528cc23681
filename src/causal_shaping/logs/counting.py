"""From logs to counts: one Ibis expression, run by the engine that holds the rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping.data.counts import MAX_REWARDS, REWARDS, Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Space, plain
from causal_shaping.errors import ArgumentError, DataError, UnknownLabelError
from causal_shaping.io.labels import positions, row_positions
from causal_shaping.logs._finding import Where, is_table
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.opening import open_logs, table_of
from causal_shaping.logs.table import LogTable, fetch, reading

SAMPLE_ROWS = 100_000
"""Rows that are looked at first, to see whether rewards take few values."""

DISTRIBUTED = ("pyspark",)
"""Engines whose results are written by the cluster as Parquet, not sent through the driver."""

Item: TypeAlias = Logs | LogTable | Where


def count(
    logs: Item | Iterable[Item],
    *,
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    step_indexed: bool = False,
    terminal: Iterable[Any] | None = None,
    missing: str | None = None,
    max_rewards: int = MAX_REWARDS,
    check: bool = True,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
    scratch: str | None = None,
) -> Counts:
    """Count the outcomes in logs: per source, [step,] state, action, next state and whether the episode ended.

    Where a source has few distinct rewards the reward is part of the outcome. The rows stay where they are: files are
    streamed by DuckDB, which spills to disk; tables of another Ibis backend are counted by that backend.

    Args:
        logs: one or several of: `Logs`, what `open_logs` returned, and whatever `open_logs` takes. Each must hold
            sources that the others do not; parts of one source go together, as in
            `open_logs(["day1.csv", "day2.csv"], source="ward")`.
        states: all state labels, in the order that tables shall have; by default those that the logs declare or show.
        actions: all actions, tried or not; by default those that the logs declare or show.
        step_indexed: count each step of an episode on its own.
        terminal: the states that end every episode; by default those that the logs declare.
        missing: for files and tables, the label of missing values in state columns; see `open_logs`.
        max_rewards: the most distinct rewards of a source that stay part of the outcome.
        check: look for bad rows first. This needs the rows of an episode in order, and so takes longer than the
            counting; leave it out only for files that have been checked before.
        skip_bad_episodes: leave out every episode that holds a bad row, with a warning.
        memory_limit: for files, the most memory that DuckDB may use, such as "2GB".
        scratch: a folder that a cluster can write to and this process can read; by default a temporary one.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 1000) for name in world.demonstrators])
        >>> counts.sources, counts.n.sum()
        (('good', 'bad', 'random'), np.float64(3000.0))
    """
    states = None if states is None else [plain(label) for label in states]
    actions = None if actions is None else [plain(label) for label in actions]
    parts: list[Counts] = []
    origins: dict[str, str] = {}
    for table in opened_logs(logs, states=states, actions=actions, missing=missing, memory_limit=memory_limit):
        if check:
            table = check_logs(table, skip_bad_episodes=skip_bad_episodes)
        part = count_table(table, step_indexed, max_rewards, scratch)
        for name in part.sources:
            if name in origins:
                raise ArgumentError(
                    f"Two logs are called {name!r}: {origins[name]} and {table.origin}. Give each a name of its own "
                    "with source=, or open them together if they are parts of one source."
                )
            origins[name] = table.origin
        parts.append(part)
    counts = parts[0].merge(*parts[1:], max_rewards=max_rewards)
    if states is None and actions is None and terminal is None:
        return counts
    space = counts.space
    states = space.states if states is None else states
    actions = space.actions if actions is None else actions
    ends = space.terminal.intersection(states) if terminal is None else [plain(label) for label in terminal]
    declared = Space(states, actions, space.columns, bins=space.bins, terminal=ends, missing=space.missing)
    return counts.to_space(declared)


def opened_logs(logs: Item | Iterable[Item], **options: Any) -> list[LogTable]:
    """Return what `count` was given as tables, not read yet; `options` are those of `open_logs`."""
    single = isinstance(logs, (Logs, LogTable, str, os.PathLike)) or is_table(logs)
    items: list[Any] = [logs] if single else list(logs) if isinstance(logs, Iterable) else []
    if not items or isinstance(logs, Mapping):
        raise ArgumentError(
            f"There are no logs to count in {logs!r}. Give files, data frames, tables, Logs, or a list of these."
        )
    held = [table_of(item) if isinstance(item, Logs) else item for item in items]
    return [item if isinstance(item, LogTable) else open_logs(item, **options) for item in held]


def count_table(table: LogTable, step_indexed: bool, max_rewards: int, scratch: str | None) -> Counts:
    """Count one table."""
    rows = table.rows
    sample = rows.select("reward").limit(SAMPLE_ROWS).distinct().limit(max_rewards + 1)
    few = fetch(sample, table.origin).num_rows <= max_rewards
    if table.source is None and not few:  # some sources may have few rewards all the same
        names = fetch(rows.select("source").distinct(), table.origin)["source"].to_pylist()
        each = [replace(table, rows=rows.filter(rows.source == name), source=name) for name in sorted(names)]
        first, *others = [count_table(one, step_indexed, max_rewards, scratch) for one in each]
        return first.merge(*others, max_rewards=max_rewards)
    counted = _run(counting(table, step_indexed, few), table.origin, scratch)
    if counted.num_rows == 0:
        raise DataError(f"{table.origin} has no rows.")
    space = table.space_of(counted)
    names = [table.source] if table.source else counted["source"].unique().sort().to_pylist()
    try:
        columns = row_positions(counted, space, table.states, table.next_states)
    except UnknownLabelError as error:
        raise DataError(f"{_first_row(table, error)}: {error}. Declare it, or correct the logs.") from error
    columns |= {"source": np.zeros(counted.num_rows), "step": None}
    if table.source is None:
        columns["source"] = positions(counted, ["source"], names.index, "source")
    numbers = {"step", "terminated", "n", "reward", *REWARDS}.intersection(counted.column_names)
    columns |= {name: counted[name].to_numpy() for name in numbers}
    if few:
        reward = columns["reward"]
        columns |= {"reward_sum": reward * columns["n"], "reward_min": reward, "reward_max": reward}
    return Counts.combined(space, names, [few] * len(names), columns, max_rewards=max_rewards)


def counting(table: LogTable, step_indexed: bool, few_rewards: bool) -> ibis.Table:
    """Return the one expression: group by the outcome, add up."""
    rows = table.rows
    key = [*table.states, "action", *table.next_states, "terminated"]
    if table.source is None:
        key.insert(0, "source")
    if step_indexed:
        key.append("step")
    if few_rewards:
        return rows.group_by([*key, "reward"]).aggregate(n=rows.count())
    return rows.group_by(key).aggregate(
        n=rows.count(), reward_sum=rows.reward.sum(), reward_min=rows.reward.min(), reward_max=rows.reward.max()
    )


def _run(expression: ibis.Table, origin: str, scratch: str | None) -> pa.Table:
    """Return the result of a query; that of a cluster by way of the Parquet files that it writes."""
    backend = expression.get_backend()
    if backend.name not in DISTRIBUTED:
        return fetch(expression, origin)
    with tempfile.TemporaryDirectory(dir=scratch) as folder, reading(origin):
        target = str(Path(folder) / "counts")
        backend.to_parquet(expression, target)
        return pq.read_table(target)


def _first_row(table: LogTable, error: UnknownLabelError) -> str:
    """Return where a label that is not declared stands first."""
    rows = table.rows
    for name, part in zip(error.columns, error.parts, strict=True):
        rows = rows.filter(rows[name] == part)
    order = ["row"] if "row" in rows.columns else ["episode", "step"]
    found = fetch(rows.order_by(order).limit(1), table.origin).to_pylist()[0]
    columns = ", ".join(repr(table.names.get(name, name)) for name in error.columns)
    return table.place(found, columns)
