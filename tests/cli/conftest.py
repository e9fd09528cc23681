"""A command, run as a user would, and logs to run it on."""

import sys

import pytest

import causal_shaping as cs
from causal_shaping.cli import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command; return exit code, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["causal-shaping", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Logs of two demonstrators of lavacross-easy, as files."""
    folder = tmp_path_factory.mktemp("easy")
    world = cs.load_world("lavacross-easy")
    for name in ("bad", "random"):
        world.collect(name, 20_000).save(folder / f"{name}.parquet")
        world.collect(name, 20_000).save(folder / f"{name}.csv")
    return folder
