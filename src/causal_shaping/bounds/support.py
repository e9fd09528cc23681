"""Which outcomes are possible: what mass that no source has proven may do.

- `any`: anything. No assumption beyond the largest reward.
- `observed`: what was seen to follow the state in any source, after any action. An action that nobody tried in a
  state may do anything; so may every action in a state with too few visits (below), and in one in which a source
  without terminations stopped.
- `observed-action`: what was seen to follow the state after that very action, in any source. The exceptions are those
  of `observed`, but for each state and action.
- a table or function of one's own: the states that can follow.

**With confidence** both observed supports say what they assume in a number, `rarest`. Call a *cell* a state under
`observed`, a state and action under `observed-action` (at one step, for counts by step), and let source i have visited
it n_i times with a known outcome, n times in all. A visit of source i leads to outcome o (next state, end, reward) with
a probability p_i(o). Assumed of every outcome o that can follow the cell after an action that some source takes there:

    sum over i of n_i p_i(o) >= rarest * n,

a share of at least `rarest` of the sources' pooled visits, mixed as these logs mix the sources. *Then all cells with*

    n >= ln(cells / (rarest * alpha)) / -ln(1 - rarest)

*visits have shown every such outcome, all at once, with probability 1 - alpha.* Proof. Take the visits to a cell one by
one, in the order in which they happened. Hidden causes are drawn afresh, so that given the past a visit of source i
misses o with probability 1 - p_i(o), and the product of 1 / (1 - p_i(o)) over the visits so far, times the indicator
that o was not seen, is a martingale that starts at 1. By Markov's inequality, whatever ended the logs,

    P( o unseen, and prod over i of (1 - p_i(o))^n_i <= eps ) <= eps.

The product is at most (1 - sum_i n_i p_i(o) / n)^n, as a geometric mean is at most an arithmetic one, and so at most
(1 - rarest)^n where the assumption holds; with enough visits that is eps = rarest * alpha / cells. The shares of all
outcomes add to 1, so that at most 1 / rarest of them have a share of `rarest`, and the union over outcomes and cells
is wrong with probability alpha at most. Cells with fewer visits get `any`. Here alpha is `SUPPORT_SHARE` of
1 - confidence; the limits of masses get the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from causal_shaping._checks import check_choice
from causal_shaping.bounds._parts import entries_of
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.data.successors import ANYTHING, AllowedSuccessors
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.bounds.settings import Settings

SUPPORTS = ("any", "observed", "observed-action")
OBSERVED = SUPPORTS[1:]
"""What unproven mass may do was seen to happen."""

RAREST = 0.01
"""By default no outcome is rarer than this, as a share of the visits to a cell.

Measured with a confidence of 0.95: in six states of which each pays 1 in a share of the visits, all ceilings held in
at least 98% of 60 samples for shares from 0.5% on, whatever the number of visits; at 0.02 the worst was 88%, at 0.05
it was 30%, without any such rule 0. In logs of 100,000 steps a source the paper's worlds lose nothing by it but for
lavacross-easy (a distance of .066 instead of .022); at 0.005 three of the five lose about half or more of what
`observed` gains.
"""

SUPPORT_SHARE = 0.2
"""The part of 1 - confidence that goes to outcomes that no visit has shown."""

Successors: TypeAlias = Iterable[Label | None]
Support: TypeAlias = str | Mapping[Label, Successors | None] | Callable[[Label, Label], Successors | None]
"""What a user may pass: a name; or, by state, the labels of all states that can follow it, None among them for an end
without a next state; or a function of state and action that returns them. States that a table leaves out, and None in
place of successors, allow anything. An episode may also end in a successor in which an end was seen, or in which no
source acted."""


def reward_keys(counts: Counts) -> FloatArray:
    """Return what of an entry's reward is part of its outcome: the reward itself, or its bin: float64 [entries]."""
    bins = counts.space.reward_bins
    return counts.reward_min if bins is None else bins(counts.reward_min).astype(np.float64)


def terminal_states(counts: Counts) -> BoolArray:
    """Whether a state is terminal: declared to be, or entered only to end there while no source acted in it."""
    ends = ended_in(counts)
    ends[counts.next_state[(counts.next_state != UNKNOWN) & ~counts.terminated]] = False
    ends[counts.state] = False
    return counts.space.is_terminal | ends


def ended_in(counts: Counts) -> BoolArray:
    """Whether some source saw an episode end in a state."""
    ends = np.zeros(len(counts.space.states), dtype=bool)
    ends[counts.next_state[(counts.next_state != UNKNOWN) & counts.terminated]] = True
    return ends


def sources_without_terminations(counts: Counts) -> list[int]:
    """Return the sources of which no episode is known to have terminated, though some stop without a known outcome.

    Such logs may lack the column for it: their last steps may have led to an end.
    """
    ended, unknown = (
        np.bincount(counts.source[rows], minlength=len(counts.sources)) > 0
        for rows in (counts.terminated, ~counts.outcome_known)
    )
    return np.flatnonzero(unknown & ~ended).tolist()


