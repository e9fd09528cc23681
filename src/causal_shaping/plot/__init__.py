"""Figures and pages of results: everything that draws with matplotlib (extra `plot`).

- `draw`: what `result.plot()` calls; `FIGURES` says which module draws what.
- `check_picture`, `save_picture`, `write_figure`: a figure in a file.
- `check_page`, `save_page`: one HTML file about somebody's logs.

The colours are in `style`.
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

SALT = "causal-shaping"
"""Makes the names inside an SVG, random otherwise, equal for equal figures."""

DATES = MappingProxyType({".svg": {"Date": None}, ".pdf": {"CreationDate": None}})
"""Metadata that leaves the date out, so that equal figures give equal files."""

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
        ax: axes for the main panel, or an empty figure for all of them; by default a new figure of
            pyplot.
        options: see the function that draws it.
    """
    names = [kind.__name__ for kind in type(result).__mro__ if kind.__name__ in FIGURES]
    if not names:
        raise ArgumentError(f"There is no figure of a {type(result).__name__}.")
    _require("Figures", "matplotlib")
    module, function = FIGURES[names[0]]
    drawing = getattr(importlib.import_module(f"causal_shaping.plot.{module}"), function)
    kinds = [item.kind for item in signature(drawing).parameters.values()]
    if Parameter.VAR_KEYWORD not in kinds:
        check_names(options, "plot", drawing)
    return drawing(result, ax, **options)


def _require(what: str, *modules: str) -> None:
    """Say which extra is missing, if a module is."""
    with needs_extra(what, "plot"):
        for module in modules:
            importlib.import_module(module)


def check_picture(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a figure cannot be written to, or a missing extra, before long work."""
    check_target(path, FORMATS)
    _require("Figures", "matplotlib")


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a page cannot be written to, or a missing extra, before long work."""
    check_target(path, PAGES)
    _require("Pages", "matplotlib", "jinja2")


def save_page(result: Any, path: str | os.PathLike[str], **parts: Any) -> None:
    """Write the page of an inspection or of ceilings: what `result.save_html` calls.

    Args:
        result: the inspection, or the ceilings.
        path: the file.
        parts: what stands beside ceilings, see `Ceilings.save_html`.
    """
    check_page(path)
    page = importlib.import_module("causal_shaping.plot.page")
    render = {True: page.render_ceilings, False: page.render_inspection}[bool(parts)]
    text = render(result, **parts)
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
        figure = Figure(layout="constrained")
        draw(picture, figure, **options)
    write_figure(figure, path)


def write_figure(
    figure: Any, path: str | os.PathLike[str], salt: str = SALT, dpi: int = 160
) -> None:
    """Write a figure in the format of the file's ending.

    Args:
        figure: of matplotlib.
        path: the file.
        salt: names what is inside an SVG.
        dpi: dots per inch of a PNG.
    """
    import matplotlib

    ending, drawn = os.path.splitext(path)[1].lower(), io.BytesIO()
    look: Any = {"format": ending[1:], "dpi": dpi, "facecolor": "white"}
    with matplotlib.rc_context({"svg.hashsalt": salt}), replacing(path, FORMATS) as temporary:
        # Drawn in memory: matplotlib hides errors of the disk.
        figure.savefig(drawn, metadata=DATES.get(ending), **look)
        temporary.write_bytes(drawn.getvalue())
