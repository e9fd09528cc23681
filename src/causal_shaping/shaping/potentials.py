"""Potentials in files, in folders and in the specs of environments.

`load_potential` opens whatever was saved; a wrapper's spec keeps a potential as JSON or as a path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from causal_shaping._checks import check_choice
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError
from causal_shaping.storage import kind_of

PathLike: TypeAlias = str | os.PathLike[str]

PotentialLike: TypeAlias = Potential | ObservationPotential | PathLike | Mapping[str, Any]
"""A potential, its file or folder, or the JSON object that a spec holds."""


def load_potential(
    path: PathLike,
    *,
    kind: str = "ceiling",
    step_indexed: bool = True,
    observe: Callable[[Any], Any] | None = None,
) -> Potential | ObservationPotential:
    """Return the potential in a file, saved as such or of saved ceilings; or of a fit, in a folder.

    Args:
        path: a file, or the folder that `FittedCeilings.save` wrote.
        kind: of a fit, "ceiling", or "mean" for best guesses.
        step_indexed: of a fit, values by step; otherwise those of the first step at all steps.
        observe: of a fit that was made with `observe=`, the same function.

    Examples:
        >>> import tempfile
        >>> import causal_shaping as cs
        >>> folder = tempfile.mkdtemp()
        >>> cs.Potential.zero(cs.Space(["a", "b"], ["go"])).save(f"{folder}/phi.parquet")
        >>> cs.load_potential(f"{folder}/phi.parquet")
        Potential(zero: 2 states, from 0 to 0, discount 1)
    """
    check_choice("kind", kind, ("ceiling", "mean"))
    if Path(path).is_dir():
        from causal_shaping.fitted.results import FittedCeilings

        return FittedCeilings.load(path, observe=observe).potential(kind, step_indexed=step_indexed)
    if kind != "ceiling" or not step_indexed or observe is not None:
        options = "kind, step_indexed and observe are for fits, which are folders"
        raise ArgumentError(f"{os.fspath(path)} is a file: {options}.")
    loaded = load_ceilings_or_potential(path)
    if isinstance(loaded, Ceilings):
        return loaded.potential()
    return loaded


def load_ceilings_or_potential(path: PathLike) -> Ceilings | Potential:
    """Return the ceilings or the potential in a file; learners use values per action."""
    if kind_of(path) == Ceilings.KIND:
        return Ceilings.load(path)
    return Potential.load(path)


def as_potential(potential: Any) -> Potential | ObservationPotential:
    """Return a potential as it is, from its file, or from what a spec holds; see `for_spec`."""
    if isinstance(potential, (str, os.PathLike)):
        return load_potential(potential)
    if isinstance(potential, _Unsaved):
        return potential.potential
    if isinstance(potential, Mapping) and "path" in potential:
        return load_potential(**potential)
    if isinstance(potential, Mapping):
        return Potential.from_json(json.dumps(potential))
    if not isinstance(potential, (Potential, ObservationPotential)):
        ways = "Potential(values, space), ceilings.potential(), or that of a fit"
        raise ArgumentError(f"{potential!r} is no potential. Use {ways}.")
    return potential


def for_spec(potential: PotentialLike) -> str | Mapping[str, Any]:
    """Return what the spec of an environment keeps of a potential: JSON if possible."""
    if isinstance(potential, (str, os.PathLike)):
        return os.fspath(potential)
    if isinstance(potential, Potential):
        return json.loads(potential.to_json())  # type: ignore[no-any-return]
    if isinstance(potential, Mapping):
        return potential
    if potential.path is None:
        return _Unsaved(potential)
    kind = "mean" if potential.kind == "guess" else "ceiling"
    by_step = potential.horizon is not None
    return {"path": potential.path, "kind": kind, "step_indexed": by_step}


class _Unsaved(dict[str, Any]):
    """A fit's potential without a folder: a spec can hold it in memory, but not be written."""

    def __init__(self, potential: ObservationPotential) -> None:
        super().__init__(potential=repr(potential))
        self.potential = potential

    def items(self) -> NoReturn:
        """Raise an error: whoever asks for the items is about to write them."""
        raise ArgumentError(
            "The spec of this environment cannot be written: its potential is in no folder. Save "
            "the fit first, fitted.save('folder'), and shape with the folder, or with "
            "fitted.potential() after that. For a fit with observe=, which is code, no spec can be "
            "written."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unsaved:
        return _Unsaved(self.potential)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Unsaved, (self.potential,)
