"""The commands that reproduce the paper need more than the library does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from causal_shaping.errors import MissingExtraError


@contextmanager
def needs_paper(what: str) -> Iterator[None]:
    """Turn a module that is missing into an error that names the extra `paper`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "causal_shaping":
            raise
        raise MissingExtraError(f"{what} and its figures", "paper") from error
