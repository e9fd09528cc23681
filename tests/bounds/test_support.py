"""What unproven mass may do: what was observed, what visits have shown, and states that no log holds."""

import itertools
import math

import numpy as np
import pytest

import causal_shaping as cs
from causal_shaping.bounds.support import RAREST, SUPPORT_SHARE, visits_needed

pytestmark = pytest.mark.filterwarnings("ignore:Only 'd0' is there")


def population(world):
    return [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]


# After the state, or after the action ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "coins", "distance", "correlation"),
    [
        ("lavacross-hard", "standing", 0.1901, 0.521),  # `observed` has .6082 and -.524
        ("lavacross-hard", "once", 0.1055, 0.826),  # .1317 and .762
        ("lavacross-maze", "once", 0.1794, 0.780),  # .2317 and .637
    ],
)
def test_what_followed_the_action_makes_tighter_ceilings_that_still_hold(name, coins, distance, correlation):
    world = cs.load_world(name, coins=coins)
    best, alive = world.model.optimum(world.horizon).values, ~world.model.terminal
    reward_max = world.model.reward_range[1]
    by_state = cs.value_ceilings(population(world), world.horizon, reward_max)
    by_action = cs.value_ceilings(population(world), world.horizon, reward_max, support="observed-action")
    assert (by_action.values - best)[:, alive].min() >= -1e-9
    assert (by_state.values - by_action.values).min() >= -1e-9
    first = by_action.values[0, alive]
    assert (first - best[0, alive]).mean() == pytest.approx(distance, abs=5e-5)
    assert np.corrcoef(first, best[0, alive])[0, 1] == pytest.approx(correlation, abs=5e-4)


def test_observed_action_says_what_it_assumes_and_warns_of_a_single_source():
    space = cs.Space(["a", "end"], ["go", "stay"], terminal=["end"])
    logs = cs.Logs(space, "d", [0, 1], [0, 0], [0, 0], [0, 1], [0.0, 1.0], [1, 1], [True, True], [False, False])
    with pytest.warns(cs.AssumptionWarning, match="Only 'd' is there to show what can follow an action in a state"):
        found = cs.value_ceilings(cs.count(logs), 1, 2.0, support="observed-action")
    assert found.q_values[0, 0].tolist() == [0.0, 1.0]
    assert "was seen to follow that action in that state at least once, in some source" in found.summary()
    assert "support observed-action" in found.summary()


def test_unknown_outcomes_free_the_action_that_they_followed():
    """After `go` the log was cut and paid what no known step did; `stay` is known."""
    space = cs.Space(["a", "b", "end"], ["go", "stay"], terminal=["end"])
    rows = [(0, 0, 2, True, 0.0), (0, 0, -1, False, 0.5), (0, 1, 2, True, 0.0)]
    state, action, after, ended, reward = zip(*rows, strict=True)
    logs = cs.Logs(space, "d0", [0, 1, 2], [0, 0, 0], state, action, reward, after, ended, [not end for end in ended])
    found = cs.value_ceilings(cs.count(logs), 1, 1.0, support="observed-action")
    assert found.q_values[0, 0].tolist() == pytest.approx([2 / 3, 0.0])  # a third of `a` proves what `go` does
    by_state = cs.value_ceilings(cs.count(logs), 1, 1.0)
    assert by_state.q_values[0, 0].tolist() == pytest.approx([2 / 3, 2 / 3])


# The rarest outcome ---------------------------------------------------------------------------------------


def unseen(shares, n):
    """The probability that n visits leave one of these outcomes out, by inclusion and exclusion."""
    sets = itertools.chain.from_iterable(itertools.combinations(shares, k) for k in range(1, len(shares) + 1))
    return sum((-1) ** (len(left) + 1) * (1 - sum(left)) ** n for left in sets)


@pytest.mark.parametrize("rarest", [0.1, 0.2, 0.5])
def test_enough_visits_show_every_outcome_that_is_not_too_rare(rarest):
    for cells, alpha in ((1, 0.1), (20, 0.01)):
        n = math.ceil(visits_needed(rarest, cells, alpha))
        wrong = cells * unseen([rarest] * round(1 / rarest), n)
        assert alpha / 3 < wrong <= alpha  # not much is given away, either


