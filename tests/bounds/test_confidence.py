"""Finite samples: limits that hold as often as they say, and ceilings that hold all at once."""

import itertools
import math
from pathlib import Path

import forked
import numpy as np
import pytest
from handmade import counts_of_entries, one_step_logs
from hypothesis import given, strategies as st
from models import cmdps, demonstrators
from programs import support_holds
from properties import fewer
from scipy.special import betaln
from scipy.stats import beta, binom

import causal_shaping as cs
from causal_shaping.bounds.limits import AnyTrials, FixedTrials
from causal_shaping.bounds.masses import simultaneous_limits
from causal_shaping.bounds.settings import Settings
from causal_shaping.errors import CausalShapingError, ContradictionError
from studies.docs.tables import counted, held_at_once

pytestmark = pytest.mark.filterwarnings("ignore:Only 'd0' is there")


# Limits of a probability --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_exact_limits_are_wrong_no_more_often_than_alpha(alpha):
    for n in (1, 5, 20):
        k = np.arange(n + 1)
        low, high = FixedTrials(alpha).lower(k, n), FixedTrials(alpha).upper(k, n)
        for p in np.linspace(0.01, 0.99, 50):
            assert binom.pmf(k, n, p)[low > p].sum() <= alpha + 1e-12
            assert binom.pmf(k, n, p)[high < p].sum() <= alpha + 1e-12


def test_exact_limits_are_those_of_clopper_and_pearson():
    n, k = np.meshgrid([1, 7, 100, 10**6], [0, 1, 5, 7, 99, 10**5], indexing="ij")
    n, k = n[k <= n], k[k <= n]
    for alpha in (0.3, 1e-3, 1e-9):
        np.testing.assert_allclose(
            FixedTrials(alpha).lower(k, n),
            np.where(k > 0, beta.ppf(alpha, np.maximum(k, 1), n - k + 1), 0.0),
            rtol=1e-12,
        )
        above = np.where(k < n, beta.ppf(1 - alpha, k + 1, np.maximum(n - k, 1)), 1.0)
        np.testing.assert_allclose(FixedTrials(alpha).upper(k, n), above, rtol=1e-6)


def test_the_first_time_uniform_limit_of_a_process_can_be_of_one_number():
    """NumPy warns of a broadcast array of one number when compiled code first asks what it is."""
    strict = "import warnings; warnings.simplefilter('error', FutureWarning)"
    limit = "from causal_shaping.bounds.limits import AnyTrials; print(AnyTrials(0.05).lower([9], [18]))"
    ran = forked.run(f"{strict}; {limit}", prepared=forked.REQUIRED)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.9])
def test_time_uniform_limits_are_ever_wrong_no_more_often_than_alpha(p):
    """The chance that any of the first 300 numbers of trials gives a wrong limit, by exact enumeration."""
    alpha, right, wrong = 0.2, np.array([1.0]), 0.0
    for n in range(1, 301):
        right = np.append(right * (1 - p), 0.0) + np.append(0.0, right * p)
        k = np.arange(n + 1)
        fails = (AnyTrials(alpha).lower(k, n) > p) | (AnyTrials(alpha).upper(k, n) < p)
        wrong += right[fails].sum()
        right[fails] = 0.0
    assert 0 < wrong <= alpha


def test_exact_limits_are_ever_wrong_more_often_than_alpha():
    """So that the test above can fail: looking again and again spoils limits for a fixed number of trials."""
    alpha, p, right, wrong = 0.2, 0.5, np.array([1.0]), 0.0
    for n in range(1, 301):
        right = np.append(right * (1 - p), 0.0) + np.append(0.0, right * p)
        fails = FixedTrials(alpha).lower(np.arange(n + 1), n) > p
        wrong += right[fails].sum()
        right[fails] = 0.0
    assert wrong > 2 * alpha


