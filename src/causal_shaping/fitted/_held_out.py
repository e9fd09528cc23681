"""What held-out episodes say of a fit: scores of their rows, and the two tests that are made of them.

Held-out rows have no weight in a fit: its shares P_i(x, z | s), its w(s) and its targets y = r + discount * Vbar(s')
are functions of the other episodes. Given those, held-out rows are a fresh sample.

**Test B: is w(s) too low?** w is an expectile at level a, the largest over sources. For y of source i in state s, the
expectile e_i(s) at level a solves

    E[ a (y - e)+  -  (1 - a) (e - y)+ ] = 0,

and the left side falls in e. So for any w(s) that is e_i(s) or more, the mean of a (y - w)+ - (1 - a) (w - y)+ over
held-out rows of source i is 0 or less, in each cluster of states and on the whole. (For a quantile that is the share of
targets above w. For an expectile this share has no fixed level: it depends on the targets' distribution.) A w that is
too low by less than `SLACK` standard deviations of the targets is taken for right: where targets hardly vary, errors
that do not matter would be found otherwise. The level that w has, (w - y)+ / ((w - y)+ + (y - w)+) in sums over rows,
is told beside.

**Test A: does the maximum over sources select noise?** The joint bound takes mass max_i P_i(x, z | s), that of source
i*(s, x, z). On held-out rows of source i in state s, the share whose (x, z) is among those with i* = i estimates the
same masses without selection (as shares, before a finite confounding scales them). The difference, summed over sources,
is by how much the masses are too large, and divided by the number of actions, the mean over actions: 0 for exact
shares, above 0 where a partition is so fine that shares are noise, or so coarse that it blurs an edge. Each fit has a
little of it; tested is whether it exceeds `MOST_BIAS` on the whole, and `MOST_CLUSTER_BIAS` in a cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.diagnose._clusters import LEAST_EPISODES, clusters_of, holm, means_of
from causal_shaping.fitted import _kernels as kernels
from causal_shaping.fitted._forest import Partition
from causal_shaping.fitted._kernels import NOTHING, Rule
from causal_shaping.fitted.settings import Settings

MOST_ROWS = 20_000
"""So many held-out rows are scored: whole episodes, chosen at random."""

CHUNK = 500
"""So many rows are scored at a time."""

BINS = 10
"""Predicted probabilities are compared with observed shares in so many bins of equal width."""

LEAST_SHARE = 0.01
"""In log scores, so much of each prediction is spread evenly over actions, so that no row counts endlessly."""

SLACK = 0.01
"""A w that is too low by less than this share of the targets' standard deviation counts as right."""

MOST_BIAS, MOST_CLUSTER_BIAS = 0.03, 0.05
"""Masses that are too large by more than this on average over actions are too noisy; on the whole, and in a cluster. In
a windy field of 20,000 rows a source, leaves of 60 rows had about .01, of 20 rows .02, and of 3 rows .09."""

HIGHEST_LEVEL = 0.999
"""A w at a higher level, such as the largest target that was seen, is tested at this one."""


class Scores(NamedTuple):
    """Scores of held-out rows, each array [rows] unless it says more."""

    row: LongArray  # positions in the logs, rising
    cluster: LongArray
    target: FloatArray  # NaN where the outcome is not known
    w: FloatArray  # NaN where nothing limits free mass
    bias: FloatArray  # selected mass less what the row shows of it
    variance: FloatArray  # of the latter, if the fit is right
    excess: FloatArray  # [rows, actions], how far masses add to more than 1
    action_bins: FloatArray  # [3, sources, BINS]: predictions, sums of predictions, sums of what happened
    value_bins: FloatArray  # the same, for the event that a value is at most an atom
    gain: FloatArray  # log probability of the action less that of its share in the source; NaN where nothing is shown


