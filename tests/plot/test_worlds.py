"""Pictures: what is drawn, where it is written, what is refused."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import FancyArrow

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError
from causal_shaping.plot import save_picture
from causal_shaping.plot.style import INK, WIND
from causal_shaping.plot.worlds import draw_world
from studies.paper.diagram import draw_diagram


def drawn(figure, kind, color):
    axes = figure.axes[0]
    return [p for p in axes.patches if isinstance(p, kind) and p.get_facecolor()[:3] == to_rgb(color)]


def to_rgb(color):
    return tuple(int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))


def heads(figure, color):
    """The direction of each arrow of a colour, by the cell that it lies in."""
    found = {}
    for arrow in drawn(figure, FancyArrow, color):
        points = arrow.get_xy()  # the first is the tip
        middle = points.mean(axis=0)
        way = np.round((points[0] - middle) / np.abs(points[0] - middle).max()).astype(int)
        found.setdefault(tuple(int(i) for i in middle), set()).add(tuple(way.tolist()))
    return found


WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


def test_arrows_point_where_the_policy_goes():
    world = cs.load_world("lavacross-maze")
    policy = world.model.optimum().greedy()
    expected = {cell: {WAYS[world.actions[policy[world.state_at(*cell)]]]} for cell in world.grid.starts}
    assert heads(draw_world(world, policy=policy, winds=False), INK) == expected


def test_winds_point_where_the_air_pushes():
    world = cs.load_world("lavacross-maze")
    ways = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    expected = {
        cell: {way for way, p in zip(ways, world.model.noise[world.state_at(*cell)], strict=False) if p > 0}
        for cell in world.grid.starts
    }
    assert heads(draw_world(world), WIND) == expected


def test_numbers_are_those_of_the_values():
    world = cs.load_world("walking-robot")
    best = world.model.optimum()
    texts = {t.get_position(): t.get_text() for t in draw_world(world, values=best.values).axes[0].texts}
    assert texts == {
        (place + 0.06, 1 - stable + 0.06): f"{best.values[world.state_at(place, stable)]:.2f}"
        for place in range(10)
        for stable in (0, 1)
    }


def test_a_stochastic_policy_draws_every_likely_action():
    world = cs.load_world("windy-empty")
    uniform = np.full((len(world.states), 5), 0.2)
    assert len(drawn(draw_world(world, policy=uniform, winds=False), FancyArrow, INK)) == 4 * len(world.grid.starts)


@pytest.mark.parametrize("make", [draw_diagram, lambda: draw_world(cs.load_world("lavacross-hard"))])
def test_png_svg_and_pdf(tmp_path, make):
    for suffix in (".png", ".svg", ".pdf"):
        save_picture(make(), tmp_path / f"picture{suffix}")
    assert np.ptp(imread(tmp_path / "picture.png")) > 0.5
    assert ElementTree.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")  # noqa: S314 - ours
    assert (tmp_path / "picture.pdf").read_bytes().startswith(b"%PDF")
    assert len(list(tmp_path.iterdir())) == 3


def test_the_diagram_loses_its_confounding_arrows_under_intervention():
    offline, online = draw_diagram().axes
    arrows = [[p for p in axes.patches if hasattr(p, "get_arrowstyle")] for axes in (offline, online)]
    hidden = [sum(arrow.get_linestyle() != "-" for arrow in each) for each in arrows]
    assert hidden == [7, 2]  # the paper's first figure


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda w: draw_world(w, values=np.zeros(3)), r"values has shape \(3,\)"),
        (lambda w: draw_world(w, values=np.zeros((20, 49))), "Pass one step"),
        (lambda w: draw_world(w, policy=np.zeros(3, dtype=int)), "names the action of each state"),
        (lambda w: draw_world(w, policy=np.zeros((49, 2))), r"policy has shape \(49, 2\)"),
        (lambda w: draw_world(w, policy=np.full(49, 7)), "an action must be in 0 .. 4"),
        (lambda w: draw_world(w, policy=np.full((49, 5), 3.0)), "the sum of policy"),
        (lambda w: save_picture(draw_world(w), "x.gif"), "must end in .png or .svg or .pdf"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(CausalShapingError, match=message):
        draw(cs.load_world("lavacross-easy"))


def test_a_world_draws_itself_into_new_or_given_axes():
    world = cs.load_world("lavacross-easy")
    axes = world.plot()
    assert axes.get_title() == world.title
    given = Figure().add_subplot()
    assert world.plot(ax=given) is given
    assert given.get_title() == world.title
