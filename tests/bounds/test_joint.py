"""The joint bound: valid whatever the model, equal to a linear program, never looser than less information."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from handmade import counts_of_entries, one_step_logs
from hypothesis import given, strategies as st
from models import KINDS, cmdps, demonstrators
from programs import (
    action_support_holds,
    interval_program,
    outcomes_of,
    response_type_program,
    separate,
    shown,
    support_holds,
    true_gamma,
)
from properties import fewer

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError, ModelError

pytestmark = pytest.mark.filterwarnings("ignore:Only 'd0' is there")

HORIZON = 3
small = cmdps(states=(1, 3), actions=(1, 3), noises=(1, 3))
tiny = cmdps(states=(1, 3), actions=(2, 2), noises=(1, 3))
several = st.integers(1, 3)
discounts = st.sampled_from([1.0, 0.9])


def observed(model, betas, **options):
    """What several demonstrators show, at population level."""
    return [model.observe(beta, f"d{i}", **options) for i, beta in enumerate(betas)]


def bounds_of(model, counts, horizon=HORIZON, **options):
    """Ceilings and floors with the true extremes of the reward."""
    low, high = model.reward_range
    return cs.value_ceilings(counts, horizon, high, **options), cs.value_floors(counts, horizon, low, **options)


def assert_between(model, best, ceilings, floors):
    """The optimum lies between the bounds, everywhere."""
    alive = ~model.terminal
    for values, ceiling, floor in (
        (best.values, ceilings.values, floors.values),
        (best.q_values, ceilings.q_values, floors.q_values),
    ):
        axis = values.ndim - 1 if values is best.values else values.ndim - 2
        assert np.compress(alive, ceiling - values, axis).min() >= -1e-9
        assert np.compress(alive, values - floor, axis).min() >= -1e-9


def successors(model, hide=()):
    """The true support of a model as a table for a user: by state, None for ends."""
    return {
        model.states[s]: {
            model.states[after]
            for x in range(len(model.actions))
            for h in range(model.steps or 1)
            for after, _ in outcomes_of(model, s, x, h)
        }
        for s in np.flatnonzero(~model.terminal)
        if s not in hide
    }


@fewer(40)
@given(st.data(), small, several, discounts, st.booleans())
def test_the_optimum_lies_between_floor_and_ceiling(data, model, sources, discount, finite):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    counts = observed(model, betas)
    gammas = {f"d{i}": true_gamma(model, beta) for i, beta in enumerate(betas)} if finite else math.inf
    best = model.optimum(HORIZON, discount)
    supports = ["any", successors(model)] + ["observed"] * support_holds(model, betas)
    supports += ["observed-action"] * action_support_holds(model, betas)
    for support in supports:
        pair = bounds_of(model, counts, support=support, confounding=gammas, discount=discount)
        assert all(bounds.guaranteed for bounds in pair)
        assert_between(model, best, *pair)


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), actions=(1, 2), noises=(1, 2), steps=2), st.integers(1, 2), st.booleans())
def test_the_optimum_lies_between_the_bounds_of_a_world_that_changes(data, model, sources, reachable):
    """Counts by step, of all states or of those that an episode reaches."""
    betas = [data.draw(demonstrators(model, steps=2)) for _ in range(sources)]
    counts = observed(model, betas, step_indexed=True, **({"horizon": 2} if reachable else {}))
    best = model.optimum(2)
    holds = all(support_holds(model, betas, h) for h in range(2))
    by_action = all(action_support_holds(model, betas, h) for h in range(2))
    for support in ["any", successors(model)] + ["observed"] * holds + ["observed-action"] * by_action:
        for gammas in (math.inf, {f"d{i}": max(true_gamma(model, b, h) for h in (0, 1)) for i, b in enumerate(betas)}):
            assert_between(model, best, *bounds_of(model, counts, 2, support=support, confounding=gammas))


@fewer(40)
@given(st.data(), cmdps(states=(1, 2), ending=True), several, st.booleans())
def test_the_fixed_point_bounds_the_optimum_without_a_horizon(data, model, sources, finite):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    discount = data.draw(st.sampled_from([0.5, 0.9]))
    gammas = {f"d{i}": true_gamma(model, beta) for i, beta in enumerate(betas)} if finite else math.inf
    pair = bounds_of(
        model, observed(model, betas), support="any", confounding=gammas, discount=discount, stationary=True
    )
    assert_between(model, model.optimum(discount=discount), *pair)
    # It is the limit of ever longer horizons.
    steps = round(math.log(1e-11, discount))
    long, _ = bounds_of(model, observed(model, betas), steps, support="any", confounding=gammas, discount=discount)
    np.testing.assert_allclose(pair[0].values, long.values[0], atol=1e-9)


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), ending=True), several, st.booleans(), st.floats(0, 2))
def test_a_true_highest_value_keeps_ceilings_true_and_never_loosens_them(data, model, sources, stationary, slack):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    counts = observed(model, betas)
    best = model.optimum() if stationary else model.optimum(HORIZON)
    highest = float(best.values[..., ~model.terminal].max()) + slack
    options = {"support": "any", "stationary": stationary}
    capped = cs.value_ceilings(counts, HORIZON, model.reward_range[1], value_max=highest, **options)
    alive = ~model.terminal
    assert (capped.values - best.values)[..., alive].min() >= -1e-9
    assert (capped.q_values - np.minimum(best.q_values, highest))[..., alive, :].min() >= -1e-9
    assert capped.values[..., alive].max() <= highest + 1e-9
    assert capped.vacuous_values.max() <= highest + 1e-9
    if not stationary:  # without a highest value there may be no fixed point
        free = cs.value_ceilings(counts, HORIZON, model.reward_range[1], **options)
        assert (free.values - capped.values)[..., alive].min() >= -1e-9


def test_a_highest_value_gives_standing_coins_a_fixed_point():
    """Unproven mass may walk over coins for ever; with a highest value the sweeps end, above the optimum."""
    world = cs.load_world("lavacross-hard")
    counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    with pytest.raises(ModelError, match="no infinite-horizon bound"):
        cs.value_ceilings(counts, 20, 0.1, stationary=True, support="any")
    fixed = cs.value_ceilings(counts, 20, 0.1, stationary=True, support="any", value_max=0.0)
    best, alive = world.model.optimum(), ~world.model.terminal
    assert (fixed.values - best.values)[alive].min() >= -1e-9
    assert fixed.values.max() <= 0
    assert "No state has a value above 0." in fixed.assumptions


def test_a_state_without_declared_end_is_no_end():
    """An untried action may lead to a state that no log holds, and that state may be the best of all."""
    model = cs.TabularCMDP(  # `risk` leads to a state that pays 1 a step; nobody ever tried it
        next_state=[[[0], [1]], [[1], [1]]],
        reward=[[[0.0], [0.0]], [[1.0], [1.0]]],
        noise=[[1.0], [1.0]],
        terminal=[False, False],
        start=[1.0, 0.0],
    )
    never = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    counts = model.observe(never, "d0", horizon=5)
    ceilings, _ = bounds_of(model, counts, 5, support="any")
    assert ceilings.vacuous[:, 1].all()
    assert (ceilings.values >= model.optimum(5).values).all()
    assert ceilings.values[0, 0] == pytest.approx(4.0 + 1.0)  # it cannot be known that the first step pays nothing


@pytest.mark.parametrize("side", [1, -1])
@fewer(40)
@given(st.data(), small, several, discounts, st.sampled_from([1.0, 1.5, 4.0, math.inf]))
def test_each_backup_is_the_linear_program_over_outcome_distributions(side, data, model, sources, discount, gamma):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    needed = max(true_gamma(model, beta) for beta in betas)
    gamma = max(gamma, needed) if data.draw(st.booleans()) else gamma
    by_action = data.draw(st.booleans())
    counts, options = observed(model, betas), {"confounding": gamma, "discount": discount}
    options["support"] = "observed-action" if by_action else "observed"
    try:
        pair = bounds_of(model, counts, horizon=2, **options)
    except CausalShapingError:
        assert gamma < needed  # too small for these sources
        with pytest.raises(CausalShapingError, match="contradict"):
            bounds_of(model, counts, horizon=2, **options)
        return
    found, extreme = pair[side < 0], model.reward_range[side > 0]
    following = found.values[1]
    for s in np.flatnonzero(~model.terminal):
        for x in range(len(model.actions)):
            expected = interval_program(model, betas, s, x, gamma, following, discount, side, by_action)
            if expected is None:  # anything may happen: the end, or any state that is not terminal
                expected = extreme + discount * side * max(0.0, (side * following[~model.terminal]).max())
            assert found.q_values[0, s, x] == pytest.approx(expected, abs=1e-9)


@fewer(40)
@given(st.data(), tiny, several, discounts)
def test_no_backup_lies_below_the_linear_program_over_response_types(data, model, sources, discount):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    ceilings, _ = bounds_of(model, observed(model, betas), horizon=2, discount=discount)
    for s in np.flatnonzero(~model.terminal):
        seen = {x for beta in betas for x, _ in shown(model, beta, s)}
        for x in seen:
            sharpest = response_type_program(model, betas, s, x, ceilings.values[1], discount)
            assert ceilings.q_values[0, s, x] >= sharpest - 1e-9
            if sources == 1:  # Manski's bound is sharp
                assert ceilings.q_values[0, s, x] == pytest.approx(sharpest, abs=1e-9)


@fewer(40)
@given(st.data(), small, several, discounts, st.sampled_from(["any", "observed"]))
def test_combining_sources_earlier_is_never_looser(data, model, sources, discount, support):
    """Per outcome, then per (s, x) inside the backup, then per source with the minimum at the end."""
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    reward_max = model.reward_range[1]
    joint, _ = bounds_of(model, observed(model, betas), support=support, discount=discount)
    inside = separate(model, betas, HORIZON, reward_max, support, inside=True, discount=discount)
    at_end = separate(model, betas, HORIZON, reward_max, support, inside=False, discount=discount)
    assert (joint.values <= inside + 1e-9).all()
    assert (inside <= at_end + 1e-9).all()
    if sources == 1:
        np.testing.assert_allclose(joint.values, at_end, atol=1e-9)


@fewer(40)
@given(st.data(), small, st.integers(2, 3))
def test_a_backup_is_strictly_tighter_where_no_source_proves_the_most_of_every_outcome(data, model, sources):
    """One step under `any`, against the best single source per (s, x): a minimum at the end cannot have more."""
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    best = model.reward_range[1]
    ceilings, _ = bounds_of(model, observed(model, betas), horizon=1, support="any")
    for s in np.flatnonzero(~model.terminal):
        for x in range(len(model.actions)):
            lost = [
                {o: mass * (best - o[1]) for (action, o), mass in shown(model, beta, s).items() if action == x}
                for beta in betas
            ]
            most = {o: max(one.get(o, 0.0) for one in lost) for o in set().union(*lost)}
            leads = any(all(one.get(o, 0.0) >= most[o] - 1e-12 for o in most) for one in lost)
            alone = best - max(sum(one.values()) for one in lost)
            assert ceilings.q_values[0, s, x] == pytest.approx(best - sum(most.values()), abs=1e-9)
            assert (ceilings.q_values[0, s, x] < alone - 1e-9) == (not leads)


@fewer(40)
@given(st.data(), small, discounts, st.booleans())
def test_more_sources_and_less_confounding_never_loosen(data, model, discount, given_support):
    betas = [data.draw(demonstrators(model)) for _ in range(3)]
    options = {"support": successors(model) if given_support else "any", "discount": discount}
    pairs = [bounds_of(model, observed(model, betas[:n]), **options) for n in (1, 2, 3)]
    gamma = max(true_gamma(model, beta) for beta in betas)
    if math.isfinite(gamma):
        pairs += [bounds_of(model, observed(model, betas), confounding=g, **options) for g in (2 * gamma, gamma)]
    for (ceilings, floors), (higher, lower) in zip(pairs[1:], pairs[:-1], strict=True):
        assert (ceilings.values <= higher.values + 1e-9).all()
        assert (floors.values >= lower.values - 1e-9).all()


@fewer(40)
@given(st.data(), small, discounts)
def test_unconfounded_sources_that_try_everything_give_the_optimum(data, model, discount):
    blind = data.draw(demonstrators(model)).mean(axis=1, keepdims=True) * np.ones((1, model.noise.shape[-1], 1))
    blind = 0.5 * blind + 0.5 / len(model.actions)
    best = model.optimum(HORIZON, discount)
    for bounds in bounds_of(model, observed(model, [blind]), confounding=1.0, discount=discount):
        np.testing.assert_allclose(bounds.values, best.values, atol=1e-9)
        np.testing.assert_allclose(bounds.q_values, best.q_values, atol=1e-9)


# The worlds -------------------------------------------------------------------------------------------


def world_counts(world):
    return [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_every_world_lies_between_its_bounds(name, coins):
    world = cs.load_world(name, coins=coins)
    best = world.model.optimum(world.horizon)
    for support in ("any", "observed"):
        assert_between(world.model, best, *bounds_of(world.model, world_counts(world), world.horizon, support=support))


def test_the_robots_ceiling_is_its_optimum_and_prefers_to_be_stable():
    world = cs.load_world("walking-robot")
    ceilings, _ = bounds_of(world.model, world_counts(world), world.horizon)
    best = world.model.optimum(world.horizon)
    np.testing.assert_allclose(ceilings.values, best.values, atol=1e-9)
    first = ceilings.values[0]
    assert all(first[world.state_at(place, 1)] > first[world.state_at(place, 0)] for place in range(10))


# Small logs by hand -----------------------------------------------------------------------------------


def steps_of(after, rewards, terminated, source="d0"):
    """Counts of one-step episodes that start in a; -1 as next state is an unknown outcome."""
    space = cs.Space(["a", "b", "end"], ["go"])
    return cs.count(one_step_logs(space, rewards, source, after=after, ended=terminated))


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), actions=(1, 3), noises=(1, 3), ending=True), several)
@pytest.mark.filterwarnings("ignore:No episode of")
def test_logs_that_never_tell_an_end_give_valid_bounds(data, model, sources):
    """Flags are missing: every step that ended an episode has an unknown outcome."""
    betas = [0.9 * data.draw(demonstrators(model)) + 0.1 / len(model.actions) for _ in range(sources)]

    def without_flags(counts):
        columns = {name: getattr(counts, name) for name in counts.COLUMNS}
        columns["next_state"] = np.where(counts.terminated, -1, counts.next_state)
        columns["terminated"] = np.zeros(len(counts), dtype=bool)
        return cs.Counts.combined(counts.space, counts.sources, columns, population=True)

    space = cs.Space(model.states, model.actions)  # nothing is declared to be terminal
    counts = [without_flags(one).to_space(space) for one in observed(model, betas)]
    ceilings, floors = bounds_of(model, counts)
    best, alive = model.optimum(HORIZON).values, ~model.terminal
    assert (ceilings.values - best)[:, alive].min() >= -1e-9
    assert (best - floors.values)[:, alive].min() >= -1e-9


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), actions=(1, 3), noises=(1, 3), ending=True), several)
def test_ends_that_are_told_only_in_part_give_valid_bounds_where_rewards_give_them_away(data, model, sources):
    """A state may end well or badly, and only the bad ends are flagged; good ends pay 2, which nothing else does."""
    reward = np.where(model.terminal[model.next_state], 2.0, model.reward) * ~model.terminal[:, None, None]
    model = cs.TabularCMDP(model.next_state, reward, model.noise, model.terminal, model.start)
    betas = [0.9 * data.draw(demonstrators(model)) + 0.1 / len(model.actions) for _ in range(sources)]
    flagged = np.zeros(len(model.states) + 1, dtype=bool)
    flagged[np.flatnonzero(model.terminal)[0]] = True  # ends in this state are told, ends in others are not

    def in_part(counts):
        hidden = counts.terminated & ~flagged[counts.next_state]
        columns = {name: getattr(counts, name) for name in counts.COLUMNS}
        columns["next_state"] = np.where(hidden, -1, counts.next_state)
        columns["terminated"] = counts.terminated & ~hidden
        told = counts.terminated & ~hidden
        columns["reward_sum"] = np.where(told, 1.0 * counts.n, counts.reward_sum)  # told ends pay 1
        for name in ("reward_min", "reward_max"):
            columns[name] = np.where(told, 1.0, columns[name])
        return cs.Counts.combined(counts.space, counts.sources, columns, population=True)

    told_pay = np.where(flagged[model.next_state] & ~model.terminal[:, None, None], 1.0, reward)
    model = cs.TabularCMDP(model.next_state, told_pay, model.noise, model.terminal, model.start)
    space = cs.Space(model.states, model.actions)
    counts = [in_part(one).to_space(space) for one in observed(model, betas)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.AssumptionWarning)
        ceilings = cs.value_ceilings(counts, HORIZON, 2.0)
    assert (ceilings.values - model.optimum(HORIZON).values)[:, ~model.terminal].min() >= -1e-9


def test_logs_without_flags_are_warned_of():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 5_000) for name in ("good", "random")]
    silent = [
        replace(one, terminated=np.zeros(len(one), bool), next_state=np.where(one.terminated, -1, one.next_state))
        for one in logs
    ]
    with pytest.warns(
        cs.AssumptionWarning, match="No episode of good, random is known to have terminated, and .* steps"
    ):
        cs.value_ceilings(cs.count(silent, check=False), 20, -0.1)


@pytest.mark.filterwarnings("ignore:Many steps do not tell")
def test_unknown_outcomes_may_have_been_anything():
    """Half of the outcomes are unknown: even an unconfounded source leaves that half free."""
    counts = steps_of([2] * 50 + [-1] * 50, [0.0] * 100, [True] * 50 + [False] * 50)
    for gamma in (1.0, 2.0, math.inf):
        found = cs.value_ceilings(counts, 1, 1.0, support="any", confounding=gamma)
        assert found.q_values[0, 0, 0] == pytest.approx(0.5 * 0.0 + 0.5 * 1.0)
        low = cs.value_floors(counts, 1, -1.0, support="any", confounding=gamma)
        assert low.q_values[0, 0, 0] == pytest.approx(0.5 * 0.0 - 0.5 * 1.0)


@pytest.mark.filterwarnings("ignore:Many steps do not tell")
def test_a_source_with_unknown_outcomes_limits_none():
    """`go` in half of all visits, its outcome known in half of those: at Gamma = 2 that proves a mass of 0.375."""
    n = 200
    space = cs.Space(["a", "end"], ["go", "stay"])
    action, known = np.arange(n) % 2, np.arange(n) // 2 % 2 == 0
    after = np.where((action == 1) | known, 1, -1)
    logs = one_step_logs(space, np.zeros(n), action=action, after=after, ended=after == 1)
    found = cs.value_ceilings(cs.count(logs), 1, 1.0, support="any", confounding=2.0)
    assert found.q_values[0, 0, 0] == pytest.approx(0.625)  # all that is not proven pays 1
    assert found.q_values[0, 0, 1] == pytest.approx(0.0)  # stay always ended, and nothing else can happen


@pytest.mark.parametrize("confounding", [1.0, math.inf])
def test_an_end_is_the_same_end_for_a_source_that_does_not_say_where(confounding):
    """Two sources of one world: each proves that `go` ends half of the time and leads to b otherwise."""
    told = steps_of([2] * 50 + [1] * 50, [0.0] * 50 + [1.0] * 50, [True] * 50 + [False] * 50)
    silent = steps_of([-1] * 50 + [1] * 50, [0.0] * 50 + [1.0] * 50, [True] * 50 + [False] * 50, source="d1")
    both = cs.value_ceilings([told, silent], 1, 1.0, support="any", confounding=confounding)
    assert both.q_values[0, 0, 0] == pytest.approx(0.5)


def masses_of(space, source, rows):
    """Population counts from rows (s, x, s', ended, mass, reward)."""
    state, action, after, ended, n, reward = np.array(rows, dtype=float).T
    columns = {"state": state, "action": action, "next_state": after, "terminated": ended > 0}
    return counts_of_entries(space, n, reward, **columns, sources=[source], population=True)


@pytest.mark.parametrize(
    "rewards", [[0.0, 8e-7], [1e6, 1e6 + 1.0], [1 + 0.9e-7 * k for k in range(64)], [-1.0, -1.0 + 1e-8]]
)
def test_small_differences_between_rewards_never_cost_the_guarantee(rewards):
    space = cs.Space(["a", "end"], ["go"], terminal=["end"])
    counts = masses_of(space, "d0", [(0, 0, 1, 1, 1 / len(rewards), reward) for reward in rewards])
    mean = np.mean(rewards)
    ceiling = cs.value_ceilings(counts, 1, max(rewards), confounding=1.0).values[0, 0]
    floor = cs.value_floors(counts, 1, min(rewards), confounding=1.0).values[0, 0]
    assert floor - 1e-15 * abs(mean) <= mean <= ceiling + 1e-15 * abs(mean)
    assert ceiling - floor <= 1e-6 * abs(mean)


def test_many_rewards_that_are_told_apart_stay_so():
    """Sources with more distinct rewards than usual, one of which does not say where episodes end."""
    space = cs.Space(["a", "b", "end"], ["go", "no"], terminal=["end"])
    leave = [(1, 0, 2, 1, 0.5, 0.0), (1, 1, 2, 1, 0.5, 0.0)]
    told = [(0, 0, 1, 0, 0.3 / 70, k / 70) for k in range(70)] + [(0, 1, 2, 1, 0.7, 0.0), *leave]
    silent = [(0, 0, 1, 0, 0.3 / 70, k / 70) for k in range(60)] + [(0, 1, -1, 1, 1 - 0.3 * 60 / 70, 0.0), *leave]
    parts = [masses_of(space, f"d{i}", rows) for i, rows in enumerate((told, silent))]
    together = cs.value_ceilings(sum(parts), 1, 1.0, support="any")
    truth = 0.3 * np.mean([k / 70 for k in range(70)]) + 0.7 * 1.0
    assert together.q_values[0, 0, 0] >= truth - 1e-9
    assert np.array_equal(together.q_values, cs.value_ceilings(parts, 1, 1.0, support="any").q_values)


def test_more_rewards_than_sixteen_bits_hold():
    n = 70_000
    space = cs.Space(["a", "end"], ["go"], terminal=["end"])
    counts = masses_of(space, "d0", [(0, 0, 1, 1, 1 / n, k / n) for k in range(n)])
    assert cs.value_ceilings(counts, 1, 1.0).values[0, 0] == pytest.approx((n - 1) / n / 2, abs=1e-6)


def test_one_cell_may_hold_most_outcomes():
    n = 120_000
    space = cs.Space(range(n), ["go"])
    counts = counts_of_entries(space, np.ones(n), state=n - 1, next_state=np.arange(n), terminated=False)
    assert (cs.value_ceilings(counts, 2, 0.0).values == 0).all()


def test_rewards_that_differ_by_rounding_are_one():
    """A source in single precision and one in double: 0.1 is the same reward, its mass is not counted twice."""
    rewards = np.array([0.1] * 50 + [0.0] * 50)
    ends = [True] * 100
    double = steps_of([2] * 100, rewards, ends)
    single = steps_of([2] * 100, rewards.astype(np.float32).astype(np.float64), ends, source="d1")
    found = cs.value_ceilings([double, single], 1, 0.2, support="any")
    assert found.q_values[0, 0, 0] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("reward_max", "discount", "expected"),
    [(1.0, 1.0, [3.0, 2.0, 1.0]), (1.0, 0.5, [1.75, 1.5, 1.0]), (-0.1, 1.0, [-0.1, -0.1, -0.1]), (0.0, 1.0, [0, 0, 0])],
)
def test_a_state_that_nobody_left_gets_the_vacuous_value(reward_max, discount, expected):
    counts = steps_of([1, 2], [-0.1, -0.1], [False, True])  # b is entered and cut, end is where it ends
    found = cs.value_ceilings(counts, 3, reward_max, discount=discount)
    assert found.values[:, 1].tolist() == pytest.approx(expected)
    assert found.vacuous_values.tolist() == pytest.approx(expected)
    assert found.values[:, 2].tolist() == [0.0, 0.0, 0.0]
    assert found.vacuous[0].tolist() == [False, True, False]
    # The mirror image: the worst that can happen in b.
    rewards = steps_of([1, 2], [0.1, 0.1], [False, True])
    low = cs.value_floors(rewards, 3, -reward_max, discount=discount)
    assert low.values[:, 1].tolist() == pytest.approx([-value for value in expected])


