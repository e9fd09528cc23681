"""An examination for people: words, tables and a data frame that agree with its numbers."""

import io

import numpy as np
import pytest
from rich.console import Console

import causal_shaping as cs
from studies.paper.theory import Shaped, conservative_optimism, examine, proven_rule, regret_bound, watch
from studies.paper.theory.printing import bound_text, number_text, print_examination


@pytest.fixture(scope="module")
def found():
    return examine(cs.load_world("lavacross-easy"), episodes=20, seeds=2)


def test_all_of_it_is_printed(found):
    console = Console(file=io.StringIO(), width=140, markup=False)
    print_examination(found, console)
    text = console.file.getvalue()
    assert found.setting in text.replace("\n", " ")
    for one in found.potentials:
        assert one.optimism.verdict in text
        assert f"{one.settled:,} of {one.suboptimal:,}" in text
        assert bound_text(one.bound) in text
    for source, one in found.contractions.items():
        assert source in text
        assert one.verdict in text
    assert text.count("regret") >= 6
    for sentence in found.findings():
        assert sentence[:100] in text


def test_its_repr_is_one_line_and_its_summary_says_what_was_found(found):
    assert repr(found) == "Examination(lavacross-easy: zero, paper, joint, V*; 2 runs of 20 episodes)"
    assert str(found) == found.summary()
    assert found.summary().splitlines() == [found.setting, *(f"- {sentence}" for sentence in found.findings())]
    assert all("\n" not in repr(one) for one in (*found.potentials, found.q_ucb, *found.contractions.values()))


def test_its_frame_has_a_row_per_potential(found):
    frame = found.to_pandas()
    assert frame["potential"].tolist() == ["zero", "paper", "joint", "V*"]
    assert frame["bound"].tolist() == [one.bound.total for one in found.potentials]
    assert frame["held_optimism"].tolist() == [one.held["optimism"] for one in found.potentials]
    assert "<table" in found._repr_html_()


def test_numbers_that_are_missing_are_a_dash():
    assert [number_text(number) for number in (None, np.nan, np.inf, 0.123)] == ["-", "-", "-", "0.12"]
    assert bound_text(None) == "-"


def test_a_vacuous_bound_is_marked():
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, None, world.horizon)
    few, many = (regret_bound(shaped, episodes) for episodes in (10, 1e20))
    assert few.vacuous
    assert bound_text(few, vacuous="*").endswith("*")
    assert repr(few).startswith(f"RegretBound({few.total:.4g}, vacuous;")
    assert not many.vacuous
    assert not bound_text(many, vacuous="*").endswith("*")
    assert many.unscaled(4.0).total == pytest.approx(many.total / 4)
    assert many.unscaled(4.0).trivial == many.trivial / 4


def test_optimism_has_a_row_per_step_and_state_that_is_not_terminal():
    world = cs.load_world("lavacross-maze")
    found = conservative_optimism(world.model, None, world.horizon)
    frame = found.to_pandas()
    assert len(frame) == world.horizon * (~world.model.terminal).sum()
    assert (~frame["holds"]).sum() == (~found.holds).sum() > 0
    row = frame[~frame["holds"]].iloc[0]
    state = world.states.index(row["state"])
    assert row["distance"] == found.distance[row["step"], state] < 0
    assert found.verdict in str(found)


def test_a_watched_run_says_in_one_line_what_broke():
    world = cs.load_world("lavacross-easy")
    shaped = Shaped(world.model, None, world.horizon)
    assert repr(watch(shaped, 5, learner=proven_rule(shaped, 5))).endswith("every inequality held)")
    assert "broken: optimism" in repr(watch(shaped, 200, learner=proven_rule(shaped, 200, c=0.0)))
