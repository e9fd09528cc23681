"""Arguments that no person would type: a message that says the limit, in no time, and no control characters."""

import io
import sys
import warnings
from pathlib import Path

import pytest
from rich.table import Table

import causal_shaping as cs
from causal_shaping._checks import escaped
from causal_shaping.cli import _terminal
from causal_shaping.cli._terminal import MOST_SHOWN, complain, print_table, progress_bar, tell, wide_console

BOUND = ("--horizon", "3", "--reward-max", "1")
MANY, EDGES = "1000000000", ":".join(map(str, range(3000)))
HOSTILE = "\x1b[2J\x9b31m\u202e\u2066[red]x[/y]\r\n:smile:\udcff"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "LOGS", "--actions", "²"), "is not one of the declared ones"),
        (("inspect", "LOGS", "--actions=--5"), "is not one of the declared ones"),
        (("inspect", "LOGS", "--actions", "9" * 5000), "is not one of the declared ones"),
        (("inspect", "LOGS", "--bins", "x=999999999"), "it must be at most 500"),
        (("inspect", "LOGS", "--bins", f"x={'9' * 5000}"), "write it as age=8 for quantiles"),
        (("inspect", "LOGS", "--bins", f"x={EDGES}"), "There are 3,000 edges; a column can be cut into 500 bins"),
        (("inspect", "LOGS", "--bins", "x=1"), "it must be at least 2"),
        (("inspect", "LOGS", "--first-step", "9" * 23), "it must be at most 1,000,000,000"),
        (("inspect", "LOGS", "--smallest-cell", "9" * 23), "it must be at most 9,223,372,036,854,775,807"),
        (("ceilings", "LOGS", "--horizon", "1000000000000", "--reward-max", "1"), "it must be at most 1,000,000"),
        (("ceilings", "LOGS", "--horizon", "3", "--reward-max", "1e308"), "between -1e+140 and 1e+140"),
        (("ceilings", "LOGS", *BOUND, "--value-max", "-1e308"), "between -1e+140 and 1e+140"),
        (("worlds", "lavacross-easy", "--horizon", MANY), "it must be at most 1,000,000"),
        (("collect", "lavacross-easy", "--demonstrator", "good", "--steps", "9" * 23, "-o", "x.csv"), "77 bits"),
        (("collect", "lavacross-easy", "--demonstrator", "good", "--steps", "9" * 12, "-o", "x.csv"), "GB of memory"),
        (("collect", "windy-field", "--demonstrator", "good", "--steps", "9" * 12, "-o", "x.csv"), "GB of memory"),
        (("train", "lavacross-easy", "--seeds", MANY, "-o", "runs"), "run at most 100,000 at a time"),
        (("worth", "LOGS", *BOUND, "--seeds", MANY), "seeds is 1000000000; it must be at most 100,000"),
        (("worth", "LOGS", *BOUND, "--steps", "9" * 12), "GB of memory"),
    ],
)
def test_too_much_is_refused_with_the_limit(run, easy, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*(easy / "bad.parquet" if part == "LOGS" else part for part in arguments))
    assert code == 2, err
    assert out == ""
    assert message in err
    assert err.splitlines()[-1].startswith("error: ")
    assert len(err) < 10 * MOST_SHOWN
    assert not list(tmp_path.glob("*"))


def test_a_budget_beyond_memory_is_refused(refused, tmp_path):
    err = refused("train", "lavacross-easy", "--steps", "9" * 12, "--seeds", "1", "-o", tmp_path / "runs")
    assert "needs about 100,000 GB of memory; this machine has" in err


def test_long_messages_are_cut_in_the_middle(capsys):
    complain("error", "begin " + 200_000 * "x" + " end")
    shown = capsys.readouterr().err
    assert shown.startswith("error: begin xxx")
    assert shown.endswith("xxx end\n")
    assert "characters left out" in shown
    assert len(shown) < MOST_SHOWN + 100


def test_nothing_that_is_printed_controls_a_terminal(capsys):
    for show in (
        lambda: complain("error", HOSTILE),
        lambda: tell(HOSTILE),
        lambda: print_table([HOSTILE], [[HOSTILE]], title=HOSTILE),
        lambda: wide_console(200).print(HOSTILE, style="bold"),
        lambda: wide_console(200).print(_table()),
    ):
        show()
        captured = capsys.readouterr()
        text = captured.out + captured.err
        assert escaped(text, keep="\n") == text
        assert r"\x1b[2J\x9b31m\u202e\u2066[red]x[/y]\r\n:smile:\udcff" in text


def _table():
    """A table as the package's own printing makes it."""
    table = Table(HOSTILE, title="title")
    table.add_row("cell")
    return table


def test_a_progress_bar_shows_hostile_names_as_text(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar() as progress:
        progress(1, 2, rf"Reading \{HOSTILE}")
    shown = stream.getvalue()
    assert r"\x1b[2J" in shown
    assert "[red]" in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown


def test_there_is_one_place_that_escapes():
    """No other module of the command line writes for people."""
    for module in Path(_terminal.__file__).parent.glob("*.py"):
        if module.name == "_terminal.py":
            continue
        text = module.read_text()
        assert "file=sys.stderr" not in text, module
        for line in text.splitlines():
            if line.strip().startswith("print("):
                assert "json" in line or "version" in line, f"{module}: {line}"


def test_a_line_break_in_a_name_is_refused_and_results_print_escaped(refused, tmp_path):
    """What follows a line break could pass for a line of ours."""
    space = cs.Space(["well"], ["\x1b[2Jdrug", "none"])
    rows = ([0, 1], [0, 0], [0, 0], [0, 1], [1.0, 0.5], [0, 0], [False, False], [True, True])
    for build in (
        lambda: cs.Space(["a\nGuaranteed: yes"], ["x"]),
        lambda: cs.Space([("a", "b\nc")], ["x"]),
        lambda: cs.Space(["a"], ["x\ny"]),
        lambda: cs.Space(["a"], ["x"], columns=["s\nt"]),
        lambda: cs.Logs(space, "a\nGuaranteed: yes", *rows),
    ):
        with pytest.raises(cs.DataError, match="holds a line break"):
            build()
    logs = cs.Logs(space, "\x1b[2Jward\u202e", *rows)
    assert r"\x1b[2Jward\u202e" in str(cs.inspect(logs))
    assert "\x1b" not in str(cs.inspect(logs))
    logs.save(tmp_path / "a\nb.parquet")
    (tmp_path / "a\nb.csv").write_text("episode,step,state,action,reward,terminated\n0,0,1,1,0,1\n")
    err = refused("inspect", tmp_path / "a\nb.csv")
    assert "holds a line break" in err
    assert err.count("\n") == 1


def test_a_warning_of_another_package_is_one_safe_line(run, easy, monkeypatch):
    """matplotlib names letters that a font lacks as they are."""

    def warn(*_, **__):
        warnings.warn(f"Glyph 27 ({HOSTILE}) missing", UserWarning, stacklevel=2)

    monkeypatch.setattr("causal_shaping.cli.inspect.check_probability", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run("inspect", easy / "bad.parquet")
    assert code == 0
    assert r"warning: Glyph 27 (\x1b[2J" in err
    assert escaped(err, keep="\n") == err


def test_a_source_of_bytes_that_are_no_text_is_refused(refused, easy):
    assert "holds bytes that are no text" in refused("inspect", f"a\udcffb={easy / 'bad.parquet'}")
