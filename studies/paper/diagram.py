"""The causal diagram of a CMDP, offline and under intervention: the paper's first figure.

python -m studies.paper.diagram diagram.png   # or .svg, .pdf
"""

from __future__ import annotations

import argparse
from pathlib import Path

from causal_shaping._extras import needs_extra
from causal_shaping.errors import CausalShapingError

with needs_extra("Figures of the paper", "studies"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

_STEPS = 3
_RADIUS, _RIM = 0.26, 21.0
"""The radius of a node, and the distance from its centre to where arrows end, in points."""

_INK = "#1f2328"
_COLOURS = {"S": "white", "X": "#7ba7d0", "Y": "#ee6465"}


def draw_diagram() -> Figure:
    """Draw both diagrams, side by side.

    Left, offline: the hidden noise, which is not drawn, confounds each action with its reward and with the next state
    (dashed). Right, under do(pi): actions follow the policy, and only reward and next state still share the noise.
    """
    figure = Figure(figsize=(11, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw(left, "Offline: the demonstrator sees the noise", intervened=False)
    _draw(right, r"Online: do($\pi$) does not", intervened=True)
    return figure


def _draw(axes: Axes, title: str, *, intervened: bool) -> None:
    at = {}
    for h in range(1, _STEPS + 1):
        at["S", h] = (2.0 * h, 0.0)
        at["X", h] = (2.0 * h + 1, 1.0)
        at["Y", h] = (2.0 * h + 1, -1.0)
    at["S", _STEPS + 1] = (2.0 * _STEPS + 2, 0.0)  # not drawn: where the last arrows point

    for h in range(1, _STEPS + 1):
        state, action, reward, after = at["S", h], at["X", h], at["Y", h], at["S", h + 1]
        for pair in ((state, reward), (action, reward), (state, after)):
            _arrow(axes, *pair)
        if h < _STEPS:
            _arrow(axes, action, after)
            _arrow(axes, reward, after, hidden=True)
        _arrow(axes, state, action)
        if intervened:
            regime = (action[0] - 0.85, action[1])
            axes.add_patch(Rectangle((regime[0] - 0.07, regime[1] - 0.07), 0.14, 0.14, color=_INK))
            axes.text(regime[0], regime[1] + 0.2, r"$\pi$", ha="center", va="center", fontsize=11)
            _arrow(axes, regime, action, gap=3)
        else:
            _arrow(axes, action, reward, hidden=True)
            if h < _STEPS:
                _arrow(axes, action, after, hidden=True)

    for (kind, h), where in at.items():
        if h > _STEPS:
            continue
        axes.add_patch(Circle(where, _RADIUS, facecolor=_COLOURS[kind], edgecolor=_INK, linewidth=1.2, zorder=3))
        axes.text(*where, f"${kind}_{h}$", ha="center", va="center", fontsize=11, zorder=4)
    axes.set(xlim=(1.5, 2 * _STEPS + 2.1), ylim=(-1.4, 1.4), aspect="equal")
    axes.set_title(title, fontsize=12, color=_INK)
    axes.set_axis_off()


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    hidden: bool = False,
    gap: float = _RIM,
) -> None:
    """Draw a cause, or, dashed and with two heads, a hidden cause that two variables share.

    `gap` is the distance from the start to where the arrow begins, in points.
    """
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="<|-|>" if hidden else "-|>",
            connectionstyle=f"arc3,rad={-0.36 if hidden else 0}",
            linestyle=(0, (4, 2.5)) if hidden else "-",
            shrinkA=gap,
            shrinkB=_RIM,
            mutation_scale=10,
            linewidth=1.1,
            color=_INK,
            zorder=2,
        )
    )


if __name__ == "__main__":
    from causal_shaping.plot import save_picture

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where to draw it: a .png, .svg or .pdf file")
    try:
        save_picture(draw_diagram(), parser.parse_args().file)
    except CausalShapingError as error:
        parser.exit(2, f"error: {error}\n")
