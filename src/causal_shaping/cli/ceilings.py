"""`causal-shaping ceilings`: upper bounds of the optimal value, a potential."""

from __future__ import annotations

import shlex
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._checks import check_choice
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import bound_option, check_files, file_option, flag, option, read_gammas
from causal_shaping.cli._terminal import SAVED, progress_bar, say, say_next, say_result, spoken_warnings
from causal_shaping.errors import ArgumentError, AssumptionWarning

if TYPE_CHECKING:
    from causal_shaping.logs.summary import Summary


@takes_logs()
def ceilings(
    logs: LogArguments,
    horizon: shared.Steps,
    reward_max: shared.RewardMax,
    output: Annotated[
        Path | None,
        file_option("Write the ceilings: a potential (.parquet), or a table of them (.csv).", "--output", "-o"),
    ] = None,
    counts_file: Annotated[
        Path | None, file_option("Write the counts, too, for `train --counts` (.parquet).", "--counts")
    ] = None,
    png: shared.Png = None,
    html: shared.Html = None,
    reward_min: Annotated[
        float | None,
        option(
            "The least that a step can pay: lets shaping test the ceilings online; adds floors to a page (--html), and "
            "with --confidence sensitivity.",
            "NUMBER",
            panel=shared.BOUNDS,
        ),
    ] = None,
    smallest_cell: shared.SmallestCell = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    confidence: shared.Confidence = None,
    discount: shared.Discount = 1.0,
    stationary: Annotated[
        bool, flag("--stationary", "The infinite-horizon bound instead of one per step.", shared.BOUNDS)
    ] = False,
    rarest: shared.Rarest = None,
    value_max: shared.ValueMax = None,
    step_indexed: shared.StepIndexed = False,
    hidden: shared.Hidden = None,
    method: Annotated[str, bound_option("The joint bound, or the one that the paper prints.", "joint|paper")] = "joint",
) -> None:
    """Bound the optimal value from above, whatever the demonstrators saw: a potential for reward shaping.

    Example: causal-shaping ceilings good.parquet trial=random.parquet --horizon 20 --reward-max -0.1
    --confounding trial=1 --confidence 0.95 -o phi.parquet
    """
    from causal_shaping.bounds import sensitivity, value_ceilings, value_floors
    from causal_shaping.bounds.masks import refuse_crossing
    from causal_shaping.diagnose import confounding_of, inspect as inspect_logs
    from causal_shaping.logs.summary import summarise
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import replacing_together, write_table

    check_choice("--support", support, shared.SUPPORTS)
    check_files(output, png, html, counts=counts_file, inputs=logs.files)
    for name, given in (("--smallest-cell", smallest_cell), ("--hidden", hidden)):
        if given is not None and html is None:
            raise ArgumentError(f"{name} is for a page: give --html page.html, too.")
    shared.check_smallest_cell(smallest_cell)
    gammas = read_gammas(confounding)
    options: Any = {"support": support, "confidence": confidence, "discount": discount, "rarest": rarest}
    bound: Any = {"confounding": gammas, "stationary": stationary, **options}
    with progress_bar() as progress:
        counts, tables = logs.with_hidden(hidden).count(progress, step_indexed)
        with spoken_warnings():
            _note_episodes([summary for table in tables for summary in summarise(table)], horizon, stationary)
            known: Any = {"method": method, "value_max": value_max, "reward_min": reward_min}
            found = value_ceilings(counts, horizon, reward_max, progress=progress, **known, **bound)
            floors = None if reward_min is None or html is None else value_floors(counts, horizon, reward_min, **bound)
            if floors is not None and method == "joint":
                refuse_crossing(found, floors)
        with replacing_together():
            if output is not None and output.suffix.lower() == ".csv":
                write_table(output, found.to_pandas())
            elif output is not None:
                found.save(output)
            if counts_file is not None:
                counts.save(counts_file)
            if png is not None:
                from causal_shaping.plot.by_state import world_of

                save_picture(found, png, world=world_of(found.space, [table.metadata for table in tables]))
            if html is not None:
                analysis = None
                if reward_min is not None and confidence is not None and not stationary:
                    known = {"fixed": gammas if isinstance(gammas, dict) else {}, "value_max": value_max, **options}
                    analysis = sensitivity(counts, horizon, reward_max, reward_min, progress=progress, **known)
                guide = None if hidden is None else confounding_of(tables, hidden.split(","), progress=progress)
                declared: Any = {"admissible": logs.admissible(tables), "complete": logs.complete}
                inspection = inspect_logs(tables, progress=progress, **declared)
                if smallest_cell is not None:
                    inspection = inspection.without_small_cells(smallest_cell)
                progress(1, 1, f"Writing {html}")
                parts: Any = {"floors": floors, "sensitivity": analysis, "hidden": guide, "inspection": inspection}
                found.save_html(html, **parts)
    files = {"Ceilings": output, "Counts": counts_file, "Figure": png, "Page": html}
    say_result(found, files, as_json, partial(_say_next, horizon, reward_max, counts_file, step_indexed))
    if output is not None and output.suffix.lower() != ".csv" and not as_json:
        say(f"In Python: env = cs.ShapeReward(env, {str(output)!r})")


def _say_next(horizon: int, reward_max: float, counts_file: Path | None, by_step: bool) -> None:
    """Point to the next commands: what the logs are worth, and learning from their counts."""
    name = "counts.parquet" if counts_file is None else shlex.quote(str(counts_file))
    train = f"train WORLD --counts {name} -o runs/ --reward-max {reward_max:g}"
    note = "WORLD is the id of your environment, or the name of a world of this package."
    if counts_file is None:
        note += f" To write {name}, add --counts {name} to this command."
    say_next(
        {
            f"worth LOGS... --horizon {horizon} --reward-max {reward_max:g} --steps N": SAVED,
            f"{train} --step-indexed" if by_step else train: "an agent that starts from these logs",
        },
        note,
    )


def _note_episodes(episodes: list[Summary], horizon: int, stationary: bool) -> None:
    """Warn where logged episodes are longer than the horizon, and where many do not tell how they ended."""
    from causal_shaping.diagnose.inspection import MANY_UNKNOWN

    for item in episodes:
        if item.longest > horizon and not stationary:
            warnings.warn(
                f"--horizon is {horizon}, but {item.source} holds episodes of up to {item.longest} steps. The ceilings "
                f"bound what {horizon} steps can earn; if your agent's episodes last as long as the logged ones, pass "
                f"--horizon {item.longest}.",
                AssumptionWarning,
                stacklevel=2,
            )
        if item.unknown > MANY_UNKNOWN * item.episodes:
            warnings.warn(
                f"{item.unknown:,} of {item.episodes:,} episodes of {item.source} stop with neither flag set: what "
                "followed their last step is unknown, and may have been anything.",
                AssumptionWarning,
                stacklevel=2,
            )
