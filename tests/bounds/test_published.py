"""The paper's bound as printed, and each trap in which it fails and the joint bound holds."""

import numpy as np
import pytest
from handmade import counts_of_entries, one_step_logs
from hypothesis import given, strategies as st
from models import cmdps, demonstrators
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


def printed(model, betas, horizon, b, discount=1.0):
    """Equation (5), corollary 3.2 and algorithm 2 with plain loops over the true tables: values [h, s]."""
    states, actions, noises = len(model.states), len(model.actions), model.noise.shape[-1]
    alive = [s for s in range(states) if not model.terminal[s]]
    passes = []
    for beta in betas:
        values = np.zeros((horizon + 1, states))
        for h in reversed(range(horizon)):
            best = min(max(values[h + 1, s] for s in alive), (horizon - (h + 1)) * b)
            for s in alive:
                q_values = []
                for x in range(actions):
                    share = sum(model.noise[s, u] * beta[s, u, x] for u in range(noises))
                    if share == 0:
                        continue
                    reward = going_on = 0.0
                    for u in range(noises):
                        weight = model.noise[s, u] * beta[s, u, x] / share
                        after = model.next_state[s, x, u]
                        reward += weight * model.reward[s, x, u]
                        going_on += weight * (0.0 if model.terminal[after] else values[h + 1, after])
                    q_values.append((1 - share) * (b + discount * best) + share * (reward + discount * going_on))
                values[h, s] = max(q_values)
        passes.append(values[:-1])
    return np.min(passes, axis=0)


def counts_of(model, betas):
    return [model.observe(beta, f"d{i}") for i, beta in enumerate(betas)]


def paper(counts, horizon, b, **options):
    return cs.value_ceilings(counts, horizon, b, method="paper", **options)


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), actions=(1, 3), noises=(1, 3)), st.integers(1, 3), st.sampled_from([1.0, 0.9]))
def test_the_paper_s_method_is_what_the_paper_prints(data, model, sources, discount):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    b = data.draw(st.sampled_from([-0.1, 0.0, 0.3, 1.0]))
    expected = printed(model, betas, 4, b, discount)
    apart = [by_step(model, beta, f"d{i}", 4) for i, beta in enumerate(betas)]
    for counts in (counts_of(model, betas), apart):
        np.testing.assert_allclose(paper(counts, 4, b, discount=discount).values, expected, atol=1e-9)


def by_step(model, beta, source, horizon):
    """Population counts that hold every state at every step."""
    pooled = model.observe(beta, source)
    columns = {name: np.tile(getattr(pooled, name), horizon) for name in pooled.COLUMNS if name != "step"}
    columns["step"] = np.repeat(np.arange(horizon), len(pooled))
    return cs.Counts.combined(model.space, [source], columns, population=True)


# The fixed point (the proposition of the appendix) ----------------------------------------------------


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), ending=True), st.integers(1, 2), st.sampled_from([1.0, 0.8]))
def test_the_fixed_point_stays_and_does_not_depend_on_the_start(data, model, sources, discount):
    betas = [0.8 * data.draw(demonstrators(model)) + 0.2 / len(model.actions) for _ in range(sources)]
    b, horizon = 1.0, 6
    found = paper(counts_of(model, betas), horizon, b, discount=discount, stationary=True)
    assert found.values.shape == (len(model.states),)
    assert found.sweeps > 0
    assert found.contraction < 1
    omega, alive = (horizon - 1) * b, ~model.terminal
    each = []
    for beta in betas:  # iterate the printed operator from far above
        values = np.where(alive, 50.0, 0.0)
        share = np.einsum("su,sux->sx", model.noise, beta)
        paid = np.einsum("su,sux,sxu->sx", model.noise, beta, model.reward)
        for _ in range(2000):
            following = np.where(model.terminal[model.next_state], 0.0, values[model.next_state])
            going_on = np.einsum("su,sux,sxu->sx", model.noise, beta, following)
            q_values = (1 - share) * (b + discount * min(values[alive].max(), omega)) + paid + discount * going_on
            before, values = values, np.where(alive, q_values.max(axis=1), 0.0)
            if np.abs(values - before).max() < 1e-13:  # a contraction: what is left to go is some times this
                break
        each.append(values)
    np.testing.assert_allclose(found.values, np.min(each, axis=0), atol=1e-8)


