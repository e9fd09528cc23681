"""Packages of others, in environments of their own that are made on first use; without a network they are left out."""

from __future__ import annotations

import subprocess
import tempfile
import venv
from pathlib import Path

import numpy as np

from causal_shaping.data.arrays import FloatArray
from studies.field.fitted.cases import Study
from studies.parts import WORK

PACKAGES = {"causalrl": ["causalrl==3.0.0", "scikit-learn"]}
ROWS = 30_000
"""Logged steps of all sources that `causalrl` gets: it fits a forest for each step, action, and side."""


def python_of(name: str) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is not there."""
    folder = WORK / "peers" / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        (folder / "ready").touch()
    return python


def causalrl(study: Study) -> tuple[FloatArray, float]:
    """Return the upper envelope of `causalrl`'s bounded fitted Q-iteration, and its CPU seconds."""
    rows, rng = study.rows, np.random.default_rng(0)
    usable = np.flatnonzero(rows.terminated | (rows.next_state >= 0))
    some = np.sort(rng.choice(usable, min(ROWS, len(usable)), replace=False))
    arrays = {
        "states": rows.observations[rows.state[some]],
        "next_states": rows.observations[np.maximum(rows.next_state[some], 0)],
        "actions": rows.action[some],
        "rewards": rows.reward[some],
        "terminated": rows.terminated[some],
        "points": study.points,
    }
    about = {"horizon": study.horizon, "low": study.reward_min, "high": study.reward_max, "count": len(rows.actions)}
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **arrays, **about)
        script = Path(__file__).with_name("_causalrl.py")
        ran = subprocess.run([python_of("causalrl"), script, given, found], capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"causalrl failed: {ran.stderr[-2_000:]}")
        with np.load(found) as held:
            return held["values"], float(held["seconds"])
