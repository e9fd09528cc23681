"""Where an interrupted fit goes on."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import DataError, FileError
from causal_shaping.fitted._stored import array_of, number_of
from causal_shaping.fitted.settings import Settings
from causal_shaping.io.files import claim_run_folder, replacing
from causal_shaping.io.inputs import read_arrays


class Begun:
    """Where an interrupted fit goes on: a file for each pass, replaced after each step. Held while it is entered."""

    def __init__(self, folder: str | os.PathLike[str] | None, rows: Transitions, settings: Settings) -> None:
        self.path, self.done = None if folder is None else Path(folder), False
        self.claim: AbstractContextManager[None] = nullcontext()
        if self.path is not None:
            texts = json.dumps([rows.sources, list(map(str, rows.actions)), rows.columns, rows.shape])
            arrays = [rows.observations, rows.action, rows.reward, rows.terminated, rows.source, rows.episode]
            self.claim = claim_run_folder(
                self.path,
                {"settings": settings.as_plain(), "logs": checksum_of(texts, [np.asarray(one) for one in arrays])},
                "member-*.npz",
            )

    def __enter__(self) -> Begun:
        self.claim.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.claim.__exit__(*error)
        if self.done and self.path is not None:
            with suppress(OSError):  # somebody else works there by now
                self.path.rmdir()

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

    def keeper(self, name: str) -> Any:
        """Return a function that keeps a pass after a step."""

        def keep(kept: dict[str, npt.NDArray[Any]]) -> None:
            if self.path is not None:
                with replacing(self.path / f"{name}.npz", [".npz"]) as temporary, temporary.open("wb") as file:
                    np.savez(file, allow_pickle=False, **kept)

        return keep

    def remove(self) -> None:
        """Remove what was kept, once all is done."""
        if self.path is not None:
            for file in [*self.path.glob("member-*.npz"), self.path / "settings.json"]:
                file.unlink(missing_ok=True)
            self.done = True


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
