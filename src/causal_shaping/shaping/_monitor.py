"""The monitor of ceilings, one step, compiled: for wrappers and for the kernels of learners.

All that it needs lies in two arrays, since a wrapper steps one by one, and a call of compiled code takes the longer the
more arrays it is given. What is done and why: `causal_shaping.shaping.monitor`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causal_shaping._compile import INLINED, njit
from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.data.successors import ANYTHING

ALARM = 20.0
"""Evidence that ceilings which hold reach in at most one of so many runs, however long these are."""

FRACTIONS = (15 / 16, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128)
"""The bets, as fractions of the largest one that cannot go bankrupt."""

ROUNDING, SMALLEST = 1e-9, 1e-6
"""In units: what shaped rewards are rounded off by, and the smallest amount that a bet can lose."""

NOTHING, BETS, ACTION, STATE, SUCCESSOR, HIGHEST, PAID, VOID = range(8)
"""Why the monitor stopped: not at all; by evidence; because of an action, a state or a successor that is excluded, a
reward above reward_max or above all that were seen with this successor; or because a reward below reward_min made its
bets void, which is no alarm."""

INADMISSIBLE = -2
"""The row of a state and action that does not exist."""

CODE, STEPS, STEP, FROM, TAKEN, TO, STATES, ACTIONS, LAYERS, ROWS, EPISODE_STEPS, BETTING, COMPLETE = range(13)
"""The integers: why the monitor stopped, steps so far, and the step, state, action and successor that it stopped at;
the numbers of states, actions, layers of the potential and rows of the support; `episode_steps` of the potential, -1
for the test of steps; whether reward_min is known, and whether no states exist but those that are known."""

PHI, LOWEST, HIGHEST_OF, WEALTH, WHOLE, EPISODE = range(13, 19)
"""Where tables begin among the reals. States end with one that is not known, rows with `ANYTHING`.