def score(
    model: Partition, rows: Transitions, held: BoolArray, targets: FloatArray, settings: Settings, rule: Rule
) -> Scores:
    """Return the scores of held-out rows under trees that were fitted to the targets of the other rows."""
    row = _chosen(rows, held, settings.seed)
    known, action, source = rows.outcome_known[row], rows.action[row], np.asarray(rows.source[row], dtype=np.int64)
    y = np.where(known, targets[row], model.atoms[0])
    lower, share = np.empty(len(row), dtype=np.int32), np.empty(len(row))
    kernels.project(y, model.atoms, lower, share)
    sources, actions = len(rows.sources), len(rows.actions)
    usual = np.stack([np.bincount(rows.action[(rows.source == i) & ~held], minlength=actions) for i in range(sources)])
    usual = usual / np.maximum(usual.sum(axis=1, keepdims=True), 1)
    found = Scores(
        row=row,
        cluster=clusters_of(rows.observations[rows.state[row]], settings.seed),
        target=np.where(known, y, np.nan),
        w=np.full(len(row), np.nan),
        bias=np.empty(len(row)),
        variance=np.empty(len(row)),
        excess=np.empty((len(row), actions)),
        action_bins=np.zeros((3, sources, BINS)),
        value_bins=np.zeros((3, sources, BINS)),
        gain=np.empty(len(row)),
    )
    for begin in range(0, len(row), CHUNK):
        part = slice(begin, begin + CHUNK)
        masses, taken, best = model.shares(rows.state[row[part]], rule)
        k, i, x, z, up = np.arange(len(masses)), source[part], action[part], lower[part], share[part]
        if rule.restricted:
            free = best.max(axis=1)[k, x if rule.by_action else 0]
            found.w[part] = np.where(free == NOTHING, rule.vacuous, np.minimum(free, rule.vacuous))
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = np.where(taken > 0, 1 + (1 - taken) / (taken * rule.confounding[:, None]), 1.0)
        proven = masses * scale[..., None]
        selected = proven.argmax(axis=1) == i[:, None, None]
        mass = (masses[k, i] * selected).sum(axis=(1, 2))
        shown = ((1 - up) * selected[k, x, z] + up * selected[k, x, z + 1]) * known[part]
        found.bias[part] = mass - shown
        found.variance[part] = mass * (1 - mass)
        found.excess[part] = np.maximum(proven.max(axis=1).sum(axis=2) - 1, 0.0)
        own, total = taken[k, i], masses[k, i].sum(axis=(1, 2))
        happened = np.eye(actions)[x]
        with np.errstate(divide="ignore"):
            gain = np.log(_spread(own)[k, x]) - np.log(_spread(usual[i])[k, x])
        found.gain[part] = np.where(own.sum(axis=1) > 0, gain, np.nan)
        _count(found.action_bins, i, own, happened, own.sum(axis=1) > 0)
        below = masses[k, i].sum(axis=1).cumsum(axis=1)[:, :-1] / np.where(total > 0, total, 1.0)[:, None]
        atom = np.arange(below.shape[1])
        seen = np.where(atom < z[:, None], 0.0, np.where(atom == z[:, None], 1 - up[:, None], 1.0))
        _count(found.value_bins, i, below, seen, known[part] & (total > 0))
    return found


def _chosen(rows: Transitions, held: BoolArray, seed: int) -> LongArray:
    """Return held-out rows, whole episodes of them."""
    row = np.flatnonzero(held)
    episodes, sizes = np.unique(rows.episode[row], return_counts=True)
    order = np.random.default_rng([seed, 6]).permutation(len(episodes))
    few = order[np.cumsum(sizes[order]) <= MOST_ROWS]
    return row[np.isin(rows.episode[row], episodes[few])]


def _spread(shares: FloatArray) -> FloatArray:
    return np.asarray((1 - LEAST_SHARE) * shares + LEAST_SHARE / shares.shape[-1])


def _count(bins: FloatArray, source: LongArray, predicted: FloatArray, seen: FloatArray, which: BoolArray) -> None:
    """Add predictions, [rows, events], and what happened to the bins."""
    place = np.minimum((predicted * BINS).astype(np.int64), BINS - 1) + BINS * source[:, None]
    for part, weights in zip(bins, (np.ones_like(predicted), predicted, seen), strict=True):
        part += np.bincount(place[which].ravel(), weights[which].ravel(), minlength=part.size).reshape(part.shape)


