"""Progress on a terminal: it begins at once, and says when a compiler is why nothing else happens."""

import io
import sys

import numba
import pytest

from causal_shaping.cli._terminal import COMPILING, progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def watch(monkeypatch):
    """Return the error stream, as if a person looked at it from now on."""

    def call():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        return stream

    return call


def compiled_now():
    """Compile a function that no cache holds."""
    return numba.njit(lambda x: x + 1)(1)


def test_the_progress_line_says_that_it_compiles(watch):
    terminal = watch()
    with progress_bar() as progress:
        progress(0, 2, "Bounding values")
        assert compiled_now() == 2
    assert f"Bounding values ({COMPILING})" in terminal.getvalue()


def test_it_says_so_before_the_first_report_of_progress_too(watch):
    terminal = watch()
    with progress_bar():
        compiled_now()
    assert f"Starting ({COMPILING})" in terminal.getvalue()


def test_it_says_nothing_of_compiling_where_nothing_is_compiled(watch):
    terminal = watch()
    add = numba.njit(lambda x: x + 2)
    add(1)
    with progress_bar() as progress:
        progress(0, 2, "Bounding values")
        assert add(1) == 3
    assert "Bounding values" in terminal.getvalue()
    assert COMPILING not in terminal.getvalue()


def test_the_next_stage_does_not_say_so_any_more(watch):
    terminal = watch()
    with progress_bar() as progress:
        progress(0, 2, "Bounding values")
        compiled_now()
        progress(1, 2, "Writing")
    assert "Writing" in terminal.getvalue()
    assert f"Writing ({COMPILING})" not in terminal.getvalue()


def test_through_a_pipe_there_is_no_progress(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar() as progress:
        progress(0, 2, "Bounding values")
        compiled_now()
    assert stream.getvalue() == ""
