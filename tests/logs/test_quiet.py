"""Commands end without a word from the engine, whatever became of the logs."""

import subprocess
import sys

import pytest

import causal_shaping as cs

HEADER = "episode,step,state,action,reward\n"


def good(folder):
    cs.load_world("lavacross-easy").collect("good", 300).save(folder / "a.parquet")
    return folder / "a.parquet"


def bad_row(folder):
    (folder / "a.csv").write_text(HEADER + "1,0,a,go,1\n1,0,a,go,1\n")
    return folder / "a.csv"


def bad_bytes(folder):
    path = good(folder)
    content = bytearray(path.read_bytes())
    content[100:400] = bytes(300)
    path.write_bytes(bytes(content))
    return path


COMMAND = "from causal_shaping.cli import command; command()"
WITH_TORCH = (  # torch, compiled code and DuckDB in one process
    "import torch, causal_shaping as cs; cs.count(cs.load_world('lavacross-easy').collect('good', 100)); " + COMMAND
)


@pytest.mark.parametrize("program", [COMMAND, WITH_TORCH])
@pytest.mark.parametrize(("make", "code"), [(good, 0), (bad_row, 2), (bad_bytes, 2)])
def test_a_command_ends_without_leaks_being_reported(tmp_path, make, code, program):
    if "torch" in program:
        pytest.importorskip("torch")
    command = [sys.executable, "-c", program, "inspect", str(make(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "nanobind" not in done.stderr + done.stdout
    assert "leaked" not in done.stderr
    assert ("Coverage" in done.stdout) == (code == 0)  # what was printed reaches its reader
    if code:
        assert done.stderr.startswith("error: ")
        assert "/a." in done.stderr  # it was read
        assert len(done.stderr.strip().splitlines()) == 1
