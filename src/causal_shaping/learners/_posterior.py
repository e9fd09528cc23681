"""The learner that samples: it draws a world from what it believes, plans in it, and acts on the plan.

Where its budget is too short to try all actions often enough, and logs tell what to try, it plans in the mean of these
worlds instead.

It draws and plans anew before each of the first 500 episodes, more in small worlds, then ever less often: a plan lasts
for a fixed share of the episodes so far, so that plans grow with the logarithm of the episodes. It also does if it is
about to repeat an action whose visits have doubled. Waiting longer would make exploration rare: a chance of trying
something in each plan is worth little if plans last long. What happens is counted, and judges the hypotheses of trust;
see `causal_shaping.beliefs`.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._checks import check_finite
from causal_shaping._compile import INLINED, njit
from causal_shaping.beliefs import _kernels as beliefs
from causal_shaping.beliefs._kernels import Drawn, Guess, Memory, Shape
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.beliefs.model import Model, room_for
from causal_shaping.bounds.settings import Settings
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.learners._problem import Problem

ENOUGH_STEPS = 50
"""A budget of so many steps or more for each action in each state is spent on sampled worlds, a shorter one on their
mean.

Sampling tries whatever may be best, and is paid back later. With fewer steps there is no later: in worlds with 2 to 40
steps an action, plans in the mean had a half to a tenth of the regret; with 90 and more, up to twice as much where logs
mislead. Without logs the same is true of some worlds, but in mazes, where all is far, the mean has no reason to leave
the place where it starts, and 6 to 20 times the regret; so without logs worlds are always drawn."""


FREQUENT_PLANS, FREQUENT_CELLS = 500, 200_000
"""So many episodes have a plan each, or as many as together draw so many cells: small worlds cost nothing. After them,
a plan lasts for one episode more with each further so many.

