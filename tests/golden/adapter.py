"""The one place in which golden results meet the package: plain values in, plain values out.

Only public names are called. Everything is returned in the order of its labels as text, so that
the order in which the package holds states, actions and sources does not matter.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import causal_shaping as cs

REFUSED = "refused"


def _order(labels) -> np.ndarray:
    """Return the places of labels in the order of their text."""
    return np.array(sorted(range(len(labels)), key=lambda i: str(labels[i])), dtype=int)


def count(path: Path | list[Path], columns: dict[str, Any] | None = None, **options: Any):
    """Return the counts of a file, with its columns' meaning; a bin's edges come as a list."""
    columns = dict(columns or {})
    bins = columns.pop("bins", None)
    if bins:
        columns["bins"] = {name: cs.Bins(edges=edges) for name, edges in bins.items()}
    if "reward_bins" in options:
        options["reward_bins"] = cs.Bins(edges=options["reward_bins"])
    sources = columns.pop("sources", [columns.pop("source", None)])
    return cs.count([cs.open_logs(path, source=one, **columns) for one in sources], **options)


def outcomes(counts) -> list[tuple]:
    """Return the outcomes as rows of labels and numbers, sorted."""
    space = counts.space
    rows = []
    for i in range(len(counts)):
        after = counts.next_state[i]
        step = -1 if counts.step is None else int(counts.step[i])
        rows.append(
            (
                counts.sources[counts.source[i]],
                step,
                str(space.states[counts.state[i]]),
                str(space.actions[counts.action[i]]),
                "" if after < 0 else str(space.states[after]),
                bool(counts.terminated[i]),
                float(counts.reward_min[i]),
                float(counts.reward_max[i]),
                float(counts.reward_sum[i]),
                float(counts.n[i]),
            )
        )
    return sorted(rows)


def _own_support(counts) -> Callable[[Any, Any], Any]:
    """Return a support of one's own: the successors whose labels have an even place, and an end."""
    states = [counts.space.states[i] for i in _order(counts.space.states)]
    seen = {(int(s), int(a)) for s, a in zip(counts.state, counts.next_state, strict=True) if a >= 0}
    place = {label: i for i, label in enumerate(counts.space.states)}
    follow = {
        s: [t for i, t in enumerate(states) if i % 2 == 0 or (place[s], place[t]) in seen] + [None] for s in states
    }
    return lambda state, action: follow[state]


