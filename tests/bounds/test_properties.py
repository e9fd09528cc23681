"""What must not matter to bounds, and what may only loosen them: scale, offset, order, fewer assumptions, more data."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from independent import (
    Demonstrator,
    counts_of,
    random_chances,
    random_demonstrators,
    random_edges,
    random_features,
    random_world,
    rows,
    sampled_rows,
    true_gamma,
)
from properties import fewer

import causal_shaping as cs

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
seeds = st.integers(0, 2**32 - 1)
few = fewer(40)


class Drawn:
    """A random world and its logs, in the limit or as a sample."""

    def __init__(self, seed, without=(), episodes=None, sources=None):
        rng = np.random.default_rng(seed)
        self.features = random_features(rng) - {"stationary", *without}
        self.world = random_world(rng, self.features)
        people = random_demonstrators(rng, self.world, self.features)
        self.people = dict(list(people.items())[:sources])
        self.step_indexed = "time-varying" in self.features
        self.edges = random_edges(rng, self.world) if "continuous rewards" in self.features else None
        self.population = episodes is None
        self.shown = {
            name: rows(self.world, person)
            if self.population
            else sampled_rows(self.world, dataclasses.replace(person, length=self.world.horizon), episodes, rng)
            for name, person in self.people.items()
        }
        if self.step_indexed:
            horizon = self.world.horizon
            self.shown = {name: {r: n for r, n in held.items() if r[0] < horizon} for name, held in self.shown.items()}

    def counts(self, complete=True, **changed):
        given_options = {"step_indexed": self.step_indexed, "edges": self.edges, "declare_terminal": True}
        given_options["population"] = self.population
        shown = changed.pop("shown", self.shown)
        return counts_of(changed.pop("world", self.world), shown, complete=complete, **given_options | changed)

    def gammas(self):
        """Gamma of the sources that have a finite one."""
        found = {name: true_gamma(self.world, person, self.step_indexed) for name, person in self.people.items()}
        return {name: 1.01 * gamma for name, gamma in found.items() if math.isfinite(gamma)}


def both(drawn, counts=None, scale=1.0, offset=0.0, **options):
    """Ceilings and floors."""
    counts = drawn.counts() if counts is None else counts
    low, high = (scale * bound + offset for bound in drawn.world.reward_range)
    options = {"support": "any", "discount": drawn.world.discount} | options
    above = cs.value_ceilings(counts, drawn.world.horizon, high, **options)
    return above, cs.value_floors(counts, drawn.world.horizon, low, **options)


def assert_ever_tighter(chain):
    """Ceilings never higher and floors never lower than those before, everywhere."""
    for loose, tight in itertools.pairwise(chain):
        for one, other in ((loose[0], tight[0]), (tight[1], loose[1])):
            for name in ("values", "q_values"):
                a, b = getattr(one, name), getattr(other, name)
                margin = 1e-9 * (1 + np.nanmax(np.abs(b)))
                assert not (a < b - margin).any()  # NaN of inadmissible actions is neither


# What must not matter --------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([None, 40]), st.sampled_from(["any", "observed", "observed-action"]), st.booleans())
@few
def test_rewards_times_64_give_bounds_times_64_bit_for_bit(seed, episodes, support, confident):
    drawn = Drawn(seed, episodes=episodes)
    assume(not (confident and episodes is None))
    scaled = {name: {(*row[:-1], 64 * row[-1]): n for row, n in held.items()} for name, held in drawn.shown.items()}
    edges = None if drawn.edges is None else tuple(64 * edge for edge in drawn.edges)
    options = {"support": support, "confidence": 0.9 if confident else None}
    for ours, theirs in zip(
        both(drawn, **options), both(drawn, drawn.counts(shown=scaled, edges=edges), scale=64.0, **options), strict=True
    ):
        np.testing.assert_array_equal(64 * ours.values, theirs.values)
        np.testing.assert_array_equal(64 * ours.q_values, theirs.q_values)


@given(seeds, st.floats(-5, 5), st.sampled_from(["observed", "observed-action"]), st.sampled_from([math.inf, 4.0]))
@few
def test_an_offset_of_rewards_shifts_bounds_by_the_steps_left(seed, offset, support, gamma):
    """Where nothing ends and all actions were tried everywhere: elsewhere an end, which pays nothing, is possible."""
    rng = np.random.default_rng(seed)
    world = random_world(rng, {"discount", "mixed signs"})
    never = np.zeros_like(world.terminal)
    world = dataclasses.replace(world, terminal=never, ends=np.zeros_like(world.ends), start=np.full(len(never), 1.0))
    world = dataclasses.replace(world, start=world.start / world.start.sum())
    n_states, n_noises, n_actions = len(never), world.noise.shape[-1], world.admissible.shape[1]
    nothing = np.zeros(world.reward.shape[1:])
    betas = [random_chances(rng, 1, n_states, n_noises, n_actions, zeros=0.0) for _ in range(2)]
    betas[0][:] = 1 / n_actions
    shown = {f"d{i}": rows(world, Demonstrator(beta, 3, nothing)) for i, beta in enumerate(betas)}
    moved = {name: {(*row[:-1], row[-1] + offset): n for row, n in held.items()} for name, held in shown.items()}
    drawn = Drawn(seed)
    drawn.world = world  # all that `both` needs of it
    options = {"support": support, "confounding": {"d0": gamma}}
    counts = [counts_of(world, held, step_indexed=False, complete=True) for held in (shown, moved)]
    left = np.array([sum(world.discount**k for k in range(world.horizon - h)) for h in range(world.horizon)])
    for ours, theirs in zip(
        both(drawn, counts[0], **options), both(drawn, counts[1], offset=offset, **options), strict=True
    ):
        np.testing.assert_allclose(ours.values + offset * left[:, None], theirs.values, atol=1e-9)
    masks = [
        cs.provably_suboptimal(*both(drawn, held, offset=o, **options))
        for held, o in zip(counts, (0, offset), strict=True)
    ]
    np.testing.assert_array_equal(*masks)


@given(seeds, st.sampled_from([None, 40]), st.sampled_from(["any", "observed", "observed-action"]), st.booleans())
@few
def test_the_order_of_sources_and_states_does_not_matter(seed, episodes, support, finite):
    drawn = Drawn(seed, episodes=episodes)
    counts = drawn.counts()
    rng = np.random.default_rng(seed)
    options = {"support": support}
    if finite and episodes is None:
        options["confounding"] = drawn.gammas()
    if episodes is not None:
        options["confidence"] = 0.9
    space = counts.space
    states, actions = (rng.permutation(len(labels)) for labels in (space.states, space.actions))
    mixed = cs.Space(
        [space.states[i] for i in states],
        [space.actions[i] for i in actions],
        terminal=space.terminal,
        complete=space.complete,
        admissible=space.admissible,
        reward_bins=space.reward_bins,
    )
    order = list(drawn.shown)
    rng.shuffle(order)
    shuffled = {name: dict(sorted(drawn.shown[name].items(), key=lambda _: rng.random())) for name in order}
    theirs = drawn.counts(shown=shuffled)
    theirs = theirs.to_space(mixed)
    for one, other in zip(both(drawn, counts, **options), both(drawn, theirs, **options), strict=True):
        np.testing.assert_allclose(one.values[:, states], other.values, atol=1e-11)
        np.testing.assert_allclose(one.q_values[:, states][:, :, actions], other.q_values, atol=1e-11)


# Fewer assumptions never tighten ---------------------------------------------------------------------------------


@given(seeds, st.sampled_from([None, 40]), st.booleans())
@few
def test_support_loosens_from_observed_action_to_observed_to_any(seed, episodes, complete):
    """Without confidence: with it, `observed` spends a part of the chance of an error on what was not seen yet."""
    drawn = Drawn(seed, episodes=episodes)
    counts = drawn.counts(complete=complete)
    found = [both(drawn, counts, support=support) for support in ("any", "observed", "observed-action")]
    assert_ever_tighter(found)


@given(seeds, st.sampled_from(["any", "observed", "observed-action"]))
@few
def test_more_confounding_never_tightens(seed, support):
    drawn = Drawn(seed)
    true = drawn.gammas()
    chain = [
        both(drawn, support=support, confounding={k: f * g for k, g in true.items()}) for f in (math.inf, 3.0, 1.0)
    ]
    assert_ever_tighter(chain)


@given(seeds)
@few
def test_a_smaller_rarest_never_tightens(seed):
    drawn = Drawn(seed, episodes=60)
    counts = drawn.counts()
    chain = [both(drawn, counts, support="observed", confidence=0.9, rarest=rarest) for rarest in (0.02, 0.1, 0.4)]
    assert_ever_tighter(chain)


@given(seeds, st.sampled_from(["any", "observed", "observed-action"]))
@few
def test_states_that_may_be_missing_never_tighten(seed, support):
    drawn = Drawn(seed, without={"hidden states"})
    counts = drawn.counts()
    open_ended = counts.to_space(dataclasses.replace(counts.space, complete=False))
    assert_ever_tighter([both(drawn, held, support=support) for held in (open_ended, counts)])


@given(seeds, st.sampled_from(["any", "observed", "observed-action"]))
@few
def test_confidence_never_tightens(seed, support):
    """One source: where several prove more than 1, plug-in masses are scaled, and nothing is promised."""
    drawn = Drawn(seed, episodes=30, sources=1)
    counts = drawn.counts()
    chain = [both(drawn, counts, support=support, confidence=confidence) for confidence in (0.99, 0.5, None)]
    assert_ever_tighter(chain)


@given(seeds, st.sampled_from(["any", "observed", "observed-action"]))
@few
def test_more_admissible_actions_never_lower_a_ceiling(seed, support):
    drawn = Drawn(seed)
    wider = dataclasses.replace(drawn.world, admissible=np.ones_like(drawn.world.admissible))
    few_actions, all_actions = (
        both(drawn, support=support)[0],
        both(drawn, drawn.counts(world=wider), support=support)[0],
    )
    assert (all_actions.values >= few_actions.values - 1e-9).all()


# More data -------------------------------------------------------------------------------------------------------
