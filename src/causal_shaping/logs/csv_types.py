"""How a CSV is written, and the type of each of its columns.

The separators come from the first rows, the types from one pass over all rows: a column has the
narrowest type that every one of its values is written as.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from causal_shaping.logs.constants import BLOCK_BYTES, CSV_LINE_BYTES
from causal_shaping.storage import InputFile

Run = Callable[[str], list[tuple[Any, ...]]]
"""Runs a statement of SQL and returns its rows."""

PLAIN, ODD, REAL, TEXT = "plain", "odd", "real", "text"
WAYS = {
    PLAIN: "TRY_CAST({0} AS BIGINT)::VARCHAR = trim({0})",
    ODD: "TRY_CAST({0} AS BIGINT) IS NOT NULL AND NOT regexp_matches({0}, '[.]|^[^xX]*[eE]')",
    REAL: "TRY_CAST({0} AS DOUBLE) IS NOT NULL",
    "true": "lower({0}) IN ('true', 'false')",
    "t": "lower({0}) IN ('t', 'f')",
    "yes": "lower({0}) IN ('yes', 'no')",
    TEXT: "TRUE",
}
"""The ways in which a value can be written; the first that fits counts. 007, +7 and 0x10 are odd:
as labels they differ from 7 and 16, although they are the same numbers."""

TYPES = {
    "BIGINT": [{PLAIN}],
    "DOUBLE": [{REAL}, {PLAIN, REAL}, {ODD, REAL}, {PLAIN, ODD, REAL}],
    "BOOLEAN": [{"true"}, {"t"}, {"yes"}],
}
"""The types of columns, by the ways in which their values are written. All others are text: a
label is as it is written, and so is a date. A flag that is written in two ways was cut short."""

CASTS = {"BOOLEAN": "(lower({0}) IN ('true', 't', 'yes'))"}


@dataclass(frozen=True)
class CsvFile:
    """How to read a CSV."""

    query: str  # gives its rows, with types
    types: dict[str, str]
    odd: frozenset[str]  # columns of text that hold whole numbers, not all of them plainly written
    header: list[str]  # the names of the columns as they are in the file


def csv_file(run: Run, file: InputFile) -> CsvFile:
    """Find out how a CSV is to be read, so that all queries read it alike."""
    _check_gzip(file)
    name, limit = sql_text(literal_name(file)), f"max_line_size = {CSV_LINE_BYTES}"
    ((*signs, skipped, columns),) = run(
        "SELECT Delimiter, Quote, Escape, Comment, SkipRows, Columns"
        f" FROM sniff_csv({name}, header = true, {limit})"
    )
    delimiter, quote, escape, comment = ("" if sign == "(empty)" else sign for sign in signs)
    # Signs that the first rows do not show may come later: those of RFC 4180 are expected.
    quote = quote or '"'
    options = {
        "delim": delimiter,
        "quote": quote,
        "escape": escape or quote,
        "comment": comment,
    }
    written = ", ".join(f"{option} = {sql_text(sign)}" for option, sign in options.items())
    names = [column["name"] for column in columns]
    texts = ", ".join(f"{sql_text(column)}: 'VARCHAR'" for column in names)
    read = (
        f"read_csv({name}, {written}, auto_detect = false, {limit}, skip = {skipped}, "
        f"columns = {{{texts}}}, header = "
    )
    header, ways = _header_and_ways(run, read, names)
    types = {
        column: next((kind for kind, sets in TYPES.items() if held in sets), "VARCHAR")
        for column, held in ways.items()
    }
    casts = [
        CASTS.get(kind, "CAST({0} AS {1})").format(sql_name(column), kind)
        + f" AS {sql_name(column)}"
        for column, kind in types.items()
    ]
    odd = frozenset(column for column, held in ways.items() if ODD in held <= {PLAIN, ODD})
    return CsvFile(f"SELECT {', '.join(casts)} FROM {read}true)", types, odd, header)


def _header_and_ways(
    run: Run, read: str, names: Sequence[str]
) -> tuple[list[str], dict[str, set[str]]]:
    """Return the line of names, and the ways in which the values of each column are written."""
    bits = {way: 2**i for i, way in enumerate(WAYS)}
    sets = []
    for column in map(sql_name, names):
        cases = " ".join(
            f"WHEN {fits.format(column)} THEN {bits[way]}" for way, fits in WAYS.items()
        )
        sets.append(f"bit_or(CASE WHEN {column} IS NULL THEN 0 {cases} END)")
    first = f"(SELECT * FROM {read}false) LIMIT 1)"
    ((*values,),) = run(f"SELECT * FROM (SELECT {', '.join(sets)} FROM {read}true)), {first}")
    found = zip(names, values[: len(names)], strict=True)
    ways = {
        column: {way for way, bit in bits.items() if bit & (value or 0)} for column, value in found
    }
    return [str(name) for name in values[len(names) :]], ways


def _check_gzip(file: InputFile) -> None:
    """Verify the checksum at the end of a .gz file, which DuckDB ignores."""
    if file.path.name.lower().endswith(".gz"):
        with file.open() as packed, gzip.GzipFile(fileobj=packed) as unpacked:
            while unpacked.read(BLOCK_BYTES):
                pass


def literal_name(file: InputFile) -> str:
    """Return the name of a file as a pattern, which DuckDB takes names for, of that file alone."""
    return re.sub(r"[*?[]", r"[\g<0>]", os.path.abspath(file.path))


def sql_text(value: str) -> str:
    """Return a text of SQL."""
    return "'" + value.replace("'", "''") + "'"


def sql_name(column: str) -> str:
    """Return the name of a column in SQL."""
    return '"' + column.replace('"', '""') + '"'
