"""The states of a world of tables as numbers, as agents with networks see them.

- `coordinates`: the names of a vector's coordinates.
- `observations`: what each state looks like.
- `observed_logs`: logs with that in place of labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from causal_shaping.worlds.world import World

KINDS = ("vector", "one-hot", "image")
COLUMN = "observation"
"""The column of one-hot vectors and images; what follows is `next_observation`."""


def coordinates(world: World) -> tuple[str, ...]:
    """Return the names of a vector's coordinates: x, y, and where coins pay once, one for each coin; or L, F."""
    if world.grid is None:
        return ("L", "F")
    coins = () if world.coins == "standing" else world.grid.coins
    return ("x", "y", *(f"coin_{x}_{y}" for x, y in coins))


def observations(world: World, kind: str) -> npt.NDArray[Any]:
    """Return what each state looks like; see `World.observations`."""
    check_choice("observation", kind, KINDS)
    if kind == "one-hot":
        return np.eye(len(world.states), dtype=np.float32)
    if kind == "vector":
        labels = np.array(world.states, dtype=np.int64)
        coins = labels[:, 2:] >> np.arange(len(coordinates(world)) - 2) & 1
        return np.concatenate([labels[:, :2], coins], axis=1).astype(np.float32)
    from causal_shaping.worlds.environments import environment_of

    env = environment_of(world)
    images = []
    for label in world.states:
        env.place(label)
        images.append(env.image())
    return np.stack(images)


def observed_logs(world: World, logs: Logs, kind: str) -> pa.Table:
    """Return logs with observations in place of labels; see `World.observed_logs`."""
    import pyarrow as pa

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
