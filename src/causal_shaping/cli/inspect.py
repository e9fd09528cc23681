"""`causal-shaping inspect`: what logs are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._checks import check_probability
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import (
    AsJson,
    Html,
    Png,
    SmallestCell,
    Table,
    check_files,
    check_smallest_cell,
    flag,
    option,
)
from causal_shaping.cli._terminal import SAVED, progress_bar, say_next, say_result
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.diagnose import Inspection


@takes_logs()
def inspect(
    logs: LogArguments,
    level: Annotated[
        float, option("Probability of any false contradiction; and of a false alarm about the past.", "SHARE")
    ] = 0.05,
    continuous: Annotated[
        bool, flag("--continuous", "States are numbers that cannot be listed: look at clusters of them.")
    ] = False,
    output: Table = None,
    png: Png = None,
    html: Html = None,
    smallest_cell: SmallestCell = None,
    as_json: AsJson = False,
) -> None:
    """Tell what logs cover, whether sources contradict each other, and what they can prove.

    The table of -o has a row per source and state, or cluster of states.

    Example: causal-shaping inspect good.parquet bad.parquet trial=random.csv --html page.html
    """
    from causal_shaping.diagnose import inspect as inspect_logs
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import replacing_together, write_table

    check_files(output, png, html, inputs=logs.files)
    check_probability("--level", level, "0.05")
    check_smallest_cell(smallest_cell)
    if continuous:
        refused = {"--png": png, "--html": html, "--smallest-cell": smallest_cell, "--bins": logs.bins or None}
        refused |= {"--missing": logs.columns.get("missing"), "--admissible": logs.admissible_file}
        _inspect_continuous(
            logs, level, output, as_json, [name for name, given in refused.items() if given is not None]
        )
        return
    with progress_bar() as progress:
        tables = logs.open(progress)
        admissible = logs.admissible(tables)
        declared: Any = {"admissible": admissible, "complete": logs.complete}
        found = inspect_logs(tables, level=level, progress=progress, **declared)
        if admissible is not None:
            admissible.check(found.counts.space)
        if smallest_cell is not None:
            found = found.without_small_cells(smallest_cell)
        with replacing_together():
            if output is not None:
                write_table(output, found.to_pandas())
            if png is not None:
                save_picture(found, png)
            if html is not None:
                progress(1, 1, f"Writing {html}")
                found.save_html(html)
    files = {"Table": output, "Figure": png, "Page": html}
    say_result(found, files, as_json, partial(_say_next, found, smallest_cell is not None))


def _say_next(found: Inspection, hides: bool) -> None:
    """Point to the next commands, with the longest episode and the largest reward, unless what is rare is hidden."""
    known, note = "--horizon H --reward-max R", ""
    if not hides:
        longest = max(item.longest for item in found.episodes)
        low = min(item.lowest_reward for item in found.episodes)
        high = max(item.highest_reward for item in found.episodes)
        known = f"--horizon {longest} --reward-max {high:g}"
        note = f"{high:g} is the largest reward in the logs: if a step can pay more, seen or not, give that."
        if low >= 0 and high > 0:
            note += " Larger rewards count as better: if they are costs, read them by --reward=-COLUMN."
    ceilings = f"ceilings LOGS... {known} --confidence 0.95 -o phi.parquet --counts counts.parquet"
    worth = f"worth LOGS... {known} --steps 20000"
    say_next({ceilings: "what they prove, and the counts for an agent", worth: SAVED}, note)


def _inspect_continuous(
    logs: LogArguments, level: float, output: Path | None, as_json: bool, refused: Sequence[str]
) -> None:
    """Tell what logs are worth whose states cannot be listed."""
    from causal_shaping.diagnose import inspect_continuous
    from causal_shaping.storage import write_table

    if refused:
        raise ArgumentError(f"{', '.join(refused)} cannot be combined with --continuous; leave it out.")
    with progress_bar() as progress:
        numbers = replace(logs, columns=logs.columns | {"numbers": True})
        found = inspect_continuous(numbers.open(progress), level=level, progress=progress)
        if output is not None:
            write_table(output, found.to_pandas())
    say_result(found, {"Table": output}, as_json)
