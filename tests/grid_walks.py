"""The steps of the worlds a second time, over MiniGrid's own objects: an oracle of their tables."""

import numpy as np
from minigrid.core.constants import DIR_TO_VEC
from minigrid.core.world_object import Ball, Goal, Lava

WAYS = {"right": 0, "east": 0, "down": 1, "south": 1, "left": 2, "west": 2, "up": 3, "north": 3}


def windy_step(env, action, noise):
    """Walk the resultant of action and wind cell by cell: the next label, the reward, whether it ended."""
    forces = [DIR_TO_VEC[WAYS[name]] for name in (action, noise) if name in WAYS]
    if action == "still" or not np.any(sum(forces)):
        forces = []
    place, rewards, ended = tuple(env.agent_pos), [-0.1], False
    for force in forces:
        ahead = tuple(int(i) for i in np.add(place, force))
        thing = env.grid.get(*ahead)
        if ended or (thing is not None and not thing.can_overlap()):
            continue
        place = ahead
        if isinstance(thing, Ball):
            rewards.append(0.2)
            if env.world.coins == "once":
                env.grid.set(*place, None)
        elif thing is not None:
            assert isinstance(thing, Lava | Goal)
            rewards.append(-1.0 if isinstance(thing, Lava) else 0.0)
            ended = True
    left = sum(1 << i for i, coin in enumerate(env.world.grid.coins) if isinstance(env.grid.get(*coin), Ball))
    label = place if env.world.coins == "standing" else (*place, left)
    return label, round(sum(rewards), 10), ended


def robot_step(env, action, noise):
    """Take the step by the formulas of the paper's example 1: the next label, the reward, whether it ended."""
    place, stable = env.label()
    x, u = action == "big-step", noise == "big-needed"
    forward = (not stable and x == u) or (stable and not x)
    after = (not x) if stable else not (x ^ u)
    if isinstance(env.grid.get(place + 1 + forward, 1), Goal):
        return (place + forward, int(after)), 1.0, True
    if stable:
        return (place + forward, int(after)), 0.5 if forward else 0.0, False
    return (place + forward, int(after)), float(forward) - float(x ^ u), False
