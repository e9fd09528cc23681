"""The published bound, exactly as printed, flaws included.

Per source i, with P(x | s), the mean reward R~(s, x) and the transitions T~(s, x, s') of its data
(equation 5 of the paper, the clipped form of the Causal Bellman Optimal Equation; its h counts from
1):

    Qbar_h(s, x) = P(not x | s) (b + min(max over s* of V_{h+1}(s*), omega_h))
                 + P(x | s) (R~(s, x) + sum over s' of T~(s, x, s') V_{h+1}(s'))
    Vbar_h(s)    = max over the x that i tried in s of Qbar_h(s, x),       omega_h = (H - h) b

and then the minimum over the sources that acted in s (corollary 3.2, algorithm 2). Pairs that a
source never tried are skipped. s* runs over the states in which it ever acted. A state in which it
never acted keeps the value 0 inside its own pass; one in which no source acted gets (H - h) b, as
the footnote says. The caveats name each way in which that can fall below the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from causal_shaping.bounds.settings import Settings
from causal_shaping.bounds.solution import VALUE_TOLERANCE, Solution, fixed_point
from causal_shaping.bounds.support import terminal_states
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts


class Estimates:
    """The propensities, mean rewards and transitions of one source, at one step or pooled."""

    def __init__(self, counts: Counts, source: int, step: int | None = None) -> None:
        here = counts.source == source
        if step is not None and counts.step is not None:
            here &= counts.step == step
        self.shape = states, actions = counts.space.is_admissible.shape
        size, n = states * actions, counts.n[here]
        pair = counts.state[here].astype(np.int64) * actions + counts.action[here]
        taken = np.bincount(pair, n, minlength=size)
        self.tried = (taken > 0).reshape(self.shape)
        paid = np.bincount(pair, counts.reward_sum[here], minlength=size)
        self.reward = (paid / np.where(taken > 0, taken, 1.0)).reshape(self.shape)
        taken = taken.reshape(self.shape)
        visits = taken.sum(axis=1, keepdims=True)
        self.share = taken / np.where(visits > 0, visits, 1.0)
        terminated, after = counts.terminated[here], counts.next_state[here]
        goes_on = ~terminated & (after >= 0)  # nothing is earned after the end
        known = np.bincount(pair, n * (goes_on | terminated), minlength=size)
        mass = n[goes_on] / known[pair[goes_on]]
        self.follows = csr_array((mass, (pair[goes_on], after[goes_on])), shape=(size, states))

    def backup(
        self, following: FloatArray, best: float, reward_max: float, discount: float
    ) -> FloatArray:
        """Return Qbar, -inf for pairs that were never tried.

        Args:
            following: the values of the next states.
            best: the clipped value of the best state.
            reward_max: the paper's b.
            discount: the factor on future reward; the paper has none.
        """
        seen = self.reward + discount * (self.follows @ following).reshape(self.shape)
        elsewhere = reward_max + discount * best
        q_values = (1 - self.share) * elsewhere + self.share * seen
        return np.where(self.tried, q_values, -np.inf)


@dataclass
class _Pass:
    """The backward pass of one source."""

    settings: Settings
    acted_in: BoolArray  # [states], where the source ever acted
    below_zero: bool = field(default=False, init=False)  # whether some best state was

    def backup(
        self, estimates: Estimates, omega: float, following: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return Vbar and Qbar of a step from the values of the next."""
        best = following[self.acted_in].max(initial=-np.inf)
        self.below_zero |= bool(best < 0)
        clipped = omega
        if np.isfinite(best):
            clipped = min(best, omega)
        settings = self.settings
        q_values = estimates.backup(following, clipped, settings.reward_bound, settings.discount)
        acted = estimates.tried.any(axis=1)
        return np.where(acted, q_values.max(axis=1), 0.0), q_values


def paper_ceilings(counts: Counts, settings: Settings) -> Solution:
    """Return the published bound of the optimal interventional values.

    `horizon` is the paper's H, `reward_bound` its b. A stationary bound sweeps with
    omega = (H - 1) b.
    """
    sources, (states, _) = range(len(counts.sources)), counts.space.is_admissible.shape
    terminal = terminal_states(counts)
    acted_in = np.zeros((len(sources), states), dtype=bool)
    acted_in[counts.source, counts.state] = True
    passes = [_Pass(settings, acted_in[i]) for i in sources]
    solve: Any = _finite_horizon
    if settings.stationary:
        solve = _infinite_horizon
    values, q_values, tried, unvisited, sweeps = solve(counts, settings, passes)

    # The minimum over the sources that acted in a state, and that tried an action.
    acted = tried.any(axis=-1)
    lowest = np.where(acted, values, np.inf).min(axis=0)
    lowest_q = np.where(tried, q_values, np.inf).min(axis=0)
    vacuous = np.isinf(lowest) & ~terminal
    unvisited = np.where(terminal, 0.0, unvisited)
    lowest = np.where(np.isinf(lowest), unvisited, lowest)
    lowest_q[np.isinf(lowest_q)] = np.nan
    lowest_q[..., terminal, :] = 0.0

    below_zero = any(one.below_zero for one in passes)
    clipped = settings.stationary and _reached_clip(settings, values, acted_in)
    caveats = _caveats(counts, settings.reward_bound, tried, vacuous, below_zero, clipped)
    unrestricted = ~vacuous & ~terminal
    solution = Solution(lowest, lowest_q, vacuous, unrestricted, terminal, caveats=caveats)
    if sweeps is None:
        return solution
    return replace(solution, sweeps=sweeps[0], contraction=sweeps[1])


