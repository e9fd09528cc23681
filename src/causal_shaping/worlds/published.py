"""The paper's grid worlds as data: maps, winds, demonstrators.

A demonstrator's rule gives, for a cell and the wind that blows there, one action or several equally likely
ones. Winds are distributions over `grid.WINDS`: east, south, west, north, none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.grid import ACTIONS, CALM, WINDS, Cell, Wind
from causal_shaping.worlds.tables import demonstrator

RANDOM = 0.05
"""How often a demonstrator acts at random instead of by its rule."""

GridRule = Callable[[int, int, str], str | Sequence[str]]


@dataclass(frozen=True)
class Demonstrator:
    """A rule over (x, y, wind), and how often a uniform action is taken in its place."""

    rule: GridRule
    random: float = RANDOM


def table_of(name: str, given: Demonstrator, states: Sequence[Any]) -> FloatArray:
    """Return what a demonstrator does in states that begin with x and y: [states, winds, actions]."""
    if not isinstance(given, Demonstrator):
        raise ArgumentError(f"Demonstrator {name!r} is {given!r}; wrap its rule: Demonstrator(rule, random=0.05).")
    return demonstrator(lambda state, wind: given.rule(state[0], state[1], wind), states, ACTIONS, WINDS, given.random)


@dataclass(frozen=True)
class GridWorld:
    """A grid world of the paper."""

    title: str
    horizon: int
    map: str
    wind: Wind
    demonstrators: Mapping[str, Demonstrator]


UNIFORM = Demonstrator(lambda x, y, wind: ACTIONS, random=1.0)


def _route(text: str) -> Mapping[Cell, str]:
    """Read a route: `x,y:move` in a row, moves by their first letter."""
    moves = {action[0]: action for action in ACTIONS if action != "still"}
    steps = (part.split(":") for part in text.split())
    return {(int(cell.split(",")[0]), int(cell.split(",")[1])): moves[move] for cell, move in steps}


def _empty_good(x: int, y: int, wind: str) -> str | Sequence[str]:
    if wind in ("west", "north"):
        return "still"
    if x == 6:
        return "down"
    if y == 6:
        return "right"
    return ("right", "down")


def _easy_good(x: int, y: int, wind: str) -> str:
    if y < 7:
        return "down"
    return "still" if x == 4 and wind != CALM else "right"


def _easy_bad(x: int, y: int, wind: str) -> str:
    if y == 1 and x <= 4:
        return "right" if wind == CALM else "still"
    if (x, y) == (3, 7):
        return "right"
    if x < 3:
        return "up"
    return "down" if y < 7 else "right"


def _along_the_coins(first: int) -> GridRule:
    def rule(x: int, y: int, wind: str) -> str:
        if y == 2 and first <= x <= 6:
            return "right" if wind == CALM else "still"
        return "right" if y == 7 else "down"

    return rule


ROUTE_M = _route(
    "1,1:d 1,2:r 2,2:r 3,2:d 3,1:r 4,1:r 5,1:d 5,2:d 5,3:l 4,3:l 3,3:d 3,4:d 3,5:r 4,5:r 5,5:r 6,5:r 7,5:d 7,6:d"
)


def _maze_wind(x: int, y: int) -> Sequence[float]:
    if (x == 1 and y <= 3) or (x, y) in ((2, 3), (3, 3)):
        return (0, 0.2, 0, 0, 0.8)
    if x == 1:
        return (0, 0.5, 0, 0, 0.5)
    if x == 7 or (x, y) == (4, 5):
        return (0, 0, 0.8, 0, 0.2)
    if 4 <= y <= 6:
        return (0, 0.8, 0.1, 0, 0.1)
    if y == 7 or (x, y) in ((2, 2), (3, 2)):
        return (0.8, 0, 0, 0, 0.2)
    return (0.15, 0.15, 0.15, 0.15, 0.4)


def _maze_better(x: int, y: int, wind: str) -> str | Sequence[str]:
    if (x, y) in ((1, 3), (2, 3)):
        return "right"
    if x in (3, 7) and y < 7:
        return "down" if wind in (CALM, "south") else "still"
    return _safe(x, y, wind)


def _safe(x: int, y: int, wind: str) -> str | Sequence[str]:
    if x == 1 and y <= 6:
        return "down"
    return "right" if y == 7 else ACTIONS


def _maze_bad(x: int, y: int, wind: str) -> str | Sequence[str]:
    if (x, y) in ROUTE_M:
        return ROUTE_M[x, y] if wind == CALM else "still"
    return ACTIONS


ROUTE_D = _route("5,7:u 5,6:u 5,5:r 6,5:r 7,5:d 7,6:d 2,3:l 3,3:d 3,4:d 3,5:d 3,6:d")
ROUTE_F = _route(
    "5,6:u 5,5:r 6,5:r 7,5:d 7,6:d 2,3:r 3,3:r 4,3:r 5,3:u 5,2:u 5,1:r 6,1:r 7,1:r 6,3:l 3,4:u 3,5:u 3,6:u"
)


def _fewer_coins_wind(x: int, y: int) -> Sequence[float]:
    if x == 1:
        return (0, 0.5, 0, 0, 0.5)
    if y == 7:
        return (0.5, 0, 0, 0, 0.5)
    return (0.15, 0.15, 0.15, 0.15, 0.4)


def _detour(x: int, y: int, wind: str) -> str | Sequence[str]:
    if x == 1 and y <= 6:
        return "down"
    if y == 7 and x != 5:
        return "right"
    return "still" if wind != CALM else ROUTE_D.get((x, y), ACTIONS)


def _far_coin(x: int, y: int, wind: str) -> str | Sequence[str]:
    if x == 1 and y <= 6 and y != 3:
        return "down"
    if y == 7:
        return "right"
    return "still" if wind != CALM else ROUTE_F.get((x, y), ACTIONS)


GRID_WORLDS: Mapping[str, GridWorld] = MappingProxyType(
    {
        "windy-empty": GridWorld(
            title="Windy Empty World",
            horizon=15,
            map="""\
