"""The page of the demo: four pictures, and under each the command that made it (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.bounds import Ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, SEEDS, STEPS, Trained
from causal_shaping.demo.rover import BESIDE, HORIZON, OPERATORS, SAFE
from causal_shaping.demo.words import agent_rows, ceiling_words, conclusion
from causal_shaping.io.files import write_text
from causal_shaping.learners.seeds import curve_points
from causal_shaping.plot._html import environment, figure_source
from causal_shaping.plot._panels import tidy
from causal_shaping.plot.regret import draw_curve
from causal_shaping.plot.worlds import draw_world
from causal_shaping.worlds import World

SIZE = 4.6, 3.2
"""Inches of a figure: small, so that its letters can be read on a phone."""

STYLES: Mapping[str, dict[str, Any]] = {
    NO_LOGS: {"color": "#8a9099", "linestyle": "--"},
    BELIEVES: {"color": "#e07b00", "linestyle": "-."},
    OURS: {"color": "#123f73", "linestyle": "-"},
}
"""Lines of the agents: told apart by dashes and by lightness, too, as in print without colours."""


def write_page(
    path: Path,
    world: World,
    shares: Mapping[str, float],
    agent: float,
    ceilings: Ceilings,
    sure: Ceilings,
    agents: Mapping[str, Trained],
    commands: Mapping[str, str],
) -> None:
    """Write the page.

    Args:
        path: the file.
        world: the world of the demo.
        shares: how often `right` beside the lava succeeds in the files, see `share_in_logs`.
        agent: how often it does for an agent.
        ceilings: estimated from the files.
        sure: the same with confidence.
        agents: the agents by name.
        commands: the commands "demo", "inspect", "ceilings" and "train".
    """
    truth = world.model.optimum(horizon=HORIZON).values[0]
    order = [ceilings.space.states.index(state) for state in world.states]
    ceiling = ceilings.values[0][order]
    limits = float(min(truth.min(), ceiling.min())), 0.0
    pictures = {
        "map": _map(world),
        "shares": _shares(shares, agent),
        "ceilings": _values(world, ceiling, limits, "Ceilings, from the files"),
        "truth": _values(world, truth, limits, "Optimal values, the truth"),
        "regret": _regret(agents),
    }
    text = (
        environment("causal_shaping.demo")
        .get_template("demo.html")
        .render(
            version=version("causal-shaping"),
            operators=OPERATORS,
            in_logs=f"{shares['all']:.0%}",
            for_agent=f"{agent:.0%}",
            below=int((ceiling < truth - 1e-9).sum()),
            verdict=" ".join(ceiling_words(ceilings, sure)[1:]),
            conclusion=" ".join(conclusion(agents)),
            rows=agent_rows(agents),
            steps=STEPS,
            seeds=SEEDS,
            pictures={name: figure_source(figure) for name, figure in pictures.items()},
            commands=commands,
        )
    )
    write_text(path, text, [".html"])


def _map(world: World) -> Figure:
    """Draw the map, the wind that the operators feel, and where `MOVE` beside the lava ends in it."""
    figure = Figure(figsize=(SIZE[0], 3.9), layout="constrained")
    axes = figure.add_subplot()
    draw_world(world, title="The field and its wind", winds=False, axes=axes)
    assert world.grid is not None
    for x, y in world.grid.starts:
        wind = {"arrowstyle": "-|>", "linewidth": 1.2, "color": "#2f6fb2"}
        axes.annotate("", (x + 0.8, y + 0.9), (x + 0.8, y + 0.4), arrowprops=wind)
    (x, y), (to_x, to_y) = BESIDE, SAFE
    style: dict[str, Any] = {"arrowstyle": "-|>", "linewidth": 2.5, "mutation_scale": 16}
    middle = to_x + 0.5, to_y + 0.45
    axes.annotate("", middle, (x + 0.4, y + 0.45), arrowprops={**style, "color": "#1f2328"})
    axes.annotate("", (middle[0], y + 1.7), middle, arrowprops={**style, "color": "#b2182b"})
    return figure


def _shares(shares: Mapping[str, float], agent: float) -> Figure:
    """Draw how often `right` beside the lava succeeds: bars for who tried it in the logs, and an agent."""
    figure, axes = _figure()
    names = [*(name for name in shares if name != "all"), "all files", "an agent"]
    values = [value for name, value in shares.items() if name != "all"] + [shares["all"], agent]
    colors = ["#9db8d6"] * (len(names) - 2) + ["#123f73", "#b2182b"]
    bars = axes.barh(names, values, color=colors)
    bars[-1].set_hatch("//")
    axes.bar_label(bars, [f"{value:.0%}" for value in values], padding=3)
    axes.set(xlim=(0, 1.12), xticks=[], title="How often right, beside the lava, succeeds")
    axes.invert_yaxis()
    axes.spines["bottom"].set_visible(False)
    return figure


def _values(world: World, values: FloatArray, limits: tuple[float, float], title: str) -> Figure:
    """Draw values as colours and numbers; without a scale beside them, so that numbers stay large."""
    figure = Figure(figsize=(SIZE[0], 3.9), layout="constrained")
    axes = figure.add_subplot()
    draw_world(world, values=values, limits=limits, winds=False, title=title, axes=axes)
    figure.axes[1].remove()  # the scale of colours, which had moved the map to the right
    figure.set_layout_engine(None)
    axes.set(position=(0.02, 0.02, 0.96, 0.9), anchor="C")
    for number in axes.texts:
        number.set_fontsize(9.5)
    return figure


def _regret(agents: Mapping[str, Trained]) -> Figure:
    figure, axes = _figure()
    for name, trained in agents.items():
        draw_curve(axes, curve_points(STEPS), trained.regret, name, **STYLES[name])
    title = f"Regret, mean of {SEEDS} seeds (95% intervals)"
    axes.set(xlabel="steps of the agent", ylabel="regret", title=title)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, STEPS)
    axes.set_xticks(np.linspace(0, STEPS, 5))
    axes.legend(frameon=False)
    return figure


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.title.set_fontsize(11)
    tidy(axes)
    return figure, axes
