"""How a command declares its options, and the options that several commands share.

A command is a plain function. Its signature declares its options, and the `Options:` section of its
docstring holds their help. A parameter whose type is a dataclass, such as `Bound`, stands for all
fields of that class. Options of several commands that belong to no class have their help here:

Options:
    png: Draw a figure into this file (.png, .svg, .pdf).
    html: Write one page for any browser to this file (.html).
    output: Write a table to this file (.csv, .parquet).
    as_json: Print JSON instead of text and tables.
    smallest_cell: Show counts below this, such as 11, as 'fewer than' in what is shared.
    confounding: How confounded sources may be: 1 for a randomised trial, up to inf. One number for
        all, or one for each source by name.
    support: Which states may follow a state: those observed after it, those observed after it and
        that action, or any state.
    discount: The factor on future reward.
    value_max: A known upper bound on values. (default: none)
    hidden: Logged columns: how much confounding would each amount to if it had been hidden? A
        yardstick for --confounding.
    seed: Equal seeds give equal results.
    horizon: Steps after which an episode is cut off. (default: the world's)
    wind: Probabilities of the air pushing each way, for a map of your own.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from causal_shaping._checks import check_choice
from causal_shaping.errors import ArgumentError

TABLES = (".csv", ".parquet")
"""The endings of a table that a command writes."""

SUPPORTS = ("observed", "observed-action", "any")
"""The values of --support."""

BOUNDS, OUTPUT, COLUMNS = "Bounds", "Output", "Columns of your files"
PANELS = (None, OUTPUT, BOUNDS, COLUMNS)
"""The titles under which `--help` shows options, in this order; without one, under "Options"."""


def option(metavar: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option that takes a value, which `--help` shows as `metavar`."""
    return typer.Option(*names, metavar=metavar, rich_help_panel=panel, **more)


def flag(name: str, panel: str | None = None, help: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, rich_help_panel=panel, help=help)


def file_option(*names: str) -> Any:
    """Return an option that names a file to write."""
    return option("FILE", *names, panel=OUTPUT)


# Types of options that several commands have; the help is in the docstrings, by parameter.
Count = Annotated[int, option("N", min=0)]
Horizon = Annotated[int | None, option("STEPS")]
Number = Annotated[float | None, option("NUMBER", panel=BOUNDS)]
File = Annotated[Path | None, file_option()]
Table = Annotated[Path | None, file_option("--output", "-o")]
Folder = Annotated[Path, option("FOLDER", "--output", "-o")]
AsJson = Annotated[bool, flag("--json", OUTPUT)]
SmallestCell = Annotated[int | None, option("N", panel=OUTPUT, min=2)]
Gammas = Annotated[str, option("GAMMA|NAME=GAMMA,...", panel=BOUNDS)]
Support = Annotated[str, option("|".join(SUPPORTS), panel=BOUNDS)]
Discount = Annotated[float, option("NUMBER", panel=BOUNDS)]
Share = Annotated[float | None, option("SHARE", panel=BOUNDS)]
Hidden = Annotated[str | None, option("COLUMN,...", panel=BOUNDS)]
StepIndexed = Annotated[bool, flag("--step-indexed", BOUNDS)]
Wind = Annotated[str | None, option("E,S,W,N,NONE")]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What is asked of bounds, whatever the confounding.

    Options:
        horizon: How many steps an episode has.
        reward_max: The most that a step can pay.
        confidence: Probability with which all bounds hold at once, such as 0.95. (default: a
            plug-in estimate)
        rarest: With --confidence: the smallest share of the visits that a possible outcome has.
            Where visits are too few to have shown such outcomes, any state may follow. (default:
            0.01)
        step_indexed: Count each step of an episode by itself: the world may change over time.
    """

    horizon: Annotated[int, option("STEPS")]
    reward_max: Annotated[float, option("NUMBER")]
    support: Support = "observed"
    confidence: Share = None
    discount: Discount = 1.0
    rarest: Share = None
    step_indexed: StepIndexed = False

    def __post_init__(self) -> None:
        check_choice("--support", self.support, SUPPORTS)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that all functions of bounds take, except for horizon and reward."""
        names = ("support", "confidence", "discount", "rarest")
        return {name: getattr(self, name) for name in names}


