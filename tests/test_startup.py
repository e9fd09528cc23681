"""What starting loads, and that it works where nothing can be written; `studies/speed/startup.py` measures the time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import causal_shaping

PACKAGE = Path(causal_shaping.__file__).parent
FORBIDDEN = ("matplotlib", "torch", "minigrid", "pandas", "jinja2", "scipy.stats", "joblib")
COMMAND = """
import sys
from causal_shaping.cli import main
sys.argv = ["causal-shaping", "{}"]
try:
    main()
except SystemExit:
    pass
"""
CEILINGS = """
import causal_shaping as cs
world = cs.load_world("walking-robot")
counts = world.model.observe(world.demonstrators["competent"], "competent")
print(cs.value_ceilings(counts, 5, 1.0, support="any"))
"""
LITTLE = """
import causal_shaping as cs
for name in cs.__all__:
    getattr(cs, name)  # all that is compiled on first use
print(cs.load_world("walking-robot").collect("competent", 20))
"""


def run(code, **environment):
    """Run code in a new process; return what it printed and its errors."""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import causal_shaping", id="import"),
        pytest.param(COMMAND.format("--version"), id="version"),
        pytest.param(COMMAND.format("--help"), id="help"),
        pytest.param(CEILINGS, id="ceilings"),
    ],
)
def test_nothing_that_only_some_need_is_loaded(code):
    out, _ = run(code + f"\nimport sys\nprint('loaded:', *(name for name in {FORBIDDEN} if name in sys.modules))")
    assert out.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_a_command_that_computes_nothing_loads_nothing_to_compute_with(argument):
    end = "\nprint('loaded:', *(name for name in ('causal_shaping.data', 'numba', 'pyarrow') if name in sys.modules))"
    out, _ = run(COMMAND.format(argument) + end)
    assert out.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("given", [True, False], ids=["a folder is given", "none is given"])
def test_without_a_folder_that_can_be_written_to_all_starts_with_one_warning(tmp_path, given):
    copy = tmp_path / "causal_shaping"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        (folder / "__pycache__").write_text("a file where the folder of compiled code would be")
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file, so that there can be no folder in it")
    out, errors = run(
        f"import causal_shaping; assert causal_shaping.__file__.startswith({str(tmp_path)!r})" + LITTLE,
        PYTHONPATH=str(tmp_path),
        HOME=str(nowhere),
        XDG_CACHE_HOME=str(nowhere),
        NUMBA_CACHE_DIR=str(nowhere / "numba") if given else "",
        PYTHONWARNINGS="default::RuntimeWarning",
    )
    assert "20 steps" in out
    assert errors.count("No folder can be written to for compiled code") == 1
