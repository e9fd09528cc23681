"""A table of the study: cells for people, records for programs; as CSV and as LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from causal_shaping.learners.intervals import Interval

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


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return rows as a table of a schema; what a row does not hold is null."""
    return pa.Table.from_pylist([{column: row.get(column) for column in schema.names} for row in rows], schema)