@given(st.integers(1, 10**6), st.floats(0, 1), st.floats(1e-12, 0.5))
def test_a_time_uniform_limit_solves_its_equation(n, share, alpha):
    k = share * n  # trials may lie anywhere in [0, 1]
    p = float(AnyTrials(alpha).lower(k, n))
    assert 0 <= p <= share
    if p > 1e-290:
        likelihood = k * math.log(p) + (n - k) * math.log1p(-p)
        evidence = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) - likelihood
        assert evidence == pytest.approx(-math.log(alpha), rel=1e-6, abs=1e-6)


def test_time_uniform_limits_hold_for_trials_between_0_and_1():
    """Trials of 0, 0.3 and 1, the limit looked at after each of 200 trials."""
    rng, alpha, n = np.random.default_rng(0), 0.1, np.arange(1, 201)
    values, chances = np.array([0.0, 0.3, 1.0]), np.array([0.5, 0.3, 0.2])
    sums = rng.choice(values, p=chances, size=(2000, 200)).cumsum(axis=1)
    wrong = (AnyTrials(alpha).lower(sums, np.broadcast_to(n, sums.shape)) > values @ chances).any(axis=1)
    assert wrong.mean() <= alpha


def test_the_union_runs_over_every_limit_that_could_be_asked_for():
    space = cs.Space(["a", "b", "c"], ["left", "right"])
    logs = [cs.Logs(space, name, [0], [0], [0], [0], [0.0], [1], [False], [True]) for name in ("d0", "d1")]
    ends = [(after, ended) for after in space.states for ended in (False, True)] + [(None, True)]
    limits = 0
    for _ in logs:
        for _ in space.states:
            for _ in space.actions:
                limits += 1  # p(x | s)
                for _ in ends:
                    limits += 3 * 64  # p(x, o | s) from below, p(o | s, x) from below and above, 64 rewards
    settings = Settings(horizon=4, reward_bound=1.0, confidence=0.95, support="any")
    pooled = simultaneous_limits(cs.count(logs), settings)
    assert pooled.alpha * limits == pytest.approx(0.05)
    assert isinstance(pooled, AnyTrials)
    kept = simultaneous_limits(cs.count(logs, step_indexed=True), settings)
    assert isinstance(kept, FixedTrials)
    assert kept.alpha == pytest.approx(pooled.alpha / 4)
    binned = cs.count(logs, reward_bins=cs.Bins(edges=(0.0, 1.0, 2.0)))  # and four limits of deficits in each of 4 bins
    assert simultaneous_limits(binned, settings).alpha * 2 * 3 * 2 * (1 + 7 * 4 * len(ends)) == pytest.approx(0.05)


# Ceilings of samples --------------------------------------------------------------------------------------


def test_all_ceilings_hold_at_once_and_are_worth_having():
    """40 samples of lavacross-easy: valid at once in 95%, at most half as far from V* as no logs, plug-in fails."""
    world = cs.load_world("lavacross-easy")
    assert support_holds(world.model, list(world.demonstrators.values()))
    found = held_at_once(40)
    assert found["held"] >= 0.95
    assert found["distance"] <= 0.5 * found["vacuous distance"]
    assert found["plug-in held"] < 0.95


def test_floors_and_finite_confounding_hold_at_once_too():
    """20 samples; random is unconfounded, so Gamma = 1 is true for it; counts pooled and by step."""
    world = cs.load_world("lavacross-easy", horizon=4)
    best, alive = world.model.optimum(4), ~world.model.terminal
    options = {"confidence": 0.95, "confounding": {"random": 1.0}, "support": "any"}
    held = {False: 0, True: 0}
    for seed in range(20):
        logs = [world.collect(name, 20_000, seed=seed) for name in world.demonstrators]
        for step_indexed in held:
            counts = counted(logs, step_indexed)
            ceilings = cs.value_ceilings(counts, 4, -0.1, **options)
            floors = cs.value_floors(counts, 4, -1.1, **options)
            above, below = ceilings.q_values - best.q_values, best.q_values - floors.q_values
            held[step_indexed] += bool(above[:, alive].min() >= -1e-9 and below[:, alive].min() >= -1e-9)
    assert min(held.values()) >= 19


