"""Worlds of the studies with a hidden push, and optimal values of worlds with real coordinates.

- `load`: a world with real coordinates by its name, the package's or one of these.
"""

from __future__ import annotations

from typing import Any

import causal_shaping as cs
from causal_shaping.worlds.continuous import ContinuousWorld
from studies.worlds.cart_pole import CartPole
from studies.worlds.mountain_car import MountainCar

WORLDS: dict[str, Any] = {"cart-pole": CartPole, "mountain-car": MountainCar}


def load(name: str, **options: Any) -> ContinuousWorld:
    """Return a world with real coordinates; options as in its class."""
    world = WORLDS[name](**options) if name in WORLDS else cs.load_world(name, **options)
    assert isinstance(world, ContinuousWorld)
    return world
