"""Options that several commands share, and what is asked of the files that they name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from causal_shaping._checks import check_integer
from causal_shaping.errors import ArgumentError

TABLES = (".csv", ".parquet")

OUTPUT, BOUNDS, COLUMNS = "Output", "Bounds", "Columns of your files"


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Return an option that takes no value."""
    return typer.Option(name, help=text, rich_help_panel=panel)


def option(text: str, metavar: str, *names: str, panel: str | None = None) -> Any:
    """Return an option that takes a value."""
    return typer.Option(*names, help=text, rich_help_panel=panel, metavar=metavar)


def file_option(text: str, *names: str) -> Any:
    """Return an option that names a file to write."""
    return option(text, "FILE", *names, panel=OUTPUT)


bound_option = partial(option, panel=BOUNDS)

Png = Annotated[Path | None, file_option("Draw a figure into this file (.png, .svg, .pdf).")]
Html = Annotated[Path | None, file_option("Write a page that can be shared, a single file for any browser (.html).")]
Table = Annotated[Path | None, file_option("Write a table to this file (.csv, .parquet).", "--output", "-o")]
SmallestCell = Annotated[
    int | None, option("Show counts below this as 'fewer than', such as 11, in what is shared.", "N", panel=OUTPUT)
]
AsJson = Annotated[bool, flag("--json", "Print JSON instead of tables.", OUTPUT)]

Steps = Annotated[int, option("How many steps an episode has.", "STEPS", "--horizon")]
RewardMax = Annotated[float, option("The most that a step can pay.", "NUMBER")]
Support = Annotated[
    str,
    bound_option(
        "What may follow a state: what was observed to follow it, or to follow it after that action, or any state.",
        "observed|observed-action|any",
    ),
]
Confidence = Annotated[
    float | None,
    bound_option(
        "Probability with which all bounds hold at once, such as 0.95.  (default: a plug-in estimate)", "SHARE"
    ),
]
Gammas = Annotated[
    str,
    bound_option(
        "How confounded sources may be: 1 for a randomised trial, up to inf. One number for all, or by name.",
        "GAMMA|NAME=GAMMA,...",
    ),
]
Discount = Annotated[float, bound_option("The factor on future reward.", "NUMBER")]
Rarest = Annotated[
    float | None,
    bound_option(
        "With --confidence: the smallest share of the visits that a possible outcome has. Where visits are too few to "
        "have shown such outcomes, any state may follow.  (default: 0.01)",
        "SHARE",
    ),
]
ValueMax = Annotated[float | None, bound_option("A known upper bound on values.  (default: none)", "NUMBER")]
Hidden = Annotated[
    str | None,
    bound_option(
        "Logged columns: what would it amount to if each of them had been hidden? A yardstick for confounding.",
        "COLUMN,...",
    ),
]
StepIndexed = Annotated[
    bool, flag("--step-indexed", "Count each step of an episode by itself: the world may change over time.", BOUNDS)
]
SUPPORTS = ("observed", "observed-action", "any")


def check_files(
    table: Path | None = None,
    png: Path | None = None,
    html: Path | None = None,
    *,
    endings: Sequence[str] = TABLES,
    counts: Path | None = None,
    more: Sequence[Path] = (),
    folder: Path | None = None,
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Refuse what cannot be written, before anything is computed.

    Args:
        table: a file with one of the endings.
        png: a figure.
        html: a page.
        endings: those of the table.
        counts: a file of counts.
        more: other files that are written.
        folder: a folder that is written to.
        inputs: what is read, which may be no files.
    """
    from causal_shaping.plot import check_page, check_picture
    from causal_shaping.storage import PARQUET, check_folder, check_outputs, check_target

    if table is not None:
        check_target(table, endings)
    if counts is not None:
        check_target(counts, PARQUET)
    if png is not None:
        check_picture(png)
    if html is not None:
        check_page(html)
    if folder is not None:
        check_folder(folder)
    check_outputs(
        [path for path in (table, counts, png, html, *more) if path is not None],
        [Path(path) for path in inputs if path is not None],
    )


def check_smallest_cell(smallest: int | None) -> None:
    """Refuse a limit of small counts that would hide none."""
    if smallest is not None:
        check_integer("--smallest-cell", smallest, least=2)


def read_gammas(text: str, option: str = "--confounding") -> float | dict[str, float]:
    """Read 2 as one Gamma for all sources, and random=1,bad=3 as one each."""
    if "=" not in text:
        return read_gamma(text, option)
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name: read_gamma(gamma, option) for name, _, gamma in pairs}


def read_gamma(text: str, option: str = "--confounding") -> float:
    """Read a number from 1 to inf."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(
            f"{option}: {text!r} is not a number. Give one from 1 to inf, or NAME=NUMBER for one source."
        ) from None
