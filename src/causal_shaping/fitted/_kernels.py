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
    """Several trees. Kernels take its parts: to pass a tuple to compiled code takes longer than to walk the trees."""

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
    vacuous: float  # the value of a state about which nothing is known
    untried: float  # the value of what an action does that nobody took, or of anything
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


@njit()
def tally_leaf(
    rows: IntArray,
    source: IntArray,
    action: IntArray,
    known: BoolArray,
    weight: FloatArray,
    targets: FloatArray,
    gains: FloatArray,
    lower: IntArray,
    share: FloatArray,
    level: float,
    atoms: int,
    scratch: FloatArray,
    numbers: FloatArray,
    weights: FloatArray,
    sums: FloatArray,
    taken: FloatArray,
    sure: FloatArray,
    worth: FloatArray,
    best: FloatArray,
) -> None:
    """Count the rows of one leaf into `scratch` [sources * actions * atoms], and find its expectiles."""
    sources, actions = taken.shape
    for k in rows:
        i, x, w = source[k], action[k], weight[k]
        sums[i] += w
        taken[i, x] += w
        if known[k]:
            sure[i, x] += w
            worth[i, x] += w * targets[k]
            cell = (i * actions + x) * atoms + lower[k]
            scratch[cell] += w * (1 - share[k])
            scratch[cell + 1] += w * share[k]
    for i in range(sources):
        for x in range(best.shape[1]):
            count = 0
            for k in rows:
                if known[k] and source[k] == i and (best.shape[1] == 1 or action[k] == x):
                    numbers[count], weights[count] = gains[k], weight[k]
                    count += 1
            best[i, x] = expectile(numbers, weights, count, level)


@njit()
def tally(
    order: IntArray,
    bounds: LongArray,
    source: IntArray,
    action: IntArray,
    known: BoolArray,
    weight: FloatArray,
    targets: FloatArray,
    gains: FloatArray,
    lower: IntArray,
    share: FloatArray,
    level: float,
    shape: tuple[int, int, int],
    by_action: bool,
    tried: FloatArray,
) -> Tally:
    """Count what the rows of each leaf show.

    Args:
        order: [trees * rows], the rows of leaf after leaf.
        bounds: [leaves + 1], where the rows of a leaf begin in `order`.
        source: [rows].
        action: [rows].
        known: [rows]; an outcome that is not known proves nothing.
        weight: [rows].
        targets: [rows].
        gains: [rows], targets less the value of the state before this step. Expectiles are taken of these: the states
            of a leaf differ in value, and an expectile of their targets would take that for chance.
        lower: [rows], the atom below the target.
        share: [rows], how much of the target goes to the atom above; see `project`.
        level: that of the expectile.
        shape: sources, actions, atoms.
        by_action: an expectile for each action, else one of all.
        tried: [leaves, actions], handed on.
    """
    sources, actions, atoms = shape
    leaves, cells = len(bounds) - 1, sources * actions * atoms
    room, largest = 0, 0
    for leaf in range(leaves):
        size = bounds[leaf + 1] - bounds[leaf]
        room += min(2 * size, cells)
        largest = max(largest, size)
    first = np.zeros(leaves + 1, dtype=np.int64)
    cell = np.empty(room, dtype=np.uint32)  # an index without a sign needs no check
    mass = np.empty(room, dtype=np.float64)
    rows = np.zeros((leaves, sources))
    taken, sure = np.zeros((leaves, sources, actions)), np.zeros((leaves, sources, actions))
    worth = np.zeros((leaves, sources, actions))
    best = np.empty((leaves, sources, actions if by_action else 1))
    scratch, numbers, weights = np.zeros(cells), np.empty(largest), np.empty(largest)
    entry = 0
    for leaf in range(leaves):
        own = order[bounds[leaf] : bounds[leaf + 1]]
        tally_leaf(
            own, source, action, known, weight, targets, gains, lower, share, level, atoms, scratch, numbers, weights,
            rows[leaf], taken[leaf], sure[leaf], worth[leaf], best[leaf],
        )  # fmt: skip
        for k in own:
            place = (source[k] * actions + action[k]) * atoms + lower[k]
            for c in (place, place + 1):
                if scratch[c] > 0:
                    cell[entry], mass[entry] = c, scratch[c]
                    scratch[c] = 0.0
                    entry += 1
        first[leaf + 1] = entry
    return Tally(first, cell[:entry], mass[:entry], rows, taken, sure, worth, best, tried)


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
        return rule.untried, 0.0
    free = min(before + free, rule.untried) if rule.restricted and free > NOTHING else rule.untried
    total, value = _prove(around, x, atoms)
    found = min(rule.untried, value / total if total > 1 else value + (1 - total) * free)
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
def values_at(
    around: Around,
    before: float,
    atoms: FloatArray,
    rule: Rule,
    admissible: BoolArray,
    guess: bool,
    q_values: FloatArray,
) -> float:
    """Write the values of all actions at one observation; return how far joint masses add to more than 1."""
    worst = 0.0
    shown = around.known.sum()
    for x in range(around.taken.shape[1]):
        if not admissible[x]:
            q_values[x] = NOTHING
        elif guess:
            q_values[x] = guess_action(around, x, atoms)
            if q_values[x] == NOTHING:  # an action that nobody took is worth what followed the state after any action
                q_values[x] = around.worth.sum() / shown if shown > 0 else rule.vacuous
        else:
            q_values[x], excess = bound_action(around, x, before, atoms, rule)
            q_values[x] = min(q_values[x], rule.vacuous)
            worst = max(worst, excess)
    return worst


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
        mask = admissible[k if len(admissible) > 1 else 0]
        worst = max(worst, values_at(around, before[k], atoms, rule, mask, guess, q_values[k]))
    return worst


