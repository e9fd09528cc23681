"""Which outcomes unproven mass may have, and where the logs have shown enough to say so.

- "any": anything. No assumption beyond the largest reward.
- "observed": what followed the state in some source, after any action.
- "observed-action": what followed the state after that very action, in some source.
- a table or function of the user's own: the states that can follow.

Under both observed supports anything may follow an action that nobody tried in the state. Call a
*cell* a state under "observed", a state and action under "observed-action" (at one step, for counts
by step). Anything may also follow a cell whose logs are too vague to rule outcomes out: a source
that never logs an end stopped there, or a step with an unknown outcome paid what no known one did.

**With confidence** an observed support says in a number, `rarest`, what it assumes. Let source i
have visited a cell n_i times with a known outcome, n times in all, and let a visit of source i lead
to outcome o with probability p_i(o). Assumed of every outcome that can follow the cell, after an
action that some source takes there:

    sum over i of n_i p_i(o) >= rarest * n,

a share of at least `rarest` of the sources' pooled visits. Then all cells with

    n >= log(cells / (rarest * alpha)) / -log(1 - rarest)

visits have shown every such outcome, at once, with probability 1 - alpha; cells with fewer visits
get "any". *Proof.* Take the visits to a cell in the order in which they happened. Hidden causes are
drawn afresh, so given the past a visit of source i misses o with probability 1 - p_i(o), and the
product of 1 / (1 - p_i(o)) over the visits so far, times the indicator that o is still unseen, is a
martingale that starts at 1. By Markov's inequality, whatever ended the logs, the probability that o
is unseen while the product of the (1 - p_i(o))^n_i is at most eps, is at most eps. A geometric mean
is at most an arithmetic one, so that product is at most (1 - rarest)^n, which is
eps = rarest * alpha / cells after enough visits. At most 1 / rarest outcomes of a cell have a share
of `rarest`, and the union bound over outcomes and cells does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from causal_shaping._checks import check_choice
from causal_shaping.bounds.outcomes import place_of_rows, reward_keys
from causal_shaping.bounds.settings import SUPPORTS, Settings, Successors, Support
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, begins
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN
from causal_shaping.data.successors import ANYTHING, AllowedSuccessors
from causal_shaping.errors import ArgumentError


def visits_needed(rarest: float, cells: int, alpha: float) -> float:
    """Return how many visits show all outcomes, in all cells at once, with probability 1 - alpha.

    Examples:
        >>> round(visits_needed(0.01, cells=49, alpha=0.01))
        1304
    """
    return math.log(cells / (rarest * alpha)) / -math.log1p(-rarest)


def anything_may_follow(counts: Counts, settings: Settings) -> BoolArray:
    """Return where anything may follow, although some source tried the action.

    Returns:
        bool [steps, states, actions], with one step for counts that pool them. All true for "any",
        all false for a support of the user's own.
    """
    states, actions = counts.space.is_admissible.shape
    steps = settings.horizon if counts.step_indexed else 1
    shape = (steps, states, actions)
    if not isinstance(settings.support, str):
        return np.zeros(shape, dtype=bool)
    if settings.support == "any":
        return np.ones(shape, dtype=bool)

    cell, columns = _cells(counts, settings.support)
    result = np.zeros(steps * states * columns, dtype=bool)
    # An unknown outcome could have been any where the log cannot tell an end from a cut. For counts
    # by step that holds of the cell at all steps.
    stopped = ~counts.outcome_known & np.isin(counts.source, sources_without_ends(counts))
    if stopped.any():
        result.reshape(steps, -1)[:, cell[stopped] % (states * columns)] = True
    # And where a step with an unknown outcome paid what no known outcome of the cell did.
    result[cell[_paid_otherwise(counts, cell)]] = True
    # A short log has not shown every outcome.
    if settings.rarest is not None:
        needed = visits_needed(settings.rarest, len(result), settings.support_error)
        known_visits = np.bincount(cell, counts.n * counts.outcome_known, len(result))
        result |= known_visits < needed
    return np.broadcast_to(result.reshape(steps, states, columns), shape)


def _cells(counts: Counts, support: str) -> tuple[LongArray, int]:
    """Return the cell of each row under an observed support, and how many a state has at a step."""
    place, actions = place_of_rows(counts), len(counts.space.actions)
    if support == "observed-action":
        return place * actions + counts.action, actions
    return place, 1


def sources_without_ends(counts: Counts) -> LongArray:
    """Return the sources that never log an end, though some of their outcomes are unknown.

    Such a log may lack the column that says whether an episode ended.
    """
    size = len(counts.sources)
    ends = np.bincount(counts.source[counts.terminated], minlength=size) > 0
    unknown = np.bincount(counts.source[~counts.outcome_known], minlength=size) > 0
    return np.flatnonzero(unknown & ~ends)


def _paid_otherwise(counts: Counts, cell: LongArray) -> BoolArray:
    """Return the rows with an unknown outcome that paid what no known outcome of the cell did."""
    known = counts.outcome_known
    if known.all():  # the usual case, and counts may hold millions of rows
        return np.zeros(len(known), dtype=bool)
    distinct, reward = np.unique(reward_keys(counts), return_inverse=True)
    paid = cell * len(distinct) + reward
    return np.asarray(~known & ~np.isin(paid, paid[known]))


def terminal_states(counts: Counts) -> BoolArray:
    """Return which states end an episode: declared, or entered only to end, without any action."""
    terminal = _ended_in(counts)
    terminal[counts.next_state[(counts.next_state != UNKNOWN) & ~counts.terminated]] = False
    terminal[counts.state] = False
    return counts.space.is_terminal | terminal


def _ended_in(counts: Counts) -> BoolArray:
    """Return in which states some source saw an episode end."""
    ends = np.zeros(len(counts.space.states), dtype=bool)
    ends[counts.next_state[(counts.next_state != UNKNOWN) & counts.terminated]] = True
    return ends


# A support of the user's own ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OwnSupport:
    """The successors that a user allows, for the pairs of state and action with any listed."""

    pair: LongArray  # [pairs], state * actions + action, rising
    first: LongArray  # [pairs], where the successors of each pair begin
    after: IntArray  # [successors], a state; the number of states for an end

    def best(self, following: FloatArray, anything: float, shape: tuple[int, int]) -> FloatArray:
        """Return the best that can follow each state and action: float64 [states, actions].

        Args:
            following: the values of the next states, and at the end that of an end.
            anything: the best that follows a pair without a list.
            shape: the numbers of states and actions.
        """
        result = np.full(shape, anything)
        if len(self.pair):
            result.ravel()[self.pair] = np.maximum.reduceat(following[self.after], self.first)
        return result


def own_support(counts: Counts, support: Support) -> OwnSupport | None:
    """Return a user's support as arrays; None if it is one of `SUPPORTS`."""
    if isinstance(support, str):
        more = ", a table {state: successors} or a function of state and action"
        check_choice("support", support, SUPPORTS, more)
        return None
    # What is allowed after each pair of state and action, checked against the logs.
    space, allowed = counts.space, dict[int, set[int]]()
    for s, x, successors in _listed(counts, support):
        if successors is None:
            continue
        if isinstance(successors, str):
            raise ArgumentError(
                f"support gives the string {successors!r} after {space.states[s]!r}. Give a list "
                "of states."
            )
        places = [len(space.states) if t is None else space.state_position(t) for t in successors]
        if not places:
            raise ArgumentError(
                f"support allows nothing after {space.actions[x]!r} in {space.states[s]!r}. Name "
                "at least one state, None for an end, or leave the state out to allow anything."
            )
        allowed[s * len(space.actions) + x] = set(places)
    _refuse_excluded(counts, allowed)
    # An episode continues from a successor that is not terminal. It may also end there if an end
    # was seen there, or if no source acted there.
    end, terminal, ends = len(space.states), terminal_states(counts), _ended_in(counts)
    ends[np.bincount(counts.state, minlength=end) == 0] = True
    pairs, rows = sorted(allowed), []
    for pair in pairs:
        after = [s for s in allowed[pair] if s == end or not terminal[s]]
        if any(s == end or ends[s] for s in allowed[pair]):
            after.append(end)
        rows.append(after)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    flat = np.array([s for row in rows for s in row], dtype=np.int32)
    return OwnSupport(np.array(pairs, dtype=np.int64), np.cumsum(lengths) - lengths, flat)


