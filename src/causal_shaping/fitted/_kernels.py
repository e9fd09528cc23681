"""Compiled parts of fitted ceilings: leaves of trees, masses by leaf, and one backup at every observation.

Values are those of the bound's side: a floor is the ceiling of the negated rewards, so kernels only know ceilings.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray

NOTHING = -1e300
"""The value of what nobody showed: lower than every reward."""

ROUNDS = 40
"""An expectile is found by so many Newton steps at most; from its mean it takes about ten."""

ROUNDING = 1e-9
"""An expectile is found when a step changes it by less than this share of its size."""

FEATURE, THRESHOLD, LEFT, RIGHT = range(4)
"""The numbers of a node: to the left if the coordinate FEATURE is at most the threshold, whose bits are kept. In a
leaf, FEATURE is -1 and LEFT the leaf's number among those of all trees."""


class Trees(NamedTuple):
    """Several trees. Kernels take its parts: passing a tuple to compiled code takes longer than walking the trees."""

    nodes: IntArray  # [nodes, 4]: the roots first; one array, since each that is passed takes time, too
    roots: int  # how many trees there are


class Tally(NamedTuple):
    """What the rows of each leaf show; the cells of a leaf that hold any mass stand one after another."""

    first: LongArray  # [leaves + 1], the first entry of a leaf
    cell: npt.NDArray[np.uint32]  # [entries], (source * actions + action) * atoms + atom
    mass: FloatArray  # [entries], rows
    rows: FloatArray  # [leaves, sources]
    taken: FloatArray  # [leaves, sources, actions], rows; those of unknown outcome included
    known: FloatArray  # [leaves, sources, actions], rows of known outcome
    worth: FloatArray  # [leaves, sources, actions], the sum of their targets
    best: FloatArray  # [leaves, sources, actions or 1], the expectile of the gains; NOTHING without rows
    tried: FloatArray  # [leaves, actions], the largest share of a source in the region around, see `regions`


class Rule(NamedTuple):
    """What one backup assumes."""

    confounding: FloatArray  # [sources], Gamma
    by_action: bool  # free mass is worth what followed the action; else what followed the state
    restricted: bool  # free mass is worth no more than that; else anything
    vacuous: float  # the best that the steps left can pay: the value where nothing is known
    rarest_action: float  # an action with no larger share in any source counts as not taken
    least_rows: float  # a source with fewer rows in a leaf, on average over the trees, shows nothing


@njit(inline="always")
def _walk(nodes: IntArray, observation: FloatArray, first: int, last: int, found: IntArray) -> None:
    """Write the leaf of an observation in some trees, side by side: the processor need not wait for one tree's node."""
    thresholds = nodes.view(np.float32)
    for t in range(first, last):
        found[t] = t
    walking = True
    while walking:
        walking = False
        for t in range(first, last):
            node = np.uintp(found[t])  # unsigned: else it is asked whether it counts from the end
            feature = nodes[node, FEATURE]
            if feature >= 0:
                below = observation[np.uintp(feature)] <= thresholds[node, THRESHOLD]
                found[t] = nodes[node, LEFT] if below else nodes[node, RIGHT]
                walking = True
    for t in range(first, last):
        found[t] = nodes[found[t], LEFT]


@njit()
def find_leaves(nodes: IntArray, observations: FloatArray, found: IntArray) -> None:
    """Write the leaf of each observation in each tree: `found` [observations, trees]."""
    for k in range(len(observations)):
        _walk(nodes, observations[k], 0, found.shape[1], found[k])


@njit()
def depth_first(left: LongArray, right: LongArray, order: LongArray) -> None:
    """Write the nodes of a tree, whose root is 0, such that each is followed by its left side, then its right side."""
    waiting, count, done = np.empty(len(order), dtype=np.int64), 1, 0
    waiting[0] = 0
    while count > 0:
        count -= 1
        node = waiting[count]
        order[done] = node
        done += 1
        if left[node] >= 0:
            waiting[count], waiting[count + 1] = right[node], left[node]
            count += 2


