"""Tables as small figures: a dot with its interval for each row, a panel per world.

- `table_figures`: those that stand in the report in place of a table, by the table's name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.plot._panels import CEILING, FLOOR, INK, SOFT, tidy
from studies.paper.plan import METHODS, RECOMMENDED, SHAPED
from studies.paper.run import Row
from studies.paper.tables import Table, potential_title

COLUMNS = 5
"""Panels in a row."""

SHOWN = (
    "no-shaping",
    "zero",
    "causal-bound",
    "avg",
    "bcq",
    "shaping-bcq",
    "joint",
    SHAPED,
    "posterior-no-logs",
    RECOMMENDED,
)
"""The methods that small figures compare; the tables hold all."""

COINS = {"standing": FLOOR, "once": "#2ca02c"}


def table_figures(tables: Mapping[str, Table]) -> Iterator[tuple[str, str, Callable[[Sequence[Row]], Figure]]]:
    """Yield name, caption and drawing function of the records, for each table that has a small figure."""
    for name, caption, draw in (
        ("optimal-ratios", "The share of states with the first optimal action; diamonds are printed.", _by_world),
        ("optimal-share", "The share of states with a truly optimal action.", partial(_by_world, shown=SHOWN)),
        ("overall", "All worlds together: regret over that of a zero potential, interquartile mean.", _overall),
        (
            "improvement",
            "The chance of less regret than with a zero potential; at the line it is even.",
            partial(_by_world, shown=SHOWN, line=0.5),
        ),
        (
            "confounding",
            "Distance of ceilings to V* if no source were more confounded than Gamma. A cross: the ceiling is false, "
            "it lies below V* somewhere. Gammas that the sources contradict are left out.",
            _confounding,
        ),
        (
            "potentials",
            "Distance of each potential to V*; in red those that lie below V* (a floor: above) in some state and step.",
            _distances,
        ),
        ("sources", "Distance to V* of the ceilings that each source alone could prove; red as above.", _distances),
    ):
        if name in tables:
            yield name, f"{caption} 95% intervals over seeds." if name != "confounding" else caption, draw


def _grid(panels: int, rows: int, height: float = 0.23) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel per world, in rows of `COLUMNS`."""
    across = min(COLUMNS, panels)
    down = math.ceil(panels / across)
    figure = Figure(figsize=(2.6 + 1.9 * across, down * (0.8 + height * rows)), layout="constrained")
    places = list(figure.subplots(down, across, squeeze=False, sharey=True, sharex=True).flat)
    for unused in places[panels:]:
        unused.set_axis_off()
    return figure, places[:panels]


def _dot(axes: Axes, place: float, row: Row, color: str, keys: tuple[str, str, str] = ("mean", "low", "high")) -> None:
    middle, low, high = (row[key] for key in keys)
    axes.plot([low, high], [place, place], color=color, linewidth=2)
    axes.plot([middle], [place], "o", color=color, markersize=4.5, clip_on=False)


def _named(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", color="#eceff2", linewidth=0.8)
    axes.set_axisbelow(True)
    tidy(axes)


def _by_world(records: Sequence[Row], shown: Sequence[str] = (), line: float | None = None) -> Figure:
    """Draw methods by world: a dot for each coin rule, and a diamond for what is printed.

    Args:
        records: of a table.
        shown: the methods to draw; all if none of them is there.
        line: where to draw one.
    """
    held = list(dict.fromkeys(row["method"] for row in records))
    methods = [name for name in shown if name in held] or held
    worlds = list(dict.fromkeys(row["world"] for row in records))
    figure, places = _grid(len(worlds), len(methods))
    for axes, world in zip(places, worlds, strict=True):
        for row in records:
            if row["world"] == world and row["method"] in methods:
                shift = 0.2 if row["coins"] == "once" else 0.0
                place = methods.index(row["method"]) + shift
                _dot(axes, place, row, COINS[row["coins"]])
                if row.get("printed") is not None:
                    style: Any = {"markerfacecolor": "white", "markeredgecolor": CEILING, "markersize": 5}
                    axes.plot([row["printed"]], [place], "D", **style)
        if line is not None:
            axes.axvline(line, color=SOFT, linewidth=0.8)
        axes.set_title(world, fontsize=9)
        axes.set_xlim(-0.03, 1.03)
        _named(axes, [METHODS[name].title for name in methods])
    return _with_legend(figure, places[-1], {row["coins"] for row in records})


def _with_legend(figure: Figure, axes: Axes, rules: set[str]) -> Figure:
    if len(rules) > 1:
        for rule in sorted(rules, reverse=True):
            axes.plot([], [], "o", color=COINS[rule], markersize=4.5, label=f"coins {rule}")
        figure.legend(loc="outside lower right", ncols=2, frameon=False, fontsize=8)
    return figure


def _overall(records: Sequence[Row]) -> Figure:
    methods = list(dict.fromkeys(row["method"] for row in records))
    figure, (axes,) = _grid(1, len(methods))
    figure.set_size_inches(8, figure.get_figheight())
    names = ("iqm", "iqm_low", "iqm_high")
    # A regret of 0 has no place on a logarithmic axis: it stands at its left end.
    least = min((row[name] for row in records for name in names if row[name] > 0), default=1.0) / 2
    for row in records:
        place = methods.index(row["method"]) + (0.25 if row["coins"] == "once" else 0.0)
        _dot(axes, place, {**row, **{name: max(row[name], least) for name in names}}, COINS[row["coins"]], names)
    axes.axvline(1, color=SOFT, linewidth=0.8)
    none = any(row[name] == 0 for row in records for name in names)
    axes.set(xscale="log", xlabel=f"regret over that of a zero potential, log scale{' (left end: 0)' if none else ''}")
    _named(axes, [METHODS[name].title for name in methods])
    return _with_legend(figure, axes, {row["coins"] for row in records})


def _confounding(records: Sequence[Row]) -> Figure:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    gammas = sorted({row["gamma"] for row in records})
    for number, (world, rows) in enumerate(itertools.groupby(records, key=lambda row: row["world"])):
        found = [row for row in rows if not row["contradiction"]]
        places = [gammas.index(row["gamma"]) for row in found]
        axes.plot(places, [row["mean_distance"] for row in found], "o-", color=f"C{number}", markersize=4, label=world)
        false = [(place, row) for place, row in zip(places, found, strict=True) if row["violations"]]
        style: Any = {"color": INK, "markersize": 9, "markeredgewidth": 1.3}
        axes.plot([place for place, _ in false], [row["mean_distance"] for _, row in false], "x", **style)
    axes.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    axes.set(xlabel="Gamma of all sources", ylabel="mean distance to V*")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    tidy(axes)
    return figure


def _distances(records: Sequence[Row]) -> Figure:
    variants = list(dict.fromkeys((row["world"], row["coins"]) for row in records))
    names = list(dict.fromkeys(row["potential"] for row in records))
    figure, places = _grid(len(variants), len(names))
    for axes, variant in zip(places, variants, strict=True):
        for row in records:
            if (row["world"], row["coins"]) == variant:
                broken = bool(row["violations_all_steps"])
                keys = ("mean_distance", "low", "high")
                _dot(axes, names.index(row["potential"]), row, CEILING if broken else INK, keys)
        axes.set_title("\n".join((variant[0], f"coins {variant[1]}")), fontsize=8)
        _named(axes, [potential_title(name) for name in names])
    places[0].set_xlim(left=0)  # of all, once all is drawn
    return figure
