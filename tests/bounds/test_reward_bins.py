"""Rewards in bins: valid and, with one source, sharp; finer bins never loosen; nothing is assumed of the outer ones."""

import math

import numpy as np
import pytest
from handmade import one_step_logs
from hypothesis import given, strategies as st
from models import cmdps, demonstrators
from programs import shown, support_holds, true_gamma
from properties import fewer
from scipy.optimize import linprog

import causal_shaping as cs
from causal_shaping.errors import ContradictionError

pytestmark = pytest.mark.filterwarnings("ignore:Only 'd")

small = cmdps(states=(1, 3), actions=(1, 2), noises=(1, 3))
several = st.integers(1, 3)
edges = st.lists(st.sampled_from(np.linspace(-1.2, 1.2, 13).tolist()), min_size=1, max_size=4, unique=True).map(sorted)


def binned(model, betas, cuts):
    parts = [model.observe(beta, f"d{i}") for i, beta in enumerate(betas)]
    return sum(parts).with_reward_bins(cs.Bins(edges=tuple(cuts)))


def pair(model, counts, horizon=3, **options):
    low, high = model.reward_range
    return cs.value_ceilings(counts, horizon, high, **options), cs.value_floors(counts, horizon, low, **options)


@fewer(40)
@given(st.data(), small, several, edges, st.booleans())
def test_the_optimum_lies_between_bounds_of_rewards_in_bins(data, model, sources, cuts, finite):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    gammas = {f"d{i}": true_gamma(model, beta) for i, beta in enumerate(betas)} if finite else math.inf
    counts, best, alive = binned(model, betas, cuts), model.optimum(3), ~model.terminal
    assert not counts.discrete_rewards
    for support in ["any"] + ["observed"] * support_holds(model, betas):
        ceilings, floors = pair(model, counts, support=support, confounding=gammas)
        assert (ceilings.values - best.values)[:, alive].min() >= -1e-9
        assert (best.values - floors.values)[:, alive].min() >= -1e-9
        apart = pair(
            model, [model.observe(b, f"d{i}") for i, b in enumerate(betas)], support=support, confounding=gammas
        )
        assert (ceilings.values >= apart[0].values - 1e-9).all()  # bins tell less than rewards
        assert (floors.values <= apart[1].values + 1e-9).all()


@fewer(40)
@given(st.data(), small, several, edges)
def test_finer_bins_never_loosen(data, model, sources, cuts):
    betas = [data.draw(demonstrators(model)) for _ in range(sources)]
    fine, coarse = (pair(model, binned(model, betas, some), support="any") for some in (cuts, cuts[:1]))
    assert (fine[0].values <= coarse[0].values + 1e-9).all()
    assert (fine[1].values >= coarse[1].values - 1e-9).all()


@fewer(40)
@given(st.data(), small, edges)
def test_an_unconfounded_source_that_tries_everything_gives_the_optimum(data, model, cuts):
    """The source's own mean in every bin, so that nothing is lost."""
    blind = data.draw(demonstrators(model)).mean(axis=1, keepdims=True) * np.ones((1, model.noise.shape[-1], 1))
    counts = binned(model, [0.5 * blind + 0.5 / len(model.actions)], cuts)
    best = model.optimum(3)
    for found in pair(model, counts, confounding=1.0):
        np.testing.assert_allclose(found.values, best.values, atol=1e-9)


def choices(rng, sources):
    """One decision, and then the end: rewards on a grid, 8 hidden noises."""
    grid = np.linspace(-1.0, 1.0, 21)
    model = cs.TabularCMDP(
        next_state=np.array([[[1] * 8] * 2] * 2),
        reward=np.array([rng.choice(grid, (2, 8)), np.zeros((2, 8))]),
        noise=[rng.dirichlet(np.ones(8)), [0.125] * 8],
        terminal=[False, True],
        start=[1.0, 0.0],
    )
    betas = [np.array([rng.dirichlet([0.5, 0.5], 8), np.full((8, 2), 0.5)]) for _ in range(sources)]
    return model, betas, grid


def masses(model, beta, x):
    """p(x, r | s) by reward."""
    return {reward: mass for (action, (_, reward)), mass in shown(model, beta, 0).items() if action == x}


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("sources", [1, 2])
def test_one_step_is_the_linear_program_over_distributions_of_rewards(side, sources):
    """All that bins tell: mass and mean of each. A program over what sources may have seen within, and over do(x)."""
    rng = np.random.default_rng(side + sources)
    cuts = (-0.45, 0.05, 0.55)  # no reward lies on an edge
    bins = cs.Bins(edges=cuts)
    for _ in range(15):
        model, betas, _ = choices(rng, sources)
        ceilings, floors = pair(model, binned(model, betas, cuts), 1, support="any")
        low, high = model.reward_range
        # A grid with the safe edges: for a ceiling a bin's upper end belongs to it, for a floor its lower end does.
        grid = np.unique(np.concatenate([np.linspace(low, high, 61), cuts]))
        place = bins(grid) if side < 0 else np.searchsorted(cuts, grid, side="left")
        for x in range(2):
            told = [masses(model, beta, x) for beta in betas]
            size = len(grid)
            equal, wanted, above = [], [], []
            for i, one in enumerate(told):  # variables: q(r), then f_i(r) source by source
                for b in range(4):
                    inside = [(r, m) for r, m in one.items() if bins(r) == b]
                    row = np.zeros(size * (1 + sources))
                    row[size * (1 + i) : size * (2 + i)] = place == b
                    equal += [row, row * np.tile(grid, 1 + sources)]
                    wanted += [sum(m for _, m in inside), sum(m * r for r, m in inside)]
                row = np.zeros((size, size * (1 + sources)))
                row[:, :size], row[:, size * (1 + i) : size * (2 + i)] = -np.eye(size), np.eye(size)
                above.append(row)
            equal.append(np.append(np.ones(size), np.zeros(size * sources)))
            wanted.append(1.0)
            cost = np.append(-side * grid, np.zeros(size * sources))
            answer = linprog(cost, np.concatenate(above), np.zeros(size * sources), np.array(equal), wanted)
            assert answer.status == 0, answer.message
            found = (ceilings if side > 0 else floors).q_values[0, 0, x]
            assert side * (found + side * answer.fun) >= -1e-7  # never inside what the program allows
            if sources == 1:
                assert found == pytest.approx(-side * answer.fun, abs=1e-7)


