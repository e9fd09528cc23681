"""Optional packages: an import that fails names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from causal_shaping.errors import MissingExtraError


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages inside this: a missing one raises a `MissingExtraError`; `what` is a plural."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "causal_shaping":
            raise
        raise MissingExtraError(what, extra) from error
