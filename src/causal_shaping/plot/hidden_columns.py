"""What leaving out a logged column would amount to, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.diagnose.hidden_columns import HiddenColumns
from causal_shaping.plot._panels import CEILING, INK, SOFT, draw_panels, text, tidy


def draw_hidden_columns(found: HiddenColumns, ax: Any = None) -> Any:
    """Draw a bar per column and source: its confounding, and a tick where chance alone would be."""
    return draw_panels(found, ax, (_bars,), size=(6.4, max(1.6, 1.1 + 0.28 * len(found))))


def _bars(found: HiddenColumns, axes: Axes) -> None:
    for place, item in enumerate(found):
        if np.isnan(item.confounding):
            axes.text(1.0, place, " cannot be measured", va="center", fontsize=8, color=SOFT)
            continue
        color = CEILING if item.distinguishable else SOFT
        axes.barh(place, item.confounding - 1, left=1.0, height=0.6, color=color)
        axes.plot([item.by_chance] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=1.2)
    several = len({item.source for item in found}) > 1
    names = [text(f"{item.column}, {item.source}" if several else item.column) for item in found]
    axes.set_yticks(range(len(found)), names, fontsize=8)
    axes.set_ylim(len(found) - 0.5, -0.5)
    most = max([2.0, *(max(item.confounding, item.by_chance) for item in found if not np.isnan(item.confounding))])
    axes.set(xscale="log", xlim=(1.0, most * 1.1), xlabel="confounding (grey: not above 1; line: by chance alone)")
    ticks = [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000) if tick <= most]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title("If a column had been hidden")
    tidy(axes)