def calibration_error(bins: FloatArray) -> FloatArray:
    """Return the mean distance between predicted probability and observed share, over bins: [sources]."""
    n, predicted, seen = bins
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(predicted - seen).sum(axis=1) / n.sum(axis=1))


class LevelOfW(NamedTuple):
    """Test B, arrays [clusters, sources]."""

    level: FloatArray  # that w has; NaN without rows
    p_value: FloatArray  # corrected for all of them and `whole`; NaN with too few episodes
    whole: FloatArray  # [sources], p-values over all states, corrected alike


def level_of_w(scores: Scores, rows: Transitions, level: float) -> LevelOfW:
    """Test whether w lies below the expectile of some source in some cluster."""
    which = np.isfinite(scores.target) & np.isfinite(scores.w)
    shape = (int(scores.cluster.max(initial=-1)) + 1, len(rows.sources))
    row, y, w = scores.row[which], scores.target[which], scores.w[which]
    group, groups = scores.cluster[which] * shape[1] + rows.source[row], shape[0] * shape[1]
    higher = w + SLACK * (y.std() if len(y) else 0.0)
    a = min(level, HIGHEST_LEVEL)
    score = a * np.maximum(y - higher, 0) - (1 - a) * np.maximum(higher - y, 0)
    found = means_of(score, group, rows.episode[row], groups)
    whole = means_of(score, rows.source[row].astype(np.int64), rows.episode[row], shape[1]).p_values()
    above, below = (np.bincount(group, np.maximum(part, 0), minlength=groups) for part in (y - w, w - y))
    with np.errstate(invalid="ignore"):
        realised = np.where(above + below > 0, below / (above + below), np.where(found.rows > 0, 1.0, np.nan))
    # Two kinds of tests, each with half of the level.
    by_cluster, whole = (np.minimum(1, 2 * holm(p_values)) for p_values in (found.p_values(), whole))
    return LevelOfW(realised.reshape(shape), by_cluster.reshape(shape), whole)


class Bias(NamedTuple):
    """Test A: by cluster, [clusters], and on the whole."""

    bias: FloatArray
    p_value: FloatArray  # corrected for all clusters and the whole; NaN with too few episodes
    overall: float
    overall_p_value: float


def bias_of_maxima(scores: Scores, rows: Transitions) -> Bias:
    """Test whether the masses that the maximum over sources selects are too large."""
    clusters = int(scores.cluster.max(initial=-1)) + 1
    bias, p_value = _bias(scores, rows, scores.cluster, clusters, MOST_CLUSTER_BIAS)
    overall, overall_p_value = _bias(scores, rows, np.zeros_like(scores.cluster), 1, MOST_BIAS)
    # Two kinds of tests, each with half of the level.
    p_value, overall_p_value = np.minimum(1, 2 * holm(p_value)), np.minimum(1, 2 * overall_p_value)
    return Bias(bias, p_value, float(overall[0]), float(overall_p_value[0]))


def _bias(
    scores: Scores, rows: Transitions, group: LongArray, groups: int, most: float
) -> tuple[FloatArray, FloatArray]:
    """Return the bias of each group, [groups], and p-values of more than `most`."""
    sources, actions = len(rows.sources), len(rows.actions)
    pair = group * sources + rows.source[scores.row]
    found = means_of(scores.bias, pair, rows.episode[scores.row], groups * sources)
    # What is rare may be missing among few rows, whose spread is then too small: at least the one that is predicted.
    with np.errstate(invalid="ignore", divide="ignore"):
        predicted = np.bincount(pair, scores.variance, minlength=groups * sources) / found.rows**2
    enough = (found.episodes >= LEAST_EPISODES).reshape(groups, sources)

    def total(parts: FloatArray) -> FloatArray:
        return np.asarray(np.where(enough, parts.reshape(groups, sources), 0.0).sum(axis=1))

    bias, error = total(found.mean) / actions, np.sqrt(total(np.maximum(found.variance, predicted))) / actions
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = np.where(error > 0, ndtr((most - bias) / error), bias <= most)
    tested = enough.any(axis=1)
    return np.where(tested, bias, np.nan), np.where(tested, p_value, np.nan)
