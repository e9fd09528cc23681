"""Opening whatever potential was saved."""

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

GivenPotential: TypeAlias = Potential | ObservationPotential | str | os.PathLike[str] | Mapping[str, Any]
"""A potential, its file or folder, or the JSON object that a spec holds."""


def load_potential(
    path: str | os.PathLike[str],
    *,
    kind: str = "ceiling",
    step_indexed: bool = True,
    observe: Callable[[Any], Any] | None = None,
) -> Potential | ObservationPotential:
    """Return the potential in a file, saved as such or of saved ceilings; or that of a fit, in a folder.

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
        raise ArgumentError(
            f"{os.fspath(path)} is a file: kind, step_indexed and observe are for fits, which are folders."
        )
    held = load_ceilings_or_potential(path)
    return held.potential() if isinstance(held, Ceilings) else held


def load_ceilings_or_potential(path: str | os.PathLike[str]) -> Ceilings | Potential:
    """Return what a file holds: ceilings as they are, since learners use their values per action, or a potential."""
    return Ceilings.load(path) if kind_of(path) == Ceilings.KIND else Potential.load(path)


def as_potential(given: GivenPotential) -> Potential | ObservationPotential:
    """Return a potential as it is, from its file, or from the JSON object that the spec of an environment holds."""
    if isinstance(given, (str, os.PathLike)):
        return load_potential(given)
    if isinstance(given, _Unsaved):
        return given.potential
    if isinstance(given, Mapping):
        return load_potential(**given) if "path" in given else Potential.from_json(json.dumps(given))
    if not isinstance(given, (Potential, ObservationPotential)):
        raise ArgumentError(
            f"{given!r} is no potential. Use Potential(values, space), ceilings.potential(), or that of a fit."
        )
    return given


def for_spec(given: GivenPotential) -> str | Mapping[str, Any]:
    """Return what the spec of an environment keeps of a potential, for `as_potential`: JSON, if that is possible."""
    if isinstance(given, (str, os.PathLike)):
        return os.fspath(given)
    if isinstance(given, Potential):
        return json.loads(given.to_json())  # type: ignore[no-any-return]
    if isinstance(given, ObservationPotential):
        kind = "mean" if given.kind == "guess" else "ceiling"
        held = {"path": given.path, "kind": kind, "step_indexed": given.horizon is not None}
        return _Unsaved(given) if given.path is None else held
    return given


class _Unsaved(dict[str, Any]):
    """A potential that is in no folder, in the place of its JSON: a spec can hold it, but not be written."""

    def __init__(self, potential: ObservationPotential) -> None:
        super().__init__(potential=repr(potential))
        self.potential = potential

    def items(self) -> NoReturn:
        """Refuse: whoever asks for the items writes them."""
        raise ArgumentError(
            "The spec of this environment cannot be written: its potential is in no folder. Save the fit first, "
            "fitted.save('folder'), and shape with the folder, or with fitted.potential() after that. For a fit with "
            "observe=, which is code, no spec can be written."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> _Unsaved:
        return _Unsaved(self.potential)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Unsaved, (self.potential,)
