"""What is believed: values with their intervals, and how far each source is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.beliefs import Posterior, Trust
from causal_shaping.plot._panels import CEILING, FLOOR, SOFT, panels, text, tidy
from causal_shaping.plot.by_state import draw_states


def draw_posterior(belief: Posterior, ax: Any = None) -> Axes:
    """Draw the mean value of each state at the first step; states in which no source acted, and ends, stay empty."""
    values = belief.mean.values[0]
    empty = np.bincount(belief.counts.state, minlength=len(values)) == 0
    return draw_states(belief.space, values, empty | belief.model.terminal, "Believed values at step 0: mean", ax)


def draw_trust(trust: Trust, ax: Any = None) -> Axes:
    """Draw how far each source is trusted."""
    (axes,) = panels(ax, size=(6.0, 1.2 + 0.5 * (len(trust.sources) + 2)))
    rows = np.arange(len(trust.sources))
    axes.barh(rows, trust.everywhere, color=FLOOR, label="right everywhere")
    axes.barh(rows, trust.in_part, left=trust.everywhere, color=CEILING, label="right in part")
    others = {"their mean": trust.together, "nobody": trust.nobody}
    axes.barh(len(rows) + np.arange(2), list(others.values()), color=SOFT)
    axes.set_yticks(range(len(rows) + 2), [*map(text, trust.sources), *others])
    axes.set(xlim=(0, 1), xlabel="probability", title="Which source is trusted")
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower right")
    tidy(axes)
    return axes
