"""Trees over observations (extra `fitted`): grown by scikit-learn, walked by compiled code.

- `grow`: extremely randomised trees that split where outcomes differ.
- `Partition`: shares of (action, value) around an observation, by leaf, averaged over trees.
- `Surface`: values at logged observations, as a function of the observation that costs a microsecond.
- `Reach`: which observations are near logged ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.diagnose._clusters import MOST_COORDINATES, PROJECTED, projected
from causal_shaping.fitted import _kernels as kernels
from causal_shaping.fitted._kernels import NOTHING, Logged, Rule, Tally, Trees
from causal_shaping.fitted._stored import array_of, check_trees, number_of
from causal_shaping.fitted.settings import Settings

Real = npt.NDArray[np.float32]

SURFACE_TREES = 4
"""The trees that keep values as functions of the observation."""

REGION = 10
"""Whether an action is ever taken is looked up in a region of so many leaves' rows: few rows miss rare actions."""

REACH_TREES, REACH_LEAF = 8, 30
"""The trees that say how far the logs reach, and how many logged observations a leaf holds at least."""

LARGE, ATTEMPTS = 10, 5
"""A leaf with so many times the rows that it must hold is grown again, at most so often: equal rows cannot be split."""

TIE = 0.001
"""The weight of the state itself among the outcomes: where all else is alike, trees still split."""

ROUNDING = 1e-9
"""Numbers that differ by less than this share of their size are equal."""

MARGINS = (0.1, 0.25, 0.5, 1.0, 2.0)
"""By how much the box of a leaf is widened, as a share of its width; the smallest that excludes few held-out states."""

FEW = 0.001
"""So few held-out observations may lie beyond the logs by mistake."""

INSIDE = 0.5
"""An observation is beyond the logs if fewer than this share of its leaves hold it in their widened boxes."""


def grow(observations: Real, outcomes: FloatArray, trees: int, leaf: int, seed: int) -> tuple[Trees, FloatArray]:
    """Return trees that split observations where outcomes differ, and the mean outcome of each leaf."""
    with needs_extra("Fitted ceilings", "fitted"):
        from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(trees, min_samples_leaf=leaf, random_state=seed, n_jobs=1)
    forest.fit(observations, outcomes if outcomes.shape[1] > 1 else outcomes[:, 0])
    rng = np.random.default_rng(seed)
    grown = [_split_large_leaves(one.tree_, observations, outcomes, leaf, rng) for one in forest.estimators_]
    nodes = np.empty((sum(len(tree.feature) for tree in grown), 4), dtype=np.int32)
    means: list[FloatArray] = []
    begin, leaves = trees, 0
    for root, tree in enumerate(grown):
        count = len(tree.feature)
        place = np.append(root, begin + np.arange(count - 1))  # of its nodes: all roots come first
        is_leaf = tree.left < 0
        nodes[place, kernels.FEATURE] = np.where(is_leaf, -1, tree.feature)
        nodes[place, kernels.THRESHOLD] = _not_above(tree.threshold).view(np.int32)
        nodes[place, kernels.LEFT] = np.where(is_leaf, leaves + np.cumsum(is_leaf) - 1, place[tree.left])
        nodes[place, kernels.RIGHT] = np.where(is_leaf, -1, place[tree.right])
        means.append(tree.mean[is_leaf])
        begin, leaves = begin + count - 1, leaves + len(means[-1])
    return Trees(nodes, trees), np.concatenate(means)


class _Tree(NamedTuple):
    """A tree as scikit-learn keeps it, [nodes]: children are behind their parents, and -1 in a leaf."""

    feature: LongArray
    threshold: FloatArray
    left: LongArray
    right: LongArray
    mean: FloatArray  # [nodes, outcomes]

    @classmethod
    def of(cls, tree: Any) -> Self:
        left, right = tree.children_left, tree.children_right
        return cls(tree.feature, tree.threshold, left, right, tree.value[:, :, 0])

    def grafted(self, node: int, other: _Tree) -> _Tree:
        """Return the tree with another in the place of a leaf; its other nodes come last."""
        moved = len(self.feature) - 1  # the root takes the place of the leaf, the others follow
        other = other._replace(
            left=np.where(other.left < 0, -1, other.left + moved),
            right=np.where(other.right < 0, -1, other.right + moved),
        )
        joined = [np.concatenate([own, more[1:]]) for own, more in zip(self, other, strict=True)]
        for column, more in zip(joined, other, strict=True):
            column[node] = more[0]
        return _Tree(*joined)


