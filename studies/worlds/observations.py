"""The states of a world of tables as numbers, as agents with networks see them.

- `coordinates`: the names of a vector's coordinates.
- `observations`: what each state looks like.
- `observed_logs`: logs with that in place of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from causal_shaping._checks import check_choice
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.grid import COIN, FREE, GOAL, LAVA, WALL
from causal_shaping.worlds.world import World

KINDS = ("vector", "image")
CODES = {WALL: (2, 5, 0), FREE: (1, 0, 0), LAVA: (9, 0, 0), COIN: (6, 4, 0), GOAL: (8, 1, 0)}
"""MiniGrid's encoding of cells: kind, colour, state."""
AGENT = 10
"""MiniGrid's code of the agent, who is red (0); its third number says whether it stands on a coin, or is stable."""
COLUMN = "observation"
"""The column of images; what follows is `next_observation`."""


def coordinates(world: World) -> tuple[str, ...]:
    """Return the names of a vector's coordinates: x, y, and where coins pay once, one for each coin; or L, F."""
    if world.grid is None:
        return ("L", "F")
    coins = () if world.coins == "standing" else world.grid.coins
    return ("x", "y", *(f"coin_{x}_{y}" for x, y in coins))


def observations(world: World, kind: str) -> npt.NDArray[Any]:
    """Return what each state looks like to an agent that does not know its label: [states, *shape].

    Args:
        world: a world of tables.
        kind: "vector", float32: x and y, and where coins pay once, a 0 or 1 for each coin that is left (L and F of the
            walking robot); "image", uint8 [width, height, 3]: MiniGrid's encoding of the complete grid.
    """
    check_choice("observation", kind, KINDS)
    if kind == "vector":
        labels = np.array(world.states, dtype=np.int64)
        coins = labels[:, 2:] >> np.arange(len(coordinates(world)) - 2) & 1
        return np.concatenate([labels[:, :2], coins], axis=1).astype(np.float32)
    return _images(world)


def _images(world: World) -> npt.NDArray[np.uint8]:
    """Return MiniGrid's encoding of the grid in each state, as `WorldEnv.image` gives it."""
    labels = np.array(world.states, dtype=np.int64)
    numbers = np.arange(len(labels))
    if world.grid is None:
        width = int(labels[:, 0].max()) + 3
        rows: tuple[str, ...] = (WALL * width, WALL + FREE * (width - 3) + GOAL + WALL, WALL * width)
        agent, mark = labels[:, 0] + 1, labels[:, 1]
        cells = agent, np.ones_like(agent)
    else:
        rows, cells = world.grid.rows, (labels[:, 0], labels[:, 1])
    images = np.repeat(
        np.array([[CODES[sign] for sign in row] for row in rows], np.uint8).swapaxes(0, 1)[None], len(labels), 0
    )
    if world.grid is not None:
        if world.coins == "once":
            for i, (x, y) in enumerate(world.grid.coins):
                images[labels[:, 2] >> i & 1 == 0, x, y] = CODES[FREE]
        mark = images[numbers, *cells, 0] == CODES[COIN][0]
    images[numbers, *cells] = np.stack([np.full_like(numbers, AGENT), np.zeros_like(numbers), mark], axis=1)
    return images


def observed_logs(world: World, logs: Logs, kind: str) -> pa.Table:
    """Return logs of a world with observations in place of labels, as its environment would show them.

    Args:
        world: a world of tables.
        logs: what `World.collect` returned.
        kind: as in `observations`. Coordinates of vectors are columns of their own; images are lists in the columns
            `observation` and `next_observation`.
    """
    if logs.space != world.space:
        raise ArgumentError(f"These logs of {logs.source!r} have other states or actions than {world.name}.")
    table = observations(world, kind)

    def columns(states: npt.NDArray[Any], prefix: str = "") -> dict[str, pa.Array]:
        unknown = states == UNKNOWN
        seen = table[np.where(unknown, 0, states)]
        if kind == "vector":
            names = enumerate(coordinates(world))
            return {prefix + name: pa.array(np.ascontiguousarray(seen[:, i]), mask=unknown) for i, name in names}
        lists = pa.array(seen.ravel())
        for size in seen.shape[:0:-1]:
            lists = pa.FixedSizeListArray.from_arrays(lists, size)
        return {prefix + COLUMN: lists if not unknown.any() else pa.array(lists.to_pylist(), lists.type, mask=unknown)}

    return pa.table(
        {
            "source": pa.array([logs.source] * len(logs)),
            "episode": logs.episode,
            "step": logs.step,
            **columns(logs.state),
            "action": pa.array(world.actions).take(pa.array(logs.action)),
            "reward": logs.reward,
            **columns(logs.next_state, "next_"),
            "terminated": logs.terminated,
            "truncated": logs.truncated,
        }
    )
