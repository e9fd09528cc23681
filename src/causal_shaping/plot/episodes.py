"""Ceilings of whole episodes, drawn over the horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from causal_shaping.bounds.episodes import USEFUL, EpisodeCeilings
from causal_shaping.plot._panels import CEILING, FLOOR, INK, SOFT, draw_panels, tidy


def draw_episodes(found: EpisodeCeilings, ax: Any = None) -> Any:
    """Draw, over the horizon, the ceiling of an episode's mean return and the share of the gap that it closes."""
    return draw_panels(found, ax, PANELS)


def _values(found: EpisodeCeilings, axes: Axes) -> None:
    horizons, best = np.arange(1, found.horizon + 1), found.means.argmin(axis=1)
    chosen = (np.arange(found.horizon), best)
    axes.plot(horizons, found.vacuous_values, color=SOFT, linestyle="--", label="without logs")
    axes.plot(horizons, found.means[chosen], color=CEILING, marker=".", label="ceiling")
    axes.plot(horizons, found.logged[chosen], color=FLOOR, marker=".", label="logged")
    axes.legend(frameon=False)
    axes.set_title("Mean return of an episode", fontsize=10)
    _over_horizons(axes)


def _shares(found: EpisodeCeilings, axes: Axes) -> None:
    axes.plot(np.arange(1, found.horizon + 1), 100 * found.shares, color=INK, marker=".")
    axes.axhline(100 * USEFUL, color=SOFT, linestyle=":")
    axes.set_ylim(0, 100)
    axes.set_title("Gap between no logs and logged that is closed (%)", fontsize=10)
    _over_horizons(axes)


PANELS = (_values, _shares)


def _over_horizons(axes: Axes) -> None:
    axes.set_xlabel("horizon")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