@njit()
def back_up_masses(
    masses: FloatArray,
    taken: FloatArray,
    best: FloatArray,
    before: FloatArray,
    atoms: FloatArray,
    rule: Rule,
    admissible: BoolArray,
    guess: bool,
    q_values: FloatArray,
) -> float:
    """Do what `back_up` does for shares that a network gives: `masses` [observations, sources, actions, atoms].

    `taken` [observations, sources, actions], shares, unknown outcomes included; `best` [observations, sources, actions
    or 1]; `before` [observations].
    """
    sources, actions = masses.shape[1:3]
    around = nothing_around(sources, actions, len(atoms), best.shape[2])
    around.unit[:] = 1.0
    worst = 0.0
    for k in range(len(masses)):
        around.masses[:] = masses[k]
        around.taken[:] = taken[k]
        around.best[:] = best[k]
        around.tried[:] = 0.0
        for i in range(sources):
            for x in range(actions):
                around.tried[x] = max(around.tried[x], taken[k, i, x])
                share, worth = 0.0, 0.0
                for z in range(len(atoms)):
                    share += masses[k, i, x, z]
                    worth += masses[k, i, x, z] * atoms[z]
                around.known[i, x], around.worth[i, x] = share, worth
                around.scale[i, x] = _proven(around.taken[i, x], rule.confounding[i])
        mask = admissible[k if len(admissible) > 1 else 0]
        worst = max(worst, values_at(around, before[k], atoms, rule, mask, guess, q_values[k]))
    return worst


@njit()
def leaf_means(
    nodes: IntArray, trees: int, values: FloatArray, observations: FloatArray, column: LongArray, found: FloatArray
) -> None:
    """Write the mean over trees of one column each of the observations' leaves, from `values` [leaves, columns]."""
    leaves = np.empty(trees, dtype=np.int32)
    for k in range(len(observations)):
        _walk(nodes, observations[k], 0, trees, leaves)
        found[k] = _mean(values, leaves, trees, column[k])


