"""What the episodes of a log look like: how many, how long, how they end, what they earn."""

from __future__ import annotations

from dataclasses import dataclass

import ibis

from causal_shaping.logs.queries import fetch
from causal_shaping.logs.table import LogTable

DIGITS = 12
"""Returns are rounded to this many digits: further ones depend on the order of an engine's sums."""


@dataclass(frozen=True)
class Summary:
    """The episodes of one source; returns are of an episode, undiscounted, cut ones included."""

    source: str
    episodes: int
    steps: int  # rows in all
    mean_length: float  # steps of an episode
    longest: int
    terminated: int  # episodes that the world ended
    truncated: int  # episodes that were cut
    unknown: int  # episodes of whose last row the logs say neither
    mean_return: float
    lowest_return: float
    highest_return: float
    lowest_reward: float
    highest_reward: float


def summarise(table: LogTable) -> list[Summary]:
    """Return a summary for each source of a log, by the engine that holds the rows."""
    rows = table.rows
    if table.source is not None:
        rows = rows.mutate(source=ibis.literal(table.source))
    # One row for each episode, then one for each source.
    episodes = rows.group_by(["source", "episode"]).aggregate(
        length=rows.count(),
        earned=rows.reward.sum(),
        terminated=rows.terminated.cast("int32").max(),
        truncated=rows.truncated.cast("int32").max(),
        low=rows.reward.min(),
        high=rows.reward.max(),
    )
    cut = episodes.truncated * (1 - episodes.terminated)
    sources = episodes.group_by("source").aggregate(
        episodes=episodes.count(),
        steps=episodes.length.sum(),
        longest=episodes.length.max(),
        terminated=episodes.terminated.sum(),
        truncated=cut.sum(),
        unknown=episodes.count() - episodes.terminated.sum() - cut.sum(),
        mean_return=episodes.earned.mean(),
        lowest_return=episodes.earned.min(),
        highest_return=episodes.earned.max(),
        lowest_reward=episodes.low.min(),
        highest_reward=episodes.high.max(),
    )
    found = fetch(sources, table.origin).to_pylist()
    for row in found:
        for name in ("mean_return", "lowest_return", "highest_return"):
            row[name] = float(f"{row[name]:.{DIGITS}g}")
        row["mean_length"] = row["steps"] / row["episodes"]
    return sorted((Summary(**row) for row in found), key=lambda summary: summary.source)