@njit()
def regions(nodes: IntArray, count: int, size: LongArray, least: int, bounds: LongArray) -> None:
    """Write the region of each leaf: the smallest subtree around it that holds at least so many rows.

    Args:
        nodes: those of `count` trees.
        count: the number of trees.
        size: [leaves], rows; the leaves of a subtree follow one another.
        least: rows; 0 makes each leaf its own region.
        bounds: [leaves, 2], what is written: the first leaf of the region, and the one behind its last.
    """
    stack, parent = np.empty(len(nodes), dtype=np.int64), np.empty(len(nodes), dtype=np.int64)
    rows, first, last = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    region = np.empty(len(nodes), dtype=np.int64)
    for root in range(count):
        visited, waiting = 1, 0  # `stack` lists nodes, parents before their children
        stack[0], parent[root] = root, -1
        while waiting < visited:
            node = stack[waiting]
            waiting += 1
            if nodes[node, FEATURE] >= 0:
                for child in (nodes[node, LEFT], nodes[node, RIGHT]):
                    stack[visited], parent[child] = child, node
                    visited += 1
        for k in range(visited - 1, -1, -1):
            node = stack[k]
            if nodes[node, FEATURE] < 0:
                leaf = nodes[node, LEFT]
                rows[node], first[node], last[node] = size[leaf], leaf, leaf + 1
            else:
                left, right = nodes[node, LEFT], nodes[node, RIGHT]
                rows[node], first[node], last[node] = rows[left] + rows[right], first[left], last[right]
        for k in range(visited):
            node = stack[k]
            region[node] = node if rows[node] >= least or parent[node] < 0 else region[parent[node]]
            if nodes[node, FEATURE] < 0:
                bounds[nodes[node, LEFT], 0], bounds[nodes[node, LEFT], 1] = first[region[node]], last[region[node]]


@njit()
def project(targets: FloatArray, atoms: FloatArray, lower: IntArray, share: FloatArray) -> None:
    """Split each target between its two neighbouring atoms so that its mean stays: `share` goes to the upper one."""
    for k in range(len(targets)):
        z = min(max(np.searchsorted(atoms, targets[k], side="right") - 1, 0), len(atoms) - 2)
        lower[k] = z
        share[k] = min(max((targets[k] - atoms[z]) / (atoms[z + 1] - atoms[z]), 0.0), 1.0)


@njit()
def expectile(values: FloatArray, weights: FloatArray, count: int, level: float) -> float:
    """Return the expectile of the first `count` values: the largest at level 1; NOTHING without weight.

    At level a, the mean excess above it is (1 - a) / a times the mean shortfall below it.
    """
    total, mean, most = 0.0, 0.0, NOTHING
    for k in range(count):
        if weights[k] > 0:
            total += weights[k]
            mean += weights[k] * values[k]
            most = max(most, values[k])
    if total == 0 or level >= 1:
        return most
    found = mean / total
    for _ in range(ROUNDS):
        up, down = 0.0, 0.0
        for k in range(count):
            weight = weights[k] * (level if values[k] > found else 1 - level)
            up += weight * values[k]
            down += weight
        step = up / down
        if abs(step - found) <= ROUNDING * (abs(step) + abs(most)):
            return step
        found = step
    return found


class Logged(NamedTuple):
    """What a step knows of each row, arrays [rows]."""

    source: npt.NDArray[np.int16]
    action: IntArray
    known: BoolArray  # an outcome that is not known proves nothing
    weight: FloatArray
    targets: FloatArray
    gains: FloatArray  # targets less the value of the state before this step, of which expectiles are taken: the states
    # of a leaf differ in value, and an expectile of their targets would take that for chance
    lower: IntArray  # the atom below the target
    share: FloatArray  # how much of the target goes to the atom above; see `project`


