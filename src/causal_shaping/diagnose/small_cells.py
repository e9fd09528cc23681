"""Small cells: counts that a page which is shared must not show.

A count from 1 to one below the limit is shown as "fewer than 11"; 0 is shown, and so is what reaches the limit. A share
is withheld where it would give such a count away, or its complement, and otherwise rounded to whole percent. Where one
of several parts of a known total is hidden, so is the smallest other one, for the rest would give it away. Bounds are
not counts and are shown as they are: from few rows with known rewards, they can tell a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from causal_shaping._checks import check_integer

WITHHELD = "withheld"


@dataclass(frozen=True)
class SmallCells:
    """The smallest count that may be shown; None shows all.

    Examples:
        >>> cells = SmallCells(11)
        >>> [cells.count(n) for n in (0, 3, 11, 2500)]
        ['0', 'fewer than 11', '11', '2,500']
        >>> cells.share(1, 3, 300), cells.share(1, 150, 300)
        ('withheld', '50.0%')
        >>> cells.parts([990, 10, 0])
        ['withheld', 'fewer than 11', '0']
    """

    smallest: int | None = None

    def __post_init__(self) -> None:
        if self.smallest is not None:
            check_integer("smallest_cell", self.smallest, least=2)

    def hides(self, n: float) -> bool:
        """Whether a count is too small to be shown."""
        return self.smallest is not None and 0 < n < self.smallest

    def hides_share(self, part: float, total: float) -> bool:
        """Whether a share would give a small count away."""
        return any(map(self.hides, (part, total, total - part)))

    def rounded(self, share: float) -> float:
        """Return a share for other programs, to whole percent where small cells are hidden."""
        return share if self.smallest is None else round(share, 2)

    def plain(self, n: int) -> int | str:
        """Return a count for other programs: a number, or words in its place."""
        return f"fewer than {self.smallest}" if self.hides(n) else int(n)

    def count(self, n: float) -> str:
        """Return a count for people."""
        return str(self.plain(int(n))) if self.hides(n) else f"{n:,.0f}"

    def share(self, digits: int, part: float, total: float) -> str:
        """Return a share for people, as a percentage."""
        return WITHHELD if self.hides_share(part, total) else f"{part / total:.{digits}%}" if total else "-"

    def parts(self, counts: Sequence[float]) -> list[str]:
        """Return counts that add up to a total which is shown.

        What the hidden ones add up to would tell of them, so another is withheld: the smallest that leaves them all
        possible, or all others if none is large enough.
        """
        shown = [self.count(n) for n in counts]
        if self.smallest is not None and any(map(self.hides, counts)):
            others = [i for i, n in enumerate(counts) if n and not self.hides(n)]
            large = [i for i in others if counts[i] >= 2 * self.smallest]
            for i in [min(large, key=lambda i: counts[i])] if large else others:
                shown[i] = WITHHELD
        return shown

    def plain_parts(self, counts: Sequence[int]) -> list[int | str]:
        """Return the same for other programs."""
        shown = self.parts(counts)
        return [int(n) if text == f"{n:,.0f}" else text for n, text in zip(counts, shown, strict=True)]
