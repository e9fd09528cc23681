"""The structural model: a confounded Markov decision process over finite tables, solved exactly.

- `TabularCMDP`: tables over (state, action, noise), the paper's definition 2.1.
- `Values`: the answer of `TabularCMDP.optimum` and `TabularCMDP.evaluate`.

Everything here is computed, nothing is sampled. Letters as in the paper: s, x, u, y for state, action, hidden noise and
reward; h = 0 is the first step; beta is a demonstrator, which sees the noise, and pi a policy, which does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from causal_shaping._checks import LARGEST_REWARD, MOST_STEPS_AN_EPISODE, check_discount, check_integer, check_memory
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Admissible, Label, Space
from causal_shaping.errors import DataError, ModelError
from causal_shaping.models.sweeps import VALUE_TOLERANCE, repeat

PROBABILITY_TOLERANCE = 1e-9
"""How far a sum of probabilities may be from one."""

MOST_SWEEPS = 10_000
"""After so many sweeps an optimum without a horizon is slow to reach, or does not exist."""

TIE_DECIMALS = 9
"""Action values are rounded to this many decimals before the first best action is taken."""


@dataclass(frozen=True, eq=False)
class Values:
    """State and action values; a leading axis for the step if there is a horizon.

    Attributes:
        values: float64 [states] or [steps, states].
        q_values: float64 [states, actions] or [steps, states, actions]; NaN for actions that are not admissible.
    """

    values: FloatArray
    q_values: FloatArray

    def greedy(self) -> IntArray:
        """Return the best action of each state, the lowest number among equals: int32 [(steps,) states]."""
        known = np.where(np.isnan(self.q_values), -np.inf, self.q_values)
        return np.asarray(np.argmax(np.round(known, TIE_DECIMALS), axis=-1), dtype=np.int32)

    def gaps(self) -> FloatArray:
        """Return Delta(s, x) = V(s) - Q(s, x), what choosing x once costs: float64 like `q_values`."""
        return self.values[..., None] - self.q_values

    def __repr__(self) -> str:
        return f"Values{self.values.shape}: from {self.values.min():.4g} to {self.values.max():.4g}"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TabularCMDP:
    """A confounded Markov decision process over finite tables.

    In state s, hidden noise u is drawn from `noise[s]`. A demonstrator chooses its action x with u in
    sight, an agent without; then the world moves to `next_state[s, x, u]` and pays `reward[s, x, u]`.
    Noise is drawn afresh each step. A terminal state ends the episode: it leads to itself and pays 0.

    Tables may have a leading axis for the step, all of the same length; the process then lasts that long.

    Args:
        next_state: integers [(steps,) states, actions, noises].
        reward: floats [(steps,) states, actions, noises].
        noise: probabilities [(steps,) states, noises].
        terminal: booleans [states].
        start: probabilities [states], the distribution of the first state.
        states: labels; 0, 1, ... by default.
        actions: names; 0, 1, ... by default.
        columns: the log columns that make a state label, see `Space`.
        admissible: the actions that exist in each state, where not all do, in any of the forms that `count` takes. No
            policy and no demonstrator may take any other; what the tables hold for them means nothing.

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
        vars(self).update(
            next_state=_table("next_state", next_state, np.int32),
            reward=_table("reward", reward, np.float64),
            noise=_table("noise", noise, np.float64),
            terminal=_table("terminal", terminal, np.bool_),
            start=_table("start", start, np.float64),
        )
        self._check_shapes()
        n_states, n_actions, _ = self.next_state.shape[-3:]
        labels = tuple(range(n_states) if states is None else states)
        ends = [label for label, ends in zip(labels, self.terminal, strict=False) if ends]
        space = Space(labels, range(n_actions) if actions is None else actions, columns, terminal=ends)
        if (len(space.states), len(space.actions)) != (n_states, n_actions):
            raise ModelError(
                f"The tables hold {n_states} states and {n_actions} actions, but {len(space.states)} state and "
                f"{len(space.actions)} action labels were given."
            )
        object.__setattr__(self, "space", space if admissible is None else space.restricted(admissible))
        self._check_probabilities("noise", self.noise)
        self._check_probabilities("start", self.start)
        self._check_transitions()

    def _known(self, q_values: FloatArray, outside: float = -np.inf) -> FloatArray:
        """Return action values in which an action that is not admissible has the value `outside`."""
        return np.where(self.space.is_admissible, q_values, outside) if self.space.admissible else q_values

    @property
    def states(self) -> tuple[Label, ...]:
        """State labels in table order."""
        return self.space.states

    @property
    def actions(self) -> tuple[Label, ...]:
        """Action names in table order."""
        return self.space.actions

    def _check_shapes(self) -> None:
        shape = self.next_state.shape
        if len(shape) not in (3, 4) or 0 in shape:
            raise ModelError(
                f"next_state has shape {shape}; it must be [states, actions, noises], or "
                "[steps, states, actions, noises], and not empty."
            )
        *steps, states, _, noises = shape
        wanted = {"reward": shape, "noise": (*steps, states, noises), "terminal": (states,), "start": (states,)}
        for name, want in wanted.items():
            found = getattr(self, name).shape
            if found != want:
                raise ModelError(f"{name} has shape {found}, but next_state asks for {want}.")

    def _check_probabilities(self, name: str, table: FloatArray) -> None:
        _refuse(name, table, ~np.isfinite(table) | (table < 0), "a probability must be 0 or more")
        sums = table.sum(axis=-1)
        _refuse(f"the sum of {name}", sums, abs(sums - 1) > PROBABILITY_TOLERANCE, "it must be 1")

    def _check_transitions(self) -> None:
        states = len(self.terminal)
        outside = (self.next_state < 0) | (self.next_state >= states)
        _refuse("next_state", self.next_state, outside, f"a state must be in 0 .. {states - 1}")
        _refuse("reward", self.reward, ~np.isfinite(self.reward), "a reward must be finite")
        large = abs(self.reward) > LARGEST_REWARD
        _refuse("reward", self.reward, large, f"a reward must lie within {LARGEST_REWARD:g}: scale them")
        terminal = self.terminal[:, None, None]
        leaves = terminal & (self.next_state != np.arange(states)[:, None, None])
        _refuse("next_state", self.next_state, leaves, "a terminal state must lead to itself")
        _refuse("reward", self.reward, terminal & (self.reward != 0), "a terminal state must pay 0")
        _refuse("start", self.start, self.terminal & (self.start > 0), "an episode cannot start at its end")

    @property
    def steps(self) -> int | None:
        """The number of steps that the tables distinguish, None for stationary dynamics."""
        return self.next_state.shape[0] if self.next_state.ndim == 4 else None

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward that a step can pay, noise of positive probability only."""
        possible = (self.noise[..., None, :] > 0) & (self.space.is_admissible & ~self.terminal[:, None])[..., None]
        rewards = self.reward[np.broadcast_to(possible, self.reward.shape)]
        return (float(rewards.min()), float(rewards.max())) if rewards.size else (0.0, 0.0)

    def transitions(self) -> FloatArray:
        """Return the paper's T(s, x, s') under do(x): float64 [(steps,) states, actions, states]."""
        result = np.zeros((*self.next_state.shape[:-1], len(self.terminal)))
        for u in range(self.noise.shape[-1]):
            target = self.next_state[..., u, None].astype(np.int64)
            mass = np.take_along_axis(result, target, -1) + self.noise[..., None, u, None]
            np.put_along_axis(result, target, mass, -1)
        return result

    def rewards(self) -> FloatArray:
        """Return the paper's mean R(s, x) under do(x): float64 [(steps,) states, actions]."""
        return np.asarray(np.einsum("...su,...sxu->...sx", self.noise, self.reward))

    def _tables(self, h: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return next_state, reward and noise of one step."""
        if self.steps is None:
            return self.next_state, self.reward, self.noise
        return self.next_state[h], self.reward[h], self.noise[h]

    def demonstrated(self, beta: npt.ArrayLike) -> TabularCMDP:
        """Return the model in which a demonstrator acts: a CMDP with one action, "watch it".

        Its values are those that the demonstrator earns with the noise in sight.
        """
        decisions = self.check_demonstrator(beta, self.steps or len(np.asarray(beta)))

        def flat(table: npt.NDArray[Any]) -> npt.NDArray[Any]:  # [.., s, x, u] -> [.., s, 1, u * x]
            return np.swapaxes(np.broadcast_to(table, shape), -1, -2).reshape(*shape[:-2], 1, -1)

        steps = decisions.shape[0] if decisions.ndim == 4 else self.steps
        shape = self.next_state.shape if steps is None else (steps, *self.next_state.shape[-3:])
        noise = (self.noise[..., None] * decisions).reshape(*shape[:-2], -1)
        noise = noise / noise.sum(axis=-1, keepdims=True)
        tables = (flat(self.next_state), flat(self.reward), noise, self.terminal, self.start)
        return TabularCMDP(*tables, self.states, ["watch"], self.space.columns)

    def optimum(self, horizon: int | None = None, discount: float = 1.0) -> Values:
        """Return the optimal interventional values, those of the best policy that does not see the noise.

        With a horizon, by backward induction. With a discount below 1, by policy iteration. Without either, the
        limit of the finite-horizon values as the horizon grows: by sweeps until they change by less than 1e-13 of
        the largest value, and by policy iteration where they are slow. If there is no limit, since an agent can
        collect reward for ever or swing between gain and loss, that is an error.
        """
        check_discount(discount)
        if horizon is not None:
            return self._backward(horizon, discount, lambda q, _: self._known(q).max(axis=-1))
        self._need_stationary("optimum")
        if discount not in self._endless_optima:  # each run of a learner asks for it, and the tables never change
            self._endless_optima[discount] = self._endless_optimum(discount)
        return self._endless_optima[discount]

    @cached_property
    def _endless_optima(self) -> dict[float, Values]:
        """The optima without a horizon that were asked for, by discount."""
        return {}

    def _endless_optimum(self, discount: float) -> Values:
        if discount < 1:
            return self._improve(self._backup(np.zeros(len(self.terminal)), 0, discount), discount)

        def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
            q_values = self._backup(values, 0, discount)
            return self._known(q_values).max(axis=-1), q_values

        halfway = repeat(sweep, np.zeros(len(self.terminal)), MOST_SWEEPS // 2)
        found = halfway if halfway.stable else repeat(sweep, halfway.values, MOST_SWEEPS // 2, halfway.size)
        if found.stable:
            return self._values(found.values, found.q_values)
        # Slow, or no limit at all? The limit solves the optimality equation exactly, and the sweeps approach it.
        try:
            exact = self._improve(found.q_values, discount)
        except ModelError:
            pass  # the best policy never ends and keeps being paid
        else:
            distance, before = (np.abs(sweeps.values - exact.values).max() for sweeps in (found, halfway))
            if distance < before * (1 - 1e-9):
                return exact
        worst = int(found.change.argmax())
        raise ModelError(
            f"There is no optimum without a horizon: after {MOST_SWEEPS:,} sweeps the value of state "
            f"{self.space.states[worst]!r} still changes by {found.change[worst]:.3g} a sweep (it is "
            f"{found.values[worst]:.4g}). Set a horizon, or a discount below 1."
        )

    def _improve(self, q_values: FloatArray, discount: float) -> Values:
        """Return the values of the best stationary policy by policy iteration, starting greedily."""
        policy = self._known(q_values).argmax(axis=-1)
        every = np.arange(len(policy))
        while True:
            values = self._endless_values(np.eye(len(self.actions))[policy], discount)
            q_values = self._known(self._backup(values, 0, discount))
            # Only a true improvement changes the policy, so that rounding cannot make it go round in circles.
            slack = VALUE_TOLERANCE * np.abs(values).max() / max(1.0 - discount, 1e-4)
            better = q_values.max(axis=-1) > q_values[every, policy] + slack
            if not better.any():
                return self._values(q_values.max(axis=-1), q_values)
            policy = np.where(better, q_values.argmax(axis=-1), policy)

    def evaluate(self, policy: npt.ArrayLike, horizon: int | None = None, discount: float = 1.0) -> Values:
        """Return the values of a policy: `values` of following it, `q_values` of one other action first.

        Args:
            policy: actions as integers [states] or [steps, states], or their probabilities as floats
                [states, actions] or [steps, states, actions].
            horizon: the number of steps; None for ever, solved as a linear system.
            discount: the factor on future reward.
        """
        check_discount(discount)
        pi = self.check_policy(policy, horizon)
        if horizon is not None:
            return self._backward(horizon, discount, lambda q, h: (q * (pi if pi.ndim == 2 else pi[h])).sum(axis=-1))
        self._need_stationary("evaluate")
        values = self._endless_values(pi, discount)
        return self._values(values, self._backup(values, 0, discount))

    def occupancy(self, policy: npt.ArrayLike, horizon: int) -> FloatArray:
        """Return how likely each state and action is at each step under a policy: float64 [steps, states, actions].

        No action is taken in a terminal state.
        """
        pi = self.check_policy(policy, horizon)
        return np.stack(list(self._visits(self._decisions(pi), horizon)))[:, :, None] * pi

    def gaps(self, horizon: int | None = None, discount: float = 1.0) -> FloatArray:
        """Return Delta_h(s, x) = V*_h(s) - Q*_h(s, x) of the optimum: float64 [(steps,) states, actions]."""
        return self.optimum(horizon, discount).gaps()

    def _values(self, values: FloatArray, q_values: FloatArray) -> Values:
        return Values(frozen(values, np.float64), frozen(self._known(q_values, np.nan), np.float64))

    def _backup(self, values: FloatArray, h: int, discount: float) -> FloatArray:
        """Return action values from values of the next step; 0 for actions that are not admissible."""
        if not self.space.admissible:
            next_state, reward, noise = self._tables(h)
            return np.asarray(np.einsum("su,sxu->sx", noise, reward + discount * values[next_state]))
        next_state, reward, noise = (
            self._admissible_tables if self.steps is None else (table[h] for table in self._admissible_tables)
        )
        q_values = np.zeros(self.space.is_admissible.shape)
        q_values[self.space.is_admissible] = np.einsum("cu,cu->c", noise, reward + discount * values[next_state])
        return q_values

    @cached_property
    def _admissible_tables(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Next state, reward and noise of the actions that exist: [(steps,) admissible (state, action), noises]."""
        exists = self.space.is_admissible
        return (
            self.next_state[..., exists, :],
            self.reward[..., exists, :],
            self.noise[..., exists.nonzero()[0], :],
        )

    def _backward(self, horizon: int, discount: float, choose: Any) -> Values:
        horizon = self._check_horizon(horizon)
        states, actions = self.next_state.shape[-3:-1]
        check_memory(f"A horizon of {horizon} with {states:,} states", 16 * horizon * states * (actions + 1))
        values, q_values = np.zeros((horizon + 1, states)), np.zeros((horizon, states, actions))
        for h in reversed(range(horizon)):
            q_values[h] = self._backup(values[h + 1], h, discount)
            values[h] = choose(q_values[h], h)
        return self._values(values[:-1], q_values)

    def _chain(self, pi: FloatArray) -> tuple[csr_array, FloatArray]:
        """Return the Markov chain of a stationary policy: transition matrix and mean reward."""
        states = len(self.terminal)
        weight = pi[:, :, None] * self.noise[:, None, :]
        tail = np.broadcast_to(np.arange(states)[:, None, None], weight.shape)
        chain = coo_array((weight.ravel(), (tail.ravel(), self.next_state.ravel())), shape=(states, states)).tocsr()
        chain.eliminate_zeros()
        return chain, (weight * self.reward).sum(axis=(1, 2))

    def _endless_values(self, pi: FloatArray, discount: float) -> FloatArray:
        """Return the values of a stationary policy without a horizon."""
        chain, reward = self._chain(pi)
        closed = self._closed(chain, discount)
        paying = closed & (np.abs(reward) > VALUE_TOLERANCE * np.abs(self.reward).max())
        if paying.any():
            raise ModelError(
                f"The policy has no value without a horizon: from state {self.states[np.argmax(paying)]!r} it never "
                "ends and keeps being paid. Set a horizon, or a discount below 1."
            )
        return self._solve(chain, reward, closed, discount)

    def _solve(self, matrix: csr_array, right: FloatArray, closed: BoolArray, discount: float) -> FloatArray:
        """Solve v = right + discount * matrix v, with v = 0 in terminal and in closed states."""
        values, lasting = np.zeros(len(right)), ~(self.terminal | closed)
        inner = matrix[lasting][:, lasting]
        values[lasting] = spsolve((eye_array(inner.shape[0]) - discount * inner).tocsc(), right[lasting])
        return values

    def _closed(self, chain: csr_array, discount: float) -> BoolArray:
        """Whether a sum from a state on never ends: without a discount, in classes that the chain never leaves."""
        if discount < 1:
            return np.zeros(len(self.terminal), dtype=bool)
        count, label = connected_components(chain, directed=True, connection="strong")
        tail, head = chain.nonzero()
        leaves = np.zeros(count, dtype=bool)
        leaves[label[tail[label[tail] != label[head]]]] = True
        return np.asarray(~leaves[label] & ~self.terminal)

    def observe(
        self, beta: npt.ArrayLike, source: str, horizon: int | None = None, *, step_indexed: bool = False
    ) -> Counts:
        """Return the observational distribution of a demonstrator as `Counts` at population level.

        Entries hold P(x, s', ended, y | s), rewards apart as in counted logs, times the weight of s: 1 for every state
        that is not terminal (at each step of a model with steps), or with a horizon the mean number of visits an
        episode makes, so that states out of reach are missing, as they are from logs.

        Args:
            beta: the demonstrator, probabilities [(steps,) states, noises, actions].
            source: the name to count under.
            horizon: the length of an episode; None for all states.
            step_indexed: keep steps apart; needs a horizon, or a model with steps.
        """
        steps = self.steps if horizon is None else self._check_horizon(horizon)
        decisions = self.check_demonstrator(beta, steps)
        if horizon is not None:
            weight = np.stack(list(self._visits(decisions, horizon)))
        elif step_indexed and steps is None:
            raise ModelError("Counts by step need the number of steps: set a horizon.")
        else:
            weight = np.tile(~self.terminal, (steps or 1, 1)).astype(np.float64)
        pieces = []
        for h, visits in enumerate(weight):
            next_state, reward, _ = self._tables(h)
            mass = self._mass(visits, decisions, h)
            s, x, u = np.nonzero(mass)
            pieces.append((np.full(len(s), h), s, x, next_state[s, x, u], reward[s, x, u], mass[s, x, u]))
        step, state, action, target, paid, n = (np.concatenate(column) for column in zip(*pieces, strict=True))
        columns = {
            "source": np.zeros(len(n)),
            "step": step if step_indexed else None,
            "state": state,
            "action": action,
            "next_state": target,
            "terminated": self.terminal[target],
            "n": n,
            "reward_sum": n * paid,
            "reward_min": paid,
            "reward_max": paid,
        }
        return Counts.combined(self.space, [source], columns, population=True)

    def _visits(self, decisions: FloatArray, horizon: int) -> Iterator[FloatArray]:
        """Yield P(S_h = s) for h = 0, 1, ..., without the episodes that have ended."""
        visits = self.start
        for h in range(self._check_horizon(horizon)):
            yield visits
            next_state, _, _ = self._tables(h)
            mass = self._mass(visits, decisions, h)
            arrived = np.bincount(next_state.ravel(), mass.ravel(), minlength=len(self.terminal))
            visits = np.where(self.terminal, 0.0, arrived)

    def _mass(self, visits: FloatArray, decisions: FloatArray, h: int) -> FloatArray:
        """Return P(s, x, u) at a step: float64 [states, actions, noises]."""
        _, _, noise = self._tables(h)
        beta = decisions if decisions.ndim == 3 else decisions[h]
        return visits[:, None, None] * noise[:, None, :] * np.swapaxes(beta, -1, -2)

    def _need_stationary(self, what: str) -> None:
        if self.steps is not None:
            raise ModelError(f"The model changes over its {self.steps} steps; {what} needs a horizon.")

    def _check_horizon(self, horizon: int) -> int:
        horizon = check_integer("horizon", horizon, most=MOST_STEPS_AN_EPISODE)
        if horizon < 1 or (self.steps is not None and horizon > self.steps):
            most = "" if self.steps is None else f" and at most {self.steps}, the steps of the tables"
            raise ModelError(f"horizon is {horizon}; it must be at least 1{most}.")
        return horizon

    def check_policy(self, policy: npt.ArrayLike, horizon: int | None = None) -> FloatArray:
        """Return a policy as probabilities [(steps,) states, actions], or say what is wrong."""
        states, actions = self.next_state.shape[-3:-1]
        table = np.asarray(policy)
        if np.issubdtype(table.dtype, np.integer):
            if table.shape[-1:] != (states,):
                raise ModelError(
                    f"A policy of integers names the action of each state, so it has shape [{states}] or "
                    f"[steps, {states}], not {table.shape}. Pass floats for probabilities."
                )
            _refuse("policy", table, (table < 0) | (table >= actions), f"an action must be in 0 .. {actions - 1}")
            table = np.eye(actions)[table]
        return self._check_decisions("policy", table, (states, actions), horizon)

    def check_demonstrator(self, beta: npt.ArrayLike, horizon: int | None = None) -> FloatArray:
        """Return a demonstrator as probabilities [(steps,) states, noises, actions], or say what is wrong."""
        states, actions, noises = self.next_state.shape[-3:]
        return self._check_decisions("beta", np.asarray(beta), (states, noises, actions), horizon)

    def _decisions(self, pi: FloatArray) -> FloatArray:
        """Return a policy as a demonstrator that does not look at the noise."""
        states, actions, noises = self.next_state.shape[-3:]
        return np.broadcast_to(pi[..., None, :], (*pi.shape[:-2], states, noises, actions))

    def _check_decisions(
        self, name: str, table: npt.NDArray[Any], shape: tuple[int, ...], horizon: int | None
    ) -> FloatArray:
        table = table.astype(np.float64)
        steps = table.shape[: -len(shape)]
        if table.shape[-len(shape) :] != shape or len(steps) > 1 or (steps and steps[0] != horizon):
            wanted = f"{list(shape)}" + ("" if horizon is None else f" or {[horizon, *shape]}")
            raise ModelError(f"{name} has shape {table.shape}; it must be {wanted}.")
        self._check_probabilities(name, table)
        if self.space.admissible:
            excluded = ~(self.space.is_admissible | self.terminal[:, None])
            why = "the action is not admissible in this state"
            _refuse(name, table, (table > 0) & (excluded if len(shape) == 2 else excluded[:, None]), why)
        return table

    def __repr__(self) -> str:
        *_, states, actions, noises = self.next_state.shape
        kind = "stationary" if self.steps is None else f"{self.steps} steps"
        return f"TabularCMDP({states} states, {actions} actions, {noises} noises, {kind})"


def _table(name: str, values: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return frozen(values, dtype, name)
    except DataError as error:
        raise ModelError(str(error)) from error


def _refuse(name: str, table: npt.NDArray[Any], bad: BoolArray, why: str) -> None:
    """Raise a `ModelError` that names the first entry of `table` at which `bad` holds."""
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(np.broadcast_to(bad, table.shape))[0])
        raise ModelError(f"{name}{list(where)} is {table[where]!s}: {why}.")