@given(st.data(), small, edges, st.sampled_from([0.25, 8.0]), st.sampled_from([-3.0, 0.0, 5.0]))
@fewer(50)
def test_scale_and_offset_of_rewards_go_through(data, model, cuts, scale, offset):
    betas = [data.draw(demonstrators(model)) for _ in range(2)]
    pay = np.where(model.terminal[:, None, None], 0.0, scale * model.reward + offset)
    moved = cs.TabularCMDP(model.next_state, pay, model.noise, model.terminal, model.start)
    one = pair(model, binned(model, betas, cuts), 1, support="any")
    other = pair(moved, binned(moved, betas, [scale * cut + offset for cut in cuts]), 1, support="any")
    alive = ~model.terminal
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(b.q_values[:, alive], (scale * a.q_values + offset)[:, alive], atol=1e-9)


def paid(rewards, source="d0", reward_bins=None):
    space = cs.Space(["a", "end"], ["go"], terminal=["end"])
    return cs.count(one_step_logs(space, rewards, source), reward_bins=reward_bins)


def test_rewards_in_bins_have_limits_too():
    """Rewards uniform on [0, 1], 2,000 visits: the bounds of their mean hold, and are better than none."""
    rng, bins, held = np.random.default_rng(0), cs.Bins(edges=(0.25, 0.5, 0.75)), []
    for _ in range(50):
        counts = paid(rng.random(2000), reward_bins=bins)
        ceiling = cs.value_ceilings(counts, 1, 1.0, confidence=0.95, support="any")
        floor = cs.value_floors(counts, 1, 0.0, confidence=0.95, support="any").values[0, 0]
        held.append(floor <= 0.5 <= ceiling.values[0, 0] < 0.75 and floor > 0.25)
    assert np.mean(held) >= 0.95
    assert any("The bins of rewards were chosen without looking at these logs" in line for line in ceiling.assumptions)
    assert not any("lowest one seen" in line for line in ceiling.assumptions)


def test_the_mean_within_a_bin_has_a_limit_of_its_own():
    """All mass is in one bin. Of a mean of 0.1, 2,000 visits show 0.08: three standard errors less."""
    rewards = np.where(np.arange(2000) < 160, 0.999, 0.0)
    found = cs.value_ceilings(paid(rewards, reward_bins=cs.Bins(edges=(0.0, 1.0))), 1, 1.0, confidence=0.95)
    assert 0.1 < found.values[0, 0] < 0.2
    found = cs.value_floors(paid(1 - rewards, reward_bins=cs.Bins(edges=(0.0, 1.01))), 1, 0.0, confidence=0.95)
    assert 0.8 < found.values[0, 0] < 0.9


def test_rare_losses_that_nobody_saw_do_not_break_a_ceiling():
    """What lies below the lowest bin's edge is not limited: one visit that lost a million proves no mean."""
    rewards = np.append(np.full(99, 0.5), -1e6)
    counts = paid(rewards, reward_bins=cs.Bins(edges=(0.0,)))
    found = cs.value_ceilings(counts, 1, 1.0, confidence=0.95, support="any").values[0, 0]
    assert found > -0.01
    assert cs.value_ceilings(counts, 1, 1.0, confounding=1.0).values[0, 0] == pytest.approx(rewards.mean())


def test_continuous_rewards_that_differ_are_a_contradiction():
    """Means of about 4,600 and 14,800 after the same action: not one world, or not both unconfounded."""
    rng = np.random.default_rng(0)
    trial, register = 4_600 * rng.exponential(size=300), 14_800 * rng.exponential(size=3_000)
    bins = cs.Bins(quantiles=6).fit(np.concatenate([trial, register]))
    parts = [paid(trial, "trial", bins), paid(register, "register", bins)]
    with pytest.raises(ContradictionError, match="contradict each other on what 'go' does in 'a'"):
        cs.value_ceilings(parts, 1, 200_000.0, confounding=1.0)
    with pytest.raises(ContradictionError, match="did not watch the same world"):  # each proves all of `go`
        cs.value_ceilings(parts, 1, 200_000.0)


def test_sampling_error_of_means_is_no_contradiction():
    rng, bins = np.random.default_rng(0), cs.Bins(edges=(0.5,))
    for _ in range(20):
        parts = [paid(rng.random(200), name, bins) for name in ("d0", "d1")]
        ceilings = cs.value_ceilings(parts, 1, 1.0, confounding=1.0, confidence=0.95)
        floors = cs.value_floors(parts, 1, 0.0, confounding=1.0, confidence=0.95)
        assert floors.values[0, 0] < 0.5 < ceilings.values[0, 0]
        assert not cs.provably_suboptimal(ceilings, floors).any()
