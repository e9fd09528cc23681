"""`causal-shaping fit`: ceilings for states that cannot be listed, a potential."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from causal_shaping._checks import check_choice
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import bound_option, check_files, flag, option, read_gammas
from causal_shaping.cli._terminal import progress_bar, say, say_result, spoken_warnings
from causal_shaping.errors import ArgumentError, FileError

UNFINISHED = ".unfinished"
"""The folder inside the output that keeps what is done of an interrupted fit."""

OF_LISTS = ("admissible", "complete", "bins", "missing")
"""Options of other commands that only make sense for states that can be listed."""


@takes_logs(*OF_LISTS)
def fit(
    logs: LogArguments,
    output: Annotated[
        Path,
        option(
            "The folder to save the fit to. The same command goes on there after an interruption.",
            "FOLDER",
            "--output",
            "-o",
        ),
    ],
    reward_max: Annotated[float | None, option("The most that a step can pay.", "NUMBER")] = None,
    horizon: Annotated[
        int | None,
        option("How many steps an episode has.  (default: an infinite horizon, with --discount)", "STEPS"),
    ] = None,
    discount: shared.Discount = 1.0,
    png: Annotated[
        Path | None,
        shared.file_option("Draw the values over the first two coordinates into this file (.png, .svg, .pdf)."),
    ] = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    expectile: Annotated[
        float,
        bound_option("The level of what unproven mass is worth: 1 is the largest value that was seen.", "LEVEL"),
    ] = 0.99,
    floors: Annotated[bool, flag("--floors", "Fit lower bounds; needs --reward-min.", shared.BOUNDS)] = False,
    reward_min: Annotated[float | None, bound_option("With --floors: the least that a step can pay.", "NUMBER")] = None,
    members: Annotated[int, option("How many forests are fitted.", "N")] = 3,
    seed: Annotated[int, option("Equal seeds give equal results.", "N")] = 0,
    most_rows: Annotated[
        int, option("Rows that each of them sees: it bounds memory, about 300 bytes a row, and time.", "N")
    ] = 1_000_000,
    mask: Annotated[
        str | None,
        option(
            "Which actions exist: a column of lists of true and false, in the order of --actions.",
            "COLUMN",
            panel=shared.COLUMNS,
        ),
    ] = None,
) -> None:
    """Fit ceilings to logs whose states are real numbers: a potential for reward shaping.

    Nothing is guaranteed of a fit: the summary says how far to trust it. After an interruption the same command goes
    on where it stopped.

    Example: causal-shaping fit good.parquet random.parquet --state x,y,vx --horizon 200 --reward-max 0 -o phi/
    """
    from causal_shaping.fitted import fit_ceilings, fit_floors
    from causal_shaping.plot import save_picture

    check_choice("--support", support, shared.SUPPORTS)
    if floors != (reward_min is not None) or floors == (reward_max is not None):
        raise ArgumentError("Give --reward-max for ceilings, or --floors --reward-min for floors.")
    check_files(png=png, folder=output, inputs=logs.files)
    _check_folder(output)
    if png is not None and png.resolve().is_relative_to(output.resolve()):
        raise ArgumentError(f"{png} lies in {output}, which is for the fit alone. Draw it into another folder.")
    numbers = {"numbers": True, "mask": mask}
    bound: Any = {"reward_min": reward_min} if floors else {"reward_max": reward_max}
    bound |= {"horizon": horizon, "discount": discount, "support": support, "expectile": expectile}
    with progress_bar() as progress:
        tables = replace(logs, columns=logs.columns | numbers).open(progress)
        with spoken_warnings():
            found = (fit_floors if floors else fit_ceilings)(
                tables,
                confounding=read_gammas(confounding),
                members=members,
                seed=seed,
                most_rows=most_rows,
                folder=output / UNFINISHED,
                save=output,
                progress=progress,
                **bound,
            )
        if png is not None:
            save_picture(found, png)
    say_result(found, {found.WHAT.capitalize(): output, "Figure": png}, as_json)
    if not as_json and not floors and not found.settings.coarse:
        say(f"Shape rewards with them: env = causal_shaping.ShapeReward(env, {str(output)!r})")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but a fit, finished or not."""
    from causal_shaping.fitted.results import ARRAYS, DESCRIPTION
    from causal_shaping.storage import TEMPORARY

    own = (DESCRIPTION, ARRAYS, UNFINISHED)
    for held in sorted(folder.iterdir()) if folder.exists() else ():
        if held.name not in own and not held.name.startswith(TEMPORARY):
            raise FileError(f"{folder} holds {held.name}, which is no part of a fit. Give a new or an empty folder.")
