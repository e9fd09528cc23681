"""The demo's world and logs: three operators steer a rover past lava, in a wind that they feel.

The map and the wind are those of lavacross-easy: in 80% of the steps the wind blows to the south,
and otherwise the air is calm. Operators who go right beside the lava only in calm air look
safe in the logs; an agent that does not feel the wind is blown into the lava.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causal_shaping.data.columns import logs_table
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.logs import LogTable, open_logs
from causal_shaping.storage import write_table
from causal_shaping.worlds import Demonstrator, World, load_world
from causal_shaping.worlds.grid import CALM, GOAL

WORLD, HORIZON, REWARD_MAX = "lavacross-easy", 20, -0.1
ROWS = 20_000
"""Rows of each file: about 2,500 trips."""

BESIDE, MOVE, SAFE = (3, 1), "right", (4, 1)
"""The cell beside the lava, the move that tempts there, and the cell that it should reach."""


class Operator(NamedTuple):
    """An operator: the demonstrator of the world who acts like this, and a habit in words."""

    demonstrator: str
    habit: str


OPERATORS = {
    "ana": Operator("good", "drives down to the bottom row and crosses there"),
    "ben": Operator("bad", "crosses at the top, and waits beside the lava until the air is calm"),
    "carla": Operator("carla", "goes right in calm air, and lets the wind carry her down"),
}
"""Who drives. All feel the wind; each slips, pressing a button at random, in 5% of the steps."""


def _carla(x: int, y: int, wind: str) -> str:
    if y == 7 or (x, y) == (4, 1):
        return "right"
    if x == 7 or (x == 3 and y > 1):  # above the goal, or beside the lava
        return "down"
    return {CALM: "right"}.get(wind, "down")


def rover_world() -> World:
    """Return lavacross-easy with the operators among its demonstrators."""
    return load_world(WORLD, demonstrators={"carla": Demonstrator(_carla)})


def write_logs(world: World, paths: Mapping[str, Path], seed: int) -> None:
    """Write the CSV file of each operator."""
    for name, path in paths.items():
        logs = world.collect(OPERATORS[name].demonstrator, ROWS, seed, name)
        write_table(path, _rows(world, logs))


def _rows(world: World, logs: Logs) -> pa.Table:
    """Return logs with the columns that people have: moves and how a trip ended are words."""
    assert world.grid is not None
    marks = np.array([world.grid[cell] for cell in map(tuple, np.array(world.states))])
    ends = np.where(marks == GOAL, "goal", "lava")[logs.next_state]
    outcome = np.where(logs.terminated, ends, "driving")
    names = ["trip", "second", "x", "y", "move", "score", "next_x", "next_y", "outcome", "time_up"]
    rows = logs_table(logs).drop_columns(["source"]).rename_columns(names)
    return rows.set_column(names.index("outcome"), "outcome", [outcome])


COLUMNS: Mapping[str, Any] = {
    "episode": "trip",
    "step": "second",
    "state": ["x", "y"],
    "action": "move",
    "reward": "score",
    "terminated": {"outcome": ["goal", "lava"]},
    "truncated": "time_up",
}
"""The columns of the files as arguments of `open_logs`, which finds `next_x` by its name."""

OPTIONS = (
    "--episode trip --step second --state x,y --action move --reward score "
    "--terminated outcome=goal,lava --truncated time_up"
)
"""The same as options of the command line."""


def open_files(paths: Mapping[str, Path]) -> list[LogTable]:
    """Return the files as logs, each a source of its own."""
    return [open_logs(path, source=name, **COLUMNS) for name, path in paths.items()]


def shares_in_logs(counts: Counts) -> tuple[dict[str, float], float]:
    """Return how often `MOVE` beside the lava reached the safe cell, by source and for all."""
    space = counts.space
    tried = counts.state == space.state_position(BESIDE)
    tried &= counts.action == space.actions.index(MOVE)
    reached = tried & (counts.next_state == space.state_position(SAFE))
    n = len(counts.sources)
    successes = np.bincount(counts.source, counts.n * reached, n).tolist()
    tries = np.bincount(counts.source, counts.n * tried, n).tolist()
    by_source = zip(counts.sources, successes, tries, strict=True)
    shares = {name: won / n for name, won, n in by_source if n}
    return shares, sum(successes) / sum(tries)


def share_for_agent(world: World) -> float:
    """Return how often the same move reaches that cell for an agent that feels no wind."""
    state, action = world.state_at(*BESIDE), world.actions.index(MOVE)
    reached = world.model.next_state[state, action] == world.state_at(*SAFE)
    return float(world.model.noise[state][reached].sum())
