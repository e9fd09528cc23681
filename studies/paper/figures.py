"""The figures of the study, each a function of the results; saved as PNG, SVG and PDF.

- `all_figures`: what can be drawn from the results, by name, with its caption.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.plot.regret import draw_curve
from causal_shaping.plot.style import finish
from causal_shaping.plot.worlds import draw_world
from causal_shaping.worlds import World, load_world
from studies.pages import Drawing
from studies.paper.plan import BASELINE, FACTORS, METHODS, POTENTIALS, RECOMMENDED, ROBOT, SHAPED
from studies.paper.run import Results
from studies.paper.tables import ablation_regret, variant_title
from studies.paper.theory.picture import draw_theory

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


def all_figures(results: Results, worlds: Mapping[str, World]) -> list[Drawing]:
    """Return every figure that the results have anything for.

    Args:
        results: what was run.
        worlds: the worlds by name, with standing coins.
    """
    return [
        *_world_figures(results, worlds),
        *_regret_figures(results),
        *_ablation_figure(results),
        Drawing("map-walking-robot", "The walking robot with V*.", _draw_robot),
        Drawing("theory", THEORY, partial(draw_theory, {ROBOT: load_world(ROBOT), **worlds})),
    ]


def shown_values(results: Results, world: World) -> dict[str, Any]:
    """Return the value functions that are compared on a world's map, by title: float64 [states]."""
    shown: dict[str, Any] = {"V*": world.model.optimum(world.horizon).values[0]}
    for name in BOUNDS:
        rows = results.potentials_of(world.name, name)
        if rows:
            shown[POTENTIALS[name]] = np.array(rows[0]["values"])
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
        if len(values) > 1:
            caption = f"{world.title}: V*, ceilings and floors of the first step, one colour scale, of the first seed."
            yield Drawing(f"values-{name}", caption, partial(_draw_values, world, values), f"world={name}")
        if len(policies) > 1:
            caption = f"{world.title}: the optimal policy and learned ones, of the first seed."
            yield Drawing(f"policies-{name}", caption, partial(_draw_policies, world, policies), f"world={name}")


def _draw_values(world: World, values: Mapping[str, Any]) -> Figure:
    start = world.model.start > 0  # where episodes can start; their values have one scale on all maps
    limits = (
        min(float(one[start].min()) for one in values.values()),
        max(float(one[start].max()) for one in values.values()),
    )
    return _draw_maps(world, {title: {"values": one, "limits": limits} for title, one in values.items()})


def _draw_policies(world: World, policies: Mapping[str, Any]) -> Figure:
    return _draw_maps(world, {title: {"policy": one} for title, one in policies.items()})


def _draw_maps(world: World, shown: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw maps of a world side by side, by title."""
    figure = Figure(figsize=(3.4 * len(shown), 3.4 * 1.05), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, (title, options) in zip(panels, shown.items(), strict=True):
        draw_world(world, winds=False, title=title, axes=axes, **options)
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
        finish(axes)
    linear.set_xlim(left=0)
    logarithmic.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _ablation_figure(results: Results) -> Iterator[Drawing]:
    if ablation_regret(results, *(levels[0] for levels in FACTORS.values())) is not None:
        caption = (
            "Which part earns what: regret over that of a zero potential under the printed learner, geometric mean "
            "over worlds with its 95% interval, for all combinations of initial value, bonus, clip and potential."
        )
        yield Drawing("ablation", caption, partial(_draw_ablation, results))


def _draw_ablation(results: Results) -> Figure:
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.add_subplot()
    *factors, potentials = FACTORS.values()
    combinations = list(itertools.product(*factors))
    for shift, (potential, colour) in enumerate(zip(potentials, ("#000000", "#d62728", "#1f77b4"), strict=True)):
        for place, levels in enumerate(combinations):
            found = ablation_regret(results, *levels, potential)
            if found is None:
                continue
            middle, low, high = found
            at = place + (shift - 1) * 0.22
            axes.plot([low, high], [at, at], color=colour, linewidth=2)
            label = f"potential: {potential}" if place == 0 else None
            axes.plot([middle], [at], "o", color=colour, markersize=5, label=label)
    names = ["initial {}, bonus {}, clip {}".format(*levels) for levels in combinations]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="regret over that of a zero potential (printed learner), log scale")
    axes.axvline(1, color="#999999", linewidth=0.8)
    finish(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def _draw_robot() -> Figure:
    world = load_world(ROBOT)
    best = world.model.optimum()
    return draw_world(world, values=best.values, policy=best.greedy())