@njit()
def tally(
    order: IntArray,
    bounds: LongArray,
    rows: Logged,
    level: float,
    shape: tuple[int, int, int],
    by_action: bool,
    tried: FloatArray,
) -> Tally:
    """Count what the rows of each leaf show.

    Args:
        order: [trees * rows], the rows of leaf after leaf.
        bounds: [leaves + 1], where the rows of a leaf begin in `order`.
        rows: what is counted.
        level: that of the expectile.
        shape: sources, actions, atoms.
        by_action: an expectile for each action, else one of all.
        tried: [leaves, actions], handed on.
    """
    sources, actions, atoms = shape
    leaves, cells = len(bounds) - 1, sources * actions * atoms
    sizes = np.diff(bounds)
    cell = np.empty(np.minimum(2 * sizes, cells).sum(), dtype=np.uint32)  # an index without a sign needs no check
    mass = np.empty(len(cell), dtype=np.float64)
    first = np.zeros(leaves + 1, dtype=np.int64)
    pairs = (leaves, sources, actions)
    held, taken, known, worth = np.zeros((leaves, sources)), np.zeros(pairs), np.zeros(pairs), np.zeros(pairs)
    best = np.empty((leaves, sources, actions if by_action else 1))
    scratch = np.zeros(cells)
    numbers, weights = np.empty(sizes.max()), np.empty(sizes.max())
    entry = 0
    for leaf in range(leaves):
        own = order[bounds[leaf] : bounds[leaf + 1]]
        for k in own:
            i, x, w = rows.source[k], rows.action[k], rows.weight[k]
            held[leaf, i] += w
            taken[leaf, i, x] += w
            if rows.known[k]:
                known[leaf, i, x] += w
                worth[leaf, i, x] += w * rows.targets[k]
                place = (i * actions + x) * atoms + rows.lower[k]
                scratch[place] += w * (1 - rows.share[k])
                scratch[place + 1] += w * rows.share[k]
        for i in range(sources):
            for x in range(best.shape[2]):
                count = 0
                for k in own:
                    if rows.known[k] and rows.source[k] == i and (not by_action or rows.action[k] == x):
                        numbers[count], weights[count] = rows.gains[k], rows.weight[k]
                        count += 1
                best[leaf, i, x] = expectile(numbers, weights, count, level)
        for k in own:
            place = (rows.source[k] * actions + rows.action[k]) * atoms + rows.lower[k]
            for c in (place, place + 1):
                if scratch[c] > 0:
                    cell[entry], mass[entry] = c, scratch[c]
                    scratch[c] = 0.0
                    entry += 1
        first[leaf + 1] = entry
    return Tally(first, cell[:entry], mass[:entry], held, taken, known, worth, best, tried)


class Around(NamedTuple):
    """What the sources show around one observation; shares of a source's rows are 0 if it has too few."""

    masses: FloatArray  # [sources, actions, atoms], rows in all leaves; times `unit`, shares
    unit: FloatArray  # [sources], one over a source's rows in all leaves; 0 if these are too few
    taken: FloatArray  # [sources, actions], shares; rows of unknown outcome included
    known: FloatArray  # [sources, actions], shares of known outcome
    worth: FloatArray  # [sources, actions], the sum of atoms times their shares
    best: FloatArray  # [sources, actions or 1], the expectile of the gains; NOTHING from a source with too few rows
    tried: FloatArray  # [actions], the largest share of a source in the regions around
    scale: FloatArray  # [sources, actions], by how much a share grows to what the source proves under do(action)
    most: FloatArray  # [atoms], room for the most mass of an outcome that some source proves


@njit()
def nothing_around(sources: int, actions: int, atoms: int, expectiles: int) -> Around:
    """Return room for what the sources show."""
    pair = (sources, actions)
    return Around(
        np.zeros((sources, actions, atoms)), np.zeros(sources), np.zeros(pair), np.zeros(pair), np.zeros(pair),
        np.full((sources, expectiles), NOTHING), np.zeros(actions), np.ones(pair), np.zeros(atoms),
    )  # fmt: skip


@njit(inline="always")
def _proven(taken: float, confounding: float) -> float:
    """Return by how much a source's mass of (action, outcome) grows to what it proves under do(action)."""
    return 1.0 if taken <= 0 or confounding == np.inf else (taken + (1 - taken) / confounding) / taken


@njit()
def gather(leaves: IntArray, shown: Tally, rule: Rule, around: Around) -> None:
    """Write what the sources show around an observation: the rows of its leaf in each tree, together."""
    sources, actions = around.taken.shape
    flat = around.masses.reshape(-1)
    flat[:] = 0.0
    around.unit[:] = 0.0
    around.taken[:] = 0.0
    around.known[:] = 0.0
    around.worth[:] = 0.0
    around.tried[:] = 0.0
    for leaf in leaves:
        for x in range(actions):
            around.tried[x] += shown.tried[leaf, x] / len(leaves)
        for entry in range(shown.first[leaf], shown.first[leaf + 1]):
            flat[shown.cell[entry]] += shown.mass[entry]
        for i in range(sources):
            around.unit[i] += shown.rows[leaf, i]
            for x in range(actions):
                around.taken[i, x] += shown.taken[leaf, i, x]
                around.known[i, x] += shown.known[leaf, i, x]
                around.worth[i, x] += shown.worth[leaf, i, x]
    for i in range(sources):
        total = around.unit[i]
        enough = total > 0 and total >= rule.least_rows * len(leaves)
        unit = 1 / total if enough else 0.0
        for x in range(around.best.shape[1]):
            value, weight = 0.0, 0.0
            for leaf in leaves:
                rows = shown.taken[leaf, i, x] if around.best.shape[1] > 1 else shown.rows[leaf, i]
                if shown.best[leaf, i, x] > NOTHING and rows > 0:
                    value += rows * shown.best[leaf, i, x]
                    weight += rows
            around.best[i, x] = value / weight if enough and weight > 0 else NOTHING
        around.unit[i] = unit
        for x in range(actions):
            around.taken[i, x] *= unit
            around.known[i, x] *= unit
            around.worth[i, x] *= unit
            around.scale[i, x] = _proven(around.taken[i, x], rule.confounding[i])


