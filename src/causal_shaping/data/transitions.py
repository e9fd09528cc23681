"""The rows of logs whose states are numbers: what estimators are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.errors import DataError, UnknownNameError


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """The trajectories of several sources, row by row, ordered by source, episode and step.

    Each state stands in `observations` once: the rows of an episode one after another, and behind
    them the next state of its last row, where that is known. A row whose `next_state` is `UNKNOWN`
    and that is not terminated has an unknown outcome: it proves nothing but that the action was
    taken.

    The arrays are read-only, and lie in files (`numpy.memmap`) where they are too large for memory.

    Attributes:
        sources: their names.
        actions: their labels.
        columns: the names of the coordinates, or that of the one column of lists or images.
        shape: that of one observation.
        observations: float32 [observations, *shape], uint8 for images.
        state: int64 [rows], positions in `observations`.
        next_state: int64 [rows], the same, or `UNKNOWN`.
        action: int32 [rows], positions in `actions`.
        reward: float64 [rows], finite.
        terminated: bool [rows], the world ended the episode: nothing can follow.
        truncated: bool [rows], the episode was cut, by a time limit or the end of the recording.
        source: int16 [rows], positions in `sources`, rising.
        episode: int64 [rows], 0, 1, 2, ... over all sources.
        step: int32 [rows], 0, 1, 2, ... within an episode.
        mask: bool [observations, actions], whether an action is admissible; None if every
            action is.
        files: what keeps the files of the arrays from being removed; None without files.
    """

    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    observations: npt.NDArray[np.float32] | npt.NDArray[np.uint8]
    state: LongArray
    next_state: LongArray
    action: IntArray
    reward: FloatArray
    terminated: BoolArray
    truncated: BoolArray
    source: npt.NDArray[np.int16]
    episode: LongArray
    step: IntArray
    mask: BoolArray | None = None
    files: Any = field(default=None)

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in ROWS}
        if len(set(lengths.values())) > 1:
            raise DataError(f"Columns of transitions must be of one length, but have {lengths}.")
        size, shape = len(self.observations), self.observations.shape[1:]
        if shape != self.shape:
            raise DataError(f"Observations have shape {shape} instead of {self.shape}.")
        if self.mask is not None and self.mask.shape != (size, len(self.actions)):
            raise DataError(
                f"The mask has shape {self.mask.shape}; there are {size:,} observations and "
                f"{len(self.actions)} actions."
            )

    def __len__(self) -> int:
        return len(self.state)

    @property
    def episodes(self) -> int:
        """The number of episodes of all sources."""
        if not len(self):
            return 0
        return int(self.episode[-1]) + 1

    @property
    def outcome_known(self) -> BoolArray:
        """Whether the logs say what followed: bool [rows]."""
        return np.asarray(self.terminated | (self.next_state != UNKNOWN), dtype=bool)

    def rows_of(self, source: str) -> slice:
        """Return where the rows of a source stand: they follow one another."""
        if source not in self.sources:
            known = ", ".join(self.sources)
            raise UnknownNameError(f"There is no source {source!r}. The sources are {known}.")
        position = self.sources.index(source)
        first, after = np.searchsorted(self.source, [position, position + 1])
        return slice(int(first), int(after))

    def take(self, chosen: BoolArray, also: LongArray) -> tuple[Transitions, LongArray]:
        """Return some of the rows, in memory, with the observations that they need and others.

        Args:
            chosen: bool [rows]; whole episodes.
            also: positions of further observations to keep.

        Returns:
            The rows, and the positions of the further observations there.
        """
        columns: dict[str, Any] = {name: np.asarray(getattr(self, name)[chosen]) for name in ROWS}
        state, follower = columns["state"], columns["next_state"]
        known = follower != UNKNOWN
        kept = np.unique(np.concatenate([state, follower[known], also]))
        follower[known] = np.searchsorted(kept, follower[known])
        columns["state"] = np.searchsorted(kept, state)
        columns["episode"] = np.unique(columns["episode"], return_inverse=True)[1]
        return self._with_observations(kept, columns), np.searchsorted(kept, also)

    def distinct(self) -> tuple[Transitions, LongArray]:
        """Return the same rows with each distinct observation once, in memory.

        Observations that differ in their mask are distinct.

        Returns:
            The rows, and the position of each observation there.
        """
        seen = np.ascontiguousarray(self.observations).reshape(len(self.observations), -1)
        seen = seen.view(np.uint8)
        if self.mask is not None:
            seen = np.concatenate([seen, self.mask.view(np.uint8)], axis=1)
        rows = seen.view(np.dtype((np.void, seen.shape[1])))[:, 0]
        _, first, place = np.unique(rows, return_index=True, return_inverse=True)
        follower = np.where(self.next_state == UNKNOWN, UNKNOWN, place[self.next_state])
        columns = {"state": place[self.state], "next_state": follower}
        return self._with_observations(first, columns), place

    def _with_observations(self, kept: LongArray, columns: dict[str, Any]) -> Transitions:
        """Return other columns and some of the observations, in memory."""
        mask = None if self.mask is None else self.mask[kept]
        seen: Any = np.asarray(self.observations[kept])
        return replace(self, observations=seen, mask=mask, files=None, **columns)

    @property
    def nbytes(self) -> int:
        """The size of all arrays, in memory or in files."""
        values = (getattr(self, item.name) for item in fields(self))
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def __repr__(self) -> str:
        return (
            f"Transitions({len(self):,} steps in {self.episodes:,} episodes of "
            f"{', '.join(self.sources)}; states of shape {self.shape} by "
            f"({', '.join(self.columns)}); {len(self.actions)} actions)"
        )


ROWS: dict[str, Any] = (
    dict.fromkeys(("state", "next_state"), np.int64)
    | {"action": np.int32, "reward": np.float64}
    | dict.fromkeys(("terminated", "truncated"), np.bool_)
    | {"source": np.int16, "episode": np.int64, "step": np.int32}
)
"""The arrays of `Transitions` that have an entry for each row, and their types."""
