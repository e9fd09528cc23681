"""What studies write: tables, figures and a page; rows for other programs.

- `Table`: cells for people, records for programs; `write_tables`: as CSV and as LaTeX.
- `Drawing`: a figure; `write_figures`: in every format.
- `write_page`: one HTML file; `filled`, `write_rows`: rows as Parquet.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from causal_shaping._progress import Progress, no_progress
from causal_shaping.learners.intervals import Interval
from causal_shaping.plot import FORMATS, write_figure
from causal_shaping.plot._html import environment, svg_source
from causal_shaping.storage import write_table, write_text
from studies.parts import side_by_side

NOTHING = "-"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: the name of its files.
        title: the title above it.
        caption: what it shows, in sentences.
        columns: the heads of the columns.
        rows: cells of text; the first one is the head of the row, and newlines separate lines within a cell.
        records: the same numbers for programs, one record per row of the CSV file.
        only: the part of the study that makes it again, as in `--only`; all of it if empty.
    """

    name: str
    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    records: Sequence[Mapping[str, Any]]
    only: str = ""

    def to_csv(self) -> str:
        """Return the records as CSV, with a header; nothing in them comes from a user."""
        heads = list(dict.fromkeys(key for record in self.records for key in record))
        text = io.StringIO()
        writer = csv.DictWriter(text, heads, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()

    def to_latex(self) -> str:
        """Return the table as LaTeX for the package booktabs."""
        lines = [r"\begin{tabular}{l" + "r" * (len(self.columns) - 1) + "}", r"\toprule"]
        lines += [" & ".join(map(_latex, self.columns)) + r" \\", r"\midrule"]
        lines += [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        return "\n".join([f"% {self.title}", *lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex(text: str) -> str:
    signs = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": "; "}
    signs |= {sign: f"\\{sign}" for sign in "&%$#_{}"} | {"<": r"\textless{}", ">": r"\textgreater{}"}
    return "".join(signs.get(sign, sign) for sign in text)


def interval_text(interval: Interval, digits: int) -> str:
    """Return an estimate and its interval as text."""
    return "{0:.{3}f} [{1:.{3}f}, {2:.{3}f}]".format(*interval, digits)


@dataclass(frozen=True)
class Drawing:
    """A figure that can be drawn when it is needed.

    Attributes:
        name: for files.
        caption: below it.
        draw: makes it; sent to other processes.
        only: what of the study makes its numbers again, as in `--only`; all of it if empty.
    """

    name: str
    caption: str
    draw: Callable[[], Figure]
    only: str = ""


def save_figure(drawing: Drawing, folder: Path) -> None:
    """Draw a figure and write it in every format; equal results give equal files."""
    figure = drawing.draw()
    layout = figure.get_layout_engine()
    if layout is not None:  # once for all formats: with a layout left to do, each would be drawn twice
        layout.execute(figure)
        figure.set_layout_engine(None)
    for ending in FORMATS:
        write_figure(figure, folder / f"{drawing.name}{ending}", salt=drawing.name, dpi=130)


def write_figures(
    folder: Path, drawings: Sequence[Drawing], workers: int | None = 1, progress: Progress = no_progress
) -> dict[str, dict[str, str]]:
    """Write figures side by side into `figures/`, and return what a page shows of each, by name."""
    place = folder / "figures"
    place.mkdir(exist_ok=True)
    for done, one in enumerate(side_by_side(drawings, partial(save_figure, folder=place), workers)):
        progress(done, len(drawings), f"Drawing {one.name}")  # the page is left
    return {
        one.name: {
            "name": one.name,
            "caption": one.caption,
            "only": one.only,
            "source": svg_source((place / f"{one.name}.svg").read_bytes()),
        }
        for one in drawings
    }


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    """Write tables as CSV and as LaTeX into `tables/`."""
    place = folder / "tables"
    place.mkdir(exist_ok=True)
    for name, table in tables.items():
        write_text(place / f"{name}.csv", table.to_csv(), [".csv"])
        write_text(place / f"{name}.tex", table.to_latex(), [".tex"])


def write_page(folder: Path, template: str, **shown: Any) -> Path:
    """Write the page of a study, one file without network, and return its path."""
    page = folder / "index.html"
    write_text(page, environment("studies").get_template(template).render(**shown), [".html"])
    return page


def filled(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return rows with the columns of all of them: what a row does not hold is None."""
    held = list(rows)
    columns = list(dict.fromkeys(column for row in held for column in row))
    return tuple({column: row.get(column) for column in columns} for row in held)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet, for other programs."""
    write_table(path, pa.Table.from_pylist(list(rows)))