In the paper's worlds regret is then that of a plan before every episode within 3%, or less. With 500 for small worlds,
too, it was the same within 3% in random ones, but one of 1,000 bandits took its best action 6 times in 20,000 steps:
each of its 2,100 plans had too small a chance to try it again."""

PLANS, EPISODES, NEXT = range(3)
"""The entries of `Sampler.plans`: how many plans there were, how many episodes have begun, and which plans next."""


class Sampler(NamedTuple):
    """What the learner knows, changed in place."""

    rng: np.random.Generator
    shape: Shape
    guess: Guess
    memory: Memory
    drawn: Drawn
    samples: bool  # whether it draws worlds, or plans in their mean
    admissible: BoolArray  # [states, actions]
    terminal: BoolArray  # [states]
    planned: FloatArray  # [cells], visits at the last plan
    plans: LongArray  # [3], see `PLANS`
    values: FloatArray  # [horizon + 1, states + 1], those of the drawn world
    elsewhere: FloatArray  # [horizon + 1], what an unknown outcome is worth in it
    q_values: FloatArray  # [steps, states, actions], those that the agent acts on: written where it acts
    visits: LongArray  # like `q_values`
    best: LongArray  # [steps, states], the first of the best actions where Q-values are written


def model_for(problem: Problem, belief: Posterior | None, reward_max: float | None, step_indexed: bool) -> Model:
    """Return what is believed of a problem, with its states and actions; without logs, nothing but `reward_max`."""
    if belief is None:
        if reward_max is None:
            if problem.world is None:
                raise ArgumentError("Without logs, pass reward_max= or --reward-max, the most that a step can pay.")
            reward_max = problem.world.model.reward_range[1]
        check_finite("reward_max", reward_max)
        return Model(problem.space, None, Settings(horizon=problem.horizon, reward_bound=float(reward_max)))
    if reward_max is not None:
        raise ArgumentError("The posterior knows the largest reward: leave reward_max out.")
    if belief.settings.horizon != problem.horizon:
        raise ArgumentError(
            f"The posterior is of {belief.settings.horizon} steps, but episodes last {problem.horizon}."
        )
    if belief.counts.step_indexed and not step_indexed:
        raise ArgumentError(
            "The posterior tells steps apart: pass step_indexed=True or --step-indexed, or pool the steps of the "
            "counts."
        )
    return Model(problem.space, belief.counts.to_space(problem.space), belief.settings)


def enough_steps(steps: int, admissible: BoolArray, terminal: BoolArray) -> bool:
    """Return whether a budget allows to try all actions often enough."""
    return bool(steps >= ENOUGH_STEPS * admissible[~terminal].sum())


def sampler_of(
    model: Model, steps: int, seed: int, admissible: BoolArray, step_indexed: bool, samples: bool | None = None
) -> Sampler:
    """Return a learner at its beginning, with draws of its own stream, apart from that of the world.

    `samples` says whether it draws worlds, or plans in their mean; None decides by logs and budget.
    """
    memory, (_, states, actions, *_) = model.memory(steps), model.shape
    horizon = model.settings.horizon
    shape = (horizon if step_indexed else 1, states, actions)
    if samples is None:
        samples = not model.met.any() or enough_steps(steps, admissible, model.terminal)
    return Sampler(
        rng=np.random.default_rng([seed, 1]),
        shape=model.shape,
        guess=model.guess,
        memory=memory,
        drawn=room_for(model, memory, mean=not samples),
        samples=samples,
        admissible=admissible,
        terminal=model.terminal,
        planned=np.zeros(model.cells),
        plans=np.zeros(3, dtype=np.int64),
        values=np.zeros((horizon + 1, states + 1)),
        elsewhere=np.zeros(horizon + 1),
        q_values=np.zeros(shape),
        visits=np.zeros(shape, dtype=np.int64),
        best=np.zeros(shape[:2], dtype=np.int64),
    )


def alarm_of(sampler: Sampler) -> int | None:
    """Return the number of steps at which the learner dropped the logs, and warn of it; None if it kept them."""
    alarm = int(sampler.memory.against[1])
    if not alarm:
        return None
    warnings.warn(
        f"What the agent saw in its first {alarm:,} steps contradicts the logs: its own visits alone predict it more "
        "than 20 times better. Either a source is more confounded than declared, or the world is not that of the logs, "
        "or a hidden cause lasts over the episode, or the logs are too few to have seen most of what can follow an "
        "action. The learner dropped the logs and went on without.",
        ShapingWarning,
        stacklevel=3,
    )
    return alarm


@njit(nogil=True)
def plan_if_needed(sampler: Any, h: int, layer: int, s: int) -> None:
    """Draw a world, or take the mean, and plan in it, if it is time: before some episodes, and some repeated actions.

    The Q-values of the state in which the agent is, and the best action there, are those of the last plan.

    An action is not repeated on a plan that knew less than half of its visits: what was hoped of it may be refuted by
    now.
    """
    shape, memory, drawn, row = sampler.shape, sampler.memory, sampler.drawn, sampler.q_values[layer, s]
    plans = sampler.plans
    if h == 0:
        plans[EPISODES] += 1
    if h > 0 or plans[EPISODES] < plans[NEXT]:
        beliefs.plan_row(shape, memory, drawn, sampler.admissible, sampler.values, sampler.elsewhere, layer, s, row)
        x = row.argmax()
        sampler.best[layer, s] = x
        cell = ((layer if shape.steps > 1 else 0) * shape.states + s) * shape.actions + x
        if memory.total[cell] < max(1.0, 2.0 * sampler.planned[cell]):
            return
    if sampler.samples:
        beliefs.draw(sampler.rng, shape, sampler.guess, memory, sampler.admissible, drawn)
    else:
        beliefs.write_mean(shape, sampler.guess, memory, sampler.admissible, drawn)
    beliefs.plan_values(shape, memory, drawn, sampler.admissible, sampler.terminal, sampler.values, sampler.elsewhere)
    beliefs.plan_row(shape, memory, drawn, sampler.admissible, sampler.values, sampler.elsewhere, layer, s, row)
    sampler.best[layer, s] = row.argmax()
    sampler.planned[:] = memory.total
    plans[PLANS] += 1
    frequent = max(FREQUENT_PLANS, FREQUENT_CELLS // len(sampler.planned))
    plans[NEXT] = plans[EPISODES] + 1 + plans[EPISODES] // frequent


@njit(**INLINED)
def learn_sampled(sampler: Any, step: Any) -> None:
    """Count what happened."""
    shape = sampler.shape
    layer = step.layer if shape.steps > 1 else 0
    cell = (layer * shape.states + step.state) * shape.actions + step.action
    after = shape.states if step.final else step.after
    beliefs.observe(shape, sampler.guess, sampler.memory, cell, after, step.reward, 1.0)
    sampler.visits[step.layer, step.state, step.action] += 1


@njit(nogil=True)
def recommend_sampled(sampler: Any) -> Any:
    """Return the Q-values of the plan in the mean of the posterior: float64 [steps, states, actions]."""
    world = beliefs.mean_world(sampler.shape, sampler.guess, sampler.memory, sampler.admissible)
    plan = np.zeros((len(sampler.values) - 1, sampler.shape.states, sampler.shape.actions))
    beliefs.plan(sampler.shape, sampler.memory, world, sampler.admissible, sampler.terminal, plan)
    return plan[: len(sampler.q_values)].copy()
