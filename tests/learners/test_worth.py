"""What logs are expected to save: drawn worlds that agree with them, and learners that run there."""

import json
import math

import hard_worlds
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import causal_shaping as cs
from causal_shaping.beliefs.model import Model
from causal_shaping.beliefs.wide import GRAINS, Outcomes, WidePrior, draw_lean, solve, start_of
from causal_shaping.learners import worth as worth_module
from causal_shaping.learners.worth import _interval, _round, head_start, saved_share


def belief_of(world, steps=2_000, **options):
    counts = hard_worlds.counts_of(world, steps)
    return cs.posterior(counts, world.horizon, options.pop("reward_max", world.model.reward_range[1]), **options)


@pytest.fixture(scope="module")
def random_world():
    return hard_worlds.random_world(3, states=4, actions=2)


@pytest.fixture(scope="module")
def belief(random_world):
    return belief_of(random_world)


@pytest.fixture(scope="module")
def found(belief):
    return belief.worth(steps=600, seeds=12, trial=20)


def population(world, horizon):
    """Return counts of all demonstrators of a world, as exact masses."""
    held = [world.model.observe(beta, source=name) for name, beta in world.demonstrators.items()]
    return cs.posterior(held, horizon, world.model.reward_range[1])


def test_drawn_worlds_have_at_least_the_mass_that_logs_prove(random_world):
    """Held against P(x, o | s) of every demonstrator, from the tables of the true world."""
    model, belief = random_world.model, population(random_world, 5)
    prior, rng = WidePrior(belief.model), np.random.default_rng(0)
    for _ in range(20):
        world, _ = prior.draw(rng)
        for s in np.flatnonzero(~model.terminal):
            for x in range(len(random_world.actions)):
                cell = s * len(random_world.actions) + x
                some = slice(world.first[cell], world.first[cell + 1])
                assert world.chance[some].sum() == pytest.approx(1.0)
                assert world.sums[world.first[cell + 1] - 1] == 1.0
                for beta in random_world.demonstrators.values():
                    masses = {}
                    for u, p in enumerate(model.noise[s]):
                        after, reward = int(model.next_state[s, x, u]), float(model.reward[s, x, u])
                        after = len(model.terminal) if model.terminal[after] else after
                        masses[after, reward] = masses.get((after, reward), 0.0) + p * beta[s, u, x]
                    for (after, reward), mass in masses.items():
                        same = (world.after[some] == after) & np.isclose(world.reward[some], reward)
                        assert world.chance[some][same].sum() >= mass - 0.01


def test_the_prior_is_wide_and_hostile_worlds_are_in_it(belief):
    rng, looks_best = np.random.default_rng(0), WidePrior(belief.model).looks_best
    leans = [draw_lean(rng, belief.model, looks_best) for _ in range(4_000)]
    doubts, arcsine = np.array([lean.doubt for lean in leans]), 2 / math.pi * math.asin(math.sqrt(0.1))
    assert (doubts == 0).mean() == pytest.approx(0.5, abs=0.03), "half of the worlds are as the logs say"
    assert (doubts[doubts > 0] < 0.1).mean() == pytest.approx(arcsine, abs=0.03)
    assert (doubts[doubts > 0] > 0.9).mean() == pytest.approx(arcsine, abs=0.03)
    assert {lean.grain for lean in leans} == set(range(len(GRAINS)))
    assert {lean.against for lean in leans} == {True, False}
    by_state = next(lean for lean in leans if GRAINS[lean.grain] == "by state" and 0.3 < lean.doubt < 0.7)
    shares = by_state.share.reshape(-1, belief.model.shape.actions)
    assert (shares == shares[:, :1]).all()
    assert len(np.unique(shares)) == 2