def _split_large_leaves(
    tree: Any, observations: Real, outcomes: FloatArray, leaf: int, rng: np.random.Generator
) -> _Tree:
    """Return a tree whose leaves hold less than `LARGE` times the rows that they must, unless these are all alike.

    At each node scikit-learn draws one threshold for each coordinate. If none of them leaves enough rows on both sides,
    the node stays a leaf, however many rows it holds: with few coordinates, and some rows far from the others, that
    happens. Such leaves are grown again, with thresholds between ranks instead of numbers.
    """
    from sklearn.tree import ExtraTreeRegressor

    found = _Tree.of(tree)
    waiting = _large_leaves(tree, observations, leaf)
    while waiting:
        node, rows = waiting.pop()
        seen, followed = observations[rows], outcomes[rows]
        alike = not (np.ptp(seen, axis=0).any() and np.ptp(followed, axis=0).any())
        ranks = _Ranks(seen)
        for _ in range(0 if alike else ATTEMPTS):
            again = ExtraTreeRegressor(min_samples_leaf=leaf, max_features=1.0, random_state=int(rng.integers(2**31)))
            more = again.fit(ranks.ranks, followed).tree_
            if more.node_count > 1:
                begin = len(found.feature) - 1
                found = found.grafted(node, ranks.in_numbers(_Tree.of(more)))
                waiting += [(begin + k, rows[own]) for k, own in _large_leaves(more, ranks.ranks, leaf)]
                break
    order = np.empty(len(found.feature), dtype=np.int64)
    kernels.depth_first(found.left, found.right, order)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    left, right = (np.where(child[order] < 0, -1, place[child[order]]) for child in (found.left, found.right))
    return _Tree(found.feature[order], found.threshold[order], left, right, found.mean[order])


class _Ranks:
    """How many rows have at most the number that a row has, coordinate by coordinate."""

    def __init__(self, observations: Real) -> None:
        self.ranks = np.empty_like(observations)
        self._numbers: list[tuple[Real, LongArray]] = []
        for k, column in enumerate(observations.T):
            numbers, place, count = np.unique(column, return_inverse=True, return_counts=True)
            self._numbers.append((numbers, np.cumsum(count)))
            self.ranks[:, k] = self._numbers[-1][1][place]

    def in_numbers(self, tree: _Tree) -> _Tree:
        """Return a tree over ranks as one over numbers: thresholds are in the middle between two of them."""
        threshold = tree.threshold.copy()
        for k, (numbers, upto) in enumerate(self._numbers):
            split = np.flatnonzero((tree.feature == k) & (tree.left >= 0))
            above = np.searchsorted(upto, threshold[split], side="right")
            threshold[split] = (numbers[above - 1].astype(np.float64) + numbers[above]) / 2
        return tree._replace(threshold=threshold)


def _large_leaves(tree: Any, observations: Real, leaf: int) -> list[tuple[int, LongArray]]:
    """Return the leaves of a tree that hold too many observations, and which."""
    large = np.flatnonzero((tree.children_left < 0) & (tree.n_node_samples >= LARGE * leaf))
    at = tree.apply(observations) if len(large) else np.zeros(0)
    return [(int(node), np.flatnonzero(at == node)) for node in large]


def _not_above(thresholds: FloatArray) -> Real:
    """Return the largest single-precision numbers that are not above: the same observations are at most these."""
    near = thresholds.astype(np.float32)
    return np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near)


def leaves_of(trees: Trees, observations: npt.NDArray[Any]) -> IntArray:
    """Return the leaf of each observation in each tree, int32 [observations, trees]."""
    found = np.empty((len(observations), trees.roots), dtype=np.int32)
    kernels.find_leaves(trees.nodes, flat(observations), found)
    return found


