"""What unproven mass may do: what was observed, what visits have shown, and states that no log holds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from handmade import counts_of_entries, one_step_logs

import causal_shaping as cs
from causal_shaping.bounds.settings import DEFAULT_RAREST, SUPPORT_ERROR_SHARE
from causal_shaping.bounds.support import terminal_states, visits_needed

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only 'd0' is there"),
    pytest.mark.filterwarnings("ignore:Many steps do not tell what followed them"),
]


def population(world):
    return [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]


# After the state, or after the action ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "coins"), [("lavacross-hard", "standing"), ("lavacross-hard", "once"), ("lavacross-maze", "once")]
)
def test_what_followed_the_action_makes_tighter_ceilings_that_still_hold(name, coins):
    world = cs.load_world(name, coins=coins)
    best, alive = world.model.optimum(world.horizon).values, ~world.model.terminal
    reward_max = world.model.reward_range[1]
    by_state = cs.value_ceilings(population(world), world.horizon, reward_max)
    by_action = cs.value_ceilings(population(world), world.horizon, reward_max, support="observed-action")
    assert (by_action.values - best)[:, alive].min() >= -1e-9
    assert (by_state.values - by_action.values).min() >= -1e-9
    assert (by_state.values - by_action.values)[0, alive].mean() > 0.02


def test_observed_action_says_what_it_assumes_and_warns_of_a_single_source():
    space = cs.Space(["a", "end"], ["go", "stay"], terminal=["end"])
    logs = one_step_logs(space, [0.0, 1.0], "d", action=[0, 1])
    with pytest.warns(cs.AssumptionWarning, match="Only 'd' is there to show what can follow an action in a state"):
        found = cs.value_ceilings(cs.count(logs), 1, 2.0, support="observed-action")
    assert found.q_values[0, 0].tolist() == [0.0, 1.0]
    assert "was seen to follow that action in that state at least once, in some source" in found.summary()
    assert "support observed-action" in found.summary()


@pytest.mark.filterwarnings("ignore:Many steps do not tell")
def test_unknown_outcomes_free_the_action_that_they_followed():
    """After `go` the log was cut and paid what no known step did; `stay` is known."""
    space = cs.Space(["a", "b", "end"], ["go", "stay"], terminal=["end"])
    logs = one_step_logs(space, [0.0, 0.5, 0.0], action=[0, 0, 1], after=[2, -1, 2], ended=[True, False, True])
    found = cs.value_ceilings(cs.count(logs), 1, 1.0, support="observed-action")
    assert found.q_values[0, 0].tolist() == pytest.approx([2 / 3, 0.0])  # a third of `a` proves what `go` does
    by_state = cs.value_ceilings(cs.count(logs), 1, 1.0)
    assert by_state.q_values[0, 0].tolist() == pytest.approx([2 / 3, 2 / 3])


@pytest.mark.filterwarnings("ignore:Many steps do not tell", "ignore:Only 'd' is there")
@pytest.mark.parametrize("support", ["observed", "observed-action"])
def test_an_unknown_outcome_is_compared_with_the_known_ones_of_its_own_step(support):
    """Step 0 always pays 5. Of step 1 half the rows pay 0 and end; the others pay 5, and nobody knows what followed."""
    columns = {"step": [0, 1, 1], "next_state": [0, 1, -1], "terminated": [False, True, False]}
    space = cs.Space(["a", "end"], ["go"], terminal=["end"])
    counts = counts_of_entries(space, [10, 5, 5], [5.0, 0.0, 5.0], **columns)
    ceilings, floors = (
        cs.value_ceilings(counts, 2, 5.0, support=support),
        cs.value_floors(counts, 2, 0.0, support=support),
    )
    assert ceilings.values[:, 0].tolist() == [7.5, 2.5]  # the logged means
    assert floors.values[1, 0] == 0.0


# The rarest outcome ---------------------------------------------------------------------------------------


def unseen(shares, n):
    """The probability that n visits leave one of these outcomes out, by inclusion and exclusion."""
    sets = itertools.chain.from_iterable(itertools.combinations(shares, k) for k in range(1, len(shares) + 1))
    return sum((-1) ** (len(left) + 1) * (1 - sum(left)) ** n for left in sets)


@pytest.mark.filterwarnings("ignore:Only 't' is there")
@pytest.mark.parametrize("support", ["observed", "observed-action"])
def test_an_action_that_was_not_tried_in_every_step_may_lead_anywhere(support):
    """Counts by step: y follows a in the first step only, so that the ceilings of the second say nothing of it."""
    columns = {"step": [0, 0, 1], "action": [0, 1, 0], "next_state": [0, 0, 1], "terminated": [False, False, True]}
    space = cs.Space(["a", "b"], ["x", "y"], terminal=["b"])
    counts = counts_of_entries(space, [0.5, 0.5, 1.0], **columns, population=True)
    allowed = cs.value_ceilings(counts, 2, 1.0, support=support).potential().successors
    assert allowed.row[0].tolist() == [0, -1]


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
    for step_indexed, steps in ((False, 1), (True, 5)):
        always = one_step_logs(space, np.zeros(9))
        half = one_step_logs(space, np.zeros(9), "d1", action=np.arange(9) % 2)
        both = cs.count([always, half], step_indexed=step_indexed)
        assert visits_needed(0.4, 2 * steps, 0.05 * SUPPORT_ERROR_SHARE) < 18 < visits_needed(0.3, 2 * steps, 0.01)
        tied = cs.value_ceilings(both, 5, 1.0, confidence=0.95, rarest=0.4)
        free = cs.value_ceilings(both, 5, 1.0, confidence=0.95, rarest=0.3)
        assert tied.q_values[0, 0].tolist() == pytest.approx([0.0, 0.0])
        assert free.q_values[0, 0, 1] > 1.0
        assert not tied.unrestricted[0, 0]
        assert free.unrestricted[0, 0]
        each = ", counted at each step," if step_indexed else ""
        assert f"1 of 1 states{each} have too few visits" in free.summary()
        by_action = {"confidence": 0.95, "support": "observed-action"}
        few = cs.value_ceilings(both, 5, 1.0, rarest=0.5, **by_action)  # 14 visits with `go`, 4 with `stay`
        assert few.q_values[0, 0, 0] == 0.0
        assert few.q_values[0, 0, 1] > 1.0
        rarest = 0.45 if step_indexed else 0.38  # 14 visits would be enough if there were as many cells as states
        assert visits_needed(rarest, 2 * steps, 0.01) < 14 < visits_needed(rarest, 4 * steps, 0.01)
        assert cs.value_ceilings(both, 5, 1.0, rarest=rarest, **by_action).q_values[0, 0, 0] > 0.0


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
    found = cs.value_ceilings(counts, 20, -0.1, confidence=0.95)
    assert found.rarest == DEFAULT_RAREST
    assert (found.support_error, found.limits_error) == pytest.approx(
        (0.05 * SUPPORT_ERROR_SHARE, 0.05 * (1 - SUPPORT_ERROR_SHARE))
    )
    assert cs.value_ceilings(counts, 20, -0.1).rarest is None
    found = cs.value_ceilings(counts, 20, -0.1, confidence=0.95, support="any")
    assert (found.rarest, found.support_error, found.limits_error) == (None, 0.0, pytest.approx(0.05))


# States that no log holds ---------------------------------------------------------------------------------


def kept_from(secret, steps=20):
    """A model in which `risk` may lead to a state that pays 1 a step, and a demonstrator who never lets it happen."""
    model = cs.TabularCMDP(
        next_state=[[[0, 0], [0, 1]], [[1, 1], [1, 1]]],
        reward=[[[0.5, 0.5], [0.5, 0.5]], [[secret, secret], [secret, secret]]],
        noise=[[0.1, 0.9], [0.5, 0.5]],
        terminal=[False, False],
        start=[1.0, 0.0],
    )
    careful = np.zeros((2, 2, 2))
    careful[0, 0, 1] = careful[0, 1, 0] = careful[1, :, 0] = 1.0  # takes the risk only when nothing comes of it
    world = cs.World("kept", "Kept", model, steps, ("calm", "storm"), {"d0": careful})
    logs = world.collect("d0", 4_000)
    assert set(logs.state.tolist()) == {0}
    return model, logs


def read_off(logs):
    """The counts of a file, in which only the states that occur can be known."""
    space = cs.Space([0], logs.space.actions, complete=False)
    return cs.count(replace(logs, space=space))


def test_a_ceiling_allows_for_a_state_that_no_log_holds():
    model, logs = kept_from(1.0)
    best = model.optimum(20).values[0, 0]
    assert best > 18
    for options in ({}, {"confidence": 0.95}):
        found = cs.value_ceilings(read_off(logs), 20, 1.0, support="any", **options)
        assert found.values[0, 0] >= best
        assert (found.values <= found.vacuous_values[:, None] + 1e-9).all()
        assert not any("No other states" in sentence for sentence in found.assumptions)
    declared = cs.value_ceilings(cs.count(replace(logs, space=cs.Space([0], model.actions))), 20, 1.0, support="any")
    assert declared.values[0, 0] < best  # false, and said so
    assert "No other states exist than the 1 declared." in declared.assumptions
    assert declared.no_other_states


def test_a_floor_allows_for_a_state_that_no_log_holds():
    model, logs = kept_from(-1.0)
    worst = model.evaluate(np.array([1, 0]), horizon=20).values[0, 0]  # who takes the risk loses for ever
    floors = cs.value_floors(read_off(logs), 20, -1.0, support="any")
    assert floors.q_values[0, 0, 1] <= worst + 1e-9


def test_untried_actions_and_states_below_rarest_allow_for_unknown_states_too():
    space = cs.Space(["a"], ["go", "jump"], complete=False)
    logs = cs.Logs(space, "d0", [0, 0], [0, 1], [0, 0], [0, 0], [0.0, 0.0], [0, 0], [False, False], [False, True])
    untried = cs.value_ceilings(cs.count(logs), 20, 1.0)
    assert untried.q_values[0, 0].tolist() == [19.0, 20.0]  # nobody jumped
    few = cs.value_ceilings(cs.count(logs), 20, 1.0, confidence=0.95)
    assert few.unrestricted[0, 0]
    assert few.q_values[0, 0, 0] > 18
    assert cs.value_ceilings(cs.count(logs), 20, 0.0).values.max() == 0.0  # where costs are all, the end is best


def test_without_a_horizon_an_unknown_state_needs_a_discount_or_a_highest_value():
    _, logs = kept_from(1.0)
    counts, options = read_off(logs), {"support": "any", "stationary": True}
    with pytest.raises(cs.ArgumentError, match=r"may pay for ever\. Set complete if no other states exist"):
        cs.value_ceilings(counts, 20, 1.0, **options)
    assert cs.value_ceilings(counts, 20, 1.0, discount=0.9, **options).values[0] > 9
    assert cs.value_ceilings(counts, 20, 1.0, value_max=30.0, **options).values[0] == pytest.approx(30.0)
    used = cs.value_ceilings(counts, 20, 1.0, stationary=True, discount=0.9)
    assert used.values[0] < 10  # observed: both actions were tried, so that no unknown state follows


@pytest.mark.filterwarnings("ignore:Many steps do not tell")
def test_a_support_of_ones_own_allows_for_unknown_states_where_it_is_silent():
    space = cs.Space(["a", "b"], ["go"], complete=False)
    logs = cs.Logs(space, "d0", [0, 1], [0, 0], [0, 1], [0, 0], [0.0, 0.0], [0, 1], [False] * 2, [True] * 2)
    found = cs.value_ceilings(cs.count(logs), 5, 1.0, support={"a": ["a"]}, confounding={"d0": math.inf})
    assert found.q_values[0, :, 0].tolist() == [0.0, 0.0]  # all is proven
    halves = cs.Logs(space, "d1", [0], [0], [0], [0], [0.0], [-1], [False], [True])
    found = cs.value_ceilings(cs.count(halves), 5, 1.0, support={"a": ["a"]})
    assert found.values[0, 1] == 5.0


@pytest.mark.parametrize(("support", "assumed"), [({"a": ["a"]}, True), ({"a": ["a"], "b": ["b"]}, False)])
def test_a_support_of_ones_own_assumes_no_other_states_where_it_is_silent_alone(support, assumed):
    logs = cs.Logs(cs.Space(["a", "b"], ["go"]), "d0", [0], [0], [0], [0], [0.0], [-1], [False], [True])
    assert cs.value_ceilings(cs.count(logs), 5, 1.0, support=support).no_other_states == assumed


@pytest.mark.parametrize(("untried_at", "assumed"), [(0, True), (1, True), (2, False)])
def test_no_other_states_are_assumed_if_something_unknown_may_follow_before_the_last_step(untried_at, assumed):
    """Two episodes of three steps in one state, in which both actions were tried at all steps but one."""
    episode, step = np.repeat([0, 1], 3), np.tile(np.arange(3), 2)
    action = np.where(step == untried_at, 0, episode)
    logs = cs.Logs(
        *(cs.Space(["a"], ["go", "stay"]), "d0", episode, step, 0 * step, action, 0.0 * step, 0 * step),
        *(step < 0, step == 2),
    )
    assert cs.value_ceilings(cs.count(logs, step_indexed=True), 3, 1.0).no_other_states == assumed


@pytest.mark.parametrize("step_indexed", [False, True])
def test_nothing_is_assumed_of_what_follows_the_only_step(step_indexed):
    logs = cs.Logs(cs.Space(["a"], ["go", "stay"]), "d0", [0], [0], [0], [0], [0.0], [0], [False], [True])
    assert not cs.value_ceilings(cs.count(logs, step_indexed=step_indexed), 1, 1.0).no_other_states


def test_a_state_is_terminal_if_episodes_only_ended_there():
    """Episodes of one step from `a`: to `b` they ended, to `c` they ended or were cut, of the last nothing is known."""
    space = cs.Space(["a", "b", "c", "d", "e"], ["go"])
    logs = one_step_logs(space, np.zeros(5), after=[1, 2, 2, 4, -1], ended=[True, True, False, True, False])
    assert terminal_states(cs.count(logs)).tolist() == [False, True, False, False, True]


def test_the_paper_says_that_states_were_read_off():
    _, logs = kept_from(1.0)
    with pytest.warns(cs.AssumptionWarning, match="The states were read off the logs"):
        found = cs.value_ceilings(read_off(logs), 20, 1.0, method="paper")
    assert not found.guaranteed


# Actions that do not exist --------------------------------------------------------------------------------


@pytest.mark.parametrize("support", ["any", "observed"])
def test_what_is_not_admissible_has_no_value_and_is_no_choice(support):
    """The optimum of a model whose forbidden actions are made hopeless lies between the bounds without them."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        allowed = rng.random((3, 3)) < 0.6
        allowed[np.arange(3), rng.integers(3, size=3)] = True
        model = cs.TabularCMDP(
            next_state=rng.integers(0, 3, (3, 3, 4)),
            reward=rng.choice([0.0, 0.5, 1.0], (3, 3, 4)),
            noise=rng.dirichlet(np.ones(4), 3),
            terminal=[False] * 3,
            start=[1.0, 0.0, 0.0],
        )
        hopeless = cs.TabularCMDP(
            model.next_state,
            np.where(allowed[..., None], model.reward, -100.0),
            model.noise,
            model.terminal,
            model.start,
        )
        best = hopeless.optimum(3)
        betas = [rng.dirichlet(np.ones(3), (3, 4)) * allowed[:, None] for _ in range(2)]
        betas = [beta / beta.sum(axis=-1, keepdims=True) for beta in betas]
        space = model.space.restricted(allowed)
        counts = [model.observe(beta, f"d{i}").to_space(space) for i, beta in enumerate(betas)]
        ceilings = cs.value_ceilings(counts, 3, 1.0, support=support)
        floors = cs.value_floors(counts, 3, 0.0, support=support)
        for found in (ceilings, floors):
            assert (np.isnan(found.q_values) == ~allowed).all()
            assert np.array_equal(found.values, np.nanmax(found.q_values, axis=-1))
        assert (ceilings.values >= best.values - 1e-9).all()
        assert (floors.values <= best.values + 1e-9).all()
        mask = cs.provably_suboptimal(ceilings, floors)
        assert not mask[:, ~allowed].any()
        assert (best.gaps()[mask] > 0).all()
        assert (mask | ~allowed).all(axis=-1).sum() == 0
    assert any("only its admissible ones" in sentence for sentence in ceilings.assumptions)
    shares = cs.sensitivity(counts, 3, 1.0, 0.0, support=support, confounding=(math.inf,))
    assert shares.suboptimal[0] == pytest.approx(mask[:, allowed].mean())
    assert allowed[np.arange(3), shares.best_action].all()