def test_where_logs_are_set_against_the_truth_what_looks_good_is_bad():
    world = hard_worlds.bandit(1)
    counts = hard_worlds.counts_of(world, 20_000, sources=["flatter"])
    belief = cs.posterior(counts, 1, 2.0)
    prior, action = WidePrior(belief.model), int(np.argmax(world.model.reward[0].max(axis=-1)))
    shown = {False: [], True: []}
    for seed in range(200):
        drawn, lean = prior.draw(np.random.default_rng(seed))
        if 0.1 < lean.doubt < 0.9 or (lean.doubt > 0.9 and not lean.against) or GRAINS[lean.grain] == "one action":
            continue
        some = slice(drawn.first[action], drawn.first[action + 1])
        shown[lean.doubt > 0.9].append(float((drawn.chance[some] * drawn.reward[some]).sum()))
    # "flatter" shows the action mostly where it pays 2.
    assert np.mean(shown[False]) > np.mean(shown[True]) + 0.3


def test_the_optimum_of_a_drawn_world_is_that_of_its_tables(random_world):
    model, horizon = random_world.model, 7
    _, states, actions = (1, *model.next_state.shape[:2])
    first, after, reward, chance = [0], [], [], []
    for s in range(states):
        for x in range(actions):
            ends = model.terminal[model.next_state[s, x]]
            after += np.where(ends, states, model.next_state[s, x]).tolist()
            reward += model.reward[s, x].tolist()
            chance += model.noise[s].tolist()
            first.append(len(after))
    world = Outcomes(
        np.array(first), np.array(after, dtype=np.int32), np.array(reward), np.array(chance), np.array(chance)
    )
    plain = cs.posterior(
        model.observe(next(iter(random_world.demonstrators.values())), source="a"), horizon, 2.0
    ).settings
    found = solve(Model(model.space, None, plain), world, model.space.is_admissible.copy())
    best = model.optimum(horizon=horizon).q_values
    alive = ~model.terminal
    assert found[:, alive] == pytest.approx(best[:, alive])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_a_head_start_is_the_practice_that_makes_up_for_logs(one, other):
    size = min(len(one), len(other))
    without, with_logs = np.cumsum(one[:size], dtype=float), np.cumsum(other[:size], dtype=float)

    def practice(behind, ahead):  # by the definition, one number after the other
        return next(m for m in range(size + 1) if behind[-1] - np.append(0.0, behind)[m] <= ahead[-1])

    expected = practice(without, with_logs)
    if with_logs[-1] > without[-1]:
        expected = -practice(with_logs, without)
    assert head_start(without, with_logs) == expected
    assert head_start(with_logs, without) == -expected


def test_the_share_saved_is_symmetric_and_bounded():
    assert saved_share(10.0, 2.0) == pytest.approx(0.8)
    assert saved_share(2.0, 10.0) == pytest.approx(-0.8)
    assert saved_share(0.0, 0.0) == 0.0


def test_what_is_said_is_what_the_worlds_say(found):
    table = found.to_pandas()
    assert len(table) == 12
    without, with_logs = table.regret_without.sum(), table.regret_with.sum()
    assert found.share == pytest.approx((without - with_logs) / max(without, with_logs))
    assert found.episodes_saved == pytest.approx(table.saved.mean())
    assert found.chance_of_help == (table.regret_with < table.regret_without).mean()
    assert found.episodes_interval == pytest.approx(tuple(np.quantile(table.saved, [0.05, 0.95])))
    steps, curves, _ = found.curves()
    assert steps[-1] == 600
    assert curves[:, -1] == pytest.approx(table.regret_without)
    assert "of the regret" in found.summary()
    assert "episodes" in repr(found)
    assert json.loads(found.to_json())["episodes_saved"] == pytest.approx(table.saved.mean())


def test_a_randomised_source_saves_more_where_logs_mislead(belief):
    worlds = [world for world in belief.worth(steps=600, seeds=60, trial=50).worlds if world.doubt > 0.3]
    assert sum(world.regret_trial for world in worlds) < 0.8 * sum(world.regret_with for world in worlds)


