"""The page of the demo: four pictures, and under each the command that made it (extra `plot`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.bounds import Ceilings
from causal_shaping.demo.agents import BELIEVES, NO_LOGS, OURS, SEEDS, STEPS, Trained
from causal_shaping.demo.rover import BESIDE, HORIZON, OPERATORS, SAFE
from causal_shaping.demo.words import agent_rows
from causal_shaping.learners.seeds import curve_points
from causal_shaping.plot import style
from causal_shaping.plot._html import environment, figure_source
from causal_shaping.plot.regret import draw_curve
from causal_shaping.plot.worlds import draw_world
from causal_shaping.storage import write_text
from causal_shaping.worlds import World

LINES = {NO_LOGS: style.WITHOUT, BELIEVES: style.BELIEVING, OURS: style.OURS}
"""How each agent's line looks."""

LARGE, FLAT = (4.6, 3.9), (4.6, 3.2)
"""Inches of maps and of other pictures: few, so that letters are large on a phone."""


def write_page(
    path: Path, world: World, ceilings: Ceilings, agents: Mapping[str, Trained], **facts: Any
) -> None:
    """Write the page.

    Args:
        path: the file.
        world: the world of the demo.
        ceilings: estimated from the logs.
        agents: the agents by name.
        facts: what else the template names: `shares`, `in_logs`, `for_agent`, `verdict`,
            `conclusion`, `commands`.
    """
    truth = world.model.optimum(horizon=HORIZON).values[0]
    ceiling = ceilings.values[0][[ceilings.space.states.index(state) for state in world.states]]
    limits = float(min(truth.min(), ceiling.min())), 0.0
    shares = facts["shares"], facts["in_logs"], facts["for_agent"]
    pictures = {
        "map": _picture(LARGE, draw_field, world),
        "shares": _picture(FLAT, draw_shares, *shares),
        "ceilings": _picture(LARGE, draw_values, world, ceiling, limits, "Ceilings, from the logs"),
        "truth": _picture(LARGE, draw_values, world, truth, limits, "Optimal values, the truth"),
        "regret": _picture(FLAT, draw_regret, agents),
    }
    facts |= {"operators": OPERATORS, "rows": agent_rows(agents), "steps": STEPS, "seeds": SEEDS}
    facts |= {"below": int((ceiling < truth - 1e-9).sum()), "version": version("causal-shaping")}
    template = environment("causal_shaping.demo").get_template("demo.html")
    write_text(path, template.render(pictures=pictures, **facts), [".html"])


def _picture(size: tuple[float, float], drawing: Callable[..., None], *given: Any) -> str:
    """Return a drawing as an image inside the page."""
    figure = Figure(figsize=size, layout="constrained")
    drawing(figure.add_subplot(), *given)
    return figure_source(figure)


def draw_field(axes: Axes, world: World) -> None:
    """Draw the map, the wind that the operators feel, and where the move beside the lava ends."""
    title = "Wind (blue) in 80% of the steps:\n'right' (black) then ends in the lava (red)"
    draw_world(world, title=title, winds=False, axes=axes)
    assert world.grid is not None
    for x, y in world.grid.starts:
        wind = {"arrowstyle": "-|>", "linewidth": 1.2, "color": style.WIND}
        axes.annotate("", (x + 0.8, y + 0.9), (x + 0.8, y + 0.4), arrowprops=wind)
    (x, y), (to_x, to_y) = BESIDE, SAFE
    move: dict[str, Any] = {"arrowstyle": "-|>", "linewidth": 2.5, "mutation_scale": 16}
    middle = to_x + 0.5, to_y + 0.45
    axes.annotate("", middle, (x + 0.4, y + 0.45), arrowprops={**move, "color": style.INK})
    axes.annotate("", (middle[0], y + 1.7), middle, arrowprops={**move, "color": style.FAILURE})


def draw_shares(axes: Axes, shares: Mapping[str, float], in_logs: float, for_agent: float) -> None:
    """Draw how often `right` beside the lava succeeds: each operator, all logs, and an agent."""
    shown = {f"{name}'s log": shares.get(name) for name in OPERATORS}
    shown |= {"all logs": in_logs, "an agent": for_agent}
    notes = {name: f"{share:.0%}" for name, share in shown.items() if share is not None}
    colors = [style.PALE] * len(OPERATORS) + [style.OURS["color"], style.FAILURE]
    bars = axes.barh(list(shown), [share or 0.0 for share in shown.values()], color=colors)
    bars[-1].set_hatch("//")
    axes.bar_label(bars, [notes.get(name, "never tried it") for name in shown], padding=3)
    axes.set(xlim=(0, 1.12), xticks=[])
    axes.set_title("How often 'right' succeeds beside the lava", fontsize=11)
    axes.invert_yaxis()
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def draw_values(
    axes: Axes, world: World, values: Any, limits: tuple[float, float], title: str
) -> None:
    """Draw values as colours and large numbers."""
    look: Any = {"limits": limits, "scale": False, "winds": False, "title": title}
    draw_world(world, values=values, axes=axes, **look)
    for number in axes.texts:
        number.set_fontsize(9.5)


def draw_regret(axes: Axes, agents: Mapping[str, Trained]) -> None:
    """Draw the regret of the agents over their steps, with intervals."""
    for name, trained in agents.items():
        draw_curve(axes, curve_points(STEPS), trained.regret, name, **LINES[name])
    axes.set(xlabel="agent steps", ylabel="regret", xlim=(0, STEPS))
    axes.set_xticks(np.linspace(0, STEPS, 5))
    axes.set_title(f"Regret, mean of {SEEDS} seeds (95% intervals)", fontsize=11)
    axes.set_ylim(bottom=0)
    style.finish(axes, True)
