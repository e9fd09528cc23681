"""What numbers are on average, given states and actions: smooth functions by least squares, edges by a forest."""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import FloatArray, LongArray

TREES, LEAF = 10, 5
"""The forest: trees, and rows in a leaf at least."""

WAVES, MOST_WAVES = 60, 300
"""Random waves of the states, by action; fewer where actions are many, so that all have no more than the second."""

FREQUENCY = 1.5
"""The spread of the waves' frequencies along a random direction, for standardised coordinates."""

PENALTIES = 10.0 ** np.arange(-5, 3)
"""Penalties of least squares, as shares of the mean square of its columns, among which each number has its own."""


class Predictor:
    """The mean of numbers, as a function of state and action.

    First a smooth function: linear in the state plus random waves, for each action, by least squares with the penalty
    that generalised cross-validation chooses. Then a forest of what is left. A forest alone is flat inside its leaves
    and at the edges of the logs: where states change little from step to step, its errors last, as a hidden cause does.
    Means stay between the least and the greatest number seen: smooth functions go astray beyond the logs.

    Args:
        state: [rows, coordinates].
        action: [rows].
        wanted: [rows, numbers].
        actions: how many actions there are.
        rng: what draws the waves and the forest.
    """

    def __init__(
        self, state: FloatArray, action: LongArray, wanted: FloatArray, actions: int, rng: np.random.Generator
    ) -> None:
        with needs_extra("Tests of logs whose states cannot be listed", "fitted"):
            from sklearn.ensemble import ExtraTreesRegressor

        self._actions = actions
        spread = state.std(axis=0)
        self._centre, self._spread = state.mean(axis=0), np.where(spread > 0, spread, 1.0)
        waves, coordinates = min(WAVES, 1 + MOST_WAVES // actions), state.shape[1]
        self._direction = FREQUENCY * rng.normal(size=(coordinates, waves)) / np.sqrt(coordinates)
        self._phase = rng.uniform(0, 2 * np.pi, waves)
        self._least, self._most = wanted.min(axis=0), wanted.max(axis=0)
        features = self._features(state)
        self._weights = smooth_weights(features, action, wanted, actions)
        seed = int(rng.integers(2**31))
        self._forest: Any = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, random_state=seed)
        left = wanted - self._smooth(features, action)
        self._forest.fit(self._given(state, action), left[:, 0] if left.shape[1] == 1 else left)

    def __call__(self, state: FloatArray, action: LongArray) -> FloatArray:
        """Return the means, [rows, numbers]."""
        smooth = self._smooth(self._features(state), action)
        found = smooth + self._forest.predict(self._given(state, action)).reshape(smooth.shape)
        return np.asarray(np.clip(found, self._least, self._most))

    def _smooth(self, features: FloatArray, action: LongArray) -> FloatArray:
        found = np.empty((len(features), self._weights.shape[2]))
        for a, own in enumerate(action == np.arange(self._actions)[:, None]):
            found[own] = features[own] @ self._weights[a]
        return found

    def _given(self, state: FloatArray, action: LongArray) -> FloatArray:
        return np.column_stack([state, np.eye(self._actions)[action]])

    def _features(self, state: FloatArray) -> FloatArray:
        """Return what the smooth function is linear in, for each action: 1, coordinates and waves."""
        place = (state - self._centre) / self._spread
        waves = np.sqrt(2) * np.cos(place @ self._direction + self._phase)
        return np.column_stack([np.ones(len(place)), place, waves])


def smooth_weights(features: FloatArray, action: LongArray, wanted: FloatArray, actions: int) -> FloatArray:
    """Return weights of features by action, [actions, features, numbers], by penalised least squares.

    They are those of all actions together plus those of the action; the first feature is 1 and, for all together, has
    no penalty. A row has features of its own action only, so that products are taken action by action.
    """
    rows, size = features.shape
    level = wanted.mean(axis=0)
    gram = np.zeros((1 + actions, size, 1 + actions, size))
    toward = np.zeros((1 + actions, size, wanted.shape[1]))
    for a, own in enumerate(action == np.arange(actions)[:, None], start=1):
        of_action = features[own]
        gram[a, :, a] = gram[0, :, a] = gram[a, :, 0] = of_action.T @ of_action
        toward[a] = of_action.T @ (wanted[own] - level)
    gram[0, :, 0], toward[0] = gram[0, :, 1:].sum(axis=1), toward[1:].sum(axis=0)
    columns = (1 + actions) * size
    sums, weights = gram[0, 0].reshape(columns)[1:], np.zeros((columns, wanted.shape[1]))
    centred = gram.reshape(columns, columns)[1:, 1:] - np.outer(sums, sums) / rows
    weights[1:] = least_squares(centred, toward.reshape(columns, -1)[1:], np.square(wanted - level).sum(axis=0), rows)
    weights[0] = level - sums @ weights[1:] / rows
    weights = weights.reshape(1 + actions, size, -1)
    return np.asarray(weights[0] + weights[1:])


def least_squares(gram: FloatArray, toward: FloatArray, square: FloatArray, rows: int) -> FloatArray:
    """Return weights [columns, numbers] of penalised least squares, from products; all has a mean of 0.

    Each number has the penalty with the least error by generalised cross-validation: the mean square of what is left,
    over the square of the share of degrees of freedom that are left.

    Args:
        gram: products of the columns with each other.
        toward: products of columns and numbers, [columns, numbers].
        square: sums of squares of the numbers.
        rows: how many were summed over.
    """
    size, vectors = np.linalg.eigh(gram)
    size = np.maximum(size, 0.0)
    along = vectors.T @ toward
    best, chosen = np.full(toward.shape[1], np.inf), np.zeros_like(along)
    for penalty in PENALTIES * max(float(size.mean()), 1e-300):
        kept = 1 / (size + penalty)
        free = 1 - (size * kept).sum() / rows
        left = square - np.square(along).T @ (kept * (1 + penalty * kept))
        error = left / free**2 if free > 0 else np.full_like(best, np.inf)
        better = error < best
        chosen[:, better], best[better] = (along * kept[:, None])[:, better], error[better]
    return np.asarray(vectors @ chosen)
