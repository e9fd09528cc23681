"""Other ways to make values of logs, on the same partition of the states where they have one.

- `swept`: backwards over the steps, by the paper's formula or by naive fitted Q.
- `behaviour_values`: what followed in the logs.
- `binned`: the tabular method, on bins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping._compile import njit
from causal_shaping._progress import no_progress
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted import _kernels as kernels
from causal_shaping.fitted._forest import Partition
from causal_shaping.fitted._kernels import NOTHING, Rule, Tally
from causal_shaping.fitted._steps import sweep
from causal_shaping.fitted.settings import Settings
from studies.field.fitted.cases import Study


@njit()
def pooled_means(near: LongArray, leaves: IntArray, shown: Tally, q_values: FloatArray) -> None:
    """Write the mean target after each action among the rows of all sources; NOTHING for one that nobody took."""
    actions = q_values.shape[1]
    for k in near:
        mass, value = np.zeros(actions), np.zeros(actions)
        for leaf in leaves[k]:
            mass += shown.known[leaf].sum(axis=0)
            value += shown.worth[leaf].sum(axis=0)
        for x in range(actions):
            q_values[k, x] = value[x] / mass[x] if mass[x] > 0 else NOTHING


@njit()
def papers_bounds(
    near: LongArray, leaves: IntArray, shown: Tally, atoms: FloatArray, rule: Rule, free: float, q_values: FloatArray
) -> None:
    """Write the least over sources of P(x | s) times the mean target after x, and the rest worth `free`."""
    sources, actions = shown.taken.shape[1:]
    around = kernels.nothing_around(sources, actions, len(atoms), shown.best.shape[2])
    for k in near:
        kernels.gather(leaves[k], shown, rule, around)
        for x in range(actions):
            q_values[k, x] = (around.worth[:, x] + (1 - around.known[:, x]) * free).min()


class Other(Partition):
    """The library's partition with another backup: naive fitted Q, or the paper's formula."""

    def __init__(self, rows: Transitions, settings: Settings, naive: bool) -> None:
        super().__init__(rows, np.ones(len(rows)), settings, settings.seed)
        self.naive = naive

    def q_values(self, which: slice, rule: Rule, admissible: BoolArray, guess: bool) -> tuple[FloatArray, float]:
        """Return the values of all actions at some observations."""
        leaves = self.leaves[which]
        near = np.argsort(leaves[:, 0])  # leaf by leaf, so that what a leaf shows stays in the cache
        found = np.empty((len(leaves), len(self.rows.actions)))
        if self.naive:
            pooled_means(near, leaves, self._shown, found)
        else:
            best = max(float(self._before.max()), 0.0)  # of all states; terminal ones are worth 0
            free = self.settings.reward_bound + self.settings.discount * best
            papers_bounds(near, leaves, self._shown, self.atoms, rule, free, found)
        return found, 0.0


def swept(study: Study, points: npt.NDArray[np.float32] | None = None, *, naive: bool, **options: Any) -> FloatArray:
    """Return values of the first step at the study's points, or at others: naive fitted Q, or the paper's formula."""
    points = study.points if points is None else points
    rows = replace(study.rows, observations=np.concatenate([study.rows.observations, points]))
    some = np.arange(len(study.rows.observations), len(rows.observations))
    basics = {"reward_bound": study.reward_max, "horizon": study.horizon, "discount": study.discount}
    settings = Settings(**basics, members=1, **options).checked(rows.sources)
    model = Other(rows, settings, naive)
    # As in best guesses, no later value of naive fitted Q need be below an earlier one.
    return sweep(model, rows, settings, some, naive, progress=no_progress, what="").values[-1]


def returns_of(rows: Transitions, discount: float) -> FloatArray:
    """Return the discounted return from each row to the end of its episode, as it was logged."""
    found = np.array(rows.reward)
    for k in range(len(rows) - 2, -1, -1):
        if rows.episode[k] == rows.episode[k + 1]:
            found[k] += discount * found[k + 1]
    return found


def behaviour_values(study: Study, points: npt.NDArray[np.float32] | None = None) -> FloatArray:
    """Return the logged returns, regressed on the state."""
    from sklearn.ensemble import ExtraTreesRegressor

    seen = study.rows.observations[study.rows.state]
    forest = ExtraTreesRegressor(8, min_samples_leaf=60, random_state=0).fit(
        seen, returns_of(study.rows, study.discount)
    )
    return np.asarray(forest.predict(study.points if points is None else points))


def binned(study: Study, bins: int) -> FloatArray:
    """Return the tabular ceilings of bins of equal width; vacuous in bins that no log holds."""
    rows = study.rows
    low, high = rows.observations.min(axis=0), rows.observations.max(axis=0)
    edges = np.linspace(low, high, bins + 1)[1:-1]
    cut = {name: cs.Bins(edges=tuple(edges[:, i])) for i, name in enumerate(rows.columns)}
    opened = [cs.open_logs(table, state=list(rows.columns), bins=cut) for table in study.tables]
    ceilings = cs.value_ceilings(cs.count(opened), **study.basics)
    labels = zip(*(cut[name](study.points[:, i]).tolist() for i, name in enumerate(rows.columns)), strict=True)
    known = {state: k for k, state in enumerate(ceilings.space.states)}
    places = np.array([known.get(label, -1) for label in labels])
    vacuous = Settings(study.reward_max, study.horizon, study.discount).vacuous(study.horizon)
    return np.where(places < 0, vacuous, ceilings.values[0][places])
