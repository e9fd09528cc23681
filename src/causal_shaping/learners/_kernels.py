"""What a learner does with a step, compiled, and the named tuples that hold its arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.bounds._joint import add_free_mass, backup_state
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.worlds.simulate import pick

PLANNING_SWEEPS, PLANNING_TOLERANCE, RECOMMENDING_TOLERANCE = 1000, 1e-5, 1e-9
"""Sweeps of a plan without step index end when nothing changes by more than this, or after so many; an episode changes
little, so that sweeps from the last plan's values are few. The plan that is recommended in the end is more exact."""


class Constants(NamedTuple):
    """What the kernels know of a rule; arrays have a leading axis of 1 without step index, of H with it.

    In `potential`, the last row is 0 with step index, terminal states are 0, and all is 0 if the reward is not shaped.
    """

    discount: float
    potential: FloatArray  # [steps + 1, states]
    initial: FloatArray  # [steps, states, actions]
    clip: FloatArray  # [steps, states]
    bonus: float  # B of b_t = B / sqrt(t)
    rate_offset: float  # k of the learning rate (k + 1) / (k + t)
    cap_at_initial: bool  # see `Rule`


class Setting(NamedTuple):
    """A rule made ready for a problem."""

    constants: Constants
    initial_values: FloatArray  # [steps + 1, states]
    horizon: int
    bootstrap: bool  # see `Rule.time_limit`
    step_indexed: bool
    model_based: bool


class Learned(NamedTuple):
    """What a learner knows, changed in place."""

    q_values: FloatArray  # [steps, states, actions]
    values: FloatArray  # [steps + 1, states + 1]; the last column, for a state that nothing follows, stays 0
    visits: LongArray  # like `q_values`


class Counted(NamedTuple):
    """The transitions that a model-based rule counted, changed in place; there is room for a few next states."""

    paid: FloatArray  # [steps, states, actions], the sum of rewards
    successors: IntArray  # [steps, states, actions, room], the next states; the number of states if nothing follows
    times: LongArray  # like `successors`


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
    discount, potential, initial, clip, bonus, rate_offset, cap_at_initial = constants
    layer, below, s, x, reward, after, final = step
    visits[layer, s, x] += 1
    t = visits[layer, s, x]
    alpha = (rate_offset + 1.0) / (rate_offset + t)
    phi, following = (0.0, 0.0) if final else (potential[below, after], discount * values[below, after])
    shaped = _shaped_reward(reward, discount, potential[layer, s], phi)
    new = (1.0 - alpha) * q_values[layer, s, x] + alpha * (shaped + following + bonus / math.sqrt(t))
    if cap_at_initial:
        new = min(new, initial[layer, s, x])
    q_values[layer, s, x] = new
    values[layer, s] = min(clip[layer, s], q_values[layer, s].max())


@njit(nogil=True)
def greedy(q_values, visits, least_tried):  # type: ignore[no-untyped-def]
    """Return the best action: among equals the one tried least often, or else the lowest number."""
    best = 0
    for x in range(1, len(q_values)):
        if q_values[x] > q_values[best] or (least_tried and q_values[x] == q_values[best] and visits[x] < visits[best]):
            best = x
    return best


@njit(nogil=True)
def record(counted, visits, step):  # type: ignore[no-untyped-def]
    """Count a step for a model-based rule; False if there is no room for one more next state."""
    paid, successors, times = counted
    layer, _, s, x, reward, after, final = step
    if final:
        after = visits.shape[1]
    visits[layer, s, x] += 1
    paid[layer, s, x] += reward
    for i in range(successors.shape[-1]):
        if successors[layer, s, x, i] == after or times[layer, s, x, i] == 0:
            successors[layer, s, x, i] = after
            times[layer, s, x, i] += 1
            return True
    return False


