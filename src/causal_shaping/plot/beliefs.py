"""Figures of beliefs: values with their uncertainty, and how far each source is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from causal_shaping.beliefs import Posterior, Trust
from causal_shaping.plot import style
from causal_shaping.plot.by_state import check_source, draw_states
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
    """Draw what is believed of the value of each state.

    States in which no source acted and terminal states stay empty.

    Args:
        belief: the posterior.
        ax: see `draw`.
        kind: "mean", or a quantile between 0 and 1.
        world: a world with these states, to draw them on its map.
        step: which step, counted from 0.
        limits: the values at the ends of the colour scale.
    """
    if kind == "mean":
        table, name = belief.mean, "mean"
    else:
        table, name = belief.quantile(float(kind)), f"quantile {kind:g}"
    values = table.values[step]
    empty = np.bincount(belief.counts.state, minlength=len(values)) == 0
    empty |= belief.model.terminal
    title = f"Believed values at step {step}: {name}"
    return draw_states(belief.space, values, empty, title, ax, world, limits)


def draw_trust(
    trust: Trust, ax: Any = None, *, source: str | None = None, world: World | None = None
) -> Axes:
    """Draw how far each source is trusted, or where one of them is.

    Args:
        trust: of a posterior or a run.
        ax: see `draw`.
        source: draw the probability that this source is right in each state; for counts by step,
            the smallest of all steps.
        world: a world with these states, to draw them on its map.
    """
    if source is not None:
        check_source(source, trust.sources)
        by_step = trust.by_state[trust.sources.index(source)]
        by_step = by_step.reshape(-1, len(trust.space.states))
        values = np.where(np.isnan(by_step), np.inf, by_step).min(axis=0)
        title = f"Probability that {source} is right"
        return draw_states(trust.space, values, np.isinf(values), title, ax, world, (0.0, 1.0))
    others = {"their mean": trust.together, "nobody": trust.nobody}
    n = len(trust.sources)
    (axes,) = style.panels(ax, size=(6.0, 1.2 + 0.5 * (n + 2)))
    axes.barh(range(n), trust.everywhere, color=style.FLOOR, label="right everywhere")
    axes.barh(
        range(n), trust.in_part, left=trust.everywhere, color=style.CEILING, label="right in part"
    )
    axes.barh([n, n + 1], list(others.values()), color=style.SOFT)
    axes.set_yticks(range(n + 2), [*map(style.text, trust.sources), *others])
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower right")
    return style.finish(axes, title="Which source is trusted", xlim=(0, 1), xlabel="probability")
