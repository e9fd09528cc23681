"""What logs are expected to save, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.learners.worth import COVERED, Worth
from causal_shaping.plot._panels import CEILING, FLOOR, INK, SOFT, draw_panels, tidy


def draw_worth(found: Worth, ax: Any = None) -> Any:
    """Draw regret with and without logs over the simulated worlds, and the episodes that they save in each."""
    return draw_panels(found, ax, PANELS, size=(5.0, 3.8))


def _regret(found: Worth, axes: Axes) -> None:
    steps, without, with_logs = found.curves()
    tails = ((1 - COVERED) / 2, (1 + COVERED) / 2)
    scale = max(float(without[:, -1].mean()), float(with_logs[:, -1].mean())) or 1.0
    for curves, color, name in ((without, SOFT, "without logs"), (with_logs, FLOOR, "with logs")):
        low, high = np.quantile(curves / scale, tails, axis=0)
        axes.plot(steps, curves.mean(axis=0) / scale, color=color, label=name)
        axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="environment steps", ylabel="regret, as a share of the largest mean")
    axes.set_title(f"Regret: mean, and {COVERED:.0%} of the simulated worlds")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    tidy(axes)


def _saved(found: Worth, axes: Axes) -> None:
    colors = {True: CEILING, False: FLOOR}
    for against, name in ((False, "where they mislead, they say nothing"), (True, "where they mislead, the opposite")):
        some = [world for world in found.worlds if world.against == against]
        axes.plot(
            [world.doubt for world in some],
            [world.saved for world in some],
            linestyle="none",
            marker="o",
            color=colors[against],
            label=name,
        )
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="how far the logs mislead: 0 nowhere, 1 everywhere", ylabel="episodes saved")
    axes.set_title(f"Episodes saved, of about {found.episodes:,.0f}")
    axes.set_xlim(-0.03, 1.03)
    axes.legend(frameon=False)
    tidy(axes)


PANELS = (_regret, _saved)
