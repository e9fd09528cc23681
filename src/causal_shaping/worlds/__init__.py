"""The paper's worlds: maps and winds, the walking robot, demonstrators, logs, environments.

Worlds with real coordinates, `continuous`, are loaded when they are asked for.
"""

from causal_shaping.worlds.continuous import ContinuousWorld
from causal_shaping.worlds.published import Demonstrator
from causal_shaping.worlds.world import World, list_worlds, load_world

__all__ = ["ContinuousWorld", "Demonstrator", "World", "list_worlds", "load_world"]
