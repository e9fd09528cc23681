"""Figures of results: each kind has one, in given axes or new ones, and labels stay text."""

import math
import sys
from dataclasses import replace

import forked
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.data.words import state_text
from causal_shaping.errors import ArgumentError, FileError, MissingExtraError
from causal_shaping.plot import FIGURES, check_page, check_picture, draw, save_picture
from causal_shaping.plot.by_state import draw_states, world_of


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def world():
    return cs.load_world("lavacross-easy")


def fitted_field():
    """Ceilings of the windy field, beside a coordinate that says nothing and one that never changes."""
    rows = cs.load_world("windy-field").collect("random", 1000, seed=0).to_pandas()
    rows = rows.drop(columns=["next_x", "next_y"]).assign(noise=np.random.default_rng(0).random(len(rows)))
    rows["$fixed"] = 2.0
    state = ["x", "y", "noise", "$fixed"]
    return cs.fit_ceilings(rows, state=state, horizon=3, reward_max=-0.1, members=1, trees=2)


@pytest.fixture(scope="module")
def results(world, tmp_path_factory):
    """A result of every kind, by the name of its class."""
    logs = [world.collect(name, 20_000) for name in ("bad", "random")]
    found = cs.inspect(logs)
    counts = cs.count(logs)
    ceilings = cs.value_ceilings(counts, 20, -0.1)
    return {
        "Counts": counts,
        "Bounds": ceilings,
        "FittedCeilings": fitted_field(),
        "Sensitivity": cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(5, math.inf), confidence=0.95),
        "Contradictions": found.contradictions,
        "HiddenColumns": cs.confounding_of(logs[0], logs[0].space.columns, draws=19),
        "Inspection": found,
        "Seeds": cs.train_seeds(
            world, learner="q-ucb-shaping", steps=500, seeds=range(2), folder=tmp_path_factory.mktemp("runs")
        ),
        "Worth": cs.posterior(counts, 20, -0.1).worth(steps=100, seeds=3),
        "World": world,
    }


@pytest.mark.parametrize("kind", FIGURES)
def test_every_result_is_drawn_into_given_axes_and_into_a_new_figure(results, kind):
    axes = Figure().add_subplot()
    assert draw(results[kind], axes) is axes
    assert axes.has_data()
    drawn = np.atleast_1d(draw(results[kind]))
    assert all(isinstance(one, Axes) and one.has_data() for one in drawn)
    assert drawn[0].get_figure().number in pyplot.get_fignums()


def test_results_have_the_figure_as_a_method(results):
    assert len(results["Inspection"].plot(Figure())) == 3
    assert isinstance(results["Contradictions"].plot(), Axes)


def test_states_of_two_numbers_are_a_heat_map(results, world):
    ceilings = results["Bounds"]
    axes = draw(ceilings, Figure())
    (image,) = axes.images
    x, y = (2, 5)
    left, _, _, top = image.get_extent()
    assert image.get_array()[int(y - top), int(x - left)] == ceilings.values[0, ceilings.space.state_position((x, y))]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
    on_map = draw(ceilings, Figure(), world=world)
    assert len(on_map.texts) == len(world.grid.starts)


def test_other_states_are_bars_with_names_and_bins_are_ranges():
    space = cs.Space([(0, "mild"), (1, "mild")], ["go"], ["age", "stage"], bins={"age": cs.Bins(edges=(65.0,))})
    assert state_text(space, 1) == "age 65 and above, stage mild"
    axes = draw_states(space, np.array([1.0, 2.0]), np.zeros(2, dtype=bool), "some", Figure())
    assert [bar.get_width() for bar in axes.patches] == [1.0, 2.0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [state_text(space, s) for s in range(2)]
    many = cs.Space([f"s{i}" for i in range(100)], ["go"])
    axes = draw_states(many, np.arange(100.0), np.zeros(100, dtype=bool), "many", Figure())
    assert not axes.patches
    assert axes.lines[0].get_ydata()[0] == 99


def test_labels_are_text_and_no_formulas(tmp_path):
    space = cs.Space(["$\\frac{$", "$b$", "<script>"], ["$go$"])
    axes = draw_states(space, np.arange(3.0), np.zeros(3, dtype=bool), "some", Figure())
    save_picture(axes.get_figure(), tmp_path / "x.svg")
    assert "<script>" not in (tmp_path / "x.svg").read_text()


def test_the_world_of_logs_is_the_one_that_all_of_them_name(world, results):
    space = results["Counts"].space
    named = {"world": "lavacross-easy", "coins": "standing"}
    assert world_of(space, [named, named]).name == "lavacross-easy"
    for metadata in ([], [{}], [named, {"world": "lavacross-hard"}], [{"world": "walking-robot"}], [{"world": "ward"}]):
        assert world_of(space, metadata) is None


def test_several_learners_share_axes(results):
    axes = draw(results["Seeds"], Figure(), label="one")
    draw(results["Seeds"], axes, label="other")
    assert [text.get_text() for text in axes.get_legend().texts] == ["one", "other"]


def test_visits_are_those_of_all_sources(results):
    assert np.nansum(draw(results["Counts"], Figure()).images[0].get_array()) == 40_000


def test_what_has_no_figure_says_so():
    with pytest.raises(ArgumentError, match="There is no figure of a Potential"):
        cs.Potential.zero(cs.Space(["a", "b"], ["go"])).plot()


@pytest.mark.parametrize(
    ("check", "name", "missing"), [(check_picture, "x.png", "matplotlib"), (check_page, "x.html", "jinja2")]
)
def test_a_file_and_the_extra_are_checked_before_the_computing(monkeypatch, tmp_path, check, name, missing):
    check(tmp_path / name)
    with pytest.raises(FileError, match="does not exist"):
        check(tmp_path / "no" / name)
    with pytest.raises(FileError, match=r"must end in \.(png|html)"):
        check(tmp_path / "x.txt")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"causal-shaping\[plot\]"):
        check(tmp_path / name)