# From functions to commands ----------------------------------------------------------------------


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the signature and the help that Typer reads."""
    parameters: list[Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for item in _documented(function):
        if is_dataclass(item.annotation):
            fields = _documented(item.annotation)
            groups[item.name] = (item.annotation, [one.name for one in fields])
            parameters += fields
        else:
            parameters.append(item)

    @functools.wraps(function)
    def run(**options: Any) -> None:
        for name, (group, fields) in groups.items():
            options[name] = group(**{field: options.pop(field) for field in fields})
        function(**options)

    # Typer reads these three attributes.
    parameters.sort(key=lambda item: PANELS.index(item.annotation.__metadata__[0].rich_help_panel))
    ordered = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in parameters]
    run.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in ordered}
    run.__doc__ = _split_docstring(function)[0]
    return run


def _documented(source: Any) -> list[Parameter]:
    """Return the parameters of a function or dataclass with the help from docstrings."""
    texts = dict(_split_docstring(sys.modules[__name__])[1])
    for one in reversed(getattr(source, "__mro__", [source])):
        texts |= _split_docstring(one)[1]
    parameters = []
    for item in signature(source, eval_str=True).parameters.values():
        if item.name in texts and not item.annotation.__metadata__[0].help:
            # A copy, as other parameters with the same type have another help.
            info = copy(item.annotation.__metadata__[0])
            info.help = texts[item.name]
            item = item.replace(annotation=Annotated[item.annotation.__origin__, info])
        parameters.append(item)
    return parameters


def _split_docstring(source: object) -> tuple[str, dict[str, str]]:
    """Return what a docstring says above `Options:`, and what it says of each option."""
    above, _, options = (getdoc(source) or "").partition("\nOptions:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", options, re.MULTILINE)
    return above, {name: " ".join(text.split()) for name, text in entries}


# Checks ------------------------------------------------------------------------------------------


def check_files(
    *,
    inputs: Sequence[str | Path | None],
    table: Path | None = None,
    endings: Sequence[str] = TABLES,
    counts: Path | None = None,
    png: Path | None = None,
    html: Path | None = None,
    folder: Path | None = None,
    inside: Path | None = None,
) -> None:
    """Refuse outputs that cannot be written, before anything is computed.

    Args:
        inputs: what the command reads; no output may replace it.
        table: a file with one of the endings.
        endings: the endings of the table.
        counts: a file of counts.
        png: a figure.
        html: a page.
        folder: a folder to write to; it is made if need be.
        inside: a file inside that folder.
    """
    from causal_shaping.plot import check_page, check_picture
    from causal_shaping.storage import PARQUET, check_folder, check_outputs, check_target

    checks = {check_picture: png, check_page: html, check_folder: folder}
    checks[lambda path: check_target(path, endings)] = table
    checks[lambda path: check_target(path, PARQUET)] = counts
    for check, path in checks.items():
        if path is not None:
            check(path)
    outputs = [path for path in (table, counts, png, html, inside) if path is not None]
    check_outputs(outputs, [Path(path) for path in inputs if path is not None])


def parts_of(text: str | None) -> list[str] | None:
    """Return the parts of text between commas; None if there is no text."""
    if text is None:
        return None
    return text.split(",")


def read_gammas(text: str, name: str = "--confounding") -> float | dict[str, float]:
    """Read 2 as one Gamma for all sources, and random=1,bad=3 as one for each."""
    if "=" not in text:
        return read_gamma(text, name)
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {source: read_gamma(gamma, name) for source, _, gamma in pairs}


def read_gamma(text: str, name: str = "--confounding") -> float:
    """Read a number from 1 to inf."""
    try:
        return float(text)
    except ValueError:
        hint = "Give one from 1 to inf, or NAME=NUMBER for one source."
        raise ArgumentError(f"{name}: {text!r} is not a number. {hint}") from None
