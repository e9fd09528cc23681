"""Training a table: compiled over a world's own tables, or step by step in any discrete Gymnasium environment.

Randomness of a run is one stream: a uniform for the start state of each episode, then one per step for the hidden
noise. The compiled and the Gymnasium path draw alike, so that they learn the same table, bit for bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_integer, check_memory
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.beliefs.trust import trust_of
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.learners import _kernels as kernels
from causal_shaping.learners._kernels import Course, Learned, Rows, Setting, Step, Tabular, Track, Watched
from causal_shaping.learners._posterior import Sampler, alarm_of, model_for, sampler_of
from causal_shaping.learners._problem import Problem
from causal_shaping.learners._setting import prepare, watched
from causal_shaping.learners.rules import (
    Rule,
    as_belief,
    as_potential,
    choose,
    warn_of_default_learner,
)
from causal_shaping.learners.run import Run
from causal_shaping.shaping.formula import is_final
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import tables_of

BYTES_A_STEP, BYTES_AN_ENTRY = 100, 64
"""What a run keeps in memory, about: for each step of its budget, and for each entry of its table."""


def train(
    world: World | gym.Env[Any, Any],
    potential: Posterior | Potential | Ceilings | None = None,
    *,
    learner: str | Rule | None = None,
    steps: int = 20_000,
    seed: int = 0,
    step_indexed: bool = False,
    checkpoints: Iterable[int] = (),
    episodes: int | None = None,
    horizon: int | None = None,
    reward_max: float | None = None,
    samples: bool | None = None,
    record: bool = False,
    compiled: bool = True,
    **changes: Any,
) -> Run:
    """Train a learner online and return what it learned and what it cost.

    It never takes an action that is not admissible: by the space of the world or the potential, or by what an
    environment tells in `info["action_mask"]`. Ceilings must count all actions of the world or environment, or that is
    an error.

    Ceilings with a `reward_min` are tested while the learner acts (`causal_shaping.shaping.monitor`). When what it sees
    contradicts them, "q-ucb-shaping" drops them: it begins again with a potential of 0 and without clip, and says so in
    a warning and in `run.alarm`.

    Args:
        world: a world, learned in compiled code, or a Gymnasium environment with discrete actions, whose observations
            are numbers of states or are known to the potential.
        potential: a `Posterior`, what logs suggest and prove, for the learner "posterior"; for the others what shapes
            the reward, or ceilings, whose potential does. None stands for no logs, and a potential of 0.
            If you have the counts of your logs, a posterior is the better input.
        learner: "posterior" (posterior sampling), "q-ucb" (Jin et al. 2018, the paper's algorithm 3), "q-ucb-shaping"
            (the paper's algorithm 1, as printed), or a `Rule` of your own; by default `recommended_learner`.
            With a potential or ceilings that default is "q-ucb-shaping" and brings a
            `ShapingWarning`: it can lock in, that is, keep repeating the first action it tried.
        steps: the budget of environment steps.
        seed: equal seeds give equal runs.
        step_indexed: one table per step of the episode.
        checkpoints: numbers of steps after which to keep the policy; those that are not reached are left out.
        episodes: stop after this many episodes, if that comes before the budget of steps is used up.
        horizon: the number of steps of an episode; by default the world's.
        reward_max: the most that a step can pay, for "posterior" without logs in an environment that is not a world.
        samples: for "posterior": True plans in worlds that it draws, False in their mean. By default it draws, unless
            there are logs and fewer than 50 steps for each action in each state.
        record: keep what the agent does as `run.logs`, one more source for `counts + count(run.logs)`. It does not
            see the hidden noise: its confounding is 1; see `ShapeReward.logs` for what to mind.
        compiled: learn a world in compiled code; False steps through its environment, with equal results (extra
            `worlds`).
        changes: constants of the rule to change, such as c=2.0; see `Rule`.

    Examples:
        >>> import causal_shaping as cs
        >>> world = cs.load_world("lavacross-easy")
        >>> cs.train(world, steps=2_000, seed=1)
        Run(q-ucb-shaping in lavacross-easy, seed 1: 2,000 steps in ... episodes, regret ...)
    """
    name, rule = choose(learner, potential, changes, train)
    steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
    kept = np.unique(np.array([check_integer("checkpoints", at, least=1) for at in checkpoints], dtype=np.int64))
    most_episodes = steps if episodes is None else check_integer("episodes", episodes, least=1)
    problem, monitor = Problem(world, potential, horizon), None
    table = problem.admissible.size * (problem.horizon if step_indexed else 1)
    check_memory(f"A run of {steps:,} steps", BYTES_A_STEP * steps)
    check_memory(f"A horizon of {problem.horizon} with {len(problem.space.states):,} states", BYTES_AN_ENTRY * table)
    agent: Tabular | Watched | Sampler
    if rule is None:
        model = model_for(problem, as_belief(potential), reward_max, step_indexed)
        discount, bootstrap = model.settings.discount, True
        agent = sampler_of(model, steps, seed, problem.admissible, step_indexed, samples)
        learned: Learned | Sampler = agent
    elif samples is not None:
        raise ArgumentError(f"samples is for the learner 'posterior', not {name!r}. Leave it out.")
    else:
        shaping, space = as_potential(potential), problem.space
        setting = prepare(rule, space, problem.horizon, steps, shaping, step_indexed)
        monitor, watch = watched(shaping, space, rule)
        discount, bootstrap = setting.constants.discount, setting.bootstrap
        visits = np.zeros(setting.initial.shape, dtype=np.int64)
        best = setting.initial.argmax(axis=-1)
        learned = Learned(setting.initial.copy(), setting.initial_values.copy(), visits, best)
        agent = Tabular(learned, setting) if watch is None else Watched(learned, setting, watch)
    layers = len(learned.q_values)
    gaps = problem.gaps(layers, step_indexed, discount)
    course = Course(steps, most_episodes, kept[kept <= steps], gaps, problem.horizon, bootstrap, step_indexed)
    rows = kernels.room_for(steps if record else 0)
    warn_of_default_learner(learner, potential, stacklevel=2)
    if isinstance(world, World) and compiled:
        if world.model.steps is not None:
            raise ArgumentError("Learners need a world whose tables are the same at each step.")
        rng = np.random.default_rng(seed)
        track = kernels.run_tables(rng, tables_of(world.model), agent, kernels.parts_of(agent), course, rows)
    else:
        track = _play(problem, agent, course, seed, rows)
    alarm = None
    if monitor is not None:
        alarm = monitor.report().alarm_step
        monitor.tell("The learner dropped them and began again with a potential of 0.")
    if isinstance(agent, Sampler):
        alarm = alarm_of(agent)
    else:
        _warn_of_clip(setting, float(track.returns[-max(1, len(track.returns) // 10) :].mean()))
    found = kernels.recommend(agent)
    known = np.where(problem.admissible, found, np.nan)
    values = found.max(axis=-1) if rule is None else learned.values[:layers]
    reached = course.checkpoints[course.checkpoints <= len(track.step_regret)]
    first: Any = slice(None) if step_indexed else 0
    return Run(
        name=problem.name,
        learner=name,
        rule=rule,
        seed=seed,
        space=problem.space,
        horizon=problem.horizon,
        discount=discount,
        step_regret=track.step_regret,
        episode_end=track.episode_end,
        returns=track.returns,
        q_values=known[first],
        values=values[first],
        visits=learned.visits[first],
        checkpoints=reached,
        policies=track.policies[: len(reached), first],
        recommended=found.argmax(axis=-1)[first],
        alarm=alarm,
        trust=trust_of(model, agent.memory) if isinstance(agent, Sampler) and model.sources else None,
        logs=_logs(problem, rows, track, {"learner": name, "seed": str(seed)}) if record else None,
    )


def _logs(problem: Problem, rows: Rows, track: Track, metadata: dict[str, str]) -> Logs:
    """Return the steps of a run as logs; the last row of an episode that did not terminate is truncated."""
    row, end = np.arange(len(track.step_regret)), track.episode_end
    episode = np.searchsorted(end, row, side="right")
    held: Any = {name: column[: len(row)] for name, column in rows._asdict().items()}
    last = np.isin(row, end - 1)
    return Logs(
        problem.space,
        "agent",
        episode=episode,
        step=row - np.append(0, end)[episode],
        truncated=last & ~held["terminated"],
        metadata={"world": problem.name, **metadata},
        **held,
    )


def _warn_of_clip(setting: Setting, earned: float) -> None:
    """Warn if episodes earn more on average than values can be: rewards beyond the clip cannot be learned."""
    clip = setting.constants.clip
    if setting.constants.discount == 1:
        highest = float((setting.constants.potential[: len(clip)] + clip).max())
        if earned > highest + 1e-9:
            warnings.warn(
                f"Episodes earn {earned:.4g}, but values are clipped at {highest:.4g}: rewards beyond that are not "
                "learned. Pass a potential that bounds the value from above, or clip='none'.",
                ShapingWarning,
                stacklevel=3,
            )


def _play(problem: Problem, agent: Tabular | Watched | Sampler, course: Course, seed: int, rows: Rows) -> Track:
    """Learn step by step in an environment, by the same rule."""
    before_step, learn = kernels.step_by_step(agent)
    q_values = kernels.parts_of(agent)[0]
    env: Any = problem.env
    if env is None:
        from causal_shaping.worlds.environments import WorldEnv  # imports MiniGrid

        assert problem.world is not None
        env = WorldEnv(replace(problem.world, horizon=problem.horizon))
    regret, ends, returns = np.empty(course.steps), [], []
    policies = np.zeros((len(course.checkpoints), *q_values.shape[:2]), dtype=np.int32)
    observation, info = env.reset(seed=seed)
    s, h, earned, total, saved = problem.position(observation), 0, 0.0, 0.0, 0
    for done in range(1, course.steps + 1):
        layer, below = (h, h + 1) if course.step_indexed else (0, 0)
        excluded = problem.excluded(s, info)
        before_step(h, layer, s)
        if excluded is not None:
            q_values[:, s, excluded] = -np.inf
        x = int(q_values[layer, s].argmax())
        total += course.gaps[layer, s, x]
        regret[done - 1] = total
        observation, reward, terminated, cut, info = env.step(problem.actions[x])
        h += 1
        terminated, truncated = bool(terminated), bool(cut) or h == course.horizon
        after = s if terminated else problem.position(observation)
        final = is_final(terminated, truncated, course.bootstrap)
        taken = Step(layer, below, s, x, float(reward), after, final, h - 1, terminated, truncated)
        if len(rows.state):
            reached = problem.ended(observation) if terminated else after
            columns: Any = zip(rows, (s, x, float(reward), reached, terminated), strict=True)
            for column, value in columns:
                column[done - 1] = value
        learn(taken)
        earned += float(reward)
        if saved < len(policies) and course.checkpoints[saved] == done:
            policies[saved] = kernels.recommend(agent).argmax(axis=-1)
            saved += 1
        if terminated or truncated or done == course.steps:
            ends.append(done)
            returns.append(earned)
            if len(ends) == course.episodes:
                break
            if done < course.steps:
                observation, info = env.reset()
                s = problem.position(observation)
            h, earned = 0, 0.0
        else:
            s = after
    return Track(regret[: ends[-1]], np.array(ends, dtype=np.int64), np.array(returns), policies)
