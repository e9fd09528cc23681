"""A world: a CMDP with its demonstrators and its horizon, loaded by name or from a map."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_horizon, check_names
from causal_shaping.data.arrays import FloatArray, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import ArgumentError, FileError, UnknownNameError
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.storage import InputFile
from causal_shaping.worlds import constants, grid as grids, robot
from causal_shaping.worlds.grid import GridMap, Wind, grid_model, wind_rule
from causal_shaping.worlds.published import GRID_WORLDS, Demonstrator, GridWorld, tables_of
from causal_shaping.worlds.recording import demonstrator_of, source_of, stream_of
from causal_shaping.worlds.simulate import cumulative, tables_of as compiled_tables, watch
from causal_shaping.worlds.tables import demonstrator

if TYPE_CHECKING:
    from causal_shaping.worlds.continuous import ContinuousWorld

COINS = ("standing", "once")
ContinuousName: TypeAlias = Literal["windy-field"]
CONTINUOUS_WORLDS: tuple[str, ...] = get_args(ContinuousName)
"""Worlds whose states cannot be listed."""


@dataclass(frozen=True, eq=False)
class World:
    """A CMDP of the paper, or your own, with its demonstrators and its horizon.

    Attributes:
        name: the name or path that `load_world` was called with.
        title: the name in figures and reports.
        model: the exact CMDP.
        horizon: the number of steps after which an episode is truncated.
        noises: the names of the hidden noise's values.
        demonstrators: name to table beta[s, u, x], the probability of x in s under noise u.
        grid: the map of a grid world, None for the walking robot.
        coins: the coin rule, "standing" or "once".
    """

    name: str
    title: str
    model: TabularCMDP
    horizon: int
    noises: tuple[str, ...]
    demonstrators: Mapping[str, FloatArray]
    grid: GridMap | None = None
    coins: str = "standing"

    def __post_init__(self) -> None:
        tables = {}
        for name, beta in self.demonstrators.items():
            tables[name] = frozen(self.model.check_demonstrator(beta), np.float64)
        object.__setattr__(self, "demonstrators", tables)

    @property
    def space(self) -> Space:
        """The states and actions."""
        return self.model.space

    @property
    def states(self) -> tuple[Label, ...]:
        """State labels in table order: (x, y), (x, y, coins_left) or (L, F)."""
        return self.space.states

    @property
    def actions(self) -> tuple[Label, ...]:
        """Action names in table order."""
        return self.space.actions

    def state_at(self, first: int, second: int) -> int:
        """Return the position of state (x, y) or (L, F), with all coins left that pay once."""
        label: tuple[int, ...] = (first, second)
        if self.grid is not None and self.coins == "once":
            label += (self.grid.all_left,)
        return self.space.state_position(label)

    def demonstrator(self, name: str | npt.ArrayLike) -> FloatArray:
        """Return a demonstrator's table by its name; a table is checked and returned."""
        if isinstance(name, str):
            table: FloatArray = demonstrator_of(self, name)
            return table
        return self.model.check_demonstrator(name)

    def collect(
        self,
        demonstrator: str | npt.ArrayLike,
        steps: int,
        seed: int = 0,
        source: str | None = None,
    ) -> Logs:
        """Watch a demonstrator for a number of steps and return its logs, without the hidden noise.

        Episodes are truncated at the world's horizon, the last one where the steps end. Equal
        arguments give equal logs. The stream is seeded with the seed and the source's name, so that
        sources of one seed are independent.

        Args:
            demonstrator: a name, or a table beta[s, u, x] of your own, which also needs a source.
            steps: the number of rows.
            seed: any non-negative integer.
            source: the name of the logs' origin; by default the demonstrator's.

        Examples:
            >>> load_world("lavacross-easy").collect("good", steps=1000, seed=0)
            Logs(source='good', 1,000 steps in ... episodes, Space(...))
        """
        source = source_of(demonstrator, source)
        rng = stream_of(steps, seed, source, constants.BYTES_A_STEP)
        beta, tables = cumulative(self.demonstrator(demonstrator)), compiled_tables(self.model)
        rows = watch(rng, steps, self.horizon, tables, beta)
        for column in rows:
            column.flags.writeable = False  # so that `Logs` takes it without a copy
        metadata = {"world": self.name, "coins": self.coins, "horizon": str(self.horizon)}
        metadata |= {"demonstrator": source, "seed": str(seed)}
        if isinstance(demonstrator, str):
            metadata["demonstrator"] = demonstrator
        columns = dict(zip(Logs.COLUMNS, rows, strict=True))
        return Logs(self.space, source, **columns, metadata=metadata)

    def plot(self, ax: Any = None) -> Any:
        """Draw the map with its winds, into `ax` if given, and return the axes (extra `plot`)."""
        from causal_shaping.plot import draw  # the stage to the right: a method people look for

        return draw(self, ax)

    def __repr__(self) -> str:
        sizes = f"{len(self.states)} states, {len(self.actions)} actions, horizon {self.horizon}"
        return f"World({self.name!r}, {sizes}, demonstrators {', '.join(self.demonstrators)})"