@njit()
def count_inside(nodes: IntArray, trees: int, boxes: FloatArray, observations: FloatArray, found: LongArray) -> None:
    """Write the number of trees whose leaf's box holds an observation; `boxes` [leaves, coordinates, 2]."""
    leaves = np.empty(trees, dtype=np.int32)
    for k in range(len(observations)):
        _walk(nodes, observations[k], 0, trees, leaves)
        found[k] = _count(boxes, leaves, 0, trees, observations[k])


@njit(inline="always")
def _mean(values: FloatArray, leaves: IntArray, trees: int, column: int) -> float:
    total = 0.0
    for t in range(trees):
        total += values[leaves[t], column]
    return total / trees


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


class Lookup(NamedTuple):
    """Values within the reach of the logs, for `pack`."""

    trees: int  # that keep values
    tests: int  # trees that say how far the logs reach
    enough: int  # an observation is beyond the logs if the boxes of fewer tests hold it
    nodes: IntArray  # of both, see `Trees`
    values: npt.NDArray[np.float32]  # [leaves, columns], by the steps left from 1; with more steps left, the last
    boxes: npt.NDArray[np.float32]  # [leaves, coordinates, 2]
    beyond: FloatArray  # float64 [steps + 1], the value beyond the logs by the steps left


HEADER = 8
"""The numbers before the arrays of a packed `Lookup`; as many as keep them aligned."""

NEXT, LEAF = 2, 3
"""The last two numbers of a packed node: the child to the left, which that to the right follows, and the leaf's number.
A leaf is its own child, since no coordinate is above its threshold: trees are walked without asking where they end."""


def pack(lookup: Lookup) -> IntArray:
    """Return everything in one array: to pass six to compiled code takes as long as what it does with them."""
    parts = [lookup.beyond, _side_by_side(lookup.nodes, lookup.trees + lookup.tests), lookup.values, lookup.boxes]
    flat = [np.ascontiguousarray(part).view(np.int32).ravel() for part in parts]
    begins = HEADER + np.cumsum([len(part) for part in flat[:-1]])
    header = [
        lookup.trees,
        lookup.tests,
        lookup.enough,
        lookup.values.shape[1],
        *begins.tolist(),
        lookup.boxes.shape[1],
    ]
    return np.concatenate([np.array(header, dtype=np.int32), *flat])


def _side_by_side(nodes: IntArray, roots: int) -> IntArray:
    """Return the nodes of trees such that the children of a node stand side by side."""
    inner = nodes[:, FEATURE] >= 0
    place = np.arange(len(nodes))  # of the roots; the others move
    for child, column in enumerate((LEFT, RIGHT)):
        place[nodes[inner, column]] = roots + 2 * np.arange(np.count_nonzero(inner)) + child
    moved = np.empty_like(nodes)
    moved[place, FEATURE] = np.maximum(nodes[:, FEATURE], 0)
    moved[place, THRESHOLD] = np.where(inner, nodes[:, THRESHOLD], np.float32(np.inf).view(np.int32))
    moved[place, NEXT] = np.where(inner, place[np.where(inner, nodes[:, LEFT], 0)], place)
    moved[place, LEAF] = np.where(inner, -1, nodes[:, LEFT])
    return moved


@njit(inline="always")
def _child(nodes: IntArray, thresholds: FloatArray, node: int, observation: FloatArray) -> int:
    at = np.uintp(node)  # unsigned: else it is asked whether it counts from the end
    above = observation[np.uintp(nodes[at, FEATURE])] > thresholds[at, THRESHOLD]
    return nodes[at, NEXT] + np.int32(above)  # type: ignore[no-any-return]


Eight = tuple[int, int, int, int, int, int, int, int]


@njit(inline="always")
def _children(nodes: IntArray, thresholds: FloatArray, at: Eight, observation: FloatArray) -> Eight:
    return (
        _child(nodes, thresholds, at[0], observation), _child(nodes, thresholds, at[1], observation),
        _child(nodes, thresholds, at[2], observation), _child(nodes, thresholds, at[3], observation),
        _child(nodes, thresholds, at[4], observation), _child(nodes, thresholds, at[5], observation),
        _child(nodes, thresholds, at[6], observation), _child(nodes, thresholds, at[7], observation),
    )  # fmt: skip


