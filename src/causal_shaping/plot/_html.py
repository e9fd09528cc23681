"""What all pages share: templates in which every text stays text, and figures inside the page.

Pages extend `base.html`, which holds the style, tables that sort, and what hovering shows. They need no network.
"""

from __future__ import annotations

import base64
import io

import jinja2
import matplotlib
from matplotlib.figure import Figure


def environment(package: str | None = None) -> jinja2.Environment:
    """Return where templates come from: those here, and those of another package that extend them."""
    packages = ["causal_shaping.plot", *([package] if package else [])]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def figure_source(figure: Figure) -> str:
    """Return a figure as the address of an image that is inside the page; equal figures give equal addresses."""
    held = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "causal-shaping"}):
        figure.savefig(held, format="svg", metadata={"Date": None})
    return svg_source(held.getvalue())


def svg_source(picture: bytes) -> str:
    """Return an SVG as the address of an image that is inside the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
