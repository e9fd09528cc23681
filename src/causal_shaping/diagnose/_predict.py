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
        columns = self._columns(state, action)
        self._mean, self._level = columns.mean(axis=0), wanted.mean(axis=0)
        self._weights = least_squares(columns - self._mean, wanted - self._level)
        seed = int(rng.integers(2**31))
        self._forest: Any = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, random_state=seed)
        left = wanted - self._smooth(state, action)
        self._forest.fit(self._given(state, action), left[:, 0] if left.shape[1] == 1 else left)

    def __call__(self, state: FloatArray, action: LongArray) -> FloatArray:
        """Return the means, [rows, numbers]."""
        smooth = self._smooth(state, action)
        found = smooth + self._forest.predict(self._given(state, action)).reshape(smooth.shape)
        return np.asarray(np.clip(found, self._least, self._most))

    def _smooth(self, state: FloatArray, action: LongArray) -> FloatArray:
        return np.asarray((self._columns(state, action) - self._mean) @ self._weights + self._level)

    def _given(self, state: FloatArray, action: LongArray) -> FloatArray:
        return np.column_stack([state, np.eye(self._actions)[action]])

    def _columns(self, state: FloatArray, action: LongArray) -> FloatArray:
        """Return what least squares are linear in: coordinates and waves, for all actions together and for each."""
        place = (state - self._centre) / self._spread
        shared = np.column_stack([place, np.sqrt(2) * np.cos(place @ self._direction + self._phase)])
        own = np.eye(self._actions)[action][:, :, None] * np.column_stack([np.ones(len(place)), shared])[:, None]
        return np.column_stack([shared, own.reshape(len(place), -1)])


def least_squares(columns: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return weights [columns, numbers] of penalised least squares; all has a mean of 0.

    Each number has the penalty with the least error by generalised cross-validation: the mean square of what is left,
    over the square of the share of degrees of freedom that are left.
    """
    size, vectors = np.linalg.eigh(columns.T @ columns)
    size = np.maximum(size, 0.0)
    along = vectors.T @ (columns.T @ wanted)
    best, weights = np.full(wanted.shape[1], np.inf), np.zeros((columns.shape[1], wanted.shape[1]))
    for penalty in PENALTIES * max(float(size.mean()), 1e-300):
        tried = vectors @ (along / (size + penalty)[:, None])
        free = 1 - (size / (size + penalty)).sum() / len(columns)
        error = np.square(wanted - columns @ tried).mean(axis=0) / free**2 if free > 0 else np.inf
        better = error < best
        weights[:, better], best = tried[:, better], np.minimum(best, error)
    return weights
