"""A world: a CMDP with its demonstrators and its horizon."""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, overload

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_horizon, check_integer, check_memory, check_names
from causal_shaping.data.arrays import FloatArray, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Label, Space
from causal_shaping.errors import ArgumentError, FileError, UnknownNameError
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.storage import InputFile
from causal_shaping.worlds import grid as grids, robot
from causal_shaping.worlds.grid import GridMap, Wind, grid_model, wind_rule
from causal_shaping.worlds.published import GRID_WORLDS, UNIFORM, Demonstrator, table_of
from causal_shaping.worlds.simulate import cumulative, tables_of, watch
from causal_shaping.worlds.tables import demonstrator

if TYPE_CHECKING:
    from causal_shaping.worlds.continuous import ContinuousWorld

COINS = ("standing", "once")
ContinuousName: TypeAlias = Literal["windy-field"]
CONTINUOUS_WORLDS: tuple[str, ...] = get_args(ContinuousName)
"""Worlds whose states cannot be listed."""
BYTES_A_STEP = 120
"""What a logged step takes in memory, about, until it is written."""

DEFAULT_HORIZON = 20
MAX_MAP_BYTES = 1_000_000
"""The horizon of a user's own map unless another is given; that of the paper's LavaCross worlds."""


@dataclass(frozen=True, eq=False)
class World:
    """A CMDP of the paper, or one's own, with its demonstrators and its horizon.

    Attributes:
        name: the name that was given to `load_world`.
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
        if self.space.admissible:
            for beta in self.demonstrators.values():
                self.model.check_demonstrator(beta)

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
        """Return the position of state (x, y) or (L, F); where coins pay once, with all of them left."""
        left = () if self.grid is None or self.coins == "standing" else (self.grid.all_left,)
        return self.space.state_position((first, second, *left))

    def demonstrator(self, name: str | npt.ArrayLike) -> FloatArray:
        """Return a demonstrator's table by its name; a table is checked and returned."""
        if not isinstance(name, str):
            return self.model.check_demonstrator(name)
        if name not in self.demonstrators:
            raise UnknownNameError(f"{self.name} has no demonstrator {name!r}. It has {', '.join(self.demonstrators)}.")
        return self.demonstrators[name]

    def collect(self, demonstrator: str | npt.ArrayLike, steps: int, seed: int = 0, source: str | None = None) -> Logs:
        """Watch a demonstrator for a number of steps and return its logs, without the hidden noise.

        Episodes are truncated at the world's horizon, the last one where the steps end. Equal arguments give equal
        logs. The stream is seeded with the seed and the source's name, so that sources of one seed are independent.

        Args:
            demonstrator: a name, or a table beta[s, u, x] of one's own, which also needs a source.
            steps: the number of rows.
            seed: any non-negative integer.
            source: the name of the logs' origin; by default the demonstrator's.

        Examples:
            >>> load_world("lavacross-easy").collect("good", steps=1000, seed=0)
            Logs(source='good', 1,000 steps in ... episodes, Space(...))
        """
        if source is None:
            if not isinstance(demonstrator, str):
                raise ArgumentError("Logs of a demonstrator of one's own need a name: pass source=.")
            source = demonstrator
        steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
        rng, beta = np.random.default_rng([seed, zlib.crc32(source.encode())]), self.demonstrator(demonstrator)
        check_memory(f"A log of {steps:,} steps", BYTES_A_STEP * steps)
        rows = watch(rng, steps, self.horizon, tables_of(self.model), cumulative(beta))
        for column in rows:
            column.flags.writeable = False  # handed on without a copy
        metadata = {
            "world": self.name,
            "coins": self.coins,
            "horizon": str(self.horizon),
            "demonstrator": demonstrator if isinstance(demonstrator, str) else source,
            "seed": str(seed),
        }
        return Logs(self.space, source, **dict(zip(Logs.COLUMNS, rows, strict=True)), metadata=metadata)

    def plot(self, ax: Any = None) -> Any:
        """Draw the map with its winds, into `ax` if given, and return the axes (extra `plot`)."""
        from causal_shaping.plot import draw  # the stage to the right: a method people look for

        return draw(self, ax)

    def __repr__(self) -> str:
        return (
            f"World({self.name!r}, {len(self.states)} states, {len(self.actions)} actions, horizon "
            f"{self.horizon}, demonstrators {', '.join(self.demonstrators)})"
        )


