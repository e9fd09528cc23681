"""Which states and actions the sources show, and what their visits say of outcomes that none of them saw.

- `coverage`: per source, what it shows of the space and how much mass it can prove.
- `unseen_mass`: per state, an estimate of how much of what follows was never seen.
- `unseen_limit`: an upper limit of it.
- `rarest_seen`: per state, the share above which every outcome would have been seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from causal_shaping._checks import check_integer, check_probability
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, groups
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import DataFrame, ResultSequence, data_frame, state_parts, text_table
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.diagnose._compare import outcome_codes
from causal_shaping.errors import ArgumentError

FEW_VISITS = 10
"""Fewer visits to a state than this are called few."""

BETS = ((0.9, 1.0), (0.6, 0.9), (0.5, 0.6), (0.8, 0.4))
"""The pairs of rho and c that the limit of unseen mass averages over: good for few and for many rare outcomes."""

BLOCK = 20_000
"""About so many outcomes are worked on at a time."""

BISECTIONS = 30
"""How often an interval of limits is halved."""


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
        visits: how often each source acted in each state: int64 [sources, states], or words where small cells are
            hidden.
        actions_tried: how many actions each source tried in each state: int64 [sources, states].
        most_frequent: which action each source took most: int64 [sources, states].
        action_shares: how often that was, as a share of the visits: float64 [sources, states], NaN without visits and
            where small cells are hidden.
    """

    counts: Counts
    items: tuple[SourceCoverage, ...]
    limit: int
    visits: Any
    actions_tried: LongArray
    most_frequent: LongArray
    action_shares: FloatArray

    def rows(self) -> list[list[str]]:
        """Return a row of text per source, under the heads of `summary`."""
        result = []
        for item in self.items:
            numbers = (item.states, len(item.few_visits), len(item.untried_actions))
            result.append([item.source, *(f"{number:,}" for number in numbers), share_text(item.action_share)])
        return result

    HEADS = ("source", "states acted in", "with few visits", "untried actions", "most frequent action")

    def summary(self) -> str:
        """Return a table with a row per source."""
        return text_table(self.HEADS, self.rows(), "Coverage")

    def to_pandas(self) -> DataFrame:
        """Return a row per source and state in which it acted; hidden numbers are missing."""
        space = self.counts.space
        rows: list[dict[str, Any]] = []
        for i, s in np.argwhere(self.actions_tried).tolist():
            visits = self.visits[i, s]
            rows.append(
                {
                    "source": self.items[i].source,
                    **state_parts(space, s),
                    space.free_name("visits"): None if isinstance(visits, str) else visits,
                    space.free_name("actions_tried"): self.actions_tried[i, s],
                    space.free_name("most_frequent_action"): space.actions[self.most_frequent[i, s]],
                    space.free_name("action_share"): self.action_shares[i, s],
                }
            )
        return data_frame(rows).astype({space.free_name("visits"): "Int64", space.free_name("action_share"): "float64"})

    def as_plain(self) -> list[dict[str, Any]]:
        """Return everything as plain values, for JSON."""
        return [asdict(item) for item in self.items]

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
    items, taken_by_source = [], counts.actions_taken()
    ends = np.searchsorted(counts.source, np.arange(len(counts.sources) + 1, dtype=np.int32))
    parts = itertools.starmap(slice, itertools.pairwise(ends.tolist()))
    for source, part, taken in zip(counts.sources, parts, taken_by_source, strict=True):
        visits = taken.sum(axis=1)
        acted = visits > 0
        entered = np.zeros(len(acted), dtype=bool)
        following = counts.next_state[part]
        entered[following[following != UNKNOWN]] = True
        untried = np.nonzero(acted[:, None] & (taken == 0) & counts.space.is_admissible)
        covered = SourceCoverage(
            source=source,
            steps=int(visits.sum()),
            states=int(acted.sum()),
            few_visits=_labels(counts, acted & (visits < limit)),
            unseen_states=_labels(counts, ~acted & ~entered),
            untried_actions=tuple(
                zip(*map(_chosen, (counts.space.states, counts.space.actions), untried), strict=True)
            ),
            action_share=float(taken.max(axis=1).sum() / visits.sum()),
        )
        items.append(covered)
    visits = taken_by_source.sum(axis=2)
    shares = np.divide(taken_by_source.max(axis=2), visits, out=np.full_like(visits, np.nan), where=visits > 0)
    tried, most = (taken_by_source > 0).sum(axis=2), taken_by_source.argmax(axis=2)
    return Coverage(counts, tuple(items), limit, visits.astype(np.int64), tried, most, shares)


def share_text(share: float) -> str:
    """Return a share in whole percent for people; words if it is hidden."""
    return "withheld" if math.isnan(share) else f"{share:.0%}"


def _labels(counts: Counts, which: BoolArray) -> tuple[Label, ...]:
    return tuple(_chosen(counts.space.states, np.flatnonzero(which)))


def _chosen(labels: Sequence[Label], places: LongArray) -> Iterator[Label]:
    return map(labels.__getitem__, places.tolist())