def test_a_fixed_point_that_does_not_exist_is_an_error():
    model = cs.TabularCMDP([[[0]]], [[[0.5]]], [[1.0]], [False], [1.0])  # pays for ever
    counts = model.observe(np.ones((1, 1, 1)), "d0")
    for method in ("paper", "joint"):
        with pytest.raises(CausalShapingError, match=r"There is no infinite-horizon bound.*discount below 1"):
            cs.value_ceilings(counts, 5, 1.0, method=method, stationary=True)
    discounted = cs.value_ceilings(counts, 5, 1.0, discount=0.9, stationary=True)
    assert discounted.values[0] == pytest.approx(5.0)
    assert discounted.contraction == pytest.approx(0.9, abs=0.01)


def test_a_slow_fixed_point_is_found():
    """It goes on with a chance of 0.999 a step and pays 0.001: V* = 0.999, after many thousand sweeps."""
    model = cs.TabularCMDP(
        next_state=[[[0, 1]], [[1, 1]]],
        reward=[[[1e-3, 0.0]], [[0.0, 0.0]]],
        noise=[[0.999, 0.001], [1.0, 0.0]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )
    counts = model.observe(np.ones((2, 2, 1)), "d0")
    for method in ("paper", "joint"):
        found = cs.value_ceilings(counts, 1000, 1e-3, method=method, stationary=True)
        assert found.values[0] == pytest.approx(0.999, abs=1e-9)
        assert found.contraction == pytest.approx(0.999, abs=1e-4)
    assert found.values[0] >= 0.999 * (1 - 1e-12)  # up to rounding


@pytest.mark.parametrize("discount", [0.9, 0.999])
def test_a_fixed_point_with_discount_errs_to_the_safe_side(discount):
    model = cs.TabularCMDP([[[0]]], [[[1.0]]], [[1.0]], [False], [1.0])
    counts = model.observe(np.ones((1, 1, 1)), "d0")
    options = {"discount": discount, "stationary": True}
    exact = 1 / (1 - discount)
    rounding = 1e-13 * exact
    assert -rounding <= cs.value_ceilings(counts, 5, 1.0, **options).values[0] - exact <= 1e-9 * exact
    assert -rounding <= exact - cs.value_floors(counts, 5, 1.0, **options).values[0] <= 1e-9 * exact


def test_the_paper_s_clip_is_no_bound_without_a_time_limit():
    model = cs.TabularCMDP([[[0], [0]]], [[[1.0], [1.0]]], [[1.0]], [False], [1.0])
    counts = model.observe(np.full((1, 1, 2), 0.5), "d0")
    with pytest.warns(cs.AssumptionWarning, match=r"The clip \(H - 1\) b was reached"):
        found = paper(counts, 2, 1.0, discount=0.9, stationary=True)
    assert found.values[0] < model.optimum(discount=0.9).values[0]
    assert not found.guaranteed


def test_the_robots_fixed_point():
    """What the formula really gives; see docs/differences.md for the figures that the paper prints."""
    world = cs.load_world("walking-robot")
    counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    unstable, stable = world.state_at(0, 0), world.state_at(0, 1)
    fixed = paper(counts, 30, 1.0, stationary=True).values
    assert (fixed >= world.model.optimum().values - 1e-9).all()
    assert fixed[[unstable, stable]] == pytest.approx([29.0, 30.5], abs=0.01)
    short = paper(counts, 9, 1.0, stationary=True).values
    assert short[[unstable, stable]] == pytest.approx([8.0, 9.5], abs=0.01)
    backwards = paper(counts, 30, 1.0).values[0]
    assert backwards[unstable] > backwards[stable]  # over the horizon the published bound prefers to be unstable


# Traps: where the published method fails, and the joint one holds -------------------------------------


def one_state(rewards, beta, wait=None):
    """A state with one noise per column of `rewards` [actions, noises]; each action ends, or `wait` stays."""
    actions, noises = np.shape(rewards)
    next_state = np.full((2, actions, noises), 1)
    if wait is not None:
        next_state[0, wait] = 0
    reward = np.zeros((2, actions, noises))
    reward[0] = rewards
    noise = np.full((2, noises), 1 / noises)
    model = cs.TabularCMDP(next_state, reward, noise, [False, True], [1.0, 0.0])
    table = np.zeros((2, noises, actions))
    table[0], table[1, :, 0] = beta, 1.0
    return model, table


def lowest_gap(ceilings, model, horizon):
    return (ceilings.values - model.optimum(horizon).values)[:, ~model.terminal].min()


def test_trap_1_the_published_potential_is_almost_flat():
    for name in cs.list_worlds()[1:]:
        world = cs.load_world(name)
        counts = [world.model.observe(beta, source) for source, beta in world.demonstrators.items()]
        alive = ~world.model.terminal
        published = paper(counts, world.horizon, 0.0)
        assert np.abs(published.values[0, alive]).max() <= 0.14
        ours = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
        assert np.ptp(ours.values[0, alive]) > 3 * np.ptp(published.values[0, alive])


def test_trap_2_a_bound_below_a_seen_reward():
    """`guess` pays 1 or 0 by a coin that the demonstrator sees and then sits out the bad half: b = 0 hides the rest."""
    model, beta = one_state([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
    counts = model.observe(beta, "d0")
    with pytest.warns(cs.AssumptionWarning, match="b is -1, below a reward of 0 that was seen"):
        published = paper(counts, 1, -1.0)
    assert not published.guaranteed
    assert lowest_gap(published, model, 1) < -0.4
    with pytest.raises(CausalShapingError, match=r"reward_max is -1.0, but source 'd0' holds a reward of 0.0"):
        cs.value_ceilings(counts, 1, -1.0)
    assert lowest_gap(cs.value_ceilings(counts, 1, 1.0, support="any"), model, 1) >= 0


def test_trap_3_negative_rewards_and_early_ends():
    """Waiting costs 1 a step, leaving costs 1 and ends it: the most that can follow is 0, not (H - h) b."""
    model, beta = one_state([[-1.0], [-1.0]], [[0.5, 0.5]], wait=0)
    counts = model.observe(beta, "d0")
    with pytest.warns(cs.AssumptionWarning, match="b is negative and episodes can end early"):
        published = paper(counts, 5, -1.0)
    assert not published.guaranteed
    assert lowest_gap(published, model, 5) < -0.9
    for support in ("any", "observed"):
        assert lowest_gap(cs.value_ceilings(counts, 5, -1.0, support=support), model, 5) >= -1e-12


def test_trap_3_an_end_is_better_than_the_best_state_that_was_left():
    """b = 0 holds, but all states that were left are worth less than 0, and ending is not among them."""
    model, beta = one_state([[-1.0, -1.0], [-1.0, 0.0]], [[0.5, 0.5], [1.0, 0.0]], wait=0)
    counts = model.observe(beta, "d0")
    with pytest.warns(cs.AssumptionWarning, match="worth less than 0, and ending, worth 0, was"):
        published = paper(counts, 4, 0.0)
    assert not published.guaranteed
    assert lowest_gap(published, model, 4) < -0.01
    assert lowest_gap(cs.value_ceilings(counts, 4, 0.0, support="any"), model, 4) >= -1e-12


def test_trap_3_a_state_that_nobody_left_misses_one_reward():
    space = cs.Space(["a", "b", "end"], ["go"], terminal=["end"])
    counts = cs.count(one_step_logs(space, [0.0, 0.0], after=[1, 2], ended=[False, True]))
    with pytest.warns(cs.AssumptionWarning, match="In some states no source acted"):
        published = paper(counts, 3, 1.0)
    assert published.values[:, 1].tolist() == [2.0, 1.0, 0.0]  # the footnote: (H - h) b
    assert cs.value_ceilings(counts, 3, 1.0).values[:, 1].tolist() == [3.0, 2.0, 1.0]


def test_trap_4_skipping_actions_that_nobody_tried():
    model, beta = one_state([[0.0], [1.0]], [[1.0, 0.0]])  # action 1 pays 1, and is never tried
    counts = model.observe(beta, "d0")
    with pytest.warns(
        cs.AssumptionWarning, match="1 actions that a source never tried in a state in which it acted were skipped"
    ):
        published = paper(counts, 1, 1.0)
    assert np.isnan(published.q_values[0, 0, 1])
    assert lowest_gap(published, model, 1) == pytest.approx(-1.0)
    assert lowest_gap(cs.value_ceilings(counts, 1, 1.0), model, 1) >= 0


def test_trap_8_plug_in_minima_are_biased():
    """The smallest of many estimated bounds is too small on average; that of limits is not."""
    model, _ = one_state([[1.0, 0.0]], [[1.0], [1.0]])
    rng = np.random.default_rng(0)
    low, safe = [], []
    for _ in range(50):
        wins = rng.binomial(20, 0.5, size=10)
        parts = [counts_of_entries(model.space, [n, 20 - n], [1.0, 0.0], sources=[f"d{i}"]) for i, n in enumerate(wins)]
        low.append(paper(parts, 1, 1.0).values[0, 0])
        safe.append(cs.value_ceilings(parts, 1, 1.0, confidence=0.95).values[0, 0])
    assert np.mean(low) < 0.5 - 0.1
    assert min(safe) >= 0.5


def test_trap_9_without_flags_an_end_is_not_a_state_that_was_never_left():
    space = cs.Space(["a", "goal"], ["go"])
    ended = cs.count(cs.Logs(space, "d0", [0], [0], [0], [0], [0.0], [1], [True], [False]))
    cut = cs.count(cs.Logs(space, "d0", [0], [0], [0], [0], [0.0], [1], [False], [True]))
    assert cs.value_ceilings(ended, 3, 1.0).values[0].tolist() == [0.0, 0.0]
    assert cs.value_ceilings(cut, 3, 1.0).values[0].tolist() == [2.0, 3.0]


def test_trap_10_observed_support_needs_all_sources():
    world = cs.load_world("walking-robot")
    unstable = world.state_at(0, 0)
    alone = world.model.observe(world.demonstrators["incompetent"], "incompetent")
    with pytest.warns(cs.AssumptionWarning, match="Only 'incompetent' is there"):
        hopeless = cs.value_ceilings(alone, 30, 1.0)
    assert hopeless.values[0, unstable] == pytest.approx(-30)
    best = world.model.optimum(30).values[0, unstable]
    assert cs.value_ceilings(alone, 30, 1.0, support="any").values[0, unstable] >= best
    both = [alone, world.model.observe(world.demonstrators["competent"], "competent")]
    assert cs.value_ceilings(both, 30, 1.0).values[0, unstable] == pytest.approx(best)


@pytest.mark.parametrize("options", [{"confidence": 0.9}, {"confounding": 2.0}])
def test_the_paper_has_no_confidence_and_no_finite_confounding(options):
    world = cs.load_world("lavacross-easy")
    counts = cs.count(world.collect("good", 1000))
    with pytest.raises(CausalShapingError, match="the method 'joint'"):
        paper(counts, 20, 0.0, **options)