@fewer(40)
@given(st.data(), cmdps(states=(1, 3), actions=(1, 2), noises=(1, 2)), st.integers(1, 2), st.booleans(), st.booleans())
def test_more_confidence_and_more_confounding_never_tighten(data, model, sources, step_indexed, told_apart):
    betas = {f"d{i}": data.draw(demonstrators(model)) for i in range(sources)}
    world = cs.World("made-up", "Made up", model, 3, ("u",) * model.noise.shape[-1], betas)
    logs = [world.collect(name, 30) for name in world.demonstrators]
    counts = counted(logs, step_indexed)
    if not told_apart:
        counts = counts.with_reward_bins(cs.Bins(edges=(-0.5, 0.0, 0.5)))
    low, high = model.reward_range

    def pair(**options):
        options = {"support": "any", **options}
        return cs.value_ceilings(counts, 3, high, **options), cs.value_floors(counts, 3, low, **options)

    chain = [pair(), pair(confidence=0.5), pair(confidence=0.95)]
    chain_by_gamma = [pair(confidence=0.9, confounding=gamma) for gamma in (3.0, 100.0, math.inf)]
    for pairs in (chain, chain_by_gamma):
        for (tight, tight_floor), (loose, loose_floor) in itertools.pairwise(pairs):
            assert (loose.q_values >= tight.q_values - 1e-9).all()
            assert (loose_floor.q_values <= tight_floor.q_values + 1e-9).all()
    assert (chain[-1][0].values <= chain[-1][0].vacuous_values[:, None] + 1e-9)[:, ~model.terminal].all()


def test_with_confidence_one_more_source_can_loosen_and_the_promise_excludes_it():
    """A source of one visit proves nothing, and takes its share of the chance of an error."""
    space = cs.Space(["a", "end"], ["go"])
    first, other = one_step_logs(space, [0.0] * 80 + [1.0] * 20), one_step_logs(space, [0.0], "d1")
    alone, both = (
        cs.value_ceilings(cs.count(logs), 1, 1.0, support="any", confidence=0.95) for logs in ([first], [first, other])
    )
    assert both.values[0, 0] > alone.values[0, 0]
    promises = (Path(__file__).parents[2] / "docs" / "promises.md").read_text().splitlines()
    (row,) = (line for line in promises if line.startswith("| More sources"))
    assert "Not with `confidence`" in row


# Contradictions -------------------------------------------------------------------------------------------


def test_sources_that_contradict_each_other_beyond_sampling_error_are_refused():
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 100_000) for name in world.demonstrators])
    for options in ({}, {"confidence": 0.95}):
        with pytest.raises(CausalShapingError, match=r"contradict each other on what 'right' does in \(\d, 1\)"):
            cs.value_ceilings(counts, 20, -0.1, confounding=1.0, **options)
        with pytest.raises(CausalShapingError, match=r"confounded.*, or they did not watch the same world"):
            cs.value_floors(counts, 20, -1.1, confounding=1.0, **options)


def test_sampling_error_is_no_contradiction():
    """Two blind sources, declared so, in 30 samples: their shares never agree exactly, and none is refused."""
    world = cs.load_world("lavacross-easy")
    blind = world.demonstrators["random"]
    biased = np.broadcast_to(np.array([0.3, 0.1, 0.1, 0.3, 0.2]), blind.shape)
    for seed in range(30):
        logs = [world.collect(blind, 3000, seed=seed, source="d0"), world.collect(biased, 3000, seed=seed, source="d1")]
        found = cs.value_ceilings(counted(logs), 20, -0.1, confounding=1.0)
        assert np.isfinite(found.values).all()
        assert found.values.max() <= 0