def centre_and_scale(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means and standard deviations of columns; 1 for those that are constant, but for rounding."""
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    return centre, np.where(spread > ROUNDING * np.abs(centre), spread, 1.0)


def standardised(columns: FloatArray) -> FloatArray:
    """Return columns with mean 0 and standard deviation 1; constant ones are 0."""
    centre, scale = centre_and_scale(columns)
    return np.asarray((columns - centre) / scale)


def outcomes_of(rows: Transitions, which: LongArray, direction: FloatArray) -> FloatArray:
    """Return what the trees' structure is fitted to: source, action, reward, change of state, end; standardised.

    And hardly more than nothing of the state, along a direction [numbers]: states whose rows are all alike can differ
    in value.
    """
    states = np.asarray(rows.observations[rows.state[which]], dtype=np.float64)
    after = np.where(rows.next_state[which] < 0, rows.state[which], rows.next_state[which])
    change = np.asarray(rows.observations[after], dtype=np.float64) - states
    columns = [
        np.eye(len(rows.sources))[rows.source[which]],
        np.eye(len(rows.actions))[rows.action[which]],
        rows.reward[which, None],
        change,
        rows.terminated[which, None].astype(np.float64),
    ]
    place = standardised(standardised(states) @ direction[:, None])
    return np.concatenate([standardised(np.concatenate(columns, axis=1)), TIE * place], axis=1)


def atoms_of(targets: FloatArray, most: int) -> FloatArray:
    """Return the values that targets are split between: all of them if few, else half quantiles, half evenly spaced.

    The first is the lowest target and the last the highest, so that no target is moved beyond its neighbours.
    """
    distinct = np.unique(targets)
    if len(distinct) > most:
        quantiles = np.quantile(targets, np.linspace(0, 1, most // 2), method="nearest")
        even = np.linspace(distinct[0], distinct[-1], most - len(quantiles) + 2)
        distinct = np.unique(np.concatenate([quantiles, even]))
    if len(distinct) < 2:  # none at all where no outcome is known
        lowest = distinct[0] if len(distinct) else 0.0
        distinct = np.array([lowest, lowest + 1.0])
    return np.asarray(distinct)


class Partition:
    """Shares of (action, value) around an observation: those of the rows in its leaves."""

    def __init__(self, rows: Transitions, weight: FloatArray, settings: Settings, seed: int) -> None:
        """Grow the trees on some of the rows that have weight, and sort all rows into leaves."""
        rng = np.random.default_rng(seed)
        some = np.flatnonzero(weight > 0)
        if len(some) > settings.sample:
            some = np.sort(rng.choice(some, settings.sample, replace=False))
        share = len(some) / max(int(np.count_nonzero(weight > 0)), 1)
        leaf = max(1, round(settings.leaf * share))
        seen = flat(rows.observations[rows.state[some]])
        outcomes = outcomes_of(rows, some, rng.normal(size=seen.shape[1:]))
        self.trees, means = grow(seen, outcomes, settings.trees, leaf, int(rng.integers(2**31)))
        self.rows, self.weight, self.settings = rows, weight, settings
        self.leaves = leaves_of(self.trees, rows.observations)
        own = self.leaves[rows.state].T
        self._order = np.argsort(own, axis=1, kind="stable").astype(np.int32).ravel()
        sizes = np.bincount(own.ravel(), minlength=len(means))
        self._bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
        self._tried = self._shares_around(own, sizes, least=0 if settings.leaf == 1 else REGION * settings.leaf)
        self._known = rows.outcome_known
        self._shown: Tally | None = None
        self._before: FloatArray = np.zeros(0)
        self.atoms: FloatArray = np.zeros(2)

    def _shares_around(self, leaves: IntArray, sizes: LongArray, least: int) -> FloatArray:
        """Return how often actions are taken in the region of each leaf, in the source that takes them most.

        Args:
            leaves: [trees, rows].
            sizes: [leaves], rows.
            least: rows of a region.
        """
        rows, shape = self.rows, (len(sizes), len(self.rows.sources), len(self.rows.actions))
        bounds = np.empty((len(sizes), 2), dtype=np.int64)
        kernels.regions(self.trees.nodes, self.trees.roots, sizes, least, bounds)
        taken = np.zeros(shape)
        for own in leaves:
            cell = (own.astype(np.int64) * shape[1] + rows.source) * shape[2] + rows.action
            taken += np.bincount(cell, self.weight, minlength=taken.size).reshape(shape)
        before = np.concatenate([np.zeros((1, *shape[1:])), taken.cumsum(axis=0)])
        around = before[bounds[:, 1]] - before[bounds[:, 0]]
        total = around.sum(axis=2, keepdims=True)
        return np.asarray((around / np.where(total > 0, total, 1.0)).max(axis=1))

    def fit(self, targets: FloatArray, before: FloatArray) -> None:
        """Count the rows of each leaf by action and target, one for each row.

        `before` are the values that gains are counted from, one for each observation.
        """
        rows, settings, self._before = self.rows, self.settings, before
        self.atoms = atoms_of(targets[self._known & (self.weight > 0)], settings.atoms)
        lower, share = np.empty(len(targets), dtype=np.int32), np.empty(len(targets))
        kernels.project(targets, self.atoms, lower, share)
        shape = (len(rows.sources), len(rows.actions), len(self.atoms))
        gains = targets - before[rows.state]
        logged = Logged(rows.source, rows.action, self._known, self.weight, targets, gains, lower, share)
        by_action = settings.support == "observed-action"
        self._shown = kernels.tally(
            self._order, self._bounds, logged, settings.expectile, shape, by_action, self._tried
        )

    def q_values(self, which: slice, rule: Rule, admissible: BoolArray, guess: bool) -> tuple[FloatArray, float]:
        """Return the values of all actions at some observations, and how far masses add to more than 1."""
        leaves = self.leaves[which]
        near = np.argsort(leaves[:, 0])  # leaf by leaf, so that what a leaf shows stays in the cache
        found = np.empty((len(leaves), len(self.rows.actions)))
        worst = kernels.back_up(
            near, leaves, self._before[which], self._shown, self.atoms, rule, admissible, guess, found
        )
        return found, worst

    def shares(self, which: LongArray, rule: Rule) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what each source shows around some observations, by number.

        Shares of (action, atom) [observations, sources, actions, atoms], of actions [observations, sources, actions],
        and the expectile of the targets [observations, sources, actions or 1].
        """
        assert self._shown is not None
        shape = (len(which), len(self.rows.sources), len(self.rows.actions))
        masses, taken = np.empty((*shape, len(self.atoms))), np.empty(shape)
        best = np.empty((*shape[:2], self._shown.best.shape[2]))
        around = kernels.nothing_around(*masses.shape[1:], best.shape[2])
        for k, leaves in enumerate(self.leaves[which]):
            kernels.gather(leaves, self._shown, rule, around)
            masses[k], taken[k], best[k] = around.masses * around.unit[:, None, None], around.taken, around.best
        best = np.where(best > NOTHING, best + self._before[which][:, None, None], NOTHING)
        return masses, taken, best


@dataclass(frozen=True, eq=False)
class Surface:
    """Columns of numbers as functions of the observation: leaf means, averaged over trees.

    Attributes:
        trees: where to find an observation's leaves.
        means: float32 [leaves, columns].
    """

    trees: Trees
    means: Real

    @classmethod
    def fit(cls, observations: Real, columns: FloatArray, leaf: int, seed: int) -> Self:
        """Fit columns at distinct observations; they hold no noise, so that leaves can be small."""
        centre, scale = centre_and_scale(columns)
        trees, means = grow(observations, (columns - centre) / scale, SURFACE_TREES, leaf, seed)
        return cls(trees, (means * scale + centre).astype(np.float32))

    def at(self, observations: npt.NDArray[Any], column: int, count: int = 1) -> FloatArray:
        """Return some columns from `column` on, float64 [observations, count]."""
        leaves = leaves_of(self.trees, observations)
        return np.asarray(self.means[:, column : column + count][leaves].mean(axis=1, dtype=np.float64))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as arrays by name."""
        return _named(self.trees) | {"means": self.means}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], coordinates: int) -> Self:
        """Return what `arrays` gave, for observations of so many coordinates; or say what does not fit."""
        means = array_of(arrays, "means", np.float32, (None, None))
        return cls(_trees(arrays, coordinates, len(means)), means)


@dataclass(frozen=True, eq=False)
class Reach:
    """How far the logs reach: which observations lie near logged ones.

    Trees split the logged observations at random; each leaf has a box around those that it holds, widened by a share of
    its width. An observation whose leaves mostly do not hold it in their boxes is beyond the logs.

    Attributes:
        trees: where to find an observation's leaves.
        boxes: float32 [leaves, coordinates, 2], the least and the most of each coordinate in the box.
        missed: the share of held-out logged observations that it takes for beyond the logs; NaN without any.
        projection: float32 [numbers, coordinates], where observations have too many numbers to look at each; else None.
    """

    trees: Trees
    boxes: Real
    missed: float = math.nan
    projection: Real | None = None

    @classmethod
    def fit(cls, observations: npt.NDArray[Any], held_out: npt.NDArray[Any], seed: int) -> Self:
        """Fit to logged observations; `held_out` ones say how wide boxes must be."""
        numbers, projection = observations.shape[1], None
        if numbers > MOST_COORDINATES:
            rng = np.random.default_rng(seed)
            projection = rng.normal(size=(numbers, PROJECTED)).astype(np.float32) / np.sqrt(np.float32(numbers))
        seen = _projected(observations, projection)
        leaf = max(1, min(REACH_LEAF, len(seen) // 2))
        trees, means = grow(seen, standardised(seen.astype(np.float64)), REACH_TREES, leaf, seed)
        shape = (len(means), seen.shape[1])
        low, high = np.full(shape, np.inf, dtype=np.float32), np.full(shape, -np.inf, dtype=np.float32)
        for leaves in leaves_of(trees, seen).T:
            np.minimum.at(low, leaves, seen)
            np.maximum.at(high, leaves, seen)
        for margin in MARGINS:
            wide = margin * (high - low)
            made = cls(trees, np.stack([low - wide, high + wide], axis=-1), projection=projection)
            missed = float(made.excludes(held_out).mean()) if len(held_out) else math.nan
            if not missed > FEW:
                break
        return replace(made, missed=missed)

    def excludes(self, observations: npt.NDArray[Any]) -> BoolArray:
        """Return whether observations lie beyond the logs."""
        seen = self.coordinates(observations)
        inside = np.empty(len(seen), dtype=np.int64)
        kernels.count_inside(*self.trees, self.boxes, seen, inside)
        return inside < self.enough

    def coordinates(self, observations: npt.NDArray[Any]) -> Real:
        """Return what the boxes are for: the observations, or their projection."""
        return _projected(observations, self.projection)

    @property
    def enough(self) -> int:
        """The trees whose boxes must hold an observation that is not beyond the logs."""
        return math.ceil(INSIDE * self.trees.roots)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything as arrays by name."""
        own = {"boxes": self.boxes, "missed": np.array(self.missed)}
        return _named(self.trees) | own | ({} if self.projection is None else {"projection": self.projection})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], coordinates: int) -> Self:
        """Return what `arrays` gave, for observations of so many coordinates; or say what does not fit."""
        projection = None
        if "projection" in arrays:
            projection = array_of(arrays, "projection", np.float32, (coordinates, None))
            coordinates = projection.shape[1]
        boxes = array_of(arrays, "boxes", np.float32, (None, coordinates, 2), missing=True)
        missed = float(number_of(arrays, "missed", missing=True))
        return cls(_trees(arrays, coordinates, len(boxes)), boxes, missed, projection)


def flat(observations: npt.NDArray[Any]) -> Real:
    """Return observations as compiled code takes them."""
    return np.ascontiguousarray(observations, dtype=np.float32)


def _projected(observations: npt.NDArray[Any], projection: Real | None) -> Real:
    return flat(observations) if projection is None else projected(observations, projection)


def _named(trees: Trees) -> dict[str, npt.NDArray[Any]]:
    return {"nodes": trees.nodes, "trees": np.array(trees.roots)}


def _trees(arrays: Mapping[str, npt.NDArray[Any]], coordinates: int, leaves: int) -> Trees:
    trees = Trees(array_of(arrays, "nodes", np.int32, (None, 4)), number_of(arrays, "trees"))
    check_trees(trees, coordinates, leaves)
    return trees
