"""Backups where masses have upper limits: free mass fills the outcomes from the best downwards, each up to its limit.

That is the greedy solution of the linear program over all distributions between the limits.

Cells with about equally many outcomes are laid side by side, `LANES` of them in a block, outcome after outcome, so that
what is done with all cells of a block becomes vector instructions. Cells with many outcomes have a heap each instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import INLINED, njit
from causal_shaping.bounds._masses import Masses
from causal_shaping.bounds._threads import run_parts, share_out
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray

LANES = 64
"""How many cells are worked on side by side."""

FEW_OUTCOMES = 32
"""Cells with so many outcomes at most are laid side by side: their best outcomes are found by exchanging neighbours."""


class Cells(NamedTuple):
    """What a backup needs to know of each cell, beside its outcomes.

    Nothing is better than outcomes that nobody has seen, which are worth w: free mass goes there first. If it exceeds
    all limits, by sampling error alone, what is left earns w, too.
    """

    target: LongArray  # where its bound goes: state * actions + action
    elsewhere: FloatArray  # free mass that goes to outcomes that nobody has seen
    free: FloatArray  # the free mass that fills outcomes
    shortfall: FloatArray  # the sum of its deficits


class Blocks(NamedTuple):
    """Cells side by side; the last block is filled up with its last cell."""

    cell: LongArray  # [blocks, LANES], a position in `Masses`
    cells: Cells  # each [blocks, LANES]
    first: LongArray  # [blocks + 1], where its rows begin; each row holds one outcome of each of its cells
    fillable: LongArray  # [blocks], how many of its rows, the first ones, have room for more mass
    after: IntArray  # [rows, LANES], as in `Masses`
    reward: npt.NDArray[Any]  # [rows, LANES], as in `Masses`
    lower: FloatArray  # [rows, LANES]
    room: FloatArray  # [rows, LANES], how much more mass there can be


class LimitedCells:
    """The cells of masses with upper limits, made ready for backups."""

    def __init__(self, masses: Masses, actions: int, by_action: bool) -> None:
        begins, size = masses.first[:-1], np.diff(masses.first)
        unproven, scale = np.maximum(1 - masses.total, 0.0), np.maximum(masses.total, 1.0)
        deficit = np.add.reduceat(masses.deficit, begins) if len(masses.deficit) else np.zeros(len(size))
        elsewhere = np.minimum(unproven, masses.rest)
        target = masses.state.astype(np.int64) * actions + masses.action
        self.cells = Cells(target, elsewhere, unproven - elsewhere, deficit / scale)
        # Masses that add to more than 1, by sampling error, are scaled.
        self.masses = masses._replace(lower=masses.lower / np.repeat(scale, size))
        self.room = np.maximum(masses.upper - masses.lower, 0.0)
        exceeds = self.cells.free > np.add.reduceat(self.room, begins)
        self.open = np.flatnonzero((elsewhere > 0) | exceeds)  # the cells in which w matters
        self.by_action, self.w = by_action, np.zeros(len(size))
        order = np.argsort(size, kind="stable")
        few = int(np.searchsorted(size[order], FEW_OUTCOMES, side="right"))
        self.many = np.sort(order[few:])
        self.blocks = self._side_by_side(np.append(order[:few], np.repeat(order[few - 1 : few], -few % LANES)), size)
        self.parts = share_out(self.blocks.first[1:], self.blocks.lower.size)

    def _side_by_side(self, order: LongArray, size: LongArray) -> Blocks:
        """Return cells in blocks, in this order."""
        cell = order.reshape(-1, LANES)
        first = np.append(0, np.cumsum(size[cell[:, -1]]))
        shape, laid = (int(first[-1]), LANES), [column[cell] for column in self.cells]
        blocks = Blocks(
            cell=cell,
            cells=Cells._make(laid),
            first=first,
            fillable=np.zeros(len(cell), dtype=np.int64),
            after=np.zeros(shape, dtype=np.int32),
            reward=np.zeros(shape, dtype=self.masses.reward.dtype),
            lower=np.zeros(shape),
            room=np.zeros(shape),
        )
        _lay(self.masses, self.room, blocks)
        return blocks

    def backup(self, following: FloatArray, free_value: FloatArray, q_values: FloatArray) -> None:
        """Write the bound of one step for every cell; `free_value` is that of free mass, -inf for the best seen."""
        _write_w(self.open, self.masses, following, free_value, self.by_action, self.w)
        out = q_values.reshape(-1)
        run_parts(_back_up_blocks, self.parts, self.blocks, self.masses.rewards, following, self.w, out)
        _back_up_many(self.many, self.cells, self.masses, self.room, following, self.w, out)


@njit(nogil=True)
def _lay(masses, room, blocks):  # type: ignore[no-untyped-def]
    """Write the outcomes of all blocks, those with room first."""
    _, _, _, _, first, _, after, reward, lower, _, _, _ = masses
    cell, _, begin, fillable, to_after, to_reward, to_lower, to_room = blocks
    for b in range(len(cell)):
        for j in range(LANES):
            k, row = cell[b, j], begin[b]
            for with_room in (True, False):
                for o in range(first[k], first[k + 1]):
                    if (room[o] > 0) == with_room:
                        to_after[row, j], to_reward[row, j] = after[o], reward[o]
                        to_lower[row, j], to_room[row, j] = lower[o], room[o]
                        row += 1
                if with_room:
                    fillable[b] = max(fillable[b], row - begin[b])


@njit(nogil=True)
def _write_w(cells, masses, following, free_value, by_action, w):  # type: ignore[no-untyped-def]
    """Write what is best in some cells: the given value of free mass, or the best seen in the cell, or in the state."""
    rewards, _, state, _, first, _, after, reward, _, _, _, _ = masses
    last_state, best = -1, 0.0
    for k in cells:
        if free_value[k] > -np.inf:
            w[k] = free_value[k]
            continue
        if by_action or state[k] != last_state:
            begin, end, best = k, k + 1, -np.inf
            while not by_action and begin > 0 and state[begin - 1] == state[k]:
                begin -= 1
            while not by_action and end < len(state) and state[end] == state[k]:
                end += 1
            for o in range(first[begin], first[end]):
                value = rewards[reward[o]] + following[after[o]]
                best = value if value > best else best
            last_state = state[k]
        w[k] = best


@njit(nogil=True)
def _back_up_blocks(begin, end, blocks, rewards, following, w, q_values):  # type: ignore[no-untyped-def]
    """Write the bounds of blocks begin .. end - 1 into `q_values` [states * actions]."""
    cell, (target, elsewhere, free, shortfall), first, fillable, after, reward, lower, room = blocks
    values, spare = np.empty((FEW_OUTCOMES, LANES)), np.empty((FEW_OUTCOMES, LANES))
    earned, left = np.empty(LANES), np.empty(LANES)
    for b in range(begin, end):
        for j in range(LANES):
            earned[j], left[j] = elsewhere[b, j] * w[cell[b, j]] - shortfall[b, j], free[b, j]
        for i in range(first[b + 1] - first[b]):
            row = first[b] + i
            for j in range(LANES):
                value = rewards[reward[row, j]] + following[np.uint32(after[row, j])]
                values[i, j], spare[i, j] = value, room[row, j]
                earned[j] += lower[row, j] * value
        for i in range(fillable[b]):
            for below in range(fillable[b] - 1, i, -1):
                _exchange(values, spare, below)
            if not _fill(values, spare, i, earned, left):
                break
        for j in range(LANES):
            q_values[target[b, j]] = earned[j] + left[j] * w[cell[b, j]]


@njit(**INLINED)
def _exchange(values, room, i):  # type: ignore[no-untyped-def]
    """Exchange outcomes i - 1 and i of each cell whose second one is better."""
    for j in range(LANES):
        upper, lower, room_upper, room_lower = values[i - 1, j], values[i, j], room[i - 1, j], room[i, j]
        better = lower > upper
        values[i - 1, j] = lower if better else upper
        values[i, j] = upper if better else lower
        room[i - 1, j] = room_lower if better else room_upper
        room[i, j] = room_upper if better else room_lower


@njit(**INLINED)
def _fill(values, room, i, earned, free):  # type: ignore[no-untyped-def]
    """Fill outcome i of each cell with free mass; return in how many cells some is left."""
    for j in range(LANES):
        more = min(free[j], room[i, j])
        earned[j] += more * values[i, j]
        free[j] -= more
    left = 0
    for j in range(LANES):
        left += free[j] > 0
    return left


@njit(nogil=True)
def _back_up_many(which, cells, masses, room, following, w, q_values):  # type: ignore[no-untyped-def]
    """Do the same for some cells one by one."""
    rewards, _, _, _, first, _, after, reward, lower, _, _, _ = masses
    target, elsewhere, free, shortfall = cells
    most = 0
    for k in which:
        most = max(most, first[k + 1] - first[k])
    values, spare = np.empty(most), np.empty(most)
    for k in which:
        earned, left, end = elsewhere[k] * w[k] - shortfall[k], free[k], 0
        for o in range(first[k], first[k + 1]):
            value = rewards[reward[o]] + following[after[o]]
            earned += lower[o] * value
            values[end], spare[end] = value, room[o]
            end += room[o] > 0
        for o in range(end // 2 - 1, -1, -1):
            _sink(values, spare, o, end)
        while left > 0 and end > 0:
            more = min(left, spare[0])
            earned += more * values[0]
            left -= more
            end -= 1
            values[0], spare[0] = values[end], spare[end]
            _sink(values, spare, 0, end)
        q_values[target[k]] = earned + left * w[k]


@njit(nogil=True, inline="always")
def _sink(values, room, o, end):  # type: ignore[no-untyped-def]
    """Let an outcome of a heap, which is best first, sink below those that are better."""
    value, more = values[o], room[o]
    below = 2 * o + 1
    while below < end:
        if below + 1 < end and values[below + 1] > values[below]:
            below += 1
        if values[below] <= value:
            break
        values[o], room[o] = values[below], room[below]
        o, below = below, 2 * below + 1
    values[o], room[o] = value, more
