"""The structural model: a confounded Markov decision process over finite tables, solved exactly.

`TabularCMDP` holds tables over (state, action, noise), the paper's definition 2.1. It computes
optimal values, values of a policy, and the distribution of a demonstrator's logs; nothing is
sampled. Letters as in the paper: s, x, u for state, action and hidden noise; h = 0 is the first
step; beta is a demonstrator, which sees the noise, and pi a policy, which does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from causal_shaping._checks import LARGEST_REWARD, check_discount, check_horizon, check_memory
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Admissible, Label, Space
from causal_shaping.errors import DataError, ModelError
from causal_shaping.models import backward
from causal_shaping.models.constants import PROBABILITY_TOLERANCE, TIE_DECIMALS, VALUE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Values:
    """State and action values; a leading axis for the step if there is a horizon.

    Attributes:
        values: float64 [states] or [steps, states].
        q_values: float64 [states, actions] or [steps, states, actions]; NaN for actions that are
            not admissible.
    """

    values: FloatArray
    q_values: FloatArray

    @classmethod
    def frozen(cls, values: FloatArray, q_values: FloatArray) -> Values:
        """Return values of arrays that nobody can write to."""
        return cls(frozen(values, np.float64), frozen(q_values, np.float64))

    def greedy(self) -> IntArray:
        """Return the best actions, the lowest number among equals: int32 [(steps,) states]."""
        known = np.where(np.isnan(self.q_values), -np.inf, self.q_values)
        return np.asarray(np.argmax(np.round(known, TIE_DECIMALS), axis=-1), dtype=np.int32)

    def gaps(self) -> FloatArray:
        """Return what choosing x once costs, V(s) - Q(s, x): float64 like `q_values`."""
        return self.values[..., None] - self.q_values

    def __repr__(self) -> str:
        low, high = self.values.min(), self.values.max()
        return f"Values{self.values.shape}: from {low:.4g} to {high:.4g}"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TabularCMDP:
    """A confounded Markov decision process over finite tables.

    In state s, hidden noise u is drawn from `noise[s]`. A demonstrator sees it and then chooses its
    action x; an agent chooses without. The world moves to `next_state[s, x, u]` and pays
    `reward[s, x, u]`. Noise is drawn afresh each step. A terminal state ends the episode: it leads
    to itself and pays 0.

    Tables may have a leading axis for the step, all of the same length; the process then lasts that
    long.

    Args:
        next_state: integers [(steps,) states, actions, noises].
        reward: floats [(steps,) states, actions, noises].
        noise: probabilities [(steps,) states, noises].
        terminal: booleans [states].
        start: probabilities [states], the distribution of the first state.
        states: labels; 0, 1, ... by default.
        actions: names; 0, 1, ... by default.
        columns: the log columns that make a state label, see `Space`.
        admissible: the actions that exist in each state, where not all do, in any of the forms that
            `count` takes. No policy and no demonstrator may take any other action, and what the
            tables hold for it is never used.

    Examples:
        >>> model = TabularCMDP(  # a coin is tossed; guess it to be paid
        ...     next_state=[[[1, 1], [1, 1]], [[1, 1], [1, 1]]],
        ...     reward=[[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]],
        ...     noise=[[0.7, 0.3], [1.0, 0.0]], terminal=[False, True], start=[1.0, 0.0])
        >>> model.optimum().q_values[0].tolist()
        [0.7, 0.3]
    """

    next_state: IntArray
    reward: FloatArray
    noise: FloatArray
    terminal: BoolArray
    start: FloatArray
    space: Space

    def __init__(
        self,
        next_state: npt.ArrayLike,
        reward: npt.ArrayLike,
        noise: npt.ArrayLike,
        terminal: npt.ArrayLike,
        start: npt.ArrayLike,
        states: Iterable[Any] | None = None,
        actions: Iterable[Any] | None = None,
        columns: Sequence[str] = (),
        *,
        admissible: Admissible | None = None,
    ) -> None:
        tables = (next_state, reward, noise, terminal, start)
        for (name, dtype), table in zip(_TYPES.items(), tables, strict=True):
            try:
                vars(self)[name] = frozen(table, dtype, name)
            except DataError as error:
                raise ModelError(str(error)) from error
        self._check_shapes()
        size = self.next_state.shape[-3:-1]
        if states is None:
            states = range(size[0])
        if actions is None:
            actions = range(size[1])
        labels = tuple(states)
        ends = [label for label, end in zip(labels, self.terminal, strict=False) if end]
        space = Space(labels, actions, columns, terminal=ends)
        if (len(space.states), len(space.actions)) != size:
            raise ModelError(
                f"The tables hold {size[0]} states and {size[1]} actions, but "
                f"{len(space.states)} state and {len(space.actions)} action labels were given."
            )
        if admissible is not None:
            space = space.restricted(admissible)
        vars(self)["space"] = space
        self._check_entries()

    @property
    def states(self) -> tuple[Label, ...]:
        """State labels in table order."""
        return self.space.states

    @property
    def actions(self) -> tuple[Label, ...]:
        """Action names in table order."""
        return self.space.actions

    @property
    def steps(self) -> int | None:
        """The number of steps that the tables distinguish, None for stationary dynamics."""
        *steps, _, _, _ = self.next_state.shape
        return next(iter(steps), None)

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward that a step can pay with positive probability."""
        acts = self.space.is_admissible & ~self.terminal[:, None]
        possible = (self.noise[..., None, :] > 0) & acts[..., None]
        rewards = self.reward[np.broadcast_to(possible, self.reward.shape)]
        return (float(rewards.min()), float(rewards.max())) if rewards.size else (0.0, 0.0)

    def transitions(self) -> FloatArray:
        """Return the paper's T(s, x, s') of do(x): float64 [(steps,) states, actions, states]."""
        matrices, _ = self._process
        tables = np.stack([matrix.toarray() for matrix in matrices])
        return tables.reshape(*self.next_state.shape[:-1], -1)

    def rewards(self) -> FloatArray:
        """Return the paper's mean R(s, x) of do(x): float64 [(steps,) states, actions]."""
        return np.asarray(np.einsum("...su,...sxu->...sx", self.noise, self.reward))

    @cached_property
    def _process(self) -> tuple[list[csr_array], FloatArray]:
        """Transitions and mean rewards under do(x), as `optimal_values` takes them."""
        *_, states, actions, noises = self.next_state.shape
        outcomes = states * actions * noises
        first = np.arange(0, outcomes + 1, noises)
        after = self.next_state.reshape(-1, outcomes)
        chance = np.repeat(self.noise, actions, axis=-2).reshape(-1, outcomes)
        steps = zip(after, chance, strict=True)
        matrices = [backward.outcome_matrix(first, *step, states) for step in steps]
        rewards = self.rewards().reshape(-1, states, actions)
        # Gains and losses that cancel out leave a rounding error, which sums for ever would add up.
        rewards[np.abs(rewards) < VALUE_TOLERANCE * np.abs(self.reward).max()] = 0.0
        return matrices, rewards

    def demonstrated(self, beta: npt.ArrayLike) -> TabularCMDP:
        """Return the model in which a demonstrator acts: a CMDP with one action, "watch".

        Its values are what the demonstrator earns, who sees the noise.
        """
        decisions = self.check_demonstrator(beta, self.steps or len(np.asarray(beta)))
        steps = np.broadcast_shapes(decisions.shape[:-3], self.next_state.shape[:-3])
        next_state, reward, noise, action = self._by_step(decisions, math.prod(steps))
        # The pair of the demonstrator's action and the noise is the noise of the new model.
        shape = (*steps, len(self.states), 1, -1)
        chance = (noise * action).reshape(shape)[..., 0, :]
        chance = chance / chance.sum(axis=-1, keepdims=True)
        tables = next_state.reshape(shape), reward.reshape(shape), chance, self.terminal, self.start
        return TabularCMDP(*tables, self.states, ["watch"], self.space.columns)

    def optimum(self, horizon: int | None = None, discount: float = 1.0) -> Values:
        """Return the optimal interventional values: of the best policy that cannot see the noise.

        With a horizon, by backward induction. With a discount below 1, by policy iteration. Without
        either, the limit of the finite-horizon values as the horizon grows. If there is no limit,
        since an agent can collect reward for ever or swing between gain and loss, that is an error.
        """
        horizon = self._check_question("optimum", horizon, discount)
        if horizon is None and discount in self._endless_optima:
            return self._endless_optima[discount]
        exists = self.space.is_admissible
        solution = backward.optimal_values(*self._process, horizon, discount, exists, self.states)
        optimum = Values.frozen(*solution)
        if horizon is None:  # each run of a learner asks for it, and it takes the longest
            self._endless_optima[discount] = optimum
        return optimum

    @cached_property
    def _endless_optima(self) -> dict[float, Values]:
        return {}

    def evaluate(
        self, policy: npt.ArrayLike, horizon: int | None = None, discount: float = 1.0
    ) -> Values:
        """Return a policy's values: `values` of following it, `q_values` of one other action first.

        Args:
            policy: actions as integers [states] or [steps, states], or their probabilities as
                floats [states, actions] or [steps, states, actions].
            horizon: the number of steps; None for ever, solved as a linear system.
            discount: the factor on future reward.
        """
        horizon = self._check_question("evaluate", horizon, discount)
        pi = self.check_policy(policy, horizon)
        (transitions, *_), rewards = self._process
        backup = backward.sparse_backup(*self._process, discount, self.space.is_admissible)
        if horizon is None:
            values = backward.endless_values(transitions, rewards[0], pi, discount, self.states)
            return Values.frozen(values, backup(0, values))
        by_step = np.broadcast_to(pi, (horizon, *pi.shape[-2:]))

        def follow(h: int, q_values: FloatArray) -> FloatArray:
            return np.asarray(np.nansum(q_values * by_step[h], axis=-1))

        return Values.frozen(*backward.backward_induction(backup, horizon, pi.shape[-2:], follow))

    def gaps(self, horizon: int | None = None, discount: float = 1.0) -> FloatArray:
        """Return V*_h(s) - Q*_h(s, x) of the optimum: float64 [(steps,) states, actions]."""
        return self.optimum(horizon, discount).gaps()

    def occupancy(self, policy: npt.ArrayLike, horizon: int, discount: float = 1.0) -> FloatArray:
        """Return how often an episode of a policy takes each action in each state.

        The probability of (s, x) at step h times discount^h: float64 [steps, states, actions]. No
        action is taken in a terminal state.
        """
        check_discount(discount)
        horizon = self._check_horizon(horizon)
        pi = self.check_policy(policy, horizon)
        # A policy is a demonstrator that does not look at the noise.
        blind = np.repeat(pi[..., None, :], self.noise.shape[-1], axis=-2)
        visits = self._visits(blind, horizon)
        return visits[:, :, None] * pi * discount ** np.arange(horizon)[:, None, None]

    def observe(
        self,
        beta: npt.ArrayLike,
        source: str,
        horizon: int | None = None,
        *,
        step_indexed: bool = False,
    ) -> Counts:
        """Return the observational distribution of a demonstrator as `Counts` of a population.

        Entries hold P(x, s', ended, y | s), with rewards y kept apart as in counted logs, times the
        weight of s. With a horizon the weight is the mean number of visits of an episode, so that
        states out of reach are missing, as they are from logs. Without, it is 1 for every state
        that is not terminal, at each step of a model with steps.

        Args:
            beta: the demonstrator, probabilities [(steps,) states, noises, actions].
            source: the name to count under.
            horizon: the length of an episode; None for all states.
            step_indexed: keep steps apart; needs a horizon, or a model with steps.
        """
        steps = self.steps
        if horizon is not None:
            steps = self._check_horizon(horizon)
        if step_indexed and steps is None:
            raise ModelError("Counts by step need the number of steps: set a horizon.")
        decisions = self.check_demonstrator(beta, steps)
        weight = np.tile(~self.terminal, (steps or 1, 1)).astype(np.float64)
        if horizon is not None:
            weight = self._visits(decisions, horizon)
        next_state, reward, noise, action = self._by_step(decisions, len(weight))
        mass = weight[:, :, None, None] * noise * action  # P(h, s, x, u)
        h, s, x, _ = here = np.nonzero(mass)
        n, paid, target = mass[here], reward[here], next_state[here]
        columns: dict[str, npt.ArrayLike | None] = {"source": np.zeros(len(n)), "step": None}
        if step_indexed:
            columns["step"] = h
        columns |= {"state": s, "action": x, "next_state": target}
        columns |= {"terminated": self.terminal[target], "n": n}
        columns |= {"reward_sum": n * paid, "reward_min": paid, "reward_max": paid}
        return Counts.combined(self.space, [source], columns, population=True)

    def _visits(self, decisions: FloatArray, horizon: int) -> FloatArray:
        """Return P(S_h = s), without the episodes that have ended: float64 [steps, states]."""
        visits = np.zeros((horizon, len(self.start)))
        visits[0] = self.start
        next_state, _, noise, action = self._by_step(decisions, horizon)
        for h in range(horizon - 1):
            mass = visits[h, :, None, None] * noise[h] * action[h]  # P(s, x, u)
            arrived = np.bincount(next_state[h].ravel(), mass.ravel(), minlength=len(self.start))
            visits[h + 1] = np.where(self.terminal, 0.0, arrived)
        return visits

    def _by_step(self, decisions: FloatArray, steps: int) -> tuple[npt.NDArray[Any], ...]:
        """Return next state, reward, P(u | s) and P(x | s, u): [steps, states, actions, noises].

        P(u | s) has one entry for all actions. Tables that are the same at each step are repeated.
        """
        beta, noise = np.swapaxes(decisions, -1, -2), self.noise[..., None, :]
        return tuple(
            table[:steps] if table.ndim == 4 else np.broadcast_to(table, (steps, *table.shape))
            for table in (self.next_state, self.reward, noise, beta)
        )

    def check_policy(self, policy: npt.ArrayLike, horizon: int | None = None) -> FloatArray:
        """Return a policy as probabilities [(steps,) states, actions]; a bad one is an error."""
        *_, states, actions, _ = self.next_state.shape
        table = np.asarray(policy)
        if np.issubdtype(table.dtype, np.integer):
            if table.shape[-1:] != (states,):
                raise ModelError(
                    f"A policy of integers names the action of each state, so it has shape "
                    f"[{states}] or [steps, {states}], not {table.shape}. Pass floats for "
                    "probabilities."
                )
            outside = (table < 0) | (table >= actions)
            _refuse("policy", table, outside, f"an action must be in 0 .. {actions - 1}")
            table = np.eye(actions)[table]
        excluded = ~(self.space.is_admissible | self.terminal[:, None])
        return self._check_decisions("policy", table, excluded, horizon)

    def check_demonstrator(self, beta: npt.ArrayLike, horizon: int | None = None) -> FloatArray:
        """Return a demonstrator as probabilities [(steps,) states, noises, actions].

        A bad one is an error.
        """
        excluded = ~(self.space.is_admissible | self.terminal[:, None])
        by_noise = np.repeat(excluded[:, None], self.noise.shape[-1], axis=1)
        return self._check_decisions("beta", np.asarray(beta), by_noise, horizon)

    def _check_decisions(
        self, name: str, table: npt.NDArray[Any], excluded: BoolArray, horizon: int | None
    ) -> FloatArray:
        """Return probabilities of actions, of the shape of `excluded`, or one such table a step."""
        shapes = [excluded.shape] + [(horizon, *excluded.shape)] * (horizon is not None)
        if table.shape not in shapes:
            wanted = " or ".join(str(list(shape)) for shape in shapes)
            raise ModelError(f"{name} has shape {table.shape}; it must be {wanted}.")
        table = table.astype(np.float64)
        _check_probabilities(name, table)
        _refuse(name, table, (table > 0) & excluded, "the action is not admissible in this state")
        return table

    def _check_shapes(self) -> None:
        shape = self.next_state.shape
        if len(shape) not in (3, 4) or 0 in shape:
            raise ModelError(
                f"next_state has shape {shape}; it must be [states, actions, noises], or "
                "[steps, states, actions, noises], and not empty."
            )
        *steps, states, _, noises = shape
        wanted = (shape, shape, (*steps, states, noises), (states,), (states,))
        for name, want in zip(_TYPES, wanted, strict=True):
            actual = getattr(self, name).shape
            if actual != want:
                raise ModelError(f"{name} has shape {actual}, but next_state asks for {want}.")

    def _check_entries(self) -> None:
        _check_probabilities("noise", self.noise)
        _check_probabilities("start", self.start)
        target, reward, terminal = self.next_state, self.reward, self.terminal[:, None, None]
        states = len(self.terminal)
        outside = (target < 0) | (target >= states)
        leaves = terminal & (target != np.arange(states)[:, None, None])
        too_large, at_its_end = abs(reward) > LARGEST_REWARD, self.terminal & (self.start > 0)
        for name, bad, why in (
            ("next_state", outside, f"a state must be in 0 .. {states - 1}"),
            ("reward", ~np.isfinite(reward), "a reward must be finite"),
            ("reward", too_large, f"a reward must lie within {LARGEST_REWARD:g}: scale them"),
            ("next_state", leaves, "a terminal state must lead to itself"),
            ("reward", terminal & (reward != 0), "a terminal state must pay 0"),
            ("start", at_its_end, "an episode cannot start at its end"),
        ):
            _refuse(name, getattr(self, name), bad, why)

    def _check_question(self, what: str, horizon: int | None, discount: float) -> int | None:
        check_discount(discount)
        if horizon is not None:
            return self._check_horizon(horizon)
        if self.steps is not None:
            why = f"The model changes over its {self.steps} steps; {what} needs a horizon."
            raise ModelError(why)
        return None

    def _check_horizon(self, horizon: int) -> int:
        horizon = check_horizon(horizon)
        if self.steps is not None and horizon > self.steps:
            most = f"at most {self.steps}, the steps of the tables"
            raise ModelError(f"horizon is {horizon}; it must be {most}.")
        *_, states, actions, _ = self.next_state.shape
        size = 16 * horizon * states * (actions + 1)  # bytes: float64, and a frozen copy
        check_memory(f"A horizon of {horizon} with {states:,} states", size)
        return horizon

    def __repr__(self) -> str:
        *_, states, actions, noises = self.next_state.shape
        kind = "stationary" if self.steps is None else f"{self.steps} steps"
        return f"TabularCMDP({states} states, {actions} actions, {noises} noises, {kind})"


_TYPES: dict[str, Any] = {"next_state": np.int32, "reward": float, "noise": float}
_TYPES |= {"terminal": np.bool_, "start": float}


def _check_probabilities(name: str, table: FloatArray) -> None:
    _refuse(name, table, ~(np.isfinite(table) & (table >= 0)), "a probability must be 0 or more")
    sums = table.sum(axis=-1)
    _refuse(f"the sum of {name}", sums, abs(sums - 1) > PROBABILITY_TOLERANCE, "it must be 1")


def _refuse(name: str, table: npt.NDArray[Any], bad: BoolArray, why: str) -> None:
    """Raise a `ModelError` that names the first entry of `table` at which `bad` holds."""
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(np.broadcast_to(bad, table.shape))[0])
        raise ModelError(f"{name}{list(where)} is {table[where]!s}: {why}.")