def _refusing(compute: Callable[[], Any]) -> Any:
    """Return what is computed, or `REFUSED` where the package says that the logs contradict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compute()
        except cs.ContradictionError:
            return REFUSED


def bound(counts, side: str, horizon: int, reward: float, support: str, gamma, **options: Any):
    """Return ceilings or floors, or `REFUSED`."""
    chosen = _own_support(counts) if support == "own" else support
    function = {"ceilings": cs.value_ceilings, "floors": cs.value_floors}[side]
    return _refusing(lambda: function(counts, horizon, reward, support=chosen, confounding=gamma, **options))


def arrays(bounds) -> dict[str, np.ndarray]:
    """Return values [steps, states] and Q-values [steps, states, actions] in the order of labels."""
    s, x = _order(bounds.space.states), _order(bounds.space.actions)
    values, q_values = np.array(bounds.values), np.array(bounds.q_values)
    if values.ndim == 1:
        values, q_values = values[None], q_values[None]
    return {"values": values[:, s], "q_values": q_values[:, s][:, :, x]}


def mask(ceilings, floors, *, plug_in: bool) -> np.ndarray:
    """Return which actions are provably suboptimal: bool [steps, states, actions]."""
    result = _refusing(lambda: cs.provably_suboptimal(ceilings, floors, plug_in=plug_in))
    if isinstance(result, str):
        return np.zeros((0, 0, 0), dtype=bool)
    s, x = _order(ceilings.space.states), _order(ceilings.space.actions)
    result = np.array(result)
    result = result[None] if result.ndim == 2 else result
    return result[:, s][:, :, x]


def sensitivity(counts, horizon: int, high: float, low: float, **options: Any) -> dict[str, np.ndarray]:
    """Return how bounds move with confounding."""
    found = _refusing(lambda: cs.sensitivity(counts, horizon, high, low, **options))
    if isinstance(found, str):
        return {REFUSED: np.ones(1)}
    s, x = _order(found.space.states), _order(found.space.actions)
    place = np.argsort(x)
    return {
        "ceilings": np.array(found.ceilings)[:, s],
        "floors": np.array(found.floors)[:, s],
        "suboptimal": np.array(found.suboptimal),
        "singled_out": np.array(found.singled_out)[:, s].astype(float),
        "breakdown": np.array(found.breakdown)[s],
        "best_action": place[np.array(found.best_action)][s].astype(float),
        "possible": np.array([one is None for one in found.contradictions], dtype=float),
    }


def coverage(counts) -> dict[str, np.ndarray]:
    """Return what each source covers, and what no visit has shown yet."""
    s = _order(counts.space.states)
    result = {
        "unseen_mass": np.array(cs.unseen_mass(counts))[s],
        "unseen_limit": np.array(cs.unseen_limit(counts))[s],
        "rarest_seen": np.array(cs.rarest_seen(counts))[s],
    }
    for one in cs.coverage(counts):
        numbers = (
            one.steps, one.states, len(one.few_visits), len(one.unseen_states), len(one.untried_actions),
            one.action_share,
        )  # fmt: skip
        result[f"source {one.source}"] = np.array(numbers, dtype=float)
    return result


def contradictions(counts) -> dict[str, np.ndarray]:
    """Return the contradicting pairs: the p-value and the smallest Gamma of each."""
    result = {}
    for one in cs.contradictions(counts):
        gamma = math.nan if one.confounding is None else one.confounding
        pair = f"{one.first}|{one.second}|{one.state}|{one.action}|{-1 if one.step is None else one.step}"
        result[pair] = np.array([one.p_value, gamma])
    return result


class Replay(gym.Env):
    """An environment that shows recorded steps, whatever the agent does."""

    def __init__(self, space, rows: dict[str, list]) -> None:
        self.rows = rows
        self.place = {str(label): i for i, label in enumerate(space.states)}
        self.observation_space = gym.spaces.Discrete(len(self.place))
        self.action_space = gym.spaces.Discrete(len(space.actions))
        self.at = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.place[self.rows["state"][self.at]], {}

    def step(self, action):
        i = self.at
        self.at += 1
        after = self.rows["next_state"][i]
        observation = self.place[self.rows["state"][i] if after is None else after]
        ended, cut = self.rows["terminated"][i], self.rows["truncated"][i]
        return observation, self.rows["reward"][i], ended, cut, {}


def shaped_rewards(ceilings, rows: dict[str, list], *, step_indexed: bool, **options: Any) -> np.ndarray:
    """Return the shaped rewards of recorded steps."""
    space = ceilings.space
    labels = list(space.states)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        potential = ceilings.potential(step_indexed=step_indexed)
        recorded = Replay(space, rows)
        env = cs.ShapeReward(
            recorded, potential, label=lambda i: labels[int(i)], actions=list(space.actions), **options
        )
        place = {str(label): i for i, label in enumerate(space.actions)}
        rewards, fresh = [], True
        for action in rows["action"]:
            if fresh:
                env.reset()
            _, reward, ended, cut, _ = env.step(place[action])
            rewards.append(float(reward))
            fresh = ended or cut
    return np.array(rewards)


def fitted(path: Path, state: list[str], points: np.ndarray, *, side: str, reward: float, seed: int, **options: Any):
    """Return fitted ceilings or floors at points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if side == "ceilings":
            fit = cs.fit_ceilings(str(path), state=state, reward_max=reward, seed=seed, **options)
        else:
            fit = cs.fit_floors(str(path), state=state, reward_min=reward, seed=seed, **options)
        return np.asarray(fit(points), dtype=float)


def believed(counts, horizon: int, reward_max: float):
    """Return the posterior."""
    return cs.posterior(counts, horizon, reward_max)


def drawn_values(belief, counts, horizon: int, seed: int) -> np.ndarray:
    """Return optimal values of a world drawn from the posterior, by state."""
    (model,) = belief.sample(1, seed=seed)
    states = counts.space.states
    return np.array(model.optimum(horizon=horizon).values)[0][: len(states)][_order(states)]


@functools.cache
def _known(world: str, knowledge: str) -> tuple[Any, Any]:
    """Return a world of the paper, and what an agent knows of it."""
    made = cs.load_world(world)
    if knowledge == "nothing":
        return made, None
    counts = cs.count([made.collect(name, 20_000, 3, name) for name in made.demonstrators])
    function = {"posterior": cs.posterior, "ceilings": cs.value_ceilings}[knowledge]
    return made, _refusing(lambda: function(counts, made.horizon, made.model.reward_range[1]))


def trained(world: str, learner: str, knowledge: str, steps: int, seed: int) -> dict[str, float]:
    """Return the regret of a learner in a world of the paper, and how far it trusts its sources."""
    made, given = _known(world, knowledge)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = cs.train(made, given, learner=learner, steps=steps, seed=seed)
    result = {"regret": float(run.step_regret[-1])}
    if run.trust is not None:
        trust = zip(run.trust.sources, run.trust.everywhere, strict=True)
        result |= {f"trust {name}": float(p) for name, p in trust} | {"trust none": float(run.trust.nobody)}
    return result
