"""Worlds for the persistence test: small logs in which nothing lasts over an episode, and two in which a cause does.

Each function returns the columns of a log, for `Rows` or a data frame: source, episode, step, state, action, next
state, terminated, reward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Columns = dict[str, Any]
STATES, ACTIONS, NOISES, STEPS = 4, 3, 3, 6


def random_world(rng: np.random.Generator, kind: str, episodes: int = 100) -> Columns:
    """Return logs of two demonstrators of a random world, whose hidden noise is drawn afresh each step.

    Kinds: "deterministic" demonstrators take one action in a state, "blind" ones do not see the noise, "confounded"
    ones do, and in "time-varying" worlds policies, noise, dynamics and rewards are others at each step. In all, some
    outcomes end the episode, and half of the worlds have continuous rewards.
    """
    shape, steps = (STATES, ACTIONS, NOISES), STEPS if kind == "time-varying" else 1
    after, ends = rng.integers(STATES, size=(steps, *shape)), rng.random((steps, *shape)) < 0.05
    earned, continuous = rng.integers(3, size=(steps, *shape)) / 2, bool(rng.integers(2))
    noise = rng.dirichlet(np.ones(NOISES), size=(steps, STATES)).cumsum(-1)
    policy = rng.dirichlet(np.ones(ACTIONS), size=(2, steps, STATES, NOISES))
    if kind == "blind":
        policy = np.repeat(policy[..., :1, :], NOISES, axis=-2)
    if kind == "deterministic":
        policy = np.repeat(np.eye(ACTIONS)[rng.integers(ACTIONS, size=(2, steps, STATES, 1))], NOISES, axis=-2)
    policy = policy.cumsum(-1)
    source = np.repeat([0, 1], episodes)
    episode, state, rows = np.arange(len(source)), rng.integers(STATES, size=len(source)), []
    for step in range(STEPS):
        h, size = step % steps, len(state)
        u = (rng.random(size)[:, None] > noise[h, state]).sum(-1).clip(max=NOISES - 1)
        x = (rng.random(size)[:, None] > policy[source, h, state, u]).sum(-1).clip(max=ACTIONS - 1)
        reward = earned[h, state, x, u] + continuous * rng.standard_normal(size)
        following, ended = after[h, state, x, u], ends[h, state, x, u]
        rows.append((source, episode, np.full(size, step), state, x, following, ended, reward))
        source, episode, state = source[~ended], episode[~ended], following[~ended]
    return _columns(rows)


def drug_world(rng: np.random.Generator, episodes: int, strength: float, lasts: bool = True) -> Columns:
    """Return logs of two doctors who each prefer one of two drugs; which is right lasts for the stay.

    The right drug helps for a day with a chance of (1 + strength) / 2, the other with (1 - strength) / 2. Patients stay
    ill, so that both doctors show the same outcomes of both drugs.
    """
    source = np.repeat([0, 1], episodes // 2)
    right, ill, rows = rng.integers(2, size=len(source)), np.zeros(len(source), dtype=int), []
    for step in range(5):
        if not lasts:
            right = rng.integers(2, size=len(source))
        drug = np.where(rng.random(len(source)) < 0.8, source, 1 - source)
        helped = rng.random(len(source)) < (1 + strength * np.where(drug == right, 1, -1)) / 2
        rows.append((source, np.arange(len(source)), ill + step, ill, drug, ill, ill > 0, helped))
    return _columns(rows)


def severity_world(rng: np.random.Generator, episodes: int, strength: float, lasts: bool = True) -> Columns:
    """Return logs of one ward: a patient's severity lasts, makes treatment likelier, and recovery less likely.

    Health is 0 (dead) to 4; treatment raises the log-odds of getting better by 0.6, severity lowers them by `strength`
    and raises those of being treated by as much. Dying ends the episode with a reward of -1.
    """
    episode, health, rows = np.arange(episodes), np.full(episodes, 2), []
    severe = rng.choice([-1, 1], size=episodes)
    for step in range(6):
        if not lasts:
            severe = rng.choice([-1, 1], size=len(health))
        treated = (rng.random(len(health)) < _logistic(strength * severe - 0.5 * (health - 2))).astype(int)
        better = rng.random(len(health)) < _logistic(-strength * severe + 0.6 * treated)
        following = np.minimum(health + np.where(better, 1, -1), 4)
        dead = following == 0
        rows.append((0 * episode, episode, 0 * episode + step, health, treated, following, dead, -1.0 * dead))
        episode, health, severe = episode[~dead], following[~dead], severe[~dead]
    return _columns(rows)


WORLDS: dict[str, Callable[..., Columns]] = {"drug": drug_world, "severity": severity_world}


def p_value(columns: Columns, permutations: int, seed: int) -> float:
    """Return the p-value of the persistence test, without files and engines in between."""
    from scipy.special import chdtrc

    from causal_shaping.diagnose._persistence import Rows, codes, step_tests

    held = dict(columns)
    held["after"] = codes(held.pop("next_state"), held.pop("terminated"))
    found = [test.p_value for test in step_tests(Rows(**held), permutations, seed) if test is not None]
    return float(chdtrc(2 * len(found), -2 * np.log(found).sum())) if found else 1.0


def _logistic(odds: Any) -> Any:
    return 1 / (1 + np.exp(-odds))


def _columns(rows: list[tuple[Any, ...]]) -> Columns:
    names = ("source", "episode", "step", "state", "action", "next_state", "terminated", "reward")
    columns = {name: np.concatenate(parts) for name, parts in zip(names, zip(*rows, strict=True), strict=True)}
    return columns | {"reward": columns["reward"].astype(float)}
