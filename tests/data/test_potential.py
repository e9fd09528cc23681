"""The potential: what it is for labels and live observations, what it keeps in a file, and what it refuses."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forging import forge

import causal_shaping as cs
from causal_shaping.data.successors import AllowedSuccessors
from causal_shaping.errors import ArgumentError, CausalShapingError, DataError, FileError, UnknownNameError
from causal_shaping.storage import FORMATS

SPACE = cs.Space(["a", "b", "end"], ["go"], terminal=["end"])
EASY = cs.load_world("lavacross-easy")
COUNTS = cs.count([EASY.collect(name, 5_000) for name in EASY.demonstrators])


def test_a_potential_answers_by_label_step_and_position():
    phi = cs.Potential([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]], SPACE)
    assert (phi.step_indexed, phi.horizon) == (True, 2)
    assert [phi("a"), phi("b", 1), phi("end"), phi("a", 2), phi("a", 7)] == [1.0, 4.0, 0.0, 0.0, 0.0]
    assert phi.at([0, 1, 1], [0, 0, 1]).tolist() == [1.0, 2.0, 4.0]
    flat = cs.Potential([1.0, 2.0, 9.0], SPACE)
    assert (flat.step_indexed, flat.horizon) == (False, None)
    assert [flat("b", 5), flat("end")] == [2.0, 0.0]


def test_a_state_that_it_does_not_know_has_the_value_it_is_given_or_the_best():
    assert cs.Potential([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0]], SPACE)("z", 1) == 4.0
    assert cs.Potential([1.0, 2.0, 9.0], SPACE, unseen=7.0)("z") == 7.0
    strict = cs.Potential([1.0, 2.0, 9.0], SPACE, unseen=math.nan)
    assert strict("a") == 1.0
    with pytest.raises(UnknownNameError, match="does not know a state"):
        strict("z")
    ceilings = cs.value_ceilings(COUNTS, 20, 0.5)
    assert ceilings.potential()((99, 99), 3) == pytest.approx(17 * 0.5)  # the vacuous ceiling
    with pytest.warns(cs.AssumptionWarning):
        assert ceilings.potential(step_indexed=False)((99, 99)) == pytest.approx(20 * 0.5)


def test_ceilings_make_a_potential_by_step_or_of_the_first():
    ceilings = cs.value_ceilings(COUNTS, 20, -0.1, discount=0.9)
    by_step, first = ceilings.potential(), ceilings.potential(step_indexed=False)
    assert np.array_equal(by_step.values, ceilings.values)
    assert np.array_equal(first.values, ceilings.values[0])
    assert (by_step.discount, by_step.horizon) == (0.9, 20)
    assert any("drawn afresh" in sentence for sentence in by_step.assumptions)
    shifted = ceilings.potential().shifted(2.0)
    alive = ~EASY.model.terminal
    np.testing.assert_allclose(shifted.values[:, alive], ceilings.values[:, alive] + 2.0)
    assert (shifted.values[:, ~alive] == 0).all()
    fixed = cs.value_ceilings(COUNTS, 20, -0.1, discount=0.9, stationary=True)
    assert np.array_equal(fixed.potential().values, fixed.values)


def test_zero_and_live_observations():
    zero = cs.Potential.zero(EASY)
    assert (zero.values == 0).all()
    assert zero((99, 99)) == 0.0
    binned = cs.Space([(0, "x"), (1, "x")], ["go"], ["age", "kind"], bins={"age": cs.Bins(edges=(18.0,))})
    phi = cs.Potential([1.0, 2.0], binned)
    assert phi.position((40.5, "x")) == 1
    assert phi.position((3.0, "y")) == -1


@pytest.mark.parametrize("step_indexed", [True, False])
def test_a_file_gives_back_what_was_saved(tmp_path, step_indexed):
    phi = cs.value_ceilings(COUNTS, 20, -0.1, discount=0.9).potential(step_indexed=step_indexed)
    phi.save(tmp_path / "phi.parquet")
    read = cs.Potential.load(tmp_path / "phi.parquet")
    assert read.checksum == phi.checksum
    assert np.array_equal(read.values, phi.values)
    assert (read.discount, read.assumptions, read.origin) == (phi.discount, phi.assumptions, phi.origin)
    assert repr(read) == repr(phi)
    table = pq.read_table(tmp_path / "phi.parquet")
    forge(table.take(np.arange(table.num_rows)[::-1]), tmp_path / "turned.parquet")
    assert np.array_equal(cs.Potential.load(tmp_path / "turned.parquet").values, phi.values)


def test_a_file_of_ceilings_gives_their_potential_and_others_are_refused(tmp_path):
    ceilings = cs.value_ceilings(COUNTS, 20, -0.1)
    ceilings.save(tmp_path / "phi.parquet")
    assert cs.load_potential(tmp_path / "phi.parquet").checksum == ceilings.potential().checksum
    with pytest.raises(FileError, match=r"holds ceilings, not potential"):
        cs.Potential.load(tmp_path / "phi.parquet")
    ceilings.potential().shifted(1.0).save(tmp_path / "shifted.parquet")
    assert cs.load_potential(tmp_path / "shifted.parquet").checksum == ceilings.potential().shifted(1.0).checksum
    COUNTS.save(tmp_path / "counts.parquet")
    with pytest.raises(FileError, match="holds counts, not potential"):
        cs.Potential.load(tmp_path / "counts.parquet")
    with pytest.raises(FileError, match="does not exist"):
        cs.Potential.load(tmp_path / "none.parquet")
    cs.Potential([1.0, 2.0, 0.0], SPACE, unseen=math.nan).save(tmp_path / "strict.parquet")
    assert math.isnan(cs.Potential.load(tmp_path / "strict.parquet").unseen)


@pytest.mark.parametrize("step_indexed", [True, False])
def test_json_gives_back_what_was_written(step_indexed):
    phi = cs.value_ceilings(COUNTS, 20, -0.1, discount=0.9).potential(step_indexed=step_indexed)
    assert cs.Potential.from_json(phi.to_json()).checksum == phi.checksum
    strict = cs.Potential([1.0, 2.0, 0.0], SPACE, unseen=math.nan)
    assert math.isnan(cs.Potential.from_json(strict.to_json()).unseen)
    with pytest.raises(DataError, match="not the JSON of a potential"):
        cs.Potential.from_json("[]")


def test_a_potential_shows_itself_as_a_line_a_text_and_a_table():
    phi = cs.value_ceilings(COUNTS, 20, -0.1).potential()
    assert "\n" not in repr(phi)
    assert str(phi) == phi.summary()
    assert all(f"- {sentence}" in phi.summary() for sentence in phi.assumptions)
    assert "make an error" in cs.Potential([1.0, 2.0, 0.0], SPACE, unseen=math.nan).summary()
    frame = phi.to_pandas()
    assert list(frame.columns) == ["step", "x", "y", "potential"]
    row = frame.iloc[100]
    assert row.potential == phi((int(row.x), int(row.y)), int(row.step))
    assert "more rows: to_pandas()" in phi._repr_html_()
    clash = cs.Potential([1.0, 2.0], cs.Space([3, 4], ["go"], ["potential"])).to_pandas()
    assert clash.to_dict("list") == {"potential": [3, 4], "_potential": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0, math.nan, 0.0], {}, "The potential of 'b' is nan"),
        ([[1.0, 0.0, 0.0], [1.0, math.inf, 0.0]], {}, "'b' at step 1 is inf"),
        ([1.0, 2.0], {}, r"has shape \(2,\); it must be \[states\] or \[steps, states\] with 3 states"),
        ([[[1.0, 2.0, 3.0]]], {}, "has shape"),
        (["x", "y", "z"], {}, "The potential must hold float64 numbers"),
        ([1.0, 2.0, 3.0], {"discount": 1.5}, "discount is 1.5"),
        ([[1.0], [2.0, 3.0]], {}, "is not a table: its rows have different lengths"),
        ([1.0, 2.0, 3.0], {"successors": AllowedSuccessors([[0]], [0, 1], [0], [1.0])}, "a row for each state and"),
    ],
)
def test_what_makes_no_sense_is_refused(values, options, message):
    with pytest.raises(CausalShapingError, match=message):
        cs.Potential(values, SPACE, **options)
    with pytest.raises(ArgumentError, match="unseen must be finite"):
        cs.Potential([1.0, 2.0, 3.0], SPACE, unseen=math.inf)
    with pytest.raises(ArgumentError, match="unseen must be one number"):
        cs.Potential([1.0, 2.0, 3.0], SPACE, unseen=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="shift is inf"):
        cs.Potential([1.0, 2.0, 3.0], SPACE).shifted(math.inf)
    with pytest.raises(ArgumentError, match="needs a space"):
        cs.Potential([1.0], 7)


@pytest.mark.parametrize(
    "changes",
    [{"unseen": []}, {"unseen": ["x"]}, {"discount": "x"}, {"assumptions": None}, {"version": "x"}, {"steps": "x"}],
)
def test_a_file_whose_metadata_make_no_sense_is_refused(tmp_path, changes):
    cs.Potential([[1.0, 2.0, 0.0]], SPACE).save(tmp_path / "phi.parquet")
    table = pq.read_table(tmp_path / "phi.parquet")
    about = json.loads(table.schema.metadata[b"causal_shaping"]) | changes
    for text in (json.dumps(about), "{"):
        forge(table, tmp_path / "phi.parquet", text)
        with pytest.raises(FileError, match=r"phi\.parquet (is not a complete file|was changed .* cannot be read)"):
            cs.Potential.load(tmp_path / "phi.parquet")


def test_a_forged_file_that_does_not_hold_each_step_and_state_once_is_refused(tmp_path):
    path = tmp_path / "phi.parquet"
    cs.Potential([[1.0, 2.0, 0.0]] * 2, SPACE).save(path)
    table = pq.read_table(path)
    for step in ([0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 2], [0.0, 0.0, 0.0, 0.5, 0.5, 0.5]):
        column = table.column_names.index("step")
        forge(table.set_column(column, "step", pa.array(step)), path)
        with pytest.raises(FileError, match="does not hold each step and state once"):
            cs.Potential.load(path)


def as_lists(self):
    """Successors in JSON as the first files of version 0.2 hold them."""
    return {name: getattr(self, name).tolist() for name in ("row", "first", "after", "highest")}


@pytest.mark.parametrize(("kind", "version"), [("potential", 3), ("ceilings", 6)])
@pytest.mark.parametrize("older", [False, True], ids=["bytes", "lists"])
def test_successors_come_back_from_files_of_both_formats(tmp_path, monkeypatch, kind, version, older):
    ceilings = cs.value_ceilings(COUNTS, 20, 0.5)
    made, path = ceilings if kind == "ceilings" else ceilings.potential(), tmp_path / "a.parquet"
    assert made.successors.first[-1] > 0
    with monkeypatch.context() as patched:
        if older:
            patched.setattr(AllowedSuccessors, "as_plain", as_lists)
            patched.setitem(FORMATS, kind, FORMATS[kind]._replace(newest=version))
        made.save(path)
    found = type(made).load(path)
    for name in ("row", "first", "after", "highest"):
        expected = getattr(made.successors, name)
        assert getattr(found.successors, name).dtype == expected.dtype
        assert np.array_equal(getattr(found.successors, name), expected)
    path.write_bytes(path.read_bytes().replace(b'"after"', b'"aftes"'))
    with pytest.raises(FileError, match="was changed after it was written"):
        type(made).load(path)