def test_what_a_randomised_source_adds_is_told(found):
    episodes, share = found.trial_adds
    assert "A randomised source of 20 rows" in found.summary()
    assert json.loads(found.to_json())["trial_adds"] == {"episodes": episodes, "share": share}


def test_a_world_does_not_depend_on_the_others(belief, found):
    alone = belief.worth(steps=600, seeds=[7], trial=20)
    assert alone.worlds == (found.worlds[7],)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([2.0**-6, 64.0, 0.37, 1e3]))
def test_the_scale_of_rewards_changes_nothing(scale):
    worlds = [hard_worlds.bandit(5, scale=factor) for factor in (1.0, scale)]
    one, other = (belief_of(world).worth(steps=300, seeds=3) for world in worlds)
    assert other.share == pytest.approx(one.share)
    assert [world.saved for world in other.worlds] == [world.saved for world in one.worlds]
    assert other.summary() == one.summary()


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([0.5, 1.0, 8.0]))
def test_a_constant_added_to_each_step_of_a_fixed_length_changes_nothing(offset):
    def worth(constant):
        rng = np.random.default_rng(2)
        reward = rng.integers(0, 1024, size=(3, 2, 3)) / 1024 + constant
        model = cs.TabularCMDP(
            rng.integers(0, 3, size=(3, 2, 3)), reward, np.full((3, 3), 1 / 3), [False] * 3, [0.5, 0.5, 0.0]
        )
        world = cs.World("fixed", "Fixed", model, 4, ("a", "b", "c"), {"one": rng.dirichlet(np.ones(2), (3, 3))})
        return belief_of(world, 1_000).worth(steps=300, seeds=3)

    one, other = worth(0.0), worth(offset)
    assert other.share == pytest.approx(one.share)
    assert [world.saved for world in other.worlds] == [world.saved for world in one.worlds]


def test_where_episodes_start_is_read_off_the_logs():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 20_000, seed=0) for name in world.demonstrators]
    for step_indexed in (False, True):
        belief = cs.posterior(cs.count(logs, step_indexed=step_indexed), world.horizon, -0.1)
        start, _ = start_of(belief.model, belief.counts)
        true = np.zeros(len(start))
        for state, share in zip(world.states, world.model.start, strict=True):
            if share > 0:
                true[belief.space.find(state)] = share
        assert abs(start - true).sum() / 2 < 0.2


def test_where_episodes_start_can_be_given(belief):
    state, other = belief.space.states[:2]
    assert f"start in {state}." in belief.worth(steps=50, seeds=1, start=state).summary()
    assert f"start in {state}." in belief.worth(steps=50, seeds=1, start={state: 2.0}).summary()
    two = belief.worth(steps=50, seeds=1, start={state: 1.0, other: 3.0}).summary()
    assert f"start in one of 2 states, most often {other} (75%)." in two
    with pytest.raises(cs.ArgumentError, match="not one of the states"):
        belief.worth(steps=50, seeds=1, start="nowhere")
    with pytest.raises(cs.ArgumentError, match="any weight"):
        belief.worth(steps=50, seeds=1, start={state: 0.0})
    with pytest.raises(cs.ArgumentError, match="a weight of -1"):
        belief.worth(steps=50, seeds=1, start={state: -1})
    ends = belief.space.states[int(np.flatnonzero(belief.model.terminal)[0])]
    with pytest.raises(cs.ArgumentError, match="in which episodes end"):
        belief.worth(steps=50, seeds=1, start=ends)


def test_an_interrupt_stops_what_has_not_begun(belief, monkeypatch):
    ran, run = [], worth_module._Simulation.run
    monkeypatch.setattr(worth_module._Simulation, "run", lambda self, seed: ran.append(seed) or run(self, seed))

    def stop(done, total, what):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        belief.worth(steps=50, seeds=40, progress=stop)
    assert 1 <= len(ran) < 40


