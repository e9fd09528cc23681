"""Whether the past of an episode tells of its outcomes, given state, action and step, where states cannot be listed.

Episodes are dealt into three parts that change roles. For an episode of one part, a second part predicts the outcomes
whose residuals are *now*, and a third part those whose residuals make the *past*: their mean over the earlier steps,
less its own prediction from state, action and step. So the errors of both have nothing in common but what forests get
wrong always. The products of now and past, summed over an episode, have a mean of 0 if nothing lasts; nearly so, for
states change slowly, and errors that depend on the state last as long as it does.

That is taken away by comparison with *stitched* episodes. They begin as the logged ones do; after a row comes one of
the rows nearest to the state that it led to, of another episode of the part at about the same step; and so on. Rows
keep their residuals, and neighbouring states theirs, but what happened before is another episode's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.diagnose._clusters import LEAST_EPISODES, ROUNDING
from causal_shaping.diagnose._predict import Predictor

PARTS = 3
"""Roles of episodes: those that are tested, those that predict their outcomes, and those that predict their past."""

STITCHED = 199
"""Logs of stitched episodes."""

NEIGHBOURS, LEAST_NEIGHBOURS = 10, 3
"""Rows that can follow a row of a stitched episode; with fewer than the second nothing is tested."""

LEAST_LEFT = 0.01
"""An outcome is determined by state and action if less than this share of its spread is left."""

MOST_NUMBERS = 10_000_000
"""So many sums are held at a time."""


class Steps(NamedTuple):
    """Rows of one source, ordered by episode and step; arrays [rows, ...]."""

    state: FloatArray  # standardised coordinates
    after: FloatArray  # those of the state that follows
    action: LongArray
    step: LongArray
    episode: LongArray
    ended: BoolArray
    outcome: FloatArray  # standardised; the last is whether the episode ended


class Lasting(NamedTuple):
    """What was found."""

    p_value: float  # NaN with too few episodes
    episodes: int  # with a past
    correlation: float


def find_lasting(steps: Steps, actions: int, rng: np.random.Generator) -> Lasting:
    """Return whether outcomes depend on the past of the episode."""
    number = _number(steps.episode)
    later = number > 0
    episodes = len(np.unique(steps.episode[later]))
    part = parts_of(steps.episode, PARTS, rng)
    neighbours = min(NEIGHBOURS, int(np.bincount(part, minlength=PARTS).min()) // 2)
    if episodes < 2 * LEAST_EPISODES or neighbours < LEAST_NEIGHBOURS:
        return Lasting(np.nan, episodes, 0.0)
    now, early, usual = _residuals(steps, part, later, actions, rng)
    if not now.size or not early.size:
        return Lasting(1.0, episodes, 0.0)
    begin = np.flatnonzero(number == 0)
    past = mean_before(early, number) - usual
    products = (now[:, :, None] * past[:, None, :]).reshape(len(now), -1) * later[:, None]
    found = _strength(np.add.reduceat(products, begin, axis=0))
    near = _near(steps, part, neighbours)
    usually = np.array(list(_stitched(steps, now, early, usual, near, begin, rng)))
    # A row drawn from k neighbours differs from their mean by 1 - 1/k of the variance, and the mean from the truth by
    # 1/k of it: together, (k + 1) / (k - 1) of what the draws show.
    wider = np.sqrt((neighbours + 1) / (neighbours - 1))
    centre, spread = usually.mean(axis=0), usually.std(axis=0, ddof=1)
    spread = np.where(spread > ROUNDING, spread, np.inf)
    distance = float(np.abs((found - centre) / spread).max()) / wider
    others = np.abs((usually - centre) / spread).max(axis=1)
    p_value = (1 + int((others >= distance * (1 - ROUNDING)).sum())) / (1 + len(others))
    return Lasting(p_value, episodes, float(np.abs(correlations(now[later], past[later])).max()))


def parts_of(episode: LongArray, parts: int, rng: np.random.Generator) -> LongArray:
    """Return which of several random parts of the episodes a row belongs to: [rows]."""
    every, which = np.unique(episode, return_inverse=True)
    return np.asarray((rng.permutation(len(every)) % parts)[which])


def correlations(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the correlations of columns of residuals, [first, second]; 0 for those that are all 0."""
    sizes = np.sqrt(np.outer((first**2).mean(axis=0), (second**2).mean(axis=0)))
    return np.asarray(first.T @ second / len(first) / np.where(sizes > 0, sizes, np.inf))


