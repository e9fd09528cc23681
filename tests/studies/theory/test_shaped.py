"""A model under a potential: what shaping keeps, what optimism means, and what a potential settles."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from models import cmdps, deterministic_policies
from properties import fewer

import causal_shaping as cs
from studies.paper.theory import Shaped, conservative_optimism

HORIZON = 3
TABLES = st.lists(st.integers(-20, 20), min_size=12, max_size=12).map(lambda draws: np.array(draws) / 10)


def a_table(model, draws):
    """A potential for the model, at most 4 states."""
    states = len(model.terminal)
    return np.resize(draws, (HORIZON, states)) * ~model.terminal


@given(cmdps(states=(1, 3)), TABLES)
def test_shaping_moves_the_optimum_by_the_potential_and_keeps_the_gaps(model, draws):
    phi = a_table(model, draws)
    best, shaped = model.optimum(HORIZON), Shaped(model, phi, HORIZON).shaped_model().optimum(HORIZON)
    assert shaped.values == pytest.approx(best.values - phi)
    assert shaped.gaps() == pytest.approx(best.gaps())


@given(cmdps(states=(1, 3), steps=HORIZON), TABLES)
def test_the_same_holds_where_the_tables_change_from_step_to_step(model, draws):
    phi = a_table(model, draws)
    shaped = Shaped(model, phi, HORIZON)
    assert shaped.shaped_model().optimum(HORIZON).values == pytest.approx(model.optimum(HORIZON).values - phi)
    assert shaped.expected(shaped.values) == pytest.approx(model.optimum(HORIZON).q_values)


@given(cmdps(states=(1, 3)), TABLES)
def test_optimism_is_told_step_by_step(model, draws):
    phi = a_table(model, draws)
    found = conservative_optimism(model, phi, HORIZON)
    best, limit = model.optimum(HORIZON).values, max(HORIZON * model.reward_range[1], 0.0)
    for h, s in itertools.product(range(HORIZON), range(len(model.terminal))):
        ends = model.terminal[s]
        assert found.holds[h, s] == (ends or phi[h, s] >= best[h, s] - 1e-9)
        assert found.within[h, s] == (ends or phi[h, s] <= limit + 1e-9)
        assert np.isnan(found.distance[h, s]) if ends else found.distance[h, s] == pytest.approx(phi[h, s] - best[h, s])
    assert bool(found) == bool(found.holds.all() and found.within.all())


def test_the_verdict_names_the_worst_state():
    world = cs.load_world("lavacross-maze")
    assert "below V* at 2 of 700 steps and states, by up to 0.06 (step 20 of 20" in str(
        conservative_optimism(world.model, None, world.horizon)
    )
    high = np.full((world.horizon, len(world.states)), 50.0)
    assert "above H b = 2" in conservative_optimism(world.model, high, world.horizon).verdict


@pytest.mark.parametrize("name", cs.list_worlds())
def test_joint_ceilings_are_conservatively_optimistic_in_every_world(name):
    world = cs.load_world(name)
    counts = [world.model.observe(beta, source) for source, beta in world.demonstrators.items()]
    joint = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
    assert conservative_optimism(world.model, joint, world.horizon)
    assert conservative_optimism(world.model, world.model.optimum(world.horizon).values, world.horizon)


def slow_sub_delta(model, phi):
    """Definition 4.3 in loops, Delta the smallest positive gap."""
    best = model.optimum(HORIZON)
    follows, rewards = model.transitions(), model.rewards()
    padded = np.append(phi, np.zeros((1, phi.shape[1])), axis=0)
    padded[:, model.terminal] = 0
    inside = np.zeros(rewards.shape, dtype=bool)
    for s, x in itertools.product(*map(range, rewards.shape)):
        gaps = [best.values[h, s] - best.q_values[h, s, x] for h in range(HORIZON)]
        positive = [gap for gap in gaps if gap > 1e-9]
        if positive and not model.terminal[s]:
            inside[s, x] = any(
                rewards[s, x] - padded[h, s] + 2 * (follows[s, x] @ padded[h + 1]) + min(positive)
                <= best.values[h, s] + 1e-9
                for h in range(HORIZON)
            )
    return inside


@given(cmdps(states=(1, 3)), TABLES)
def test_sub_delta_is_that_of_the_definition(model, draws):
    phi = a_table(model, draws)
    assert (Shaped(model, phi, HORIZON).pseudo_suboptimal() == slow_sub_delta(model, phi)).all()


@given(cmdps(states=(1, 3)), TABLES)
def test_margins_are_gaps_less_what_the_potential_is_off_by(model, draws):
    best = model.optimum(HORIZON).values
    phi = best + np.abs(a_table(model, draws))
    shaped = Shaped(model, phi, HORIZON)
    off = np.append(phi - best, np.zeros((1, phi.shape[1])), axis=0) * ~model.terminal
    mean_off = np.einsum("sxt,ht->hsx", model.transitions(), off[1:])
    expected = np.where(model.terminal[:, None], 0.0, model.optimum(HORIZON).gaps() - mean_off)
    assert shaped.margins() == pytest.approx(np.where(expected > 1e-9, expected, 0.0), abs=1e-9)
    assert (shaped.margins() <= shaped.gaps + 1e-9).all()  # only suboptimal actions are settled


@given(cmdps(states=(1, 3)))
def test_the_optimum_settles_every_suboptimal_action(model):
    shaped = Shaped(model, model.optimum(HORIZON).values, HORIZON)
    assert ((shaped.margins() > 0) == (shaped.gaps > 0)).all()


@given(cmdps(states=(1, 3)), TABLES)
def test_under_the_printed_clip_margins_lose_the_potential_twice(model, draws):
    shaped = Shaped(model, a_table(model, draws), HORIZON)
    follows = np.einsum("sxt,ht->hsx", model.transitions(), shaped.potential[1:])
    expected = shaped.best.values[..., None] - model.rewards() - 2 * follows
    expected = np.where((expected > 1e-9) & ~model.terminal[:, None], expected, 0.0)
    assert shaped.margins("potential") == pytest.approx(expected, abs=1e-12)


@given(cmdps(states=(1, 3)), TABLES)
def test_the_printed_shaping_has_one_index_and_nothing_at_the_last_step(model, draws):
    phi = a_table(model, draws)
    shaped = Shaped(model, phi, HORIZON).shaped_model(printed=True)
    for h, s, x, u in itertools.product(range(HORIZON), *map(range, model.reward.shape)):
        added = phi[h, model.next_state[s, x, u]] - phi[h, s] if h + 1 < HORIZON else 0.0
        expected = 0.0 if model.terminal[s] else model.reward[s, x, u] + added
        assert shaped.reward[h, s, x, u] == pytest.approx(expected)


def test_better_ceilings_settle_more_in_lavacross_easy():
    world = cs.load_world("lavacross-easy")
    counts = [world.model.observe(beta, source) for source, beta in world.demonstrators.items()]
    joint = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
    potentials = (None, joint, world.model.optimum(world.horizon).values)
    settled = [(Shaped(world.model, phi, world.horizon).margins() > 0).sum() for phi in potentials]
    assert settled == [262, 2456, 2482]


@given(cmdps(states=(1, 3)), TABLES)
def test_moving_rewards_to_0_to_1_scales_the_gaps_and_keeps_the_distance(model, draws):
    phi = a_table(model, draws)
    shaped = Shaped(model, phi, HORIZON)
    moved, scale = shaped.nonnegative()
    low, high = moved.model.reward_range
    assert low >= -1e-12
    assert high <= 1 + 1e-12
    assert moved.best.gaps() == pytest.approx(scale * shaped.best.gaps(), abs=1e-12)
    distance = moved.potential[:-1] - moved.best.values
    assert distance == pytest.approx(scale * (shaped.potential[:-1] - shaped.best.values), abs=1e-9)
    assert moved.model.reward == pytest.approx(
        np.broadcast_to(moved.model.rewards()[..., None], moved.model.reward.shape)
    )


@given(cmdps(states=(1, 3), noises=(1, 3)))
def test_the_span_is_the_widest_range_after_one_action(model):
    shaped = Shaped(model, None, HORIZON)
    best = shaped.values
    widest = 0.0
    for h, s, x in itertools.product(range(HORIZON), *map(range, model.rewards().shape)):
        after = [
            model.reward[s, x, u] + best[h + 1, model.next_state[s, x, u]]
            for u in range(model.noise.shape[1])
            if model.noise[s, u] > 0
        ]
        widest = max(widest, max(after) - min(after))
    assert shaped.span(best) == pytest.approx(widest)


def test_a_bonus_must_cover_the_value_and_the_potential():
    """One step to one of two states that are both worth nothing: V* has no span, a potential has."""
    model = cs.TabularCMDP(
        [[[1, 2]], [[3, 3]], [[3, 3]], [[3, 3]]],
        np.zeros((4, 1, 2)),
        [[0.5, 0.5]] * 4,
        [False, False, False, True],
        [1.0, 0.0, 0.0, 0.0],
    )
    shaped = Shaped(model, [[1.0, 0.0, 0.0, 0.0], [0.0, 0.2, 0.9, 0.0]], 2)
    assert shaped.span(shaped.values) == 0
    assert shaped.needed_span == pytest.approx(0.7)
    assert shaped.optimism(reward_max=5).limit == 10


def test_ties_by_rounding_are_no_gaps():
    reward = np.array([[[0.1 + 0.2], [0.3]], [[0.0], [0.0]]])
    model = cs.TabularCMDP(np.ones((2, 2, 1), dtype=int), reward, np.ones((2, 1)), [False, True], [1.0, 0.0])
    shaped = Shaped(model, None, 1)
    assert (shaped.gaps == 0).all()
    assert np.isinf(shaped.smallest_gap)


def test_only_states_in_which_episodes_start_can_lose_from_the_start():
    reward = np.zeros((3, 2, 1))
    reward[0, 0], reward[1, 0] = 1.0, 10.0
    model = cs.TabularCMDP(np.full((3, 2, 1), 2), reward, np.ones((3, 1)), [False, False, True], [1.0, 0.0, 0.0])
    assert Shaped(model, None, 1).worst_regret == 1


@fewer(25)
@given(cmdps(states=(1, 2)))
def test_no_policy_loses_more_than_the_worst(model):
    start = model.start > 0
    lost = max(
        (model.optimum(2).values - model.evaluate(policy, 2).values)[0, start].max()
        for policy in deterministic_policies(model, 2)
    )
    assert Shaped(model, None, 2).worst_regret == pytest.approx(lost)


def test_what_cannot_be_examined_is_refused():
    world = cs.load_world("lavacross-easy")
    with pytest.raises(cs.CausalShapingError, match="discount"):
        Shaped(world.model, cs.Potential(np.zeros(len(world.states)), world.space, discount=0.9), world.horizon)
    with pytest.raises(cs.CausalShapingError, match="shape"):
        Shaped(world.model, np.zeros(3), world.horizon)
