"""Numbers at the ends of what doubles, machines and people can do: finite and in order, or a clear message."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from properties import fewer

import causal_shaping as cs
from causal_shaping import _checks
from causal_shaping._checks import LARGEST, LARGEST_REWARD, MOST_BINS, MOST_SEEDS, MOST_STEPS_AN_EPISODE

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
few = fewer(12)
seeds = st.integers(0, 2**32 - 1)


def counts_of(seed, scale=1.0, states=3, actions=2, most=50.0):
    """Counts of two sources with rewards 0, 1 and -1 times a scale; some outcomes are an end."""
    rng = np.random.default_rng(seed)
    size = 2 * states * actions * 3
    columns = {
        "source": np.repeat([0, 1], size // 2),
        "step": None,
        "state": rng.integers(states, size=size),
        "action": rng.integers(actions, size=size),
        "next_state": rng.integers(states, size=size),
        "terminated": rng.random(size) < 0.2,
        "n": np.ceil(rng.random(size) * most),
        "reward_min": scale * rng.choice([-1.0, 0.0, 1.0], size=size),
    }
    columns |= {"reward_max": columns["reward_min"], "reward_sum": columns["n"] * columns["reward_min"]}
    space = cs.Space(range(states), range(actions), complete=True)
    return cs.Counts.combined(space, ["a", "b"], columns)


def bounds(counts, scale, horizon=5, **options):
    """Ceilings and floors; sources drawn at random may contradict each other, so that each is alone."""
    above = cs.value_ceilings(counts, horizon, scale, **options)
    return above, cs.value_floors(counts, horizon, -scale, **options)


def one_source(counts):
    """The first source alone: two that are drawn apart contradict each other."""
    own = counts.source == 0
    columns = {name: None if name == "step" else getattr(counts, name)[own] for name in counts.COLUMNS}
    return cs.Counts.combined(counts.space, counts.sources[:1], columns)


@few
@given(seeds, st.integers(-140, 140), st.sampled_from(["any", "observed"]), st.sampled_from([None, 0.95]))
def test_bounds_are_finite_ordered_and_scale_with_rewards(seed, power, support, confidence):
    scale, options = 2.0 ** round(power * math.log2(10)), {"support": support, "confidence": confidence}
    scale = min(scale, LARGEST_REWARD)
    above, below = bounds(one_source(counts_of(seed, scale)), scale, **options)
    unit = bounds(one_source(counts_of(seed)), 1.0, **options)
    for found, plain in zip((above, below), unit, strict=True):
        assert np.isfinite(found.values).all()
        np.testing.assert_allclose(found.values, scale * plain.values, rtol=1e-12, atol=0)
        np.testing.assert_allclose(found.q_values, scale * plain.q_values, rtol=1e-12, atol=0)
        assert str(found)
    assert (above.values >= below.values).all()


@pytest.mark.parametrize(("states", "actions", "horizon"), [(1, 1, 1), (1, 2, 3), (2, 1, 2_000)])
def test_the_smallest_worlds_and_long_episodes_with_a_discount_close_to_1(states, actions, horizon):
    counts = one_source(counts_of(0, states=states, actions=actions))
    above, below = bounds(counts, 1.0, horizon, discount=1 - 1e-9)
    assert np.isfinite(above.values).all()
    assert (above.values >= below.values).all()
    assert above.values.max() <= horizon
    assert below.values.min() >= -horizon


@few
@given(seeds, st.sampled_from([None, 0.95]))
def test_counts_near_2_to_the_53_are_those_of_fewer_visits_in_the_limit(seed, confidence):
    counts = one_source(counts_of(seed, most=8.0))
    columns = {name: None if name == "step" else getattr(counts, name) for name in counts.COLUMNS}
    many = columns | {"n": columns["n"] * 2.0**48, "reward_sum": columns["reward_sum"] * 2.0**48}
    large = cs.Counts.combined(counts.space, counts.sources, many)
    found, plug_in = bounds(large, 1.0, confidence=confidence), bounds(counts, 1.0)
    for bound, limit in zip(found, plug_in, strict=True):
        np.testing.assert_allclose(bound.values, limit.values, rtol=1e-3, atol=1e-3)
    if confidence is not None:  # more data is never looser
        loose = bounds(counts, 1.0, confidence=confidence)
        assert (found[0].values <= loose[0].values + 1e-9).all()
        assert (found[1].values >= loose[1].values - 1e-9).all()


def scaled_world(scale):
    """lavacross-easy with rewards in another unit."""
    world = cs.load_world("lavacross-easy")
    tables = {
        name: getattr(world.model, name) for name in ("next_state", "noise", "terminal", "start", "states", "actions")
    }
    return replace(world, model=cs.TabularCMDP(reward=world.model.reward * scale, **tables))


def logged(scale):
    """Logs of one source, 100 episodes of four steps."""
    rng, rows = np.random.default_rng(0), np.arange(400)
    frame = pd.DataFrame({"episode": rows // 4, "step": rows % 4, "state": rng.integers(3, size=400)})
    frame["action"], frame["reward"] = rng.choice(["a", "b"], 400), scale * rng.choice([0.0, 1.0, -1.0], 400)
    return cs.read_logs(frame.assign(terminated=False, truncated=frame.step == 3), source="a")


FINDINGS = {
    "stationary": lambda scale: one_bound(scale, stationary=True, discount=0.9).values,
    "paper": lambda scale: one_bound(scale, method="paper", support="observed").values,
    "potential": lambda scale: one_bound(scale).potential().values,
    "states bounded": lambda scale: scale * np.array(one_bound(scale).states_bounded),
    "sensitivity": lambda scale: [
        row[name]
        for row in cs.sensitivity(one_source(counts_of(1, scale)), 5, scale, -scale, confidence=0.95).rows()
        for name in ("ceiling", "floor")
    ],
    "suboptimal": lambda scale: scale * cs.provably_suboptimal(*sure(scale), plug_in=True).sum(),
    "posterior": lambda scale: cs.posterior(one_source(counts_of(1, scale)), 5, scale).mean.values,
    "optimum": lambda scale: scaled_world(scale).model.optimum().values,
    "optimum with discount": lambda scale: scaled_world(scale).model.optimum(discount=0.99).values,
    "q-ucb-shaping": lambda scale: cs.train(scaled_world(scale), learner="q-ucb-shaping", steps=200).values,
}


def one_bound(scale, **options):
    return cs.value_ceilings(one_source(counts_of(1, scale)), 5, scale, **{"support": "any"} | options)


def sure(scale):
    """Bounds in which one action is worse than the other: exact, of a demonstrator that takes both."""
    world = scaled_world(scale)
    seen = world.model.observe(np.full((*world.model.noise.shape, len(world.actions)), 1 / len(world.actions)), "trial")
    low, high = world.model.reward_range
    return tuple(
        bound(seen, 5, limit, confounding=1.0) for bound, limit in ((cs.value_ceilings, high), (cs.value_floors, low))
    )


@pytest.mark.parametrize("name", FINDINGS)
def test_findings_move_with_the_unit_of_rewards(name):
    """From 1e-300 to 1e138: nothing is lost in a tolerance, or beyond what doubles hold."""
    found = np.asarray(FINDINGS[name](1.0), dtype=float)
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0
    for scale in (2.0**-996, 2.0**-300, 2.0**460):
        np.testing.assert_allclose(np.asarray(FINDINGS[name](scale), dtype=float) / scale, found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mass", [0.0, 1.0])
def test_masses_at_the_ends_prove_all_or_nothing(mass):
    """A demonstrator that always takes the action proves its mean; one that never does proves nothing."""
    model = cs.TabularCMDP(
        next_state=[[[0, 1]] * 2, [[1, 1]] * 2],
        reward=[[[1.0, 3.0]] * 2, [[0.0, 0.0]] * 2],
        noise=[[0.5, 0.5], [0.5, 0.5]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )
    beta = np.zeros((2, 2, 2))
    beta[..., 0], beta[..., 1] = mass, 1 - mass
    found = cs.value_ceilings(model.observe(beta, "a"), 1, 5.0, support="any")
    assert found.q_values[0, 0, 0] == (2.0 if mass else 5.0)


@pytest.mark.parametrize("name", ["reward_max", "reward_min", "value_max"])
@pytest.mark.parametrize("number", [1e141, -1e308, math.inf, math.nan])
def test_numbers_that_would_overflow_are_refused(name, number):
    counts, options = one_source(counts_of(0)), {"reward_max": 1.0}
    with pytest.raises(cs.CausalShapingError, match=f"{name} is .*must"):
        cs.value_ceilings(counts, 5, **options | {name: number})


def test_rewards_of_logs_and_models_that_would_overflow_are_refused():
    with pytest.raises(cs.DataError, match=r"beyond 1e\+140; give rewards in a larger unit"):
        counts_of(0, scale=1e300)
    one = {"noise": [[1.0]], "terminal": [False], "start": [1.0]}
    with pytest.raises(cs.CausalShapingError, match=r"within 1e\+140"):
        cs.TabularCMDP(next_state=[[[0]]], reward=[[[1e200]]], **one)


def test_a_discount_close_to_1_asks_for_a_smaller_one():
    counts = one_source(counts_of(0))
    for discount, advice in ((1 - 1e-9, "a smaller discount, 0.9999 or less"), (1.0, "a discount below 1")):
        with pytest.raises(cs.CausalShapingError, match=advice):
            cs.value_ceilings(counts, 5, 1.0, stationary=True, discount=discount)
    assert np.isfinite(cs.value_ceilings(counts, 5, 1.0, stationary=True, discount=0.99).values).all()


def test_limits_say_what_they_are():
    world, many = cs.load_world("lavacross-easy"), 10**9
    counts = one_source(counts_of(0))
    for call, message in (
        (lambda: cs.load_world("lavacross-easy", horizon=many), f"at most {MOST_STEPS_AN_EPISODE:,}"),
        (lambda: cs.value_ceilings(counts, many, 1.0), f"horizon is {many}; it must be at most 1,000,000"),
        (lambda: world.model.optimum(horizon=many), "at most 1,000,000"),
        (lambda: world.collect("good", 10**23), f"steps is a number of 77 bits; it must be at most {LARGEST:,}"),
        (lambda: cs.train(world, steps=10**12), "A run of 1,000,000,000,000 steps needs about 100,000 GB of memory"),
        (lambda: cs.train_seeds(world, seeds=range(many), folder="never"), f"at most {MOST_SEEDS:,} at a time"),
        (lambda: cs.posterior(counts, 5, 1.0).worth(seeds=many), f"at most {MOST_SEEDS:,}"),
        (lambda: cs.Bins(quantiles=many), f"quantiles is {many}; it must be at most {MOST_BINS}"),
        (lambda: cs.Bins(edges=range(3000)), "There are 3,000 edges; a column can be cut into 500 bins at most"),
        (lambda: cs.Bins(quantiles=10**5000), "quantiles is a number of 16610 bits"),
    ):
        with pytest.raises(cs.CausalShapingError, match=message):
            call()


def test_a_column_can_have_as_many_bins_as_the_limit_says():
    rows = pd.DataFrame({"episode": range(600), "step": 0, "state": np.arange(600.0), "action": "a", "reward": 0.0})
    logs = cs.read_logs(
        rows.assign(terminated=True, truncated=False), source="a", bins={"state": cs.Bins(quantiles=MOST_BINS)}
    )
    assert len(logs.space.states) == MOST_BINS


def test_memory_is_that_of_the_machine_its_container_and_the_process(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(_checks, "CGROUP_LIMIT", limit)
    free = _checks.machine_memory()
    limit.write_text("max\n")
    assert _checks.machine_memory() == free
    limit.write_text("1000000\n")
    assert _checks.machine_memory() == 1e6
    _checks.check_memory("horizon=3", 1e6)
    with pytest.raises(cs.ArgumentError, match=r"horizon=3 needs about 0\.002 GB of memory; .* 0\.001 GB"):
        _checks.check_memory("horizon=3", 2e6)


def test_a_table_that_does_not_fit_into_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(_checks, "machine_memory", lambda: 1e6)
    world = cs.load_world("lavacross-easy")
    for call in (
        lambda: cs.value_ceilings(one_source(counts_of(0)), 20_000, 1.0),
        lambda: world.model.optimum(horizon=2_000),
        lambda: cs.train(world, steps=100, horizon=2_000, step_indexed=True),
        lambda: world.collect("good", 10_000),
    ):
        with pytest.raises(cs.ArgumentError, match="of memory; this machine has"):
            call()
