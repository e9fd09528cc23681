"""The published bound, exactly as printed, flaws included.

Per source i, with P(x | s), the mean reward R~(s, x) and the transitions T~(s, x, s') of its data (equation 5 of the
paper, the clipped form of the Causal Bellman Optimal Equation; its h counts from 1):

    Qbar_h(s, x) = P(not x | s) (b + min(max over s* of V_{h+1}(s*), omega_h))
                 + P(x | s) (R~(s, x) + sum over s' of T~(s, x, s') V_{h+1}(s')),      omega_h = (H - h) b
    Vbar_h(s)    = max over the x that i tried in s of Qbar_h(s, x),

and then the minimum over the sources that acted in s (corollary 3.2, algorithm 2). Pairs that a source never tried are
skipped; s* runs over the states in which it ever acted; a state in which it never acted keeps the value 0 inside its
own pass; one in which no source acted gets (H - h) b, as the footnote says. `caveats` names each way in which that can
fall below the optimum.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from causal_shaping.bounds._parts import part_of
from causal_shaping.bounds._sweeps import Solution, fixed_point
from causal_shaping.bounds.settings import Settings
from causal_shaping.bounds.support import terminal_states
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.models.constants import VALUE_TOLERANCE


class Estimates:
    """The propensities, mean rewards and transitions of one source, at one step or pooled."""

    def __init__(self, counts: Counts, source: int, step: int | None = None) -> None:
        here = part_of(counts, source, step)
        states, actions = len(counts.space.states), len(counts.space.actions)
        self.shape = (states, actions)
        pair = counts.state[here].astype(np.int64) * actions + counts.action[here]
        n, size = counts.n[here], states * actions
        taken = np.bincount(pair, n, minlength=size)
        self.tried = (taken > 0).reshape(self.shape)
        divisor = np.where(taken > 0, taken, 1.0)
        self.reward = (np.bincount(pair, counts.reward_sum[here], minlength=size) / divisor).reshape(self.shape)
        taken = taken.reshape(self.shape)
        visits = taken.sum(axis=1, keepdims=True)
        self.share = taken / np.where(visits > 0, visits, 1.0)
        goes_on = ~counts.terminated[here] & (counts.next_state[here] >= 0)  # nothing is earned after the end
        known = np.bincount(pair, n * (goes_on | counts.terminated[here]), minlength=size)
        mass = n[goes_on] / known[pair[goes_on]]
        self.follows = csr_array((mass, (pair[goes_on], counts.next_state[here][goes_on])), shape=(size, states))

    def backup(self, following: FloatArray, best: float, reward_max: float, discount: float) -> FloatArray:
        """Return Qbar, -inf for pairs that were never tried; `best` is the clipped value of the best state."""
        seen = self.reward + discount * (self.follows @ following).reshape(self.shape)
        q_values = (1 - self.share) * (reward_max + discount * best) + self.share * seen
        return np.where(self.tried, q_values, -np.inf)


def paper_ceilings(counts: Counts, settings: Settings) -> Solution:
    """Return the published bound of the optimal interventional values.

    Settings: `horizon` is the paper's H, `reward_bound` its b; the paper has no discount. A stationary bound takes
    sweeps with omega = (H - 1) b.
    """
    horizon, reward_max, discount = settings.horizon, settings.reward_bound, settings.discount
    sources = range(len(counts.sources))
    n_states, n_actions = len(counts.space.states), len(counts.space.actions)
    terminal = terminal_states(counts)
    acted_in = np.zeros((len(sources), n_states), dtype=bool)
    acted_in[counts.source, counts.state] = True
    pooled = [Estimates(counts, i) for i in sources] if counts.step is None else None
    found: list[tuple[FloatArray, FloatArray]] = []
    sweeps, contraction, below_zero, clip_reached = 0, 0.0, False, False

    def backup(i: int, source: Estimates, omega: float, following: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal below_zero
        best = following[acted_in[i]].max(initial=-np.inf)
        below_zero |= best < 0
        q_values = source.backup(following, min(best, omega) if np.isfinite(best) else omega, reward_max, discount)
        return np.where(source.tried.any(axis=1), q_values.max(axis=1), 0.0), q_values

    if settings.stationary:
        assert pooled is not None
        omega = (horizon - 1) * reward_max
        for i, source in enumerate(pooled):
            sweep = partial(backup, i, source, omega)
            values, q_values, done, shrunk, _ = fixed_point(sweep, np.zeros(n_states), counts.space.states, discount)
            clip_reached |= bool(values[acted_in[i]].max(initial=omega) > omega + VALUE_TOLERANCE * abs(omega))
            found.append((values, q_values))
            sweeps, contraction = max(sweeps, done), max(contraction, shrunk)
        tried = np.array([source.tried for source in pooled])
        unvisited = np.full(n_states, omega)
    else:
        tried = np.empty((len(sources), horizon, n_states, n_actions), dtype=bool)
        for i in sources:
            values, q_values = np.zeros((horizon + 1, n_states)), np.empty((horizon, n_states, n_actions))
            for h in reversed(range(horizon)):
                source = pooled[i] if pooled is not None else Estimates(counts, i, h)
                values[h], q_values[h] = backup(i, source, (horizon - 1 - h) * reward_max, values[h + 1])
                tried[i, h] = source.tried
            found.append((values[:-1], q_values))
        unvisited = np.broadcast_to((horizon - 1 - np.arange(horizon))[:, None] * reward_max, (horizon, n_states))

    acted: BoolArray = np.asarray(tried.any(axis=-1))
    values = np.min([np.where(here, v, np.inf) for (v, _), here in zip(found, acted, strict=True)], axis=0)
    q_values = np.min([np.where(here, q, np.inf) for (_, q), here in zip(found, tried, strict=True)], axis=0)
    vacuous = np.isinf(values) & ~terminal
    values = np.where(np.isinf(values), np.where(terminal, 0.0, unvisited), values)
    q_values[np.isinf(q_values)] = np.nan
    q_values[..., terminal, :] = 0.0
    caveats = _caveats(counts, reward_max, tried, acted, vacuous, below_zero, clip_reached)
    solution = Solution(values, q_values, vacuous, ~vacuous & ~terminal, terminal, caveats=caveats)
    return replace(solution, sweeps=sweeps, contraction=contraction) if settings.stationary else solution


def _caveats(
    counts: Counts, b: float, tried: BoolArray, acted: BoolArray, vacuous: BoolArray, below_zero: bool, clipped: bool
) -> tuple[str, ...]:
    """Return why the bound is not guaranteed."""
    highest, ends = counts.reward_max.max(), bool(counts.terminated.any())
    untried = acted[..., None] & ~tried & counts.space.is_admissible
    skipped = int(untried.sum() if counts.step_indexed or untried.ndim == 3 else untried[:, 0].sum())
    follows = (counts.next_state >= 0) & ~counts.terminated
    ever = np.asarray(acted if acted.ndim == 2 else acted.any(axis=1))
    caveats = {
        f"b is {b:g}, below a reward of {highest:g} that was seen: it is no bound of the reward.": b < highest,
        f"{skipped:,} actions that a source never tried in a state in which it acted were skipped; one may be best.": (
            skipped > 0
        ),
        "b is negative and episodes can end early: (H - h) b is no bound of what follows.": b < 0 and ends,
        "The best state in which a source acted is worth less than 0, and ending, worth 0, was not considered.": (
            below_zero and ends
        ),
        "The clip (H - 1) b was reached: without a time limit more than that can follow.": clipped,
        "In some states no source acted: (H - h) b leaves out one of the rewards that they can have.": vacuous.any(),
        "A source entered states in which it never acted; inside its own pass they are worth 0.": (
            not ever[counts.source[follows], counts.next_state[follows]].all()
        ),
        "The states were read off the logs, and one that no log holds may be worth more; declare them with states=.": (
            b > 0 and not counts.space.complete
        ),
        "Some outcomes are unknown; they were taken to be like the known ones.": not counts.outcome_known.all(),
    }
    return tuple(sentence for sentence, holds in caveats.items() if holds)
