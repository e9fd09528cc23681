"""What logs are worth, drawn."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.diagnose.diagnostics import FEW_VISITS, actions_taken
from causal_shaping.diagnose.inspection import Inspection


def draw_inspection(found: Inspection) -> Figure:
    """Draw visits per state, how decided each source is, and what was probably never seen."""
    counts = found.counts
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    visits_axes, share_axes, unseen_axes = figure.subplots(1, 3)
    for i, source in enumerate(counts.sources):
        taken = actions_taken(counts, i)
        visits = taken.sum(axis=1)
        left = visits > 0
        visits_axes.plot(np.sort(visits[left])[::-1], drawstyle="steps-mid", label=source)
        share = np.sort(taken.max(axis=1)[left] / visits[left])
        share_axes.plot(share, np.linspace(0, 1, len(share)), drawstyle="steps-post", label=source)
    visits_axes.axhline(FEW_VISITS, color="grey", linewidth=0.8, linestyle=":")
    visits_axes.set(yscale="log", xlabel="states, most visited first", ylabel="visits", title="Visits per state")
    visits_axes.legend(frameon=False)
    share_axes.set(
        xlim=(0, 1.02),
        xlabel="share of the most frequent action",
        ylabel="share of states",
        title="Mass that can be proven",
    )
    unseen = np.sort(found.unseen[~np.isnan(found.unseen)])[::-1]
    unseen_axes.plot(unseen, color="black", clip_on=False)
    unseen_axes.set(
        ylim=(0, max(0.01, 1.05 * unseen.max(initial=0.0))),
        xlabel="states, worst first",
        title="Outcome mass never seen (estimate)",
    )
    for axes in (visits_axes, share_axes, unseen_axes):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
