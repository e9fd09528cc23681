"""The Gymnasium ids of the worlds."""

from __future__ import annotations

import gymnasium as gym

from causal_shaping.worlds.paper import GRID_WORLDS

NAMESPACE = "causal_shaping"
VERSION = 0
"""Raised by any change that could alter learning."""

ENVIRONMENTS = {
    "walking-robot": f"{NAMESPACE}/WalkingRobot-v{VERSION}",
    **{name: f"{NAMESPACE}/{spec.environment}-v{VERSION}" for name, spec in GRID_WORLDS.items()},
}
"""World name to environment id."""


def register_environments() -> None:
    """Make the worlds known to `gymnasium.make`; MiniGrid is imported only when one is made."""
    for name, identity in ENVIRONMENTS.items():
        kind = "WalkingRobotEnv" if name == "walking-robot" else "WindyGridEnv"
        gym.register(
            identity,
            entry_point=f"causal_shaping.worlds.environments:{kind}",
            kwargs={} if name == "walking-robot" else {"world": name},
        )