def test_forbidding_actions_never_loosens_a_ceiling():
    world = cs.load_world("lavacross-easy")
    free = cs.value_ceilings(population(world), 20, -0.1)
    tried = np.zeros((len(world.states), len(world.actions)), dtype=bool)
    for part in population(world):
        tried[part.state, part.action] = True
    tried[~tried.any(axis=1)] = True
    space = world.space.restricted(tried)
    limited = cs.value_ceilings([part.to_space(space) for part in population(world)], 20, -0.1)
    assert (limited.values <= free.values + 1e-12).all()


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_a_given_support_and_the_rarest_outcome_of_an_action_are_assumptions():
    world = cs.load_world("lavacross-easy")
    counts = cs.count(world.collect("random", 2_000))
    state, after = counts.space.states[counts.state[0]], counts.space.states
    given = cs.value_ceilings(counts, 3, 0.1, support={state: [*after, None]})
    assert any(sentence.startswith("Nothing follows a state but the successors") for sentence in given.assumptions)
    rare = cs.value_ceilings(counts, 3, 0.1, support="observed-action", confidence=0.95, rarest=0.02)
    (sentence,) = [one for one in rare.assumptions if "at least a share of 0.02" in one]
    assert sentence.startswith("Whatever can follow an action in a state follows")


@pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")
def test_visits_are_counted_at_each_step_and_only_an_observed_support_tells_where_it_was_not_used():
    """A thousand visits at the first step show what can follow it there; two at the second do not."""
    columns = {"step": [0, 0, 1, 1], "action": [0, 1, 0, 1], "next_state": 0, "terminated": False}
    counts = counts_of_entries(cs.Space(["s"], ["x", "y"]), [1_000, 1_000, 2, 2], **columns)
    found = cs.value_ceilings(counts, 2, 1.0, confidence=0.95, rarest=0.02)
    np.testing.assert_array_equal(found.unrestricted[:, 0], [False, True])
    assert "1 of 2 states, counted at each step, have too few visits" in found.summary()
    assert "anything may follow there" not in cs.value_ceilings(counts, 2, 1.0, support="any").summary()
