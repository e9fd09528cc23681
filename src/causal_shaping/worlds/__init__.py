"""The paper's worlds: maps and winds, the walking robot, demonstrators, simulation, environments (extra `worlds`)."""

from causal_shaping.worlds.published import Demonstrator
from causal_shaping.worlds.world import World, list_worlds, load_world

__all__ = ["Demonstrator", "World", "list_worlds", "load_world"]
