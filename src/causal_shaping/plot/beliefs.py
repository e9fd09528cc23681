"""What is believed: values with their intervals, and how far each source is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.beliefs import Posterior, Trust
from causal_shaping.errors import ArgumentError
from causal_shaping.plot._panels import CEILING, FLOOR, SOFT, panels, text, tidy
from causal_shaping.plot.by_state import draw_states
from causal_shaping.worlds import World


def draw_posterior(
    belief: Posterior,
    ax: Any = None,
    *,
    kind: str | float = "mean",
    world: World | None = None,
    step: int = 0,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """Draw what is believed of the value of each state; those in which no source acted or that end episodes stay empty.

    Args:
        belief: the posterior.
        ax: see `draw`.
        kind: "mean", or a quantile between 0 and 1.
        world: a world with these states, to draw them on its map.
        step: which step, counted from 0.
        limits: the values at the ends of the colour scale.
    """
    values = (belief.mean if kind == "mean" else belief.quantile(float(kind))).values[step]
    empty = np.bincount(belief.counts.state, minlength=len(values)) == 0
    what = "mean" if kind == "mean" else f"quantile {kind:g}"
    title = f"Believed values at step {step}: {what}"
    return draw_states(belief.space, values, empty | belief.model.terminal, title, ax, world, limits)


def draw_trust(trust: Trust, ax: Any = None, *, source: str | None = None, world: World | None = None) -> Axes:
    """Draw how far each source is trusted, or where one of them is.

    Args:
        trust: of a posterior or a run.
        ax: see `draw`.
        source: draw the probability that this source is right in each state; for counts by step, the least of all.
        world: a world with these states, to draw them on its map.
    """
    if source is not None:
        if source not in trust.sources:
            raise ArgumentError(f"There is no source {source!r}. The sources are {', '.join(trust.sources)}.")
        by_step = trust.by_state[trust.sources.index(source)].reshape(-1, len(trust.space.states))
        values = np.where(np.isnan(by_step), np.inf, by_step).min(axis=0)
        title = f"Probability that {source} is right"
        return draw_states(trust.space, values, np.isinf(values), title, ax, world, (0.0, 1.0))
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
