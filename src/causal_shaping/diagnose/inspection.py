"""What logs are worth, before anything is bounded: the job of `causal-shaping inspect`.

- `inspect`: open, check, summarise, count and compare logs.
- `Inspection`: what was found, in words, as a table, a figure and a page.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds.support import sources_without_ends
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import DataFrame, Result, frame_by_state, json_text, text_table
from causal_shaping.data.space import Admissible
from causal_shaping.data.words import state_text
from causal_shaping.diagnose.contradictions import LEVEL, Contradictions, contradictions
from causal_shaping.diagnose.coverage import Coverage, coverage, rarest_seen, unseen_limit, unseen_mass
from causal_shaping.diagnose.persistence import PersistenceTest, persistence_test
from causal_shaping.diagnose.small_cells import WITHHELD, count_text, hide_small_cells
from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import Item, count, opened_logs
from causal_shaping.logs.summary import Summary, summarise
from causal_shaping.logs.table import Dropped

MANY_UNKNOWN = 0.01
"""If more than this share of a source's episodes have an unknown end, that comes first."""

TESTED_EPISODES = 5_000
"""So many episodes of a source are tested for hidden causes that last."""


@dataclass(frozen=True, eq=False, repr=False)
class Inspection(Result):
    """What was found in logs; made by `inspect`.

    Attributes:
        counts: what the logs hold, counted.
        episodes: what the episodes of each source look like.
        coverage: which states and actions each source shows.
        unseen: an estimate of how much of what follows a state was never seen, see `unseen_mass`: float64 [states].
        unseen_limit: an upper limit of it at 95%, see `unseen_limit`: float64 [states].
        rarest_seen: the share above which every outcome would have been seen, see `rarest_seen`: float64 [states].
        contradictions: where two sources cannot both be unconfounded.
        persistence: whether what follows an action depends on the episode's past.
        dropped: what was left out, by the name of the log.
        metadata: what the logs say of their origin, one for each log.
        smallest_cell: counts below are hidden in all parts but `counts`, see `hide_small_cells`; None: none are.
    """

    counts: Counts
    episodes: tuple[Summary, ...]
    coverage: Coverage
    unseen: FloatArray
    unseen_limit: FloatArray
    rarest_seen: FloatArray
    contradictions: Contradictions
    persistence: PersistenceTest
    dropped: Mapping[str, Dropped]
    metadata: tuple[Mapping[str, str], ...] = ()
    smallest_cell: int | None = None

    def without_small_cells(self, smallest_cell: int) -> Inspection:
        """Return the same without counts from 1 to one below a limit, such as 11, to be shared; see `SmallCells`."""
        return hide_small_cells(self, smallest_cell)

    HEADS = ("source", "episodes", "steps", "length", "terminated", "truncated", "unknown", "return", "rewards")

    def rows(self) -> list[list[str]]:
        """Return a row of text per source, under the heads of the episodes."""
        return [self._row(item) for item in self.episodes]

    @staticmethod
    def _row(item: Any) -> list[str]:
        longest = "" if item.longest is None else f" (longest {item.longest})"
        returns = "" if item.lowest_return is None else f" ({item.lowest_return:.3g} to {item.highest_return:.3g})"
        return [
            item.source,
            count_text(item.episodes),
            count_text(item.steps),
            WITHHELD if item.mean_length is None else f"{item.mean_length:.1f}{longest}",
            *map(count_text, (item.terminated, item.truncated, item.unknown)),
            WITHHELD if item.mean_return is None else f"{item.mean_return:.3g}{returns}",
            f"{item.lowest_reward:.3g} to {item.highest_reward:.3g}",
        ]

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        states = self.counts.space.states
        acted = np.zeros(len(states), dtype=bool)
        acted[self.counts.state] = True
        rest = "" if acted.all() else f"; the other {(~acted).sum()} are terminal, or no source acted in them"
        result = [f"At least one source acted in {acted.sum()} of {len(states)} states{rest}."]
        best = max(self.coverage, key=lambda item: item.action_share)
        if not any(math.isnan(item.action_share) for item in self.coverage):
            result.append(
                f"A confounded source proves at most what it does: {best.source} takes its most frequent action in "
                f"{best.action_share:.0%} of its steps, the most of all."
            )
        for item in self.coverage:
            if item.untried_actions:
                pairs = f"{len(item.untried_actions)} pair{'s' if len(item.untried_actions) > 1 else ''}"
                result.append(f"{item.source} never tried {pairs} of (state, action) in the states in which it acted.")
            if item.few_visits:
                result.append(
                    f"{item.source} acted in {len(item.few_visits)} states fewer than {self.coverage.limit} times."
                )
        ends = self._unknown_ends()
        first, later = (ends, []) if self._many_unknown_ends else ([], ends)
        result = [*first, *result, self._unseen(), *later, *self.persistence.findings()]
        return [*result, *self.contradictions.findings()]

    @property
    def _many_unknown_ends(self) -> bool:
        """Whether unknown ends concern many episodes; any where small cells are hidden, as the order would tell."""
        if self.smallest_cell is not None:
            return any(item.unknown != 0 for item in self.episodes)
        return any(item.unknown > MANY_UNKNOWN * item.episodes for item in self.episodes)

    def _unseen(self) -> str:
        if not self.counts.outcome_known.any():
            return "No row tells what followed it: nothing can be bounded. Are next states or flags missing?"
        space, seen = self.counts.space, self.unseen[~np.isnan(self.unseen)]
        if self.smallest_cell is None:
            worst = int(np.nanargmax(self.unseen_limit))
            half, most = _percent(np.nanmedian(self.unseen_limit)), _percent(self.unseen_limit[worst])
            text = (
                f"An estimated {seen.mean():.2%} of what follows a state was never seen (Good-Turing; mean over "
                f"states); at most {half} in half of the states, and at most {most} in {state_text(space, worst)} "
                "(limits at 95%, for all states together)."
            )
        elif not len(seen):
            text = "How much of what follows a state was never seen is withheld."
        else:
            text = f"An estimated {math.ceil(100 * seen.mean())}% or less of what follows a state was never seen."
        shares = self.rarest_seen[~np.isnan(self.rarest_seen)]
        if len(shares):
            half, most = _percent(np.median(shares)), _percent(shares.max())
            which = "every state" if self.smallest_cell is None else "every state whose visits are shown"
            text += (
                f" Every outcome with a share above {half} would have been seen in half of the states, above {most} in "
                f"{which} (at 95%). Rarer ones may be missing: observed support assumes that none are."
            )
        return text

    def _unknown_ends(self) -> list[str]:
        result = [
            f"{item.source}: {count_text(item.unknown)} of {count_text(item.episodes)} episodes stop with neither flag "
            "set; their last outcome is unknown, and may have been anything."
            for item in self.episodes
            if item.unknown != 0
        ]
        if result:
            result[-1] += (
                " Name the columns that say whether an episode terminated or was truncated, or log them; after a time "
                "limit of 10 days, truncated={'day': [10]} or --truncated day=10."
            )
        if without := [self.counts.sources[i] for i in sources_without_ends(self.counts)]:
            result.append(
                f"No episode of {', '.join(without)} is known to have ended: wherever one stops, anything may have "
                "followed. Name the column that says whether an episode terminated."
            )
        return result

    def summary(self) -> str:
        """Return two tables, with a row per source, and the findings: what the command prints."""
        findings = "\n".join(f"- {sentence}" for sentence in self.findings())
        return f"{text_table(self.HEADS, self.rows(), 'Episodes')}\n\n{self.coverage.summary()}\n\n{findings}"

    def to_pandas(self) -> DataFrame:
        """Return the coverage, a row per source and state, with the state's unseen outcome mass and its limit."""
        space = self.counts.space
        masses = frame_by_state(space, {"unseen_mass": self.unseen, "unseen_limit": self.unseen_limit})
        return self.coverage.to_pandas().merge(masses, on=list(space.columns), how="left")

    def to_json(self) -> str:
        """Return everything as JSON."""
        states = self.counts.space.states
        plain = {
            "states": len(states),
            "actions": list(self.counts.space.actions),
            "smallest_cell": self.smallest_cell,
            "sources": [
                asdict(item) | covered for item, covered in zip(self.episodes, self.coverage.as_plain(), strict=True)
            ],
            "unseen_outcome_mass": [
                {"state": state, "mass": mass, "limit": limit}
                for state, mass, limit in zip(states, self.unseen, self.unseen_limit, strict=True)
                if not np.isnan(mass)
            ],
            "dropped": {origin: asdict(item) for origin, item in self.dropped.items()},
            "contradictions": self.contradictions.as_plain(),
            "excess_masses": self.contradictions.excess_as_plain(),
            "persistence": self.persistence.as_plain(),
            "findings": self.findings(),
        }
        return json_text(plain)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained page for people who will not run anything (extra `plot`)."""
        from causal_shaping.plot import save_page  # the stage to the right: a method people look for

        save_page(self, path)

    def __repr__(self) -> str:
        states, names = len(self.counts.space.states), ", ".join(self.counts.sources)
        return f"Inspection({names}: {states} states, {len(self.contradictions)} contradictions)"


def _percent(share: float) -> str:
    """Return a limit for people, rounded up."""
    return f"{math.ceil(1000 * share - 1e-9) / 1000:.1%}"


def inspect(
    logs: Item | Sequence[Item],
    *,
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    complete: bool = False,
    admissible: Admissible | None = None,
    missing: str | None = None,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
    level: float = LEVEL,
    progress: Progress = no_progress,
) -> Inspection:
    """Return what logs are worth: what they cover, what each source can prove, and where they cannot be trusted.

    Sources are compared with each other (`contradictions`), and outcomes with the pasts of their episodes
    (`persistence_test`, on a sample of the episodes).

    Args:
        logs: what `count` takes: files, data frames, tables, `Logs`, or what `open_logs` returned; each a source of
            its own.
        states: see `count`.
        actions: see `count`.
        complete: see `count`.
        admissible: see `count`.
        missing: see `count`.
        skip_bad_episodes: see `count`.
        memory_limit: see `count`.
        level: the chance of any false contradiction; and that of a rejection by the persistence test where no hidden
            cause lasts.
        progress: called after each log, and while sources are compared.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> inspect([world.collect(name, 20_000) for name in ("bad", "random")])
        Inspection(bad, random: 49 states, 4 contradictions)
    """
    tables = opened_logs(logs, states=states, actions=actions, missing=missing, memory_limit=memory_limit)
    total = len(tables) + 3
    summaries: dict[str, Summary] = {}
    for done, table in enumerate(tables):
        progress(done, total, f"Checking {table.origin}")
        tables[done] = check_logs(table, skip_bad_episodes=skip_bad_episodes)
        summaries |= {summary.source: summary for summary in summarise(tables[done])}
    progress(total - 3, total, "Counting")
    counts = count(tables, states=states, actions=actions, complete=complete, admissible=admissible)

    def compared(done: float, whole: float, what: str) -> None:
        progress(total - 2 + done / whole, total, what)

    found_contradictions = contradictions(counts, level=level, progress=compared)
    progress(total - 1, total, "Testing whether hidden causes last")
    persistence = persistence_test(tables, episodes=TESTED_EPISODES, level=level)
    found = Inspection(
        counts=counts,
        episodes=tuple(summaries[source] for source in counts.sources),
        coverage=coverage(counts),
        unseen=unseen_mass(counts),
        unseen_limit=unseen_limit(counts),
        rarest_seen=rarest_seen(counts),
        contradictions=found_contradictions,
        persistence=persistence,
        dropped={table.origin: table.dropped for table in tables if table.dropped is not None},
        metadata=tuple(table.metadata for table in tables),
    )
    progress(total, total, "Testing whether hidden causes last")
    return found
