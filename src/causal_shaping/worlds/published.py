"""The paper's grid worlds as drawings: maps, winds and demonstrators.

Side by side stand the map, a letter for the wind of each cell where the wind differs, and the rules
of demonstrators. A column `name:winds` holds the rule in these winds, `*` being all other ones, by
the first letters of actions: u d l r s for up, down, left, right and still, + for right or down,
each half the time, and * for any action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.worlds.constants import DEFAULT_HORIZON, RANDOM
from causal_shaping.worlds.grid import ACTIONS, WINDS, Wind
from causal_shaping.worlds.tables import demonstrator

LETTERS: Mapping[str, Any] = {action[0]: action for action in ACTIONS} | {
    "+": ("right", "down"),
    "*": ACTIONS,
}
"""The letters of a drawn rule."""

GridRule = Callable[[int, int, str], str | Sequence[str]]
"""From x, y and the wind to an action, or to several equally likely ones."""


@dataclass(frozen=True)
class Demonstrator:
    """A rule over (x, y, wind), and how often a uniform action is taken in its place."""

    rule: GridRule
    random: float = RANDOM

    def table(self, states: Sequence[Any]) -> FloatArray:
        """Return probabilities in states that begin with x and y: [states, winds, actions]."""

        def decide(state: Any, wind: str) -> str | Sequence[str]:
            return self.rule(state[0], state[1], wind)

        return demonstrator(decide, states, ACTIONS, WINDS, self.random)


UNIFORM = Demonstrator(lambda x, y, wind: ACTIONS, random=1.0)


@dataclass(frozen=True)
class GridWorld:
    """A map with the wind in its cells, the length of an episode, and demonstrators.

    A map of a user's own is calm and has the demonstrator "random", unless they say otherwise.
    """

    title: str
    map: str
    horizon: int = DEFAULT_HORIZON
    wind: Wind = (0, 0, 0, 0, 1)
    demonstrators: Mapping[str, Demonstrator] = field(default_factory=lambda: {"random": UNIFORM})

    @classmethod
    def drawn(cls, title: str, horizon: int, wind: Any, drawing: str, **random: float) -> GridWorld:
        """Return a world that is drawn in columns.

        Args:
            title: the name in figures and reports.
            horizon: the length of an episode.
            wind: the distribution over `WINDS`, or one for each letter of the column `wind`.
            drawing: a line of the columns' names, then one for each row of the map.
            random: how often a demonstrator acts at random, if not the usual share.
        """
        header, *lines = drawing.strip().splitlines()
        columns = dict(zip(header.split(), zip(*map(str.split, lines), strict=True), strict=True))
        rows, letters = columns.pop("map"), columns.pop("wind", None)
        if letters is not None:
            winds, wind = wind, lambda x, y: winds[letters[y][x]]

        rules: dict[str, dict[str, Sequence[str]]] = {}
        for column, drawn in columns.items():
            name, _, blowing = column.partition(":")
            rules.setdefault(name, {}).update(dict.fromkeys(blowing.split(","), drawn))
        demonstrators = {}
        for name, rule in rules.items():
            share = random.get(name, RANDOM)
            demonstrators[name] = Demonstrator(partial(_drawn_rule, rule), share)
        return cls(title, "\n".join(rows), horizon, wind, demonstrators)

    def varied(
        self,
        horizon: int | None,
        wind: Wind | None,
        demonstrators: Mapping[str, Demonstrator] | None,
    ) -> GridWorld:
        """Return the world with what is not None in place of its own; demonstrators are added."""
        options = {"horizon": horizon, "wind": wind}
        changes: Any = {name: value for name, value in options.items() if value is not None}
        rules = {**self.demonstrators, **(demonstrators or {})}
        return replace(self, demonstrators=rules, **changes)


def tables_of(world: GridWorld, states: Sequence[Any]) -> dict[str, FloatArray]:
    """Return the tables of a world's demonstrators, see `Demonstrator.table`."""
    rules: Mapping[str, Any] = world.demonstrators
    for name, who in rules.items():
        if not isinstance(who, Demonstrator):
            hint = "wrap its rule: Demonstrator(rule, random=0.05)."
            raise ArgumentError(f"Demonstrator {name!r} is {who!r}; {hint}")
    return {name: who.table(states) for name, who in rules.items()}


def _drawn_rule(by_wind: Mapping[str, Sequence[str]], x: int, y: int, wind: str) -> Any:
    rows = by_wind.get(wind) or by_wind["*"]
    return LETTERS[rows[y][x]]