def test_the_mix_of_sources_is_what_counts():
    """One source never sees it, the other often: the share is that of the visits, whoever made them."""
    rng, rarest, alpha = np.random.default_rng(0), 0.1, 0.1
    n = math.ceil(visits_needed(rarest, 1, alpha))
    one, other = n // 2, n - n // 2
    seen = rng.binomial(other, rarest * n / other, size=20_000) + rng.binomial(one, 0.0, size=20_000)
    assert (seen == 0).mean() <= rarest * alpha


def test_states_with_too_few_visits_allow_anything_and_are_counted():
    """18 visits, all end. What is not proven of `stay` ends too, or with too few visits pays for ever."""
    space = cs.Space(["a", "end"], ["go", "stay"], terminal=["end"])
    rows = np.arange(9)
    zeros = rows * 0
    for step_indexed, steps in ((False, 1), (True, 5)):
        always = cs.Logs(space, "d0", rows, zeros, zeros, zeros, zeros, zeros + 1, zeros == 0, zeros == 1)
        half = cs.Logs(space, "d1", rows, zeros, zeros, rows % 2, zeros, zeros + 1, zeros == 0, zeros == 1)
        both = cs.count([always, half], step_indexed=step_indexed)
        assert visits_needed(0.4, 2 * steps, 0.05 * SUPPORT_SHARE) < 18 < visits_needed(0.3, 2 * steps, 0.01)
        tied = cs.value_ceilings(both, 5, 1.0, confidence=0.95, rarest=0.4)
        free = cs.value_ceilings(both, 5, 1.0, confidence=0.95, rarest=0.3)
        assert tied.q_values[0, 0].tolist() == pytest.approx([0.0, 0.0])
        assert free.q_values[0, 0, 1] > 1.0
        assert not tied.unrestricted[0, 0]
        assert free.unrestricted[0, 0]
        assert "In 1 of 1 states anything may follow, as visits are too few" in free.summary()
        by_action = {"confidence": 0.95, "support": "observed-action"}
        few = cs.value_ceilings(both, 5, 1.0, rarest=0.5, **by_action)  # 14 visits with `go`, 4 with `stay`
        assert few.q_values[0, 0, 0] == 0.0
        assert few.q_values[0, 0, 1] > 1.0


def test_rare_outcomes_do_not_break_ceilings_with_confidence():
    """A jackpot in 1% of the steps that 300 visits often miss: with `rarest` below that, all ceilings hold."""
    model = cs.TabularCMDP(
        next_state=[[[0, 0]]], reward=[[[1.0, 0.0]]], noise=[[0.01, 0.99]], terminal=[False], start=[1.0]
    )
    world = cs.World("jackpot", "Jackpot", model, 3, ("u", "v"), {"d0": np.ones((1, 2, 1)), "d1": np.ones((1, 2, 1))})
    best = model.optimum(3).values
    held, bold = [], []
    for seed in range(60):
        counts = cs.count([world.collect(name, 60, seed=seed) for name in world.demonstrators])
        held.append((cs.value_ceilings(counts, 3, 1.0, confidence=0.95, rarest=0.009).values >= best - 1e-9).all())
        bold.append((cs.value_ceilings(counts, 3, 1.0, confidence=0.95, rarest=0.2).values >= best - 1e-9).all())
    assert all(held)
    assert np.mean(bold) < 0.9  # as it was without `rarest`: an assumption that does not hold here


def test_confidence_assumes_the_default_unless_told_otherwise():
    world = cs.load_world("lavacross-easy")
    counts = cs.count([world.collect(name, 2000) for name in world.demonstrators])
    assert cs.value_ceilings(counts, 20, -0.1, confidence=0.95).rarest == RAREST
    assert cs.value_ceilings(counts, 20, -0.1).rarest is None
    assert cs.value_ceilings(counts, 20, -0.1, confidence=0.95, support="any").rarest is None
