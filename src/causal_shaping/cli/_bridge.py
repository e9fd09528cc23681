"""Calls to results that are about to get methods of their own: each function here will be one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from causal_shaping._progress import Progress
from causal_shaping.errors import ArgumentError


def inspect_logs(tables: Sequence[Any], level: float, smallest_cell: int | None, progress: Progress) -> Any:
    """`causal_shaping.inspect(tables, level=level, smallest_cell=smallest_cell, progress=progress)`."""
    from causal_shaping.diagnose.inspection import inspect_counts
    from causal_shaping.logs import count
    from causal_shaping.logs.summary import summarise

    if smallest_cell is not None:
        raise ArgumentError("Small cells cannot be hidden yet.")
    summaries = [summary for table in tables for summary in summarise(table)]
    progress(0, 1, "Counting")
    counts = count(list(tables))
    progress(0, 1, "Comparing sources")
    dropped = {table.origin: table.dropped for table in tables if table.dropped is not None}
    return inspect_counts(counts, summaries, level, dropped)


def named(progress: Progress, what: str) -> Any:
    """`progress`, once all callbacks are told what is being worked on."""
    return lambda done, total, *_: progress(done, total, what)


def known_bound(value_max: float | None) -> dict[str, Any]:
    """`value_max=value_max`."""
    return {} if value_max is None else {"value_max": value_max}


def json_of(result: Any) -> str:
    """`result.to_json()`."""
    return json.dumps(result.as_json(), indent=2, allow_nan=False)


def frame_of(result: Any) -> Any:
    """`result.to_pandas()`."""
    import pandas as pd

    if hasattr(result, "unseen"):  # an inspection: a row per source and state
        from causal_shaping.diagnose.diagnostics import actions_taken

        rows = []
        for i, source in enumerate(result.counts.sources):
            taken = actions_taken(result.counts, i)
            for s, label in enumerate(result.counts.space.states):
                rows.append({"source": source, **_label(result.counts.space, label), "visits": taken[s].sum()})
        return pd.DataFrame(rows)
    values = result.values if result.values.ndim == 2 else result.values[None]
    return pd.DataFrame(
        [
            {"step": h, **_label(result.space, label), "value": values[h, s]}
            for h in range(len(values))
            for s, label in enumerate(result.space.states)
        ]
    )


def _label(space: Any, label: Any) -> dict[str, Any]:
    return dict(zip(space.columns, label if isinstance(label, tuple) else (label,), strict=True))


def write_table(path: Path, table: Any) -> None:
    """`causal_shaping.io.files.write_table(path, table)`."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    from causal_shaping.io.files import replacing

    held = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)
    with replacing(path, (".csv", ".parquet")) as temporary:
        if temporary.suffix.lower() == ".csv":
            pc.write_csv(held, temporary)
        else:
            pq.write_table(held, temporary)


def draw(result: Any, png: Path, tables: Sequence[Any] = ()) -> None:
    """`save_picture(result.plot().figure, png)`."""
    from causal_shaping.plot.bounds import draw_values
    from causal_shaping.plot.inspection import draw_inspection
    from causal_shaping.plot.sensitivity import draw_sensitivity
    from causal_shaping.plot.worlds import save_picture

    if hasattr(result, "unseen"):
        figure = draw_inspection(result)
    elif hasattr(result, "breakdown"):
        figure = draw_sensitivity(result)
    else:
        figure = draw_values(result, [table.metadata for table in tables])
    save_picture(figure, png)


def save_page(result: Any, html: Path, **parts: Any) -> None:
    """`result.save_html(html, **parts)`."""
    result.save_html(html, **parts)


def draw_regret(found: Mapping[str, Any], png: Path) -> None:
    """Draw several `Seeds` into one figure."""
    from causal_shaping.plot.regret import draw_regret as draw_seeds
    from causal_shaping.plot.worlds import save_picture

    save_picture(draw_seeds(found), png)
