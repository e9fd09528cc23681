"""Which states and actions the sources show, and how believable it is that every possible outcome was seen.

- `coverage`: per source, what it shows of the space and how much mass it can prove.
- `unseen_mass`: per state, how much of what follows was probably never seen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping.bounds._compare import known_next_state
from causal_shaping.data.arrays import BoolArray, FloatArray, groups
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import ResultSequence, state_parts, text_table
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.diagnose.small_cells import SmallCells
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

FEW_VISITS = 10
"""Fewer visits to a state than this are called few."""


@dataclass(frozen=True)
class SourceCoverage:
    """What one source shows of the space.

    Attributes:
        source: its name.
        steps: how many actions it took.
        states: in how many states it acted.
        few_visits: labels of the states in which it acted fewer times than the limit.
        unseen_states: labels of the states that none of its rows begins or ends in.
        untried_actions: (state, action) that it never tried, of the states in which it acted.
        action_share: how often it takes its most frequent action, mean over its steps: the mass that a confounded
            source proves at best.
    """

    source: str
    steps: int
    states: int
    few_visits: tuple[Label, ...]
    unseen_states: tuple[Label, ...]
    untried_actions: tuple[tuple[Label, Label], ...]
    action_share: float


@dataclass(frozen=True, eq=False, repr=False)
class Coverage(ResultSequence[SourceCoverage]):
    """What each source shows of the space: a sequence of `SourceCoverage`.

    Attributes:
        counts: what was looked at.
        items: one per source, in the order of the counts.
        limit: fewer visits to a state than this are few.
        smallest_cell: counts below are hidden, see `SmallCells`; None shows all.
    """

    counts: Counts
    items: tuple[SourceCoverage, ...]
    limit: int = FEW_VISITS
    smallest_cell: int | None = None

    @cached_property
    def taken(self) -> FloatArray:
        """How often each source took each action in each state: float64 [sources, states, actions]."""
        return actions_taken(self.counts)

    @cached_property
    def visits(self) -> list[list[int | str]]:
        """How often each source acted in each state, small cells hidden: [sources][states]."""
        cells = SmallCells(self.smallest_cell)
        return [cells.plain_parts(taken.sum(axis=1).astype(int).tolist()) for taken in self.taken]

    def rows(self) -> list[list[str]]:
        """Return a row of text per source, under the heads of `summary`."""
        cells, result = SmallCells(self.smallest_cell), []
        for item in self.items:
            numbers = (item.states, len(item.few_visits), len(item.untried_actions))
            share = cells.share(0, round(item.action_share * item.steps), item.steps)
            result.append([item.source, *(f"{number:,}" for number in numbers), share])
        return result

    HEADS = ("source", "states acted in", "with few visits", "untried actions", "most frequent action")

    def summary(self) -> str:
        """Return a table with a row per source."""
        return text_table(self.HEADS, self.rows(), "Coverage")

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per source and state in which it acted.

        Visits that are hidden are missing, and so are numbers that would give them away.
        """
        import pandas as pd

        cells, space = SmallCells(self.smallest_cell), self.counts.space
        rows: list[dict[str, Any]] = []
        for item, taken, visits in zip(self.items, self.taken, self.visits, strict=True):
            for s in np.flatnonzero(taken.sum(axis=1)).tolist():
                total, most = int(taken[s].sum()), int(taken[s].max())
                hidden = isinstance(visits[s], str)
                rows.append(
                    {
                        "source": item.source,
                        **state_parts(space, s),
                        space.free_name("visits"): None if hidden else visits[s],
                        space.free_name("actions_tried"): int((taken[s] > 0).sum()),
                        space.free_name("most_frequent_action"): space.actions[int(taken[s].argmax())],
                        space.free_name("action_share"): (
                            None if hidden or cells.hides_share(most, total) else cells.rounded(most / total)
                        ),
                    }
                )
        return pd.DataFrame(rows).astype(
            {space.free_name("visits"): "Int64", space.free_name("action_share"): "float64"}
        )

    def as_plain(self) -> list[dict[str, Any]]:
        """Return everything as plain values, for JSON."""
        cells = SmallCells(self.smallest_cell)
        result = []
        for item in self.items:
            hidden = cells.hides_share(round(item.action_share * item.steps), item.steps)
            shown = {
                "steps": cells.plain(item.steps),
                "action_share": None if hidden else cells.rounded(item.action_share),
            }
            result.append(asdict(item) | shown)
        return result

    def __repr__(self) -> str:
        shown = ", ".join(f"{item.source} {item.states}" for item in self.items)
        return f"Coverage(of {len(self.counts.space.states)} states, acted in by {shown})"


def coverage(counts: Counts, *, few_visits: int = FEW_VISITS) -> Coverage:
    """Return what each source shows of the space.

    Args:
        counts: of one or several sources.
        few_visits: states with fewer visits are listed.
    """
    limit = check_integer("few_visits", few_visits)
    items = []
    for i, (source, taken) in enumerate(zip(counts.sources, actions_taken(counts), strict=True)):
        visits = taken.sum(axis=1)
        acted = visits > 0
        entered = np.zeros(len(acted), dtype=bool)
        entered[counts.next_state[(counts.source == i) & (counts.next_state != UNKNOWN)]] = True
        untried = np.argwhere(acted[:, None] & (taken == 0)).tolist()
        covered = SourceCoverage(
            source=source,
            steps=int(visits.sum()),
            states=int(acted.sum()),
            few_visits=_labels(counts, acted & (visits < limit)),
            unseen_states=_labels(counts, ~acted & ~entered),
            untried_actions=tuple((counts.space.states[s], counts.space.actions[x]) for s, x in untried),
            action_share=float(taken.max(axis=1).sum() / visits.sum()),
        )
        items.append(covered)
    return Coverage(counts, tuple(items), limit)


def actions_taken(counts: Counts) -> FloatArray:
    """Return how often each source took each action in each state: float64 [sources, states, actions]."""
    taken = np.zeros((len(counts.sources), len(counts.space.states), len(counts.space.actions)))
    np.add.at(taken, (counts.source, counts.state, counts.action), counts.n)
    return taken


def _labels(counts: Counts, which: BoolArray) -> tuple[Label, ...]:
    return tuple(counts.space.states[s] for s in np.flatnonzero(which))


def unseen_mass(counts: Counts) -> FloatArray:
    """Return, per state, how much of what follows it was probably never seen: float64 [states].

    The Good-Turing estimate: the share of steps whose outcome was seen just once, all sources and actions together.
    NaN where no outcome is known. `observed` support assumes that this mass is zero.
    """
    once, total = seen_once(counts)
    return np.where(total > 0, once / np.maximum(total, 1), np.nan)


def seen_once(counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Return, per state, how many outcomes were seen just once, and how many steps have a known outcome."""
    if counts.population:
        raise ArgumentError("Population counts hold every outcome: there is nothing unseen to estimate.")
    known = counts.outcome_known
    rewards = counts.reward_min if counts.discrete_rewards else np.zeros(len(counts))
    key = [column[known] for column in (counts.state, known_next_state(counts), counts.terminated, rewards)]
    order, first = groups(key)
    n, state = np.add.reduceat(counts.n[known][order], first), key[0][order][first]
    states = len(counts.space.states)
    once = np.bincount(state, n == 1, minlength=states).astype(np.float64)
    return once, np.bincount(state, n, minlength=states).astype(np.float64)
