"""ICU-Sepsis (Choudhary, Gupta and Thomas 2024): 716 states, 25 actions, made of MIMIC-III, with a hidden sign.

The tables are read from the files of the package `icu-sepsis`, which is not imported: it would bring `gym`, which is no
longer maintained. Of a step, what happens to a patient is the quantile of its outcome, from the worst next state to the
best by V*: one number for all treatments, uniform. Its sign, whether the patient is about to do worse or better than
the median, is what clinicians see and the log does not hold. What a treatment does on average is as published.

- `sepsis`: the model.
- `clinicians`: who treats.
"""

from __future__ import annotations

import importlib.metadata
from functools import cache
from pathlib import Path

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import CausalShapingError, FileError
from causal_shaping.models.cmdp import TabularCMDP
from studies.field.demonstrators import AT_RANDOM, merits, tilted

PACKAGE, HORIZON = "icu-sepsis", 30
ENDS = ("death", "survival", "nowhere")
"""The last states; the third is never reached."""

TREATMENTS = tuple(f"fluids {fluids}, vasopressors {drugs}" for fluids in range(5) for drugs in range(5))

INSTALL = "pip install --no-deps icu-sepsis==2.0.1"  # it asks for gym, which nothing here needs


class MissingPackageError(CausalShapingError, ImportError):
    """A package that holds the data of a family and is not installed; the message says how to."""


def package_folder() -> Path:
    """Return the folder of the package, or say how to install it."""
    try:
        held = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingPackageError(f"{PACKAGE} is not installed. Install it: {INSTALL}") from error
    # Not by import: a script of the same name, which is run, would be found in place of the package.
    return Path(str(held.locate_file(PACKAGE.replace("-", "_"))))


@cache
def _published() -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return P[s, x, s'], the start, what clinicians do [s, x], and which actions are admissible [s, x]."""
    folder = package_folder() / "envs" / "assets"
    with np.load(folder / "dynamics.npz") as held:
        chances, start, habit = held["tx_mat"], held["d_0"], held["expert_policy"]
    _, *lines = (folder / "admissible_actions.txt").read_text("utf-8").splitlines()
    exists = np.zeros(habit.shape, dtype=bool)
    for s, line in enumerate(lines):
        exists[s, [int(x) for x in line.split()]] = True
    if chances.shape != (716, 25, 716) or len(lines) != 716:
        raise FileError(f"{folder} does not hold the tables of {PACKAGE} 2.0: install that version.")
    return chances, start, habit, exists


@cache
def sepsis() -> TabularCMDP:
    """Return ICU-Sepsis with the quantile of the outcome as hidden noise; survival pays 1."""
    chances, start, _, exists = _published()
    states, actions, _ = chances.shape
    acting = states - len(ENDS)
    order = np.argsort(_values(chances, exists), kind="stable")
    rank_of = chances[:, :, order].cumsum(axis=-1)
    cuts = [_cuts(rank_of[s, exists[s]], chances[s, exists[s]][:, order]) for s in range(acting)]
    noises = max(map(len, cuts)) - 1
    next_state = np.tile(np.arange(states)[:, None, None], (1, actions, noises))
    noise = np.eye(1, noises).repeat(states, axis=0)
    for s, cut in enumerate(cuts):
        noise[s] = 0.0
        noise[s, : len(cut) - 1] = np.diff(cut) / (cut[-1] - cut[0])
        middle = (cut[1:] + cut[:-1]) / 2
        for x in np.flatnonzero(exists[s]):
            next_state[s, x] = s
            last = chances[s, x, order].nonzero()[0][-1]
            places = np.minimum(np.searchsorted(rank_of[s, x], middle, side="right"), last)
            next_state[s, x, : len(middle)] = order[places]
    ends = np.arange(states) >= acting
    next_state[ends] = np.flatnonzero(ends)[:, None, None]
    survives = np.where(ends[:, None, None], False, next_state == acting + 1)
    labels = [*map(str, range(acting)), *ENDS]
    start = np.where(ends, 0.0, start)
    return TabularCMDP(
        next_state, survives.astype(float), noise, ends, start / start.sum(), labels, TREATMENTS, admissible=exists
    )


def _values(chances: FloatArray, exists: BoolArray) -> FloatArray:
    """Return the chance of survival under the best treatment: [states]."""
    values = np.zeros(len(chances))
    acting = len(chances) - len(ENDS)
    pays = (np.arange(len(chances)) == acting + 1).astype(float)
    for _ in range(HORIZON):
        q_values = np.where(exists, chances @ (values + pays), -np.inf)
        values = np.where(np.arange(len(chances)) < acting, q_values.max(axis=1), 0.0)
    return np.asarray(values + pays)


def _cuts(running: FloatArray, chances: FloatArray) -> FloatArray:
    """Return where the outcome of any treatment changes, with the median: rising numbers from 0 to 1."""
    found = running[chances > 0]
    return np.unique(np.round(np.concatenate([[0.0, 0.5, 1.0], np.clip(found, 0.0, 1.0)]), 12))


def clinicians(kind: str, gamma: float, rng: np.random.Generator) -> FloatArray:
    """Return clinicians as a table beta[s, u, x] of confounding `gamma`.

    Args:
        kind: "good", as published, and patients about to do worse get stronger treatment; "bad", the same, but the
            worse treatments are the more common; "hostile", who show the best treatment in patients about to do
            worse, and the others in those about to do better.
        gamma: how far the sign moves the odds of a treatment.
        rng: for whims: each treatment is also shifted at random.
    """
    _, _, habit, exists = _published()
    model = sepsis()
    q_values = np.where(exists, model.optimum(HORIZON).q_values[0], -np.inf)
    if kind == "bad":
        habit = habit * np.exp(-merits(q_values, exists))
    habit = np.where(exists, habit, 0.0)
    habit[habit.sum(axis=1) <= 0] = 1.0
    habit = np.where(exists, habit, 0.0) / np.where(exists, habit, 0.0).sum(axis=1, keepdims=True)
    habit = (1 - AT_RANDOM) * habit + AT_RANDOM * exists / exists.sum(axis=1, keepdims=True)
    if kind == "hostile":
        lean = np.where(np.arange(habit.shape[1]) == q_values.argmax(axis=1)[:, None], 1.0, -1.0)
    else:
        dose = np.add.outer(np.arange(5), np.arange(5)).ravel() / 8.0
        lean = dose + 0.5 * rng.normal(size=habit.shape)
    signs = tilted(habit, np.stack([lean, -lean], axis=1), gamma)  # about to do worse, about to do better
    worse = model.noise.cumsum(axis=1) <= 0.5 + 1e-9
    return np.where(worse[:, :, None], signs[:, :1], signs[:, 1:])
