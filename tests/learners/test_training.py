"""Learners: the printed algorithms step by step, equal on every path, and what the paper and its traps say of them."""

import math

import gymnasium as gym
import numpy as np
import pyarrow.parquet as pq
import pytest
from forging import forge
from hypothesis import given, strategies as st
from properties import fewer
from walk import Walk

import causal_shaping as cs
from causal_shaping._registration import ENVIRONMENTS
from causal_shaping.beliefs.model import Model
from causal_shaping.bounds.settings import Settings
from causal_shaping.errors import CausalShapingError
from causal_shaping.learners._kernels import Constants, Learned, Step, step_by_step, update
from causal_shaping.learners._posterior import plan_if_needed, sampler_of
from causal_shaping.learners.rules import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore::causal_shaping.AssumptionWarning")


def logged(world, seed=0):
    return cs.count([world.collect(name, 100_000, seed=seed) for name in world.demonstrators])


@pytest.fixture(scope="module")
def ceilings():
    """Joint ceilings from logs, by world."""
    worlds = [cs.load_world(name) for name in ("windy-empty", "lavacross-easy")]
    bound = cs.value_ceilings
    return {w.name: (w, bound(logged(w), w.horizon, w.model.reward_range[1])) for w in worlds}


# The printed algorithms, written down a second time ---------------------------------------------------------


def printed(world, phi, steps, seed, step_indexed, c=4.0, p=0.1, vanilla=False, cut_ends=False):
    """Algorithms 1 and 3 with plain loops and dictionaries of nothing; returns Q and the regret of each step."""
    model, horizon, rng = world.model, world.horizon, np.random.default_rng(seed)
    states, actions = len(world.states), len(world.actions)
    layers = horizon if step_indexed else 1
    start = float(horizon) if vanilla else 0.0
    q = [[[start] * actions for _ in range(states)] for _ in range(layers)]
    v = [[0.0 if model.terminal[s] else start for s in range(states)] for _ in range(layers)]
    n = [[[0] * actions for _ in range(states)] for _ in range(layers)]
    alive = int((~model.terminal).sum())
    iota = math.log(alive * actions * steps / p)
    top = max(max(row) for row in phi)
    gaps = model.gaps(horizon if step_indexed else None)
    regret = []

    def draw(chances):
        mark = rng.random()
        sums = np.cumsum(chances)
        sums = sums / sums[-1]
        return next(i for i, total in enumerate(sums) if total > mark)

    s, h = draw(model.start), 0
    for _ in range(steps):
        i = h if step_indexed else 0
        x = max(range(actions), key=lambda a: (q[i][s][a], -a))
        regret.append((gaps[h] if step_indexed else gaps)[s, x])
        u = draw(model.noise[s])
        after, reward = int(model.next_state[s, x, u]), float(model.reward[s, x, u])
        n[i][s][x] += 1
        t = n[i][s][x]
        last = (step_indexed or cut_ends) and h + 1 == horizon
        below = None if last or model.terminal[after] else (h + 1 if step_indexed else 0)
        following = 0.0 if below is None else v[below][after]
        if vanilla:
            bonus, paid = c * math.sqrt(horizon**3 * iota / t), reward
        else:
            bonus = c * math.sqrt(horizon * max(top, 0.0) ** 2 * iota / t)
            paid = reward - phi[i][s] + (0.0 if below is None else phi[below][after])
        alpha = (horizon + 1) / (horizon + t)
        q[i][s][x] = (1 - alpha) * q[i][s][x] + alpha * (paid + following + bonus)
        v[i][s] = min(horizon if vanilla else phi[i][s], max(q[i][s]))
        h += 1
        if model.terminal[after] or h == horizon:
            s, h = draw(model.start), 0
        else:
            s = after
    return np.array(q), np.cumsum(regret)