@pytest.mark.parametrize(
    ("options", "message"),
    [({"steps": 0}, "steps is 0"), ({"seeds": 0}, "seeds is 0"), ({"seeds": []}, "no seeds"), ({"trial": -1}, "trial")],
)
def test_arguments_are_checked(belief, options, message):
    with pytest.raises(cs.ArgumentError, match=message):
        belief.worth(**options)


def test_a_source_that_is_refuted_is_named():
    """One source takes the first action in noise that makes it good, the other always: it proves what is true."""
    noise = np.array([[0.5, 0.5], [1.0, 0.0]])
    model = cs.TabularCMDP(
        np.ones((2, 2, 2), dtype=int), [[[1.0, 0.0], [0.5, 0.5]], [[0.0] * 2] * 2], noise, [False, True], [1.0, 0.0]
    )
    keen, fixed = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    keen[:, 0, 0], keen[:, 1, 1], fixed[..., 0] = 1.0, 1.0, 1.0
    world = cs.World("pair", "Pair", model, 1, ("good", "bad"), {"keen": keen, "fixed": fixed})
    found = belief_of(world).worth(steps=50, seeds=1)
    assert found.refuted == {"keen": ("0",)}
    assert "keen misleads" in found.summary()


def test_randomised_sources_bind_drawn_worlds():
    """With a large trial, every drawn world is close to the truth."""
    world = hard_worlds.bandit(2)
    trial = cs.World("trial", "Trial", world.model, 1, world.noises, {"trial": np.full((2, 10, 2), 0.5)})
    counts = hard_worlds.counts_of(world, 1_000)
    counts += cs.count(trial.collect("trial", 20_000), states=world.states, actions=world.actions)
    belief = cs.posterior(counts, 1, 2.0, confounding={"trial": 1.0})
    prior = WidePrior(belief.model)
    for seed in range(5):
        drawn, _ = prior.draw(np.random.default_rng(seed))
        for x in range(2):
            some = slice(drawn.first[x], drawn.first[x + 1])
            mean = float((drawn.chance[some] * drawn.reward[some]).sum())
            assert mean == pytest.approx(world.model.reward[0, x].mean(), abs=0.06)


def test_runs_end_their_episodes_within_the_horizon_and_the_budget(belief, random_world, monkeypatch):
    """Where episodes end decides how many of them logs save."""
    run_in, ends = worth_module.run_in, []

    def watched(*given):
        regret, found = run_in(*given)
        ends.append(found)
        return regret, found

    monkeypatch.setattr(worth_module, "run_in", watched)
    belief.worth(steps=53, seeds=2)
    for found in ends:
        lengths = np.diff(found, prepend=0)
        assert lengths.min() >= 1
        assert lengths.max() <= random_world.horizon
        assert found[-1] == 53
    assert len(ends) == 4


def test_intervals_cover_nine_tenths_and_numbers_have_two_digits_that_count():
    assert _interval(np.arange(101.0)) == pytest.approx((5.0, 95.0))
    for number, shown in ((0.2, 0), (7, 7), (96, 96), (104, 104), (1_234, 1_230), (4_321, 4_300), (-1_994, -1_990)):
        assert _round(number) == shown


def test_logs_may_be_wrong_about_one_action_of_a_state_that_does_not_look_best(belief):
    rng, best = np.random.default_rng(1), WidePrior(belief.model).looks_best
    leans = [draw_lean(rng, belief.model, best) for _ in range(200)]
    one = [lean for lean in leans if GRAINS[lean.grain] == "one action"]
    shares = np.array([lean.share.reshape(-1, belief.model.shape.actions) for lean in one])
    assert (shares.sum(axis=2) <= 1).all()
    assert (shares.sum(axis=2) == 1).any()
    assert (np.take_along_axis(shares, np.broadcast_to(best[:, None], (len(one), len(best), 1)), 2) == 0).all()
    assert (shares.sum(axis=0)[:, :].sum(axis=0) > 0).all(), "any action can be the one"
