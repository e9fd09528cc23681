"""The optimal values of a continuous world, by dynamic programming on a grid.

V_h(s) = max over x of E[ r + discount * V_{h+1}(s') | s, do(x) ] at the points of a grid, with V_{h+1} interpolated
between those of its neighbours in which episodes go on, linearly or by polynomials in the cart-pole's. V = 0 after
termination and after the horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtr

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.dynamics import Numbers, States
from causal_shaping.worlds.field import WindyField
from studies.worlds.cart_pole import CartPole

NODES = 5
"""Of the quadrature for each continuous draw of a step."""

CORNERS_AT_ONCE = 2_000_000
"""Outcomes, states by actions by noises by nodes, times their neighbours, that are held in memory at a time."""


class Outcomes(NamedTuple):
    """All that can follow some states: by action, hidden noise, and a node of the noise that nobody sees.

    The mean of f under do(x) in state s is the sum over u and k of `probability[s, u, k] * f(s, x, u, k)`; a
    demonstrator of rule beta takes x and meets (u, k) with `probability[s, u, k] * beta[s, u, x]`. What has no
    probability is left blank: the state itself, a reward of 0.
    """

    next_states: States  # [states, actions, noises, nodes, coordinates]
    reward: FloatArray  # [states, actions, noises, nodes]
    terminated: BoolArray  # [states, actions, noises, nodes]
    probability: FloatArray  # [states, noises, nodes]


def outcomes(world: ContinuousWorld, states: States) -> Outcomes:
    """Return all that can follow states [states, coordinates], for exact expectations."""
    states = np.asarray(states, np.float32)
    draws, weights = nodes_of(world)
    probability = world.noise(states)[:, :, None] * weights
    shape = (len(states), len(world.actions), len(world.noises), len(weights))
    s, x, u, k = np.nonzero(np.broadcast_to(probability[:, None] > 0, shape))
    moved = world.step(states[s], x, u, draws[k])
    next_states = np.broadcast_to(states[:, None, None, None], (*shape, len(world.columns))).copy()
    reward, terminated = np.zeros(shape), np.zeros(shape, dtype=bool)
    next_states[s, x, u, k], reward[s, x, u, k], terminated[s, x, u, k] = moved
    return Outcomes(next_states, reward, terminated, probability)


def nodes_of(world: ContinuousWorld) -> tuple[FloatArray, FloatArray]:
    """Return uniforms [nodes, step_draws] that stand for all, and their weights: Gauss-Hermite quadrature in fields."""
    if not isinstance(world, WindyField):
        return np.zeros((1, world.step_draws)), np.ones(1)  # there is nothing to draw
    if world.noise_sd == 0:
        return np.full((1, 2), 0.5), np.ones(1)
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    i, j = (part.ravel() for part in np.indices((NODES, NODES)))
    return ndtr(np.stack([points[i], points[j]], axis=1)), weights[i] * weights[j] / weights.sum() ** 2


def axes_of(world: ContinuousWorld, grid: int) -> tuple[FloatArray, ...]:
    """Return the points of a grid along each coordinate, rising: `grid` for each cell of a field, none on its edges."""
    if isinstance(world, WindyField):
        sides = (world.grid.width - 2, world.grid.height - 2)
        return tuple(0.5 + (np.arange(grid * cells) + 0.5) / grid for cells in sides)
    if isinstance(world, CartPole):
        return world.axes(grid)
    return tuple(
        np.linspace(low, high, grid) for low, high in zip(world.low.tolist(), world.high.tolist(), strict=True)
    )


def degree_of(world: ContinuousWorld) -> int:
    """Return the degree of the polynomials between points of a grid; above 1 these are evenly spaced, none terminal."""
    return world.degree if isinstance(world, CartPole) else 1


@dataclass(frozen=True, eq=False, repr=False)
class GridValues:
    """Optimal values of a continuous world at the points of a grid, and between them.

    Attributes:
        world: the world.
        axes: the points along each coordinate.
        values: float64 [steps + 1, points], first step first, 0 in the last row and in terminal states; points in the
            order of `points`.
        points: float32 [points, coordinates], the last coordinate changing fastest.
        terminal: bool [points], in which no episode goes on.
    """

    world: ContinuousWorld
    axes: tuple[FloatArray, ...]
    values: FloatArray
    points: States
    terminal: BoolArray

    def __call__(self, states: npt.ArrayLike, step: int = 0) -> FloatArray:
        """Return the optimal values of states [..., coordinates] at a step, the first by default: [...]."""
        states = np.asarray(states, np.float32)
        flat = states.reshape(-1, states.shape[-1])
        corners, weights = neighbours(self.axes, self.terminal, flat, degree_of(self.world))
        return np.asarray((self.values[step][corners] * weights).sum(axis=1)).reshape(states.shape[:-1])

    def q_values(self, states: npt.ArrayLike, step: int = 0) -> FloatArray:
        """Return E[ r + discount * V_{step+1}(s') | s, do(x) ] for states [states, coordinates]: [states, actions]."""
        states = np.asarray(states, np.float32)
        parts = [np.zeros((0, len(self.world.actions)))]
        for block in _blocks(self.world, states):
            after = outcomes(self.world, block)
            follows = np.where(after.terminated, 0.0, self(after.next_states, step + 1))
            parts.append(np.einsum("suk,sxuk->sx", after.probability, after.reward + self.world.discount * follows))
        return np.concatenate(parts)


def grid_of(world: ContinuousWorld, grid: int) -> tuple[tuple[FloatArray, ...], States, BoolArray]:
    """Return the axes of a grid, its points, and which of these are terminal."""
    axes = axes_of(world, grid)
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1).astype(np.float32)
    return axes, points, world.terminal(points)


def solve(world: ContinuousWorld, grid: int) -> GridValues:
    """Return the optimal values of an agent that does not see the noise, by dynamic programming on a grid.

    Args:
        world: the world.
        grid: points along each coordinate; in the windy field, points along the side of a cell.
    """
    axes, points, terminal = grid_of(world, grid)
    inside, actions = np.flatnonzero(~terminal), len(world.actions)
    rewards, parts = [], []
    for block in _blocks(world, points[inside]):
        after = outcomes(world, block)
        chance = np.broadcast_to(after.probability[:, None], after.reward.shape)
        rewards.append((chance * after.reward).sum(axis=(2, 3)).ravel())
        # Means over the noise: a row for each state and action, and in it the chances of its outcomes.
        first = np.arange(len(block) * actions + 1) * chance[0, 0].size
        mean = sparse.csr_array((chance.ravel(), np.arange(chance.size), first), shape=(len(first) - 1, chance.size))
        parts.append(mean @ following(world, axes, terminal, after))
    reward, follow = np.concatenate(rewards), sparse.vstack(parts, format="csr")
    values = np.zeros((world.horizon + 1, len(points)))
    for h in reversed(range(world.horizon)):
        q_values = reward + world.discount * (follow @ values[h + 1])
        values[h, inside] = q_values.reshape(len(inside), actions).max(axis=1)
    return GridValues(world, axes, values, points, terminal)


def following(
    world: ContinuousWorld, axes: tuple[FloatArray, ...], terminal: BoolArray, after: Outcomes
) -> sparse.csr_array:
    """Return the weights of grid points in the value of what follows: [states * actions * noises * nodes, points]."""
    goes_on = np.flatnonzero(~after.terminated)
    places = after.next_states.reshape(-1, len(axes))[goes_on]
    corners, weights = neighbours(axes, terminal, places, degree_of(world))
    where = (np.repeat(goes_on, corners.shape[1]), corners.ravel())
    return sparse.coo_array((weights.ravel(), where), shape=(after.terminated.size, len(terminal))).tocsr()


def _blocks(world: ContinuousWorld, states: States) -> list[States]:
    """Return states in parts whose outcomes fit into memory."""
    each = len(world.actions) * len(world.noises) * len(nodes_of(world)[1])
    corners = (degree_of(world) + 1) ** len(world.columns)
    size = max(1, CORNERS_AT_ONCE // (each * corners))
    return [states[i : i + size] for i in range(0, len(states), size)]


def neighbours(
    axes: tuple[FloatArray, ...], terminal: BoolArray, states: States, degree: int = 1
) -> tuple[Numbers, FloatArray]:
    """Return the grid points around states and their weights: [states, (degree + 1)^coordinates] each.

    Weights are those of polynomials along each coordinate; points in which no episode goes on have none.
    """
    corners, weights = np.zeros((len(states), 1), np.int64), np.ones((len(states), 1))
    near = np.arange(degree + 1)
    for i, axis in enumerate(axes):
        place = np.interp(states[:, i].astype(np.float64), axis, np.arange(len(axis)))
        first = np.clip(place.astype(np.int64) - degree // 2, 0, len(axis) - degree - 1)[:, None]
        away = place[:, None] - first
        share = np.stack(
            [np.prod((away - near[near != k]) / (k - near[near != k]), axis=1) for k in near], axis=1
        )  # Lagrange's polynomials
        size = (len(states), corners.shape[1] * len(near))
        corners = (corners[:, :, None] * len(axis) + (first + near)[:, None]).reshape(size)
        weights = (weights[:, :, None] * share[:, None]).reshape(size)
    weights = weights * ~terminal[corners]
    total = weights.sum(axis=1, keepdims=True)
    return corners, weights / np.where(total > 0, total, 1.0)
