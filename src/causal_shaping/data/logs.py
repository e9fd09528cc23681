"""The trajectories of one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from causal_shaping._checks import check_line
from causal_shaping.data.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    LongArray,
    checksum_of,
)
from causal_shaping.data.result import Written
from causal_shaping.data.rows import (
    Rows,
    Table,
    jump_rules,
    label_rules,
    order_rules,
    row_rules,
)
from causal_shaping.data.space import MakeColumn, Space, plain_column
from causal_shaping.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Logs(Table, Written):
    """The trajectories of one source, row by row, ordered by episode and step.

    Arrays have one entry a row; states and actions are positions in `space`. The next state of a
    row is the state of the episode's next row. `UNKNOWN` as next state says that the log does not
    hold it: with `terminated` the episode ended, without it the outcome is unknown and nothing is
    proven by the row but that the action was taken.

    `save` writes a row per step, states and actions by label: source, episode, step, the columns of
    the state (`space.columns`), action, reward, those of the next state (with `next_` in front,
    null where unknown), terminated, truncated. A Parquet file also holds the space and `metadata`;
    CSV (.csv, .csv.gz, .csv.zst) holds the rows alone. `read_logs` reads both.

    Attributes:
        space: the states and actions.
        source: the name of the logs' origin.
        episode: int64 [rows], rising.
        step: int32 [rows], 0, 1, 2, ... within an episode.
        state: int32 [rows].
        action: int32 [rows].
        reward: float64 [rows], finite.
        next_state: int32 [rows], or `UNKNOWN`.
        terminated: bool [rows], the world ended the episode: nothing can follow.
        truncated: bool [rows], the episode was cut, by a time limit or the end of the recording.
        metadata: where the logs come from (world, demonstrator, seed, ...), strings.
    """

    space: Space
    source: str
    episode: LongArray
    step: IntArray
    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray
    truncated: BoolArray
    metadata: Mapping[str, str] = field(default_factory=dict)

    KIND = "logs"
    EXACT_CSV = True  # a CSV file is read again
    COLUMNS = MappingProxyType(
        {"episode": np.int64}
        | dict.fromkeys(("step", "state", "action"), np.int32)
        | {"reward": np.float64, "next_state": np.int32}
        | dict.fromkeys(("terminated", "truncated"), np.bool_)
    )

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source:
            example = f"such as 'ward-3', but got {self.source!r}"
            raise DataError(f"Logs need the name of their source, {example}.")
        check_line("The source", self.source)
        metadata = {str(key): str(value) for key, value in self.metadata.items()}
        object.__setattr__(self, "metadata", metadata)
        self._freeze(f"Source {self.source!r}")
        if len(self) == 0:
            raise DataError(f"Source {self.source!r} has no rows.")
        self._check_labels()
        columns = {name: getattr(self, name) for name in self.COLUMNS}
        rows = Rows(columns | {"ended": self.terminated | self.truncated})
        rules = row_rules(rows, ["episode"], label_rules(rows, ["state"]))
        rules += order_rules(rows, jump_rules(rows, ["state"], ["next_state"]))
        for rule in rules:
            self._refuse(rule.broken, rule.text, rows[rule.column])
        falls = np.diff(self.episode, prepend=self.episode[0] - 1) < 0
        why = "episode numbers must rise, each standing for one episode"
        self._refuse(falls, why, self.episode)

    def _where(self, row: int) -> str:
        place = f"episode {self.episode[row]}, step {self.step[row]}"
        return f"Source {self.source!r}, row {row} ({place})"

    def __len__(self) -> int:
        return len(self.episode)

    @cached_property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(np.count_nonzero(self.step == 0))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the rows and the space: equal exactly if the logs are equal."""
        return checksum_of(self.space.to_json(), [getattr(self, name) for name in self.COLUMNS])

    @property
    def header(self) -> dict[str, Any]:
        """What a file of logs holds beside the space and the rows: where they come from."""
        return {"source": self.source, "metadata": dict(self.metadata)}

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return the rows by column, with states and actions by label."""
        source = make("source", [self.source], np.zeros(len(self), dtype=np.int32))
        labels = self.space.row_columns(self.state, self.action, self.next_state, make)
        followers = {name: labels.pop(name) for name in self.space.next_columns}
        return {
            "source": source,
            "episode": self.episode,
            "step": self.step,
            **labels,
            "reward": self.reward,
            **followers,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }

    def summary(self) -> str:
        """Return what the logs hold, in a few lines."""
        returns = np.add.reduceat(self.reward, np.flatnonzero(self.step == 0))
        terminated = np.count_nonzero(self.terminated)
        truncated = np.count_nonzero(self.truncated & ~self.terminated)
        unmarked = self.episodes - terminated - truncated
        lines = [
            repr(self),
            f"Episodes: {terminated:,} terminated, {truncated:,} truncated, {unmarked:,} with "
            f"neither flag set; {len(self) / self.episodes:.1f} steps on average, at most "
            f"{self.step.max() + 1:,}",
            f"Rewards from {self.reward.min():g} to {self.reward.max():g}; returns from "
            f"{returns.min():g} to {returns.max():g}, {returns.mean():g} on average",
            f"{len(np.unique(self.state)):,} states and {len(np.unique(self.action)):,} actions "
            "occur",
        ]
        return "\n".join(lines + [f"{key}: {value}" for key, value in self.metadata.items()])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        size = f"{len(self):,} steps in {self.episodes:,} episodes"
        return f"Logs(source={self.source!r}, {size}, {self.space!r})"
