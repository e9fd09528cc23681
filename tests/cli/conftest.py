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


@pytest.fixture
def done(run):
    """Run a command that works; return its output."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    return call


@pytest.fixture
def quiet(run):
    """Run a command that works and has nothing to warn of; return its output."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        return out

    return call


@pytest.fixture
def refused(run):
    """Run a command that is refused before it prints anything; return its errors."""

    def call(*arguments):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        return err

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


@pytest.fixture(scope="module")
def files(easy):
    """Ceilings of these logs, and the counts that they were computed from."""
    counts = cs.count([easy / "bad.parquet", easy / "random.parquet"])
    counts.save(easy / "counts.parquet")
    cs.value_ceilings(counts, 20, -0.1).save(easy / "phi.parquet")
    return easy / "phi.parquet", easy / "counts.parquet"
