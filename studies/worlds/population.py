"""What fitted ceilings would be with endless logs: the bound at the points of a grid, in plain NumPy.

Shares are exact, P_i(x, u, k | s) = probability[s, u, k] * beta_i[s, u, x] by `outcomes`, and targets are the
reward plus the ceiling where a step leads, interpolated as in `studies.worlds.optimum`. What free mass is worth follows
the state in some source (`support="observed"`). Nothing here uses `causal_shaping.fitted`.

- `population_ceilings`: ceilings at the points of a grid, as `GridValues`.
"""

import numpy as np

from studies.worlds.optimum import GridValues, following, grid_of, outcomes


def population_ceilings(world, grid, *, level=0.99, rarest_action=0.001):
    """Return the ceilings of exact shares at the points of a grid: `GridValues`, whose `q_values` are not ceilings.

    Each is the smaller of the joint bound of all demonstrators and the least of the bounds by one of them.

    Args:
        world: a `ContinuousWorld`.
        grid: as in `studies.worlds.optimum.solve`.
        level: the level of the expectile that free mass is worth; 1 is the largest target.
        rarest_action: an action with no larger share in any source gets the vacuous value.
    """
    axes, points, terminal = grid_of(world, grid)
    inside = np.flatnonzero(~terminal)
    after = outcomes(world, points[inside])
    rules = [world.demonstrator(name)(points[inside]) for name in world.demonstrators]
    reward = after.reward.reshape(*after.reward.shape[:2], -1)  # [s, x, o], with o: (u, k)
    shares = [np.einsum("suk,sux->sxuk", after.probability, beta).reshape(reward.shape) for beta in rules]
    shares, follow = _by_name(np.stack(shares), after), following(world, axes, terminal, after)  # [i, s, x, o]
    rare = (shares.sum(axis=-1) <= rarest_action).all(axis=0)
    flat = (len(inside), -1)
    values = np.zeros((world.horizon + 1, len(points)))
    for h in reversed(range(world.horizon)):
        left = world.horizon - h
        vacuous = world.reward_max * (sum(world.discount**t for t in range(left)) if world.reward_max > 0 else 1)
        targets = reward + world.discount * (follow @ values[h + 1]).reshape(reward.shape)
        seen = [expectile(targets.reshape(flat), own.reshape(flat), level) for own in shares]
        free = np.minimum(np.max(seen, axis=0)[:, None], vacuous)
        bounds = [_bound(masses, targets, free) for masses in (shares.max(axis=0), *shares)]
        q_values = np.where(rare, vacuous, np.min(bounds, axis=0))
        values[h, inside] = np.minimum(q_values.max(axis=1), vacuous)
    return GridValues(world, axes, values, points, terminal)


def expectile(targets, weights, level):
    """Return the expectile of the last axis at a level of at least 1/2; -inf where nothing has weight.

    It is the largest mean that weighs the targets above a split by `level` and those below by 1 - level.
    """
    order = np.argsort(targets, axis=-1)[..., ::-1]
    targets, weights = np.take_along_axis(targets, order, -1), np.take_along_axis(weights, order, -1)
    mass, worth = weights.cumsum(axis=-1), (weights * targets).cumsum(axis=-1)
    down = (1 - level) / level
    total = mass + down * (mass[..., -1:] - mass)
    means = (worth + down * (worth[..., -1:] - worth)) / np.where(total > 0, total, 1)
    return np.where(total > 0, means, -np.inf).max(axis=-1)


def _bound(masses, worths, free):
    """Return the proven part and the free part, [s, x], of masses [s, x, o]; more than 1 is scaled to 1."""
    total, proven = masses.sum(axis=-1), (masses * worths).sum(axis=-1)
    return np.where(total > 1, proven / np.maximum(total, 1), proven + (1 - total) * free)


def _by_name(shares, after):
    """Return shares in which outcomes that look alike, such as standing still in any wind, are one outcome."""
    row = np.arange(after.reward.size) // shares.shape[-1]  # of state and action
    columns = [row, after.reward.ravel(), after.terminated.ravel()]
    columns += list(after.next_states.reshape(len(row), -1).T)
    _, first, place = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    merged = [np.bincount(first[place.ravel()], own.ravel(), minlength=len(row)) for own in shares]
    return np.reshape(merged, shares.shape)