def test_a_support_of_ones_own_limits_untried_actions_and_states_too():
    space = cs.Space(["a", "b", "end"], ["go", "stay"], terminal=["end"])
    counts = steps_of([1, 2], [0.0, 0.0], [False, True]).to_space(space)
    options = {"horizon": 4, "reward_max": 1.0}
    table = {"a": ["b", "end"], "b": ["end"]}
    by_table = cs.value_ceilings(counts, support=table, **options)
    by_function = cs.value_ceilings(counts, support=lambda state, action: table.get(state), **options)
    assert np.array_equal(by_table.values, by_function.values)
    assert by_table.support == "given"
    assert by_table.values[:, 1].tolist() == [1.0] * 4  # b: one reward, then the end
    assert not by_table.vacuous.any()
    assert by_table.q_values[0, 0].tolist() == [0.5 * 1.0 + 0.5 * 0.0, 2.0]  # stay: to b at best, paid twice
    by_action = cs.value_ceilings(counts, support=lambda s, x: ["end"] if x == "stay" else None, **options)
    assert by_action.q_values[0, 0, 1] == pytest.approx(1.0)
    assert by_action.q_values[0, 1, 0] == pytest.approx(4.0)  # anything goes, go on in a for instance


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ("some", "support is 'some'"),
        (7, "support is 7"),
        ({"a": []}, "allows nothing after 'go' in 'a'"),
        ({"a": "b"}, "support gives the string 'b' after 'a'"),
        (lambda state, action: "b", "support gives the string 'b'"),
        ({"z": ["a"]}, "There is no state 'z'"),
        ({"a": ["z"]}, "There is no state 'z'"),
        ({"a": ["b"]}, "leaves out state 'end' after 'go' in 'a', but source 'd0' saw it"),
    ],
)
def test_a_support_that_makes_no_sense_is_refused(support, message):
    with pytest.raises(CausalShapingError, match=message):
        cs.value_ceilings(steps_of([1, 2], [0.0, 0.0], [False, True]), 2, 1.0, support=support)


