"""Optional packages: an import that fails names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from causal_shaping.errors import MissingExtraError


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Import optional packages inside this, so that a missing one raises a `MissingExtraError`.

    Args:
        what: what needs them, in the plural, such as "Figures of the paper".
        extra: the extra that installs them.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "causal_shaping":
            raise
        raise MissingExtraError(what, extra) from error
