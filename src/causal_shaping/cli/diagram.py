"""`causal-shaping diagram`: the causal diagram of a CMDP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from causal_shaping._extras import needs_extra
from causal_shaping.cli._options import FIGURES, check_files, option
from causal_shaping.cli._terminal import say_written


def diagram(
    output: Annotated[Path, option("The file to draw into (.svg, .png, .pdf).", "FILE", "--output", "-o")],
) -> None:
    """Draw the causal diagram of a CMDP, offline and under intervention.

    Example: causal-shaping diagram -o cmdp.svg
    """
    check_files(output, endings=FIGURES)
    with needs_extra("The causal diagram and its figures", "paper"):
        from causal_shaping.paper.diagram import draw_diagram
        from causal_shaping.plot import save_picture

    save_picture(draw_diagram(), output)
    say_written({"Diagram": output})
