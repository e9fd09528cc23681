"""The figures of the study, each a function of the results; saved as PNG, SVG and PDF.

- `all_figures`: what can be drawn from the results, by name, with its caption.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.learners.intervals import bootstrap_interval, mean
from causal_shaping.plot._panels import tidy
from causal_shaping.plot.regret import draw_curve
from causal_shaping.plot.worlds import draw_world
from causal_shaping.worlds import World, load_world
from studies.pages import Drawing
from studies.paper.dots import table_figures
from studies.paper.plan import BASELINE, BCQ_THRESHOLDS, FACTORS, METHODS, RECOMMENDED, ROBOT, SHAPED
from studies.paper.run import Results
from studies.paper.tables import (
    AIM,
    INFORMED,
    Table,
    ablation_regret,
    potential_title,
    relative_regret,
    variant_title,
)
from studies.paper.theory_tables import draw_theory

CURVES: Mapping[str, str] = {
    "no-shaping": "#7f7f7f",
    "zero": "#000000",
    "causal-bound": "#d62728",
    "avg": "#e8a33d",
    "shaping-bcq": "#8c564b",
    "bcq": "#c49c94",
    "oracle-clip-zero": "#bcbd22",
    "joint-plain": "#1f77b4",
    "posterior-no-logs": "#98df8a",
    "posterior": "#2ca02c",
    "posterior-confounded": "#9467bd",
}
"""The methods whose regret is drawn, and their colours."""

BOUNDS = ("joint", "floor", "paper")
THEORY = (
    "Bounds of the regret over the number of episodes, standing coins: the printed theorem for the joint ceiling, "
    "moved to rewards from 0 to 1; Q-UCB's; the corrected one for each ceiling; and the regret of runs of the "
    "corrected learner. A bound above the dotted line is vacuous."
)
POLICIES = ("causal-bound", "avg", SHAPED, RECOMMENDED)


def all_figures(results: Results, worlds: Mapping[str, World], tables: Mapping[str, Table]) -> list[Drawing]:
    """Return every figure that the results have anything for.

    Args:
        results: what was run.
        worlds: the worlds by name, with standing coins.
        tables: those that small figures are drawn of.
    """
    return [
        *(
            Drawing(name, caption, partial(draw, tables[name].records), tables[name].only)
            for name, caption, draw in table_figures(tables)
        ),
        *_world_figures(results, worlds),
        *_regret_figures(results),
        *_summary_figures(results),
        Drawing("map-walking-robot", "The walking robot with V*.", _draw_robot),
        Drawing("theory", THEORY, partial(draw_theory, {ROBOT: load_world(ROBOT), **worlds})),
    ]


def shown_values(results: Results, world: World, alone: bool = False) -> dict[str, Any]:
    """Return the value functions that are compared on a world's map, by title: float64 [states].

    Args:
        results: what was run.
        world: with standing coins.
        alone: V* and what each source alone could prove, instead of what all of them do.
    """
    shown: dict[str, Any] = {"V*": world.model.optimum(world.horizon).values[0]}
    for name in [f"alone-{source}" for source in world.demonstrators] if alone else BOUNDS:
        rows = results.potentials_of(world.name, name)
        if rows:
            shown[potential_title(name)] = np.array(rows[0]["values"])
    return shown


def shown_policies(results: Results, world: World) -> dict[str, Any]:
    """Return the policies that are compared on a world's map, by title: int [states]."""
    shown: dict[str, Any] = {"optimal": world.model.optimum().greedy()}
    for name in POLICIES:
        rows = results.runs_of(world.name, name)
        if rows:
            shown[METHODS[name].title] = np.array(rows[0]["policy"], dtype=np.int32)
    return shown


def _world_figures(results: Results, worlds: Mapping[str, World]) -> Iterator[Drawing]:
    for name, world in worlds.items():
        yield Drawing(f"map-{name}", f"{world.title}: map and winds.", partial(draw_world, world))
        values, policies = shown_values(results, world), shown_policies(results, world)
        sources = shown_values(results, world, alone=True)
        if len(values) > 1:
            caption = f"{world.title}: V*, ceilings and floors of the first step, one colour scale, of the first seed."
            yield Drawing(f"values-{name}", caption, partial(_draw_values, world, values), f"world={name}")
        if len(sources) > 1:
            caption = f"{world.title}: V* and the ceilings that each source alone could prove, of the first seed."
            yield Drawing(f"sources-{name}", caption, partial(_draw_values, world, sources), f"world={name}")
        if len(policies) > 1:
            caption = f"{world.title}: the optimal policy and learned ones, of the first seed."
            yield Drawing(f"policies-{name}", caption, partial(_draw_policies, world, policies), f"world={name}")


