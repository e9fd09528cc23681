"""What a learner does with a step, compiled, and the named tuples that hold its arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.shaping._monitor import CODE, NOTHING, VOID, monitor_step
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.worlds.simulate import pick


class Constants(NamedTuple):
    """What the kernels know of a rule; arrays have a leading axis of 1 without step index, of H with it.

    In `potential`, the last row is 0 with step index, terminal states are 0, and all is 0 if the reward is not shaped.
    """

    discount: float
    potential: FloatArray  # [steps + 1, states]
    clip: FloatArray  # [steps, states]
    bonus: float  # B of b_t = B / sqrt(t)
    horizon: int  # H


class Setting(NamedTuple):
    """A rule made ready for a problem."""

    constants: Constants
    initial: FloatArray  # [steps, states, actions], the Q-values that learning starts from
    initial_values: FloatArray  # [steps + 1, states]
    bootstrap: bool  # see `Rule.time_limit`
    step_indexed: bool


class Watch(NamedTuple):
    """The monitor of ceilings, and how it numbers states and actions; without states it is off."""

    reals: FloatArray
    integers: LongArray
    states: LongArray
    actions: LongArray


class Learned(NamedTuple):
    """What a learner knows, changed in place."""

    q_values: FloatArray  # [steps, states, actions]
    values: FloatArray  # [steps + 1, states]
    visits: LongArray  # like `q_values`


class Step(NamedTuple):
    """One step: `layer` is its table and `below` that of the next step (both 0 without step index).

    `final` says that nothing follows `after`: it terminated, or was truncated and the rule does not bootstrap there.
    """

    layer: int
    below: int
    state: int
    action: int
    reward: float
    after: int
    final: bool


class Course(NamedTuple):
    """What a run is asked for: budgets of steps and episodes, rising checkpoints, and the regret of each action."""

    steps: int
    episodes: int
    checkpoints: LongArray
    gaps: FloatArray  # [steps, states, actions]


class Track(NamedTuple):
    """What a run tells: see `Run`; `regret` is that of each step alone, and `policies` has room for all checkpoints."""

    regret: FloatArray
    episode_end: LongArray
    returns: FloatArray
    policies: IntArray
    alarm: int  # 0 if there was none


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


@njit(nogil=True)
def update(learned, step, constants):  # type: ignore[no-untyped-def]
    """Update Q and V by one step, as in the text of `causal_shaping.learners.rules`."""
    q_values, values, visits = learned
    discount, potential, clip, bonus, horizon = constants
    layer, below, s, x, reward, after, final = step
    visits[layer, s, x] += 1
    t = visits[layer, s, x]
    alpha = (horizon + 1.0) / (horizon + t)
    phi, following = (0.0, 0.0) if final else (potential[below, after], discount * values[below, after])
    shaped = _shaped_reward(reward, discount, potential[layer, s], phi)
    new = (1.0 - alpha) * q_values[layer, s, x] + alpha * (shaped + following + bonus / math.sqrt(t))
    q_values[layer, s, x] = new
    values[layer, s] = min(clip[layer, s], q_values[layer, s].max())


@njit(nogil=True)
def contradicted(watch, h, step, terminated, truncated):  # type: ignore[no-untyped-def]
    """Test a step, the one of number h in its episode, and return whether the ceilings are refuted by now."""
    reals, integers, states, actions = watch
    s, x, after = states[step.state], actions[step.action], states[step.after]
    monitor_step(reals, integers, 0, h, s, x, step.reward, after, terminated, truncated)
    return integers[CODE] != NOTHING and integers[CODE] != VOID


@njit(nogil=True)
def start_again(learned, setting):  # type: ignore[no-untyped-def]
    """Forget what was learned, but for the actions that turned out not to be admissible."""
    q_values, values, visits = learned
    for layer, s, x in np.ndindex(q_values.shape):
        if q_values[layer, s, x] > -np.inf:
            q_values[layer, s, x] = setting.initial[layer, s, x]
        visits[layer, s, x] = 0
    values[:] = setting.initial_values


@njit(nogil=True)
def run_tables(rng, tables, setting, without, course, learned, rows, watch):  # type: ignore[no-untyped-def]
    """Learn in the tables of a world; s, x, u: state, action, hidden noise.

    `without` is the setting of a potential of 0, which takes over when ceilings are refuted.
    """
    # Unpacked once: in the loop, each look into a tuple of arrays would count references.
    q_values, (steps, most_episodes, checkpoints, gaps) = learned.q_values, course
    next_state, rewards, noise, terminal, start = tables
    constants, _, _, bootstrap, step_indexed = setting
    layers, states, _ = q_values.shape
    row_state, row_action, row_reward, row_next, row_terminated = rows
    recording, watching, alarm = len(row_state) > 0, len(watch.states) > 0, 0
    regret, ends, returns = np.empty(steps), np.empty(steps, dtype=np.int64), np.empty(steps)
    policies = np.zeros((len(checkpoints), layers, states), dtype=np.int32)
    episodes, saved, h, earned = 0, 0, 0, 0.0
    s = pick(start, rng.random())
    for done in range(1, steps + 1):
        layer, below = (h, h + 1) if step_indexed else (0, 0)
        x = q_values[layer, s].argmax()
        regret[done - 1] = gaps[layer, s, x]
        u = pick(noise[s], rng.random())
        after, reward = int(next_state[s, x, u]), rewards[s, x, u]
        h += 1
        terminated, truncated = terminal[after], h == constants.horizon
        step = Step(layer, below, s, x, reward, after, _is_final(terminated, truncated, bootstrap))
        if recording:
            row_state[done - 1], row_action[done - 1], row_reward[done - 1] = s, x, reward
            row_next[done - 1], row_terminated[done - 1] = after, terminated
        if watching and contradicted(watch, h - 1, step, terminated, truncated):
            watching, alarm, constants = False, done, without.constants
            start_again(learned, without)
        update(learned, step, constants)
        earned += reward
        if saved < len(checkpoints) and checkpoints[saved] == done:
            for i, state in np.ndindex(layers, states):
                policies[saved, i, state] = q_values[i, state].argmax()
            saved += 1
        if terminated or truncated or done == steps:
            ends[episodes], returns[episodes] = done, earned
            episodes, h, earned = episodes + 1, 0, 0.0
            if episodes == most_episodes:
                break
            if done < steps:
                s = pick(start, rng.random())
        else:
            s = after
    regret, ends = regret[: ends[episodes - 1]].copy(), ends[:episodes].copy()
    return Track(regret, ends, returns[:episodes].copy(), policies, alarm)
