"""Small cells: counts that tables, pages and JSON must not show if they leave the building.

`hide_small_cells` returns an inspection whose parts hold words or nothing in place of what must not be shown, so that
whatever is written from it, in whatever format, cannot show it. A count from 1 to one below the limit becomes "fewer
than 11"; 0 stays, and so does what reaches the limit. A share goes where it would give such a count away, or its
complement, and is otherwise rounded to whole percent; so do numbers of single episodes. Where one of several parts of
a known total is hidden, so is the smallest other one, for the rest would give it away. Bounds are not counts and stay
as they are: from few rows with known rewards, they can tell a count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping.data.arrays import FloatArray
from causal_shaping.diagnose.coverage import Coverage, coverage, seen_once
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.diagnose.contradictions import Contradiction, Contradictions
    from causal_shaping.diagnose.inspection import Inspection
    from causal_shaping.diagnose.persistence import PersistenceTest
    from causal_shaping.logs.summary import Summary
    from causal_shaping.logs.table import Dropped

WITHHELD = "withheld"


def count_text(n: int | str) -> str:
    """Return a count for people: words, where it is hidden, as they are."""
    return n if isinstance(n, str) else f"{n:,}"


@dataclass(frozen=True)
class SmallCells:
    """The rules for single counts and shares.

    Attributes:
        smallest: the smallest count that may be shown.

    Examples:
        >>> cells = SmallCells(11)
        >>> [cells.count(n) for n in (0, 3, 11, 2500)]
        [0, 'fewer than 11', 11, 2500]
        >>> cells.share(1 / 100, 300), cells.share(1 / 3, 300)
        (nan, 0.33)
        >>> cells.parts([990, 10, 0])
        ['withheld', 'fewer than 11', 0]
    """

    smallest: int

    def __post_init__(self) -> None:
        check_integer("smallest_cell", self.smallest, least=2)

    def hides(self, n: float) -> bool:
        """Whether a count is too small to be shown."""
        return 0 < n < self.smallest

    def count(self, n: int) -> int | str:
        """Return a count, or words in its place."""
        return f"fewer than {self.smallest}" if self.hides(n) else n

    def share(self, share: float, total: int) -> float:
        """Return a share in whole percent, NaN if it would give away a small count, or one that is left."""
        part = round(share * total)
        return math.nan if any(map(self.hides, (part, total, total - part))) else round(share, 2)

    def parts(self, counts: Sequence[int]) -> list[int | str]:
        """Return counts that add up to a total which is shown.

        What the hidden ones add up to would tell of them, so another is withheld: the smallest that leaves them all
        possible, or all others if none is large enough.
        """
        shown = [self.count(n) for n in counts]
        if any(map(self.hides, counts)):
            others = [i for i, n in enumerate(counts) if n and not self.hides(n)]
            large = [i for i in others if counts[i] >= 2 * self.smallest]
            for i in [min(large, key=lambda i: counts[i])] if large else others:
                shown[i] = WITHHELD
        return shown


def hide_small_cells(found: Inspection, smallest: int) -> Inspection:
    """Return an inspection that shows no count of rows, visits or episodes below a limit; see the module."""
    if found.smallest_cell == smallest:
        return found
    if found.smallest_cell is not None:
        raise ArgumentError(
            f"This inspection hides counts below {found.smallest_cell} already. Hide those below {smallest} in the "
            "inspection that shows all."
        )
    cells = SmallCells(smallest)
    covered = _hide_coverage(found, cells)
    unseen, rarest = _hide_unseen(found, covered, cells)
    return replace(
        found,
        episodes=tuple(_hide_episodes(found, item, cells) for item in found.episodes),
        coverage=covered,
        unseen=unseen,
        unseen_limit=np.full_like(unseen, np.nan),
        rarest_seen=rarest,
        contradictions=_hide_contradictions(found.contradictions, cells),
        persistence=_hide_persistence(found.persistence, cells),
        dropped={origin: _hide_dropped(item, cells) for origin, item in found.dropped.items()},
        smallest_cell=smallest,
    )


def _hide_episodes(found: Inspection, item: Summary, cells: SmallCells) -> Summary:
    ends = [item.terminated, item.truncated, item.unknown]
    # The mean return tells how many episodes were paid what, such as how many patients died.
    own = found.counts.source == found.counts.sources.index(item.source)
    _, reward = np.unique(found.counts.reward_min[own], return_inverse=True)
    paid = np.bincount(reward, found.counts.n[own]).tolist() if found.counts.discrete_rewards else []
    hidden: dict[str, Any] = dict.fromkeys(("longest", "lowest_return", "highest_return"))  # of a single episode
    if cells.hides(item.episodes):
        hidden["mean_length"] = None
    if any(map(cells.hides, (item.episodes, *ends, *paid))):
        hidden["mean_return"] = None
    hidden |= zip(("terminated", "truncated", "unknown"), cells.parts(ends), strict=True)
    hidden |= {"episodes": cells.count(item.episodes), "steps": cells.count(item.steps)}
    return replace(item, **hidden)


def _hide_dropped(item: Dropped, cells: SmallCells) -> Dropped:
    hidden: dict[str, Any] = {"episodes": cells.count(item.episodes), "rows": cells.count(item.rows)}
    hidden["reasons"] = {text: cells.count(n) for text, n in item.reasons.items()}
    return replace(item, **hidden)


def _hide_coverage(found: Inspection, cells: SmallCells) -> Coverage:
    exact = coverage(found.counts, few_visits=cells.smallest)
    visits, shares = exact.visits.astype(object), np.full_like(exact.action_shares, np.nan)
    for i, of_source in enumerate(exact.visits.tolist()):
        visits[i] = cells.parts(of_source)
        for s, n in enumerate(of_source):
            if n and not isinstance(visits[i, s], str):
                shares[i, s] = cells.share(float(exact.action_shares[i, s]), n)
    items = []
    for item in exact.items:
        steps: Any = cells.count(item.steps)
        items.append(replace(item, steps=steps, action_share=cells.share(item.action_share, item.steps)))
    return replace(exact, items=tuple(items), visits=visits, action_shares=shares)


def _hide_unseen(found: Inspection, covered: Coverage, cells: SmallCells) -> tuple[FloatArray, FloatArray]:
    """Return a larger estimate of what was never seen, and a larger share of the rarest, NaN for hidden visits."""
    once, total = seen_once(found.counts)
    once = np.where(once > 0, np.maximum(once, cells.smallest), 0)
    withheld = [any(isinstance(n, str) for n in of_state) for of_state in covered.visits.T.tolist()]
    hidden = (total < cells.smallest) | np.array(withheld)
    unseen = np.ceil(100 * np.minimum(1, once / np.maximum(total, 1))) / 100  # more digits would tell the visits
    rarest = np.ceil(100 * found.rarest_seen) / 100
    return np.where(hidden, np.nan, unseen), np.where(hidden, np.nan, rarest)


def _hide_contradictions(found: Contradictions, cells: SmallCells) -> Contradictions:
    excess = tuple(replace(item, total=math.nan, p_value=math.nan) for item in found.excess)
    return replace(found, items=tuple(_hide_contradiction(item, cells) for item in found.items), excess=excess)


def _hide_contradiction(item: Contradiction, cells: SmallCells) -> Contradiction:
    shares = [
        cells.share(share, n) for share, n in zip((item.first_share, item.second_share), item.visits, strict=True)
    ]
    p_value, confounding = float(f"{item.p_value:.1g}"), item.confounding and float(f"{item.confounding:.2g}")
    if any(map(math.isnan, shares)):  # both tell the shares
        p_value, confounding = math.nan, None if item.confounding is None else math.nan
    # What is left of the visits to the state could be a small cell.
    hidden: dict[str, Any] = {"visits": (None, None), "p_value": p_value, "confounding": confounding}
    return replace(item, first_share=shares[0], second_share=shares[1], **hidden)


def _hide_persistence(found: PersistenceTest, cells: SmallCells) -> PersistenceTest:
    hidden: dict[str, Any] = {
        "p_value": float(f"{found.p_value:.1g}"),  # more digits would tell of counts
        "p_values": np.array([float(f"{p_value:.1g}") for p_value in found.p_values]),
        "compared": np.full(len(found.compared), np.nan),
        "episodes": {source: cells.count(int(n)) for source, n in found.episodes.items()},
        "total_episodes": {source: cells.count(int(n)) for source, n in found.total_episodes.items()},
        "unknown": WITHHELD if found.unknown else 0,
    }
    return replace(found, **hidden)
