"""Names and commands of version 0.2 that are gone say what replaces them."""

import importlib
import re
from pathlib import Path

import pytest

import causal_shaping as cs
from causal_shaping._removed import REMOVED, REMOVED_COMMANDS

PAGE = Path(__file__).parents[1] / "docs" / "from-0.2-to-0.3.md"
GONE = "Use `something` instead."


def section(title):
    """Return the first cell of each row of the tables under a heading of the page."""
    text = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("name", ["gone", "bounds.gone"])
def test_a_removed_name_says_what_replaces_it_however_it_is_asked_for(monkeypatch, name):
    monkeypatch.setitem(REMOVED, name, GONE)
    package, _, last = f"causal_shaping.{name}".rpartition(".")
    with pytest.raises(ImportError, match=re.escape(GONE)):
        exec(f"from {package} import {last}")  # noqa: S102
    with pytest.raises(ImportError, match=re.escape(GONE)):
        importlib.import_module(f"causal_shaping.{name}")
    assert not hasattr(importlib.import_module(package), last)


def test_a_removed_name_of_the_package_raises_an_attribute_error(monkeypatch):
    monkeypatch.setitem(REMOVED, "gone", GONE)
    with pytest.raises(AttributeError, match=re.escape(GONE)):
        cs.gone  # noqa: B018


def test_other_names_that_do_not_exist_are_what_python_says():
    with pytest.raises(AttributeError, match="has no attribute 'never_there'"):
        cs.never_there  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'never_there'"):
        from causal_shaping import never_there  # noqa: F401


@pytest.mark.parametrize("name", REMOVED)
def test_every_removed_name_says_what_replaces_it(name):
    with pytest.raises(ImportError, match=re.escape(REMOVED[name])):
        importlib.import_module(f"causal_shaping.{name}")


def test_nothing_removed_is_there():
    assert not REMOVED.keys() & set(cs.__all__)


def test_the_page_lists_what_was_removed():
    assert {name.removeprefix("cs.") for name in section("Names")} >= REMOVED.keys()
    assert {name.split()[1] for name in section("Commands")} >= REMOVED_COMMANDS.keys()


@pytest.mark.parametrize("options", [[], ["--help"], ["lavacross-easy", "--no-such", "option"]])
@pytest.mark.parametrize("name", REMOVED_COMMANDS)
def test_a_removed_command_says_what_replaces_it(monkeypatch, capsys, name, options):
    from causal_shaping.cli import main

    monkeypatch.setattr("sys.argv", ["causal-shaping", name, *options])
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert f"causal-shaping {name} is {REMOVED_COMMANDS[name]}" in err
