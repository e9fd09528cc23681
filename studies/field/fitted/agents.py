"""Stable-Baselines3's DQN with and without logs: the unshaped return of its greedy policy over environment steps.

Every run of an agent is a part. All arms share hyper-parameters, chosen for the agent without logs in the windy field.
The agent bootstraps where the time limit cuts an episode, so that potentials are stationary (those of the first step)
and stay as they are there. All runs of a set share its logs and potentials: intervals are over the agents' seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.fitted._forest import Surface, flat
from causal_shaping.learners.intervals import bootstrap_interval
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.continuous_environments import ContinuousEnv
from causal_shaping.worlds.dynamics import pick_rows
from studies.field.fitted import rivals
from studies.field.fitted.cases import CASES, Study, logs_of, optimum_of
from studies.parts import Found
from studies.statistics import interquartile_mean

VERSION = 2
STEPS, EVERY, EPISODES, EVALUATION_SEED = 30_000, 1_500, 20, 12_345
DISCOUNT, RANDOM_REPETITIONS, COPIES = 0.99, 50, 8
SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 30_000,
    "learning_starts": 500,
    "batch_size": 128,
    "train_freq": 1,  # of all copies
    "gradient_steps": 1,
    "target_update_interval": 500,
    "exploration_fraction": 0.2,
    "exploration_final_eps": 0.05,
    "policy_kwargs": {"net_arch": [64, 64], "optimizer_kwargs": {"fused": True}},
}
KEPT_AT = 20_000
"""Observations at which a potential that is not the library's is kept."""

SCALE, WITHOUT = "scale", "no logs"
POTENTIALS = ("ceiling", "best guess", "naive fitted Q", "behaviour values")
FILLED = "logs in the buffer"
ARMS = [("none", WITHOUT), *((logs, arm) for logs in ("good", "bad") for arm in (*POTENTIALS, FILLED))]


def parts(seeds: int) -> list[str]:
    """Return all runs, seed by seed, so that whatever has run is nearly a complete table."""
    runs = [f"{case}; {logs}; {arm}; {seed}" for seed in range(seeds) for case in CASES for logs, arm in ARMS]
    return [*(f"{case}; {SCALE}" for case in CASES), *runs]


def run_part(part: str) -> Found:
    """Return the unshaped returns of a run: at the start, and after each `EVERY` steps; or what a score is made of."""
    case, *which = part.split("; ")
    return scale(case) if which == [SCALE] else train(case, which[0], which[1], int(which[2]))


# Potentials --------------------------------------------------------------------------------------------------------


@cache
def study_of(case: str, logs: str) -> Study:
    """Return the logs of a case: good or bad ones."""
    return logs_of(case, [CASES[case].good if logs == "good" else logs], DISCOUNT)


