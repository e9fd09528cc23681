"""What commands refuse to write, before anything is computed; and that they end cleanly, whatever ends them."""

import os
import subprocess
import sys

import pytest

BOUNDED = ("--horizon", 20, "--reward-max", 0.1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ceilings", "{0}", "{1}", *BOUNDED, "-o", "{0}"],
        ["ceilings", "{0}", "{1}", *BOUNDED, "--counts", "./{1}"],
        ["ceilings", "a={0},{1}", *BOUNDED, "-o", "{1}"],
        ["inspect", "a={0}", "-o", "link.parquet"],
        ["inspect", "a={0}", "-o", "folder/{0}"],
        ["sensitivity", "{0}", *BOUNDED, "--reward-min", -1.1, "-o", "hard.parquet"],
        ["worth", "{0}", *BOUNDED, "-o", "{0}"],
    ],
)
def test_what_is_read_is_never_written(run, easy, monkeypatch, arguments):
    monkeypatch.chdir(easy)
    if not os.path.exists("folder"):
        os.symlink("bad.parquet", "link.parquet")
        os.link("bad.parquet", "hard.parquet")
        os.symlink(".", "folder")
    before = {path.name: path.read_bytes() for path in easy.glob("*.*")}
    code, out, err = run(*(str(part).format("bad.parquet", "random.parquet") for part in arguments))
    assert code == 2
    assert "is to be written, but is read, too" in err
    assert out == ""
    assert {path.name: path.read_bytes() for path in easy.glob("*.*")} == before


@pytest.mark.parametrize("other", ["x.parquet", "./x.parquet", "folder/../x.parquet"])
def test_two_outputs_are_two_files(refused, easy, tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    options = (*BOUNDED, "-o", "x.parquet", "--counts", other)
    assert "is written already" in refused("ceilings", easy / "bad.parquet", *options)
    assert not (tmp_path / "x.parquet").exists()


def test_folders_that_cannot_be_written_to_are_noticed_before_anything_is_read(refused, tmp_path):
    for arguments in (
        ("inspect", "no.parquet", "-o", "/proc/self/x.csv"),
        ("worth", "no.parquet", *BOUNDED, "--folder", "/proc/self/x"),
        ("fit", "no.parquet", *BOUNDED, "-o", "/proc/self/x"),
        ("train", "lavacross-easy", "--potential", "no.parquet", "-o", "/proc/self/x"),
    ):
        err = refused(*arguments)
        assert "cannot be written" in err, arguments


def test_a_figure_of_a_fit_does_not_lie_in_its_folder(refused, tmp_path):
    options = ("fit", "no.parquet", *BOUNDED, "-o", tmp_path / "phi", "--png")
    assert "does not exist" in refused(*options, tmp_path / "phi.png" / "x.png")
    (tmp_path / "phi").mkdir()
    assert "Draw it into another folder" in refused(*options, tmp_path / "phi" / "x.png")


def test_nothing_is_written_if_one_of_several_outputs_fails(refused, easy, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    (tmp_path / "x.parquet").write_text("old")
    logs = (easy / "bad.parquet", easy / "random.parquet")
    assert "x.png cannot be written: No space left on device" in refused(
        "ceilings", *logs, *BOUNDED, "-o", tmp_path / "x.parquet", "--png", tmp_path / "x.png"
    )
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


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
    program = [sys.executable, "-c", INTERRUPTED_IMPORT.format(module)]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ran.returncode == 130
    assert "Traceback" not in ran.stderr


def test_an_interrupt_while_a_command_works_ends_it_alike(run, easy, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("causal_shaping.logs.count", stop)
    code, _, err = run("ceilings", easy / "bad.parquet", *BOUNDED)
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
def test_an_error_of_the_system_is_one_line(run, easy, monkeypatch, error, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("causal_shaping.logs.count", fail)
    code, _, err = run("ceilings", easy / "bad.parquet", *BOUNDED)
    assert (code, err) == (2, f"error: {message}\n")


def test_training_from_counts_in_an_environment_needs_the_largest_reward(refused, files, tmp_path):
    options = ("--counts", files[1], "-o", tmp_path / "runs")
    assert "Give --reward-max, the most that a step can pay" in refused("train", "FrozenLake-v1", *options)
    assert "--support is 'magic'" in refused("train", "lavacross-easy", *options, "--support", "magic")
