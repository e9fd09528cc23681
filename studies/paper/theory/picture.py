"""The figure of regret bounds over the number of episodes, beside measured regret: `draw_theory`, one panel a world."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from causal_shaping.worlds import World
from studies.paper.theory.events import proven_rule, watch
from studies.paper.theory.examination import usual_potentials
from studies.paper.theory.regret import printed_regret_bound, q_ucb, regret_bound
from studies.paper.theory.shaped import Shaped

SIDE_BY_SIDE = 3
EPISODES = np.geomspace(1.0, 1e18, 73)
MEASURED = 100_000
"""The number of episodes of the runs whose regret is drawn."""

COLOURS = {"zero": "#8c564b", "paper": "#e8a33d", "joint": "#1f77b4", "V*": "#2ca02c"}
GREY = "#7f7f7f"


def draw_theory(worlds: Mapping[str, World]) -> Figure:
    """Draw the regret bounds of each world over episodes, beside measured regret."""
    columns, rows = min(SIDE_BY_SIDE, len(worlds)), -(-len(worlds) // SIDE_BY_SIDE)
    figure = Figure(figsize=(4.6 * columns + 2, 3.4 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, world in zip(panels, worlds.values(), strict=False):
        draw_bounds(axes, world)
    for axes in panels[len(worlds) :]:
        axes.set_visible(False)
    panels[columns - 1].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def draw_bounds(axes: Axes, world: World) -> None:
    """Draw the trivial bound, Q-UCB's, the printed one of the joint ceiling, and the corrected one of each ceiling.

    Then the regret of runs of the corrected learner, and of Q-UCB. All are in units of the world's reward.
    """
    shaped = {name: Shaped(world.model, one, world.horizon) for name, one in usual_potentials(world).items()}
    joint = shaped["joint"]
    moved, scale = joint.nonnegative()
    vanilla = q_ucb(moved)

    def curve(name: str, bound: Any, **style: Any) -> None:
        axes.plot(EPISODES, [bound(k) for k in EPISODES], label=name, **style)

    curve("trivial bound", lambda k: k * joint.worst_regret, color="#000000", linewidth=1.0, linestyle=":")
    of_q_ucb = partial(regret_bound, vanilla, scale=world.horizon)
    curve("bound, Q-UCB", lambda k: of_q_ucb(k).total / scale, color=GREY, linestyle="--")
    curve("bound, printed", lambda k: printed_regret_bound(moved, k).total / scale, color="#d62728")
    ceilings = {name: one for name, one in shaped.items() if one.optimism().holds.all()}
    for name, one in ceilings.items():
        curve(f"bound, {name}", lambda k, one=one: regret_bound(one, k).total, color=COLOURS[name])

    at = np.unique(np.geomspace(1, MEASURED, 60).astype(np.int64))
    runs = [(name, one, None, 1.0, "o", COLOURS[name]) for name, one in list(ceilings.items())[-2:]]
    for name, one, wide, unit, marker, colour in (*runs, ("Q-UCB", vanilla, world.horizon, scale, "x", GREY)):
        rule = proven_rule(one, MEASURED, scale=wide)
        regret = watch(one, MEASURED, learner=rule).regret[at - 1] / unit
        paid = regret > 0  # the others have no place on a logarithmic axis
        if paid.any():
            label = f"regret of a run, {name}"
            axes.plot(at[paid], regret[paid], marker, markersize=2.5, color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel="regret", title=world.name)
    axes.spines[["top", "right"]].set_visible(False)