def visits_needed(rarest: float, cells: int, alpha: float) -> float:
    """Return how many visits to a cell show all of its outcomes, in all cells at once with probability 1 - alpha.

    Examples:
        >>> round(visits_needed(0.01, cells=49, alpha=0.01)), round(visits_needed(0.05, cells=49, alpha=0.01))
        (1304, 224)
    """
    return math.log(cells / (rarest * alpha)) / -math.log1p(-rarest)


class Unrestricted:
    """In which (s, x) anything is allowed to follow, though some source tried x in s.

    All of them under `any`. Under `observed`, those of states in which a source without terminations stopped, in which
    a step with an unknown outcome paid what no step with a known one did (that outcome was never seen; for counts by
    step, at that step), and in which `rarest` asks for more visits. Under `observed-action` the same for each (s, x).
    Under a support of one's own, none.
    """

    def __init__(self, counts: Counts, support: Support, needed: float | None) -> None:
        """Args: the counts, the support, and how many visits a cell needs, None if any number will do."""
        states, actions = self.shape = len(counts.space.states), len(counts.space.actions)
        self.counts, self.needed, self.by_action = counts, needed, support == "observed-action"
        self.cell: IntArray | LongArray = counts.state
        if self.by_action:
            self.cell = counts.state.astype(np.int64) * actions + counts.action
        self.always = np.full(states * actions if self.by_action else states, support == "any")
        if support in OBSERVED:
            stopped = ~counts.outcome_known & np.isin(counts.source, sources_without_terminations(counts))
            self.always[self.cell[stopped]] = True
        # Entries whose outcome was never seen: what follows their cell at their step is not limited to what was.
        self.paid_otherwise = np.zeros(len(counts), dtype=bool)
        if support in OBSERVED:
            at = self.cell
            if counts.step is not None:
                at = self.cell.astype(np.int64) * (int(counts.step.max(initial=0)) + 1) + counts.step
            self.paid_otherwise = _paid_otherwise(counts, at)

    def at(self, step: int | None = None) -> BoolArray:
        """Return where anything is allowed at a step, or at all: bool [states, actions]."""
        here = entries_of(self.counts, step)
        result = self.always.copy()
        result[self.cell[here][self.paid_otherwise[here]]] = True
        if self.needed is not None:
            n = np.where(self.counts.outcome_known[here], self.counts.n[here], 0.0)
            visits = np.bincount(self.cell[here], n, minlength=len(result))
            result = result | (visits < self.needed)
        return np.broadcast_to(result.reshape(self.shape[0], -1), self.shape)


def unrestricted_cells(counts: Counts, settings: Settings) -> Unrestricted:
    """Return in which (s, x) anything is allowed to follow, with settings checked for these counts."""
    needed = None
    if settings.rarest is not None:
        cells = len(counts.space.states) * (settings.horizon if counts.step_indexed else 1)
        cells *= len(counts.space.actions) if settings.support == "observed-action" else 1
        needed = visits_needed(settings.rarest, cells, settings.support_error)
    return Unrestricted(counts, settings.support, needed)


def _paid_otherwise(counts: Counts, cell: IntArray | LongArray) -> BoolArray:
    """Return which entries with an unknown outcome paid what no known outcome of their cell did: bool [entries]."""
    known = counts.outcome_known
    result = ~known
    if known.all():  # most counts know all, and may hold millions of entries
        return result
    known = known & np.isin(cell, np.unique(cell[~known]))
    distinct, reward = np.unique(reward_keys(counts), return_inverse=True)
    paid = cell.astype(np.int64) * len(distinct) + reward
    result &= ~np.isin(paid, paid[known])
    return result


@dataclass(frozen=True, eq=False)
class Given:
    """A user's support: allowed successors of (s, x), for those that have any listed."""

    pair: LongArray  # [pairs], s * actions + x, rising
    first: LongArray  # [pairs], where the successors of each begin
    after: IntArray  # [successors], a state; the number of states for the end

    def best(self, following: FloatArray, anything: float, shape: tuple[int, int]) -> FloatArray:
        """Return the best that can follow (s, x): float64 [states, actions]; `following` ends with that of an end."""
        result = np.full(shape, anything)
        if len(self.pair):
            result.ravel()[self.pair] = np.maximum.reduceat(following[self.after], self.first)
        return result


