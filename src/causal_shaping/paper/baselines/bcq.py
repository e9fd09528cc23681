"""Discrete batch-constrained Q-learning: the deep baseline that learns from the mixed logs alone (extra `deep`).

It imitates the demonstrators and learns Q-values among the actions that they took often enough. Nothing in it asks
about hidden causes: with ever more rows it converges to the fixed point of the pooled logs, confounding included.

- `train_bcq`: train it on the logs of all sources.
- `BCQ`: what it learned, as a policy and as a potential.

Reference: Fujimoto, Conti, Ghavamzadeh, Pineau: Benchmarking Batch Deep Reinforcement Learning Algorithms (2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_discount, check_integer
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.errors import ArgumentError, DataError, MissingExtraError

CURVE_POINTS = 50
"""How many points of the training curve are kept."""


@dataclass(frozen=True, eq=False, repr=False)
class BCQ:
    """What batch-constrained Q-learning made of logs.

    Attributes:
        space: the states and actions.
        q_values: float64 [states, actions]; of actions that were hardly taken, whatever the network makes of them.
        imitation: float64 [states, actions], the probabilities that the demonstrators take an action.
        visited: bool [states], whether any log left the state; all else about the others means nothing.
        threshold: an action is allowed if its probability is above this share of the most probable one's.
        discount: the factor on future reward in the training.
        seed: of the training.
        sources: the names of the logs.
        curve: float64 [points, 3]: steps done, mean TD loss and mean imitation loss since the point before.
    """

    space: Space
    q_values: FloatArray
    imitation: FloatArray
    visited: BoolArray
    threshold: float
    discount: float
    seed: int
    sources: tuple[str, ...]
    curve: FloatArray

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

    def potential(self, discount: float = 1.0) -> Potential:
        """Return the values as a potential: 0 for states that no log left.

        Args:
            discount: of the agent that is to be shaped, 1 in the paper's worlds; not that of the training, which only
                keeps the values finite.
        """
        return Potential(
            np.where(self.visited, self.values, 0.0),
            self.space,
            discount,
            unseen=0.0,
            origin=f"BCQ values of {', '.join(self.sources)}",
            assumptions=("The demonstrators saw no more than the log holds.",),
        )

    def __repr__(self) -> str:
        steps, error, _ = self.curve[-1]
        return (
            f"BCQ({', '.join(self.sources)}: {int(self.visited.sum())} of {len(self.space.states)} states, "
            f"{steps:,.0f} steps, TD loss {error:.3g}, seed {self.seed})"
        )


def train_bcq(
    logs: Logs | Sequence[Logs],
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
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> BCQ:
    """Train discrete batch-constrained Q-learning on the mixed logs of all sources.

    A network sees the state as a one-hot vector, and has two hidden layers that a Q head and an imitation head p share.
    Each step takes rows (s, x, r, s') at random and descends

        huber(Q(s, x) - r - discount * Q'(s', x*)) - log p(x | s) + logit_penalty * mean of the squared logits of p,
        x* = argmax of Q(s', .) among the actions with p(x | s') > threshold * max p(. | s'),

    with Q' a copy of the network that is renewed every `target_every` steps. Nothing follows s' if the world ended the
    episode there; rows where it was cut count on, and rows whose next state is not known are left out. The step size
    falls linearly to 0, so that the last steps average the noise out. Equal seeds give equal results; neither torch's
    global random numbers nor its number of threads change.

    Args:
        logs: one or several sources; their spaces are merged.
        steps: of gradient descent.
        seed: of the first weights and of the rows that are drawn.
        discount: the factor on future reward, 0.99 in the publication; at 1 there is no fixed point where the
            demonstrators' actions keep the agent in a loop.
        threshold: from 0 (plain Q-learning) to below 1 (the most frequent actions); 0.3 in the publication. 0.05 earns
            more in the paper's worlds, whose demonstrators seldom take the best action in some states.
        width: of each hidden layer.
        batch: rows a step.
        learning_rate: of Adam, at the first step.
        target_every: steps between copies of the network.
        logit_penalty: 0.01 in the publication.
        progress: called with the number of steps done and in all.

    `steps`, `discount`, `width`, `batch`, `learning_rate` and `target_every` were tuned on logs that no report uses,
    one setting for all grid worlds: `benchmarks/tuning_bcq.py`.

    Raises:
        CausalShapingError: torch is missing.
    """
    torch = require_torch()
    steps, seed, width = check_integer("steps", steps, 1), check_integer("seed", seed), check_integer("width", width, 1)
    batch, target_every = check_integer("batch", batch, 1), check_integer("target_every", target_every, 1)
    check_discount(discount)
    if not 0 <= threshold < 1:
        raise ArgumentError(f"threshold is {threshold}; it must be at least 0 and below 1, or no action passes.")
    if not 0 < learning_rate < math.inf:
        raise ArgumentError(f"learning_rate is {learning_rate}; it must be finite and above 0.")
    if not 0 <= logit_penalty < math.inf:
        raise ArgumentError(f"logit_penalty is {logit_penalty}; it must be finite and at least 0.")
    logs = [logs] if isinstance(logs, Logs) else list(logs)
    space, rows = _mixed(logs)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # more are slower on a small network, and sum in another order
    try:
        network = _Network(torch, len(space.states), len(space.actions), width, seed)
        curve = network.fit(
            rows, steps, batch, discount, threshold, learning_rate, target_every, logit_penalty, progress
        )
        q_values, imitation = network.tables()
    finally:
        torch.set_num_threads(threads)
    visited = np.bincount(rows[0], minlength=len(space.states)) > 0
    return BCQ(
        space,
        frozen(q_values, np.float64),
        frozen(imitation, np.float64),
        frozen(visited, np.bool_),
        float(threshold),
        float(discount),
        seed,
        tuple(one.source for one in logs),
        frozen(curve, np.float64),
    )


def require_torch() -> Any:
    """Return torch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("BCQ and all that uses torch", "deep") from error
    return torch


def _mixed(logs: Sequence[Logs]) -> tuple[Space, tuple[npt.NDArray[Any], ...]]:
    """Return the merged space and the rows of all logs in it: state, action, reward, next state, whether it goes on."""
    if not logs:
        raise DataError("There are no logs to learn from.")
    space = logs[0].space
    for one in logs[1:]:
        space = space.merge(one.space)
    columns = []
    for one in logs:
        states, actions = space.positions(one.space)
        known = (one.next_state != UNKNOWN) | one.terminated
        after = states[one.next_state]  # of UNKNOWN any: it is not used
        parts = (states[one.state], actions[one.action], one.reward, after, ~one.terminated)
        columns.append([part[known] for part in parts])
    mixed = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
    if not len(mixed[0]):
        raise DataError("No row of the logs has a known outcome: there is nothing to learn from.")
    return space, mixed


class _Network:
    """Two hidden layers over one-hot states, which are looked up rather than multiplied, and two heads in one layer."""

    def __init__(self, torch: Any, states: int, actions: int, width: int, seed: int) -> None:
        self.torch, self.actions = torch, actions
        self.random = torch.Generator().manual_seed(seed)

        def weights(rows: int, columns: int, scale: float) -> Any:
            drawn = torch.randn(rows, columns, generator=self.random, dtype=torch.float32)
            return drawn.mul_(scale).requires_grad_()

        def zeros(size: int) -> Any:
            return torch.zeros(size, dtype=torch.float32, requires_grad=True)

        # A state is one row of the first layer, so that its scale does not depend on how many states there are.
        self.weights = [
            weights(states, width, 1.0),
            weights(width, width, math.sqrt(2 / width)),
            zeros(width),
            weights(width, 2 * actions, 0.1 / math.sqrt(width)),
            zeros(2 * actions),
        ]

    def __call__(self, states: Any) -> tuple[Any, Any]:
        """Return Q and the logits of imitation: [batch, actions] each."""
        first, second, bias, heads, head_bias = self.weights
        hidden = self.torch.addmm(bias, first[states].relu(), second).relu()
        return self.torch.addmm(head_bias, hidden, heads).split(self.actions, dim=1)  # type: ignore[no-any-return]

    def fit(
        self,
        rows: tuple[npt.NDArray[Any], ...],
        steps: int,
        batch: int,
        discount: float,
        threshold: float,
        learning_rate: float,
        target_every: int,
        logit_penalty: float,
        progress: Callable[[int, int], None],
    ) -> list[list[float]]:
        """Train on rows and return the curve; arguments as in `train_bcq`."""
        torch = self.torch
        kinds = (torch.int64, torch.int64, torch.float32, torch.int64, torch.float32)
        columns = [torch.tensor(column, dtype=kind) for column, kind in zip(rows, kinds, strict=True)]
        optimiser = torch.optim.Adam(self.weights, lr=learning_rate, fused=True)
        points = set(np.linspace(0, steps, CURVE_POINTS + 1)[1:].astype(int).tolist())
        least = math.log(threshold) if threshold else -math.inf
        all_states = torch.arange(len(self.weights[0]))
        curve: list[list[float]] = []
        losses, since = torch.zeros(2), 0
        for step in range(steps):
            if step % target_every == 0:
                with torch.no_grad():
                    target = self(all_states)[0]
            optimiser.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
            drawn = torch.randint(len(rows[0]), (batch,), generator=self.random)
            state, action, reward, after, goes_on = (column.index_select(0, drawn) for column in columns)
            # The network sees each state once, however many of the rows hold it.
            states, at = all_states, torch.cat([state, after])
            if len(states) > len(at):
                states, at = at.unique(return_inverse=True)
            q_values, logits = self(states)
            with torch.no_grad():
                share = logits - logits.amax(dim=1, keepdim=True)  # log of p / max p
                best = q_values.masked_fill(share <= least, -math.inf).argmax(dim=1)
                goal = reward + discount * goes_on * target[states, best].index_select(0, at[batch:])
            at = at[:batch]
            taken = at * self.actions + action
            error = torch.nn.functional.smooth_l1_loss(q_values.flatten().index_select(0, taken), goal)
            imitation = -logits.log_softmax(dim=1).flatten().index_select(0, taken).mean()
            penalty = logits.square().mean(dim=1).index_select(0, at).mean()
            optimiser.zero_grad()
            (error + imitation + logit_penalty * penalty).backward()
            optimiser.step()
            losses += torch.stack([error.detach(), imitation.detach()])
            if step + 1 in points:
                curve.append([step + 1, *(losses / (step + 1 - since)).tolist()])
                losses, since = torch.zeros(2), step + 1
                progress(step + 1, steps)
        return curve

    def tables(self) -> tuple[FloatArray, FloatArray]:
        """Return Q and the imitation probabilities of all states."""
        with self.torch.no_grad():
            q_values, logits = self(slice(None))
            return q_values.double().numpy(), logits.double().softmax(dim=1).numpy()
