"""Windy grid worlds: maps as text, the rules of a step, and the tables they make.

Cells are (x, y), x to the right, y down, (0, 0) the upper-left corner. A map is drawn with `#` wall,
`.` free, `L` lava, `c` coin and `G` goal, and closed by walls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from causal_shaping.errors import ArgumentError, MapError
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.models.constants import PROBABILITY_TOLERANCE
from causal_shaping.worlds.tables import Step, tabulate

WALL, FREE, LAVA, COIN, GOAL = "#.LcG"

ACTIONS = ("up", "down", "left", "right", "still")
WINDS = ("east", "south", "west", "north", "none")
"""The hidden noise: the way the air pushes. The paper names a wind by where it comes from."""
CALM = "none"

DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
PUSHES = {"east": "right", "south": "down", "west": "left", "north": "up"}
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}

STEP_REWARD = -0.1
COIN_REWARD = 0.2
LAVA_REWARD = -1.0

MOST_COINS = 12
"""Each coin that pays once doubles the number of states."""

Cell = tuple[int, int]
State = tuple[int, ...]
Wind = Sequence[float] | Callable[[int, int], Sequence[float]]
"""The distribution over `WINDS`: one for all cells, or a function of the cell (x, y) a step starts in."""


@dataclass(frozen=True)
class GridMap:
    r"""A map: rows of text, checked.

    Examples:
        >>> grid = GridMap.parse("####\n#cG#\n####")
        >>> grid.coins, grid[2, 1]
        (((1, 1),), 'G')
    """

    rows: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, name: str = "map") -> GridMap:
        """Read a map; a bad one is an error with its line and column, both counted from 1."""
        rows = text.rstrip().splitlines()
        if not rows:
            raise MapError(f"{name} is empty. Draw a map with {_legend()}.")
        for line, row in enumerate(rows, 1):
            for column, mark in enumerate(row, 1):
                if mark not in (WALL, FREE, LAVA, COIN, GOAL):
                    raise MapError(f"{name}, line {line}, column {column}: {mark!r} is not one of {_legend()}.")
            if len(row) != len(rows[0]):
                raise MapError(
                    f"{name}, line {line}, column {min(len(row), len(rows[0])) + 1}: the line has {len(row)} "
                    f"cells, but the first line has {len(rows[0])}. All lines must be of one length."
                )
        grid = cls(tuple(rows))
        for x, y in grid.cells:
            if x in (0, grid.width - 1) or y in (0, grid.height - 1):
                raise MapError(
                    f"{name}, line {y + 1}, column {x + 1}: {grid[x, y]!r} at the edge. Close the map with "
                    f"{WALL!r} all around."
                )
        if not grid.starts:
            raise MapError(f"{name} has no free cell to start in. Draw at least one {FREE!r} or {COIN!r}.")
        return grid

    def __getitem__(self, cell: Cell) -> str:
        x, y = cell
        return self.rows[y][x]

    @property
    def width(self) -> int:
        """Cells in a row, walls included."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """Rows, walls included."""
        return len(self.rows)

    def where(self, marks: str) -> tuple[Cell, ...]:
        """Return the cells that hold one of the marks, in reading order."""
        return tuple((x, y) for y, row in enumerate(self.rows) for x, mark in enumerate(row) if mark in marks)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells but walls, in reading order."""
        return self.where(FREE + COIN + LAVA + GOAL)

    @cached_property
    def coins(self) -> tuple[Cell, ...]:
        """The coins' cells, in reading order."""
        return self.where(COIN)

    @property
    def all_left(self) -> int:
        """All coins as a sum of 2^i, i their position in `coins`."""
        return (1 << len(self.coins)) - 1

    @cached_property
    def starts(self) -> tuple[Cell, ...]:
        """The cells that an episode can start in."""
        return self.where(FREE + COIN)

    def __str__(self) -> str:
        return "\n".join(self.rows)


def _legend() -> str:
    return f"{WALL!r} wall, {FREE!r} free, {LAVA!r} lava, {COIN!r} coin, {GOAL!r} goal"