def given_support(counts: Counts, support: Support) -> Given | None:
    """Return a user's support as arrays; None if it is one of `SUPPORTS`."""
    if isinstance(support, str):
        more = ", a table {state: successors} or a function of state and action"
        check_choice("support", support, SUPPORTS, more)
        return None
    space, table = counts.space, {}
    for s, x, successors in _listed(counts, support):
        if successors is None:
            continue
        if isinstance(successors, str):
            raise ArgumentError(
                f"support gives the string {successors!r} after {space.states[s]!r}. Give a list of states."
            )
        allowed = {len(space.states) if label is None else space.state_position(label) for label in successors}
        if not allowed:
            raise ArgumentError(
                f"support allows nothing after {space.actions[x]!r} in {space.states[s]!r}. Name at least one state, "
                "None for an end, or leave the state out to allow anything."
            )
        table[s * len(space.actions) + x] = allowed
    _refuse_excluded(counts, table)
    # An episode continues from a successor that is not terminal; and it may end there if an end was seen there, or if
    # no source acted there.
    end, terminal, ends = len(space.states), terminal_states(counts), ended_in(counts)
    ends[np.bincount(counts.state, minlength=end) == 0] = True
    pairs = sorted(table)
    rows = [
        [s for s in allowed if s == end or not terminal[s]] + [end] * any(s == end or ends[s] for s in allowed)
        for allowed in (table[pair] for pair in pairs)
    ]
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    after = np.array([s for row in rows for s in row], dtype=np.int32)
    return Given(np.array(pairs, dtype=np.int64), np.cumsum(lengths) - lengths, after)


def _listed(counts: Counts, support: Support) -> Iterable[tuple[int, int, Successors | None]]:
    """Yield what is given for each (s, x)."""
    space = counts.space
    if isinstance(support, Mapping):
        for label, successors in support.items():
            s = space.state_position(label)
            held = successors if successors is None or isinstance(successors, str) else tuple(successors)
            yield from ((s, x, held) for x in range(len(space.actions)))
    elif callable(support):
        for s, state in enumerate(space.states):
            yield from ((s, x, support(state, action)) for x, action in enumerate(space.actions))
    else:
        raise ArgumentError(f"support is {support!r}; it must be a name, a table {{state: successors}} or a function.")


def _refuse_excluded(counts: Counts, table: Mapping[int, set[int]]) -> None:
    """Refuse a support without an outcome that a source saw."""
    space, size = counts.space, len(counts.space.states) + 1
    pair = counts.state.astype(np.int64) * len(space.actions) + counts.action
    after = np.where(counts.next_state == UNKNOWN, size - 1, counts.next_state)
    listed = np.isin(pair, np.fromiter(table, dtype=np.int64))
    allowed = np.fromiter((key * size + s for key, values in table.items() for s in values), dtype=np.int64)
    excluded = counts.outcome_known & listed & ~np.isin(pair * size + after, allowed)
    if excluded.any():
        entry = int(np.argmax(excluded))
        s, x, after_it = counts.state[entry], counts.action[entry], counts.next_state[entry]
        what = "an end (None)" if after_it == UNKNOWN else f"state {space.states[after_it]!r}"
        raise ArgumentError(
            f"support leaves out {what} after {space.actions[x]!r} in {space.states[s]!r}, but source "
            f"{counts.sources[counts.source[entry]]!r} saw it. Allow it there."
        )


def allowed_successors(counts: Counts, settings: Settings) -> AllowedSuccessors | None:
    """Return what ceilings take to be possible after each (s, x), with settings checked for these counts.

    None if they exclude nothing. Counts by step allow at every step what they allow at any.
    """
    if settings.method != "joint" or settings.support == "any":
        return None
    row: IntArray = np.full(counts.space.is_admissible.shape, ANYTHING, dtype=np.int32)
    given = given_support(counts, settings.support)
    if given is not None:
        row.ravel()[given.pair] = np.arange(len(given.pair))
        first = np.append(given.first, len(given.after))
        return AllowedSuccessors(row, first, given.after, np.full(len(given.after), settings.reward_bound))
    unrestricted, known = unrestricted_cells(counts, settings), counts.outcome_known
    pair = counts.state.astype(np.int64) * row.shape[1] + counts.action
    limited = np.ones(row.shape, dtype=bool)
    for step in [None] if counts.step is None else range(settings.horizon):
        here = entries_of(counts, step)
        tried = np.bincount(pair[here][known[here]], minlength=row.size) > 0
        limited &= tried.reshape(row.shape) & ~unrestricted.at(step)
    rows = row.size if unrestricted.by_action else len(row)
    row[limited] = np.broadcast_to(np.arange(rows).reshape(len(row), -1), row.shape)[limited]
    highest, bins = counts.reward_max, counts.space.reward_bins
    if bins is not None:  # free mass in a bin may pay all that the bin holds
        highest = np.minimum(np.append(bins.edges, np.inf)[bins(highest)], settings.reward_bound)
    size = len(row) + 1
    key = unrestricted.cell.astype(np.int64) * size + np.where(counts.terminated, size - 1, counts.next_state)
    key, highest = key[known], highest[known]
    order = np.argsort(key, kind="stable")
    key = key[order]
    begin = np.flatnonzero(begins(key))
    distinct = key[begin]
    first = np.searchsorted(distinct, np.arange(rows + 1) * size)
    return AllowedSuccessors(row, first, (distinct % size).astype(np.int32), np.maximum.reduceat(highest[order], begin))
