"""Gymnasium's cart-pole with a hidden push."""

from __future__ import annotations

import math

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.worlds.dynamics import Moved, Numbers, States
from studies.worlds._pushes import PushedWorld

# Gymnasium's CartPole-v1
GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MASS = CART_MASS + POLE_MASS
FARTHEST, STEEPEST = 2.4, math.radians(12)
START = 0.05

FASTEST = 10.0
"""Velocities are cut here; no episode comes near."""
GAINS = np.array([1.0, 1.0, 150.0, 30.0])
"""The force that demonstrators wish for, by coordinate."""


class CartPole(PushedWorld):
    """A pole to balance on a cart, with a push on the cart, of equal chance to the left, to the right, or none.

    Physics are those of Gymnasium's CartPole-v1, with the push added to the cart's force. Each step pays 1, also that
    in which the pole falls or the cart leaves.

    Demonstrators wish for a force that is linear in the state. `good` takes the action that comes nearest together with
    the push. `bad` acts against its wish when the push makes up for that, and by it otherwise: in its logs the wrong
    action looks better than the right one.

    Args:
        horizon: the length of an episode; 100 is long enough for most falls, and half of what 200 steps cost.
    """

    name = "cart-pole"
    columns = ("position", "velocity", "angle", "angular_velocity")
    actions = ("left", "right")
    start_draws = 4
    reward_range = (1.0, 1.0)
    push = 20.0
    """Twice the cart's own force. In 100 steps the best linear rule stands for 76 of them, for 88 if it sees the push;
    with 10 both stand for all, with 30 they fall after 35 and 44."""
    degree = 3  # a step is short: linear interpolation would blur values by more than the push does

    def __init__(self, horizon: int = 100) -> None:
        super().__init__(horizon)
        self.high = np.array([2 * FARTHEST, FASTEST, 2 * STEEPEST, FASTEST], np.float32)
        self.low = -self.high

    def start(self, draws: FloatArray) -> States:
        """Start near rest and upright, as in Gymnasium."""
        return (START * (2 * draws - 1)).astype(np.float32)

    def terminal(self, states: States) -> BoolArray:
        """Return where the pole has fallen or the cart has left."""
        return np.asarray((np.abs(states[:, 0]) > FARTHEST) | (np.abs(states[:, 2]) > STEEPEST))

    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Take an Euler step with the cart's force and the push."""
        velocity, angle, turn = states[:, 1:].astype(np.float64).T
        force = FORCE * (2 * actions - 1) + self.pushes[noises]
        sine, cosine = np.sin(angle), np.cos(angle)
        both = (force + POLE_MASS * HALF_LENGTH * turn**2 * sine) / MASS
        turning = (GRAVITY * sine - cosine * both) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / MASS))
        pulling = both - POLE_MASS * HALF_LENGTH * turning * cosine / MASS
        change = SECONDS * np.stack([velocity, pulling, turn, turning], axis=1)
        after = np.clip(states + change, self.low, self.high).astype(np.float32)
        return Moved(after, np.ones(len(after)), self.terminal(after))

    def axes(self, grid: int) -> tuple[FloatArray, ...]:
        """Return `grid` points for the angle and its velocity, a third as many for the cart, which matters less."""
        ends, few = (FARTHEST, 3.0, STEEPEST * (1 - 1e-6), 4.0), max(self.degree + 1, grid // 3)
        return tuple(
            np.linspace(-end, end, count)
            for end, count in zip(ends, (few, few, max(few, grid), max(few, grid)), strict=True)
        )

    def good(self, states: States) -> Numbers:
        """Return the actions that come nearest to what is wished for, together with each push."""
        return np.where((states @ GAINS)[:, None] > self.pushes, 1, 0)

    def bad(self, states: States) -> Numbers:
        """Return the actions against the wish where the push makes up for that."""
        wish = np.where(states @ GAINS > 0, 1, 0)[:, None]
        return np.asarray(np.where(np.sign(self.pushes) == 2 * wish - 1, 1 - wish, wish))
