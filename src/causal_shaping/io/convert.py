"""Logs, counts and potentials to files and back: labels in the columns, everything else in the metadata."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import pyarrow as pa

from causal_shaping.data.counts import REWARDS, Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.io.by_state import columns_by_state, save_by_state
from causal_shaping.io.container import Contents, load, save
from causal_shaping.io.files import CSV, TABLES, check_target, write_table
from causal_shaping.io.labels import label_column, positions, row_positions

Kind = TypeVar("Kind", bound=Potential)


def save_logs(logs: Logs, path: str | os.PathLike[str]) -> None:
    """Write logs to a Parquet or CSV file that any tool can open.

    Columns: source, episode, step, those of the state (`space.columns`), action, reward, those of the next
    state (the same with `next_` in front, null where unknown), terminated, truncated. States and actions are
    written as their labels. In Parquet the metadata hold the space, where the logs come from (world, demonstrator,
    seed), and a checksum; see `container`. CSV (.csv, .csv.gz, .csv.zst) holds the rows alone.
    """
    if check_target(path, TABLES).name.lower().endswith(CSV):
        write_table(path, logs_table(logs), exact=True)
        return
    metadata = {"source": logs.source, "metadata": dict(logs.metadata)}
    save(path, "logs", logs_table(logs), metadata, space=logs.space)


def logs_table(logs: Logs) -> pa.Table:
    """Return logs as an Arrow table, states and actions by label."""
    return pa.table(logs.labelled(label_column))


def save_counts(counts: Counts, path: str | os.PathLike[str]) -> None:
    """Write counts to a Parquet file: a row per entry, sources, states and actions by label."""
    save(path, "counts", counts_columns(counts), counts_metadata(counts), space=counts.space)


def counts_columns(counts: Counts) -> dict[str, Any]:
    """Return the entries of counts by column, as files hold them."""
    return counts.labelled(label_column)


def counts_metadata(counts: Counts) -> dict[str, Any]:
    """Return what else a file of counts holds, beside the space."""
    return {"sources": dict.fromkeys(counts.sources, counts.discrete_rewards), "population": counts.population}


def load_counts(path: str | os.PathLike[str]) -> Counts:
    """Return the counts that `save_counts` wrote."""
    return load(path, "counts", counts_from)


def counts_from(contents: Contents) -> Counts:
    """Return the counts that a file holds, alone or as a part."""
    table, space, sources = contents.table, contents.space, contents.metadata["sources"]
    return Counts(
        space=space,
        sources=tuple(sources),
        source=positions(table, ["source"], {name: i for i, name in enumerate(sources)}, "source"),
        step=table["step"].to_numpy() if "step" in table.column_names else None,
        population=contents.metadata["population"],
        **row_positions(table, space, space.columns, space.next_columns),
        **{name: table[space.free_name(name)].to_numpy() for name in ("terminated", "n", *REWARDS)},
    )


def save_potential(potential: Potential, path: str | os.PathLike[str]) -> None:
    """Write a potential to a Parquet file: a row per (step and) state."""
    columns = {"potential": potential.values}
    save_by_state(path, "potential", potential.space, columns, potential.metadata)


def load_potential(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Return the potential that `save_potential` wrote."""

    def build(contents: Contents) -> Kind:
        return kind.restore(columns_by_state(contents)["potential"], contents.space, contents.metadata)

    return load(path, "potential", build)