@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("learner", ["q-ucb", "q-ucb-shaping"])
@pytest.mark.parametrize("name", ["lavacross-easy", "walking-robot"])
def test_the_printed_algorithms_are_what_the_paper_prints(name, learner, step_indexed):
    world = cs.load_world(name)
    optimum = world.model.optimum(world.horizon).values
    table = optimum if step_indexed else optimum[:1]
    phi = cs.Potential(table if step_indexed else table[0], world)
    run = cs.train(world, phi, learner=learner, steps=3000, seed=5, step_indexed=step_indexed)
    q_values, regret = printed(world, table.tolist(), 3000, 5, step_indexed, vanilla=learner == "q-ucb")
    alive = ~world.model.terminal  # the table of a terminal state means nothing
    expected = q_values if step_indexed else q_values[0]
    np.testing.assert_allclose(run.q_values[..., alive, :], expected[..., alive, :], atol=1e-9)
    np.testing.assert_allclose(run.step_regret, regret, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("step_indexed", "time_limit"), [(True, "bootstrap"), (False, "terminal")])
def test_a_potential_without_steps_and_a_time_limit_that_ends(compiled, step_indexed, time_limit):
    """With steps, phi is 0 after the last one although the potential has none; a cut that ends is worth 0 too."""
    world = cs.load_world("lavacross-easy")
    values = world.model.optimum(20).values[0]
    phi = cs.Potential(values, world)
    run = cs.train(
        world,
        phi,
        learner="q-ucb-shaping",
        steps=2000,
        seed=4,
        step_indexed=step_indexed,
        time_limit=time_limit,
        compiled=compiled,
    )
    table = [values.tolist()] * (20 if step_indexed else 1)
    q_values, _ = printed(world, table, 2000, 4, step_indexed, cut_ends=time_limit == "terminal")
    alive = ~world.model.terminal
    expected = q_values if step_indexed else q_values[0]
    np.testing.assert_allclose(run.q_values[..., alive, :], expected[..., alive, :], atol=1e-9)


@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("learner", PRESETS)
@pytest.mark.parametrize("name", ["lavacross-easy", "windy-empty"])
def test_the_compiled_and_the_gymnasium_path_learn_the_same_table_bit_for_bit(ceilings, name, learner, step_indexed):
    world, joint = ceilings[name]
    options = {"learner": learner, "steps": 1500, "seed": 3, "step_indexed": step_indexed, "checkpoints": [10, 1500]}
    compiled = cs.train(world, joint, **options)
    played = cs.train(world, joint, compiled=False, **options)
    made = cs.train(
        gym.make(f"causal_shaping/{ {'lavacross-easy': 'LavaCrossEasy'}.get(name, 'WindyEmpty') }-v0"), joint, **options
    )
    for other in (played, made):
        for field in ("q_values", "values", "visits", "step_regret", "episode_end", "policies", "recommended"):
            assert np.array_equal(getattr(compiled, field), getattr(other, field)), field
        np.testing.assert_allclose(compiled.returns, other.returns, atol=1e-9)


def test_a_run_knows_what_it_did(ceilings):
    world, joint = ceilings["lavacross-easy"]
    options = {"learner": "q-ucb-shaping", "steps": 2000}
    run = cs.train(world, joint, seed=1, checkpoints=[500, 2000, 9999], **options)
    again = cs.train(world, joint, seed=1, **options)
    assert np.array_equal(run.q_values, again.q_values)
    assert not np.array_equal(run.q_values, cs.train(world, joint, seed=2, **options).q_values)
    assert run.visits.sum() == run.steps == 2000
    assert run.checkpoints.tolist() == [500, 2000]
    assert np.array_equal(run.policies[-1], run.policy)
    assert np.array_equal(run.recommended, run.policy)
    assert run.episode_end[-1] == 2000
    assert np.array_equal(run.regret, run.step_regret[run.episode_end - 1])
    assert (np.diff(run.step_regret) >= -1e-12).all()
    lengths = np.diff(run.episode_end, prepend=0)
    assert lengths.max() <= world.horizon
    assert "2,000 steps in" in repr(run)