@njit()
def _prove(around: Around, x: int, atoms: FloatArray) -> tuple[float, float]:
    """Write the most mass of each atom that some source proves under do(x); return its sum, and that of its values."""
    most = around.most
    most[:] = 0.0
    for i in range(len(around.taken)):
        share = around.unit[i] * around.scale[i, x]
        if around.known[i, x] > 0:
            for z in range(len(atoms)):
                mass = around.masses[i, x, z] * share
                most[z] = mass if mass > most[z] else most[z]  # unlike max(), several numbers at once
    total, value = 0.0, 0.0
    for z in range(len(atoms)):
        total += most[z]
        value += most[z] * atoms[z]
    return total, value


@njit()
def bound_action(around: Around, x: int, before: float, atoms: FloatArray, rule: Rule) -> tuple[float, float]:
    """Return the ceiling of one action at one observation, and how far the joint masses add to more than 1.

    `before` is the value of the observation that gains are counted from.
    """
    free, capped = NOTHING, False
    for i in range(len(around.taken)):
        free = max(free, around.best[i, x if around.best.shape[1] > 1 else 0])
        capped = capped or _caps(around, i, x, rule)
    if around.tried[x] <= rule.rarest_action:
        return rule.vacuous, 0.0
    free = min(before + free, rule.vacuous) if rule.restricted and free > NOTHING else rule.vacuous
    total, value = _prove(around, x, atoms)
    found = min(rule.vacuous, value / total if total > 1 else value + (1 - total) * free)
    if capped and total < 1:
        found = min(found, _filled(around, x, atoms, rule, value, 1 - total, free))
    return found, max(total - 1.0, 0.0)


@njit(inline="always")
def _caps(around: Around, i: int, x: int, rule: Rule) -> bool:
    """Return whether a source caps the mass of outcomes: its confounding is finite, and it took the action."""
    return bool(rule.confounding[i] != np.inf and around.taken[i, x] > rule.rarest_action)


@njit()
def _filled(around: Around, x: int, atoms: FloatArray, rule: Rule, value: float, left: float, free: float) -> float:
    """Return `value` plus that of the free mass `left`, which fills outcomes from the best, each up to its cap."""
    for z in range(len(atoms) - 1, -1, -1):
        cap = 1.0
        for i in range(len(around.taken)):
            if _caps(around, i, x, rule):
                taken = around.taken[i, x]
                possible = around.masses[i, x, z] * around.unit[i] + max(taken - around.known[i, x], 0.0)
                cap = min(cap, possible / taken * (taken + (1 - taken) * rule.confounding[i]))
        part = min(left, max(cap - around.most[z], 0.0))
        value += part * atoms[z]
        left -= part
    return value + left * free


@njit()
def guess_action(around: Around, x: int, atoms: FloatArray) -> float:
    """Return the best guess of one action: proven mass, and free mass by what the sources' own shares leave.

    NOTHING for an action that nobody took.
    """
    rows = around.taken[:, x].sum()
    proven, value = _prove(around, x, atoms)
    if rows <= 0 or proven <= 0:
        return NOTHING
    rest, worth = 0.0, 0.0
    for z in range(len(atoms)):
        pooled = 0.0
        for i in range(len(around.taken)):
            pooled += around.masses[i, x, z] * around.unit[i]
        residual = max(pooled / rows - around.most[z], 0.0)
        rest += residual
        worth += residual * atoms[z]
    if proven >= 1 or rest <= 0:
        return float(value / proven)
    return float(value + (1 - proven) * worth / rest)


