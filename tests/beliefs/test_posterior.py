"""The posterior as an object: what it says, files, words, errors; scale and offset of rewards do not matter."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cells import counts_of
from hypothesis import given, strategies as st
from properties import fewer
from test_sampler import _rows, random_counts

import causal_shaping as cs
from causal_shaping.beliefs.draws import _end_label, each_draw
from causal_shaping.beliefs.trust import Trust, _chance
from causal_shaping.beliefs.wide import WidePrior, start_of
from causal_shaping.errors import ArgumentError, ContradictionError, FileError

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


@pytest.fixture(scope="module")
def counts():
    world = cs.load_world("lavacross-easy")
    return cs.count([world.collect(name, 20_000) for name in world.demonstrators])


@pytest.fixture(scope="module")
def belief(counts):
    return cs.posterior(counts, 20, -0.1, draws=60)


def scaled(counts, factor=1.0, offset=0.0):
    """The same logs with other rewards."""
    columns = {name: getattr(counts, name) for name in cs.Counts.COLUMNS}
    for name in ("reward_min", "reward_max"):
        columns[name] = columns[name] * factor + offset
    columns["reward_sum"] = columns["reward_sum"] * factor + offset * counts.n
    return cs.Counts.combined(counts.space, counts.sources, columns, population=counts.population)


def test_means_quantiles_and_probabilities_are_those_of_one_set_of_draws(belief):
    drawn = np.array([sample.q_values.copy() for sample in each_draw(belief.model, 60, 0)])
    np.testing.assert_allclose(belief.mean.q_values, drawn.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(belief.mean.values, drawn.max(axis=-1).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(belief.quantile(0.9).values, np.quantile(drawn.max(axis=-1), 0.9, axis=0), atol=1e-12)
    best = drawn == drawn.max(axis=-1, keepdims=True)
    np.testing.assert_allclose(belief.probability_optimal, best.mean(axis=0))
    low, high = belief.quantile(0.1), belief.quantile(0.9)
    assert (low.values <= high.values).all()


def test_its_mean_orders_the_states_of_hard_in_which_ceilings_mislead():
    world = cs.load_world("lavacross-hard")
    logs = cs.count([world.collect(name, 20_000) for name in world.demonstrators])
    best, start = world.model.optimum(world.horizon).values[0], world.model.start > 0
    most = world.model.reward_range[1]
    found = []
    for potential in (
        cs.posterior(logs, 20, most, draws=60).potential(),
        cs.value_ceilings(logs, 20, most).potential(),
    ):
        order, _ = potential.space.positions(world.space)
        found.append(np.corrcoef(potential.values[0][order][start], best[start])[0, 1])
    assert found[0] > 0.8
    assert found[1] < 0.3


def test_a_potential_is_a_guess_and_claims_no_bound(belief):
    phi = belief.potential()
    assert (phi.kind, phi.assumptions, phi.horizon, phi.discount) == ("guess", (), 20, 1.0)
    assert phi.origin == "posterior mean of good, bad, random"
    lasting = ~belief.space.is_terminal
    np.testing.assert_array_equal(phi.values[:, lasting], belief.mean.values[:, lasting])
    high = belief.potential(0.9, step_indexed=False)
    np.testing.assert_array_equal(high.values[lasting], belief.quantile(0.9).values[0, lasting])
    with pytest.raises(ArgumentError, match="quantile"):
        belief.potential("median")
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        belief.potential(1.5)


def test_a_file_makes_it_anew_and_a_changed_one_is_refused(belief, tmp_path):
    belief.save(tmp_path / "b.parquet")
    again = cs.Posterior.load(tmp_path / "b.parquet")
    assert again.checksum == belief.checksum
    assert again.assumptions == belief.assumptions
    np.testing.assert_array_equal(again.mean.values, belief.mean.values)
    other = cs.posterior(belief.counts, 20, -0.1, draws=60, confounding={"random": 2.0}, support="any")
    assert other.checksum != belief.checksum
    other.save(tmp_path / "c.parquet")
    found = cs.Posterior.load(tmp_path / "c.parquet")
    assert (found.metadata, found.counts.checksum) == (other.metadata, other.counts.checksum)
    assert found.settings.gamma("random") == 2.0
    with pytest.raises(FileError, match="holds posterior, not ceilings"):
        cs.Ceilings.load(tmp_path / "b.parquet")


def test_words_say_what_is_assumed_what_is_guessed_and_whom_it_trusts(belief):
    text = belief.summary()
    assert "guarantees nothing" in text
    assert "No step pays more than -0.1." in belief.assumptions
    assert any(sentence.startswith("Believed, and proven by nothing") for sentence in belief.assumptions)
    assert "random: right everywhere" in text
    first = belief.mean.values[0][np.unique(belief.counts.state)]
    assert f"the value of a state is from {first.min():.4g} to {first.max():.4g} on average" in text
    assert repr(belief) == "Posterior(20 steps from good, bad, random)"
    assert "Posterior(" in belief._repr_html_()
    frame = belief.to_pandas()
    assert len(frame) == 20 * len(belief.space.states)
    assert (frame["quantile_05"] <= frame["quantile_95"]).all()


def test_trust_is_a_result_and_adds_to_one(belief):
    trust = belief.trust
    assert trust.sources == ("good", "bad", "random")
    assert 0 < trust.nobody < 1
    assert trust.everywhere.sum() + trust.in_part.sum() + trust.together + trust.nobody == pytest.approx(1)
    known = trust.by_state[~np.isnan(trust.by_state)]
    assert ((known >= 0) & (known <= 1)).all()
    again = cs.Trust.restore(trust.space, json.loads(json.dumps(trust.as_plain())))
    np.testing.assert_array_equal(again.by_state, trust.by_state)
    assert again.summary() == trust.summary()
    assert len(trust.to_pandas()) == 3 * len(trust.space.states)
    assert json.loads(trust.to_json())["nobody"] == trust.nobody
    alone = cs.posterior(counts_of([[[3, 4], [2, 2]]]), 1, 1.0, confounding=1.0).trust
    assert alone.sources == ()
    assert "no confounded source" in alone.summary()
    assert len(alone.to_pandas()) == 0


def test_a_trial_shows_which_source_misleads():
    right, wrong = [[50, 50], [90, 10]], [[5, 95], [90, 10]]
    trial = [[60, 60], [60, 60]]
    n = np.array([right, wrong, trial])
    found = cs.posterior(counts_of(n, (0.0, 1.0)), 1, 1.0, confounding={"c": 1.0}).trust
    assert found.sources == ("a", "b")
    assert found.by_state[1, 0] < 0.1


def test_wrong_arguments_and_contradictions_are_errors(counts):
    with pytest.raises(ArgumentError, match=r"reward_max is -0\.5, but source"):
        cs.posterior(counts, 20, -0.5)
    with pytest.raises(ArgumentError, match="support by name"):
        cs.posterior(counts, 20, 0.0, support={(1, 1): [(1, 2)]})
    with pytest.raises(ArgumentError, match="support"):
        cs.posterior(counts, 20, 0.0, support="some")
    with pytest.raises(ArgumentError, match="draws"):
        cs.posterior(counts, 20, 0.0, draws=0)
    with pytest.raises(ArgumentError, match="horizon"):
        cs.posterior(counts, 0, 0.0)
    with pytest.raises(ContradictionError, match="contradict each other"):
        cs.posterior(counts_of([[[900, 0], [100, 0]], [[0, 900], [100, 0]]]), 1, 3.0)


def test_too_many_draws_to_keep_are_refused(counts):
    with pytest.raises(ArgumentError, match="draws="):
        cs.posterior(counts, 20, 0.0, draws=10**6).quantile(0.5)


def test_population_counts_work():
    world = cs.load_world("lavacross-easy")
    parts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    belief = cs.posterior(parts, 20, -0.1, draws=20)
    ceilings = cs.value_ceilings(parts, 20, -0.1)
    lasting = ~ceilings.terminal
    assert (belief.quantile(1.0).values <= ceilings.values + 0.01)[:, lasting].all()
    assert "population masses" in belief.summary()


def test_counts_by_step_and_admissible_actions():
    world = cs.load_world("walking-robot")
    logs = [world.collect(name, 2_000) for name in world.demonstrators]
    horizon = world.horizon
    belief = cs.posterior(cs.count(logs, step_indexed=True), horizon, world.model.reward_range[1], draws=20)
    assert belief.trust.by_state.shape == (len(logs), horizon, len(belief.space.states))
    (sampled,) = belief.sample(1)
    assert sampled.steps == horizon
    found = sampled.optimum(horizon).values[:, : len(belief.space.states)]
    (planned,) = (sample.q_values.max(axis=-1) for sample in each_draw(belief.model, 1, 0))
    np.testing.assert_allclose(found, planned, atol=1e-9)


@fewer(15)
@given(st.integers(0, 10**6), st.sampled_from(["any", "observed"]), st.floats(0.01, 100.0), st.floats(-5, 5))
def test_scale_and_offset_of_rewards_do_not_matter(seed, support, factor, offset):
    counts = random_counts(seed)
    belief = cs.posterior(counts, 4, 1.5, support=support, draws=5)
    exact = cs.posterior(scaled(counts, 64.0), 4, 96.0, support=support, draws=5)
    np.testing.assert_array_equal(exact.mean.q_values, 64 * belief.mean.q_values)
    other = cs.posterior(scaled(counts, factor), 4, 1.5 * factor, support=support, draws=5)
    np.testing.assert_allclose(other.mean.q_values, factor * belief.mean.q_values, rtol=1e-9, atol=1e-9 * factor)
    columns = {name: getattr(counts, name) for name in cs.Counts.COLUMNS}
    columns |= {"terminated": np.zeros(len(counts), bool), "next_state": np.maximum(counts.next_state, 0)}
    endless = cs.Counts.combined(counts.space, counts.sources, columns)  # all episodes have the same length
    belief = cs.posterior(endless, 4, 1.5, support=support, draws=5)
    moved = cs.posterior(scaled(endless, 1.0, offset), 4, 1.5 + offset, support=support, draws=5)
    left = np.arange(4, 0, -1)[:, None, None]
    np.testing.assert_allclose(moved.mean.q_values, belief.mean.q_values + offset * left, atol=1e-9)
    np.testing.assert_array_equal(moved.probability_optimal, belief.probability_optimal)


def with_bins(counts, *edges):
    """The same counts with rewards in bins."""
    columns = {name: getattr(counts, name) for name in cs.Counts.COLUMNS}
    space = cs.Space(counts.space.states, counts.space.actions, reward_bins=cs.Bins(edges=edges))
    return cs.Counts.combined(space, counts.sources, columns)


def test_rewards_in_bins_are_believed_to_be_their_means():
    """Bins of one reward each change nothing; one of two rewards is as if each step had paid their mean."""
    n = [[[30, 10, 5], [4, 0, 9]], [[8, 12, 1], [20, 3, 2]]]
    exact = cs.posterior(counts_of(n, (0.0, 2.0, 3.0)), 1, 3.0, draws=50).mean
    cut = cs.posterior(with_bins(counts_of(n, (0.0, 2.0, 3.0)), 1.0, 2.5), 1, 3.0, draws=50).mean
    np.testing.assert_allclose(cut.q_values, exact.q_values, rtol=1e-12)
    both = [[[40, 5]]]
    paid = cs.posterior(counts_of(both, (0.5, 3.0)), 1, 3.0, draws=50).mean  # 30 at 0, 10 at 2
    cut = cs.posterior(with_bins(counts_of([[[30, 10, 5]]], (0.0, 2.0, 3.0)), 2.5), 1, 3.0, draws=50).mean
    np.testing.assert_allclose(cut.q_values, paid.q_values, rtol=1e-12)
    binned = cs.posterior(with_bins(counts_of([[[30, 10, 5]]], (0.0, 2.0, 3.0)), 2.5, 4.0), 1, 3.0, draws=1)
    assert binned.model.level.tolist() == [0.5, 3.0]  # what an outcome that nobody has seen may pay, beside the most


def test_words_tell_of_confidence_of_trials_and_of_what_speaks_against_them(belief, tmp_path):
    assert repr(belief.trust).startswith("Trust(good 0.")
    assert "; nobody 0." in repr(belief.trust)
    sure = cs.posterior(belief.counts, 20, -0.1, draws=5, confidence=0.9)
    assert "support observed, lower limits of confidence 0.9, discount 1" in sure.summary()
    trial = cs.posterior(counts_of([[[30, 10], [4, 9]]]), 1, 3.0, draws=5, confounding=1.0)
    assert any("all outcomes that are possible are alike" in sentence for sentence in trial.assumptions)
    assert repr(trial.trust) == "Trust(no confounded source; nobody 1.00)"
    belief.save(tmp_path / "b.parquet")
    assert cs.Posterior.load(tmp_path / "b.parquet").caveats == belief.caveats


def test_the_end_of_episodes_gets_a_label_that_no_state_has():
    assert _end_label(cs.Space(["a"], ["x"])) == "end"
    assert _end_label(cs.Space(["end", "end'"], ["x"])) == "end''"
    assert _end_label(cs.Space([("end", "end")], ["x"], ("u", "v"))) == ("end'", "end'")


def test_where_episodes_start_is_told_by_steps_by_what_is_left_or_not_at_all():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 2_000) for name in ("good", "random")]
    by_step, pooled = (cs.posterior(cs.count(logs, step_indexed=by), 20, -0.1) for by in (True, False))
    population = cs.posterior(world.model.observe(world.demonstrators["random"], source="random"), 20, -0.1)
    found, words = start_of(by_step.model, by_step.counts)
    assert words == "where logged episodes start"
    starts = np.concatenate([one.state[one.step == 0] for one in logs])
    np.testing.assert_allclose(found, np.bincount(starts, minlength=len(found)) / len(starts))
    found, words = start_of(pooled.model, pooled.counts)
    assert "left more often than entered" in words
    assert (np.delete(found, np.unique(pooled.counts.state)) == 0).all()  # nobody acted there
    found, words = start_of(population.model, population.counts)
    assert words == "in any state in which a source acted"
    acted = np.unique(population.counts.state)
    np.testing.assert_allclose(found[acted], 1 / len(acted))


def test_states_that_end_every_episode_are_terminal_though_nobody_declared_them(counts):
    bare = cs.Space(counts.space.states, counts.space.actions, counts.space.columns)
    columns = {name: getattr(counts, name) for name in cs.Counts.COLUMNS}
    found = cs.posterior(cs.Counts.combined(bare, counts.sources, columns), 20, -0.1)
    ended = {counts.space.states[i] for i in counts.next_state[counts.terminated]}
    assert {bare.states[i] for i in np.flatnonzero(found.model.terminal)} == ended
    told = f"A state that ended every episode that entered it always ends it ({len(ended)} states)."
    assert any(sentence.startswith(told) for sentence in found.assumptions)


def test_one_draw_is_enough_and_none_is_too_few(counts):
    assert cs.posterior(counts, 20, -0.1, draws=1).mean.values.shape[0] == 20
    with pytest.raises(ArgumentError, match="draws is 0; it must be at least 1"):
        cs.posterior(counts, 20, -0.1, draws=0)


def test_trust_speaks_of_the_mean_of_sources_where_there_are_several(belief):
    assert _chance(0.5) == "0.50"
    assert _chance(0.0049) == "less than 0.005"
    assert f"Their mean is right, everywhere or in part: {_chance(belief.trust.together)}." in belief.trust.summary()
    alone = cs.posterior(counts_of([[[30, 10], [4, 9]]]), 1, 3.0, draws=5).trust
    assert "Their mean" not in alone.summary()


def test_a_summary_names_the_states_in_which_a_source_misleads():
    space = cs.Space(["a", "b", "c"], ["x"])
    sure = Trust(space, ("d",), np.array([0.2]), np.array([0.3]), 0.0, 0.5, np.array([[0.5, 0.5, np.nan]]), np.zeros(1))
    assert "misleads" not in sure.summary()
    unsure = replace(sure, by_state=np.array([[0.5, 0.01, np.nan]]))
    assert "right in part only 0.30. It misleads most in 'b' (0.01)." in unsure.summary()


def test_a_summary_counts_the_states_in_which_an_action_is_likely_to_be_best(belief):
    one_of_two = _rows([(0, 0, 0, 0, False, 1.0), (0, 0, 1, 0, False, 0.0)], step_indexed=False)
    for found in (belief, *(cs.posterior(held, 2, 1.5) for held in (random_counts(5), random_counts(7), one_of_two))):
        acted = [s for s in set(found.counts.state.tolist()) if not found.model.terminal[s]]
        sure = sum(max(found.probability_optimal[0, s]) >= 0.95 for s in acted)
        assert f"in {sure} of {len(acted)} states in which a source acted some action is best" in found.summary()


def test_wide_draws_hold_what_is_proven_and_spread_what_nobody_tried():
    """The first action has proven masses; the last was never taken: its four outcomes share all as one visit does."""
    n = [[[9_000, 1_000, 0], [0, 5_000, 5_000], [0, 0, 0]]]
    found = cs.posterior(counts_of(n, (0.0, 1.0, 2.0)), 1, 2.0, draws=1)
    prior, rng, squares, masses = WidePrior(found.model), np.random.default_rng(0), [], []
    for _ in range(300):
        world, _ = prior.draw(rng)
        first = world.first
        assert (world.chance[first[0] : first[0] + 2] > np.array([0.45, 0.05]) * 0.8).all()
        masses.append(world.chance[first[0]])
        squares.append((world.chance[first[2] : first[3]] ** 2).sum())
    assert min(masses) < found.model.guess.lower[0] - 0.002, "drawn, not their mean"
    q = 1 / 4  # a Dirichlet of four parts that add to 1: the mean of q^2 is q (q + 1) / 2
    assert np.mean(squares) == pytest.approx(4 * q * (q + 1) / 2, abs=0.06)


def test_wide_draws_need_no_confounded_source():
    found = cs.posterior(counts_of([[[30, 10], [4, 9]]]), 1, 3.0, draws=1, confounding=1.0)
    world, lean = WidePrior(found.model).draw(np.random.default_rng(0))
    assert (lean.source == -1).all()
    np.testing.assert_allclose(np.add.reduceat(world.chance[: world.first[-1]], world.first[:-1]), 1)


def test_the_summary_tells_in_how_many_states_the_first_action_is_sure():
    # In the first step `a` leads to a fortune; in the last, both actions of that state pay alike.
    rows = [("s", "a", i % 2, "t", False) for i in range(400)] + [("s", "b", i % 2, None, True) for i in range(400)]
    rows += [("t", "a", 100, None, True)] * 400 + [("t", "b", 0, None, True)] * 400
    frame = pd.DataFrame(rows, columns=["state", "action", "reward", "next_state", "terminated"])
    frame = frame.assign(episode=range(len(rows)), step=0, truncated=~frame.terminated)
    belief = cs.posterior(
        cs.count(cs.open_logs(frame, source="trial", states=["s", "t", "unmet"])), 2, 100.0, confounding=1.0, draws=50
    )
    assert belief.probability_optimal[1].max(axis=-1)[0] < 0.95
    assert "in 2 of 2 states in which a source acted some action is best" in belief.summary()
