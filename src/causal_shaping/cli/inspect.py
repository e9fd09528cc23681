"""`causal-shaping inspect`: what logs are worth."""

from __future__ import annotations

from typing import Annotated, Any

from causal_shaping._checks import check_probability
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import AsJson, Html, Png, SmallestCell, Table, check_files, option
from causal_shaping.cli._terminal import print_list, print_table, progress_bar, say_written


@takes_logs
def inspect(
    logs: LogArguments,
    level: Annotated[float, option("Probability of reporting any false contradiction.", "SHARE")] = 0.05,
    output: Table = None,
    png: Png = None,
    html: Html = None,
    smallest_cell: SmallestCell = None,
    as_json: AsJson = False,
) -> None:
    """Tell what logs cover, whether sources contradict each other, and what they can prove.

    The table of -o has a row per source and state.

    Example: causal-shaping inspect good.parquet bad.parquet trial=random.csv --html page.html
    """
    from causal_shaping.cli import _bridge

    check_files(output, png, html)
    check_probability("--level", level, "0.05")
    with progress_bar() as progress:
        tables = logs.open(progress)
        found = _bridge.inspect_logs(tables, level, smallest_cell, progress)
        if output is not None:
            _bridge.write_table(output, _bridge.frame_of(found))
        if png is not None:
            _bridge.draw(found, png)
        if html is not None:
            progress(0, 1, f"Writing {html}")
            _bridge.save_page(found, html)
    if as_json:
        print(_bridge.json_of(found))
        return
    print_inspection(found)
    say_written({"Table": output, "Figure": png, "Page": html})


def print_inspection(found: Any) -> None:
    """Print what was found in logs."""
    print_table(
        ("source", "episodes", "steps", "length", "terminated", "truncated", "return", "rewards"),
        [
            (
                item.source,
                f"{item.episodes:,}",
                f"{item.steps:,}",
                f"{item.mean_length:.1f} (most {item.longest})",
                f"{item.terminated:,}",
                f"{item.truncated:,}",
                f"{item.mean_return:.3g} ({item.lowest_return:.3g} to {item.highest_return:.3g})",
                f"{item.lowest_reward:.3g} to {item.highest_reward:.3g}",
            )
            for item in found.summaries
        ],
        title="Episodes",
    )
    print_table(
        ("source", "states acted in", "few visits", "untried actions", "most frequent action"),
        [
            (
                covered.source,
                f"{covered.states}",
                f"{len(covered.few)}",
                f"{len(covered.untried)}",
                f"{covered.action_share:.0%}",
            )
            for covered in found.coverage
        ],
        title="Coverage",
    )
    print_list(found.findings())
