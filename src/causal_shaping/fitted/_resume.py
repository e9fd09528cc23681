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
from causal_shaping.errors import FileError
from causal_shaping.fitted.settings import Settings
from causal_shaping.io.files import claim_run_folder, replacing
from causal_shaping.io.inputs import read_arrays


class Begun:
    """Where an interrupted fit goes on: a file for each pass, replaced after each step. Held while it is entered."""

    def __init__(
        self, folder: str | os.PathLike[str] | None, rows: Transitions, settings: Settings, writes: bool
    ) -> None:
        self.path, self.writes, self.done = None if folder is None else Path(folder), writes, False
        self.claim: AbstractContextManager[None] = nullcontext()
        if self.path is not None and writes:
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

    def load(self, name: str) -> dict[str, npt.NDArray[Any]] | None:
        """Return what was kept of a pass, None if it did not begin."""
        if self.path is None or not (self.path / f"{name}.npz").exists():
            return None
        try:
            return read_arrays(self.path / f"{name}.npz")
        except FileError as error:
            raise FileError(f"{error} Remove it to begin that part anew.") from error

    def keeper(self, name: str) -> Any:
        """Return a function that keeps a pass after a step."""

        def keep(kept: dict[str, npt.NDArray[Any]]) -> None:
            if self.path is not None and self.writes:
                with replacing(self.path / f"{name}.npz", [".npz"]) as temporary, temporary.open("wb") as file:
                    np.savez(file, allow_pickle=False, **kept)

        return keep

    def remove(self) -> None:
        """Remove what was kept, once all is done."""
        if self.path is not None and self.writes:
            for file in [*self.path.glob("member-*.npz"), self.path / "settings.json"]:
                file.unlink(missing_ok=True)
            self.done = True
