"""How bounds move with confounding, and where the best action breaks down."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from forging import forge
from handmade import counts_of_entries
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.bounds.sensitivity import PRECISION
from causal_shaping.errors import CausalShapingError, ContradictionError
from causal_shaping.plot import draw

pytestmark = pytest.mark.filterwarnings("ignore:Only 'random' is there")


def one_choice(share, good=0.8, bad=0.5):
    """Population counts of a source that takes `a` with a share, in a state where a pays 1 with 0.8 and b with 0.5."""
    space = cs.Space(["s", "end"], ["a", "b"], terminal=["end"])
    mass = [share * good, share * (1 - good), (1 - share) * bad, (1 - share) * (1 - bad)]
    reward, action = [1.0, 0.0, 1.0, 0.0], [0, 0, 1, 1]
    return counts_of_entries(space, mass, reward, action=action, sources=["trial"], population=True)


def breakdown(share, good=0.8, bad=0.5):
    """Solve for the Gamma at which the floor of a meets the ceiling of b, by hand.

    The floor of a is max(its proven win, 1 minus the most it can lose), the ceiling of b likewise.
    """

    def gap(gamma):
        least, most = share + (1 - share) / gamma, share + (1 - share) * gamma
        floor = max(good * least, 1 - (1 - good) * most)
        least, most = (1 - share) + share / gamma, (1 - share) + share * gamma
        return floor - min(bad * most, 1 - (1 - bad) * least)

    low, high = 1.0, 1e4
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    return low


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_the_breakdown_is_where_the_floor_of_the_best_meets_the_ceiling_of_the_next(share):
    found = cs.sensitivity(one_choice(share), 1, 1.0, 0.0)
    assert found.best_action[0] == 0
    assert found.breakdown[0] == pytest.approx(breakdown(share), rel=PRECISION)
    assert found.breakdown[0] <= breakdown(share) * (1 + 1e-9)
    for gamma, singled in zip(found.confounding, found.singled_out[:, 0], strict=True):
        assert singled == (gamma < breakdown(share))


def test_bounds_that_tighten_as_confounding_grows_are_told():
    found = cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0)
    assert "sampling error" not in " ".join(found.findings())
    odd = replace(found, floors=found.floors[::-1])
    assert "Some bounds tighten as confounding grows, which only sampling error can do" in odd.findings()[0]
    falling = found.ceilings.copy()
    falling[-1] = falling[0] - 0.1  # at the last confounding only
    odd = replace(found, ceilings=falling)
    assert "Some bounds tighten as confounding grows, which only sampling error can do" in odd.findings()[0]


def test_bounds_widen_and_less_is_excluded_as_confounding_grows():
    world = cs.load_world("lavacross-easy")
    counts = world.model.observe(world.demonstrators["random"], "random")
    found = cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(1, 1.2, 2, 10, math.inf))
    assert (np.diff(found.ceilings, axis=0) >= -1e-9).all()
    assert (np.diff(found.floors, axis=0) <= 1e-9).all()
    assert (np.diff(found.suboptimal) <= 0).all()
    assert (np.diff(found.singled_out.astype(int), axis=0) <= 0).all()
    best = world.model.optimum(20)
    np.testing.assert_allclose(found.ceilings[0], best.values[0], atol=1e-9)
    assert found.singled_out[0, found.bounded].all()  # with equals counted as one
    known = ~np.isnan(found.breakdown)
    equals = best.gaps()[0] < 1e-9
    for gamma, singled in zip(found.confounding, found.singled_out, strict=True):
        assert (singled[known] == (found.breakdown[known] >= gamma)).all()
        options = {"confounding": gamma, "support": "observed"}
        worse = cs.provably_suboptimal(
            cs.value_ceilings(counts, 20, -0.1, **options), cs.value_floors(counts, 20, -1.1, **options)
        )[0]
        assert np.array_equal(singled[found.bounded], (worse | equals).all(axis=-1)[found.bounded])


@pytest.mark.filterwarnings("ignore:Only 'bad' is there")
def test_the_best_action_is_that_of_the_ceilings_in_the_first_step():
    world = cs.load_world("lavacross-easy")
    counts = world.model.observe(world.demonstrators["bad"], "bad")
    found = cs.sensitivity(counts, 4, -0.1, -1.1, confounding=(2, 4), support="observed")
    ceilings = cs.value_ceilings(counts, 4, -0.1, confounding=2, support="observed")
    floors = cs.value_floors(counts, 4, -1.1, confounding=2, support="observed")
    best, worst = (np.nanargmax(bounds.q_values, axis=-1) for bounds in (ceilings, floors))
    assert np.array_equal(found.best_action, best[0])
    assert (best[0] != best[1]).any()
    assert (best[0] != worst[0]).any()


def test_sources_that_contradict_each_other_are_told_and_a_known_one_stays():
    world = cs.load_world("lavacross-easy")
    counts = [world.model.observe(world.demonstrators[name], name) for name in ("bad", "random")]
    found = cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(1, math.inf))
    assert "contradict each other" in found.contradictions[0]
    assert found.contradictions[1] is None
    assert np.isnan(found.ceilings[0]).all()
    assert "At a confounding of 1 the sources contradict each other." in found.findings()
    with pytest.raises(ContradictionError, match="No confounding that was asked for is possible"):
        cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(1,))
    fixed = cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(math.inf,), fixed={"random": 1.0})
    np.testing.assert_allclose(fixed.ceilings[0], world.model.optimum(20).values[0], atol=1e-9)


def test_the_table_holds_a_row_per_gamma_and_state(tmp_path):
    found = cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, confounding=(1, 2, math.inf))
    found.save(tmp_path / "gamma.parquet")
    table = pq.read_table(tmp_path / "gamma.parquet").to_pandas()
    assert table["confounding"].tolist() == [1.0, 1.0, 2.0, 2.0, math.inf, math.inf]
    assert table["ceiling"].tolist() == found.ceilings.ravel().tolist()
    assert table["best_action"].tolist()[:2] == ["a", None]
    assert len(draw(found, Figure())) == 3
    assert len(draw(cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, confounding=(2,)), Figure())) == 3


def test_a_file_gives_back_what_was_saved(tmp_path):
    world = cs.load_world("lavacross-easy")
    counts = [world.model.observe(world.demonstrators[name], name) for name in ("bad", "random")]
    found = cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(1, math.inf))
    path = tmp_path / "gamma.parquet"
    found.save(path)
    table = pq.read_table(path)
    forge(table.take(np.random.default_rng(0).permutation(table.num_rows)), path)
    read = cs.Sensitivity.load(path)
    assert read.checksum == found.checksum
    assert read.summary() == found.summary()
    assert read.contradictions == found.contradictions
    forge(table.set_column(2, "confounding", table["confounding"]).slice(1), path)
    with pytest.raises(cs.FileError, match="each Gamma and state once"):
        cs.Sensitivity.load(path)
    lower = table.column_names.index("ceiling")
    pq.write_table(table.set_column(lower, "ceiling", pc.subtract(table["ceiling"], 1.0)), path)
    with pytest.raises(cs.FileError, match="changed after it was written"):
        cs.Sensitivity.load(path)


def test_tables_for_other_tools_hold_the_same_rows(tmp_path):
    found = cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, confounding=(1, math.inf))
    table = found.to_pandas()
    assert list(table.columns[:3]) == ["state", "confounding", "ceiling"]
    assert table["state"].tolist() == ["s", "end", "s", "end"]
    assert table["ceiling"].tolist() == found.ceilings.ravel().tolist()
    found.save(tmp_path / "gamma.csv")
    lines = (tmp_path / "gamma.csv").read_text().splitlines()
    assert lines[0] == '"state","confounding","ceiling","floor","singled_out","best_action","breakdown","bounded"'
    assert lines[1].startswith('"s",1,')
    held = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert [row["confounding"] for row in held["confounding"]] == [1.0, "inf"]
    assert held["states"][0]["best_action"] == "a"
    assert "\n" not in repr(found)
    assert "singled out in 1 of 1 states" in repr(found)


def test_progress_ends_when_all_is_done():
    told = []
    cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, progress=lambda *state: told.append(state))
    assert [done for done, _, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][0] == told[-1][1]
    assert all(done <= total for done, total, _ in told)


def test_a_known_upper_bound_on_values_tightens_the_ceilings():
    free = cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, confounding=(math.inf,))
    known = cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, confounding=(math.inf,), value_max=0.8)
    assert known.ceilings[0, 0] == 0.8 < free.ceilings[0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confounding": ()}, "at least one Gamma"),
        ({"fixed": {"ward": 1.0}}, "fixed names 'ward'"),
        ({"confounding": (0.5,)}, "confounding of 'trial' is 0.5"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(CausalShapingError, match=message):
        cs.sensitivity(one_choice(0.5), 1, 1.0, 0.0, **options)