_EMPTY = """
map       good:west,north  good:*  bad:west,north  bad:*     random:*
########  ########       ########  ########      ########  ########
#......#  #ssssss#       #+++++d#  #ssssss#      #+++++d#  #******#
#......#  #ssssss#       #+++++d#  #ssssss#      #+++++d#  #******#
#......#  #ssssss#       #+++++d#  #ssssss#      #+++++d#  #******#
#......#  #ssssss#       #+++++d#  #ssssss#      #+++++d#  #******#
#......#  #ssssss#       #+++++d#  #ssssss#      #+++++d#  #******#
#.....G#  #ssssss#       #rrrrrd#  #ssssss#      #rrrrrd#  #******#
########  ########       ########  ########      ########  ########
"""
_EASY = """
map        good:none  good:*     bad:none   bad:*      random:*
#########  #########  #########  #########  #########  #########
#.......#  #ddddddd#  #ddddddd#  #rrrrddd#  #ssssddd#  #*******#
#...L...#  #ddddddd#  #ddddddd#  #uuddddd#  #uuddddd#  #*******#
#...L...#  #ddddddd#  #ddddddd#  #uuddddd#  #uuddddd#  #*******#
#...L...#  #ddddddd#  #ddddddd#  #uuddddd#  #uuddddd#  #*******#
#...L...#  #ddddddd#  #ddddddd#  #uuddddd#  #uuddddd#  #*******#
#...L...#  #ddddddd#  #ddddddd#  #uuddddd#  #uuddddd#  #*******#
#......G#  #rrrrrrr#  #rrrsrrr#  #uurrrrr#  #uurrrrr#  #*******#
#########  #########  #########  #########  #########  #########
"""
_HARD = """
map        good:none  good:*     bad:none   bad:*      random:*
#########  #########  #########  #########  #########  #########
#.LLLLL.#  #ddddddd#  #ddddddd#  #ddddddd#  #ddddddd#  #*******#
#.ccccc.#  #drrrrrd#  #dsssssd#  #rrrrrrd#  #ssssssd#  #*******#
#.LLLLL.#  #ddddddd#  #ddddddd#  #ddddddd#  #ddddddd#  #*******#
#.LLLLL.#  #ddddddd#  #ddddddd#  #ddddddd#  #ddddddd#  #*******#
#.LLLLL.#  #ddddddd#  #ddddddd#  #ddddddd#  #ddddddd#  #*******#
#.LLLLL.#  #ddddddd#  #ddddddd#  #ddddddd#  #ddddddd#  #*******#
#......G#  #rrrrrrr#  #rrrrrrr#  #rrrrrrr#  #rrrrrrr#  #*******#
#########  #########  #########  #########  #########  #########
"""
_MAZE = """
map        wind       better:none,south  better:*  safe:*     bad:none   bad:*
#########  #########  #########        #########  #########  #########  #########
#.L.....#  #abbbbbc#  #d*d***d#        #d*s***s#  #d******#  #d*rrd**#  #s*sss**#
#..cL.L.#  #addbbbc#  #d*d***d#        #d*s***s#  #d******#  #rrd*d**#  #sss*s**#
#.....L.#  #aaabbbc#  #rrd***d#        #rrs***s#  #d******#  #**dll**#  #**sss**#
#.L.LLL.#  #efffffc#  #d*d***d#        #d*s***s#  #d******#  #**d****#  #**s****#
#.Lc....#  #effcffc#  #d*d***d#        #d*s***s#  #d******#  #**rrrrd#  #**sssss#
#.L.LLLc#  #efffffc#  #d*d***d#        #d*s***s#  #d******#  #******d#  #******s#
#......G#  #edddddc#  #rrrrrrr#        #rrrrrrr#  #rrrrrrr#  #*******#  #*******#
#########  #########  #########        #########  #########  #########  #########
"""
_FEWER_COINS = """
map        wind       safe:*     detour:none  detour:*  far-coin:none  far-coin:*
#########  #########  #########  #########  #########  #########  #########
#...L..c#  #abbbbbb#  #d******#  #d******#  #dssssss#  #d***rrr#  #dssssss#
#.LLL.LL#  #abbbbbb#  #d******#  #d******#  #dssssss#  #d***u**#  #dssssss#
#......L#  #abbbbbb#  #d******#  #dld****#  #dssssss#  #*rrrul*#  #sssssss#
#.L.LLLL#  #abbbbbb#  #d******#  #d*d****#  #dssssss#  #d*u****#  #dssssss#
#.L.L...#  #abbbbbb#  #d******#  #d*d*rrd#  #dssssss#  #d*u*rrd#  #dssssss#
#.L.L.Lc#  #abbbbbb#  #d******#  #d*d*u*d#  #dssssss#  #d*u*u*d#  #dssssss#
#......G#  #acccccc#  #rrrrrrr#  #rrrrurr#  #rrrrsrr#  #rrrrrrr#  #rrrrrrr#
#########  #########  #########  #########  #########  #########  #########
"""
_MAZE_WINDS = {
    "a": (0, 0.2, 0, 0, 0.8),
    "b": (0.15, 0.15, 0.15, 0.15, 0.4),
    "c": (0, 0, 0.8, 0, 0.2),
    "d": (0.8, 0, 0, 0, 0.2),
    "e": (0, 0.5, 0, 0, 0.5),
    "f": (0, 0.8, 0.1, 0, 0.1),
}
_FEWER_COINS_WINDS = {
    "a": (0, 0.5, 0, 0, 0.5),
    "b": (0.15, 0.15, 0.15, 0.15, 0.4),
    "c": (0.5, 0, 0, 0, 0.5),
}
# "bad" of the empty world is half "good", with its own random actions, and half uniform.
_HALF = 0.5 * RANDOM + 0.5

_FEWER_TITLE = "LavaCross (maze, fewer coins)"
_EMPTY_WIND = (0.1, 0.1, 0.1, 0.1, 0.6)
_drawn = GridWorld.drawn
GRID_WORLDS: Mapping[str, GridWorld] = MappingProxyType(
    {
        "windy-empty": _drawn("Windy Empty World", 15, _EMPTY_WIND, _EMPTY, bad=_HALF, random=1.0),
        "lavacross-easy": _drawn("LavaCross (easy)", 20, (0, 0.8, 0, 0, 0.2), _EASY, random=1.0),
        "lavacross-hard": _drawn("LavaCross (hard)", 20, (0, 0.7, 0, 0, 0.3), _HARD, random=1.0),
        "lavacross-maze": _drawn("LavaCross (maze)", 20, _MAZE_WINDS, _MAZE),
        "lavacross-maze-fewer-coins": _drawn(_FEWER_TITLE, 20, _FEWER_COINS_WINDS, _FEWER_COINS),
    }
)
"""The paper's grid worlds by name."""