def unseen_mass(counts: Counts) -> FloatArray:
    """Return an estimate, per state, of how much of what follows it was never seen: float64 [states].

    The Good-Turing estimate: the share of steps whose outcome was seen just once, all sources and actions together.
    NaN where no outcome is known. An estimate of 0 does not mean that nothing is missing; `unseen_limit` is an upper
    limit. `observed` support assumes that this mass is zero.
    """
    once, total = seen_once(counts)
    return np.where(total > 0, once / np.maximum(total, 1), np.nan)


def unseen_limit(counts: Counts, *, confidence: float = 0.95) -> FloatArray:
    """Return an upper limit, per state, of how much of what follows it was never seen: float64 [states].

    All limits hold at once with probability `confidence`, if the visits to a state are independent draws from one
    distribution, the mixture of the sources' in proportion to their visits. NaN where no outcome is known.

    *Proof.* Let n visits come in a random order, and M_t be the probability of what t visits have not shown yet. The
    next visit shows something new with probability M_t, and M_t never rises. Keep each visit for a second part with
    probability rho, let it have m visits, N of which show what was not seen before. If M_n >= theta, each of them did
    so with probability theta or more, so for 0 < c <= 1

        E[ (1 - c)^N / (1 - c theta)^m  1{M_n >= theta} ]  <=  1.

    The mean of this over all ways to choose the second part is known: with n_o visits that showed outcome o,

        product over o of  (1 - rho + rho / (1 - c theta))^n_o  -  c (rho / (1 - c theta))^n_o,

    and so is a mean over several rho and c. By Markov's inequality M_n >= theta, while that mean reaches 1 / alpha, has
    a probability of at most alpha. The limit is the smallest such theta; alpha is (1 - confidence) / (number of states
    with a known outcome).
    """
    check_probability("confidence", confidence, example="0.95")
    n, state = _outcomes_of_states(counts)
    begin = np.flatnonzero(np.diff(state, prepend=-1))
    result = np.full(len(counts.space.states), np.nan)
    wanted = math.log(len(begin) / (1 - confidence)) if len(begin) else 0.0
    edges = np.unique([*np.searchsorted(begin, np.arange(0, len(n), BLOCK)).tolist(), len(begin)])
    for one, other in itertools.pairwise(edges.tolist()):  # blocks that fit into the processor's cache
        first = begin[one:other]
        last = begin[other] if other < len(begin) else len(n)
        result[state[first]] = _unseen_limits(n[first[0] : last], first - first[0], wanted)
    return result


def _unseen_limits(n: FloatArray, begin: LongArray, wanted: float) -> FloatArray:
    """Return the smallest theta of each state at which the mean of all bets reaches exp(wanted)."""
    place = np.repeat(np.arange(len(begin)), np.diff(np.append(begin, len(n))))
    visits = np.add.reduceat(n, begin)
    below, above = np.zeros(len(begin)), np.ones(len(begin))
    for _ in range(BISECTIONS):
        theta = (below + above) / 2
        parts = []
        for rho, c in BETS:
            kept = rho / (1 - c * theta)
            whole = 1 - rho + kept
            of_outcome = np.log1p(-c * (kept / whole)[place] ** n)
            parts.append(visits * np.log(whole) + np.add.reduceat(of_outcome, begin))
        reached = np.logaddexp.reduce(parts, axis=0) - math.log(len(BETS)) >= wanted
        below, above = np.where(reached, below, theta), np.where(reached, theta, above)
    return above


def rarest_seen(counts: Counts, *, confidence: float = 0.95) -> FloatArray:
    """Return, per state, the share above which every outcome would have been seen: float64 [states].

    An outcome that follows a share q of the sources' pooled visits to s, all actions together, is missed by n
    independent visits with probability (1 - q)^n at most; there are at most 1 / q outcomes of such a share. So none
    above x was missed in any of the states, with probability `confidence`, if (1 - x)^n / x is at most
    (1 - confidence) / (number of states with a known outcome). NaN where no outcome is known. This is what the
    argument `rarest` of `value_ceilings` is about: `observed` support needs that everything that can follow is more
    frequent than that.
    """
    check_probability("confidence", confidence, example="0.95")
    _, n = seen_once(counts)
    wanted = math.log((1 - confidence) / max(1, int((n > 0).sum())))
    below, above = np.zeros(len(n)), np.ones(len(n))
    for _ in range(BISECTIONS):
        share = (below + above) / 2
        reached = n * np.log1p(-share) - np.log(share) <= wanted
        below, above = np.where(reached, below, share), np.where(reached, share, above)
    return np.where(n > 0, above, np.nan)


def seen_once(counts: Counts) -> tuple[FloatArray, FloatArray]:
    """Return, per state, how many outcomes were seen just once, and how many steps have a known outcome."""
    n, state = _outcomes_of_states(counts)
    states = len(counts.space.states)
    once = np.bincount(state, n == 1, minlength=states).astype(np.float64)
    return once, np.bincount(state, n, minlength=states).astype(np.float64)


def _outcomes_of_states(counts: Counts) -> tuple[FloatArray, IntArray]:
    """Return how often each known outcome followed a state, and the states, rising."""
    if counts.population:
        raise ArgumentError("Population counts hold every outcome: there is nothing unseen to estimate.")
    known = counts.outcome_known
    of_entry = counts.state[known]
    order, first = groups([of_entry, outcome_codes(counts)[known]])
    n = np.add.reduceat(counts.n[known][order], first) if len(first) else np.zeros(0)
    return n, of_entry[order][first]
