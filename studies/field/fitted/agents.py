"""Stable-Baselines3's DQN with and without logs: the unshaped return of its greedy policy over environment steps.

Every run of an agent is a part. All arms share hyper-parameters, chosen for the agent without logs in the windy field.
The agent bootstraps where the time limit cuts an episode, so that potentials are stationary (those of the first step)
and stay as they are there. All runs of a set share its logs and potentials: intervals are over the agents' seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import causal_shaping as cs
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted._forest import Surface, flat
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import pick_rows
from studies.field.continuous import MEASURES, SCALE, dates_of, rows_of, score_text, scores, seeds_text
from studies.field.fitted import rivals
from studies.field.fitted.cases import CASES, Study, available, logged, optimum_of
from studies.field.fitted.measure import cpu_seconds
from studies.parts import WORK, Found

VERSION = 2
STEPS, EVERY, EPISODES, EVALUATION_SEED = 30_000, 1_500, 20, 12_345
MEMBERS = 4
"""Of a fit, where a case names no number."""

RANDOM_REPETITIONS = 50
COPIES = 8
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

FIT, WITHOUT = "fit", "no logs"
POTENTIALS = ("ceiling", "best guess", "naive fitted Q", "behaviour values")
FILLED = "logs in the buffer"
ARMS = (*POTENTIALS, FILLED)


def parts(seeds: int) -> list[str]:
    """Return all runs, so ordered that whatever has run is nearly a complete table."""
    begun = [range(0, min(3, seeds)), *(range(i, min(i + 2, seeds)) for i in range(3, seeds, 2))]
    cases = available(images=True)
    runs = [
        (case, logs, arm)
        for case in cases
        for logs, arm in [("none", WITHOUT), *((logs, arm) for logs in CASES[case].sets for arm in ARMS)]
    ]
    scales = [f"{case}; {SCALE}" for case in cases]
    fits = [f"{case}; {logs}; {FIT}" for case in cases for logs in CASES[case].sets]
    return [
        *scales,
        *fits,
        *(f"{case}; {logs}; {arm}; {seed}" for some in begun for case, logs, arm in runs for seed in some),
    ]


# Potentials --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Kept(ObservationPotential):
    """Values at some observations, as a potential."""

    surface: Surface

    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations."""
        return self.surface.at(flat(observations), 0)


def kept(study: Study, values: Callable[[npt.NDArray[np.float32]], FloatArray]) -> Kept:
    """Return a potential of what a method gives at some of the logged observations."""
    distinct = np.unique(flat(study.rows.observations), axis=0)
    rng = np.random.default_rng(0)
    some = distinct[rng.choice(len(distinct), min(KEPT_AT, len(distinct)), replace=False)]
    surface = Surface.fit(some, values(some)[:, None], 5, 0)
    about = {"shape": CASES[study.name].load().low.shape, "dtype": str(CASES[study.name].load().low.dtype)}
    return Kept(**about, discount=study.discount, origin="another method", surface=surface)


@cache
def logs_of(case: str, logs: str) -> tuple[ContinuousWorld, Transitions]:
    """Return a world, and the logs of a set of its demonstrators."""
    world = CASES[case].load()
    return world, logged(world, CASES[case].sets[logs], CASES[case].rows)


def _study(case: str, logs: str) -> Study:
    world, rows = logs_of(case, logs)
    nowhere = np.zeros((0, *rows.shape), dtype=np.float32)
    limits = (world.horizon, world.reward_max, world.reward_min)
    return Study(case, rows, *limits, nowhere, np.zeros(0), CASES[case].discount, CASES[case].members or MEMBERS, world)


def as_vectors(study: Study) -> Study:
    """Return a study whose images are vectors, as forests take them."""
    rows = study.rows
    if len(rows.shape) == 1:
        return study
    seen = flat(rows.observations)
    names = tuple(f"pixel {k}" for k in range(seen.shape[1]))
    return replace(study, rows=replace(rows, observations=seen, shape=seen.shape[1:], columns=names))


@cache
def fitted_to(case: str, logs: str) -> tuple[cs.FittedCeilings, float]:
    """Return the fit to a set of logs, from its folder if it is there, and the CPU seconds that it took."""
    folder = WORK / f"{case}, {logs}".replace(", ", "-").replace(" ", "-")
    if not (folder / "fitted.json").exists():
        fitted, seconds = _study(case, logs).fitted
        fitted.save(folder)
        (folder / "seconds").write_text(f"{seconds:.1f}\n")
    return cs.FittedCeilings.load(folder), float((folder / "seconds").read_text())


@cache
def potential_of(case: str, logs: str, arm: str) -> ObservationPotential:
    """Return the potential of an arm."""
    if arm in ("ceiling", "best guess"):
        kind = "ceiling" if arm == "ceiling" else "mean"
        return fitted_to(case, logs)[0].potential(kind=kind, step_indexed=False)
    study = as_vectors(_study(case, logs))
    if arm == "naive fitted Q":
        return kept(study, lambda points: rivals.swept(study, rivals.NAIVE, points))
    return kept(study, lambda points: rivals.behaviour_values(study, points))