########
#......#
#......#
#......#
#......#
#......#
#.....G#
########""",
            wind=(0.1, 0.1, 0.1, 0.1, 0.6),
            demonstrators={
                "good": Demonstrator(_empty_good),
                # half good, with its own random actions, half uniform
                "bad": Demonstrator(_empty_good, random=0.5 * RANDOM + 0.5),
                "random": UNIFORM,
            },
        ),
        "lavacross-easy": GridWorld(
            title="LavaCross (easy)",
            horizon=20,
            map="""\
#########
#.......#
#...L...#
#...L...#
#...L...#
#...L...#
#...L...#
#......G#
#########""",
            wind=(0, 0.8, 0, 0, 0.2),
            demonstrators={"good": Demonstrator(_easy_good), "bad": Demonstrator(_easy_bad), "random": UNIFORM},
        ),
        "lavacross-hard": GridWorld(
            title="LavaCross (hard)",
            horizon=20,
            map="""\
#########
#.LLLLL.#
#.ccccc.#
#.LLLLL.#
#.LLLLL.#
#.LLLLL.#
#.LLLLL.#
#......G#
#########""",
            wind=(0, 0.7, 0, 0, 0.3),
            demonstrators={
                "good": Demonstrator(_along_the_coins(2)),
                "bad": Demonstrator(_along_the_coins(1)),
                "random": UNIFORM,
            },
        ),
        "lavacross-maze": GridWorld(
            title="LavaCross (maze)",
            horizon=20,
            map="""\
#########
#.L.....#
#..cL.L.#
#.....L.#
#.L.LLL.#
#.Lc....#
#.L.LLLc#
#......G#
#########""",
            wind=_maze_wind,
            demonstrators={
                "better": Demonstrator(_maze_better),
                "safe": Demonstrator(_safe),
                "bad": Demonstrator(_maze_bad),
            },
        ),
        "lavacross-maze-fewer-coins": GridWorld(
            title="LavaCross (maze, fewer coins)",
            horizon=20,
            map="""\
#########
#...L..c#
#.LLL.LL#
#......L#
#.L.LLLL#
#.L.L...#
#.L.L.Lc#
#......G#
#########""",
            wind=_fewer_coins_wind,
            demonstrators={
                "safe": Demonstrator(_safe),
                "detour": Demonstrator(_detour),
                "far-coin": Demonstrator(_far_coin),
            },
        ),
    }
)