def path(action: str, wind: str) -> tuple[str, ...]:
    """Return the moves of a step, one cell each: the action's, then the wind's."""
    push = PUSHES.get(wind)
    if action == "still" or push == OPPOSITE[action]:
        return ()
    return (action,) if push is None else (action, push)


def walk(grid: GridMap, cell: Cell, action: str, wind: str) -> tuple[Cell, list[Cell]]:
    """Return where a step ends and the cells it enters: walls block one move, lava and goal end it."""
    entered = []
    for move in path(action, wind):
        dx, dy = DIRECTIONS[move]
        ahead = (cell[0] + dx, cell[1] + dy)
        if grid[ahead] == WALL:
            continue
        cell = ahead
        entered.append(cell)
        if grid[cell] in (LAVA, GOAL):
            break
    return cell, entered


def grid_model(grid: GridMap, wind: Callable[[int, int], Sequence[float]], coins: str) -> TabularCMDP:
    """Return the CMDP of a map.

    With `coins="standing"` a coin pays whenever its cell is entered and a state is a cell (x, y). With
    `coins="once"` it pays once an episode and a state is (x, y, coins_left), the last a sum of 2^i over
    the coins i, in reading order, that are left; only states in reach of the start are kept.
    """
    once = coins == "once"

    def terminal(state: State) -> bool:
        return grid[state[0], state[1]] in (LAVA, GOAL)

    def step(state: State, action: str, push: str) -> tuple[State, float]:
        x, y, *left = state
        cell, entered = walk(grid, (x, y), action, push)
        reward = STEP_REWARD
        for visited in entered:
            if grid[visited] == LAVA:
                reward += LAVA_REWARD
            if grid[visited] == COIN:
                bit = 1 << grid.coins.index(visited)
                if not once or left[0] & bit:
                    reward += COIN_REWARD
                if once:
                    left = [left[0] & ~bit]
        return (*cell, *left), round(reward, 10)  # two coins pay 0.3, not 0.30000000000000004

    if once and len(grid.coins) > MOST_COINS:
        raise ArgumentError(f"{len(grid.coins)} coins that pay once make too many states; the most is {MOST_COINS}.")
    starts: list[State] = [(*cell, grid.all_left) if once else cell for cell in grid.starts]
    return tabulate(
        _in_reach(starts, step, terminal) if once else grid.cells,
        ACTIONS,
        WINDS,
        ("x", "y", "coins_left") if once else ("x", "y"),
        step=step,
        noise=lambda state: wind(state[0], state[1]),
        terminal=terminal,
        start=starts,
    )


def _in_reach(starts: list[State], step: Step, terminal: Callable[[State], bool]) -> list[State]:
    """Return all states that some wind can lead to: most coins first, then in reading order."""
    found, open_states = set(starts), list(starts)
    while open_states:
        state = open_states.pop()
        if not terminal(state):
            after = {step(state, action, push)[0] for action in ACTIONS for push in WINDS} - found
            found |= after
            open_states += after
    return sorted(found, key=lambda state: (-state[2], state[1], state[0]))


def wind_rule(wind: Wind) -> Callable[[int, int], Sequence[float]]:
    """Return the wind as a function of the cell that checks what it gives."""

    def checked(x: int, y: int) -> Sequence[float]:
        given = wind(x, y) if callable(wind) else wind
        if not isinstance(given, Sequence) or not all(isinstance(p, (int, float)) for p in given):
            raise ArgumentError(f"The wind at cell ({x}, {y}) is {given!r}; it must be {len(WINDS)} probabilities.")
        if len(given) != len(WINDS) or min(given) < 0 or abs(sum(given) - 1) > PROBABILITY_TOLERANCE:
            raise ArgumentError(
                f"The wind at cell ({x}, {y}) is {tuple(given)}. It must be {len(WINDS)} probabilities that add "
                f"up to 1, for {', '.join(WINDS)}."
            )
        return given

    return checked