# Runs --------------------------------------------------------------------------------------------------------------


def run_part(part: str) -> Found:
    """Return the unshaped returns of a run: at the start, and after each `EVERY` steps; or what a score is made of."""
    if part.endswith(SCALE):
        return scale(part.split("; ")[0])
    if part.endswith(FIT):
        case, logs, _ = part.split("; ")
        return {"seconds": fitted_to(case, logs)[1]}
    case, logs, arm, seed = part.split("; ")
    return train(case, logs, arm, int(seed))


def train(case: str, logs: str, arm: str, seed: int, steps: int = STEPS, every: int = EVERY) -> Found:
    """Train an agent; see `run_part`."""
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    from studies.field.fitted.vectors import ForStableBaselines, WorldVector

    torch.set_num_threads(1)
    world = CASES[case].load()
    vector: Any = WorldVector(world, COPIES)
    if arm in POTENTIALS:
        vector = cs.VectorShapeReward(vector, potential_of(case, logs, arm), monitor=False)
    env = ForStableBaselines(vector, seed)
    more: dict[str, Any] = {}
    if arm == FILLED:
        from studies.field.fitted.buffers import HalfLogged

        more = {"replay_buffer_class": HalfLogged, "replay_buffer_kwargs": {"logs": logs_of(case, logs)[1], "env": env}}

    class Evaluation(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.returns: list[float] = []

        def _on_step(self) -> bool:
            if self.num_timesteps >= every * len(self.returns):
                self.returns.append(greedy_return(self.model, env, world))
            return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = DQN("MlpPolicy", env, gamma=CASES[case].discount, seed=seed, device="cpu", **SETTINGS, **more)
        watching = Evaluation()
        _, seconds = cpu_seconds(lambda: agent.learn(steps, callback=watching))
    returns = [round(one, 4) for one in watching.returns]
    return {"returns": returns, "seconds": round(seconds, 1), "date": date.today().isoformat()}


def greedy_return(agent: Any, env: Any, world: ContinuousWorld) -> float:
    """Return the mean undiscounted return of the greedy policy in the same few episodes each time."""
    act = lambda states: agent.policy.predict(env.scaled(states), deterministic=True)[0]  # noqa: E731
    return float(np.mean(episodes(world, act, EPISODES)))


def episodes(world: ContinuousWorld, act: Callable[[Any], Any], count: int) -> FloatArray:
    """Return the undiscounted returns of a policy in episodes of fixed draws, which run side by side."""
    rng = np.random.default_rng(EVALUATION_SEED)
    states, returns, alive = world.start(rng.random((count, world.start_draws))), np.zeros(count), np.arange(count)
    for _ in range(world.horizon):
        drawn = rng.random((count, 1 + world.step_draws))[alive]
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
    random = [episodes(world, act, EPISODES).mean() for _ in range(RANDOM_REPETITIONS)]
    h = iter(range(world.horizon))
    best = episodes(world, lambda states: optimum.q_values(states, next(h)).argmax(axis=1), EPISODES)
    return {"random": float(np.mean(random)), "best": float(best.mean())}


# Tables ------------------------------------------------------------------------------------------------------------


def tables(done: dict[str, Found]) -> list[str]:
    """Return the scores of early, all and late evaluations, by world and over all worlds."""
    cases = [case for case in CASES if f"{case}; {SCALE}" in done]
    lines: list[str] = []
    for title, measure in MEASURES.items():
        found = scores(done, measure)
        shown = [case for case in cases if any(case == one for one, _, _ in found)]
        lines += [f"{title}, as a score: 0 is acting at random, 1 the optimum; {seeds_text(found)}.", ""]
        lines += ["| | logs | " + " | ".join([*shown, "all worlds"]) + " |", "|---|---|" + "---|" * (len(shown) + 1)]
        for arm, logs, own in rows_of(found):
            cells = ["" if one is None else score_text(one) for one in own]
            lines.append(f"| {arm} | {logs} | " + " | ".join(cells) + " |")
        lines.append("")
    return [*lines, f"Run on {dates_of(done)}.", "", *_seconds(done, cases)]


def _seconds(done: dict[str, Found], cases: list[str]) -> list[str]:
    """Return the table of CPU seconds: of a fit, and of a run of each arm."""
    lines = ["CPU seconds of a fit, and of a run (the mean over seeds and logs).", ""]
    lines += ["| | " + " | ".join(cases) + " |", "|---|" + "---:|" * len(cases)]
    for arm in (FIT, WITHOUT, *ARMS):
        own = [
            [
                one["seconds"]
                for part, one in done.items()
                if part.split("; ")[0] == case and part.split("; ")[2:3] == [arm]
            ]
            for case in cases
        ]
        lines.append(f"| {arm} | " + " | ".join(f"{np.mean(one):.0f}" if one else "" for one in own) + " |")
    return [*lines, ""]