@pytest.mark.parametrize("step_indexed", [False, True])
def test_a_run_is_saved_and_loaded(tmp_path, step_indexed):
    options = {"steps": 300, "seed": 4, "step_indexed": step_indexed, "checkpoints": [100, 300]}
    run = cs.train(EASY, PHI, learner="q-ucb-shaping", c=2.0, **options)
    run.save(tmp_path / "run.parquet")
    read = cs.Run.load(tmp_path / "run.parquet")
    assert read.checksum == run.checksum
    assert (read.learner, read.rule, read.space) == (run.learner, run.rule, run.space)
    for field in ("q_values", "visits", "policies", "recommended", "step_regret", "regret", "returns"):
        assert np.array_equal(getattr(read, field), getattr(run, field)), field
        assert getattr(read, field).dtype == getattr(run, field).dtype
    assert repr(read) == repr(run)
    assert read.summary() == run.summary()
    assert "Constants changed: c=2.0" in run.summary()
    frame = read.to_pandas()
    assert list(frame.columns) == ["episode", "steps", "regret", "return"]
    assert len(frame) == len(run.returns)
    assert frame["steps"].iloc[-1] == 300
    assert run._repr_html_().startswith(f"<p>{run!r}</p><table")


def test_a_run_without_an_optimum_and_without_checkpoints_is_saved_too(tmp_path):
    run = cs.train(gym.make("FrozenLake-v1"), steps=50, learner=cs.Rule(clip="none"))
    run.save(tmp_path / "run.parquet")
    read = cs.Run.load(tmp_path / "run.parquet")
    assert np.isnan(read.step_regret).all()
    assert read.policies.shape == (0, 16)
    assert read.learner == "custom"
    assert "not known" in read.summary()


def test_a_file_that_is_no_complete_run_is_refused(tmp_path):
    with pytest.raises(cs.FileError, match="does not exist"):
        cs.Run.load(tmp_path / "none.parquet")
    PHI.save(tmp_path / "phi.parquet")
    with pytest.raises(cs.FileError, match="holds potential, not training run"):
        cs.Run.load(tmp_path / "phi.parquet")
    cs.train(EASY, steps=100).save(tmp_path / "run.parquet")
    table = pq.read_table(tmp_path / "run.parquet")
    changed = table.set_column(0, table.column_names[0], [[[0.0] * 100]])
    pq.write_table(changed, tmp_path / "changed.parquet")
    with pytest.raises(cs.FileError, match="was changed after it was written"):
        cs.Run.load(tmp_path / "changed.parquet")
    forge(table.drop_columns(["visits"]), tmp_path / "cut.parquet")
    with pytest.raises(cs.FileError, match="is not a complete file of training run"):
        cs.Run.load(tmp_path / "cut.parquet")


# Propositions -------------------------------------------------------------------------------------------------


@fewer(40)
@given(st.data(), st.sampled_from([("zero", "potential"), ("none", "none")]), st.sampled_from([1.0, 0.9]))
def test_shaping_is_initialising_with_the_potential(data, clips, discount):
    """One sequence of samples, equal bonuses: Q under shaping plus phi is Q learned from the initial value phi."""
    states, actions, layers = 3, 2, data.draw(st.sampled_from([1, 2]))
    numbers = st.integers(-20, 20).map(lambda n: n / 10)
    phi = np.zeros((layers + 1, states))
    phi[:layers] = np.array(data.draw(st.lists(numbers, min_size=layers * states, max_size=layers * states))).reshape(
        layers, states
    )
    if layers == 1:
        phi[1] = phi[0]
    nothing = np.zeros_like(phi)
    levels = {"zero": nothing[:layers], "potential": phi[:layers], "none": np.full((layers, states), np.inf)}
    visits, best = np.zeros((layers, states, actions), dtype=np.int64), np.zeros((layers, states), dtype=np.int64)
    shaped = Learned(np.zeros(visits.shape), np.zeros(phi.shape), visits, best)
    started = Learned(np.repeat(phi[:layers, :, None], actions, axis=2), phi.copy(), visits.copy(), best.copy())
    for _ in range(data.draw(st.integers(1, 30))):
        layer = data.draw(st.integers(0, layers - 1))
        below = layer + 1 if layers > 1 else 0
        s, x, after = (data.draw(st.integers(0, size - 1)) for size in (states, actions, states))
        reward, final = data.draw(numbers), data.draw(st.booleans())
        step = Step(layer, below, s, x, reward, after, final, 0, False, final)
        update(*shaped, *Constants(phi, levels[clips[0]], discount, 0.3, 5), step)
        update(*started, *Constants(nothing, levels[clips[1]], discount, 0.3, 5), step)
        np.testing.assert_allclose(shaped[0] + phi[:layers, :, None], started[0], atol=1e-12)


