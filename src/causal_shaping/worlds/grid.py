"""Windy grid worlds: maps as text, the rules of a step, and the tables that they make.

Cells are (x, y), x to the right, y down, (0, 0) the upper-left corner. A map is drawn with `#`
wall, `.` free, `L` lava, `c` coin and `G` goal, and closed by walls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from causal_shaping.errors import ArgumentError, MapError
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.models.constants import PROBABILITY_TOLERANCE
from causal_shaping.worlds.constants import COIN_REWARD, LAVA_REWARD, MOST_COINS, STEP_REWARD
from causal_shaping.worlds.tables import Step, tabulate

WALL, FREE, LAVA, COIN, GOAL = MARKS = "#.LcG"
_LEGEND = "'#' wall, '.' free, 'L' lava, 'c' coin, 'G' goal"

ACTIONS = ("up", "down", "left", "right", "still")
WINDS = ("east", "south", "west", "north", "none")
"""The hidden noise: the way the air pushes. The paper names a wind by where it comes from."""
CALM = "none"

DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
PUSHES = {"east": "right", "south": "down", "west": "left", "north": "up"}
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}

Cell = tuple[int, int]
State = tuple[int, ...]
Wind = Sequence[float] | Callable[[int, int], Sequence[float]]
"""The distribution over `WINDS`: one for all cells, or a function of the cell (x, y) in which a
step starts."""
WindRule = Callable[[int, int], Sequence[float]]


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
            raise MapError(f"{name} is empty. Draw a map with {_LEGEND}.")
        for line, row in enumerate(rows, 1):
            for column, mark in enumerate(row, 1):
                if mark not in MARKS:
                    where = f"{name}, line {line}, column {column}"
                    raise MapError(f"{where}: {mark!r} is not one of {_LEGEND}.")
            width = len(rows[0])
            if len(row) != width:
                raise MapError(
                    f"{name}, line {line}, column {min(len(row), width) + 1}: the line has "
                    f"{len(row)} cells, but the first line has {width}. All lines must be of one "
                    "length."
                )
        grid = cls(tuple(rows))
        for x, y in grid.cells:
            if x in (0, grid.width - 1) or y in (0, grid.height - 1):
                where = f"{name}, line {y + 1}, column {x + 1}: {grid[x, y]!r}"
                raise MapError(f"{where} at the edge. Close the map with {WALL!r} all around.")
        if not grid.starts:
            raise MapError(f"{name} has no free cell to start in. Draw at least one '.' or 'c'.")
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
        cells = ((x, y) for y in range(self.height) for x in range(self.width))
        return tuple(cell for cell in cells if self[cell] in marks)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells but walls, in reading order."""
        return self.where(MARKS.replace(WALL, ""))

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


def walk(grid: GridMap, cell: Cell, action: str, wind: str) -> tuple[Cell, list[Cell]]:
    """Return where a step ends and the cells it enters.

    A wall blocks one move; lava and the goal end the step.
    """
    # The action's move and then the wind's; none for `still` and for a wind straight against.
    push = PUSHES.get(wind)
    moves = [move for move in (action, push) if move is not None]
    if action == "still" or push == OPPOSITE[action]:
        moves = []
    entered: list[Cell] = []
    for move in moves:
        dx, dy = DIRECTIONS[move]
        ahead = (cell[0] + dx, cell[1] + dy)
        if grid[ahead] == WALL:
            continue
        cell = ahead
        entered.append(cell)
        if grid[cell] in (LAVA, GOAL):
            break
    return cell, entered


def grid_model(grid: GridMap, wind: WindRule, coins: str) -> TabularCMDP:
    """Return the CMDP of a map.

    With `coins="standing"` a coin pays whenever its cell is entered and a state is a cell (x, y).
    With `coins="once"` it pays once an episode and a state is (x, y, coins_left), the last a sum of
    2^i over the coins i, in reading order, that are left; only states in reach of the start are
    kept.
    """

    def terminal(state: State) -> bool:
        return grid[state[0], state[1]] in (LAVA, GOAL)

    def step(state: State, action: str, push: str) -> tuple[State, float]:
        x, y, *left = state
        cell, entered = walk(grid, (x, y), action, push)
        reward = STEP_REWARD
        for visited in entered:
            reward += LAVA_REWARD * (grid[visited] == LAVA)
            if grid[visited] == COIN:
                coin = 1 << grid.coins.index(visited)
                # Standing coins always pay; the others while they are left.
                reward += COIN_REWARD * all(others & coin for others in left)
                left = [others & ~coin for others in left]
        return (*cell, *left), round(reward, 10)  # two coins pay 0.3, not 0.30000000000000004

    states: Sequence[State] = grid.cells
    starts: Sequence[State] = grid.starts
    columns = ["x", "y"]
    if coins == "once":
        if len(grid.coins) > MOST_COINS:
            many = f"{len(grid.coins)} coins that pay once make too many states"
            raise ArgumentError(f"{many}; the most is {MOST_COINS}.")
        starts = [(*cell, grid.all_left) for cell in grid.starts]
        states = _in_reach(starts, step, terminal)
        columns.append("coins_left")
    return tabulate(
        states,
        ACTIONS,
        WINDS,
        columns,
        step=step,
        noise=lambda state: wind(state[0], state[1]),
        terminal=terminal,
        start=starts,
    )


def _in_reach(starts: Sequence[State], step: Step, terminal: Callable[..., bool]) -> list[State]:
    """Return all states that some wind can lead to: most coins first, then in reading order."""
    reached, to_visit = set(starts), list(starts)
    while to_visit:
        state = to_visit.pop()
        if not terminal(state):
            after = {step(state, action, push)[0] for action in ACTIONS for push in WINDS}
            to_visit += after - reached
            reached |= after
    return sorted(reached, key=lambda state: (-state[2], state[1], state[0]))


def wind_rule(wind: Wind) -> WindRule:
    """Return the wind as a function of the cell whose answers are checked."""

    def checked(x: int, y: int) -> Sequence[float]:
        shares: Sequence[float] = wind(x, y) if callable(wind) else wind
        where = f"The wind at cell ({x}, {y}) is"
        if not isinstance(shares, Sequence) or not all(isinstance(p, (int, float)) for p in shares):
            raise ArgumentError(f"{where} {shares!r}; it must be {len(WINDS)} probabilities.")
        wrong_sum = abs(sum(shares) - 1) > PROBABILITY_TOLERANCE
        if len(shares) != len(WINDS) or min(shares) < 0 or wrong_sum:
            raise ArgumentError(
                f"{where} {tuple(shares)}. It must be {len(WINDS)} probabilities that add up to "
                f"1, for {', '.join(WINDS)}."
            )
        return shares

    return checked