@njit()
def back_up(
    order: LongArray,
    leaves: IntArray,
    before: FloatArray,
    shown: Tally,
    atoms: FloatArray,
    rule: Rule,
    admissible: BoolArray,
    guess: bool,
    q_values: FloatArray,
) -> float:
    """Write the values of all actions at every observation: `q_values` [observations, actions].

    Args:
        order: [observations], in which they are looked at; those of one leaf next to each other are faster.
        leaves: [observations, trees].
        before: [observations], the values that gains are counted from.
        shown: what the rows of each leaf show.
        atoms: the values that targets are split between.
        rule: what is assumed.
        admissible: [observations or 1, actions].
        guess: the best guess in place of the ceiling.
        q_values: what is written.

    Returns:
        How far joint masses add to more than 1 where it is worst.
    """
    sources, actions = shown.taken.shape[1:]
    around = nothing_around(sources, actions, len(atoms), shown.best.shape[2])
    worst = 0.0
    for k in order:
        gather(leaves[k], shown, rule, around)
        known = around.known.sum()
        for x in range(actions):
            if not admissible[k if len(admissible) > 1 else 0, x]:
                value = NOTHING
            elif guess:
                value = guess_action(around, x, atoms)
                if value == NOTHING:  # an action that nobody took is worth what followed the state after any action
                    value = around.worth.sum() / known if known > 0 else rule.vacuous
            else:
                value, excess = bound_action(around, x, before[k], atoms, rule)
                worst = max(worst, excess)
            q_values[k, x] = value
    return worst


@njit()
def count_inside(nodes: IntArray, trees: int, boxes: FloatArray, observations: FloatArray, found: LongArray) -> None:
    """Write the number of trees whose leaf's box holds an observation; `boxes` [leaves, coordinates, 2]."""
    leaves = np.empty(trees, dtype=np.int32)
    for k in range(len(observations)):
        _walk(nodes, observations[k], 0, trees, leaves)
        found[k] = _count(boxes, leaves, 0, trees, observations[k])


@njit()
def look_up(
    nodes: IntArray,
    trees: int,
    means: FloatArray,
    first: int,
    columns: int,
    reach_nodes: IntArray,
    reach_trees: int,
    boxes: FloatArray,
    enough: int,
    beyond: FloatArray,
    observations: FloatArray,
    coordinates: FloatArray,
    h: LongArray,
    found: FloatArray,
) -> None:
    """Write the value of each observation at its step: that of its leaves within the reach of the logs.

    Args:
        nodes: those of the trees that keep values.
        trees: the number of these.
        means: [leaves, more than `columns`], the values by leaf.
        first: the column of the value with one step left.
        columns: how many there are; with more steps left, the last one holds.
        reach_nodes: those of the trees that say how far the logs reach.
        reach_trees: the number of these.
        boxes: [leaves, coordinates, 2], see `Reach`.
        enough: an observation is beyond the logs if the boxes of fewer trees hold it.
        beyond: [steps + 1], the value beyond the logs, by the steps left.
        observations: [observations, numbers].
        coordinates: [observations, coordinates], what the boxes are for.
        h: [observations], or one step for all of them.
        found: [observations], what is written: NaN for an observation that holds NaN, and 0 beyond the horizon.
    """
    leaves = np.empty(max(trees, reach_trees), dtype=np.int32)
    for k in range(len(observations)):
        left = len(beyond) - 1 - h[k if len(h) > 1 else 0]
        observation = observations[k]
        if left <= 0:
            found[k] = 0.0
        elif np.isnan(observation).any():
            found[k] = np.nan
        elif _within(reach_nodes, reach_trees, boxes, enough, coordinates[k], leaves):
            _walk(nodes, observation, 0, trees, leaves)
            found[k] = _mean(means, leaves[:trees], first + min(left, columns) - 1)
        else:
            found[k] = beyond[min(left, len(beyond) - 1)]


@njit(inline="always")
def _within(
    nodes: IntArray, trees: int, boxes: FloatArray, enough: int, coordinates: FloatArray, leaves: IntArray
) -> bool:
    """Return whether the boxes of enough trees hold an observation."""
    _walk(nodes, coordinates, 0, enough, leaves)
    held = _count(boxes, leaves, 0, enough, coordinates)
    if held < enough:  # mostly all of the first trees hold it, and the others need not be looked at
        _walk(nodes, coordinates, enough, trees, leaves)
        held += _count(boxes, leaves, enough, trees, coordinates)
    return bool(held >= enough)


@njit(inline="always")
def _mean(values: FloatArray, leaves: IntArray, column: int) -> float:
    total = 0.0
    for leaf in leaves:
        total += values[leaf, column]
    return total / len(leaves)


@njit(inline="always")
def _count(boxes: FloatArray, leaves: IntArray, first: int, last: int, observation: FloatArray) -> int:
    held = 0
    for t in range(first, last):
        within = True
        for d in range(len(observation)):
            if not boxes[leaves[t], d, 0] <= observation[d] <= boxes[leaves[t], d, 1]:
                within = False
                break
        held += within
    return held