def _panels(count: int, world: World) -> tuple[Figure, list[Axes]]:
    assert world.grid is not None
    size = 3.4
    figure = Figure(figsize=(size * count, size * 1.05), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def _draw_values(world: World, values: Mapping[str, Any]) -> Figure:
    figure, places = _panels(len(values), world)
    low, high = value_limits(world, values)
    for axes, (title, shown) in zip(places, values.items(), strict=True):
        draw_world(world, values=shown, winds=False, limits=(low, high), title=title, axes=axes)
    return figure


def value_limits(world: World, values: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest value over the states in which episodes start: one scale for all maps."""
    start = world.model.start > 0
    return min(float(shown[start].min()) for shown in values.values()), max(
        float(shown[start].max()) for shown in values.values()
    )


def _draw_policies(world: World, policies: Mapping[str, Any]) -> Figure:
    figure, places = _panels(len(policies), world)
    for axes, (title, policy) in zip(places, policies.items(), strict=True):
        draw_world(world, policy=policy, winds=False, title=title, axes=axes)
    return figure


def _regret_figures(results: Results) -> Iterator[Drawing]:
    for world, coins in results.variants:
        methods = [name for name in CURVES if results.runs_of(world, name, coins)]
        if methods:
            title = variant_title(world, coins, results).replace("\n", ", ")
            caption = (
                f"{title}: regret, mean over seeds with its 95% interval; linear, cut above what a zero potential "
                "comes to, and logarithmic."
            )
            yield Drawing(
                f"regret-{world}-{coins}",
                caption,
                partial(_draw_regret, results, world, coins, methods),
                f"world={world}",
            )


def _draw_regret(results: Results, world: str, coins: str, methods: Sequence[str]) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    linear, logarithmic = figure.subplots(1, 2)
    for name in methods:
        steps, curves = results.curves(world, name, coins)
        for axes in (linear, logarithmic):
            draw_curve(axes, steps, curves, METHODS[name].title, color=CURVES[name], linewidth=1.4)
    ends = [results.values(world, name, "regret", coins).mean() for name in (BASELINE, SHAPED) if name in methods]
    linear.set_ylim(0, 1.6 * max(ends) if ends else None)
    logarithmic.set(yscale="log", xscale="log")
    for axes in (linear, logarithmic):
        axes.set(xlabel="environment steps", ylabel="regret")
        tidy(axes)
    linear.set_xlim(left=0)
    logarithmic.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _summary_figures(results: Results) -> Iterator[Drawing]:
    compared = [variant for variant in results.variants if results.runs_of(variant[0], BASELINE, variant[1])]
    if any(results.runs_of(world, method, coins) for world, coins in compared for method in INFORMED):
        caption = (
            "Regret with logs over regret with a zero potential, 95% intervals; the dashed line is the aim for "
            f"ceilings, {AIM}."
        )
        yield Drawing("relative-regret", caption, partial(_draw_relative, results))
    if ablation_regret(results, *(levels[0] for levels in FACTORS.values())) is not None:
        caption = (
            "Which part earns what: regret over that of a zero potential under the printed learner, geometric mean "
            "over worlds with its 95% interval, for all combinations of initial value, bonus, clip and potential."
        )
        yield Drawing("ablation", caption, partial(_draw_ablation, results))
    if any(row["training"] for row in results.potentials):
        yield Drawing("bcq-training", "BCQ: TD loss during training, every seed.", partial(_draw_training, results))


def _draw_relative(results: Results) -> Figure:
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.add_subplot()
    labels, place = [], 0.0
    colours = {name: f"C{number}" for number, name in enumerate(INFORMED)}
    named: set[str] = set()
    for world, coins in results.variants:
        methods = [name for name in INFORMED if results.runs_of(world, name, coins)]
        if not methods or not results.runs_of(world, BASELINE, coins):
            continue
        labels.append((place + (len(methods) - 1) / 2, variant_title(world, coins, results)))
        for name in methods:
            middle, low, high = relative_regret(results, world, coins, name, BASELINE)
            label = METHODS[name].title if METHODS[name].title not in named else None
            named.add(METHODS[name].title)
            axes.plot([low, high], [place, place], color=colours[name], linewidth=2)
            axes.plot([middle], [place], "o", color=colours[name], markersize=6, label=label)
            place += 1
        place += 1.2
    axes.axvline(AIM, color="#d62728", linewidth=1, linestyle="--")
    axes.axvline(1, color="#000000", linewidth=0.8)
    axes.set_yticks([position for position, _ in labels], [label for _, label in labels])
    axes.invert_yaxis()
    axes.set_xlabel("regret over that of a zero potential (printed learner)")
    axes.set_xlim(left=0)
    tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_ablation(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.add_subplot()
    combinations = [
        (initial, bonus, clip)
        for initial in FACTORS["initial"]
        for bonus in FACTORS["bonus"]
        for clip in FACTORS["clip"]
    ]
    colours = ("#000000", "#d62728", "#1f77b4")
    for shift, (potential, colour) in enumerate(zip(FACTORS["potential"], colours, strict=True)):
        for place, levels in enumerate(combinations):
            found = ablation_regret(results, *levels, potential)
            if found is None:
                continue
            middle, low, high = np.exp(bootstrap_interval(mean, np.log(np.maximum(found, 1e-12))))
            at = place + (shift - 1) * 0.22
            axes.plot([low, high], [at, at], color=colour, linewidth=2)
            label = f"potential: {potential}" if place == 0 else None
            axes.plot([middle], [at], "o", color=colour, markersize=5, label=label)
    names = [f"initial {initial}, bonus {bonus}, clip {clip}" for initial, bonus, clip in combinations]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="regret over that of a zero potential (printed learner), log scale")
    axes.axvline(1, color="#999999", linewidth=0.8)
    tidy(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_training(results: Results) -> Figure:
    names = [name for name in BCQ_THRESHOLDS if any(row["name"] == name for row in results.potentials)]
    figure = Figure(figsize=(3.6 * len(names), 3.2), layout="constrained")
    colours = [f"C{place}" for place in range(10)]
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for place, (world, coins) in enumerate(results.variants):
            for number, row in enumerate(results.potentials_of(world, name, coins)):
                steps, error, _ = np.array(row["training"]).T
                axes.plot(steps, error, color=colours[place % 10], linewidth=0.8, label=world if number == 0 else None)
        axes.set(yscale="log", title=potential_title(name), xlabel="training steps", ylabel="TD loss")
        tidy(axes)
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_robot() -> Figure:
    world = load_world(ROBOT)
    best = world.model.optimum()
    return draw_world(world, values=best.values, policy=best.greedy())
