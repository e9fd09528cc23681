"""`causal-shaping inspect`: what logs cover, and whether they contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._checks import check_probability
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import ListedLogs
from causal_shaping.cli._options import check_files, command, flag, option
from causal_shaping.cli._terminal import SAVED, exact, finish, next_commands, progress_bar
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.diagnose import Inspection


@command
def inspect(
    logs: ListedLogs,
    level: Annotated[float, option("SHARE")] = 0.05,
    continuous: Annotated[bool, flag("--continuous")] = False,
    output: shared.Table = None,
    png: shared.File = None,
    html: shared.File = None,
    smallest_cell: shared.SmallestCell = None,
    as_json: shared.AsJson = False,
) -> None:
    """Tell what logs cover, whether sources contradict each other, and what they can prove.

    The table of -o has a row for each source and state, or cluster of states.

    Example: causal-shaping inspect good.parquet bad.parquet trial=random.csv --html page.html

    Options:
        level: Probability of any false contradiction; and of a false alarm about the past.
        continuous: States are numbers that cannot be listed: look at clusters of them.
    """
    from causal_shaping.diagnose import inspect as inspect_lists, inspect_continuous
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import write_table

    check_files(table=output, png=png, html=html, inputs=logs.files)
    check_probability("--level", level, "0.05")
    next_steps = ""
    with progress_bar() as progress:
        if continuous:
            _refuse_options_of_lists(logs, png=png, html=html, smallest_cell=smallest_cell)
            tables = logs.open(progress, numbers=True)
            inspection: Any = inspect_continuous(tables, level=level, progress=progress)
        else:
            tables = logs.open(progress)
            declared = logs.declared(tables)
            inspection = inspect_lists(tables, level=level, progress=progress, **declared)
            if declared["admissible"] is not None:
                declared["admissible"].check(inspection.counts.space)
            if smallest_cell is not None:
                inspection = inspection.without_small_cells(smallest_cell)
            next_steps = _next_steps(inspection)
    outputs = [
        ("Table", output, lambda path: write_table(path, inspection.to_pandas())),
        ("Figure", png, lambda path: save_picture(inspection, path)),
        ("Page", html, lambda path: inspection.save_html(path)),
    ]
    finish(inspection, outputs, as_json, next_steps)


def _refuse_options_of_lists(logs: ListedLogs, **options: Any) -> None:
    """Refuse options that make no sense for states that cannot be listed."""
    options |= {"bins": logs.bins, "missing": logs.missing, "admissible": logs.admissible}
    names = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if names:
        listed = ", ".join(names)
        raise ArgumentError(f"{listed} cannot be combined with --continuous; leave it out.")


def _next_steps(inspection: Inspection) -> str:
    """Name the next commands, with the longest episode and the largest reward."""
    bounded, note = "--horizon H --reward-max R", ""
    if inspection.smallest_cell is None:  # otherwise a single episode stays hidden
        longest = max(item.longest for item in inspection.episodes)
        low = min(item.lowest_reward for item in inspection.episodes)
        high = max(item.highest_reward for item in inspection.episodes)
        largest = exact(high)
        bounded = f"--horizon {longest} --reward-max {largest}"
        note = f"{largest} is the largest reward in the logs: if a step can pay more, give that."
        if low >= 0 and high > 0:
            note += " More counts as better: if they are costs, read them by --reward=-COLUMN."
    ceilings = f"{bounded} --confidence 0.95 -o phi.parquet --counts counts.parquet"
    commands = {
        f"ceilings LOGS... {ceilings}": "what they prove, and the counts for an agent",
        f"worth LOGS... {bounded} --steps 20000": SAVED,
    }
    return next_commands(commands, note)
