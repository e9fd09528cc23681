"""Helpers of the bounds, beside plain computations: what whole bounds hardly show."""

import numpy as np
import pytest
from scipy.optimize import linprog

import causal_shaping as cs
from causal_shaping.bounds._compare import compared_entries
from causal_shaping.bounds._joint import _conflict, _fill
from causal_shaping.bounds._masses import Masses
from causal_shaping.bounds._sweeps import best_of
from causal_shaping.bounds.verdict import _variance


def test_the_variance_is_that_of_the_chosen_states_of_each_step():
    rng = np.random.default_rng(0)
    values, which = rng.normal(5.0, 2.0, size=(4, 6)), rng.random((4, 6)) < 0.5
    which[2] = False
    squares = [(v - row[own].mean()) ** 2 for row, own in zip(values, which, strict=True) for v in row[own]]
    assert _variance(values, which) == pytest.approx(np.mean(squares))
    assert _variance(values, np.zeros_like(which)) == 0.0


@pytest.mark.parametrize("cell", range(3))
@pytest.mark.parametrize(
    ("lower", "upper", "miss"), [([0.9, 0.4], [1, 1], 0.3), ([0.5, 0], [0.3, 1], 0.2), ([0, 0], [0.2, 0.1], 0.6)]
)
def test_a_conflict_is_what_the_intervals_of_its_cell_miss(cell, lower, upper, miss):
    """Too much is proven, a lower limit is above an upper one, or all outcomes and the rest are too little."""
    lowers, uppers, rest = np.zeros((3, 2)), np.ones((3, 2)), np.full(3, 0.1)
    lowers[cell], uppers[cell] = lower, upper
    empty = {name: np.zeros(0) for name in Masses._fields}
    parts = {"first": np.array([0, 2, 4, 6]), "rest": rest, "lower": lowers.ravel(), "upper": uppers.ravel()}
    found = _conflict(Masses(**empty | parts | {"total": lowers.sum(axis=1)}))
    assert found[cell] == pytest.approx(miss)
    assert (np.delete(found, cell) <= 0).all()


def logs(source, actions):
    """Four steps in one state, each an episode."""
    n = len(actions)
    columns = {"episode": np.arange(n), "step": np.zeros(n), "state": np.zeros(n), "action": actions}
    columns |= {
        "reward": np.arange(n) / n,
        "next_state": np.ones(n),
        "terminated": np.zeros(n),
        "truncated": np.ones(n),
    }
    return cs.Logs(cs.Space(["ill", "well"], ["wait", "treat"]), source, **columns)


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_the_share_of_the_usual_action_is_that_of_the_most_decided_source():
    counts = cs.count([logs("decided", [1, 1, 1, 0]), logs("undecided", [1, 1, 0, 0])])
    assert cs.value_ceilings(counts, 2, 1.0).outlook.action_share == 0.75


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
@pytest.mark.parametrize(("confidence", "word"), [(None, "impossible"), (0.95, "rare")])
def test_what_never_followed_is_impossible_or_with_confidence_rare(confidence, word):
    counts = cs.count([logs("one", [1, 1, 1, 0])])
    found = cs.value_ceilings(counts, 2, 1.0, confounding={"one": 2.0}, confidence=confidence)
    assert (
        f"one: what never followed an action that it took is {word} after that action (overlap)." in found.assumptions
    )


def test_visits_are_counted_by_source_and_state():
    counts = cs.count([world_logs(name, steps) for name, steps in (("good", 300), ("bad", 170), ("random", 90))])
    found = compared_entries(counts)
    place = found.cell // len(counts.space.actions)
    for i, (source, state) in enumerate(zip(found.source, place, strict=True)):
        assert found.visits[i] == counts.n[(counts.source == source) & (counts.state == state)].sum()
    assert len(set(found.visits)) > 10


def world_logs(name, steps):
    return cs.load_world("lavacross-easy").collect(name, steps, seed=1)


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
@pytest.mark.parametrize("method", ["joint", "paper"])
def test_nothing_is_to_be_had_after_an_end(method):
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world_logs("good", 400)], terminal=list(world.model.space.terminal))
    found = cs.value_ceilings(counts, 5, 0.5, method=method)
    assert found.terminal.any()
    assert (found.values[:, found.terminal] == 0).all()
    assert (found.q_values[:, found.terminal] == 0).all()


@pytest.mark.parametrize("count", [1, 5, 16, 17, 40])  # up to 16 outcomes are not sorted
def test_free_mass_fills_the_best_outcomes_as_a_linear_program_does(count):
    rng = np.random.default_rng(count)
    values, room, rest = rng.normal(size=count), rng.random(count), 0.1
    w, free = values.max() + 0.5, 0.6 * (rest + room.sum())
    bounds = [(0, limit) for limit in (*room, rest)]
    best = linprog(-np.append(values, w), A_eq=np.ones((1, count + 1)), b_eq=[free], bounds=bounds)
    assert _fill(values.copy(), room.copy(), 0, count, free, rest, w) == pytest.approx(-best.fun)


@pytest.mark.parametrize("actions", [1, 2, 8, 9])  # up to 8 are compared action by action
def test_the_best_action_is_one_that_exists(actions):
    rng = np.random.default_rng(actions)
    q_values = rng.normal(size=(3, 50, actions))
    q_values[rng.random(q_values.shape) < 0.3] = np.nan
    found = best_of(q_values)
    for place in np.ndindex(found.shape):
        there = [value for value in q_values[place] if not np.isnan(value)]
        assert found[place] == max(there) if there else np.isnan(found[place])
