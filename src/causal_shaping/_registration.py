"""The Gymnasium ids of the worlds; what an environment needs is imported when it is made."""

from __future__ import annotations

import gymnasium as gym

NAMESPACE = "causal_shaping"
VERSION = 0
"""Raised by any change that could alter learning."""

ENVIRONMENTS = {
    world: f"{NAMESPACE}/{name}-v{VERSION}"
    for world, name in {
        "walking-robot": "WalkingRobot",
        "windy-empty": "WindyEmpty",
        "lavacross-easy": "LavaCrossEasy",
        "lavacross-hard": "LavaCrossHard",
        "lavacross-maze": "LavaCrossMaze",
        "lavacross-maze-fewer-coins": "LavaCrossMazeFewerCoins",
    }.items()
}
"""World name to environment id."""

CONTINUOUS_ENVIRONMENTS = {"windy-field": f"{NAMESPACE}/WindyField-v{VERSION}"}
"""The same for worlds whose states cannot be listed."""


def register_environments() -> None:
    """Make the worlds known to `gymnasium.make`."""
    for world, identity in ENVIRONMENTS.items():
        gym.register(
            identity,
            entry_point="causal_shaping.worlds.environments:WorldEnv",
            kwargs={"world": world},
        )
    for world, identity in CONTINUOUS_ENVIRONMENTS.items():
        gym.register(
            identity,
            entry_point="causal_shaping.worlds.continuous_environments:ContinuousEnv",
            kwargs={"world": world},
        )
