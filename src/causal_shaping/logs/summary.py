"""What the episodes of a log look like: how many, how long, how they end, what they earn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from causal_shaping.logs.table import LogTable, fetch


@dataclass(frozen=True)
class Summary:
    """The episodes of one source; returns are of an episode, undiscounted, cut ones included."""

    source: str
    episodes: int
    steps: int  # rows in all
    mean_length: float  # steps an episode
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
    """Return a summary for each source of a log; two passes over groups, run by the engine that holds the rows."""
    rows = table.rows
    source = [] if table.source else ["source"]
    episodes = rows.group_by([*source, "episode"]).aggregate(
        length=rows.count(),
        earned=rows.reward.sum(),
        terminated=rows.terminated.cast("int32").max(),
        truncated=rows.truncated.cast("int32").max(),
        low=rows.reward.min(),
        high=rows.reward.max(),
    )
    cut = episodes.truncated * (1 - episodes.terminated)
    ended = {
        "episodes": episodes.count(),
        "steps": episodes.length.sum(),
        "longest": episodes.length.max(),
        "terminated": episodes.terminated.sum(),
        "truncated": cut.sum(),
        "unknown": episodes.count() - episodes.terminated.sum() - cut.sum(),
        "mean_return": episodes.earned.mean(),
        "lowest_return": episodes.earned.min(),
        "highest_return": episodes.earned.max(),
        "lowest_reward": episodes.low.min(),
        "highest_reward": episodes.high.max(),
    }
    found = fetch(episodes.group_by(source).aggregate(**ended) if source else episodes.aggregate(**ended), table.origin)
    summaries = [Summary(**{"source": table.source} | row | _means(row)) for row in found.to_pylist()]
    return sorted(summaries, key=lambda summary: summary.source)


def _means(row: dict[str, Any]) -> dict[str, float]:
    """Return the mean length, and returns without their last digits, which depend on the order of an engine's sums."""
    returns = {name: float(f"{row[name]:.12g}") for name in ("mean_return", "lowest_return", "highest_return")}
    return {"mean_length": row["steps"] / row["episodes"], **returns}
