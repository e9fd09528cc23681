"""Compiled functions: Numba's, kept on disk where a folder can be written to.

- `njit`: Numba's decorator of this name with a cache; without one, and one warning, where no folder can be written to,
  so that everything still starts.
- `INLINED`: options of small functions that loops call at each step.
- `resolved`: a compiled function that is called from Python again and again.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numba

INLINED: Any = {"forceinline": True, "_nrt": False}
"""Options for a small function of arrays that a loop calls at each step: it is put where it is called, and does not
count references to its arrays, which would take longer than what it does. It must not make arrays, nor call what does:
sums and searches of NumPy may, depending on what was compiled before."""


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function, without Python objects."""
    return functools.partial(_compile, functools.partial(numba.njit, **options))


def resolved(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return what a compiled function is for arguments of these types, compiled if need be; others must not follow.

    A call of it does not ask for types, which takes milliseconds for a named tuple of many arrays.
    """
    types = tuple(map(numba.typeof, arguments))
    function.compile(types)
    found: Callable[..., Any] = function.get_overload(types)
    return found


def _compile(how: Any, function: Any) -> Any:
    try:
        return how(cache=True)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _warn_once()
        return how()(function)


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "No folder can be written to for compiled code, so that every start compiles anew. Set NUMBA_CACHE_DIR to a "
        "folder that can.",
        RuntimeWarning,
        stacklevel=2,
    )
