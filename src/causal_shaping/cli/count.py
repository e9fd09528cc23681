"""`causal-shaping count`: counts that grow part by part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, read_reward_bins, takes_logs
from causal_shaping.cli._options import check_files, option
from causal_shaping.cli._terminal import progress_bar, say, spoken_warnings


@takes_logs
def count(
    logs: LogArguments,
    part: Annotated[str, option("The name of the part, such as a day; it is counted once.", "NAME")],
    output: Annotated[
        Path,
        option("The file of counts (.parquet) to add to; made if need be.", "FILE", "--output", "-o"),
    ],
    step_indexed: shared.StepIndexed = False,
    reward_bins: Annotated[
        str | None,
        option("Cut rewards of many values: 32 for quantiles of the first part, 0:1 for edges, 0: for one.", "CUTS"),
    ] = None,
    as_json: shared.AsJson = False,
) -> None:
    """Count logs into a file of counts, part by part, such as day by day; no part is counted twice.

    The file lists its parts. `train --counts` reads it, and in Python Counts.load. A part holds whole episodes.

    Example: causal-shaping count ward-3=2026-11-01.csv --part 2026-11-01 -o counts.parquet
    """
    from causal_shaping.data.counts import Counts
    from causal_shaping.logs import update_counts

    check_files(counts=output, inputs=logs.files)
    cuts = read_reward_bins(reward_bins)
    if logs.bins and output.exists():
        logs = replace(logs, bins={**logs.bins, **Counts.load(output).space.bins})
    with progress_bar() as progress, spoken_warnings():
        tables = logs.open(progress)
        admissible = logs.admissible(tables)
        options = {"step_indexed": step_indexed, "reward_bins": cuts, "complete": logs.complete}
        found = update_counts(output, {part: tables}, progress=progress, admissible=admissible, **options)
        if admissible is not None:
            admissible.check(found.counts.space)
    if as_json:
        print(found.to_json())
        return
    say(found)