phi [layers, states + 1], with a last layer of 0 after the last step; `lowest` [layers, rows + 1], the least that phi of
an allowed successor can be; `highest` of `AllowedSuccessors`; the wealth [(states + 1) * actions, bets] of bets on each
(s, x), for tests of episodes on each first state; that of bets on all steps alike [bets]; and of each environment's
episode [4] the return so far, the next discount, the steps and the first state."""

ROW, FIRST, AFTER, TERMINAL = range(19, 23)
"""Where tables begin among the integers: `row` [states + 1, actions], `first` and `after` of `AllowedSuccessors`, and
which states are terminal [states + 1]."""

EVIDENCE, REWARD, DISCOUNT, REWARD_MIN, REWARD_MAX, UNIT, WEIGHT, PRODUCT = 0, 1, 2, 3, 4, 5, 6, 8
"""The reals: the evidence, the reward that the monitor stopped at; of the ceilings the discount, the bounds of rewards
and their unit, the range of rewards and potentials; two weights of a cell, and the two products over cells."""

FIRST_LIST = 23
"""Where the first table among the integers begins."""


class Packed(NamedTuple):
    """What ceilings claim, and what the monitor has seen, which is changed in place; positions as above."""

    reals: FloatArray
    integers: LongArray


@njit(**INLINED)
def monitor_step(reals, integers, i, h, s, x, reward, after, terminated, truncated):  # type: ignore[no-untyped-def]
    """Test a step of environment i and return the evidence so far: `monitor_step(*packed, i, h, ...)`.

    h is the number of the step in its episode, from 0; s, x, after are positions, -1 for unknown ones. Nothing changes
    after an alarm.
    """
    if integers[CODE] != NOTHING and integers[CODE] != VOID:
        return reals[EVIDENCE]
    integers[STEPS] += 1
    states = integers[STATES]
    here = states if s < 0 else s
    ended = bool(terminated) or (after >= 0 and integers[integers[TERMINAL] + after] != 0)
    to = states if ended else after
    row = INADMISSIBLE if x < 0 else integers[integers[ROW] + here * integers[ACTIONS] + x]
    code = _excluded(reals, integers, row, s, reward, to)
    if code != NOTHING:
        reals[EVIDENCE] = np.inf
    elif integers[BETTING] and integers[CODE] == NOTHING:
        if reward < reals[REWARD_MIN] - SMALLEST * reals[UNIT]:
            code = VOID
        elif integers[EPISODE_STEPS] < 0:
            _test_step(reals, integers, row, h, here, x, reward, to)
        elif integers[EPISODE_STEPS] > 0:
            _test_episode(reals, integers, i, h, here, reward, ended, truncated)
        if reals[EVIDENCE] >= ALARM:
            code = BETS
    if code != NOTHING:
        integers[CODE], integers[STEP], integers[FROM], integers[TAKEN], integers[TO] = code, h, s, x, to
        reals[REWARD] = reward
    return reals[EVIDENCE]


@njit(**INLINED)
def _excluded(reals, integers, row, s, reward, to):  # type: ignore[no-untyped-def]
    """Return what of a step the ceilings exclude, or `NOTHING`."""
    margin = SMALLEST * reals[UNIT]
    if row == INADMISSIBLE:
        return ACTION
    if reward > reals[REWARD_MAX] + margin:
        return HIGHEST
    if integers[COMPLETE] and (s < 0 or to < 0):
        return STATE
    if row == ANYTHING:
        return NOTHING
    for o in range(integers[integers[FIRST] + row], integers[integers[FIRST] + row + 1]):
        if integers[integers[AFTER] + o] == to:
            return PAID if reward > reals[integers[HIGHEST_OF] + o] + margin else NOTHING
    return SUCCESSOR


@njit(**INLINED)
def _test_step(reals, integers, row, h, s, x, reward, to):  # type: ignore[no-untyped-def]
    """Bet that the shaped reward of a step is positive in the mean; `to` is the number of states after an end."""
    states, rows, layer, below = integers[STATES], integers[ROWS], 0, 0
    if integers[LAYERS] > 1:
        layer, below = h, h + 1
        if below >= integers[LAYERS]:
            return
    before, following = reals[integers[PHI] + layer * (states + 1) + s], 0.0
    if to != states:
        following = reals[integers[PHI] + below * (states + 1) + (states if to < 0 else to)]
    lowest = reals[integers[LOWEST] + below * (rows + 1) + (rows if row == ANYTHING else row)]
    won = reward + reals[DISCOUNT] * following - before - ROUNDING * reals[UNIT]
    risk = before - reals[REWARD_MIN] - reals[DISCOUNT] * lowest
    if won == won:  # where unseen states have no value, nothing is claimed of them
        _bet(reals, integers, s * integers[ACTIONS] + x, won / max(risk, SMALLEST * reals[UNIT]))


@njit(**INLINED)
def _test_episode(reals, integers, i, h, s, reward, ended, truncated):  # type: ignore[no-untyped-def]
    """Bet, at the end of an episode, that its return is more than the potential of its first state in the mean."""
    episode, most = integers[EPISODE] + 4 * i, integers[EPISODE_STEPS]
    if h == 0:
        if reals[episode + 2] > 0:  # it was given up without an end
            _close_episode(reals, integers, episode, False)
        reals[episode], reals[episode + 1], reals[episode + 2], reals[episode + 3] = 0.0, 1.0, 0.0, s
    if h == reals[episode + 2] and h < most:
        reals[episode] += reals[episode + 1] * reward
        reals[episode + 1] *= reals[DISCOUNT]
        reals[episode + 2] += 1
        if ended or truncated or h + 1 == most:
            _close_episode(reals, integers, episode, ended)
            reals[episode + 2] = 0.0


@njit(**INLINED)
def _close_episode(reals, integers, episode, ended):  # type: ignore[no-untyped-def]
    """Bet on the return of an episode; had it gone on, all steps left might have paid the least."""
    earned, following, taken, s = reals[episode], reals[episode + 1], int(reals[episode + 2]), int(reals[episode + 3])
    most, discount, reward_min = integers[EPISODE_STEPS], reals[DISCOUNT], reals[REWARD_MIN]
    least, factor = 0.0, 1.0  # the lowest return: of one step, or of all if steps can cost something
    for _ in range(1 if reward_min > 0 else most):
        least += factor * reward_min
        factor *= discount
    if not ended:
        for _ in range(taken, most):
            earned += following * min(reward_min, 0.0)
            following *= discount
    before = reals[integers[PHI] + s]
    if before == before:
        won = earned - before - ROUNDING * reals[UNIT]
        _bet(reals, integers, s * integers[ACTIONS], won / max(before - least, SMALLEST * reals[UNIT]))


@njit(**INLINED)
def _bet(reals, integers, cell, gain):  # type: ignore[no-untyped-def]
    """Bet each fraction, on the cell and on the whole; `gain` is at least -1, and at most 0 in the mean."""
    bets = len(FRACTIONS)
    own, whole = integers[WEALTH] + cell * bets, integers[WHOLE]
    before, after, everywhere = 0.0, 0.0, 0.0
    for k in range(bets):
        factor = 1.0 + FRACTIONS[k] * gain
        before += reals[own + k]
        reals[own + k] *= factor
        reals[whole + k] *= factor
        after += reals[own + k]
        everywhere += reals[whole + k]
    by_cell = 0.0
    for j in range(2):
        weight = reals[WEIGHT + j]
        reals[PRODUCT + j] *= (1 - weight + weight * after / bets) / (1 - weight + weight * before / bets)
        by_cell += reals[PRODUCT + j]
    reals[EVIDENCE] = (everywhere / bets + by_cell / 2) / 2
