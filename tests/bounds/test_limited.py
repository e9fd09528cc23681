"""Backups where masses have upper limits, against a linear program for each cell."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from causal_shaping.bounds._joint import Layer
from causal_shaping.bounds._masses import Masses

STATES, ACTIONS, REWARDS = 40, 5, 3


def random_masses(seed, sizes, binned=False):
    """Masses of some cells, of which some have no limits, some leave no room, and some add to 1 or more."""
    rng = np.random.default_rng(seed)
    cell = np.sort(rng.choice(STATES * ACTIONS, len(sizes), replace=False))
    first = np.append(0, np.cumsum(sizes))
    lower, upper = np.empty(first[-1]), np.empty(first[-1])
    for begin, end in itertools.pairwise(first):
        proven = rng.choice([0.0, 0.3, 0.9, 1.0, 1.1])
        lower[begin:end] = proven * rng.dirichlet(np.ones(end - begin))
        upper[begin:end] = np.minimum(lower[begin:end] + rng.choice([0.0, 0.3, 1.0]) * rng.random(end - begin), 1.0)
    return Masses(
        rewards=rng.normal(size=REWARDS),
        visits=np.ones(STATES),
        state=(cell // ACTIONS).astype(np.int32),
        action=(cell % ACTIONS).astype(np.int32),
        first=first,
        rest=rng.choice([0.0, 0.1, 1.0], len(sizes)),
        after=rng.integers(STATES + 1, size=first[-1], dtype=np.int32),
        reward=rng.integers(REWARDS, size=first[-1]).astype(np.uint16),
        lower=lower,
        upper=upper,
        deficit=rng.random(first[-1]) if binned else np.empty(0),
        total=np.add.reduceat(lower, first[:-1]),
    )


def by_program(masses, k, values, w):
    """The most that all mass of a cell earns, by a linear program; mass beyond all limits earns w."""
    here = slice(masses.first[k], masses.first[k + 1])
    lower, upper, total = masses.lower[here], masses.upper[here], masses.total[k]
    earned = lower @ values[here] - masses.deficit[here].sum()
    if total >= 1:
        return earned / total
    limits = [(0, limit) for limit in (*(upper - lower), masses.rest[k], 1.0)]
    worth = np.array([*values[here], w, w - 1e3])  # beyond the limits last
    found = linprog(-worth, A_eq=np.ones((1, len(worth))), b_eq=[1 - total], bounds=limits)
    return earned - found.fun + 1e3 * found.x[-1]


@pytest.mark.parametrize("by_action", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_free_mass_fills_the_best_outcomes_as_a_linear_program_does(seed, by_action):
    rng = np.random.default_rng([seed, 1])
    sizes = np.append(rng.integers(1, 33, 80), [1, 50])
    masses, following = random_masses(seed, rng.permutation(sizes), binned=seed == 0), rng.normal(size=STATES + 1)
    values = masses.rewards[masses.reward] + following[masses.after]
    given = np.where(rng.random(len(sizes)) < 0.3, values.max() + 0.5, -np.inf)
    q_values = np.full((STATES, ACTIONS), np.nan)
    layer = Layer(masses, np.zeros((STATES, ACTIONS), dtype=bool), 1.0, by_action)
    layer.free_value[:] = given
    layer.backup(following, q_values)
    for k, (s, x) in enumerate(zip(masses.state, masses.action, strict=True)):
        same = [k] if by_action else np.flatnonzero(masses.state == s)
        seen = max(values[masses.first[i] : masses.first[i + 1]].max() for i in same)
        w = seen if given[k] == -np.inf else given[k]
        assert q_values[s, x] == pytest.approx(by_program(masses, k, values, w), abs=1e-9)
    assert np.isnan(q_values).sum() == q_values.size - len(sizes)


def test_no_cells_are_backed_up():
    empty = random_masses(0, [1])._replace(
        **{name: np.empty(0, dtype=np.int32) for name in ("state", "action", "after", "reward")},
        **{name: np.empty(0) for name in ("rest", "lower", "upper", "total")},
        first=np.zeros(1, dtype=np.int64),
    )
    q_values = np.ones((STATES, ACTIONS))
    Layer(empty, np.zeros((STATES, ACTIONS), dtype=bool), 1.0).backup(np.zeros(STATES + 1), q_values)
    assert (q_values == 1).all()