def mean_before(values: FloatArray, number: LongArray) -> FloatArray:
    """Return the mean of values, [rows, numbers], over the rows before in the episode; 0 for the first."""
    begin = np.arange(len(values)) - number
    sums = np.cumsum(values, axis=0) - values
    return np.asarray((sums - sums[begin]) / np.maximum(number, 1)[:, None])


def _number(episode: LongArray) -> LongArray:
    """Return how many rows of the episode come before each row."""
    row = np.arange(len(episode))
    return np.asarray(row - np.maximum.accumulate(np.where(np.diff(episode, prepend=-1) != 0, row, 0)))


def _residuals(
    steps: Steps, part: LongArray, later: BoolArray, actions: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what is left of outcomes, now and as part of the past, and predictions of the past; [rows, numbers].

    An earlier row has not ended the episode, or there were no later one: ends are no part of the past.
    """
    given = np.column_stack([steps.state, steps.step])

    def left(which: BoolArray, wanted: FloatArray) -> FloatArray:
        fit = Predictor(given[which], steps.action[which], wanted[which], actions, rng)
        return np.asarray(wanted - fit(given, steps.action))

    by_part = [left(part == k, steps.outcome) for k in range(PARTS)]
    varies = np.min([by_part[k][part != k].std(axis=0) for k in range(PARTS)], axis=0) > LEAST_LEFT
    lasts = varies & (np.arange(len(varies)) < len(varies) - 1)
    now, early = by_part[0][:, varies].copy(), by_part[0][:, lasts].copy()
    usual = np.zeros_like(early)
    for k in range(PARTS):
        second, third = (k + 1) % PARTS, (k + 2) % PARTS
        own, residuals = part == k, by_part[third][:, lasts]
        now[own], early[own] = by_part[second][own][:, varies], residuals[own]
        if lasts.any():
            past = mean_before(residuals, _number(steps.episode))
            usual[own] = (past - left((part == second) & later, past))[own]
    return now, early, usual


def _near(steps: Steps, part: LongArray, neighbours: int) -> LongArray:
    """Return the rows that can follow a row in a stitched episode: [rows, neighbours]."""
    from scipy.spatial import KDTree  # late: a tenth of what `inspect` of listed states imports

    unit = max(float(steps.step.std()), ROUNDING)
    here = np.column_stack([steps.state, steps.step / unit])
    there = np.column_stack([steps.after, (steps.step + 1) / unit])
    result = np.empty((len(here), neighbours), dtype=np.int64)
    for own in (np.flatnonzero(part == k) for k in range(PARTS)):
        found = own[KDTree(here[own]).query(there[own], k=min(len(own), 5 * neighbours))[1]]
        same = steps.episode[found] == steps.episode[own][:, None]
        result[own] = np.take_along_axis(found, np.argsort(same, axis=1, kind="stable")[:, :neighbours], axis=1)
    return result


def _stitched(
    steps: Steps,
    now: FloatArray,
    early: FloatArray,
    usual: FloatArray,
    near: LongArray,
    begin: LongArray,
    rng: np.random.Generator,
) -> Iterator[FloatArray]:
    """Give the strengths of products in logs of stitched episodes, [products], one log at a time.

    An episode goes on until a row ends it; one that was cut, until its own length, others until the greatest.
    """
    sizes = np.diff(np.append(begin, len(now)))
    length = np.where(steps.ended[begin + sizes - 1], sizes.max(), sizes)
    products = now.shape[1] * early.shape[1]
    at_once = max(1, MOST_NUMBERS // (len(begin) * products))
    for first in range(0, STITCHED, at_once):
        logs = min(at_once, STITCHED - first)
        row, most = np.tile(begin, logs), np.tile(length, logs)
        sums, total, number = np.zeros((len(row), products)), early[row], 1
        live = np.flatnonzero(~steps.ended[row] & (most > 1))
        while len(live):
            row[live] = chosen = near[row[live], rng.integers(near.shape[1], size=len(live))]
            past = total[live] / number - usual[chosen]
            sums[live] += (now[chosen][:, :, None] * past[:, None, :]).reshape(len(live), -1)
            total[live] += early[chosen]
            number += 1
            live = live[~steps.ended[chosen] & (most[live] > number)]
        yield from map(_strength, sums.reshape(logs, len(begin), -1))


def _strength(sums: FloatArray) -> FloatArray:
    """Return the sum over episodes of each column, [episodes, columns], by the root of the sum of squares."""
    scale = np.sqrt(np.square(sums).sum(axis=0))
    return np.asarray(sums.sum(axis=0) / np.where(scale > 0, scale, np.inf))
