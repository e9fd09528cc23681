"""A figure of regret bounds over the number of episodes, beside measured regret (extra `paper`).

- `bound_curves`: the numbers; `draw_bounds`: the figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from causal_shaping._extras import needs_extra
from causal_shaping.worlds import World
from studies.paper.theory.events import proven_rule, watch
from studies.paper.theory.examination import usual_potentials
from studies.paper.theory.regret import printed_regret_bound, q_ucb, regret_bound
from studies.paper.theory.shaped import Shaped

with needs_extra("Figures of the paper", "studies"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST, MOST = 1.0, 1e18
MEASURED = 100_000
"""The number of episodes of the runs whose regret is drawn."""

TRIVIAL = "trivial bound"
STYLES: Mapping[str, Mapping[str, Any]] = {
    TRIVIAL: {"color": "#000000", "linewidth": 1.0, "linestyle": ":"},
    "printed": {"color": "#d62728"},
    "Q-UCB": {"color": "#7f7f7f", "linestyle": "--"},
    "zero": {"color": "#8c564b"},
    "paper": {"color": "#e8a33d"},
    "joint": {"color": "#1f77b4"},
    "V*": {"color": "#2ca02c"},
}


def bound_curves(world: World, potentials: Mapping[str, Any] | None = None, points: int = 73) -> dict[str, Any]:
    """Return numbers of episodes and each bound at these, in units of the world's reward.

    "Q-UCB" is the gap-dependent bound of Q-UCB. Each ceiling has the corrected bound, under its own name; a potential
    that is not a ceiling has none. "printed" is the printed bound for the joint ceiling, or for the last potential.
    """
    given = usual_potentials(world) if potentials is None else potentials
    episodes = np.geomspace(FEWEST, MOST, points)
    problems = {name: Shaped(world.model, potential, world.horizon) for name, potential in given.items()}
    last = problems.get("joint", list(problems.values())[-1])
    moved, scale = last.nonnegative()
    vanilla = q_ucb(moved)
    curves: dict[str, Any] = {
        "episodes": episodes,
        TRIVIAL: episodes * last.worst_regret,
        "Q-UCB": np.array([regret_bound(vanilla, k, scale=world.horizon).unscaled(scale).total for k in episodes]),
    }
    if last.optimism().holds.all():
        curves["printed"] = np.array([printed_regret_bound(moved, k).unscaled(scale).total for k in episodes])
    for name, shaped in problems.items():
        if shaped.optimism().holds.all():
            curves[name] = np.array([regret_bound(shaped, k).total for k in episodes])
    return curves


def draw_bounds(
    world: World,
    potentials: Mapping[str, Any] | None = None,
    *,
    axes: Axes | None = None,
    measured: int = MEASURED,
    seed: int = 0,
) -> Figure:
    """Draw bounds on the regret over the number of episodes, and the regret of runs of the corrected learner.

    Args:
        world: the world.
        potentials: potentials by name; `usual_potentials` by default.
        axes: the axes to draw into; a new figure by default.
        measured: the number of episodes of a run.
        seed: the seed of the runs.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained") if axes is None else axes.figure
    assert isinstance(figure, Figure)
    axes = figure.add_subplot() if axes is None else axes
    given = usual_potentials(world) if potentials is None else potentials
    curves = bound_curves(world, given)
    for name, curve in curves.items():
        if name != "episodes":
            label = name if name == TRIVIAL else f"bound, {name}"
            axes.plot(curves["episodes"], curve, label=label, **STYLES.get(name, {}))
    shaped = {name: Shaped(world.model, given[name], world.horizon) for name in given if name in curves}
    runs = {name: (one, proven_rule(one, measured), 1.0) for name, one in list(shaped.items())[-2:]}
    moved, scale = Shaped(world.model, None, world.horizon).nonnegative()
    runs["Q-UCB"] = (q_ucb(moved), proven_rule(moved, measured, scale=world.horizon), scale)
    at = np.unique(np.geomspace(1, measured, 60).astype(np.int64))
    for name, (problem, rule, unit) in runs.items():
        regret = watch(problem, measured, seed=seed, learner=rule).regret[at - 1] / unit
        colour, marker = STYLES.get(name, {}).get("color"), "x" if name == "Q-UCB" else "o"
        paid = regret > 0  # the others have no place on a logarithmic axis
        if not paid.any():
            continue
        axes.plot(at[paid], regret[paid], marker, markersize=2.5, color=colour, label=f"regret of a run, {name}")
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel="regret", title=world.name)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
