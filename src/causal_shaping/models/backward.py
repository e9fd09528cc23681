"""Backward induction: values of the best policy, from the last step of an episode to the first.

A *backup* turns the values of the next step into action values. `backward_induction` takes a backup
at each step of a finite horizon; `repeat` takes them until values are stable, for an infinite one.
Both work with any backup. `optimal_values` solves a Markov decision process whose next states are a
sparse matrix:

    Q_h(s, x) = R(s, x) + discount * sum over s' of P(s' | s, x) * V_{h+1}(s')
    V_h(s)    = max over the admissible actions x of Q_h(s, x)

Values of actions that are not admissible are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ModelError
from causal_shaping.models import constants
from causal_shaping.models.constants import MOST_SWEEPS, VALUE_TOLERANCE

Backup: TypeAlias = Callable[[int, FloatArray], FloatArray]
"""From a step and the values of the next one [states] to action values [states, actions]."""

Choice: TypeAlias = Callable[[int, FloatArray], FloatArray]
"""From a step and its action values [states, actions] to the values of its states [states]."""

Sweep: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""From values [states] to new values and action values [states, actions]."""


def best_values(q_values: FloatArray) -> FloatArray:
    """Return the value of the best action that is not NaN: float64 [..., states]."""
    best: FloatArray = q_values[..., 0].copy()
    for x in range(1, q_values.shape[-1]):  # several times faster than many short reductions
        np.fmax(best, q_values[..., x], out=best)
    return best


def backward_induction(
    backup: Backup,
    horizon: int,
    shape: tuple[int, int],
    choose: Choice = lambda _, q_values: best_values(q_values),
) -> tuple[FloatArray, FloatArray]:
    """Return the values and the action values of each step of an episode.

    Args:
        backup: the action values of a step from the values of the next, which are 0 after the last.
        horizon: the number of steps.
        shape: the numbers of states and of actions.
        choose: the values of a step from its action values; by default those of the best action.

    Returns:
        Values, float64 [steps, states], and action values, float64 [steps, states, actions].
    """
    values, q_values = np.zeros((horizon + 1, shape[0])), np.empty((horizon, *shape))
    for h in reversed(range(horizon)):
        q_values[h] = backup(h, values[h + 1])
        values[h] = choose(h, q_values[h])
    return values[:-1], q_values


@dataclass(frozen=True, eq=False)
class Sweeps:
    """The result of a number of sweeps.

    Attributes:
        values: float64 [states].
        q_values: float64 [states, actions].
        change: float64 [states], by how much the last sweep changed each value.
        changes: the largest change of each sweep.
        size: the largest value that any sweep had, whatever its sign.
    """

    values: FloatArray
    q_values: FloatArray
    change: FloatArray
    changes: list[float]
    size: float

    @property
    def stable(self) -> bool:
        """Whether the last sweep changed values by no more than rounding."""
        return self.changes[-1] <= VALUE_TOLERANCE * self.size


def repeat(sweep: Sweep, values: FloatArray, most: int, size: float = 0.0) -> Sweeps:
    """Return the result of sweeps that begin at `values` and end when values are stable.

    Args:
        sweep: the function to repeat.
        values: where to begin, float64 [states].
        most: the largest number of sweeps.
        size: the largest value of earlier sweeps, if these continue them.
    """
    changes: list[float] = []
    size = max(size, float(np.abs(values).max()))
    for _ in range(most):
        before, (values, q_values) = values, sweep(values)
        change = np.abs(values - before)
        changes.append(float(change.max()))
        size = max(size, float(np.abs(values).max()))
        result = Sweeps(values, q_values, change, changes, size)
        if result.stable:
            break
    return result


def outcome_matrix(first: Any, after: Any, probability: Any, states: int) -> csr_array:
    """Return outcomes, sorted by state and action, as the matrix that `optimal_values` takes.

    Args:
        first: integers [states * actions + 1], where the outcomes of each (state, action) begin.
        after: integers [outcomes], the next state; the number of states stands for an end.
        probability: float64 [outcomes]; of each (state, action) they add up to 1.
        states: the number of states.

    Examples:
        >>> outcome_matrix([0, 2, 3], [1, 2, 1], [0.75, 0.25, 1.0], states=2).toarray().tolist()
        [[0.0, 0.75], [0.0, 1.0]]
    """
    shape = (len(first) - 1, states + 1)
    matrix = csr_array((probability, after, first), shape=shape, copy=True)
    matrix.eliminate_zeros()
    return matrix[:, :states]


def sparse_backup(
    transitions: Sequence[csr_array],
    rewards: FloatArray,
    discount: float = 1.0,
    admissible: BoolArray | None = None,
) -> Backup:
    """Return the backup of a Markov decision process; for the arguments see `optimal_values`."""

    def backup(step: int, following: FloatArray) -> FloatArray:
        step = min(step, len(transitions) - 1)
        follows = (transitions[step] @ following).reshape(rewards.shape[1:])
        q_values: FloatArray = rewards[step] + discount * follows
        if admissible is not None:
            q_values[~admissible] = np.nan
        return q_values

    return backup


