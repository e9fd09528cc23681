"""Backups where masses have upper limits, against a linear program for each cell."""

import numpy as np
import pytest
from scipy.optimize import linprog

from causal_shaping.bounds.joint import Caps, Layer

STATES, ACTIONS = 40, 5


def random_layer(seed, sizes):
    """Masses of some cells: some have no limits, some leave no room, and some add to 1."""
    rng = np.random.default_rng(seed)
    pair = np.sort(rng.choice(STATES * ACTIONS, len(sizes), replace=False))
    first = np.append(0, np.cumsum(sizes)).astype(np.int64)
    cell_of = np.repeat(np.arange(len(sizes)), sizes)
    share = rng.random(first[-1])
    share /= np.bincount(cell_of, share)[cell_of]
    lower = rng.choice([0.0, 0.3, 0.9, 1.0], len(sizes))[cell_of] * share
    room = np.minimum(rng.choice([0.0, 0.3, 1.0], len(sizes))[cell_of] * rng.random(first[-1]), 1.0 - lower)
    free = np.maximum(1 - np.bincount(cell_of, lower), 0.0)
    rest = np.minimum(rng.choice([0.0, 0.1, 1.0], len(sizes)), free)
    _, group_first, group = np.unique(pair // ACTIONS, return_index=True, return_inverse=True)
    return Layer(
        pair=pair,
        anything=rng.random(len(sizes)) < 0.3,
        unproven=rest,
        deficit=rng.random(len(sizes)),
        group=group,
        group_first=group_first,
        first=first,
        after=rng.integers(STATES + 1, size=first[-1]).astype(np.int32),
        reward=rng.normal(size=first[-1]),
        lower=lower,
        caps=Caps(room, free - rest),
    )


@pytest.mark.parametrize("seed", range(3))
def test_free_mass_fills_the_best_outcomes_as_a_linear_program_does(seed):
    """Mass beyond all limits, which only sampling error leaves, earns what the best outcome does."""
    rng = np.random.default_rng([seed, 1])
    layer = random_layer(seed, rng.permutation(np.append(rng.integers(1, 33, 80), [1, 50])))
    following = rng.normal(size=STATES + 1)
    values = layer.reward + following[layer.after]
    anything = values.max() + rng.random(STATES * ACTIONS)
    found = layer.backup(following, anything, own=False)
    for k, pair in enumerate(layer.pair):
        here = slice(layer.first[k], layer.first[k + 1])
        same = np.flatnonzero(layer.pair // ACTIONS == pair // ACTIONS)
        seen = max(values[layer.first[i] : layer.first[i + 1]].max() for i in same)
        w = anything[pair] if layer.anything[k] else seen
        limits = [(0, room) for room in (*layer.caps.room[here], layer.unproven[k], 1.0)]
        worth = np.array([*values[here], w, w - 1e3])  # beyond the limits last
        free = layer.unproven[k] + layer.caps.mass[k]
        best = linprog(-worth, A_eq=np.ones((1, len(worth))), b_eq=[free], bounds=limits)
        proven = layer.lower[here] @ values[here] - layer.deficit[k]
        assert found[k] == pytest.approx(proven - best.fun + 1e3 * best.x[-1], abs=1e-9)


def test_no_cells_are_backed_up():
    assert random_layer(0, []).backup(np.zeros(STATES + 1), np.ones(STATES * ACTIONS), own=False).shape == (0,)
