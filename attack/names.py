"""Hostile names in every place that takes one: they are refused, or shown as text, and change no number.

`attack()` writes logs with each name as a source, a column, a label of a state, an action, the name of a file or of a
map, and everywhere at once; runs the commands on them; and looks at the terminal, the CSV table, the JSON, the page and
the figure. By hand: `python attack/names.py`.
"""

from __future__ import annotations

import argparse
import csv
import html.parser
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from commands import MAP, _ring, run

NAMES = {
    "quotes": 'it\'s "x" `y`',
    "sql": "x'; DROP TABLE logs; --",
    "sql identifier": 'x" OR 1=1 --',
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x=\'',
    "entity": "&lt;b&gt;",
    "template": "{{ 7 * 7 }}{% for %}",
    "latex": r"\input{/etc/passwd}",
    "mathtext": r"$\frac{$",
    "formula": "=1+1",
    "command formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "parent": "../evil",
    "root": "/evil",
    "nul": "a\0b",
    "newline": "a\nFORGED: yes",
    "return": "a\rFORGED: yes",
    "erase": "\x1b[2J\x1b[31mred",
    "c1": "\x9b31mred",
    "title": "\x1b]0;title\x07",
    "bidi": "\u202eright\u2066",
    "line separator": "a\u2028FORGED: yes",
    "markup": "[bold red]x[/bold red][/x]:smile:",
    "percent": "%s%n{0}{x}",
    "emoji": "👩‍🚀😀",
    "arabic": "مرحبا",
    "surrogate": "a\udcffb",
    "long": "z" * 10_000,
    "spaces": "  ",
    "dash": "--help",
    "next": "next_state",
    "reward": "reward",
    "glob": "g[1]*?",
    "hive": "reward=7",
    "none": "None",
    "digits": "²",
}
PLACES = ("source", "column", "state", "action", "file", "map", "everywhere")
PLAIN = "plain"
MOST = 240
"""Bytes that a name of a file may have, with some left for its suffix."""


class Tags(html.parser.HTMLParser):
    """The tags of a page with the names of their attributes, counted: names in the text change none of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: Counter[Any] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count a tag."""
        self.found[tag, tuple(sorted(name for name, _ in attrs))] += 1


def logs(folder: Path, name: str, place: str) -> list[str]:
    """Write the logs of two sources with a name in a place; return the arguments that read them."""
    at = {key: name if place in (key, "everywhere") else PLAIN for key in PLACES}
    if place == "everywhere" and not is_file_name(name):
        at["file"] = PLAIN
    rng, arguments = random.Random(0), []
    for i in range(2):
        rows = []
        for episode in range(40):
            state = rng.choice([at["state"], "other"])
            for step in range(2):
                action, after = rng.choice([at["action"], "none"]), rng.choice([at["state"], "other"])
                rows.append((episode, step, state, action, rng.choice([0.0, 1.0]), after, False, step == 1))
                state = after
        heads = ["episode", "step", at["column"], "action", "reward", f"next_{at['column']}", "terminated", "truncated"]
        file = _inside(folder, f"{at['file']}{i}.parquet")
        pq.write_table(pa.table([list(column) for column in zip(*rows, strict=True)], names=heads), file)
        arguments.append(f"{at['source']}{i}={file.name}" if place != "file" else file.name)
    return [*arguments, f"--state={at['column']}"]


def is_file_name(name: str) -> bool:
    """Return whether files can be called so: not beyond a folder, not too long, without NUL, and encoded."""
    return "/" not in name and "\0" not in name and len(os.fsencode(name)) < MOST


def _inside(folder: Path, name: str) -> Path:
    if not is_file_name(name):
        raise ValueError("no name of a file")
    return folder / name


