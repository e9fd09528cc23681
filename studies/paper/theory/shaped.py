"""A model under a potential: conservative optimism, the actions that the potential settles, rewards from 0 to 1.

- `Shaped`: the shaped process and its exact quantities.
- `Optimism`: whether a potential is conservatively optimistic (the paper's definition 4.1), per step and state.
- `Shaped.pseudo_suboptimal`: Sub_Delta as printed; `Shaped.margins`: positive where the potential settles an action,
  so that the lemma on visits is true.
- `Shaped.nonnegative`: the same problem with rewards from 0 to 1, as the printed theorem requires.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_horizon
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.arrays import BoolArray, FloatArray, frozen
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError
from causal_shaping.learners._setting import prepare
from causal_shaping.learners.rules import Rule
from causal_shaping.models.cmdp import TabularCMDP, Values
from studies.paper.theory.lemmas import log_term

ROUNDING = 1e-9
"""Differences up to this are treated as rounding errors: smaller gaps are 0."""


@dataclass(frozen=True, eq=False)
class Optimism:
    """Conservative optimism: V*_h(s) <= phi_h(s) <= H b, for rewards up to b; the paper has b = 1. True if it holds.

    Attributes:
        distance: float64 [steps, states], phi - V*; NaN in terminal states.
        holds: bool [steps, states], whether phi >= V*; True in terminal states.
        limit: the H b that phi should not exceed; at least 0, since an episode may end early.
        within: bool [steps, states], whether phi <= H b.
        states: the labels of the states.
    """

    distance: FloatArray
    holds: BoolArray
    limit: float
    within: BoolArray
    states: tuple[Any, ...]

    def __bool__(self) -> bool:
        return bool(self.holds.all() and self.within.all())

    @property
    def verdict(self) -> str:
        """Whether it holds, in words, with the worst step and state."""
        if self:
            return f"conservatively optimistic, {round(np.nanmean(self.distance), 9) + 0.0:.3g} above V* on average"
        parts = []
        if not self.holds.all():
            h, s = np.unravel_index(np.nanargmin(self.distance), self.distance.shape)
            parts.append(
                f"below V* at {(~self.holds).sum():,} of {np.isfinite(self.distance).sum():,} steps and states, by up "
                f"to {-self.distance[h, s]:.3g} (step {h + 1} of {len(self.distance)}, state {self.states[s]})"
            )
        if not self.within.all():
            parts.append(f"above H b = {self.limit:g} at {(~self.within).sum():,} steps and states")
        return "; ".join(parts)


class Shaped:
    """A model over a horizon under a potential, with the exact quantities that the theory refers to.

    Tables have a leading axis for the step; h = 0 is the first one. Shaped values are V* - phi and Q* - phi; gaps are
    those of the model. There is no discount.

    Args:
        model: the true model.
        potential: a potential, ceilings, a table [steps, states] or [states], or None for 0.
        horizon: H.

    Attributes:
        model: as given.
        horizon: H.
        potential: float64 [steps + 1, states], 0 after the last step and in terminal states.
    """

    def __init__(
        self, model: TabularCMDP, potential: Potential | Ceilings | npt.ArrayLike | None, horizon: int
    ) -> None:
        self.model, self.horizon = model, check_horizon(horizon)
        given = potential
        if not isinstance(given, (Potential, Ceilings, type(None))):
            given = Potential(np.asarray(given, dtype=np.float64), model.space)
        if given is not None and given.discount != 1:
            raise ArgumentError(f"The potential has a discount of {given.discount:g}; the theorems are undiscounted.")
        ready = prepare(Rule(), model.space, self.horizon, 1, given, step_indexed=True)
        self.potential = frozen(ready.constants.potential, np.float64)

    @cached_property
    def best(self) -> Values:
        """V* and Q* of the model: float64 [steps, states] and [steps, states, actions]."""
        return self.model.optimum(self.horizon)

    @cached_property
    def values(self) -> FloatArray:
        """V* with a row of 0 after the last step: float64 [steps + 1, states]."""
        return np.append(self.best.values, np.zeros((1, len(self.model.terminal))), axis=0)

    @cached_property
    def gaps(self) -> FloatArray:
        """Delta_h(s, x) = V*_h(s) - Q*_h(s, x), rounding errors set to 0: float64 [steps, states, actions]."""
        gaps = self.best.gaps()
        return np.where(gaps < ROUNDING, 0.0, gaps)

    @cached_property
    def pair_gaps(self) -> FloatArray:
        """Delta(s, x), the smallest positive gap over the steps: float64 [states, actions], inf if there is none.

        The printed minimum is over all steps, so that Delta is 0 for an action that is optimal at a single step.
        """
        return np.asarray(np.where(self.gaps > 0, self.gaps, np.inf).min(axis=0))

    @property
    def smallest_gap(self) -> float:
        """The smallest positive gap; inf if every action is optimal."""
        return float(self.pair_gaps.min())

    def iota(self, episodes: float, p: float) -> float:
        """Return iota = log(S A T / p), where S counts the states that are not terminal and T = K H."""
        states = int((~self.model.terminal).sum())
        return log_term(states, len(self.model.actions), episodes * self.horizon, p)

    def expected(self, following: FloatArray) -> FloatArray:
        """Return E[y + f_{h+1}(s')] after do(x), for f [steps + 1, states]: float64 [steps, states, actions]."""
        rewards, follows = self._by_step(self.model.rewards(), 2), self._by_step(self.model.transitions(), 3)
        return np.asarray(rewards + np.einsum("hsxt,ht->hsx", follows, following[1:]))

    @property
    def _tables(self) -> tuple[npt.NDArray[Any], ...]:
        """The next states, rewards and noise of the model, by step."""
        model = self.model
        return tuple(
            self._by_step(table, axes) for table, axes in ((model.next_state, 3), (model.reward, 3), (model.noise, 2))
        )

    def _by_step(self, table: npt.NDArray[Any], axes: int) -> npt.NDArray[Any]:
        """Return a table of the model with one entry per step; its last axes stay as they are."""
        first = table[: self.horizon] if table.ndim > axes else table
        return np.broadcast_to(first, (self.horizon, *table.shape[-axes:]))

    def span(self, following: FloatArray) -> float:
        """Return the widest range of y + f_{h+1}(s') after one (h, s, x), over noise of positive probability."""
        next_state, reward, noise = self._tables
        outcomes = reward + following[1:][np.arange(self.horizon)[:, None, None, None], next_state]
        possible = np.broadcast_to((noise > 0)[:, :, None, :], outcomes.shape)
        high = np.where(possible, outcomes, -np.inf).max(axis=-1)
        return float((high - np.where(possible, outcomes, np.inf).min(axis=-1)).max())

    @cached_property
    def needed_span(self) -> float:
        """The smallest proven scale of the bonus: the widest range of y + V*_{h+1}(s') and of y + phi_{h+1}(s')."""
        return max(self.span(self.values), self.span(self.potential))

    @cached_property
    def worst_regret(self) -> float:
        """The largest possible regret of an episode: V*_1 less the value of the worst policy, at the worst start."""
        model = self.model
        negated = TabularCMDP(model.next_state, -model.reward, model.noise, model.terminal, model.start)
        worst = -negated.optimum(self.horizon).values[0]
        return float((self.best.values[0] - worst)[model.start > 0].max())

    def optimism(self) -> Optimism:
        """Return whether the potential is conservatively optimistic: V* <= phi <= H b, b the largest reward."""
        phi, alive = self.potential[:-1], ~self.model.terminal
        limit = max(self.horizon * self.model.reward_range[1], 0.0)
        distance = np.where(alive, phi - self.best.values, np.nan)
        holds = ~alive | (phi >= self.best.values - ROUNDING)
        return Optimism(distance, holds, limit, ~alive | (phi <= limit + ROUNDING), self.model.states)

    def pseudo_suboptimal(self) -> BoolArray:
        """Return Sub_Delta as printed (definition 4.3): bool [states, actions].

        Pairs for which there is a step h with y - phi_h(s) + 2 E[phi_{h+1}(s')] + Delta(s, x) <= V*_h(s). Pairs that
        are optimal at every step have no Delta and are left out. The lemma on visits needs `margins` instead.
        """
        left = self.expected(2 * self.potential) - self.potential[:-1, :, None] + self.pair_gaps
        inside = (left <= self.best.values[..., None] + ROUNDING).any(axis=0)
        return np.asarray(inside & np.isfinite(self.pair_gaps) & ~self.model.terminal[:, None])

    def margins(self, clip: str = "zero") -> FloatArray:
        """Return how far an action stays below V*_h(s) whatever is learned later: float64 [steps, states, actions].

        Learned values are at most the clip. So, apart from bonuses, Q_h(s, x) + phi_h(s) is at most
        E[y + phi_{h+1}(s')] with the clip at 0, and E[y + 2 phi_{h+1}(s')] with the printed clip. The difference to
        V*_h(s), if positive, is the margin: then the potential settles (h, s, x), which is no longer taken once its
        bonus is small. With the clip at 0 the margin is Delta_h(s, x) - E[phi_{h+1}(s') - V*_{h+1}(s')]: the gap less
        the error of the potential.

        Args:
            clip: "zero" or "potential", as in `Rule`.
        """
        factor = 1.0 if clip == "zero" else 2.0
        margins = self.best.values[..., None] - self.expected(factor * self.potential)
        return np.where((margins > ROUNDING) & ~self.model.terminal[:, None], margins, 0.0)

    def shaped_model(self, *, printed: bool = False) -> TabularCMDP:
        """Return the model with shaped rewards, y + phi_{h+1}(s') - phi_h(s), and one table per step.

        Args:
            printed: use y + phi_h(s') - phi_h(s) with phi_H = 0, as in proposition 2.2; other policies become optimal.
        """
        model, H, (next_state, reward, noise) = self.model, self.horizon, self._tables
        phi = self.potential
        before, after = (np.append(phi[: H - 1], 0 * phi[:1], axis=0),) * 2 if printed else (phi[:-1], phi[1:])
        step = np.arange(H)[:, None, None, None]
        shaped = reward + after[step, next_state] - before[:, :, None, None]
        shaped = np.where(model.terminal[:, None, None], 0.0, shaped)
        return TabularCMDP(next_state, shaped, noise, model.terminal, model.start)

    def nonnegative(self) -> tuple[Shaped, float]:
        """Return the same problem with rewards from 0 to 1 that are a function of (s, x), and its scale.

        A constant is added to the reward of every step, also after termination, so that a terminal state becomes an
        absorbing one that pays the constant. Then rewards are divided by their range, and each is replaced by its mean
        given (s, x). V* and phi move by the constant times the steps left; gaps are only scaled.
        """
        model = self.model
        low, high = min(model.reward_range[0], 0.0), max(model.reward_range[1], 0.0)
        scale = 1.0 / (high - low) if high > low else 1.0
        mean = np.where(model.terminal[:, None], 0.0, model.rewards())
        reward = np.broadcast_to(((mean - low) * scale)[..., None], model.next_state.shape)
        none_terminal = np.zeros(len(model.terminal), dtype=bool)
        moved = TabularCMDP(model.next_state, reward, model.noise, none_terminal, model.start)
        left = np.arange(self.horizon, 0, -1.0)[:, None]
        potential = (self.potential[:-1] - low * left) * scale
        return Shaped(moved, np.where(np.abs(potential) < ROUNDING, 0.0, potential), self.horizon), scale
