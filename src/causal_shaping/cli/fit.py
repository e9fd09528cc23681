"""`causal-shaping fit`: ceilings for states that cannot be listed, a potential."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from causal_shaping._checks import check_choice
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import Logs
from causal_shaping.cli._options import BOUNDS, COLUMNS, Count, check_files, command, flag, option
from causal_shaping.cli._terminal import finish, progress_bar, say, spoken_warnings
from causal_shaping.errors import ArgumentError, FileError

UNFINISHED = ".unfinished"
"""The folder inside the output that keeps what an interrupted fit has done."""


@command
def fit(
    logs: Logs,
    output: shared.Folder,
    reward_max: Annotated[float | None, option("NUMBER")] = None,
    horizon: shared.Horizon = None,
    discount: shared.Discount = 1.0,
    png: shared.File = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    expectile: Annotated[float, option("LEVEL", panel=BOUNDS)] = 0.99,
    floors: Annotated[bool, flag("--floors", BOUNDS)] = False,
    reward_min: shared.Number = None,
    members: Count = 3,
    seed: Count = 0,
    most_rows: Count = 1_000_000,
    mask: Annotated[str | None, option("COLUMN", panel=COLUMNS)] = None,
) -> None:
    """Fit ceilings to logs whose states are real numbers: a potential for reward shaping.

    A fit is not guaranteed to bound anything: the summary says how far to trust it. After an
    interruption the same command goes on where it stopped.

    Example: causal-shaping fit good.parquet random.parquet --state x,y,vx --horizon 200
    --reward-max 0 -o phi/

    Options:
        output: The folder to save the fit to. The same command goes on there after an interruption.
        reward_max: The most that a step can pay.
        horizon: How many steps an episode has. (default: an infinite horizon, with --discount)
        png: Draw the values over the first two coordinates into this file (.png, .svg, .pdf).
        expectile: The level of what unproven mass is worth: 1 is the largest value in the logs.
        floors: Fit lower bounds; needs --reward-min.
        reward_min: With --floors: the least that a step can pay.
        members: How many forests are fitted.
        seed: Equal seeds give equal results.
        most_rows: Rows that each forest sees: limits memory, about 300 bytes a row, and time.
        mask: Which actions exist: a column of lists of true and false, in the order of --actions.
    """
    from causal_shaping.fitted import fit_ceilings, fit_floors
    from causal_shaping.plot import save_picture

    check_choice("--support", support, shared.SUPPORTS)
    if floors != (reward_min is not None) or floors == (reward_max is not None):
        raise ArgumentError("Give --reward-max for ceilings, or --floors --reward-min for floors.")
    check_files(png=png, folder=output, inputs=logs.files)
    _check_folder(output)
    if png is not None and png.resolve().is_relative_to(output.resolve()):
        raise ArgumentError(
            f"{png} lies in {output}, which is for the fit alone. Draw it into another folder."
        )
    options: Any = {"horizon": horizon, "discount": discount, "support": support}
    options |= {"expectile": expectile, "confounding": shared.read_gammas(confounding)}
    options |= {"members": members, "seed": seed, "most_rows": most_rows}
    fit_side: Any = fit_ceilings
    if floors:
        fit_side = fit_floors
        options["reward_min"] = reward_min
    else:
        options["reward_max"] = reward_max
    with progress_bar() as progress:
        tables = logs.open(progress, numbers=True, mask=mask)
        with spoken_warnings():
            fitted = fit_side(
                tables, folder=output / UNFINISHED, save=output, progress=progress, **options
            )
    outputs = [
        (fitted.WHAT.capitalize(), output, lambda _: None),  # the fit saved itself
        ("Figure", png, lambda path: save_picture(fitted, path)),
    ]
    finish(fitted, outputs, as_json)
    if not as_json and not floors and not fitted.settings.coarse:
        say(f"Shape rewards with them: env = causal_shaping.ShapeReward(env, {str(output)!r})")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but a fit, finished or not."""
    from causal_shaping.fitted.results import ARRAYS, DESCRIPTION
    from causal_shaping.storage import TEMPORARY

    if not folder.exists():
        return
    for name in sorted(path.name for path in folder.iterdir()):
        if name not in (DESCRIPTION, ARRAYS, UNFINISHED) and not name.startswith(TEMPORARY):
            raise FileError(
                f"{folder} holds {name}, which is no part of a fit. Give a new or an empty folder."
            )
