"""Opening whatever potential was saved."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError
from causal_shaping.io.container import kind_of


def load_potential(path: str | os.PathLike[str]) -> Potential:
    """Return the potential in a file: one that was saved as such, or that of saved ceilings.

    Examples:
        >>> import tempfile
        >>> import causal_shaping as cs
        >>> folder = tempfile.mkdtemp()
        >>> cs.Potential.zero(cs.Space(["a", "b"], ["go"])).save(f"{folder}/phi.parquet")
        >>> cs.load_potential(f"{folder}/phi.parquet")
        Potential(zero: 2 states, from 0 to 0, discount 1)
    """
    held = load_ceilings_or_potential(path)
    return held.potential() if isinstance(held, Ceilings) else held


def load_ceilings_or_potential(path: str | os.PathLike[str]) -> Ceilings | Potential:
    """Return what a file holds: ceilings as they are, since learners use their values per action, or a potential."""
    return Ceilings.load(path) if kind_of(path) == Ceilings.KIND else Potential.load(path)


def as_potential(given: Potential | str | os.PathLike[str] | Mapping[str, Any]) -> Potential:
    """Return a potential as it is, from its file, or from the JSON object that the spec of an environment holds."""
    if isinstance(given, (str, os.PathLike)):
        return load_potential(given)
    if isinstance(given, Mapping):
        return Potential.from_json(json.dumps(given))
    if not isinstance(given, Potential):
        raise ArgumentError(f"{given!r} is no potential. Use Potential(values, space), or ceilings.potential().")
    return given
