"""What a learner does with a step, compiled, and the named tuples that hold its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from causal_shaping._compile import INLINED, njit, resolved
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.learners._posterior import Sampler, learn_sampled, plan_if_needed, recommend_sampled
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.shaping.monitor import VOID, Tables, monitor_step
from causal_shaping.worlds.simulate import guide_of, pick_guided, pick_in_row


class Constants(NamedTuple):
    """What the kernels know of a rule; arrays have a leading axis of 1 without step index, of H with it.

    In `potential`, the last row is 0 with step index, terminal states are 0, and all is 0 if the reward is not shaped.
    """

    potential: FloatArray  # [steps + 1, states]
    clip: FloatArray  # [steps, states]
    discount: float
    bonus: float  # B of b_t = B / sqrt(t)
    horizon: int  # H


class Setting(NamedTuple):
    """A rule made ready for a problem."""

    constants: Constants
    initial: FloatArray  # [steps, states, actions], the Q-values that learning starts from
    initial_values: FloatArray  # [steps + 1, states]
    bootstrap: bool  # see `Rule.time_limit`
    step_indexed: bool


class Learned(NamedTuple):
    """What a learner knows, changed in place."""

    q_values: FloatArray  # [steps, states, actions]
    values: FloatArray  # [steps + 1, states]
    visits: LongArray  # like `q_values`
    best: LongArray  # [steps, states], the first of the best actions, as of the last update of the row


class Watch(NamedTuple):
    """The monitor of ceilings, and how it numbers states and actions."""

    tables: Tables
    states: LongArray
    actions: LongArray


class Tabular(NamedTuple):
    """A learner by a rule: what it knows, and its rule."""

    learned: Learned
    setting: Setting


class Watched(NamedTuple):
    """A learner by a rule whose ceilings are tested: what it knows, its rule, and the monitor."""

    learned: Learned
    setting: Setting
    watch: Watch


class Step(NamedTuple):
    """One step: `layer` is its table and `below` that of the next step (both 0 without step index).

    `final` says that nothing follows `after`: it terminated, or was truncated and the rule does not bootstrap there.
    `number` is that of the step in its episode, from 0.
    """

    layer: int
    below: int
    state: int
    action: int
    reward: float
    after: int
    final: bool
    number: int
    terminated: bool
    truncated: bool


class Course(NamedTuple):
    """What a run is asked for: budgets of steps and episodes, rising checkpoints, and the regret of each action."""

    steps: int
    episodes: int
    checkpoints: LongArray
    gaps: FloatArray  # [steps, states, actions]
    horizon: int
    bootstrap: bool  # see `Rule.time_limit`
    step_indexed: bool


class Track(NamedTuple):
    """What a run tells: see `Run`; `policies` has room for all checkpoints."""

    step_regret: FloatArray
    episode_end: LongArray
    returns: FloatArray
    policies: IntArray


class Rows(NamedTuple):
    """What a run keeps of each step if it is recorded, changed in place; otherwise there is room for none."""

    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray


def room_for(rows: int) -> Rows:
    """Return arrays that so many steps can be written to."""
    state, action, next_state = (np.zeros(rows, dtype=np.int32) for _ in range(3))
    return Rows(state, action, np.zeros(rows), next_state, np.zeros(rows, dtype=np.bool_))


_shaped_reward, _is_final = njit()(shaped_reward), njit()(is_final)


@njit(**INLINED)
def first_best(q_values, layer, s):  # type: ignore[no-untyped-def]
    """Return the first action with the largest Q-value, and that. Unlike argmax, it makes no array of the row."""
    x, best = 0, q_values[layer, s, 0]
    for k in range(1, q_values.shape[2]):
        value = q_values[layer, s, k]
        x = k if value > best else x  # one by one, so that both become moves: a branch could not be foreseen
        best = value if value > best else best
    return x, best


@njit(**INLINED)
def update(q_values, values, visits, best, potential, clip, discount, bonus, horizon, step):  # type: ignore[no-untyped-def]
    """Update Q and V by one step, as in the text of `causal_shaping.learners.rules`.

    Called as `update(*learned, *constants, step)`. Arrays come one by one, and the code is put where it is called: to
    take arrays out of a tuple, or to pass them on, takes longer than the update.
    """
    # Unsigned: of a signed position each look would first ask whether it counts from the end.
    layer, below, s = np.uint64(step.layer), np.uint64(step.below), np.uint64(step.state)
    x, after = np.uint64(step.action), np.uint64(step.after)
    visits[layer, s, x] += 1
    t = visits[layer, s, x]
    alpha = (horizon + 1.0) / (horizon + t)
    phi, following = (0.0, 0.0) if step.final else (potential[below, after], discount * values[below, after])
    shaped = _shaped_reward(step.reward, discount, potential[layer, s], phi)
    new = (1.0 - alpha) * q_values[layer, s, x] + alpha * (shaped + following + bonus / math.sqrt(t))
    q_values[layer, s, x] = new
    best[layer, s], value = first_best(q_values, layer, s)
    values[layer, s] = min(clip[layer, s], value)


@njit(**INLINED)
def watch_step(agent, step):  # type: ignore[no-untyped-def]
    """Test a step; when the ceilings are refuted, begin again with a potential of 0 and no clip."""
    tables, states, actions = agent.watch
    if tables.run[0].code > VOID:
        return
    s, x, after = states[step.state], actions[step.action], states[step.after]
    monitor_step(tables, 0, step.number, s, x, step.reward, after, step.terminated, step.truncated)
    if tables.run[0].code > VOID:
        q_values, values, visits, best = agent.learned
        potential, clip, initial = (
            agent.setting.constants.potential,
            agent.setting.constants.clip,
            agent.setting.initial,
        )
        for layer, state in np.ndindex(values.shape):
            potential[layer, state] = 0.0
            values[layer, state] = agent.setting.initial_values[layer, state]
        for layer, state, action in np.ndindex(q_values.shape):
            clip[layer, state] = np.inf
            visits[layer, state, action] = 0
            if q_values[layer, state, action] > -np.inf:  # or it turned out not to be admissible
                q_values[layer, state, action] = initial[layer, state, action]
        for layer, state in np.ndindex(best.shape):
            best[layer, state], _ = first_best(q_values, layer, state)


def before_step(agent: Any, h: int, layer: int, s: int) -> None:
    """Let a learner prepare for a step: one that samples may plan anew. For compiled code, see `step_by_step`."""
    raise NotImplementedError


def learn(
    agent: Any,
    step: Step,
    q_values: FloatArray,
    values: FloatArray,
    visits: LongArray,
    best: LongArray,
    potential: FloatArray,
    clip: FloatArray,
    discount: float,
    bonus: float,
    horizon: int,
) -> None:
    """Let a learner learn from a step: `learn(agent, step, *parts_of(agent))`. For compiled code, as above."""
    raise NotImplementedError


def step_by_step(agent: Any) -> tuple[Callable[[int, int, int], None], Callable[[Step], None]]:
    """Return `before_step` and `learn` of an agent for Python code: of (h, layer, s), and of a step."""
    step, parts = Step(0, 0, 0, 0, 0.0, 0, False, 0, False, False), parts_of(agent)
    if isinstance(agent, Sampler):
        plan, count = resolved(plan_if_needed, agent, 0, 0, 0), resolved(learn_sampled, agent, step)
        return partial(plan, agent), partial(count, agent)
    learn_step = partial(resolved(update, *parts, step), *parts)
    if not isinstance(agent, Watched):
        return _do_nothing, learn_step
    watch = partial(resolved(watch_step, agent, step), agent)

    def watch_and_learn(step: Step) -> None:
        watch(step)
        learn_step(step)

    return _do_nothing, watch_and_learn


def _do_nothing(h: int, layer: int, s: int) -> None:
    """Prepare nothing."""


def parts_of(agent: Any) -> Any:
    """Return what a learner knows and its constants, which `learn` takes one by one; see `update`."""
    if isinstance(agent, Sampler):  # of which only what it acts on is used
        nothing = np.zeros((0, 0))
        return agent.q_values, nothing, agent.visits, agent.best, nothing, nothing, 1.0, 0.0, 0
    return *agent.learned, *agent.setting.constants


def recommend(agent: Any) -> Any:
    """Return the Q-values whose best actions a learner recommends: float64 [steps, states, actions]."""
    return recommend_sampled(agent) if isinstance(agent, Sampler) else agent.learned.q_values


def _samples(agent: Any) -> bool:
    return getattr(agent, "instance_class", None) is Sampler


# What compiled code does, which chooses by the type: a learner's kernels are compiled only if it is used.


@overload(before_step)
def _before_step(agent, h, layer, s):  # type: ignore[no-untyped-def]
    if _samples(agent):
        return lambda agent, h, layer, s: plan_if_needed(agent, h, layer, s)
    return lambda agent, h, layer, s: None


@overload(learn, jit_options=INLINED)
def _learn(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, horizon):  # type: ignore[no-untyped-def]
    if _samples(agent):
        return None
    return _learn_watched if getattr(agent, "instance_class", None) is Watched else _learn_tabular


@overload(learn)
def _learn_by_sampling(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, horizon):  # type: ignore[no-untyped-def]
    return _learn_sampled if _samples(agent) else None


def _learn_sampled(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, horizon):  # type: ignore[no-untyped-def]
    learn_sampled(agent, step)


def _learn_watched(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, horizon):  # type: ignore[no-untyped-def]
    watch_step(agent, step)
    update(q_values, values, visits, best, potential, clip, discount, bonus, horizon, step)


def _learn_tabular(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, horizon):  # type: ignore[no-untyped-def]
    update(q_values, values, visits, best, potential, clip, discount, bonus, horizon, step)


@overload(recommend)
def _recommend(agent):  # type: ignore[no-untyped-def]
    return (lambda agent: recommend_sampled(agent)) if _samples(agent) else (lambda agent: agent.learned.q_values)


@njit(nogil=True)
def run_tables(rng, tables, agent, parts, course, rows):  # type: ignore[no-untyped-def]
    """Learn in the tables of a world; `parts` are those of the agent. s, x, u: state, action, hidden noise."""
    # Unpacked once: in the loop, each look into a tuple of arrays would count references.
    steps, most_episodes, checkpoints, gaps, horizon, bootstrap, step_indexed = course
    next_state, rewards, noise, terminal, start = tables
    q_values, values, visits, best, potential, clip, discount, bonus, constant_horizon = parts
    layers, states, _ = q_values.shape
    row_state, row_action, row_reward, row_next, row_terminated = rows
    recording = len(row_state) > 0
    regret, ends, returns = np.empty(steps), np.empty(steps, dtype=np.int64), np.empty(steps)
    policies = np.zeros((len(checkpoints), layers, states), dtype=np.int32)
    episodes, saved, h, earned, total = 0, 0, 0, 0.0, 0.0
    guide = guide_of(start)
    s = pick_guided(start, guide, rng.random())
    for done in range(1, steps + 1):
        layer, below = (h, h + 1) if step_indexed else (0, 0)
        before_step(agent, h, layer, s)
        table, here = np.uint64(layer), np.uint64(s)  # unsigned: see `update`
        x = best[table, here]
        taken = np.uint64(x)
        total += gaps[table, here, taken]
        regret[done - 1] = total
        u = np.uint64(pick_in_row(noise, here, rng.random()))
        after, reward = int(next_state[here, taken, u]), rewards[here, taken, u]
        h += 1
        terminated, truncated = terminal[np.uint64(after)], h == horizon
        final = _is_final(terminated, truncated, bootstrap)
        step = Step(layer, below, s, x, reward, after, final, h - 1, terminated, truncated)
        if recording:
            row_state[done - 1], row_action[done - 1], row_reward[done - 1] = s, x, reward
            row_next[done - 1], row_terminated[done - 1] = after, terminated
        learn(agent, step, q_values, values, visits, best, potential, clip, discount, bonus, constant_horizon)
        earned += reward
        if saved < len(checkpoints) and checkpoints[saved] == done:
            recommended = recommend(agent)
            for i, state in np.ndindex(layers, states):
                policies[saved, i, state] = recommended[i, state].argmax()
            saved += 1
        if terminated or truncated or done == steps:
            ends[episodes], returns[episodes] = done, earned
            episodes, h, earned = episodes + 1, 0, 0.0
            if episodes == most_episodes:
                break
            if done < steps:
                s = pick_guided(start, guide, rng.random())
        else:
            s = after
    # Copies, where arrays are not used up: a run is kept longer than the room that it might have needed.
    regret = regret if done == steps else regret[:done].copy()
    return Track(regret, ends[:episodes].copy(), returns[:episodes].copy(), policies)
