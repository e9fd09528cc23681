"""Discrete batch-constrained Q-learning: the deep baseline that learns from the mixed logs alone.

It imitates the demonstrators and learns Q-values among the actions that they took often enough. It ignores hidden
causes: with ever more rows it converges to the solution of the pooled logs, confounding included.

- `train_bcq`: train it on the logs of all sources.
- `BCQ`: the result, as a policy and as a potential.

Reference: Fujimoto, Conti, Ghavamzadeh, Pineau: Benchmarking Batch Deep Reinforcement Learning Algorithms (2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.errors import DataError
from studies.paper.baselines._network import Network, Rows, Settings
from studies.paper.baselines.behaviour import merge_spaces


@dataclass(frozen=True, eq=False)
class BCQ:
    """What batch-constrained Q-learning learned from logs.

    Attributes:
        space: the states and actions.
        q_values: float64 [states, actions]; those of rarely taken actions are the network's extrapolation.
        imitation: float64 [states, actions], the estimated probability that the demonstrators take an action.
        visited: bool [states], whether any source acted in the state; entries of other states are meaningless.
        threshold: an action is allowed if its probability is above this share of the most probable one's.
        sources: the names of the logs.
    """

    space: Space
    q_values: FloatArray
    imitation: FloatArray
    visited: BoolArray
    threshold: float
    sources: tuple[str, ...]

    @property
    def allowed(self) -> BoolArray:
        """Whether an action may be taken: bool [states, actions], at least one in each state."""
        return np.asarray(self.imitation > self.threshold * self.imitation.max(axis=1, keepdims=True))

    @property
    def policy(self) -> IntArray:
        """The best allowed actions: int32 [states]."""
        return np.asarray(np.where(self.allowed, self.q_values, -np.inf).argmax(axis=1), dtype=np.int32)

    @property
    def values(self) -> FloatArray:
        """The Q-values of the best allowed actions: float64 [states]."""
        return np.asarray(np.where(self.allowed, self.q_values, -np.inf).max(axis=1))

    def potential(self) -> Potential:
        """Return the values as a potential: 0 for states in which no source acted.

        Its discount is 1, as in the paper's worlds: that of the training only keeps the values finite.
        """
        return Potential(
            np.where(self.visited, self.values, 0.0),
            self.space,
            unseen=0.0,
            origin=f"BCQ values of {', '.join(self.sources)}",
            assumptions=("The demonstrators saw no more than the log holds.",),
        )


def train_bcq(
    logs: Sequence[Logs],
    *,
    steps: int = 5_000,
    seed: int = 0,
    discount: float = 0.99,
    threshold: float = 0.3,
    width: int = 64,
    batch: int = 1024,
    learning_rate: float = 1e-3,
    target_every: int = 50,
    logit_penalty: float = 1e-2,
) -> BCQ:
    """Train discrete batch-constrained Q-learning on the mixed logs of all sources.

    The network sees the state as a one-hot vector and has two hidden layers, shared by a Q head and an imitation head
    p. Each step draws rows (s, x, r, s') at random and descends

        huber(Q(s, x) - r - discount * Q'(s', x*)) - log p(x | s) + logit_penalty * mean of the squared logits of p,
        x* = argmax of Q(s', .) among the actions with p(x | s') > threshold * max p(. | s'),

    with Q' a copy of the network, renewed every `target_every` steps. Rows that terminated do not bootstrap, truncated
    ones do, and rows whose next state is unknown are left out. The learning rate falls linearly to 0, so that the last
    steps average out the noise. Equal seeds give equal results.

    Args:
        logs: the sources; their spaces are merged.
        steps: the number of gradient steps.
        seed: the seed of the initial weights and of the rows that are drawn.
        discount: the factor on future reward, 0.99 in the publication; at 1 Q-learning diverges where the
            demonstrators' actions keep the agent in a loop.
        threshold: from 0 (plain Q-learning) to below 1 (the most frequent actions); 0.3 in the publication. 0.05 earns
            more in the paper's worlds, whose demonstrators seldom take the best action in some states.
        width: the number of units in each hidden layer.
        batch: the number of rows in each step.
        learning_rate: Adam's, at the first step.
        target_every: steps between copies of the network.
        logit_penalty: the weight of the penalty on logits; 0.01 in the publication.

    `steps`, `discount`, `width`, `batch`, `learning_rate` and `target_every` were tuned on logs that no report uses,
    one setting for all grid worlds.
    """
    logs, space = merge_spaces(logs)
    rows, of_row = _rows(logs, space)
    settings = Settings(discount, threshold, learning_rate, target_every, logit_penalty)
    random = np.random.default_rng(seed)
    network = Network(len(space.states), len(space.actions), width, random)
    drawn = of_row[random.integers(len(of_row), size=(steps, batch), dtype=np.int32)]
    network.train(rows, drawn, settings)
    q_values, imitation = network.tables()
    visited = np.bincount(rows.state, minlength=len(space.states)) > 0
    return BCQ(
        space,
        frozen(q_values, np.float64),
        frozen(imitation, np.float64),
        frozen(visited, np.bool_),
        threshold,
        tuple(one.source for one in logs),
    )


def _rows(logs: Sequence[Logs], space: Space) -> tuple[Rows, IntArray]:
    """Return the distinct rows of all logs whose outcome is known, in the merged space, and which one each row is."""
    columns = []
    for one in logs:
        states, actions = space.positions(one.space)
        known = (one.next_state != UNKNOWN) | one.terminated
        after = states[one.next_state]  # where it is UNKNOWN, any state: it is not used
        parts = (states[one.state], actions[one.action], one.reward.astype(np.float32), after, one.terminated)
        columns.append([part[known] for part in parts])
    state, action, reward, after, ended = rows = [np.concatenate(column) for column in zip(*columns, strict=True)]
    if not len(state):
        raise DataError("No row of the logs has a known outcome: there is nothing to learn from.")
    pair = state.astype(np.int64) * len(space.actions) + action
    steps, rewards = _numbered((pair * len(space.states) + after) * 2 + ended), _numbered(reward)
    of_row = _numbered(steps * (rewards.max() + 1) + rewards)
    first = np.empty(of_row.max() + 1, dtype=np.int64)
    first[of_row] = np.arange(len(of_row))
    return Rows(*(column[first] for column in rows)), of_row.astype(np.int32)


def _numbered(values: npt.NDArray[Any]) -> LongArray:
    """Return the number of each value, counted as they come: equal ones have the same; faster than by sorting."""
    return np.asarray(pa.array(values).dictionary_encode().indices, dtype=np.int64)
