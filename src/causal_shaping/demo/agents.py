"""The demo's three agents: without logs, believing the logs, and ours. All three plan alike.

Each plans by posterior sampling (`samples=True`). They differ in what they know at the first step:
nothing; every logged row as if it were one of their own; or `cs.posterior`, which uses what the
logs prove and trusts each source as far as it turns out to be right.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

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
"""The budget of the paper in this world; seeds of each agent; agents trained side by side."""

LAVA = -1.0
"""A step into the lava costs 1.1 and any other step 0.1: a smaller reward than this is the lava."""

NO_LOGS, BELIEVES, OURS = "no logs", "believes the logs", "causal-shaping"


Curves: TypeAlias = tuple[FloatArray, FloatArray]
"""The regret so far and the reward of each step."""


class Trained(NamedTuple):
    """The results of an agent, seed by seed."""

    regret: FloatArray  # [seeds, points], how much less than an optimal agent it earned so far
    falls: FloatArray  # [seeds], how many times it fell into the lava

    def intervals(self) -> dict[str, Interval]:
        """Return mean, low and high over seeds, at 95%: of the final regret, and of falls."""
        falls = mean_interval(self.falls)
        return {"regret": mean_interval(self.regret[:, -1]), "falls into the lava": falls}


def train_agents(
    world: World, belief: Posterior, seed: int, progress: Progress = no_progress
) -> dict[str, Trained]:
    """Train the three agents on `SEEDS` seeds each, from `seed` on."""
    agents: dict[str, Callable[[int], Curves]] = {
        NO_LOGS: lambda number: _trained(world, None, number),
        BELIEVES: lambda number: _believing(world, belief.counts, number),
        OURS: lambda number: _trained(world, belief, number),
    }
    what = f"Training {len(agents)} agents on {SEEDS} seeds each"
    progress(0, 1, what)
    pool, runs = ThreadPoolExecutor(WORKERS), []
    jobs = [pool.submit(agent, seed + k) for agent in agents.values() for k in range(SEEDS)]
    try:
        for job in jobs:
            runs.append(job.result())
            progress(len(runs), len(jobs), what)
    finally:
        # After Ctrl-C nobody waits for runs that are half done.
        pool.shutdown(wait=False, cancel_futures=True)
    points = curve_points(STEPS) - 1
    regret = np.array([regret[points] for regret, _ in runs])
    falls = np.array([float((rewards < LAVA).sum()) for _, rewards in runs])
    trained = {}
    for i, name in enumerate(agents):
        own = slice(i * SEEDS, (i + 1) * SEEDS)
        trained[name] = Trained(regret[own], falls[own])
    return trained


def _trained(world: World, belief: Posterior | None, seed: int) -> Curves:
    """Train an agent of this package."""
    how: Any = {"learner": "posterior", "samples": True, "record": True}
    run = train(world, belief, steps=STEPS, seed=seed, **how)
    assert run.logs is not None
    return run.step_regret, run.logs.reward


def _believing(world: World, counts: Counts, seed: int) -> Curves:
    """Train an agent that takes every logged row for one of its own steps."""
    problem = Problem(world, None, None)
    model = model_for(problem, None, None, step_indexed=False)
    room = STEPS + len(counts)
    agent = sampler_of(model, room, seed, problem.admissible, step_indexed=False, samples=True)
    # Otherwise an alarm drops the logs as soon as the agent's steps contradict them.
    agent.memory.against[2] = -np.inf
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
