"""Other ways to make values of logs, on the same partition of the states where they have one.

- `swept`: backwards over the steps, with our bound, that by one source, the paper's formula, or none at all.
- `behaviour_values`: what followed in the logs.
- `sequel`: a network of the kind that the paper's authors train in their sequel.
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
from causal_shaping.fitted._kernels import NOTHING, Around, Rule, Tally
from causal_shaping.fitted._steps import sweep
from causal_shaping.fitted.settings import Settings
from studies.field.fitted.cases import Study

OURS, SOURCE, PAPER, NAIVE = range(4)


@njit()
def _free(around: Around, before: float, rule: Rule) -> float:
    """Return what free mass is worth by what followed the state in some source."""
    found = around.best[:, 0].max()
    return rule.vacuous if found == NOTHING else min(before + found, rule.vacuous)


@njit()
def _by_source(around: Around, x: int, free: float) -> float:
    """Return the least of the bounds by one source: P(x | s) times the mean target, and the rest worth `free`."""
    found = np.inf
    for i in range(len(around.taken)):
        found = min(found, around.worth[i, x] + (1 - around.known[i, x]) * free)
    return found


@njit()
def _pooled(leaves: IntArray, shown: Tally, q_values: FloatArray) -> None:
    """Write the mean target after each action among the rows of all sources; NOTHING for one that nobody took."""
    actions = len(q_values)
    mass, value = np.zeros(actions), np.zeros(actions)
    for leaf in leaves:
        mass += shown.known[leaf].sum(axis=0)
        value += shown.worth[leaf].sum(axis=0)
    for x in range(actions):
        q_values[x] = value[x] / mass[x] if mass[x] > 0 else NOTHING


@njit()
def back_up(
    near: LongArray,
    leaves: IntArray,
    before: FloatArray,
    shown: Tally,
    atoms: FloatArray,
    rule: Rule,
    kind: int,
    unknown: float,
    q_values: FloatArray,
) -> None:
    """Write the values of all actions at every observation, in the order `near`; the paper's free mass is `unknown`."""
    sources, actions = shown.taken.shape[1:]
    around = kernels.nothing_around(sources, actions, len(atoms), shown.best.shape[2])
    for k in near:
        if kind == NAIVE:
            _pooled(leaves[k], shown, q_values[k])
            continue
        kernels.gather(leaves[k], shown, rule, around)
        free = unknown if kind == PAPER else _free(around, before[k], rule)
        for x in range(actions):
            if kind != PAPER and around.tried[x] <= rule.rarest_action:
                q_values[k, x] = rule.vacuous
            else:
                q_values[k, x] = _by_source(around, x, free)


class Other(Partition):
    """The library's partition with another backup."""

    def __init__(self, rows: Transitions, weight: FloatArray, settings: Settings, seed: int, kind: int) -> None:
        super().__init__(rows, weight, settings, seed)
        self.kind = kind

    def q_values(self, which: slice, rule: Rule, admissible: BoolArray, guess: bool) -> tuple[FloatArray, float]:
        """Return the values of all actions at some observations."""
        if self.kind == OURS:
            return super().q_values(which, rule, admissible, guess)
        leaves = self.leaves[which]
        near = np.argsort(leaves[:, 0])  # leaf by leaf, so that what a leaf shows stays in the cache
        found = np.empty((len(leaves), len(self.rows.actions)))
        best = max(float(self._before.max()), 0.0)  # of all states; terminal ones are worth 0
        unknown = self.settings.reward_bound + self.settings.discount * best
        back_up(near, leaves, self._before[which], self._shown, self.atoms, rule, self.kind, unknown, found)
        return found, 0.0


def swept(study: Study, kind: int, points: npt.NDArray[np.float32] | None = None, **options: Any) -> FloatArray:
    """Return values of the first step at the study's points, or at others, by one of the backups."""
    points = study.points if points is None else points
    rows = replace(study.rows, observations=np.concatenate([study.rows.observations, points]))
    some = np.arange(len(study.rows.observations), len(rows.observations))
    basics = {"reward_bound": study.reward_max, "horizon": study.horizon, "discount": study.discount}
    settings = Settings(**basics, members=1, **options).checked(rows.sources)
    model = Other(rows, np.ones(len(rows)), settings, settings.seed, kind)
    free = kind == NAIVE  # as in best guesses: no later value need be below an earlier one
    return sweep(model, rows, settings, some, free, progress=no_progress, what="").values[-1]


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


ROUND_STEPS, FIRST_STEPS, BATCH, RATE, HIDDEN = 150, 1_500, 1_024, 1e-3, 64


def sequel(study: Study, points: npt.NDArray[np.float32] | None = None, seed: int = 0) -> FloatArray:
    """Return values of a network: r + discount * V(s') where the behaviour acts so, else the best of the batch.

    The target of a row is pi(x | s) (r + discount V(s')) + (1 - pi(x | s)) b: pi is the behaviour's density, a network
    fitted to the logged actions of all sources, and b the best r + discount V(s') of the batch. No maximum over
    actions is taken. As many rounds as an episode has steps, each from the network of the round before.
    """
    import torch

    rows, points = study.rows, study.points if points is None else points
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    everything = torch.as_tensor(np.array(rows.observations, dtype=np.float32))
    centre, scale = everything.mean(0), everything.std(0).clamp(min=1e-6)
    state, after = ((everything[np.maximum(which, 0)] - centre) / scale for which in (rows.state, rows.next_state))
    action = torch.as_tensor(np.array(rows.action, dtype=np.int64))
    reward = torch.as_tensor(np.array(rows.reward, dtype=np.float32))
    goes_on = torch.as_tensor((~rows.terminated & (rows.next_state >= 0)).astype(np.float32))
    worth = float(reward.std().clamp(min=1e-6))  # rewards of any scale fit with one rate

    def network(outputs: int) -> Any:
        layers = [torch.nn.Linear(state.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN)]
        return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(HIDDEN, outputs))

    def train(model: Any, steps: int, loss_of: Any) -> None:
        optimiser = torch.optim.Adam(model.parameters(), RATE)
        for _ in range(steps):
            batch = torch.as_tensor(rng.integers(len(rows), size=min(BATCH, len(rows))))
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    behaviour = network(len(rows.actions))
    train(behaviour, FIRST_STEPS, lambda model, b: torch.nn.functional.cross_entropy(model(state[b]), action[b]))
    with torch.no_grad():
        density = behaviour(state).softmax(1).gather(1, action[:, None])[:, 0]
    values, before = network(1), torch.zeros(len(rows))

    def loss(model: Any, b: Any) -> Any:
        backed = reward[b] / worth + study.discount * before[b]
        target = density[b] * backed + (1 - density[b]) * backed.max()
        return torch.nn.functional.mse_loss(model(state[b])[:, 0], target)

    for step in range(study.horizon):
        train(values, ROUND_STEPS if step else FIRST_STEPS, loss)
        with torch.no_grad():
            before = values(after)[:, 0] * goes_on
    with torch.no_grad():
        found = values((torch.as_tensor(np.array(points, dtype=np.float32)) - centre) / scale)[:, 0]
    return found.numpy().astype(np.float64) * worth


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
