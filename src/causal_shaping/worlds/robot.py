"""The walking robot of the paper's example 1.

State (L, F): the place in the hallway, 0 to 10, and whether the robot is stable. Small steps keep a
stable robot stable; an unstable one must take the step that the hidden noise asks for.
"""

from __future__ import annotations

from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds import constants
from causal_shaping.worlds.tables import Rule, tabulate

ACTIONS = ("small-step", "big-step")
NOISES = ("small-needed", "big-needed")
STATES = tuple((place, stable) for place in range(constants.ROBOT_LENGTH + 1) for stable in (0, 1))


def step(state: tuple[int, int], action: str, noise: str) -> tuple[tuple[int, int], float]:
    """Return the next state and the reward."""
    place, stable = state
    match stable, action, ACTIONS.index(action) == NOISES.index(noise):
        case 1, "small-step", _:
            after, reward = (place + 1, 1), constants.SMALL_STEP_REWARD
        case 1, _, _:
            after, reward = (place, 0), 0.0
        case _, _, True:
            after, reward = (place + 1, 1), constants.RIGHT_STEP_REWARD
        case _:
            after, reward = state, constants.WRONG_STEP_REWARD
    if after[0] == constants.ROBOT_LENGTH:
        reward = constants.GOAL_REWARD
    return after, reward


def robot_model() -> TabularCMDP:
    """Return the robot's CMDP."""
    return tabulate(
        STATES,
        ACTIONS,
        NOISES,
        ("L", "F"),
        step=step,
        noise=lambda _: (0.5, 0.5),
        terminal=lambda state: state[0] == constants.ROBOT_LENGTH,
        start=[(0, 1)],
    )


def _competent(state: tuple[int, int], noise: str) -> str:
    if state[1]:
        return "big-step"
    return ACTIONS[NOISES.index(noise)]


DEMONSTRATORS: dict[str, Rule] = {
    "competent": _competent,
    "incompetent": lambda _, noise: ACTIONS[1 - NOISES.index(noise)],
}