def _listed(counts: Counts, support: Support) -> Iterable[tuple[int, int, Successors | None]]:
    """Yield what a user lists for each state and action."""
    space = counts.space
    if isinstance(support, Mapping):
        for label, successors in support.items():
            s = space.state_position(label)
            if not isinstance(successors, str | None):
                successors = tuple(successors)  # it may be an iterator, and is read once an action
            yield from ((s, x, successors) for x in range(len(space.actions)))
    elif callable(support):
        for s, state in enumerate(space.states):
            yield from ((s, x, support(state, action)) for x, action in enumerate(space.actions))
    else:
        raise ArgumentError(
            f"support is {support!r}; it must be a name, a table {{state: successors}} or a "
            "function."
        )


def _refuse_excluded(counts: Counts, allowed: Mapping[int, set[int]]) -> None:
    """Refuse a support without an outcome that a source saw."""
    space, size = counts.space, len(counts.space.states) + 1
    pair = counts.state.astype(np.int64) * len(space.actions) + counts.action
    after = np.where(counts.next_state == UNKNOWN, size - 1, counts.next_state)
    listed = np.isin(pair, np.fromiter(allowed, dtype=np.int64))
    keys = (key * size + s for key, successors in allowed.items() for s in successors)
    excluded = np.isin(pair * size + after, np.fromiter(keys, dtype=np.int64), invert=True)
    excluded &= counts.outcome_known & listed
    if not excluded.any():
        return
    row = int(np.argmax(excluded))
    what = "an end (None)"
    if counts.next_state[row] != UNKNOWN:
        what = f"state {space.states[counts.next_state[row]]!r}"
    raise ArgumentError(
        f"support leaves out {what} after {space.actions[counts.action[row]]!r} in "
        f"{space.states[counts.state[row]]!r}, but source "
        f"{counts.sources[counts.source[row]]!r} saw it. Allow it there."
    )


