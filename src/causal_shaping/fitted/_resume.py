"""Where an interrupted fit goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import DataError, FileError
from causal_shaping.fitted._stored import array_of, number_of
from causal_shaping.fitted.settings import Settings
from causal_shaping.storage import LOCK, claim_run_folder, read_arrays, write_arrays

PARTS = "member-*.npz"
"""The files of passes."""


@contextmanager
def begun_in(folder: str | os.PathLike[str] | None, rows: Transitions, settings: Settings) -> Iterator[Begun]:
    """Hold the folder of a fit; without one, nothing is kept. A folder of other logs or settings is refused."""
    if folder is None:
        yield Begun(None)
        return
    path = Path(folder)
    texts = json.dumps([rows.sources, list(map(str, rows.actions)), rows.columns, rows.shape])
    arrays = [rows.observations, rows.action, rows.reward, rows.terminated, rows.source, rows.episode]
    logs = checksum_of(texts, [np.asarray(one) for one in arrays])
    with claim_run_folder(path, {"settings": settings.as_plain(), "logs": logs}, PARTS):
        begun = Begun(path)
        yield begun
    if begun.removed:
        with suppress(OSError):  # somebody else works there by now
            path.rmdir()


class Begun:
    """Where an interrupted fit goes on: a file for each pass, replaced after each step."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.removed = path, False

    def load(self, name: str, rows: Transitions, observations: int) -> dict[str, npt.NDArray[Any]] | None:
        """Return what was kept of a pass over rows, with values at so many observations; None if it did not begin."""
        if self.path is None or not (self.path / f"{name}.npz").exists():
            return None
        file = self.path / f"{name}.npz"
        try:
            return _checked(read_arrays(file), rows, observations)
        except DataError as error:
            raise FileError(f"{file} is no part of this fit: {error}. Remove it to begin that part anew.") from error
        except FileError as error:
            raise FileError(f"{error} Remove it to begin that part anew.") from error

    def keep(self, name: str, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Keep a pass after a step."""
        if self.path is not None:
            write_arrays(self.path / f"{name}.npz", kept)

    def remove(self) -> None:
        """Remove what was kept, once all is done."""
        if self.path is not None:
            for file in [*self.path.glob(PARTS), self.path / "settings.json", self.path / LOCK]:
                file.unlink(missing_ok=True)
            self.removed = True


def _checked(held: dict[str, npt.NDArray[Any]], rows: Transitions, observations: int) -> dict[str, npt.NDArray[Any]]:
    """Return what was kept of a pass; or say what does not fit the rows: compiled code runs on it."""
    shapes: dict[str, tuple[int | None, ...]] = {"values": (len(rows.observations),), "found": (None, observations)}
    if number_of(held, "done"):
        shapes |= {"targets": (len(rows),), "before": (len(rows.observations),)}
    for name, shape in shapes.items():
        array_of(held, name, np.float64, shape)
    array_of(held, "q_values", np.float64, (observations, len(rows.actions)), missing=True)  # of those not admissible
    if number_of(held, "left") < 1 or not len(held["found"]) or not number_of(held, "worst") >= 0:
        raise DataError("it holds no step")
    return held