# What the paper reports, and its traps ------------------------------------------------------------------------


def tried(run, often=20):
    """The share of states visited often in which only one action was ever tried."""
    visited = run.visits.sum(axis=1) >= often
    return ((run.visits > 0).sum(axis=1) == 1)[visited].mean()


def test_trap_6_a_bonus_above_zero_locks_the_printed_rule_in():
    """A potential lifted above 0 has a bonus, and the printed rule stays with the first action that it tried."""
    lifted = cs.Potential.zero(EASY).shifted(0.5)
    locked = cs.train(EASY, lifted, learner="q-ucb-shaping", steps=20_000)
    assert tried(locked) > 0.9
    assert (locked.policy == 0).mean() > 0.9  # `up` everywhere, as vanilla Q-UCB
    assert tried(cs.train(EASY, None, learner="q-ucb", steps=20_000)) > 0.9


def test_trap_5_a_clip_below_zero_cuts_true_values_off():
    """With the true V* as potential the printed clip at phi < 0 costs much; the clip at 0 does not."""
    world = cs.load_world("lavacross-easy")
    phi = cs.Potential(world.model.optimum().values, world)

    def regret(**options):
        runs = [cs.train(world, phi, learner="q-ucb-shaping", steps=20_000, seed=s, **options) for s in range(10)]
        return np.mean([run.step_regret[-1] for run in runs])

    assert regret() > 200
    assert regret(clip="zero") < 60


def test_stationary_ceilings_fill_every_step_of_a_table():
    world = cs.load_world("lavacross-easy")
    counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    fixed = cs.value_ceilings(counts, 20, -0.1, stationary=True)
    options = {"learner": "q-ucb-shaping", "steps": 2000, "step_indexed": True}
    run = cs.train(world, fixed, checkpoints=[2000], **options)
    assert run.q_values.shape == (20, 49, 5)
    assert np.array_equal(run.policies[-1], run.policy)


def test_the_discount_counts_in_the_regret():
    world = cs.load_world("lavacross-easy")
    phi = cs.Potential(world.model.optimum(discount=0.5).values, world, discount=0.5)
    run = cs.train(world, phi, learner="q-ucb-shaping", steps=50_000, clip="zero")
    late = run.step_regret[-1] - run.step_regret[-10_000]
    assert late / 10_000 < 1e-3


def test_a_world_without_an_optimum_has_no_regret(tmp_path):
    (tmp_path / "farm.txt").write_text("#####\n#cc.#\n#..G#\n#####")
    farm = cs.load_world(str(tmp_path / "farm.txt"), wind=(0, 0, 0, 0, 1))
    with pytest.raises(CausalShapingError, match="no optimum"):
        farm.model.optimum()
    phi = cs.Potential.zero(farm).shifted(2.0)
    run = cs.train(farm, phi, learner="q-ucb-shaping", steps=500, clip="none")
    assert np.isnan(run.step_regret).all()


# Any environment ----------------------------------------------------------------------------------------------


def test_a_learner_learns_frozen_lake():
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    impatient = cs.Potential.zero(cs.Space(range(16), range(4)), discount=0.9)
    run = cs.train(lake, impatient, learner="q-ucb-shaping", steps=3000, initial=1.0, bonus=0.0, clip="none")
    assert run.returns[-20:-1].mean() == 1.0  # the last episode is cut by the budget
    assert np.isnan(run.step_regret).all()
    assert "regret" not in repr(run)