def test_a_missing_extra_is_named_by_figures_and_pages(monkeypatch, results, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="Figures need an extra"):
        results["Inspection"].plot()
    with pytest.raises(MissingExtraError, match="Pages need an extra"):
        results["Inspection"].save_html(tmp_path / "x.html")


def test_fitted_ceilings_are_a_map_over_two_coordinates_with_the_others_held(results):
    fitted = results["FittedCeilings"]
    axes = draw(fitted, Figure(), x="y", y="x")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y", "x")
    noise = fitted.middle[2]
    assert f"noise = {noise:.3g}, \\$fixed = 2" in axes.get_title()
    (image,) = axes.images
    picture, (left, right, bottom, top) = image.get_array(), image.get_extent()
    assert (left, right, bottom, top) == (*fitted.low[[1]], *fitted.high[[1]], *fitted.low[[0]], *fitted.high[[0]])
    corner = [[bottom, left, noise, 2.0], [top, left, noise, 2.0], [bottom, right, noise, 2.0]]
    shown = np.ma.filled(picture, np.nan)[[0, -1, 0], [0, 0, -1]]
    np.testing.assert_allclose(shown, np.where(fitted.is_beyond(corner), np.nan, fitted(corner)))


def test_what_lies_beyond_the_logs_is_marked(results):
    fitted = replace(results["FittedCeilings"], middle=np.array([0.0, 0.0, 50.0, 2.0]))
    axes = draw(fitted, Figure(), x="x", y="y")
    assert np.isnan(np.ma.filled(axes.images[0].get_array(), np.nan)).all()
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["beyond the logs"]


def test_fitted_ceilings_are_a_line_over_one_coordinate(results):
    fitted = results["FittedCeilings"]
    axes = draw(fitted, Figure(), x="x")
    values = axes.lines[0].get_ydata()
    assert np.nanmax(values) <= -0.1
    assert (np.diff(axes.lines[0].get_xdata()) > 0).all()
    constant = draw(fitted, Figure(), x="$fixed")
    assert constant.get_xlim() == (1.5, 2.5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"x": "z"}, "There is no coordinate 'z'. The coordinates are x, y, noise, "),
        ({"x": "x", "y": "x"}, "'x' is named twice"),
    ],
)
def test_coordinates_that_do_not_fit_are_refused(results, options, expected):
    with pytest.raises(ArgumentError, match=expected):
        draw(results["FittedCeilings"], **options)


def test_images_have_no_coordinates_to_draw_over(results):
    fitted = replace(results["FittedCeilings"], shape=(2, 2, 3), columns=("image",))
    with pytest.raises(ArgumentError, match="have no coordinates to draw values over"):
        fitted.plot()


def test_a_full_disk_is_an_error_of_ours_in_every_format(tmp_path):
    """The limit of a file's size stands for the end of the disk; matplotlib's own error of a PDF hides the cause."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True  # else half a module stays behind\n"
        "from matplotlib.figure import Figure\n"
        "from causal_shaping.errors import FileError; from causal_shaping.plot import save_picture\n"
        "figure = Figure(); figure.add_subplot(title='some text')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "for path in sys.argv[1:]:\n"
        "    try: save_picture(figure, path)\n"
        "    except FileError as error: print(error)"
    )
    given = [str(tmp_path / f"a{ending}") for ending in (".pdf", ".svg", ".png", ".PDF")]
    ran = forked.run(code, *given)
    assert ran.stdout.splitlines() == [f"{path} cannot be written: File too large." for path in given]
    assert list(tmp_path.iterdir()) == []
