"""Figures of results (extra `plot`): all that draws with matplotlib.

- `draw`: what `result.plot()` calls; one module for each kind of result.
"""

from __future__ import annotations

import importlib
from typing import Any

from causal_shaping.errors import ArgumentError, MissingExtraError

_DRAWN_BY: dict[str, str] = {"World": "worlds"}
"""The name of a result's class to the module here whose `draw` draws it."""


def draw(result: Any, ax: Any = None) -> Any:
    """Draw a result into axes, by default into a new figure, and return the axes."""
    for kind in type(result).__mro__:
        if kind.__name__ in _DRAWN_BY:
            try:
                module = importlib.import_module(f"causal_shaping.plot.{_DRAWN_BY[kind.__name__]}")
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] != "matplotlib":
                    raise
                raise MissingExtraError("Figures", "plot") from error
            return module.draw(result, ax)
    raise ArgumentError(f"There is no figure of a {type(result).__name__}.")