def test_actions_are_matched_by_label_and_all_must_be_declared():
    options = {"steps": 3000, "horizon": 20, "bonus": 0.0, "clip": "zero"}
    options["learner"] = "q-ucb-shaping"
    turned = cs.Potential(np.zeros(6), cs.Space(range(6), [2, 0, 1]))
    run = cs.train(Walk(), turned, **options)
    assert [turned.space.actions[x] for x in run.policy[:5]] == [2] * 5
    with pytest.raises(CausalShapingError, match="The actions are 1, 2, but Walk takes 0 to 2"):
        cs.train(Walk(), cs.Potential(np.zeros(6), cs.Space(range(6), [1, 2])), **options)
    for actions in ([0, 1, 3], list("ab")):
        with pytest.raises(CausalShapingError, match="but Walk takes 0 to 2"):
            cs.train(Walk(), cs.Potential(np.zeros(6), cs.Space(range(6), actions)), **options)


def test_an_environment_with_a_space_shows_numbers_of_states():
    space = cs.Space(list("abcdef"), list("xyz"), terminal=["f"])
    options = {"learner": "q-ucb-shaping", "horizon": 20}
    run = cs.train(Walk(space=space), cs.Potential.zero(space), steps=200, **options)
    shifted = cs.train(Walk(start=1, space=space), cs.Potential.zero(space), steps=200, **options)
    assert np.array_equal(run.visits, shifted.visits)
    assert run.visits[5].sum() == 0
    no_end = cs.Potential(np.zeros(5), cs.Space(range(5), range(3)))  # where it ends needs no place in the table
    assert cs.train(Walk(), no_end, steps=100, **options).visits.sum() == 100


def test_horizons_of_ones_own_agree_on_both_paths():
    world = cs.load_world("lavacross-easy")
    for horizon in (7, 30):
        options = {"steps": 1500, "horizon": horizon, "seed": 2}
        compiled, played = cs.train(world, **options), cs.train(world, compiled=False, **options)
        assert np.array_equal(compiled.q_values, played.q_values)
        assert compiled.horizon == horizon
    short = gym.make(ENVIRONMENTS["lavacross-easy"], max_episode_steps=5)
    assert cs.train(short, steps=100).horizon == 5


def test_a_clip_below_what_is_earned_is_told():
    with pytest.warns(cs.ShapingWarning, match=r"Episodes earn .* but values are clipped at 0"):
        cs.train(cs.load_world("walking-robot"), steps=5000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cs.train(EASY, initial="magic"), "initial is 'magic'"),
        (lambda: cs.train(EASY, cs.Potential.zero(cs.load_world("walking-robot"))), "The potential is of other states"),
        (lambda: cs.train(EASY, np.zeros(49)), "is no potential"),
        (lambda: cs.train(EASY, CEILINGS, horizon=5), "The ceilings are of 20 steps, but episodes last 5"),
        (lambda: cs.train(cs.ShapeReward(gym.make(ENVIRONMENTS["lavacross-easy"]), PHI), PHI), "without ShapeReward"),
        (lambda: cs.train(EASY, speed=3), r"train takes no speed=\. Did you mean seed=\?"),
        (lambda: cs.train(EASY, bonsu=0.0), r"train takes no bonsu=\. Did you mean bonus=\?"),
        (lambda: cs.train(EASY, learner="posterior", step=9), r"train takes no step=\. Did you mean steps=\?"),
        (
            lambda: cs.train_seeds(EASY, seeds=[0], folder="x", sed=1),
            r"train_seeds takes no sed=\. Did you mean seeds=\?",
        ),
        (lambda: cs.train(EASY, bonus=True), "bonus is True; it must be a number"),
        (lambda: cs.train("lavacross-easy"), "is neither a world nor an environment"),
        (lambda: cs.train(gym.make(ENVIRONMENTS["lavacross-easy"], observation="image")), "are not its states"),
        (lambda: cs.train(EASY, learner="magic"), "There is no learner 'magic'. Learners are posterior, q-ucb"),
        (lambda: cs.train(EASY, steps=0), "steps is 0"),
        (lambda: cs.train(EASY, seed=-1), "seed is -1"),
        (lambda: cs.train(EASY, clip="maybe"), "clip is 'maybe'; use 'horizon' or"),
        (lambda: cs.train(EASY, bonus="big"), "bonus is 'big'.*or a number"),
        (lambda: cs.train(EASY, bonus=-1.0), "bonus is -1.0"),
        (lambda: cs.train(EASY, p=0.0), "p is 0.0"),
        (lambda: cs.train(EASY, cs.Potential(np.zeros((20, 49)), EASY)), "has steps and the learner has not"),
        (lambda: cs.train(EASY, cs.Potential(np.zeros((7, 49)), EASY), step_indexed=True), "has 7 steps, but"),
        (
            lambda: cs.train(gym.make("Pendulum-v1")),
            "only discrete actions are supported. Cut continuous ones into bins",
        ),
        (lambda: cs.train(gym.make("CartPole-v1")), "are not numbers of states: pass ceilings"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, message):
    with pytest.raises(CausalShapingError, match=message):
        make()