def test_masses_that_add_to_more_than_one_are_scaled():
    """Source d0 saw `win` in 6 of 10, d1 in 4 of 10: 0.6 and 0.6 are proven of 1, so each is half."""
    space = cs.Space(["a", "end"], ["go"])
    wins = {"d0": [6, 4], "d1": [4, 6]}
    parts = [counts_of_entries(space, n, [1.0, 0.0], sources=[name]) for name, n in wins.items()]
    found = cs.value_ceilings(parts, 1, 1.0)
    assert found.values[0, 0] == pytest.approx(0.5)
    assert cs.value_floors(parts, 1, 0.0).values[0, 0] == pytest.approx(0.5)
    assert (found.scaled, found.largest_total) == (1, pytest.approx(1.2))
    assert "Of 1 actions in states the sources prove more mass than 1, at most 1.2; it was scaled to 1." in str(found)
    assert not any("same world, or" in caveat for caveat in found.caveats)  # well within chance


def trial_and_register(size=1, employed=0.86):
    """Counts like LaLonde's, employment as outcome: a register of the untreated, nearly all, and a trial."""
    space = cs.Space(["s", "end"], ["treat", "not"], terminal=["end"])
    parts = []
    for name, rows in (
        ("register", [(0, 185, 0.757), (1, 15_992, employed)]),
        ("trial", [(0, 185 * size, 0.757), (1, 260 * size, 0.646)]),
    ):
        cells = [(x, r, round(n * (share if r else 1 - share))) for x, n, share in rows for r in (0.0, 1.0)]
        action, reward, n = (np.array(column) for column in zip(*cells, strict=True))
        parts.append(counts_of_entries(space, n, reward, action=action, sources=[name]))
    return sum(parts)


@pytest.mark.parametrize("options", [{}, {"confidence": 0.95}])
def test_sources_that_prove_more_than_one_at_any_confounding_are_told(options):
    """Masses of 1.06: of 445 in a trial hardly chance, a caveat; of ten times as many a contradiction."""
    with pytest.warns(cs.AssumptionWarning, match="chance hardly explains"):
        found = cs.value_ceilings(trial_and_register(), 1, 1.0, **options)
    assert not found.guaranteed
    assert "Not guaranteed: the sources prove more mass than 1 of an action in a state" in found.summary()
    if not options:
        assert (found.scaled, found.largest_total) == (1, pytest.approx(1.06, abs=0.01))
    with pytest.raises(ContradictionError, match="what 'not' does in 's', whatever their confounding") as error:
        cs.value_ceilings(trial_and_register(size=10), 1, 1.0, **options)
    assert "did not watch the same world, or a hidden cause lasts over the episode" in str(error.value)
    assert "p = " in str(error.value)
    fine = cs.value_ceilings(trial_and_register(employed=0.68), 1, 1.0, **options)
    assert fine.scaled == 0
    with pytest.raises(ContradictionError, match="Either trial is confounded, or they did not watch"):
        cs.value_ceilings(trial_and_register(), 1, 1.0, confounding={"trial": 1.0}, **options)


@pytest.mark.parametrize("seer", ["good", "bad"])
def test_sources_that_contradict_each_other_are_refused_at_any_confidence(seer):
    """Limits of bounds are wide enough to hold both sources; whether they fit together is another question."""
    world = cs.load_world("lavacross-hard")
    counts = cs.count([world.collect(name, 5_000, 0, name) for name in (seer, "random")])
    messages = set()
    for confidence in (None, 0.5, 0.95, 0.999):
        with pytest.raises(
            ContradictionError, match=r"unconfounded: they prove a mass of .* more than chance"
        ) as error:
            cs.value_ceilings(counts, 20, 0.1, confounding=1.0, confidence=confidence)
        messages.add(str(error.value))
    assert len(messages) == 1
    assert cs.value_ceilings(counts, 20, 0.1, confounding={"random": 1.0}, confidence=0.95).guaranteed


def test_population_masses_above_one_are_refused():
    space = cs.Space(["a", "end"], ["go"])
    wins = {"d0": [0.6, 0.4], "d1": [0.4, 0.6]}
    parts = [counts_of_entries(space, n, [1.0, 0.0], sources=[name], population=True) for name, n in wins.items()]
    with pytest.raises(ContradictionError, match=r"by a mass of 0\.2\. Either they did not watch the same world"):
        cs.value_ceilings(parts, 1, 1.0)
