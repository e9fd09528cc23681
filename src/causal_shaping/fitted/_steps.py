"""Backwards over the steps: values with one more step left, from those with one less.

- `sweep`: one pass; after each step it can be kept, so that a kill loses no more than the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._progress import Progress
from causal_shaping.data.arrays import FloatArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted._forest import Partition
from causal_shaping.fitted._kernels import NOTHING, Rule
from causal_shaping.fitted.settings import Settings

CHUNK = 100_000
"""So many observations are backed up at a time."""

MOST_SWEEPS = 2000
"""An infinite-horizon pass ends after so many sweeps, settled or not."""

Kept = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Swept:
    """What a pass found, at some observations; on the side of the bound.

    Attributes:
        values: float64 [steps left, observations], with 1, 2, ... steps left; the last holds for all that are more.
        q_values: float64 [observations, actions], of the first step; NaN for an action that is not admissible.
        targets: float64 [rows], what the last step was fitted to.
        worst: how far masses of different sources added to more than 1 where it was worst.
    """

    values: FloatArray
    q_values: FloatArray
    targets: FloatArray
    worst: float


def rule_of(settings: Settings, sources: tuple[str, ...], left: float) -> Rule:
    """Return what a backup with so many steps left assumes."""
    return Rule(
        confounding=settings.gammas(sources),
        by_action=settings.support == "observed-action",
        restricted=settings.support != "any",
        vacuous=settings.vacuous(left),
        rarest_action=settings.rarest_action,
        least_rows=settings.least_rows,
    )


def sweep(
    model: Partition,
    rows: Transitions,
    settings: Settings,
    some: LongArray,
    guess: bool,
    *,
    begun: Kept | None = None,
    keep: Callable[[dict[str, npt.NDArray[Any]]], None] = lambda kept: None,
    progress: Progress,
    what: str,
) -> Swept:
    """Go backwards over the steps, or until values settle.

    Args:
        model: what is fitted at each step.
        rows: the logs.
        settings: what the bound is computed with.
        some: the observations at which values are kept.
        guess: best guesses in place of ceilings.
        begun: what `keep` was last given by an interrupted pass.
        keep: called after each step.
        progress: called at each step.
        what: what to call the work there.
    """
    steps = settings.horizon or MOST_SWEEPS
    # One backup never falls if the values behind it rise. So where the first one lowers all values, each does, and only
    # errors of a fit could raise any: the maximum over actions is biased upwards by noise.
    falling = settings.horizon is None or settings.vacuous(1) <= 0
    start = 0.0 if settings.horizon else settings.vacuous(math.inf)
    values = np.full(len(rows.observations), start)
    found: list[FloatArray] = []
    left, worst, done = 0, 0.0, False
    q_values, targets = np.empty((len(some), len(rows.actions))), np.zeros(len(rows))
    if begun is not None:
        values, found, q_values = begun["values"].copy(), list(begun["found"]), begun["q_values"].copy()
        left, worst, done = int(begun["left"]), float(begun["worst"]), bool(begun["done"])
        if done:  # the scores of held-out rows need the last fit
            targets = begun["targets"]
            model.fit(targets, begun["before"])
    while left < steps and not done:
        progress(left, steps, what)
        left += 1
        before = values
        after = np.where(rows.terminated | (rows.next_state < 0), 0.0, before[rows.next_state])
        targets = settings.side * np.asarray(rows.reward) + settings.discount * after
        gains_from = np.zeros_like(before) if settings.coarse else before
        model.fit(targets, gains_from)
        rule = rule_of(settings, rows.sources, left if settings.horizon else math.inf)
        values, own, excess = _backed_up(model, rows, rule, settings.side, some, guess)
        q_values, worst = own, max(worst, excess)
        if falling and not guess:
            values = np.minimum(values, before)
        if settings.horizon or not found:
            found.append(values[some])
        else:
            found[0] = values[some]
        change = np.abs(values - before)[some].max()
        done = left == steps or bool(change <= settings.settled * np.ptp(values[some]))
        kept = {"values": values, "found": np.array(found), "q_values": q_values, "left": np.array(left)}
        kept |= {"worst": np.array(worst), "done": np.array(done)}
        keep(kept | ({"targets": targets, "before": gains_from} if done else {}))
    progress(steps, steps, what)
    return Swept(np.array(found), q_values, targets, worst)


def _backed_up(
    model: Partition, rows: Transitions, rule: Rule, side: float, some: LongArray, guess: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Return the values of all observations, those of all actions at some of them, and how far masses exceed 1."""
    values = np.empty(len(rows.observations))
    q_values, worst = np.empty((len(some), len(rows.actions))), 0.0
    everything = np.ones((1, len(rows.actions)), dtype=bool)
    for begin in range(0, len(values), CHUNK):
        chunk = slice(begin, min(begin + CHUNK, len(values)))
        mask = everything if rows.mask is None else np.asarray(rows.mask[chunk])
        q, excess = model.q_values(chunk, rule, mask, guess)
        exists = q > NOTHING
        if side > 0:
            values[chunk] = np.where(exists, q, -np.inf).max(axis=1)
        else:
            values[chunk] = np.where(exists, q, np.inf).min(axis=1)
        own = np.flatnonzero((some >= begin) & (some < chunk.stop))
        q_values[own] = np.where(exists, q, np.nan)[some[own] - begin]
        worst = max(worst, excess)
    return values, q_values, worst