EASY = cs.load_world("lavacross-easy")
PHI = cs.Potential.zero(EASY)
CEILINGS = cs.value_ceilings([EASY.model.observe(EASY.demonstrators[name], name) for name in ("good", "bad")], 20, -0.1)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("learner", PRESETS)
def test_a_budget_of_episodes_stops_the_same_run_earlier(compiled, learner):
    world = cs.load_world("lavacross-easy")
    options = {"learner": learner, "seed": 3, "compiled": compiled, "checkpoints": range(50, 1001, 50)}
    whole, part = cs.train(world, steps=1000, **options), cs.train(world, steps=1000, episodes=17, **options)
    assert len(part.returns) == 17
    assert part.steps == whole.episode_end[16]
    assert part.returns.tolist() == whole.returns[:17].tolist()
    assert part.step_regret.tolist() == whole.step_regret[: part.steps].tolist()
    assert part.checkpoints.tolist() == [at for at in range(50, 1001, 50) if at <= part.steps]
    assert (part.policies == whole.policies[: len(part.checkpoints)]).all()
    many = cs.train(world, steps=1000, episodes=10**6, **options)
    assert many.returns.tolist() == whole.returns.tolist()


# The agent's own data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", PRESETS)
@pytest.mark.parametrize("step_indexed", [False, True])
def test_a_run_can_be_recorded_alike_on_both_paths_and_learns_the_same(ceilings, learner, step_indexed):
    world, joint = ceilings["lavacross-easy"]
    options = {"learner": learner, "steps": 700, "seed": 2, "step_indexed": step_indexed}
    plain = cs.train(world, joint, **options)
    recorded = cs.train(world, joint, record=True, **options)
    played = cs.train(world, joint, record=True, compiled=False, **options)
    assert plain.logs is None
    assert np.array_equal(plain.q_values, recorded.q_values)
    assert recorded.checksum == plain.checksum
    logs = recorded.logs
    for name in cs.Logs.COLUMNS:
        np.testing.assert_allclose(getattr(logs, name), getattr(played.logs, name), atol=1e-12, err_msg=name)
    assert (logs.source, len(logs), logs.episodes) == ("agent", 700, len(recorded.returns))
    layer = (logs.step,) if step_indexed else ()
    visits = np.zeros_like(recorded.visits)
    np.add.at(visits, (*layer, logs.state, logs.action), 1)
    assert np.array_equal(visits, recorded.visits)
    returns = np.add.reduceat(logs.reward, np.flatnonzero(logs.step == 0))
    np.testing.assert_allclose(returns, recorded.returns)
    assert logs.truncated[-1] != logs.terminated[-1]


def test_a_recorded_run_that_stops_early_and_one_in_an_environment_have_their_logs():
    run = cs.train(EASY, PHI, learner="q-ucb-shaping", steps=500, episodes=3, record=True)
    assert run.logs.episodes == 3
    assert len(run.logs) == run.steps
    lake = cs.train(gym.make("FrozenLake-v1"), steps=300, clip="none", record=True)
    assert len(lake.logs) == 300
    assert lake.logs.to_pandas()["action"].isin(range(4)).all()
    assert cs.count(lake.logs).n.sum() == 300


