"""Names of others, wherever they stand, are refused or shown as text, and change no number."""

import csv
import random
import re
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st

from causal_shaping._checks import escaped

HOSTILE = (
    'it\'s "x" `y`', "x'; DROP TABLE logs; --", 'x" OR 1=1 --', "<script>alert(1)</script>",
    '" onmouseover="alert(1)" x=\'', "&lt;b&gt;", "{{ 7 * 7 }}{% for %}", r"\input{/etc/passwd}", r"$\frac{$", "=1+1",
    "@SUM(1+1)*cmd|' /C calc'!A0", "a\nFORGED: yes", "a\rFORGED: yes", "\x1b[2J\x1b[31mred", "\x9b31mred",
    "\u202eright\u2066", "a\u2028FORGED: yes", "[bold red]x[/bold red][/x]:smile:", "%s%n{0}{x}", "👩‍🚀", "z" * 10_000,
    "  ", "--help", "next_state", "reward", "None", "²", "../evil",
)  # fmt: skip
PLACES = ("source", "column", "state", "action")
RUN = (Phase.explicit, Phase.generate)  # an example takes seconds: it is not made smaller
BOUNDED = ("--horizon=3", "--reward-max=1", "--reward-min=0")

NUMBER = re.compile(r"-?[\d.]+(e-?\d+)?")

PLAIN = {}
"""The outcome of a plain name, by place."""


def rounded(cell):
    """Return a number without its last bits, which the order of labels decides."""
    return f"{float(cell):.9g}"


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, counted: names in the text change none of them."""

    def __init__(self, page):
        super().__init__()
        self.found = Counter()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found[tag, tuple(sorted(name for name, _ in attrs))] += 1


def written(folder, name, place):
    """Write logs of two sources with a name in a place; return the arguments that read them."""
    at = {key: name if key == place else "plain" for key in PLACES}
    rng, arguments = random.Random(0), []
    for i in range(2):
        rows = []
        for episode in range(20):
            state = rng.choice([at["state"], "other"])
            for step in range(2):
                action, after = rng.choice([at["action"], "none"]), rng.choice([at["state"], "other"])
                rows.append((episode, step, state, action, rng.choice([0.0, 1.0]), after, False, step == 1))
                state = after
        heads = ["episode", "step", at["column"], "action", "reward", f"next_{at['column']}", "terminated", "truncated"]
        columns = [list(column) for column in zip(*rows, strict=True)]
        pq.write_table(pa.table(columns, names=heads), folder / f"{i}.parquet")
        arguments.append(f"{at['source']}{i}={folder / f'{i}.parquet'}")
    return [*arguments, f"--state={at['column']}"]


def outcome(run, name, place):
    """Return the exit code, what was printed, the numbers of the table and the tags of the page."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            read = written(folder, name, place)
        except (ValueError, pa.ArrowException):  # no such column or label can be made
            return None
        table, page = folder / "out.csv", folder / "page.html"
        code, out, err = run("ceilings", *read, *BOUNDED, "-o", table, "--html", page)
        if code:
            return code, out + err, [], Counter()
        with table.open(newline="", encoding="utf-8") as file:
            cells = list(csv.reader(file))
        assert not any(cell.startswith(("=", "@")) for row in cells for cell in row), "a formula"
        numbers = sorted(sorted(map(rounded, filter(NUMBER.fullmatch, row))) for row in cells[1:])
        return code, out + err, numbers, Tags(page.read_text()).found


@pytest.mark.filterwarnings("ignore:Glyph")  # that a font has no sign for
@settings(max_examples=6, deadline=None, phases=RUN, suppress_health_check=[*HealthCheck])
@given(place=st.sampled_from(PLACES), name=st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=20)))
@example(place="source", name="<script>alert(1)</script>")
@example(place="state", name="a\nFORGED: yes")
def test_a_hostile_name_is_refused_or_shown_as_text(run, place, name):
    found = outcome(run, name, place)
    if place not in PLAIN:
        PLAIN[place] = outcome(run, "plain", place)
    plain = PLAIN[place]
    assert plain[0] == 0
    if found is None:
        return
    code, text, numbers, tags = found
    assert code in (0, 2), text[-700:]
    assert escaped(text, keep="\n") == text, "control characters on the terminal"
    assert not any(line.startswith("FORGED") for line in text.splitlines()), "a forged line on the terminal"
    if code == 0:
        assert (numbers, tags) == (plain[2], plain[3])
