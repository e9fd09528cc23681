"""What fitted ceilings would be with endless logs: the bound at the points of a grid, in plain NumPy.

Shares are exact, P_i(x, u, k | s) = probability[s, u, k] * beta_i[s, u, x] by `outcomes`, and targets are the
reward plus the ceiling where a step leads, interpolated as in `studies.worlds.optimum`. Nothing here uses
`causal_shaping.fitted`.

- `population_ceilings`: ceilings at the points of a grid, as `GridValues`.
- `compare`: how far they are from the optimum.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from studies.worlds.optimum import GridValues, axes_of, degree_of, neighbours, outcomes


class Comparison(NamedTuple):
    """Ceilings of the first step against the optimum, over the points in which episodes go on."""

    distance: float  # mean of |ceiling - V*|
    correlation: float
    below: float  # share of points more than `margin` below V*


def compare(ceilings, values, margin=0.02):
    """Compare ceilings with the optimum, both [points]."""
    return Comparison(
        float(np.abs(ceilings - values).mean()),
        float(np.corrcoef(ceilings, values)[0, 1]),
        float((ceilings < values - margin).mean()),
    )


def population_ceilings(
    world,
    sources=None,
    grid=8,
    *,
    level=0.99,
    support="observed",
    method="both",
    atoms=None,
    rarest_action=0.001,
    nodes=5,
):
    """Return the ceilings of exact shares at the points of a grid: `GridValues`, whose `q_values` are not ceilings.

    Args:
        world: a `Dynamics`.
        sources: names of demonstrators, or rules; all of the world's by default.
        grid: as in `studies.worlds.optimum.solve`.
        level: the level of the expectile that free mass is worth; 1 is the largest target.
        support: "observed", targets that follow the state in some source; "observed-action", those that follow it after
            the action; "any", the vacuous value.
        method: "joint", "source" (the minimum of the bounds by single sources), or "both", the smaller of these.
        atoms: None tells outcomes apart by name, (next state, reward, end); otherwise by value, with targets split
            between the two neighbouring atoms so that their mean stays.
        rarest_action: an action with no larger share in any source gets the vacuous value.
        nodes: nodes of the quadrature.
    """
    axes = axes_of(world, grid)
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1).astype(np.float32)
    terminal = world.terminal(points)
    inside = np.flatnonzero(~terminal)
    after = outcomes(world, points[inside], nodes)
    rules = [world.demonstrator(name)(points[inside]) for name in sources or world.demonstrators]
    shape = (*after.reward.shape[:2], -1)  # s, x, and o: (u, k)
    shares = np.stack(
        [np.einsum("suk,sux->sxuk", after.probability, beta).reshape(shape) for beta in rules]
    )  # [i, s, x, o]
    reward, follow = after.reward.reshape(shape), _follow(world, axes, terminal, after)
    if atoms is None:
        shares = _by_name(shares, after)
    taken = shares.sum(axis=-1)  # [i, s, x]
    values = np.zeros((world.horizon + 1, len(points)))
    for h in reversed(range(world.horizon)):
        left = world.horizon - h
        vacuous = world.reward_max * (sum(world.discount**t for t in range(left)) if world.reward_max > 0 else 1)
        targets = reward + world.discount * (follow @ values[h + 1]).reshape(reward.shape)
        free = np.minimum(_free(targets, shares, level, support, vacuous), vacuous)
        masses, worths = (shares, targets) if atoms is None else _by_value(shares, targets, np.asarray(atoms))
        q_values = np.full(reward.shape[:2], np.inf)
        if method != "source":
            q_values = _bound(masses.max(axis=0), worths, free)
        if method != "joint":
            q_values = np.minimum(q_values, np.min([_bound(own, worths, free) for own in masses], axis=0))
        q_values[(taken <= rarest_action).all(axis=0)] = vacuous
        values[h, inside] = np.minimum(q_values.max(axis=1), vacuous)
    return GridValues(world, axes, values, points, terminal, nodes)


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


def _free(targets, shares, level, support, vacuous):
    """Return what free mass is worth, [s, x] or [s, 1]."""
    if support == "any":
        return np.full((len(targets), 1), vacuous)
    if support == "observed-action":
        found = np.max([expectile(targets, own, level) for own in shares], axis=0)
        return np.where(np.isneginf(found), vacuous, found)
    flat = (len(targets), -1)
    return np.max([expectile(targets.reshape(flat), own.reshape(flat), level) for own in shares], axis=0)[:, None]


def _by_name(shares, after):
    """Return shares in which outcomes that look alike, such as standing still in any wind, are one outcome."""
    coordinates = after.next_states.shape[-1]
    seen = np.concatenate(
        [after.next_states.reshape(-1, coordinates), after.reward.reshape(-1, 1), after.terminated.reshape(-1, 1)],
        axis=1,
    )
    row = np.arange(len(seen)) // shares.shape[-1]
    order = np.lexsort((*seen.T, row))
    new = np.ones(len(seen), dtype=bool)
    new[1:] = (seen[order][1:] != seen[order][:-1]).any(axis=1) | (row[order][1:] != row[order][:-1])
    first = np.empty(len(seen), dtype=np.int64)
    first[order] = order[new][new.cumsum() - 1]
    merged = [np.bincount(first, own.ravel(), minlength=len(seen)) for own in shares]
    return np.reshape(merged, shares.shape)


def _by_value(shares, targets, atoms):
    """Return shares by atom [i, s, x, z], and the atoms."""
    place = np.clip(np.interp(targets, atoms, np.arange(len(atoms))), 0, len(atoms) - 1)
    below = np.minimum(place.astype(np.int64), len(atoms) - 2)
    row = np.arange(targets.size).reshape(targets.shape) // targets.shape[-1] * len(atoms)
    size, part = targets[..., 0].size * len(atoms), place - below
    masses = [
        np.bincount((row + below).ravel(), (own * (1 - part)).ravel(), minlength=size)
        + np.bincount((row + below + 1).ravel(), (own * part).ravel(), minlength=size)
        for own in shares
    ]
    return np.reshape(masses, (*shares.shape[:-1], len(atoms))), atoms


def _follow(world, axes, terminal, after):
    """Return the weights of grid points in what follows, [s * x * u * k, points]."""
    goes_on = np.flatnonzero(~after.terminated)
    places = after.next_states.reshape(-1, len(axes))[goes_on]
    corners, weights = neighbours(axes, terminal, places, degree_of(world))
    where = (np.repeat(goes_on, corners.shape[1]), corners.ravel())
    return sparse.coo_array((weights.ravel(), where), shape=(after.terminated.size, len(terminal))).tocsr()
