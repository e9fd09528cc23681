"""The paper's worlds: maps and winds, the walking robot, demonstrators, simulation, environments, pictures."""

from causal_shaping.worlds.paper import Demonstrator
from causal_shaping.worlds.registration import register_environments
from causal_shaping.worlds.world import World, list_worlds, load_world

register_environments()

__all__ = ["Demonstrator", "World", "list_worlds", "load_world"]