@njit(inline="always")
def _differ(a: Eight, b: Eight) -> bool:
    """Return whether any of eight numbers differ; without a branch for each, as == would have."""
    first = (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])
    return bool((first | (a[4] ^ b[4]) | (a[5] ^ b[5]) | (a[6] ^ b[6]) | (a[7] ^ b[7])) != 0)


@njit(inline="always")
def _walk_packed(nodes: IntArray, observation: FloatArray, first: int, last: int, leaves: IntArray) -> None:
    """Write the leaf of an observation in some trees, eight side by side.

    A step of one tree waits for the memory, and those of the others fill the time; a tuple stays in registers.
    """
    thresholds = nodes.view(np.float32)
    for t in range(first, last, 8):
        end = last - 1
        trees = (
            np.int32(t), np.int32(min(t + 1, end)), np.int32(min(t + 2, end)), np.int32(min(t + 3, end)),
            np.int32(min(t + 4, end)), np.int32(min(t + 5, end)), np.int32(min(t + 6, end)), np.int32(min(t + 7, end)),
        )  # fmt: skip
        at = trees
        to = _children(nodes, thresholds, at, observation)
        while _differ(at, to):
            at = to
            to = _children(nodes, thresholds, at, observation)
        leaves[trees[0]], leaves[trees[1]] = nodes[np.uintp(at[0]), LEAF], nodes[np.uintp(at[1]), LEAF]
        leaves[trees[2]], leaves[trees[3]] = nodes[np.uintp(at[2]), LEAF], nodes[np.uintp(at[3]), LEAF]
        leaves[trees[4]], leaves[trees[5]] = nodes[np.uintp(at[4]), LEAF], nodes[np.uintp(at[5]), LEAF]
        leaves[trees[6]], leaves[trees[7]] = nodes[np.uintp(at[6]), LEAF], nodes[np.uintp(at[7]), LEAF]


@njit()
def look_up_all(packed: IntArray, observations: FloatArray, h: LongArray, found: FloatArray) -> bool:
    """Write the value of each observation, at one step each or at the only one, from a packed `Lookup`.

    That of an observation which holds NaN is NaN. Returns False, and writes nothing, if observations have another
    number of coordinates.
    """
    trees, tests, enough, columns = packed[0], packed[1], packed[2], packed[3]
    if observations.shape[1] != packed[7]:
        return False
    beyond = packed[HEADER : packed[4]].view(np.float64)
    nodes = packed[packed[4] : packed[5]].reshape(-1, 4)
    values = packed[packed[5] : packed[6]].view(np.float32).reshape(-1, columns)
    boxes = packed[packed[6] :].view(np.float32).reshape(-1, observations.shape[1], 2)
    leaves = np.empty(trees + tests, dtype=np.int32)
    for k in range(len(observations)):
        left = len(beyond) - 1 - h[k if len(h) > 1 else 0]
        if left <= 0:
            found[k] = 0.0
            continue
        observation = observations[k]
        _walk_packed(nodes, observation, 0, trees + enough, leaves)
        held = _count(boxes, leaves, trees, trees + enough, observation)
        if held < enough:  # mostly all of the first tests hold it, and others need not be looked at
            _walk_packed(nodes, observation, trees + enough, trees + tests, leaves)
            held += _count(boxes, leaves, trees + enough, trees + tests, observation)
        found[k] = beyond[left] if held < enough else _mean(values, leaves, trees, min(left, columns) - 1)
        for d in range(len(observation)):
            if np.isnan(observation[d]):
                found[k] = np.nan
    return True


@njit()
def look_up(packed: IntArray, observation: FloatArray, h: int) -> float:
    """Return the value of one observation; NaN if it holds NaN, or has another number of coordinates."""
    found = np.full(1, np.nan)
    look_up_all(packed, observation.reshape(1, -1), np.full(1, h), found)
    return float(found[0])
