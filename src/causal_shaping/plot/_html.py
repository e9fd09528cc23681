"""What all pages share: templates in which every text stays text, figures inside the page, and the file.

Pages extend `base.html`, which holds the style, tables that sort, and what hovering shows. They need no network.
"""

from __future__ import annotations

import base64
import io
import os
from typing import TYPE_CHECKING, Any

from causal_shaping.errors import MissingExtraError
from causal_shaping.io.files import check_target, replacing
from causal_shaping.plot import require_matplotlib

if TYPE_CHECKING:
    import jinja2
    from matplotlib.figure import Figure

PAGES = (".html", ".htm")


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a file that a page cannot be written to, and a missing extra; to be asked before long work."""
    check_target(path, PAGES)
    require_matplotlib()
    _jinja2()


def _jinja2() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise MissingExtraError("Pages", "plot") from error
    return jinja2


def environment(package: str | None = None) -> jinja2.Environment:
    """Return where templates come from: those here, and those of another package that extend them."""
    jinja2 = _jinja2()
    packages = ["causal_shaping.plot", *([package] if package else [])]
    return jinja2.Environment(  # type: ignore[no-any-return]
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def figure_source(figure: Figure) -> str:
    """Return a figure as the address of an image that is inside the page; equal figures give equal addresses."""
    import matplotlib

    held = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "causal-shaping"}):
        figure.savefig(held, format="svg", metadata={"Date": None})
    return svg_source(held.getvalue())


def svg_source(picture: bytes) -> str:
    """Return an SVG as the address of an image that is inside the page."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write a page, or leave what was there."""
    with replacing(path, PAGES) as temporary:
        temporary.write_text(text, encoding="utf-8")
