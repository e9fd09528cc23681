"""The logs that a baseline learns from: one or several sources in one space."""

from __future__ import annotations

from collections.abc import Sequence

from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError


def merge_spaces(logs: Logs | Sequence[Logs]) -> tuple[list[Logs], Space]:
    """Return the sources as a list, and the space that holds the labels of all of them."""
    sources = [logs] if isinstance(logs, Logs) else list(logs)
    if not sources:
        raise ArgumentError("There are no logs to learn from.")
    space = sources[0].space
    for one in sources[1:]:
        space = space.merge(one.space)
    return sources, space