def test_a_world_of_ones_own_has_no_environment_to_step_through():
    """It is no walking robot, by whose formulas it would be played."""
    tables = (np.ones((2, 2, 1), dtype=int), np.zeros((2, 2, 1)), [[1.0], [1.0]], [False, True], [1.0, 0.0])
    world = cs.World("mine", "Mine", cs.TabularCMDP(*tables), 1, ("calm",), {})
    assert cs.train(world, steps=10).step_regret[-1] == 0
    with pytest.raises(cs.ArgumentError, match="mine has tables, but no environment: only the compiled learner"):
        cs.train(world, steps=10, compiled=False)


@pytest.fixture(scope="module")
def belief():
    world = cs.load_world("lavacross-easy")
    logs = [world.collect(name, 500) for name in world.demonstrators]
    return {by: cs.posterior(cs.count(logs, step_indexed=by), 20, -0.1) for by in (False, True)}


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (False, {"reward_max": 0.0}, "knows the largest reward: leave reward_max out"),
        (False, {"horizon": 19}, "is of 20 steps, but episodes last 19"),
        (True, {}, "tells steps apart: pass step_indexed=True"),
        (False, {"bonus": 0.0}, "'posterior' has no constants: leave out bonus"),
        (False, {"learner": "q-ucb-shaping"}, "takes a potential: pass posterior.potential"),
        (None, {"learner": "posterior"}, "starts from a posterior, not from a potential"),
    ],
)
def test_what_a_learner_cannot_use_is_refused(belief, given, options, message):
    world = cs.load_world("lavacross-easy")
    known = belief[given] if given is not None else cs.Potential.zero(world.space)
    with pytest.raises(cs.ArgumentError, match=message):
        cs.train(world, known, steps=10, **options)


def test_environments_must_tell_their_length_and_the_posterior_the_largest_reward():
    with pytest.raises(cs.ArgumentError, match=r"has no time limit: pass horizon="):
        cs.train(Walk(), steps=10)
    with pytest.raises(cs.ArgumentError, match=r"Without logs, pass reward_max="):
        cs.train(Walk(), learner="posterior", horizon=5, steps=10)
    other = cs.Potential.zero(cs.Space([7, 8], [0, 1, 2]))
    with pytest.raises(cs.ArgumentError, match="shows 0, which is not one of the learner's states"):
        cs.train(Walk(), other, learner="q-ucb-shaping", horizon=5, steps=10)


def test_worlds_whose_tables_change_from_step_to_step_are_refused():
    steps = np.ones((3, 2, 2, 1), dtype=int)
    model = cs.TabularCMDP(steps, np.zeros(steps.shape), np.ones((3, 2, 1)), [False, True], [1.0, 0.0])
    world = cs.World("mine", "Mine", model, 3, ("calm",), {})
    with pytest.raises(cs.ArgumentError, match="the same at each step"):
        cs.train(world, steps=10)


def sampler_of_states(states):
    model = Model(cs.Space(range(states), range(1)), None, Settings(horizon=2, reward_bound=1.0))
    return sampler_of(model, 10, 0, np.ones((states, 1), dtype=bool), False)


def test_the_sampler_plans_before_the_first_episodes_and_in_one_when_visits_have_doubled():
    sampler, plans = sampler_of_states(2), []
    for h, total in ((0, 0.0), (0, 0.0), (1, 0.0), (1, 1.0), (1, 1.0), (1, 2.0), (0, 2.0)):
        sampler.memory.total[:] = total
        plan_if_needed(sampler, h, 0, 0)
        plans.append(int(sampler.plans[0]))
    assert plans == [1, 2, 2, 3, 3, 4, 5]


@pytest.mark.parametrize(("states", "frequent"), [(400, 500), (200, 1_000), (1, 200_000)])
def test_plans_grow_with_the_logarithm_of_the_episodes_in_small_worlds_later(states, frequent):
    sampler, planned = sampler_of_states(states), [0]
    sampler.memory.total[:] = 1.0
    before_step, _ = step_by_step(sampler)
    for _ in range(16_000):
        before_step(0, 0, 0)
        planned.append(int(sampler.plans[0]))
    assert planned[: frequent + 1] == list(range(min(frequent, 16_000) + 1))
    for n in range(frequent, 8_001, 500):
        assert frequent / 2 - 1 <= planned[2 * n] - planned[n] <= frequent * np.log(2) + 1