@njit(nogil=True)
def plan(learned, counted, proven, terminal, step_indexed, constants, recommending):  # type: ignore[no-untyped-def]
    """Plan optimistically with what was counted: backwards over the steps, or sweeps that start from the last plan.

    `values` ends with a column for the end, which stays 0. `proven` is what logs prove of one step. `recommending` asks
    for what to do when all is learned: an action that was never tried does not count where another one was.
    """
    q_values, values, visits = learned
    paid, successors, times = counted
    discount, _, initial, clip, bonus, _, _ = constants
    known, begin, end, masses, unrestricted, by_action, reward_max, unknown = proven
    rewards, _, _, action, first, _, after, reward, lower, _, deficit, total = masses
    layers, states, actions = q_values.shape
    for _sweep in range(1 if step_indexed else PLANNING_SWEEPS):
        change = 0.0
        for layer in range(layers - 1, -1, -1):
            below = layer + 1 if step_indexed else 0
            here, following = q_values[layer], discount * values[below]
            most = np.inf  # what an action can be worth of which the logs show nothing
            if known:
                highest = max(0.0, unknown)
                for s in range(states):
                    if not terminal[s]:
                        highest = max(highest, values[below, s])
                most = reward_max + discount * highest
            for s in range(states):
                if terminal[s]:
                    continue
                for x in range(actions):
                    here[s, x] = most
                cell = begin[s] if known else 0
                while known and cell < end[s]:
                    last = cell + 1 if by_action else end[s]
                    seen = backup_state(
                        s, cell, last, action, first, after, reward, lower, deficit, rewards, following, here
                    )
                    for k in range(cell, last):
                        w = most if unrestricted[k] else seen
                        here[s, action[k]] = add_free_mass(here[s, action[k]], total[k], w)
                    cell = last
                tried = recommending and visits[layer, s].max() > 0
                for x in range(actions):
                    n = visits[layer, s, x]
                    if tried and n == 0:
                        here[s, x] = -np.inf
                        continue
                    here[s, x] = min(here[s, x], initial[layer, s, x])
                    if n > 0:
                        earned = 0.0
                        for i in range(successors.shape[-1]):
                            if times[layer, s, x, i] == 0:
                                break
                            earned += times[layer, s, x, i] * values[below, successors[layer, s, x, i]]
                        mean = (paid[layer, s, x] + discount * earned) / n
                        here[s, x] = min(here[s, x], mean + bonus / math.sqrt(n))
                new = min(clip[layer, s], here[s].max())
                change = max(change, abs(new - values[layer, s]))
                values[layer, s] = new
                if not step_indexed:
                    following[s] = discount * new
        if change < (RECOMMENDING_TOLERANCE if recommending else PLANNING_TOLERANCE):
            break


@njit(nogil=True)
def run_tables(rng, tables, setting, course, learned, counted, proven, rows):  # type: ignore[no-untyped-def]
    """Learn in the tables of a world; s, x, u: state, action, hidden noise."""
    # Unpacked once: in the loop, each look into a tuple of arrays would count references.
    (q_values, _, visits), (steps, most_episodes, checkpoints, gaps) = learned, course
    next_state, rewards, noise, terminal, start = tables
    constants, _, horizon, bootstrap, step_indexed, model_based = setting
    layers, states, _ = q_values.shape
    row_state, row_action, row_reward, row_next, row_terminated = rows
    recording = len(row_state) > 0
    regret, ends, returns = np.empty(steps), np.empty(steps, dtype=np.int64), np.empty(steps)
    policies = np.zeros((len(checkpoints), layers, states), dtype=np.int32)
    episodes, saved, h, earned = 0, 0, 0, 0.0
    s = pick(start, rng.random())
    for done in range(1, steps + 1):
        layer, below = (h, h + 1) if step_indexed else (0, 0)
        x = greedy(q_values[layer, s], visits[layer, s], constants.cap_at_initial)
        regret[done - 1] = gaps[layer, s, x]
        u = pick(noise[s], rng.random())
        after, reward = int(next_state[s, x, u]), rewards[s, x, u]
        h += 1
        terminated, truncated = terminal[after], h == horizon
        step = Step(layer, below, s, x, reward, after, _is_final(terminated, truncated, bootstrap))
        if recording:
            row_state[done - 1], row_action[done - 1], row_reward[done - 1] = s, x, reward
            row_next[done - 1], row_terminated[done - 1] = after, terminated
        if model_based:
            record(counted, visits, step)
        else:
            update(learned, step, constants)
        earned += reward
        over = terminated or truncated or done == steps
        if over and model_based:
            plan(learned, counted, proven, terminal, step_indexed, constants, False)
        if saved < len(checkpoints) and checkpoints[saved] == done:
            for i, state in np.ndindex(layers, states):
                policies[saved, i, state] = q_values[i, state].argmax()
            saved += 1
        if over:
            ends[episodes], returns[episodes] = done, earned
            episodes, h, earned = episodes + 1, 0, 0.0
            if episodes == most_episodes:
                break
            if done < steps:
                s = pick(start, rng.random())
        else:
            s = after
    return Track(regret[: ends[episodes - 1]].copy(), ends[:episodes].copy(), returns[:episodes].copy(), policies)
