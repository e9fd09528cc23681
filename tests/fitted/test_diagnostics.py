import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import causal_shaping as cs
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted import fitting
from causal_shaping.fitted._held_out import bias_of_maxima, level_of_w, score
from causal_shaping.fitted._members import held_out, kept_at
from causal_shaping.fitted._steps import rule_of, sweep
from causal_shaping.fitted.diagnostics import ClusterScores, Diagnostics, SourceScores, share_left
from causal_shaping.fitted.settings import Settings
from causal_shaping.logs.transitions import read_transitions

ROWS = 5000


@pytest.fixture(scope="module")
def rows():
    world = cs.load_world("windy-field")
    return read_transitions([world.collect(name, ROWS, seed=0) for name in world.demonstrators], state=["x", "y"])


@pytest.fixture(scope="module")
def fitted(rows):
    return cs.fit_ceilings(rows, horizon=6, reward_max=-0.1, members=1)


def scored(rows, **options):
    """The scores of a pass of ceilings over six steps."""
    chosen = Settings(reward_bound=-0.1, horizon=6, members=1, **options).checked(rows.sources)
    held = held_out(rows, chosen)
    some, _ = kept_at(rows, held, chosen)
    model = fitting.forest_of(rows, np.where(held, 0.0, 1.0), chosen, 0)
    found = sweep(model, rows, chosen, some, False, progress=lambda *_: None, what="")
    return score(model, rows, held, found.targets, chosen, rule_of(chosen, rows.sources, 6))


def test_a_clean_fit_passes_both_tests_and_is_worth_using(fitted):
    found = fitted.diagnostics
    assert not found.w_too_low
    assert not found.too_noisy
    assert found.verdict.startswith("Worth using as a potential")


def test_a_w_below_its_declared_level_is_caught(rows):
    scores = scored(rows, expectile=0.8)
    found = level_of_w(scores, rows, 0.99)
    assert min(np.nanmin(found.p_value), found.whole.min()) < 0.05
    assert level_of_w(scores, rows, 0.8).whole.min() > 0.05  # at the level that it was fitted for it is high enough


def test_a_partition_that_is_too_fine_is_caught(rows):
    found = bias_of_maxima(scored(rows, leaf=3), rows)
    assert found.overall > 0.05
    assert found.overall_p_value < 0.001


def test_only_held_out_rows_are_scored_and_all_clusters_hold_some(rows, fitted):
    scores = scored(rows)
    held = held_out(rows, fitted.settings)
    assert held[scores.row].all()
    assert len(scores.row) == held.sum()
    frame = fitted.diagnostics.to_pandas()
    assert frame["rows"].sum() == held.sum()
    assert (frame["rows"] > 0).all()


def test_shares_of_a_windy_field_are_calibrated(fitted):
    assert [one.source for one in fitted.diagnostics.sources] == list(fitted.sources)
    for one in fitted.diagnostics.sources:
        assert one.action_error < 0.06
        assert one.value_error < 0.06
    assert fitted.diagnostics.sources[0].action_gain > 0.3  # what the good demonstrator does depends on the place


def test_clusters_of_lists_are_named_by_column_and_place():
    cluster = ClusterScores((1.0, 2.0), rows=9, source="a", level=0.5, w_p_value=0.0, bias=None, bias_p_value=None)
    others = dict.fromkeys(["bias", "bias_p_value", "beyond", "beyond_best", "over_one", "excess", "left"])
    source = SourceScores("a", 1, 9, None, None, None, None, None)
    told = Diagnostics(columns=("state",), expectile=0.9, sources=(source,), clusters=(cluster,), **others)
    assert "around state[0] = 1, state[1] = 2." in told.summary()
    assert told.to_pandas()[["state[0]", "state[1]"]].to_numpy().tolist() == [[1.0, 2.0]]


def test_without_held_out_episodes_nothing_is_tested(rows):
    found = cs.fit_ceilings(rows, horizon=2, reward_max=-0.1, members=1, held_out=0.0).diagnostics
    assert not found.clusters
    assert found.bias is None
    assert "No episodes were held out" in found.summary()


def test_support_any_has_no_w_to_test(rows):
    found = cs.fit_ceilings(rows, horizon=2, reward_max=-0.1, members=1, support="any").diagnostics
    assert not found.w_too_low
    assert "could not be tested" in found.summary()


def endless(scale: float = 1.0, offset: float = 0.0) -> Transitions:
    """Logs of a walk on a line that never ends, in which two sources take both actions everywhere."""
    rng = np.random.default_rng(0)
    episodes, steps = 80, 10
    place = np.zeros((episodes, steps + 1))
    action = rng.integers(2, size=(episodes, steps))
    place[:, 0] = rng.random(episodes)
    for h in range(steps):
        place[:, h + 1] = np.clip(place[:, h] + 0.2 * (2 * action[:, h] - 1) + 0.05 * rng.normal(size=episodes), 0, 1)
    size = episodes * steps
    state = (np.arange(episodes)[:, None] * (steps + 1) + np.arange(steps)).ravel()
    return Transitions(
        sources=("one", "two"),
        actions=(0, 1),
        columns=("x",),
        shape=(1,),
        observations=place.reshape(-1, 1).astype(np.float32),
        state=state,
        next_state=state + 1,
        action=action.ravel().astype(np.int32),
        reward=scale * (place[:, 1:] > 0.5).ravel() + offset,
        terminated=np.zeros(size, dtype=bool),
        truncated=np.tile(np.arange(steps) == steps - 1, episodes),
        source=np.repeat([0, 1], size // 2).astype(np.int16),
        episode=np.repeat(np.arange(episodes), steps),
        step=np.tile(np.arange(steps), episodes).astype(np.int32),
    )


def verdict_of(scale: float, offset: float) -> Diagnostics:
    """The diagnostics of a fit to the walk; nothing is untried, so that no value is vacuous."""
    options = {"horizon": 4, "members": 1, "trees": 2, "leaf": 40, "rarest_action": 0.0, "least_rows": 0.0}
    return cs.fit_ceilings(endless(scale, offset), reward_max=scale + offset, **options).diagnostics


@settings(max_examples=4, deadline=None)
@given(scale=st.floats(0.01, 100), offset=st.floats(-3, 3))
def test_neither_scale_nor_offset_of_rewards_changes_the_verdict_where_episodes_do_not_end(scale, offset):
    # Free mass is worth something else where the largest reward, scale * (1 + offset), is above 0.
    usual = verdict_of(1.0, 0.0 if scale + scale * offset > 0 else -1.0)
    other = verdict_of(scale, scale * offset)
    assert other.left == pytest.approx(usual.left, rel=0.02)
    assert other.w_too_low == usual.w_too_low
    assert other.verdict.partition(":")[0] == usual.verdict.partition(":")[0]


def test_a_perfect_potential_leaves_nothing_and_a_constant_one_everything():
    values = np.random.default_rng(0).normal(size=(3, 50))
    none = np.zeros(50)
    assert share_left(values, values, none) == pytest.approx(0)
    assert share_left(np.full_like(values, values.max()), values, none) == pytest.approx(1)
    assert share_left(values, np.full_like(values, values.min()), none) is None
