"""The joint backward pass: valid whatever the model, equal to a linear program, never looser than less information."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import cmdps, demonstrators
from scipy.optimize import linprog

import causal_shaping as cs
from causal_shaping.bounds.joint import joint_ceilings, joint_floors
from causal_shaping.errors import CausalShapingError

HORIZON = 3
small = cmdps(states=(1, 3), actions=(1, 3), noises=(1, 3))
discounts = st.sampled_from([1.0, 0.9])


def observed(model, betas):
    """What several demonstrators show, at population level."""
    parts = [model.observe(beta, f"d{i}") for i, beta in enumerate(betas)]
    return parts[0].merge(*parts[1:])


def true_gamma(model, beta):
    """The smallest Gamma that a demonstrator satisfies, by the definition of the marginal sensitivity model.

    The odds of x, given the outcome that x would have, against the odds given s alone. An action that is never or
    always taken, given an outcome that can happen, needs inf, unless it is never or always taken at all.
    """
    worst = 1.0
    for s in np.flatnonzero(~model.terminal):
        for x in range(len(model.actions)):
            p = float(model.noise[s] @ beta[s, :, x])
            if p in (0.0, 1.0):
                continue
            outcomes = {}
            for u, weight in enumerate(model.noise[s]):
                if weight > 0:
                    key = (model.next_state[s, x, u], model.reward[s, x, u])
                    mass, taken = outcomes.get(key, (0.0, 0.0))
                    outcomes[key] = (mass + weight, taken + weight * beta[s, u, x])
            for mass, taken in outcomes.values():
                q = taken / mass
                if q < 1e-12 or q > 1 - 1e-12:
                    return math.inf
                ratio = (q / (1 - q)) / (p / (1 - p))
                worst = max(worst, ratio, 1 / ratio)
    return worst


def support_holds(model, betas):
    """Whether every outcome that can follow a state was seen to follow it: decided by the true model."""
    for s in np.flatnonzero(~model.terminal):
        possible, seen, tried = set(), set(), set()
        for x in range(len(model.actions)):
            for u in np.flatnonzero(model.noise[s]):
                key = (model.next_state[s, x, u], model.reward[s, x, u])
                possible.add((x, key))
                if any(beta[s, u, x] > 0 for beta in betas):
                    seen.add(key)
                    tried.add(x)
        if any(x in tried and key not in seen for x, key in possible):
            return False
    return True


def ceilings(model, counts, horizon=HORIZON, **options):
    return joint_ceilings(counts, horizon, model.reward_range[1], **options)


def floors(model, counts, horizon=HORIZON, **options):
    return joint_floors(counts, horizon, model.reward_range[0], **options)


lasting = st.integers(1, 3)


@given(st.data(), small, lasting, discounts, st.booleans())
@settings(max_examples=300)
def test_the_optimum_lies_between_floor_and_ceiling(data, model, sources, discount, finite):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    counts = observed(model, betas)
    gammas = {f"d{i}": true_gamma(model, beta) for i, beta in enumerate(betas)} if finite else math.inf
    best = model.optimum(HORIZON, discount)
    for support in ("any", "observed") if support_holds(model, betas) else ("any",):
        found = ceilings(model, counts, support=support, confounding=gammas, discount=discount)
        alive = ~model.terminal
        assert (found.values - best.values)[:, alive].min() >= -1e-9
        assert (found.q_values - best.q_values)[:, alive].min() >= -1e-9
        low = floors(model, counts, support=support, confounding=gammas, discount=discount)
        assert (best.values - low.values)[:, alive].min() >= -1e-9
        assert (best.q_values - low.q_values)[:, alive].min() >= -1e-9


def test_false_assumptions_break_the_ceiling():
    """So that the tests above can fail: the incompetent robot alone makes an unstable robot look hopeless."""
    world = cs.load_world("walking-robot")
    alone = world.model.observe(world.demonstrators["incompetent"], "incompetent")
    unstable = world.state_at(0, 0)
    best = world.model.optimum(world.horizon).values[0, unstable]
    assert joint_ceilings(alone, 30, 1.0, confounding=1.0).values[0, unstable] == pytest.approx(-30)
    assert joint_ceilings(alone, 30, 1.0, support="observed").values[0, unstable] == pytest.approx(-30)
    assert joint_ceilings(alone, 30, 1.0, support="any").values[0, unstable] >= best


def program(model, betas, s, x, gamma, following, discount, side):
    """The linear program over outcome distributions of (s, x), limits written down anew; None if nobody tried x."""
    allowed = {}  # outcome -> value, all that was seen to follow s
    for action in range(len(model.actions)):
        for u in np.flatnonzero(model.noise[s]):
            if any(beta[s, u, action] > 0 for beta in betas):
                after, reward = model.next_state[s, action, u], model.reward[s, action, u]
                allowed[after, reward] = reward + (0 if model.terminal[after] else discount * following[after])
    low, high = dict.fromkeys(allowed, 0.0), dict.fromkeys(allowed, 1.0)
    tried = False
    for beta in betas:
        p = float(model.noise[s] @ beta[s, :, x])
        if p <= 0:
            continue
        tried = True
        mass = dict.fromkeys(allowed, 0.0)
        for u in np.flatnonzero(model.noise[s]):
            if beta[s, u, x] > 0:
                mass[model.next_state[s, x, u], model.reward[s, x, u]] += model.noise[s, u] * beta[s, u, x] / p
        for key, share in mass.items():
            low[key] = max(low[key], share * (p + (1 - p) / gamma))
            if math.isfinite(gamma):
                high[key] = min(high[key], share * (p + (1 - p) * gamma))
    if not tried:
        return None
    answer = linprog(
        [-side * value for value in allowed.values()],
        A_eq=np.ones((1, len(allowed))),
        b_eq=[1.0],
        bounds=[(min(low[key], high[key]), high[key]) for key in allowed],  # equal limits may cross by rounding
    )
    assert answer.status == 0
    return -side * answer.fun


def entered(model, betas):
    """Whether some demonstrator enters a state from one that is not terminal."""
    result = np.zeros(len(model.states), dtype=bool)
    for s in np.flatnonzero(~model.terminal):
        for u in np.flatnonzero(model.noise[s]):
            for x in range(len(model.actions)):
                if any(beta[s, u, x] > 0 for beta in betas):
                    result[model.next_state[s, x, u]] = True
    return result


@pytest.mark.parametrize("side", [1, -1])
@given(st.data(), small, lasting, discounts, st.sampled_from([1.0, 1.5, 4.0, math.inf]))
@settings(max_examples=200)
def test_each_backup_is_the_linear_program_over_outcome_distributions(side, data, model, sources, discount, gamma):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    counts = observed(model, betas)
    bound = ceilings if side == 1 else floors
    needed = max(true_gamma(model, beta) for beta in betas)
    gamma = max(gamma, needed) if data.draw(st.booleans()) else gamma
    try:
        found = bound(model, counts, horizon=2, confounding=gamma, discount=discount)
    except CausalShapingError:
        assert gamma < needed  # too small for these sources
        return
    following, extreme = found.values[1], model.reward_range[1 if side == 1 else 0]
    for s in np.flatnonzero(~model.terminal):
        for x in range(len(model.actions)):
            expected = program(model, betas, s, x, gamma, following, discount, side)
            if expected is None:  # anything may happen: the end, or a state that is not known to be terminal
                going_on = following[~(model.terminal & entered(model, betas))]
                expected = extreme + discount * side * max(0.0, (side * going_on).max())
            assert found.q_values[0, s, x] == pytest.approx(expected, abs=1e-9)


@given(st.data(), small, discounts)
@settings(max_examples=100)
def test_more_sources_and_less_confounding_never_loosen_a_ceiling(data, model, discount):
    betas = [data.draw(demonstrators(model)) for _ in range(3)]
    options = {"support": "any", "discount": discount}
    alone = ceilings(model, observed(model, betas[:1]), **options).values
    two = ceilings(model, observed(model, betas[:2]), **options).values
    three = ceilings(model, observed(model, betas), **options).values
    assert (two <= alone + 1e-9).all()
    assert (three <= two + 1e-9).all()
    gamma = max(true_gamma(model, beta) for beta in betas)
    if math.isfinite(gamma):
        tighter = ceilings(model, observed(model, betas), confounding=gamma, **options).values
        looser = ceilings(model, observed(model, betas), confounding=2 * gamma, **options).values
        assert (tighter <= looser + 1e-9).all()
        assert (looser <= three + 1e-9).all()


@given(st.data(), small, discounts)
@settings(max_examples=100)
def test_unconfounded_sources_that_try_everything_give_the_optimum(data, model, discount):
    blind = data.draw(demonstrators(model)).mean(axis=1, keepdims=True) * np.ones((1, model.noise.shape[-1], 1))
    blind = 0.5 * blind + 0.5 / len(model.actions)
    found = ceilings(model, observed(model, [blind]), confounding=1.0, discount=discount)
    low = floors(model, observed(model, [blind]), confounding=1.0, discount=discount)
    best = model.optimum(HORIZON, discount)
    alive = ~model.terminal
    np.testing.assert_allclose(found.values[:, alive], best.values[:, alive], atol=1e-9)
    np.testing.assert_allclose(low.values[:, alive], best.values[:, alive], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "distance", "correlation"),
    [
        ("windy-empty", 0.2026, 0.996),
        ("lavacross-easy", 0.0165, 0.995),
        ("lavacross-hard", 0.608, -0.52),
        ("lavacross-maze", 0.515, -0.14),
        ("lavacross-maze-fewer-coins", 0.278, 0.72),
    ],
)
def test_population_figures_under_observed_support(name, distance, correlation):
    """Mean distance to V* of the first step, and correlation with it, over the cells that an episode can start in."""
    world = cs.load_world(name)
    model = world.model
    found = ceilings(model, observed_world(world), world.horizon)
    best = model.optimum(world.horizon)
    cells = model.start > 0
    assert (found.values - best.values)[:, ~model.terminal].min() >= -1e-9
    assert (found.values - best.values)[0, cells].mean() == pytest.approx(distance, abs=6e-4)
    assert np.corrcoef(found.values[0, cells], best.values[0, cells])[0, 1] == pytest.approx(correlation, abs=6e-3)


def observed_world(world):
    parts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    return parts[0].merge(*parts[1:])


def test_the_robots_ceiling_is_its_optimum():
    world = cs.load_world("walking-robot")
    found = joint_ceilings(observed_world(world), world.horizon, 1.0)
    best = world.model.optimum(world.horizon)
    np.testing.assert_allclose(found.values[:, ~world.model.terminal], best.values[:, ~world.model.terminal], atol=1e-9)


def steps_of(after, rewards, terminated, states=("a", "b", "end")):
    """Counts of one-step episodes that start in a; -1 as next state is an unknown outcome."""
    n = len(after)
    truncated = ~np.array(terminated)
    space = cs.Space(states, ["go"])
    return cs.count(cs.Logs(space, "s", range(n), [0] * n, [0] * n, [0] * n, rewards, after, terminated, truncated))


def test_unknown_outcomes_may_have_been_anything():
    """Half of the outcomes are unknown: even an unconfounded source leaves that half free."""
    counts = steps_of([2] * 50 + [-1] * 50, [0.0] * 100, [True] * 50 + [False] * 50)
    for gamma in (1.0, 2.0, math.inf):
        found = joint_ceilings(counts, 1, 1.0, support="any", confounding=gamma)
        assert found.q_values[0, 0, 0] == pytest.approx(0.5 * 0.0 + 0.5 * 1.0)
        low = joint_floors(counts, 1, -1.0, support="any", confounding=gamma)
        assert low.q_values[0, 0, 0] == pytest.approx(0.5 * 0.0 - 0.5 * 1.0)


def test_a_source_with_unknown_outcomes_limits_none():
    """`go` in half of all visits, its outcome known in half of those: at Gamma = 2 that proves a mass of 0.375."""
    n = 200
    space = cs.Space(["a", "end"], ["go", "stay"])
    action, known = np.arange(n) % 2, np.arange(n) // 2 % 2 == 0
    after = np.where((action == 1) | known, 1, -1)
    zeros = np.zeros(n, dtype=int)
    logs = cs.Logs(space, "s", range(n), zeros, zeros, action, zeros, after, after == 1, after == -1)
    found = joint_ceilings(cs.count(logs), 1, 1.0, support="any", confounding=2.0)
    assert found.q_values[0, 0, 0] == pytest.approx(0.625)  # all that is not proven pays 1
    assert found.q_values[0, 0, 1] == pytest.approx(0.0)  # stay always ended, and nothing else can happen


@pytest.mark.parametrize(
    ("reward_max", "discount", "expected"),
    [(1.0, 1.0, [3.0, 2.0, 1.0]), (1.0, 0.5, [1.75, 1.5, 1.0]), (-0.1, 1.0, [-0.1, -0.1, -0.1]), (0.0, 1.0, [0, 0, 0])],
)
def test_a_state_that_nobody_left_gets_the_vacuous_value(reward_max, discount, expected):
    counts = steps_of([1, 2], [-0.1, -0.1], [False, True])  # b is entered and cut, end is where it ends
    found = joint_ceilings(counts, 3, reward_max, discount=discount)
    assert found.values[:, 1].tolist() == pytest.approx(expected)
    assert found.values[:, 2].tolist() == [0.0, 0.0, 0.0]
    # The mirror image: the worst that can happen in b.
    rewards = steps_of([1, 2], [0.1, 0.1], [False, True])
    low = joint_floors(rewards, 3, -reward_max, discount=discount)
    assert low.values[:, 1].tolist() == pytest.approx([-value for value in expected])


def test_rewards_that_are_not_told_apart_still_give_a_valid_and_no_tighter_ceiling():
    world = cs.load_world("lavacross-maze")
    logs = [world.collect(name, 30_000) for name in world.demonstrators]
    apart, pooled = cs.count(logs), cs.count(logs, max_rewards=1)
    assert pooled.discrete_rewards == (False, False, False)
    tight = joint_ceilings(apart, 20, 0.1, support="any").values
    loose = joint_ceilings(pooled, 20, 0.1, support="any").values
    assert (loose >= tight - 1e-9).all()
    assert (loose <= 2.0 + 1e-9).all()  # never beyond the vacuous value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward_max": 0.0}, r"reward_max is 0.0, but source 'better' holds a reward of 0.1"),
        ({"support": "some"}, "support is 'some'"),
        ({"confounding": 0.5}, "confounding of 'better' is 0.5"),
        ({"confounding": math.nan}, "must be 1"),
        ({"confounding": {"nobody": 1.0}}, "confounding names 'nobody'"),
        ({"confounding": 1.0}, "contradict each other"),
        ({"horizon": 0}, "horizon is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    counts = observed_world(cs.load_world("lavacross-maze"))
    with pytest.raises(CausalShapingError, match=message):
        joint_ceilings(counts, **{"horizon": 20, "reward_max": 0.1, **options})
