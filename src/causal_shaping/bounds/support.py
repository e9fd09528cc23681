"""Which outcomes are possible: what mass that no source has proven may do.

- `any`: anything. No assumption beyond the largest reward.
- `observed`: what was seen to follow the state in any source, after any action. An action that nobody tried in a
  state may do anything; so may every action in a state with few visits, and in one in which a source without
  terminations stopped.
- a table or function of one's own: the states that can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from causal_shaping._checks import check_choice
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.errors import ArgumentError

SUPPORTS = ("any", "observed")
Successors: TypeAlias = Iterable[Label | None]
Support: TypeAlias = str | Mapping[Label, Successors | None] | Callable[[Label, Label], Successors | None]
"""What a user may pass: a name; or, by state, the labels of all states that can follow it, None among them for an end
without a next state; or a function of state and action that returns them. States that a table leaves out, and None in
place of successors, allow anything. An episode may also end in a successor in which an end was seen, or in which no
source acted."""


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
    sources = range(len(counts.sources))
    ended, unknown = counts.terminated, ~counts.outcome_known
    return [i for i in sources if (unknown & (counts.source == i)).any() and not (ended & (counts.source == i)).any()]


def unrestricted_states(counts: Counts, support: Support) -> BoolArray:
    """Return in which states anything is allowed to follow: bool [states].

    All of them under `any`. Under `observed`, those in which a source without terminations stopped, and those in which
    a step with an unknown outcome paid what no step with a known one did: that outcome was never seen.
    """
    result = np.full(len(counts.space.states), support == "any")
    if support == "observed":
        stopped = ~counts.outcome_known & np.isin(counts.source, sources_without_terminations(counts))
        result[counts.state[stopped]] = True
        result[counts.state[_paid_otherwise(counts)]] = True
    return result


def _paid_otherwise(counts: Counts) -> BoolArray:
    """Return which entries with an unknown outcome paid what no known outcome of their state did: bool [entries]."""
    known = counts.outcome_known
    result, doubtful = np.zeros(len(counts), dtype=bool), np.zeros(len(counts.space.states), dtype=bool)
    doubtful[counts.state[~known]] = True
    unknown = np.flatnonzero(~known)
    known = known & doubtful[counts.state]  # most counts know all, and may hold millions of entries
    paid = set(zip(counts.state[known].tolist(), counts.reward_min[known].tolist(), strict=True))
    lowest, highest = (np.full(len(counts.space.states), value) for value in (np.inf, -np.inf))
    np.minimum.at(lowest, counts.state[known], counts.reward_min[known])
    np.maximum.at(highest, counts.state[known], counts.reward_max[known])
    for i in unknown:
        s, low, high = int(counts.state[i]), float(counts.reward_min[i]), float(counts.reward_max[i])
        result[i] = (s, low) not in paid if counts.discrete_rewards else low < lowest[s] or high > highest[s]
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
