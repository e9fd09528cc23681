"""The demo's three agents: without logs, believing the logs, and ours. All three plan alike.

Each plans by posterior sampling (`samples=True`). They differ in what they know at the first step:
nothing; every logged row as if it were one of their own; or `cs.posterior`, which uses what the logs
prove and trusts each source as far as it turns out to be right.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.beliefs import Posterior
from causal_shaping.beliefs._kernels import observe
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.learners import train
from causal_shaping.learners._kernels import Course, parts_of, room_for, run_tables
from causal_shaping.learners._posterior import model_for, sampler_of
from causal_shaping.learners._problem import Problem
from causal_shaping.learners.intervals import Interval, mean_interval
from causal_shaping.learners.seeds import curve_points
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import tables_of

STEPS, SEEDS, WORKERS = 20_000, 20, 2
"""The budget of the paper in this world; seeds of each agent; how many are trained side by side."""

LAVA = -1.0
"""A step into the lava costs 1.1 and any other step 0.1: a smaller reward than this is the lava."""

NO_LOGS, BELIEVES, OURS = "no logs", "believes the logs", "causal-shaping"


class Trained(NamedTuple):
    """What an agent came to, seed by seed."""

    regret: FloatArray  # [seeds, points], how much less than an optimal agent it earned so far
    falls: FloatArray  # [seeds], how many times it fell into the lava

    def intervals(self) -> dict[str, Interval]:
        """Return the means over seeds and the ends of their 95% intervals: of the final regret, and of falls."""
        return {"regret": mean_interval(self.regret[:, -1]), "falls into the lava": mean_interval(self.falls)}


def train_agents(world: World, belief: Posterior, seed: int, progress: Progress = no_progress) -> dict[str, Trained]:
    """Train the three agents on `SEEDS` seeds each, from `seed` on."""
    agents: dict[str, Callable[[int], tuple[FloatArray, FloatArray]]] = {
        NO_LOGS: lambda number: _trained(world, None, number),
        BELIEVES: lambda number: _believing(world, belief.counts, number),
        OURS: lambda number: _trained(world, belief, number),
    }
    what = f"Training {len(agents)} agents on {SEEDS} seeds each"
    progress(0, 1, f"{what} (the first run compiles for about half a minute)")
    pool, runs = ThreadPoolExecutor(WORKERS), []
    jobs = [pool.submit(agent, seed + k) for agent in agents.values() for k in range(SEEDS)]
    try:
        for job in jobs:
            runs.append(job.result())
            progress(len(runs), len(jobs), what)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, nobody waits for what is half done
    regret = np.array([regret[curve_points(STEPS) - 1] for regret, _ in runs]).reshape(len(agents), SEEDS, -1)
    falls = np.array([float((rewards < LAVA).sum()) for _, rewards in runs]).reshape(len(agents), SEEDS)
    return {name: Trained(*one) for name, *one in zip(agents, regret, falls, strict=True)}


def _trained(world: World, belief: Posterior | None, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the regret so far and the reward of each step of an agent of this package."""
    run = train(world, belief, learner="posterior", steps=STEPS, seed=seed, samples=True, record=True)
    assert run.logs is not None
    return run.step_regret, run.logs.reward


def _believing(world: World, counts: Counts, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the same of an agent that takes every logged row for one of its own steps."""
    problem = Problem(world, None, None)
    model = model_for(problem, None, None, step_indexed=False)
    room = STEPS + len(counts)
    agent = sampler_of(model, room, seed, problem.admissible, step_indexed=False, samples=True)
    agent.memory.against[2] = -np.inf  # or an alarm would drop the logs as soon as steps contradict them
    moved = counts.to_space(world.space)
    cell = moved.state.astype(np.int64) * len(world.actions) + moved.action
    after = np.where(moved.terminated, len(world.states), moved.next_state)
    for i in np.flatnonzero(moved.outcome_known):
        outcome = cell[i], after[i], moved.reward_min[i], moved.n[i]
        observe(agent.shape, agent.guess, agent.memory, *outcome)
    gaps = problem.gaps(1, step_indexed=False, discount=model.settings.discount)
    none = np.zeros(0, dtype=np.int64)
    course = Course(STEPS, STEPS, none, gaps, world.horizon, bootstrap=True, step_indexed=False)
    rows, rng = room_for(STEPS), np.random.default_rng(seed)
    track = run_tables(rng, tables_of(world.model), agent, parts_of(agent), course, rows)
    return track.step_regret, rows.reward
