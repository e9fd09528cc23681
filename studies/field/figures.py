"""The figures of the field study's page.

- `draw_overview`: how much of the loss is left, and how often logs do harm, by how confounded the logs are.
- `draw_worth`: what logs saved over what was predicted.
- `draw_cases`: every case of the recommended learner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from causal_shaping.plot._panels import INK, SOFT, tidy
from studies.field.demonstrators import CONFOUNDING
from studies.field.metrics import Foretold, compared
from studies.field.plan import METHODS, RECOMMENDED
from studies.field.run import Results
from studies.field.tables import by_confounding, ran

SHOWN: Mapping[str, str] = {
    "posterior": "#2ca02c",
    "naive-model": "#d62728",
    "naive-q": "#e8a33d",
    "replay": "#8c564b",
    "envelopes": "#1f77b4",
}
"""The methods of the overview, and their colours."""

FAMILY_COLOURS: Mapping[str, str] = {"random": "#1f77b4", "problems": "#e8a33d", "sepsis": "#b2452f"}


def draw_overview(results: Results) -> Figure:
    """Draw the loss that is left with logs, and the share of worlds in which logs do harm, by confounding."""
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / len(SHOWN)
    most = 0.0
    for i, (method, colour) in enumerate(SHOWN.items()):
        for place, level in enumerate(CONFOUNDING):
            some = by_confounding(results, method, level)
            if not some:
                continue
            ratios = np.concatenate([one.ratio for one in some])
            x = place - 0.4 + width * (i + 0.5)
            left.bar(
                x, 100 * ratios.mean(), 0.92 * width, color=colour, label=METHODS[method].title if place == 0 else None
            )
            right.bar(x, 100 * (ratios > 1.1).mean(), 0.92 * width, color=colour)
            most = max(most, 100 * float(ratios.mean()))
    left.axhline(100, color=INK, linewidth=1)
    left.annotate("without logs", (3.45, 100), ha="right", va="bottom", fontsize=8, color=INK)
    left.set_ylim(0, min(1.1 * max(most, 110), 400))
    left.set_title("What learning costs with logs, without logs = 100", fontsize=10)
    right.set_title("Worlds in which logs do harm (over 10% more than without), %", fontsize=10)
    right.set_ylim(0, 100)
    for axes in (left, right):
        axes.set_xticks(range(len(CONFOUNDING)), [_words(level) for level in CONFOUNDING], fontsize=9)
        axes.set_xlim(-0.5, len(CONFOUNDING) - 0.5)
        tidy(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _words(level: str) -> str:
    return {
        "none": "nothing is hidden",
        "mild": "hidden causes\nmatter a little",
        "strong": "hidden causes\nmatter much",
        "hostile": "set against\nthe truth",
    }[level]


def draw_worth(found: Foretold) -> Figure:
    """Draw what logs saved over what was predicted from them, a dot for each case."""
    figure = Figure(figsize=(5.6, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for family in dict.fromkeys(found.families):
        here = np.array([one == family for one in found.families])
        style: Any = {"markersize": 4, "alpha": 0.7, "color": FAMILY_COLOURS.get(family, SOFT)}
        axes.plot(100 * found.predicted[here], 100 * found.realised[here], "o", label=family, **style)
    axes.plot([-100, 100], [-100, 100], color=SOFT, linewidth=0.8)
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set(xlim=(-100, 100), ylim=(-100, 100), xlabel="regret saved, predicted from logs (%)", ylabel="saved (%)")
    axes.legend(frameon=False, fontsize=8)
    tidy(axes)
    return figure


def draw_cases(results: Results) -> Figure:
    """Draw the regret of the recommended learner over that without logs, a dot for each case."""
    families = ran(results)
    figure = Figure(figsize=(3.6 * max(len(families), 1), 3.4), layout="constrained")
    panels = figure.subplots(1, max(len(families), 1), squeeze=False, sharey=True)[0]
    rng = np.random.default_rng(0)
    for axes, family in zip(panels, families, strict=False):
        some = compared(results, family, RECOMMENDED)
        if some is None:
            continue
        places = np.array([list(CONFOUNDING).index(case["confounding"]) for case in some.cases])
        shift = rng.uniform(-0.25, 0.25, len(places))
        axes.plot(places + shift, some.ratio, "o", markersize=3, color=SHOWN[RECOMMENDED], alpha=0.6)
        axes.axhline(1, color=INK, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xticks(range(len(CONFOUNDING)), list(CONFOUNDING), fontsize=8)
        axes.set_title(family, fontsize=10)
        tidy(axes)
    panels[0].set_ylabel("regret with logs / without")
    return figure
