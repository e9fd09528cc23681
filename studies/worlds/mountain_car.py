"""Gymnasium's mountain car with a hidden push."""

from __future__ import annotations

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.worlds.dynamics import Moved, Numbers, States
from studies.worlds._pushes import PushedWorld

# Gymnasium's MountainCar-v0
FORCE, GRAVITY, FASTEST = 0.001, 0.0025, 0.07
LEFTMOST, GOAL, RIGHTMOST = -1.2, 0.5, 0.6


class MountainCar(PushedWorld):
    """A car too weak for its hill, with a push on its velocity, of equal chance to the left, to the right, or none.

    Physics are those of Gymnasium's MountainCar-v0, with the push added to the engine's force. Each step costs 1 until
    the goal is reached. Episodes start anywhere left of the goal, with any velocity, so that logs cover all states;
    Gymnasium's start at rest, from -0.6 to -0.4.

    Demonstrators wish to go faster the way they go. `good` looks at the velocity that gravity and the push will leave.
    `bad` drives against its wish when the push makes up for that, and coasts when there is none: in its logs the wrong
    action looks better than the right one.

    Args:
        horizon: the length of an episode; the best policy takes 112 steps on average from where it takes longest.
    """

    name = "mountain-car"
    columns = ("position", "velocity")
    actions = ("left", "coast", "right")
    start_draws = 2
    push = 0.002  # twice the engine's force: enough for a push to make the wrong action look right
    reward_range = (-1.0, -1.0)
    low = np.array([LEFTMOST, -FASTEST], np.float32)
    high = np.array([RIGHTMOST, FASTEST], np.float32)

    def __init__(self, horizon: int = 150) -> None:
        super().__init__(horizon)

    def start(self, draws: FloatArray) -> States:
        """Start anywhere left of the goal."""
        low, width = np.array([LEFTMOST, -FASTEST]), np.array([GOAL - LEFTMOST, 2 * FASTEST])
        return np.minimum((low + width * draws).astype(np.float32), np.nextafter(np.float32(GOAL), np.float32(0)))

    def terminal(self, states: States) -> BoolArray:
        """Return where the goal is reached, not rolling back from it."""
        return np.asarray((states[:, 0] >= GOAL) & (states[:, 1] >= 0))

    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Change the velocity by engine, slope and push, then the position; the wall on the left stops the car."""
        position, velocity = states.astype(np.float64).T
        velocity = velocity + FORCE * (actions - 1) + self.pushes[noises] - GRAVITY * np.cos(3 * position)
        velocity = np.clip(velocity, -FASTEST, FASTEST)
        position = np.clip(position + velocity, LEFTMOST, RIGHTMOST)
        velocity = np.where((position == LEFTMOST) & (velocity < 0), 0.0, velocity)
        after = np.clip(np.stack([position, velocity], axis=1).astype(np.float32), self.low, self.high)
        return Moved(after, np.full(len(after), -1.0), self.terminal(after))

    def good(self, states: States) -> Numbers:
        """Return the actions that come nearest to what is wished for, together with each push."""
        coming = states[:, 1] - GRAVITY * np.cos(3 * states[:, 0])
        return np.where(coming[:, None] + self.pushes >= 0, 2, 0)

    def bad(self, states: States) -> Numbers:
        """Return the actions against the wish where the push makes up for that."""
        wish = np.where(states[:, 1] >= 0, 1, -1)[:, None]
        return 1 - wish * np.sign(self.pushes).astype(np.int64)