def list_worlds(*, continuous: bool = False) -> tuple[str, ...]:
    """Return the names of the paper's worlds, or of those whose states cannot be listed."""
    return tuple(CONTINUOUS_WORLDS) if continuous else ("walking-robot", *GRID_WORLDS)


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
    """Return a world of the paper by its name, one's own from a text file with a map, or one with real coordinates.

    Args:
        name: one of `list_worlds`, for a `ContinuousWorld` one of `list_worlds(continuous=True)`, or the path of a map
            drawn with `#` wall, `.` free, `L` lava, `c` coin and `G` goal.
        coins: "standing" coins pay whenever their cell is entered; with "once" they pay once an episode, and the state
            also holds which are left.
        horizon: the length of an episode; by default the world's own, 20 for a map of one's own.
        wind: the direction of the push: probabilities of east, south, west, north and none, or a function of the cell
            (x, y) that returns them. A map of one's own is calm by default.
        demonstrators: rules by name, beside or in place of the world's own. A map of one's own always has "random".
        options: what else a `ContinuousWorld` can be made with, such as map= and noise_sd= of `WindyField`.

    Examples:
        >>> world = load_world("lavacross-easy")
        >>> round(float(world.model.optimum().values @ world.model.start), 4)
        -0.4588
    """
    check_choice("coins", coins, COINS)
    horizon = None if horizon is None else check_horizon(horizon)
    if name in CONTINUOUS_WORLDS:
        from causal_shaping.worlds.field import load_continuous_world

        check_choice("coins", coins, ("standing",), " in a world with real coordinates")
        given = {"horizon": horizon, "wind": wind, "demonstrators": demonstrators} | options
        return load_continuous_world(str(name), **given)
    check_names(options, f"load_world({str(name)!r})", load_world)
    if name == "walking-robot":
        if coins != "standing" or wind is not None or demonstrators is not None:
            raise ArgumentError("walking-robot has no coins, no wind and no grid rules: only horizon can be set.")
        return _robot(horizon or robot.HORIZON)
    if isinstance(name, str) and name in GRID_WORLDS:
        spec = GRID_WORLDS[name]
        title, text, own = spec.title, spec.map, dict(spec.demonstrators)
        horizon, wind = horizon or spec.horizon, spec.wind if wind is None else wind
    else:
        title, text, own = Path(name).stem, _read_map(name), {"random": UNIFORM}
        horizon, wind = horizon or DEFAULT_HORIZON, (0, 0, 0, 0, 1) if wind is None else wind
    grid = GridMap.parse(text, str(name))
    model = grid_model(grid, wind_rule(wind), coins)
    rules = own | dict(demonstrators or {})
    betas = {name: model.check_demonstrator(table_of(name, rule, model.states)) for name, rule in rules.items()}
    tables = {name: frozen(beta, np.float64) for name, beta in betas.items()}
    return World(str(name), title, model, horizon, grids.WINDS, tables, grid, coins)


def _robot(horizon: int) -> World:
    model = robot.robot_model()
    tables = {
        name: frozen(demonstrator(rule, model.states, robot.ACTIONS, robot.NOISES), np.float64)
        for name, rule in robot.DEMONSTRATORS.items()
    }
    return World("walking-robot", "Walking robot", model, horizon, robot.NOISES, tables)


def _read_map(path: str | Path) -> str:
    if not Path(path).is_file():
        close = difflib.get_close_matches(str(path), (*list_worlds(), *CONTINUOUS_WORLDS), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UnknownNameError(
            f"There is no world {str(path)!r}, and no map file of that name.{hint} The worlds are "
            f"{', '.join((*list_worlds(), *CONTINUOUS_WORLDS))}."
        )
    file = InputFile.at(path)
    if file.size > MAX_MAP_BYTES:
        raise FileError(f"{path} cannot be read as a map: it has {file.size:,} bytes, more than {MAX_MAP_BYTES:,}.")
    try:
        with file.open() as opened:
            return opened.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} cannot be read as a map: {error}.") from error
