"""The walking robot of the paper's example 1.

State (L, F): place 0 .. 10 in the hallway, and whether the robot is stable. Small steps keep a stable robot
stable; an unstable one must take the step that the hidden noise asks for.
"""

from __future__ import annotations

from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds.tables import Rule, tabulate

LENGTH = 10
HORIZON = 30
ACTIONS = ("small-step", "big-step")
NOISES = ("small-needed", "big-needed")
STATES = tuple((place, stable) for place in range(LENGTH + 1) for stable in (0, 1))

GOAL_REWARD = 1.0
SMALL_STEP_REWARD = 0.5
"""Not in the paper's formula, but its table of optimal values needs it."""
RIGHT_STEP_REWARD = 1.0
WRONG_STEP_REWARD = -1.0


def step(state: tuple[int, int], action: str, noise: str) -> tuple[tuple[int, int], float]:
    """Return the next state and the reward."""
    place, stable = state
    if stable:
        moves = action == "small-step"
        after, reward = (place + moves, int(moves)), SMALL_STEP_REWARD if moves else 0.0
    elif ACTIONS.index(action) == NOISES.index(noise):
        after, reward = (place + 1, 1), RIGHT_STEP_REWARD
    else:
        after, reward = state, WRONG_STEP_REWARD
    return after, GOAL_REWARD if after[0] == LENGTH else reward


def robot_model() -> TabularCMDP:
    """Return the robot's CMDP."""
    return tabulate(
        STATES,
        ACTIONS,
        NOISES,
        ("L", "F"),
        step=step,
        noise=lambda _: (0.5, 0.5),
        terminal=lambda state: state[0] == LENGTH,
        start=[(0, 1)],
    )


DEMONSTRATORS: dict[str, Rule] = {
    "competent": lambda state, noise: "big-step" if state[1] else ACTIONS[NOISES.index(noise)],
    "incompetent": lambda state, noise: ACTIONS[1 - NOISES.index(noise)],
}
