"""Arrays: their types, freezing, grouping, checksums."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.errors import DataError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int32]
LongArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike, what: str = "an array") -> npt.NDArray[Any]:
    """Return `values` as a contiguous array of `dtype` that nobody can write to.

    An array that is read-only already is taken as it is; anything else is copied. Numbers must
    survive the change of type: 1.5 is no integer, 2 no boolean.

    Raises:
        DataError: names `what` and the first entry that does not fit.
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} is not a table: its rows have different lengths.") from error
    needed = f"{what} must hold {np.dtype(dtype).name} numbers, but holds"
    if array.dtype.kind not in "biuf":
        raise DataError(f"{needed} {_first(array)}.")
    if array.dtype == dtype and array.flags.c_contiguous and _is_read_only(array):
        return array
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.array(array, dtype=dtype, order="C")
    # Rounding to a float of another size is no loss; to integers and booleans it is.
    if result.dtype.kind != "f" and array.dtype != result.dtype:
        changed = array[result != array]
        if changed.size:
            raise DataError(f"{needed} {_first(changed)}.")
    result.flags.writeable = False
    return result


def _is_read_only(array: Any) -> bool:
    """Whether nobody holds a writable view of an array's memory, as far as NumPy knows."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def _first(values: npt.NDArray[Any]) -> str:
    if not values.size:
        return "nothing"
    return repr(values.item(0))


def checksum_of(text: str, arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return a SHA-256 of a text and of arrays, the same on every machine."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(np.ascontiguousarray(little_endian).data)
    return digest.hexdigest()


def groups(key: Sequence[npt.NDArray[Any]]) -> tuple[LongArray, LongArray]:
    """Return the order that sorts rows by several columns, and where in it each key begins."""
    packed = _packed(key)
    if packed is not None:  # several times faster: most tables are nearly in order
        order = np.argsort(packed, kind="stable")
        return order, np.flatnonzero(begins(packed[order]))
    order = np.lexsort(key[::-1])
    return order, np.flatnonzero(begins(*(column[order] for column in key)))


def _packed(key: Sequence[npt.NDArray[Any]]) -> LongArray | None:
    """Return columns of whole numbers as one, in the same order; None beyond 64 bits."""
    if not len(key[0]) or not all(np.can_cast(column.dtype, np.int64) for column in key):
        return None
    least = [int(column.min()) for column in key]
    sizes = [int(column.max()) - low + 1 for column, low in zip(key, least, strict=True)]
    if math.prod(sizes) >= 2**63:
        return None
    result = np.zeros(len(key[0]), dtype=np.int64)
    for column, low, size in zip(key, least, sizes, strict=True):
        result *= size
        result += column.astype(np.int64) - low
    return result


def begins(*key: npt.NDArray[Any]) -> BoolArray:
    """Whether a group of equal keys begins at a row; rows are ordered by the key."""
    result = np.zeros(len(key[0]), dtype=bool)
    result[:1] = True
    for column in key:
        result[1:] |= column[1:] != column[:-1]
    return result


def ranges(first: npt.NDArray[Any], size: npt.NDArray[Any]) -> LongArray:
    """Return first, first + 1, ... up to each of several sizes, one range after another."""
    return np.asarray(np.arange(size.sum()) + np.repeat(first - np.cumsum(size) + size, size))