@pytest.mark.parametrize("pay", [-1.0, 1.0])
def test_a_successor_that_nobody_left_may_be_the_end(pay):
    """`go` reaches the undeclared end t half of the time; the source goes only when it fails."""
    space = cs.Space(["a", "t"], ["stay", "go"])
    counts = masses_of(space, "d0", [(0, 0, 0, 0, 0.5, pay), (0, 1, 0, 0, 0.5, pay)])
    truth = 0.5 * pay + 0.5 * (pay + 0.5 * pay + 0.5 * (pay + pay)) if pay < 0 else 0.5 * pay + 0.5 * (3 * pay)
    ceiling = cs.value_ceilings(counts, 3, pay, support={"a": ["a", "t"]}).q_values[0, 0, 1]
    floor = cs.value_floors(counts, 3, pay, support={"a": ["a", "t"], "t": None}).q_values[0, 0, 1]
    assert floor - 1e-12 <= truth <= ceiling + 1e-12


def test_a_support_must_allow_an_end_that_was_seen():
    silent = steps_of([1, -1], [0.0, 0.0], [False, True])
    with pytest.raises(CausalShapingError, match="leaves out an end"):
        cs.value_ceilings(silent, 2, 1.0, support={"a": ["b"]})
    allowed = cs.value_ceilings(silent, 2, 1.0, support={"a": ["b", None], "b": [None]})
    assert allowed.values[0, 1] == pytest.approx(1.0)