# What the monitor of an agent's steps is told ----------------------------------------------------


def allowed_successors(counts: Counts, settings: Settings) -> AllowedSuccessors | None:
    """Return what ceilings take to be possible after each state and action, at any step.

    None if they exclude nothing. Settings are those checked for the counts.
    """
    if settings.method != "joint" or settings.support == "any":
        return None
    own = own_support(counts, settings.support)
    if own is None:
        assert isinstance(settings.support, str)
        return _observed_successors(counts, settings, settings.support)
    row = np.full(counts.space.is_admissible.shape, ANYTHING, dtype=np.int32)
    row.ravel()[own.pair] = np.arange(len(own.pair))
    highest = np.full(len(own.after), settings.reward_bound)
    return AllowedSuccessors(row, np.append(own.first, len(own.after)), own.after, highest)


def _observed_successors(counts: Counts, settings: Settings, support: str) -> AllowedSuccessors:
    """Return what an observed support takes to be possible, all steps together."""
    states, actions = counts.space.is_admissible.shape
    known = counts.outcome_known

    # A pair of state and action is limited if at every step it was tried and the logs say enough.
    free = anything_may_follow(counts, settings)
    cell = place_of_rows(counts)[known] * actions + counts.action[known]
    tried = np.bincount(cell, minlength=free.size).reshape(free.shape) > 0
    limited = (tried & ~free).all(axis=0)
    pooled = counts.state.astype(np.int64)
    rows = np.arange(states)[:, None]
    if support == "observed-action":
        pooled = pooled * actions + counts.action
        rows = np.arange(states * actions).reshape(states, actions)
    row = np.where(limited, rows, ANYTHING).astype(np.int32)

    # What followed, and the most that it paid; unproven mass in a bin may pay all that it holds.
    highest, bins = counts.reward_max, counts.space.reward_bins
    if bins is not None:
        highest = np.append(bins.edges, np.inf)[bins(highest)]
        highest = np.minimum(highest, settings.reward_bound)
    size = states + 1
    key = pooled * size + np.where(counts.terminated, states, counts.next_state)
    key, highest = key[known], highest[known]
    order = np.argsort(key, kind="stable")
    key = key[order]
    begin = np.flatnonzero(begins(key))
    distinct = key[begin]
    first = np.searchsorted(distinct, np.arange(rows.size + 1) * size)
    after = (distinct % size).astype(np.int32)
    return AllowedSuccessors(row, first, after, np.maximum.reduceat(highest[order], begin))
