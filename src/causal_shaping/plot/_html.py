"""What all pages share: templates in which every text stays text, and figures inside the page.

Pages extend `base.html`, which holds the style, tables that sort, and what hovering shows. A page
loads nothing from a network.
"""

from __future__ import annotations

import base64
import io

import jinja2
import matplotlib
from matplotlib.figure import Figure

from causal_shaping.plot import SALT
from causal_shaping.plot.style import PAGE


def environment(package: str | None = None) -> jinja2.Environment:
    """Return the templates of this package, and those of another package that extend them."""
    names = [name for name in ("causal_shaping.plot", package) if name]
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in names]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.globals["colors"] = PAGE
    return made


def figure_source(figure: Figure) -> str:
    """Return a figure as the address of an image inside the page, equal for equal figures."""
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": SALT}):
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return svg_source(picture.getvalue())


def svg_source(picture: bytes) -> str:
    """Return an SVG as the address of an image inside the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