def outcome(folder: Path, name: str, place: str) -> dict[str, Any]:
    """Return what the commands say and write about logs with a name in a place; `code` alone where it is refused."""
    os.chdir(folder)
    bound = ["--horizon=3", "--reward-max=1", "--reward-min=0"]
    if place == "map":
        file = _inside(folder, f"{name}.txt")
        file.write_text(MAP)
        shown = run(["worlds", file.name])
        logged = run(["collect", file.name, "--demonstrator=random", "--steps=50", "-o", "out.csv"])
        texts = [shown[1], logged[1]]
        return {"code": max(shown[0], logged[0], key=str), "text": "".join(texts), "rows": _rows(folder / "out.csv")}
    read = logs(folder, name, place)
    runs = [
        run(["inspect", *read, "--html=inspected.html"] if place == "everywhere" else ["inspect", *read]),
        run(["ceilings", *read, *bound, "-o", "out.csv"]),
        run(["ceilings", *read, *bound, "-o", "phi.parquet", "--counts=counts.parquet", "--json"]),
        run(["sensitivity", *read, *bound, "--plug-in", "-o", "moved.csv"]),
    ]
    if place == "everywhere":
        runs.append(run(["ceilings", *read, *bound, "--html=page.html", "--png=figure.png"]))
    pages = [Tags(page.read_text()).found for page in sorted(folder.glob("*.html"))]
    held = {"code": max((code for code, _ in runs), key=str), "text": "\n".join(text for _, text in runs)}
    return held | {"rows": _rows(folder / "out.csv"), "moved": _rows(folder / "moved.csv"), "pages": pages}


def _rows(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def defects_of(found: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    """Return what is wrong with an outcome, beside that under a plain name."""
    from causal_shaping._checks import escaped

    defects = [] if found["code"] in (0, 2) else [f"{found['code']}: {found['text'][-700:]}"]
    if escaped(found["text"], keep="\n") != found["text"]:
        defects.append("control characters on the terminal")
    if any(line.startswith("FORGED") for line in found["text"].splitlines()):
        defects.append("a forged line on the terminal")
    if found["code"] != 0:
        return defects
    for key in ("rows", "moved"):
        if _numbers(found.get(key, [])) != _numbers(plain.get(key, [])):
            defects.append(f"other numbers in the table {key}")
        if any(cell.startswith(("=", "@")) for row in found.get(key, []) for cell in row):
            defects.append(f"a formula in the table {key}")
    if found.get("pages") != plain.get("pages"):
        defects.append("other tags on the page")
    return defects


def strays_of(outer: Path, folder: Path) -> list[str]:
    """Return what is in the outer folder, but neither on the way to the inner one nor in it."""
    return sorted(str(path) for path in outer.rglob("*") if not (path in folder.parents or path.is_relative_to(folder)))


def _numbers(rows: list[list[str]]) -> list[list[str]]:
    """Return the numbers of each row, sorted: labels decide the order of rows and columns, and so the last bits."""
    return sorted(sorted(f"{float(cell):.9g}" for cell in row if _is_number(cell)) for row in rows)


def _is_number(cell: str) -> bool:
    try:
        return bool(json.dumps(float(cell)))
    except ValueError:
        return False


def attack(names: dict[str, str] = NAMES, places: tuple[str, ...] = PLACES) -> tuple[Counter[str], list[str]]:
    """Try names in places; return how that ended, counted, and the defects in words."""
    ends, defects, before = Counter[str](), list[str](), Path.cwd()
    signal.signal(signal.SIGALRM, _ring)
    try:
        for place in places:
            began, plain = time.monotonic(), dict[str, Any]()
            for kind, name in {PLAIN: PLAIN, **names}.items():
                with tempfile.TemporaryDirectory() as outer:
                    folder = Path(outer) / "in" / "side"
                    folder.mkdir(parents=True)
                    try:
                        found = outcome(folder, name, place)
                    except (OSError, ValueError):  # no such file, column or argument can be made: an outcome, too
                        ends[f"{place} impossible"] += 1
                        continue
                    finally:
                        os.chdir(before)
                    strays = strays_of(Path(outer), folder)
                if not plain and found["code"] != 0:
                    raise RuntimeError(f"A plain name does not work as {place}: {found['text'][-700:]}")
                plain = plain or found
                ends[f"{place} {found['code']}"] += 1
                wrong = defects_of(found, plain) + (["files outside of the folder"] if strays else [])
                told = [f"{kind} as {place}: {text}" for text in wrong]
                print(*told, sep="\n", end="\n" * bool(told), flush=True)
                defects += told
            print(f"{place}: {time.monotonic() - began:.0f} s, {len(defects)} defects so far", flush=True)
    finally:
        os.chdir(before)
    return ends, defects


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", choices=[*PLACES, []], metavar="PLACE", help=", ".join(PLACES))
    given = tuple(parser.parse_args().places) or PLACES
    ended, found_defects = attack(places=given)
    print(dict(sorted(ended.items())))
    print(f"{len(NAMES)} names, {len(given)} places: {ended.total():,} tried, {len(found_defects)} defects")
    sys.exit(bool(found_defects))