def optimal_values(
    transitions: Sequence[csr_array],
    rewards: FloatArray,
    horizon: int | None = None,
    discount: float = 1.0,
    admissible: BoolArray | None = None,
    states: Sequence[Any] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the values and action values of the best policy of a Markov decision process.

    With a horizon, by backward induction. With a discount below 1, by policy iteration. Without
    either, the limit of the finite-horizon values as the horizon grows: by sweeps, and by policy
    iteration where they are slow.

    Args:
        transitions: one matrix for all steps, or one for each: P(s' | s, x), csr_array
            [states * actions, states], in row s * actions + x. What a row lacks to 1 is the
            probability of an end. A terminal state leads nowhere, or to itself at no reward.
        rewards: mean rewards, float64 [matrices, states, actions].
        horizon: the number of steps, None for ever.
        discount: the factor on future reward.
        admissible: bool [states, actions], the actions that exist; None if all do.
        states: the names of the states, for messages; by default their numbers.

    Returns:
        Values, float64 [(steps,) states], and action values, float64 [(steps,) states, actions].

    Raises:
        ModelError: if there is no limit, since an agent can collect reward for ever, or swing
            between gain and loss.
    """
    backup = sparse_backup(transitions, rewards, discount, admissible)
    _, size, actions = rewards.shape
    if horizon is not None:
        return backward_induction(backup, horizon, (size, actions))
    names = states or range(size)

    def sweep(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        q_values = backup(0, values)
        return best_values(q_values), q_values

    def improve(q_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Iterate policies, from the one that is greedy for some action values."""
        policy = _greedy(q_values)
        while True:
            decide = np.eye(actions)[policy]
            values = endless_values(transitions[0], rewards[0], decide, discount, names)
            best, q_values = sweep(values)
            # Only a true improvement changes the policy, or rounding could lead it in circles.
            slack = (
                VALUE_TOLERANCE
                * np.abs(values).max()
                / (1.0 - min(discount, constants.LARGEST_RATE))
            )
            better = best > q_values[np.arange(size), policy] + slack
            if not better.any():
                return best, q_values
            policy = np.where(better, _greedy(q_values), policy)

    if discount < 1:
        return improve(backup(0, np.zeros(size)))
    # After n sweeps from 0, values are those of a horizon of n steps.
    halfway = last = repeat(sweep, np.zeros(size), MOST_SWEEPS // 2)
    if not halfway.stable:
        last = repeat(sweep, halfway.values, MOST_SWEEPS // 2, halfway.size)
    if last.stable:
        return last.values, last.q_values
    # Slow, or no limit at all? A limit solves the optimality equation, and the sweeps approach it.
    try:
        exact = improve(last.q_values)
    except ModelError:
        pass  # the best policy never ends and keeps being paid
    else:
        before, now = (np.abs(sweeps.values - exact[0]).max() for sweeps in (halfway, last))
        if now < before * constants.APPROACH:
            return exact
    worst = int(last.change.argmax())
    raise ModelError(
        f"There is no optimum without a horizon: after {MOST_SWEEPS:,} sweeps the value of state "
        f"{names[worst]!r} still changes by {last.change[worst]:.3g} a sweep (it is "
        f"{last.values[worst]:.4g}). Set a horizon, or a discount below 1."
    )


def _greedy(q_values: FloatArray) -> Any:
    return np.where(np.isnan(q_values), -np.inf, q_values).argmax(axis=-1)


def endless_values(
    transitions: csr_array,
    rewards: FloatArray,
    policy: FloatArray,
    discount: float,
    states: Sequence[Any],
) -> FloatArray:
    """Return the values of a policy without a horizon: float64 [states].

    Args:
        transitions: P(s' | s, x), csr_array [states * actions, states], row s * actions + x.
        rewards: mean rewards, float64 [states, actions].
        policy: probabilities, float64 [states, actions].
        discount: the factor on future reward.
        states: the names of the states, for messages.
    """
    # The policy's Markov chain, [states, states], and its mean rewards.
    size, actions = policy.shape
    cells, first = np.arange(policy.size), np.arange(0, policy.size + 1, actions)
    decide = csr_array((policy.ravel(), cells, first), shape=(size, policy.size), copy=True)
    decide.eliminate_zeros()
    chain, reward = decide @ transitions, (policy * rewards).sum(axis=1)

    # Undiscounted, a sum has no limit in a class of states that the chain never leaves.
    closed = np.zeros(size, dtype=bool)
    if discount == 1:
        closed = _closed_states(chain)
    paying = closed & (np.abs(reward) > VALUE_TOLERANCE * np.abs(rewards).max())
    if paying.any():
        state = states[int(paying.argmax())]
        raise ModelError(
            f"The policy has no value without a horizon: from state {state!r} it never ends and "
            "keeps being paid. Set a horizon, or a discount below 1."
        )

    # Solve v = reward + discount * chain v; where nothing is paid for ever, v is 0.
    values, inner = np.zeros(size), chain[~closed][:, ~closed]
    system = (eye_array(inner.shape[0]) - discount * inner).tocsc()
    values[~closed] = spsolve(system, reward[~closed])
    return values


def _closed_states(chain: csr_array) -> BoolArray:
    """Return the states of classes that a Markov chain never leaves: bool [states]."""
    count, group = connected_components(chain, directed=True, connection="strong")
    # A class is left by a transition into another one, or by an end, for which a row lacks mass.
    tail, head = chain.nonzero()
    left = np.zeros(count, dtype=bool)
    left[group[tail[group[tail] != group[head]]]] = True
    left[group[chain.sum(axis=1) < 1 - constants.END_TOLERANCE]] = True
    return np.asarray(~left[group])
