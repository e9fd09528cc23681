"""The causal diagram of a CMDP, offline and under intervention: the paper's first figure."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

STEPS = 3
RADIUS = 0.26
BLUE, RED, INK = "#7ba7d0", "#ee6465", "#1f2328"


def draw_diagram() -> Figure:
    """Draw both diagrams, side by side.

    Left, offline: the hidden noise, not drawn, ties each action to its reward and to the next state (dashed).
    Right, under do(pi): actions follow the policy, and only reward and next state still share the noise.
    """
    figure = Figure(figsize=(11, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw(left, "Offline: the demonstrator sees the noise", intervened=False)
    _draw(right, r"Online: do($\pi$) does not", intervened=True)
    return figure


def _draw(axes: Axes, title: str, *, intervened: bool) -> None:
    at = {}
    for h in range(1, STEPS + 1):
        at["S", h] = (2.0 * h, 0.0)
        at["X", h] = (2.0 * h + 1, 1.0)
        at["Y", h] = (2.0 * h + 1, -1.0)
    at["S", STEPS + 1] = (2.0 * STEPS + 2, 0.0)  # where the diagram goes on

    for h in range(1, STEPS + 1):
        state, action, reward, after = at["S", h], at["X", h], at["Y", h], at["S", h + 1]
        for pair in ((state, reward), (action, reward), (state, after)):
            _arrow(axes, *pair)
        if h < STEPS:
            _arrow(axes, action, after)
            _arrow(axes, reward, after, hidden=True)
        _arrow(axes, state, action)
        if intervened:
            regime = (action[0] - 0.85, action[1])
            axes.add_patch(Rectangle((regime[0] - 0.07, regime[1] - 0.07), 0.14, 0.14, color=INK))
            axes.text(regime[0], regime[1] + 0.2, r"$\pi$", ha="center", va="center", fontsize=11)
            _arrow(axes, regime, action, leaves=3)
        else:
            _arrow(axes, action, reward, hidden=True)
            if h < STEPS:
                _arrow(axes, action, after, hidden=True)

    for (kind, h), where in at.items():
        if h > STEPS:
            continue
        color = {"S": "white", "X": BLUE, "Y": RED}[kind]
        axes.add_patch(Circle(where, RADIUS, facecolor=color, edgecolor=INK, linewidth=1.2, zorder=3))
        axes.text(*where, f"${kind}_{h}$", ha="center", va="center", fontsize=11, zorder=4)
    axes.set(xlim=(1.5, 2 * STEPS + 2.1), ylim=(-1.4, 1.4), aspect="equal")
    axes.set_title(title, fontsize=12, color=INK)
    axes.set_axis_off()


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    hidden: bool = False,
    leaves: float | None = None,
) -> None:
    """Draw a cause, or, dashed and with two heads, a hidden cause that two variables share."""
    around = 21.0  # points from a node's centre to its rim
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="<|-|>" if hidden else "-|>",
            connectionstyle=f"arc3,rad={-0.36 if hidden else 0}",
            linestyle=(0, (4, 2.5)) if hidden else "-",
            shrinkA=around if leaves is None else leaves,
            shrinkB=around,
            mutation_scale=10,
            linewidth=1.1,
            color=INK,
            zorder=2,
        )
    )