@cache
def fitted_to(case: str, logs: str) -> cs.FittedCeilings:
    """Return the fit to a set of logs."""
    study = study_of(case, logs)
    return cs.fit_ceilings(study.rows, members=CASES[case].members, **study.basics)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Kept(ObservationPotential):
    """Values at some observations, as a potential."""

    surface: Surface

    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations."""
        return self.surface.at(flat(observations), 0)[:, 0]


@cache
def potential_of(case: str, logs: str, arm: str) -> ObservationPotential:
    """Return the potential of an arm."""
    if arm in ("ceiling", "best guess"):
        kind = "ceiling" if arm == "ceiling" else "mean"
        return fitted_to(case, logs).potential(kind=kind, step_indexed=False)
    study = study_of(case, logs)
    distinct = np.unique(study.rows.observations, axis=0)
    some = distinct[np.random.default_rng(0).choice(len(distinct), min(KEPT_AT, len(distinct)), replace=False)]
    naive = arm == "naive fitted Q"
    values = rivals.swept(study, some, naive=True) if naive else rivals.behaviour_values(study, some)
    about: dict[str, Any] = {"shape": distinct.shape[1:], "dtype": "float32", "discount": DISCOUNT}
    return Kept(**about, origin="another method", surface=Surface.fit(some, values[:, None], 5, 0))


# Runs --------------------------------------------------------------------------------------------------------------


def train(case: str, logs: str, arm: str, seed: int, steps: int = STEPS, every: int = EVERY) -> Found:
    """Train an agent; see `run_part`."""
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    from studies.field.fitted.buffers import HalfLogged

    torch.set_num_threads(1)
    world = CASES[case].load()
    centre, half = (world.high + world.low) / 2, (world.high - world.low) / 2
    seen = gym.spaces.Box(-1.0, 1.0, world.low.shape, np.float32)

    def scaled(states: Any) -> npt.NDArray[np.float32]:
        return np.asarray((states - centre) / half, dtype=np.float32)

    def environment() -> Any:
        env: Any = ContinuousEnv(world)
        if arm in POTENTIALS:
            env = cs.ShapeReward(env, potential_of(case, logs, arm), monitor=False)
        return gym.wrappers.TransformObservation(env, scaled, seen)

    more: dict[str, Any] = {}
    if arm == FILLED:
        given = {"logs": study_of(case, logs).rows, "scaled": scaled}
        more = {"replay_buffer_class": HalfLogged, "replay_buffer_kwargs": given}

    class Evaluation(BaseCallback):
        returns: list[float] = []  # noqa: RUF012, one class a run

        def _on_step(self) -> bool:
            if self.num_timesteps >= every * len(self.returns):
                act = lambda states: agent.policy.predict(scaled(states), deterministic=True)[0]  # noqa: E731
                self.returns.append(round(float(episodes(world, act).mean()), 4))
            return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = DummyVecEnv([environment] * COPIES)
        agent = DQN("MlpPolicy", env, gamma=DISCOUNT, seed=seed, device="cpu", **SETTINGS, **more)
        agent.learn(steps, callback=Evaluation())
    return {"returns": Evaluation.returns, "date": date.today().isoformat()}


def episodes(world: ContinuousWorld, act: Callable[[Any], Any]) -> FloatArray:
    """Return the undiscounted returns of a policy in the same few episodes each time, which run side by side."""
    rng = np.random.default_rng(EVALUATION_SEED)
    states, returns = world.start(rng.random((EPISODES, world.start_draws))), np.zeros(EPISODES)
    alive = np.arange(EPISODES)
    for _ in range(world.horizon):
        drawn = rng.random((EPISODES, 1 + world.step_draws))[alive]
        noises = pick_rows(world.noise(states), drawn[:, 0])
        moved = world.step(states, np.asarray(act(states)), noises, drawn[:, 1:])
        returns[alive] += moved.reward
        states, alive = moved.states[~moved.terminated], alive[~moved.terminated]
        if not len(alive):
            break
    return returns


def scale(case: str) -> Found:
    """Return what acting at random, many times, and acting optimally earn in the same episodes: 0 and 1 of a score."""
    world, rng, optimum = CASES[case].load(), np.random.default_rng(0), optimum_of(case)
    act = lambda states: rng.integers(len(world.actions), size=len(states))  # noqa: E731
    random = [episodes(world, act).mean() for _ in range(RANDOM_REPETITIONS)]
    h = iter(range(world.horizon))
    best = episodes(world, lambda states: optimum.q_values(states, next(h)).argmax(axis=1))
    return {"random": float(np.mean(random)), "best": float(best.mean())}


# Tables ------------------------------------------------------------------------------------------------------------

MEASURES: Mapping[str, slice] = {
    "The mean over the evaluations of the first 6,000 steps": slice(1, 5),
    "The mean over all evaluations": slice(1, None),
    "The mean of the last three evaluations": slice(-3, None),
}
"""Of evaluations, of which the first is before the first step."""


def tables(done: dict[str, Found]) -> list[str]:
    """Return the scores of early, all and late evaluations, by world and over all worlds."""
    cases = [part.split("; ")[0] for part in done if part.endswith(SCALE)]
    runs: dict[tuple[str, ...], list[Found]] = {}
    for part, one in done.items():
        runs.setdefault(tuple(part.split("; ")[:3]), []).append(one)
    counts = [len(runs.get((case, *arm), [])) for case in cases for arm in ARMS]
    seeds = " to ".join(dict.fromkeys((str(min(counts)), str(max(counts)))))
    lines: list[str] = []
    for title, measure in MEASURES.items():
        lines += [
            f"{title}, as a score: 0 is acting at random, 1 the optimum; {seeds} seeds; interquartile mean (95%)."
        ]
        lines += ["", f"| | logs | {' | '.join([*cases, 'all worlds'])} |", "|---|---|" + "---|" * (len(cases) + 1)]
        for logs, arm in ARMS:
            scores = [_scores(done, case, runs.get((case, logs, arm), []), measure) for case in cases]
            every = np.stack([one[: min(map(len, scores))] for one in scores], axis=1)
            lines.append(f"| {' | '.join([arm, logs, *(_text(one[:, None]) for one in scores), _text(every)])} |")
        lines.append("")
    dates = sorted(one["date"] for one in done.values() if "date" in one)
    return [*lines, f"Run on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}.", ""]


def _scores(done: dict[str, Found], case: str, runs: list[Found], measure: slice) -> FloatArray:
    """Return a measure of runs, 0 for acting at random and 1 for the optimum: float64 [seeds]."""
    low, high = (done[f"{case}; {SCALE}"][name] for name in ("random", "best"))
    return np.array([(np.mean(one["returns"][measure]) - low) / (high - low) for one in runs])


def _text(scores: FloatArray) -> str:
    """Return the interquartile mean of scores [seeds, cases], with its 95% interval."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*bootstrap_interval(interquartile_mean, scores)) if len(scores) else ""