def list_worlds(*, continuous: bool = False) -> tuple[str, ...]:
    """Return the names of the paper's worlds, or of those whose states cannot be listed."""
    if continuous:
        return CONTINUOUS_WORLDS
    return ("walking-robot", *GRID_WORLDS)


@overload
def load_world(name: ContinuousName, **options: Any) -> ContinuousWorld: ...
@overload
def load_world(name: str | Path, **options: Any) -> World: ...
def load_world(
    name: str | Path,
    *,
    coins: str = "standing",
    horizon: int | None = None,
    wind: Wind | None = None,
    demonstrators: Mapping[str, Demonstrator] | None = None,
    **options: Any,
) -> World | ContinuousWorld:
    """Return a world of the paper by its name, your own from a map, or one with real coordinates.

    Args:
        name: one of `list_worlds`, for a `ContinuousWorld` one of
            `list_worlds(continuous=True)`, or the path of a map drawn with `#` wall, `.` free, `L`
            lava, `c` coin and `G` goal.
        coins: "standing" coins pay whenever their cell is entered; with "once" they pay once an
            episode, and the state also holds which are left.
        horizon: the length of an episode; by default the world's own, 20 for your own map.
        wind: the direction of the push: probabilities of east, south, west, north and none, or a
            function of the cell (x, y) that returns them. Your own map is calm by default.
        demonstrators: rules by name, beside or in place of the world's own. Your own map always has
            "random".
        options: further arguments of a `ContinuousWorld`, such as noise_sd= of `WindyField`.

    Examples:
        >>> world = load_world("lavacross-easy")
        >>> round(float(world.model.optimum().values @ world.model.start), 4)
        -0.4588
    """
    check_choice("coins", coins, COINS)
    if horizon is not None:
        horizon = check_horizon(horizon)
    if name in CONTINUOUS_WORLDS:
        from causal_shaping.worlds.field import load_continuous_world

        check_choice("coins", coins, ("standing",), " in a world with real coordinates")
        options |= {"horizon": horizon, "wind": wind, "demonstrators": demonstrators}
        return load_continuous_world(str(name), **options)
    check_names(options, f"load_world({str(name)!r})", load_world)
    if name == "walking-robot":
        if coins != "standing" or wind is not None or demonstrators is not None:
            missing = "no coins, no wind and no grid rules"
            raise ArgumentError(f"walking-robot has {missing}: only horizon can be set.")
        return _robot(horizon or constants.ROBOT_HORIZON)

    published: Mapping[Any, GridWorld] = GRID_WORLDS  # a `Path` is always a file
    spec = published.get(name) or GridWorld(Path(name).stem, _read_map(name))
    spec = spec.varied(horizon, wind, demonstrators)
    grid = GridMap.parse(spec.map, str(name))
    model = grid_model(grid, wind_rule(spec.wind), coins)
    tables = tables_of(spec, model.states)
    return World(str(name), spec.title, model, spec.horizon, grids.WINDS, tables, grid, coins)


def _robot(horizon: int) -> World:
    model = robot.robot_model()
    tables = {
        name: demonstrator(rule, model.states, robot.ACTIONS, robot.NOISES)
        for name, rule in robot.DEMONSTRATORS.items()
    }
    return World("walking-robot", "Walking robot", model, horizon, robot.NOISES, tables)


def _read_map(path: str | Path) -> str:
    if not Path(path).is_file():
        worlds = (*list_worlds(), *CONTINUOUS_WORLDS)
        close = difflib.get_close_matches(str(path), worlds, n=1)
        hint = "".join(f" Did you mean {name!r}?" for name in close)
        raise UnknownNameError(
            f"There is no world {str(path)!r}, and no map file of that name.{hint} The worlds are "
            f"{', '.join(worlds)}."
        )
    file = InputFile.at(path)
    if file.size > constants.MOST_MAP_BYTES:
        most = f"more than {constants.MOST_MAP_BYTES:,}"
        raise FileError(f"{path} cannot be read as a map: it has {file.size:,} bytes, {most}.")
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} cannot be read as a map: {error}.") from error
