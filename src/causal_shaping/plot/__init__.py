"""Figures and pages of results (extra `plot`): all that draws with matplotlib.

- `draw`: what `result.plot()` calls; `FIGURES` says which module draws what.
- `check_picture`, `save_picture`, `write_figure`: a figure in a file.
- `check_page`, `save_page`: one HTML file about somebody's logs.
"""

from __future__ import annotations

import importlib
import io
import os
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from causal_shaping._checks import check_names
from causal_shaping._extras import needs_extra
from causal_shaping.errors import ArgumentError
from causal_shaping.storage import check_target, replacing

FORMATS = (".png", ".svg", ".pdf")
"""The endings of a figure's file."""

PAGES = (".html", ".htm")
"""The endings of a page's file."""

FIGURES = MappingProxyType(
    {
        "Counts": ("by_state", "draw_visits"),
        "Bounds": ("by_state", "draw_bounds"),
        "Potential": ("by_state", "draw_potential"),
        "Posterior": ("beliefs", "draw_posterior"),
        "Trust": ("beliefs", "draw_trust"),
        "FittedCeilings": ("fitted", "draw_fitted"),
        "Sensitivity": ("sensitivity", "draw_sensitivity"),
        "Coverage": ("inspection", "draw_coverage"),
        "Contradictions": ("inspection", "draw_contradictions"),
        "PersistenceTest": ("inspection", "draw_persistence"),
        "HiddenColumns": ("inspection", "draw_hidden_columns"),
        "Inspection": ("inspection", "draw_inspection"),
        "Run": ("regret", "draw_run"),
        "Seeds": ("regret", "draw_seeds"),
        "Worth": ("regret", "draw_worth"),
        "World": ("worlds", "draw_map"),
    }
)
"""The name of a result's class to the module here and its function that draw it."""


def draw(result: Any, ax: Any = None, **options: Any) -> Any:
    """Draw a result and return the axes, an array of them if there are several.

    Args:
        result: of a class in `FIGURES`, or of a child of one.
        ax: axes for the main panel, or an empty figure for all of them; by default a new figure of pyplot.
        options: see the function that draws it.
    """
    for kind in type(result).__mro__:
        if kind.__name__ in FIGURES:
            _require("Figures", "matplotlib")
            module, function = FIGURES[kind.__name__]
            drawing = getattr(importlib.import_module(f"causal_shaping.plot.{module}"), function)
            if all(item.kind != Parameter.VAR_KEYWORD for item in signature(drawing).parameters.values()):
                check_names(options, "plot", drawing)
            return drawing(result, ax, **options)
    raise ArgumentError(f"There is no figure of a {type(result).__name__}.")


def _require(what: str, *modules: str) -> None:
    """Say which extra is missing, if a module is."""
    with needs_extra(what, "plot"):
        for module in modules:
            importlib.import_module(module)


def check_picture(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a figure cannot be written to, and a missing extra; to be asked before long work."""
    check_target(path, FORMATS)
    _require("Figures", "matplotlib")


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a page cannot be written to, and a missing extra; to be asked before long work."""
    check_target(path, PAGES)
    _require("Pages", "matplotlib", "jinja2")


def save_page(result: Any, path: str | os.PathLike[str], **parts: Any) -> None:
    """Write the page of an inspection or of ceilings: what `result.save_html` calls."""
    check_page(path)
    page = importlib.import_module("causal_shaping.plot.page")
    text = page.render_ceilings(result, **parts) if parts else page.render_inspection(result)
    with replacing(path, PAGES) as temporary:
        temporary.write_text(text, encoding="utf-8")


def save_picture(picture: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a figure as PNG, SVG or PDF, by the file's ending; equal figures give equal files.

    Args:
        picture: a figure, or a result that is drawn into a new one.
        path: the file.
        options: for the drawing of a result.
    """
    check_picture(path)
    from matplotlib.figure import Figure

    figure = picture
    if not isinstance(picture, Figure):
        draw(picture, figure := Figure(layout="constrained"), **options)
    write_figure(figure, path)


def write_figure(figure: Any, path: str | os.PathLike[str], salt: str = "causal-shaping", dpi: int = 160) -> None:
    """Write a figure in the format of the file's ending; drawn in memory, as matplotlib hides errors of the disk.

    Args:
        figure: of matplotlib.
        path: the file.
        salt: names what is inside an SVG.
        dpi: dots per inch of a PNG.
    """
    import matplotlib

    ending, held = os.path.splitext(path)[1].lower(), io.BytesIO()
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    with matplotlib.rc_context({"svg.hashsalt": salt}), replacing(path, FORMATS) as temporary:
        figure.savefig(held, format=ending[1:], dpi=dpi, facecolor="white", metadata=dates)
        temporary.write_bytes(held.getvalue())
