"""What arrays of a fit on disk must be, before compiled code, which checks nothing, runs on them.

A checksum tells damage, but no intent: whoever can write a file can also write a checksum that fits.

- `array_of`: an array of a type and shape, whose numbers are finite.
- `number_of`: an array of a single number.
- `name_of`: a plain text.
- `check_trees`: every walk through the nodes stays inside of them and ends in a leaf that exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_line
from causal_shaping.errors import DataError
from causal_shaping.fitted._kernels import FEATURE, LEFT, RIGHT, THRESHOLD, Trees


def array_of(
    arrays: Mapping[str, npt.NDArray[Any]],
    name: str,
    dtype: npt.DTypeLike,
    shape: tuple[int | None, ...],
    *,
    missing: bool = False,
) -> npt.NDArray[Any]:
    """Return an array by name; refuse one of another type or shape, in which None is any size.

    Args:
        arrays: by name.
        name: of the array.
        dtype: its type.
        shape: its sizes.
        missing: allow infinity and NaN.
    """
    if name not in arrays:
        raise DataError(f"it lacks the array {name}")
    array = arrays[name]
    fits = len(shape) == array.ndim and all(want in (None, size) for want, size in zip(shape, array.shape, strict=True))
    if array.dtype != np.dtype(dtype) or not fits:
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        raise DataError(f"{name} is {array.dtype} {list(array.shape)} instead of {np.dtype(dtype)} [{sizes}]")
    if not missing and not np.isfinite(array).all():
        raise DataError(f"{name} holds what is not a finite number")
    return np.ascontiguousarray(array)


def number_of(arrays: Mapping[str, npt.NDArray[Any]], name: str, *, missing: bool = False) -> Any:
    """Return a single number by name: an integer, a truth value, or a real one, which may be `missing`."""
    if name not in arrays:
        raise DataError(f"it lacks the number {name}")
    array = arrays[name]
    if array.size != 1 or array.dtype.kind not in "biuf" or not (missing or np.isfinite(array).all()):
        raise DataError(f"{name} is {array.dtype} {list(array.shape)} instead of a single finite number")
    return array.item()


def name_of(what: str, name: Any) -> str:
    """Return a plain value that must be one line of text; `what` says of what it is the name."""
    if not isinstance(name, str):
        raise DataError(f"{what} is {name!r} instead of a text")
    return check_line(what, name)


def check_trees(trees: Trees, coordinates: int, leaves: int) -> None:
    """Refuse trees that lead anywhere but to one of so many leaves, by one of so many coordinates.

    Children stand behind their parents, each node but the roots is the child of one, and each leaf has a number of its
    own: so do those of `grow`.
    """
    nodes, roots = trees
    inner = nodes[:, FEATURE] >= 0
    children = nodes[inner][:, [LEFT, RIGHT]]
    for wrong, what in (
        (type(roots) is not int or not 1 <= roots <= len(nodes), f"{roots} roots among {len(nodes)} nodes"),
        ((nodes[:, FEATURE] >= coordinates).any(), f"a coordinate beyond the {coordinates} that there are"),
        (not np.isfinite(nodes.view(np.float32)[inner, THRESHOLD]).all(), "a threshold that is not finite"),
        ((children <= np.flatnonzero(inner)[:, None]).any(), "a child before its parent"),
        (not _are_all(children, roots, len(nodes)), "nodes that are not the child of one other"),
        (not _are_all(nodes[~inner, LEFT], 0, leaves), f"leaves that are not the {leaves} that there are"),
    ):
        if wrong:
            raise DataError(f"its trees have {what}")


def _are_all(numbers: npt.NDArray[np.int32], first: int, end: int) -> bool:
    """Return whether numbers are those from the first to the end, each once."""
    return numbers.size == end - first and bool((np.sort(numbers, axis=None) == np.arange(first, end)).all())
