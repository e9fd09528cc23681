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

    Each state stands in `observations` once: the rows of an episode one after another, and behind them the next state
    of its last row, where that is known. A row whose `next_state` is `UNKNOWN` and that is not terminated has an
    unknown outcome: nothing is proven by it but that the action was taken.

    The arrays are read-only, and lie in files (`numpy.memmap`) where they are too large for the memory.

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
        mask: bool [observations, actions], whether an action is admissible; None where all are.
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
        if self.observations.shape[1:] != self.shape:
            raise DataError(f"Observations have shape {self.observations.shape[1:]} instead of {self.shape}.")
        if self.mask is not None and self.mask.shape != (len(self.observations), len(self.actions)):
            raise DataError(
                f"The mask has shape {self.mask.shape}; there are {len(self.observations):,} observations and "
                f"{len(self.actions)} actions."
            )

    def __len__(self) -> int:
        return len(self.state)

    @property
    def episodes(self) -> int:
        """The number of episodes of all sources."""
        return int(self.episode[-1]) + 1 if len(self) else 0

    @property
    def outcome_known(self) -> BoolArray:
        """Whether the logs say what followed: bool [rows]."""
        return np.asarray(self.terminated | (self.next_state != UNKNOWN), dtype=bool)

    def rows_of(self, source: str) -> slice:
        """Return where the rows of a source stand: they follow one another."""
        if source not in self.sources:
            raise UnknownNameError(f"There is no source {source!r}. The sources are {', '.join(self.sources)}.")
        position = self.sources.index(source)
        return slice(*(int(end) for end in np.searchsorted(self.source, [position, position + 1])))

    def take(self, chosen: BoolArray, also: LongArray) -> tuple[Transitions, LongArray]:
        """Return some of the rows, in memory, with the observations that they need and others by number.

        Args:
            chosen: bool [rows]; whole episodes.
            also: further observations to keep, by number.

        Returns:
            The rows, and where the further observations stand there.
        """
        state, follows = np.asarray(self.state[chosen]), np.asarray(self.next_state[chosen])
        known = follows != UNKNOWN
        numbers = np.unique(np.concatenate([state, follows[known], also]))
        follows[known] = np.searchsorted(numbers, follows[known])
        columns: dict[str, Any] = {name: np.asarray(getattr(self, name)[chosen]) for name in ROWS}
        columns |= {"state": np.searchsorted(numbers, state), "next_state": follows}
        columns["episode"] = np.unique(columns["episode"], return_inverse=True)[1]
        seen, mask = (
            np.asarray(self.observations[numbers]),
            None if self.mask is None else self.mask[numbers],
        )
        taken = replace(self, observations=seen, mask=mask, files=None, **columns)
        return taken, np.searchsorted(numbers, also)

    def distinct(self) -> tuple[Transitions, LongArray]:
        """Return the same rows with each distinct observation once, in memory, and where each observation stands then.

        Observations that differ in their mask are distinct.
        """
        seen = np.ascontiguousarray(self.observations).reshape(len(self.observations), -1).view(np.uint8)
        if self.mask is not None:
            seen = np.concatenate([seen, self.mask.view(np.uint8)], axis=1)
        whole = seen.view(np.dtype((np.void, seen.shape[1])))[:, 0]
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        followed = np.where(self.next_state == UNKNOWN, UNKNOWN, place[self.next_state])
        merged = replace(
            self,
            observations=self.observations[first],
            mask=None if self.mask is None else self.mask[first],
            state=place[self.state],
            next_state=followed,
            files=None,
        )
        return merged, place

    @property
    def nbytes(self) -> int:
        """The size of all arrays, in memory or in files."""
        return sum(array.nbytes for item in fields(self) if isinstance(array := getattr(self, item.name), np.ndarray))

    def __repr__(self) -> str:
        return (
            f"Transitions({len(self):,} steps in {self.episodes:,} episodes of {', '.join(self.sources)}; states of "
            f"shape {self.shape} by ({', '.join(self.columns)}); {len(self.actions)} actions)"
        )


ROWS = {
    "state": np.int64,
    "next_state": np.int64,
    "action": np.int32,
    "reward": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "source": np.int16,
    "episode": np.int64,
    "step": np.int32,
}
"""The arrays of `Transitions` that have an entry for each row, and their types."""
