"""What commands refuse to write, before anything is computed; and that they end cleanly, whatever ends them."""

import csv
import os
import subprocess
import sys

import pytest

import causal_shaping as cs

BOUNDED = ("--horizon", 20, "--reward-max", 0.1)


@pytest.fixture(scope="module")
def started(easy):
    """A potential and counts, which other commands read."""
    counts = cs.count([easy / "bad.parquet", easy / "random.parquet"])
    counts.save(easy / "counts.parquet")
    cs.value_ceilings(counts, 20, 0.1).save(easy / "phi.parquet")
    return easy


@pytest.mark.parametrize(
    "arguments",
    [
        ["ceilings", "{0}", "{1}", *BOUNDED, "-o", "{0}"],
        ["ceilings", "{0}", "{1}", *BOUNDED, "--counts", "./{1}"],
        ["ceilings", "a={0},{1}", *BOUNDED, "-o", "{1}"],
        ["inspect", "a={0}", "-o", "link.parquet"],
        ["sensitivity", "{0}", *BOUNDED, "--reward-min", -1.1, "-o", "hard.parquet"],
        ["worth", "{0}", *BOUNDED, "-o", "{0}"],
    ],
)
def test_what_is_read_is_never_written(run, started, monkeypatch, arguments):
    monkeypatch.chdir(started)
    for name, make in (("link.parquet", os.symlink), ("hard.parquet", os.link)):
        if not os.path.exists(name):
            make("bad.parquet", name)
    before = {path.name: path.read_bytes() for path in started.iterdir()}
    code, out, err = run(*(str(part).format("bad.parquet", "random.parquet") for part in arguments))
    assert code == 2
    assert "is to be written, but is read, too" in err
    assert out == ""
    assert {path.name: path.read_bytes() for path in started.iterdir()} == before


@pytest.mark.parametrize("other", ["x.parquet", "./x.parquet", "folder/../x.parquet"])
def test_two_outputs_are_two_files(run, started, tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    code, _, err = run("ceilings", started / "bad.parquet", *BOUNDED, "-o", "x.parquet", "--counts", other)
    assert code == 2
    assert "is written already" in err
    assert not (tmp_path / "x.parquet").exists()


def test_folders_that_cannot_be_written_to_are_noticed_before_anything_is_read(run, tmp_path):
    for arguments in (
        ("inspect", "no.parquet", "-o", "/proc/self/x.csv"),
        ("worth", "no.parquet", *BOUNDED, "-o", "/proc/self/x.csv"),
        ("fit", "no.parquet", *BOUNDED, "-o", "/proc/self/x"),
        ("train", "lavacross-easy", "--potential", "no.parquet", "-o", "/proc/self/x"),
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert "cannot be written" in err, arguments


def test_a_figure_of_a_fit_does_not_lie_in_its_folder(run, tmp_path):
    code, _, err = run("fit", "no.parquet", *BOUNDED, "-o", tmp_path / "phi", "--png", tmp_path / "phi.png" / "x.png")
    assert "does not exist" in err
    (tmp_path / "phi").mkdir()
    code, _, err = run("fit", "no.parquet", *BOUNDED, "-o", tmp_path / "phi", "--png", tmp_path / "phi" / "x.png")
    assert code == 2
    assert "Draw it into another folder" in err


def test_nothing_is_written_if_one_of_several_outputs_fails(run, started, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    logs = (started / "bad.parquet", started / "random.parquet")
    code, _, err = run("ceilings", *logs, *BOUNDED, "-o", tmp_path / "x.parquet", "--png", tmp_path / "x.png")
    assert code == 2
    assert "x.png cannot be written: No space left on device" in err
    assert not list(tmp_path.iterdir())


def test_formulas_in_labels_stay_text_in_tables_and_logs_keep_their_labels(run, tmp_path):
    rows = "episode,step,state,action,reward,terminated\n" + "".join(
        f"{i},0,=1+1,{'xy'[i % 2]},{i % 2},1\n" for i in range(40)
    )
    (tmp_path / "a.csv").write_text(rows)
    bounds = ("--horizon", 1, "--reward-max", 1, "--reward-min", 0, "--plug-in")
    code, _, err = run("sensitivity", tmp_path / "a.csv", *bounds, "-o", tmp_path / "x.csv")
    assert code == 0, err
    with (tmp_path / "x.csv").open(newline="") as file:
        assert {row["state"] for row in csv.DictReader(file)} == {"'=1+1"}
    logs = cs.read_logs(tmp_path / "a.csv")
    logs.save(tmp_path / "b.csv")
    assert cs.read_logs(tmp_path / "b.csv").space.states == logs.space.states == ("=1+1",)


def test_a_link_is_kept_and_its_file_written(run, started, tmp_path):
    (tmp_path / "link.parquet").symlink_to("real.parquet")
    logs = (started / "bad.parquet", started / "random.parquet")
    code, _, err = run("ceilings", *logs, *BOUNDED, "-o", tmp_path / "link.parquet")
    assert code == 0, err
    assert (tmp_path / "link.parquet").is_symlink()
    assert cs.load_potential(tmp_path / "real.parquet") is not None


INTERRUPTED_IMPORT = """
import runpy, sys, builtins
original = builtins.__import__
def stop(name, *rest, **more):
    if name.startswith({0!r}):
        builtins.__import__ = original
        raise KeyboardInterrupt
    return original(name, *rest, **more)
builtins.__import__ = stop
sys.argv = ["-m", "worlds"]
runpy.run_module("causal_shaping", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["gymnasium", "numpy", "typer", "causal_shaping.cli", "causal_shaping.worlds"])
def test_an_interrupt_while_a_command_starts_ends_it_with_130_and_no_traceback(module):
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT.format(module)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 130
    assert "Traceback" not in ran.stderr


def test_an_interrupt_while_a_command_works_ends_it_alike(run, started, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("causal_shaping.logs.count", stop)
    code, _, err = run("ceilings", started / "bad.parquet", *BOUNDED)
    assert code == 130
    assert "Traceback" not in err


def collected(path, streams=""):
    """Return the file that a process writes, with some of its streams closed."""
    command = f"'{sys.executable}' -m causal_shaping collect lavacross-easy --demonstrator good --steps 50 -o"
    assert subprocess.run(["/bin/sh", "-c", f"{command} '{path}' {streams}"]).returncode == 0
    return path.read_bytes()


@pytest.fixture(scope="module")
def with_all_streams(tmp_path_factory):
    return collected(tmp_path_factory.mktemp("streams") / "all.csv")


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_nothing_and_do_not_flow_into_files(with_all_streams, tmp_path, closed):
    assert collected(tmp_path / "some.csv", closed) == with_all_streams


@pytest.mark.parametrize(
    ("error", "message"), [(OSError(5, "Input/output error", "disk"), "disk: Input/output error."), (OSError("x"), "x")]
)
def test_an_error_of_the_system_is_one_line(run, started, monkeypatch, error, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("causal_shaping.logs.count", fail)
    code, _, err = run("ceilings", started / "bad.parquet", *BOUNDED)
    assert (code, err) == (2, f"error: {message}\n")


def test_training_from_counts_in_an_environment_needs_the_largest_reward(run, started, tmp_path):
    options = ("--counts", started / "counts.parquet", "-o", tmp_path / "runs")
    code, _, err = run("train", "FrozenLake-v1", *options)
    assert code == 2
    assert "Give --reward-max, the most that a step can pay" in err
    code, _, err = run("train", "lavacross-easy", *options, "--support", "magic")
    assert code == 2
    assert "--support is 'magic'; use 'observed' or" in err