def _finite_horizon(
    counts: Counts, settings: Settings, passes: list[_Pass]
) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray, None]:
    """Return values, action values and what was tried [sources, steps, ...], and (H - h) b."""
    horizon, shape = settings.horizon, counts.space.is_admissible.shape
    omega = np.arange(horizon - 1, -1, -1.0) * settings.reward_bound
    values = np.zeros((len(passes), horizon + 1, shape[0]))
    q_values = np.empty((len(passes), horizon, *shape))
    tried = np.empty(q_values.shape, dtype=bool)
    for i, one in enumerate(passes):
        estimates = Estimates(counts, i)
        for h in reversed(range(horizon)):
            if counts.step is not None:
                estimates = Estimates(counts, i, h)
            values[i, h], q_values[i, h] = one.backup(estimates, omega[h], values[i, h + 1])
            tried[i, h] = estimates.tried
    return values[:, :-1], q_values, tried, omega[:, None], None


def _infinite_horizon(
    counts: Counts, settings: Settings, passes: list[_Pass]
) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray, tuple[int, float]]:
    """Return the same without steps, with the most sweeps and the slowest contraction."""
    omega = (settings.horizon - 1) * settings.reward_bound
    states, start = counts.space.states, np.zeros(len(counts.space.states))
    estimates = [Estimates(counts, i) for i in range(len(passes))]
    found = [
        fixed_point(partial(one.backup, source, omega), start, states, settings.discount)
        for one, source in zip(passes, estimates, strict=True)
    ]
    sweeps = max(one.sweeps for one in found), max(one.contraction for one in found)
    return (
        np.array([one.values for one in found]),
        np.array([one.q_values for one in found]),
        np.array([source.tried for source in estimates]),
        np.full(len(start), omega),
        sweeps,
    )


def _reached_clip(settings: Settings, values: FloatArray, acted_in: BoolArray) -> bool:
    """Return whether a value of a state in which its source acted is above omega."""
    omega = (settings.horizon - 1) * settings.reward_bound
    return bool((values[acted_in] > omega + VALUE_TOLERANCE * abs(omega)).any())


def _caveats(
    counts: Counts,
    b: float,
    tried: BoolArray,
    vacuous: BoolArray,
    below_zero: bool,
    clipped: bool,
) -> tuple[str, ...]:
    """Return why the bound is not guaranteed; `tried` is [sources, (steps,) states, actions]."""
    highest, ends = counts.reward_max.max(), bool(counts.terminated.any())
    acted: BoolArray = np.asarray(tried.any(axis=-1))
    untried = acted[..., None] & ~tried & counts.space.is_admissible
    if tried.ndim == 4 and not counts.step_indexed:
        untried = untried[:, 0]  # all steps are alike
    skipped = int(untried.sum())
    follows = (counts.next_state >= 0) & ~counts.terminated
    ever = acted
    if acted.ndim == 3:
        ever = np.asarray(acted.any(axis=1))
    entered = ever[counts.source[follows], counts.next_state[follows]].all()
    caveats = {
        f"b is {b:g}, below a reward of {highest:g} that was seen: it is no bound of the reward.": b
        < highest,
        f"{skipped:,} actions that a source never tried in a state in which it acted were "
        "skipped; one may be best.": skipped > 0,
        "b is negative and episodes can end early: (H - h) b is no bound of what follows.": (
            b < 0 and ends
        ),
        "The best state in which a source acted is worth less than 0, and ending, worth 0, was "
        "not considered.": below_zero and ends,
        "The clip (H - 1) b was reached: without a time limit more than that can follow.": clipped,
        "In some states no source acted: (H - h) b leaves out one of the rewards that they can "
        "have.": vacuous.any(),
        "A source entered states in which it never acted; inside its own pass they are worth "
        "0.": not entered,
        "The states were read off the logs, and one that no log holds may be worth more; declare "
        "them with states=.": b > 0 and not counts.space.complete,
        "Some outcomes are unknown; they were taken to be like the known ones.": (
            not counts.outcome_known.all()
        ),
    }
    return tuple(sentence for sentence, holds in caveats.items() if holds)
