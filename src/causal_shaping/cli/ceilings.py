"""`causal-shaping ceilings`: upper bounds of the optimal value, a potential."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._progress import Progress
from causal_shaping.cli import _options as shared, _terminal as terminal
from causal_shaping.cli._logs import ListedLogs
from causal_shaping.cli._options import BOUNDS, Bound, check_files, command, file_option
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.bounds import Ceilings
    from causal_shaping.data.counts import Counts
    from causal_shaping.logs.table import LogTable


@command
def ceilings(
    logs: ListedLogs,
    bound: Bound,
    output: shared.Table = None,
    counts_file: Annotated[Path | None, file_option("--counts")] = None,
    png: shared.File = None,
    html: shared.File = None,
    reward_min: shared.Number = None,
    smallest_cell: shared.SmallestCell = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
    stationary: Annotated[bool, shared.flag("--stationary", BOUNDS)] = False,
    value_max: shared.Number = None,
    hidden: shared.Hidden = None,
    method: Annotated[str, shared.option("joint|paper", panel=BOUNDS)] = "joint",
) -> None:
    """Bound the optimal value from above, whatever the demonstrators saw: a potential for shaping.

    Example: causal-shaping ceilings good.parquet trial=random.parquet --horizon 20
    --reward-max -0.1 --confounding trial=1 --confidence 0.95 -o phi.parquet

    Options:
        output: Write the ceilings: a potential (.parquet), or a table of them (.csv).
        counts_file: Write the counts, too, for `train --counts` (.parquet).
        reward_min: The least that a step can pay: lets shaping test the ceilings online; adds
            floors to a page (--html), and with --confidence sensitivity.
        stationary: The infinite-horizon bound instead of one for each step.
        method: The joint bound, or the one that the paper prints.
    """
    from causal_shaping.bounds import value_ceilings

    check_files(table=output, png=png, html=html, counts=counts_file, inputs=logs.files)
    for name, value in (("--smallest-cell", smallest_cell), ("--hidden", hidden)):
        if value is not None and html is None:
            raise ArgumentError(f"{name} is for a page: give --html page.html, too.")
    options: Any = {"method": method, "value_max": value_max, "reward_min": reward_min}
    options |= {"confounding": shared.read_gammas(confounding), "stationary": stationary}
    options |= bound.settings
    with terminal.progress_bar() as progress:
        counts, tables = logs.count(progress, bound.step_indexed, hidden)
        with terminal.spoken_warnings():
            _warn_of_episodes(tables, bound.horizon, stationary)
            limits = bound.horizon, bound.reward_max
            result = value_ceilings(counts, *limits, progress=progress, **options)
            parts: Any = {}
            if html is not None:
                parts = _page_parts(result, counts, bound, options, progress)
        if html is not None:
            parts |= _log_parts(logs, tables, hidden, smallest_cell, progress)
    outputs = [
        ("Ceilings", output, lambda path: _save(result, path)),
        ("Counts", counts_file, counts.save),
        ("Figure", png, lambda path: _draw(result, tables, path)),
        ("Page", html, lambda path: result.save_html(path, **parts)),
    ]
    next_steps = _next_steps(bound, counts_file)
    terminal.finish(result, outputs, as_json, next_steps)
    if output is not None and output.suffix.lower() != ".csv" and not as_json:
        terminal.say(f"In Python: env = cs.ShapeReward(env, {str(output)!r})")


def _save(result: Ceilings, path: Path) -> None:
    """Write ceilings as a potential, or as a table for other programs."""
    from causal_shaping.storage import write_table

    if path.suffix.lower() == ".csv":
        write_table(path, result.to_pandas())
    else:
        result.save(path)


def _draw(result: Ceilings, tables: list[LogTable], path: Path) -> None:
    """Draw ceilings, on the map of the world if the logs name one."""
    from causal_shaping.plot import save_picture
    from causal_shaping.plot.by_state import world_of

    world = world_of(result.space, [table.metadata for table in tables])
    save_picture(result, path, world=world)


def _page_parts(
    result: Ceilings, counts: Counts, bound: Bound, options: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Return floors and sensitivity for the page, if --reward-min is given."""
    from causal_shaping.bounds import sensitivity, value_floors

    reward_min, gammas = options["reward_min"], options["confounding"]
    if reward_min is None:
        return {}
    shared_by_both: Any = {"confounding": gammas, "stationary": result.stationary, **bound.settings}
    floors = value_floors(counts, bound.horizon, reward_min, **shared_by_both)
    if bound.confidence is None or result.stationary:
        return {"floors": floors}
    known: Any = {"value_max": options["value_max"], **bound.settings}
    if isinstance(gammas, dict):
        known["fixed"] = gammas
    limits = bound.horizon, bound.reward_max, reward_min
    analysis = sensitivity(counts, *limits, progress=progress, **known)
    return {"floors": floors, "sensitivity": analysis}


def _log_parts(
    logs: ListedLogs,
    tables: list[LogTable],
    hidden: str | None,
    smallest_cell: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """Return the inspection for the page, and the yardstick for confounding."""
    from causal_shaping.diagnose import confounding_of, inspect

    parts: dict[str, Any] = {}
    if hidden is not None:
        parts["hidden"] = confounding_of(tables, hidden.split(","), progress=progress)
    parts["inspection"] = inspect(tables, progress=progress, **logs.declared(tables))
    if smallest_cell is not None:
        parts["inspection"] = parts["inspection"].without_small_cells(smallest_cell)
    return parts


def _next_steps(bound: Bound, counts_file: Path | None) -> str:
    """Name the next commands: what the logs are worth, and learning from their counts."""
    name = shlex.quote(str(counts_file or "counts.parquet"))
    largest = f"--reward-max {terminal.exact(bound.reward_max)}"
    note = "WORLD is the id of your environment, or the name of a world of this package."
    if counts_file is None:
        note += f" To write {name}, add --counts {name} to this command."
    train = f"train WORLD --counts {name} -o runs/ {largest}"
    if bound.step_indexed:
        train += " --step-indexed"
    worth = f"worth LOGS... --horizon {bound.horizon} {largest} --steps N"
    commands = {worth: terminal.SAVED, train: "an agent that starts from these logs"}
    return terminal.next_commands(commands, note)


def _warn_of_episodes(tables: list[LogTable], horizon: int, stationary: bool) -> None:
    """Warn of logged episodes longer than the horizon, and of many with an unknown end."""
    from causal_shaping.diagnose.inspection import MANY_UNKNOWN
    from causal_shaping.logs.summary import summarise

    for item in (summary for table in tables for summary in summarise(table)):
        if item.longest > horizon and not stationary:
            terminal.warn(
                f"--horizon is {horizon}, but {item.source} holds episodes of up to {item.longest} "
                f"steps. The ceilings bound what {horizon} steps can earn; if your agent's "
                f"episodes last as long as the logged ones, pass --horizon {item.longest}."
            )
        if item.unknown > MANY_UNKNOWN * item.episodes:
            terminal.warn(
                f"{item.unknown:,} of {item.episodes:,} episodes of {item.source} stop with "
                "neither flag set: what followed their last step is unknown, and may have been "
                "anything."
            )
