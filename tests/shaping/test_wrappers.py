"""Shaped rewards: the optimal policies stay, returns telescope, and wrappers say what does not fit."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, strategies as st
from models import cmdps, deterministic_policies
from properties import fewer
from side_by_side import compare
from walk import Walk

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, CausalShapingError, ShapingWarning

EASY = cs.load_world("lavacross-easy")
ID = "causal_shaping/LavaCrossEasy-v0"
numbers = st.integers(-20, 20).map(lambda n: n / 10)


def angles(**options):
    """A potential of a pendulum's state."""
    columns = ("cosine", "sine", "speed")
    bins = {name: cs.Bins(edges=(0.0,)) for name in columns}
    space = cs.Space(list(itertools.product(range(2), repeat=3)), ["left", "right"], columns, bins=bins)
    return cs.Potential(np.arange(8.0), space, discount=0.9, **options)


def made_up(world=EASY, horizon=None, seed=0, **options):
    """A potential without meaning."""
    shape = (len(world.states),) if horizon is None else (horizon, len(world.states))
    return cs.Potential(np.random.default_rng(seed).normal(size=shape), world, **options)


# The proposition: potential-based shaping in CMDPs ------------------------------------------------------


def shaped_model(model, phi, horizon, discount, keep_after_end=False):
    """The CMDP whose reward is shaped, written out over steps; `keep_after_end` is the mistake."""
    steps = [phi] * (horizon + 1) if phi.ndim == 1 else [*phi, np.zeros(phi.shape[1])]
    next_state = np.broadcast_to(model.next_state, (horizon, *model.next_state.shape[-3:]))
    reward = np.broadcast_to(model.reward, next_state.shape).copy()
    noise = np.broadcast_to(model.noise, (horizon, *model.noise.shape[-2:]))
    for h in range(horizon):
        after = steps[h + 1] if keep_after_end else np.where(model.terminal, 0.0, steps[h + 1])
        added = discount * after[next_state[h]] - steps[h][:, None, None]
        reward[h] += np.where(model.terminal[:, None, None], 0.0, added)
    return cs.TabularCMDP(next_state, reward, noise, model.terminal, model.start)


def optimal_actions(values):
    return values.q_values >= values.values[..., None] - 1e-9


@given(st.data(), cmdps(states=(1, 3), actions=(1, 3), noises=(1, 2)), st.sampled_from([1.0, 0.8]), st.booleans())
def test_shaping_changes_no_optimal_policy(data, model, discount, step_indexed):
    """With phi_{H+1} = 0: the time limit is an end for a policy that knows the step."""
    horizon, states = 3, len(model.states)
    size = horizon * states if step_indexed else states
    phi = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)))
    steps = phi.reshape(horizon, states) if step_indexed else np.tile(phi, (horizon, 1))
    plain, shaped = model.optimum(horizon, discount), shaped_model(model, steps, horizon, discount)
    best = shaped.optimum(horizon, discount)
    alive = ~model.terminal
    assert np.array_equal(optimal_actions(plain)[:, alive], optimal_actions(best)[:, alive])
    np.testing.assert_allclose((best.values + steps)[:, alive], plain.values[:, alive], atol=1e-9)


def test_keeping_the_potential_after_the_end_changes_the_optimal_policy():
    """So that the test above can fail: a potential of the end makes ending attractive."""
    model = cs.TabularCMDP(  # stay and be paid 0.1 a step, or end
        next_state=[[[0], [1]], [[1], [1]]],
        reward=[[[0.1], [0.0]], [[0.0], [0.0]]],
        noise=[[1.0], [1.0]],
        terminal=[False, True],
        start=[1.0, 0.0],
    )
    phi = np.array([[0.0, 5.0]] * 3)
    for wrong, expected in ((False, False), (True, True)):
        shaped = shaped_model(model, phi, 3, 1.0, keep_after_end=wrong)
        assert optimal_actions(shaped.optimum(3))[1, 0, 1] == expected
    assert not optimal_actions(model.optimum(3))[1, 0, 1]


@given(cmdps(states=(1, 2), actions=(1, 2), noises=(1, 2)), st.data())
@fewer(50)
def test_the_values_of_every_policy_shift_by_the_potential(model, data):
    size = 2 * len(model.states)
    phi = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size))).reshape(2, -1)
    shaped, alive = shaped_model(model, phi, 2, 0.9), ~model.terminal
    for policy in itertools.islice(deterministic_policies(model, 2), 16):
        before = model.evaluate(policy, horizon=2, discount=0.9).values
        after = shaped.evaluate(policy, horizon=2, discount=0.9).values
        np.testing.assert_allclose((after + phi)[:, alive], before[:, alive], atol=1e-9)


# The wrapper --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time_limit", ["bootstrap", "terminal"])
@pytest.mark.parametrize("horizon", [None, 20])
@pytest.mark.parametrize("name", ["LavaCrossEasy", "WindyEmpty"])
def test_each_step_pays_the_formula_and_returns_telescope(time_limit, horizon, name):
    env = gym.make(f"causal_shaping/{name}-v0")
    world = env.unwrapped.world
    phi = made_up(world, None if horizon is None else world.horizon, discount=0.9)
    shaped = cs.ShapeReward(env, phi, time_limit=time_limit)
    rng = np.random.default_rng(0)
    ends = set()
    for episode in range(40):
        state, _ = shaped.reset(seed=episode)
        start, total, plain, earned, factor, h = state, 0.0, 0.0, 0.0, 1.0, 0
        over = False
        while not over:
            before = phi(world.states[state], h)
            state, reward, terminated, truncated, info = shaped.step(rng.integers(5))
            h += 1
            after = phi(world.states[state], h)
            if terminated or (truncated and time_limit == "terminal"):
                after = 0.0
            assert reward == pytest.approx(info["unshaped_reward"] + 0.9 * after - before)
            assert info["shaping"] == pytest.approx(0.9 * after - before)
            total, plain, factor = total + factor * reward, plain + factor * info["unshaped_reward"], factor * 0.9
            earned += info["unshaped_reward"]
            over = terminated or truncated
        ends.add("end" if terminated else "cut")
        assert total - plain == pytest.approx(factor * after - phi(world.states[start], 0))
        assert info["unshaped_return"] == pytest.approx(earned)
    assert ends == {"end", "cut"}


@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("horizon", [None, 20])
@pytest.mark.parametrize("unseen", [None, np.nan])
def test_a_spec_with_a_potential_survives_json(tmp_path, in_file, horizon, unseen):
    phi = made_up(horizon=horizon, unseen=unseen)
    phi.save(tmp_path / "phi.parquet")
    given = tmp_path / "phi.parquet" if in_file else phi
    env = cs.ShapeReward(gym.make(ID), given, time_limit="terminal", discount=1.0)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.potential.checksum == env.potential.checksum
    for one in (env, again):
        one.reset(seed=1)
    assert [env.step(1)[1] for _ in range(3)] == [again.step(1)[1] for _ in range(3)]


def test_a_spec_that_holds_no_potential_is_refused():
    with pytest.raises(CausalShapingError, match="This is not the JSON of a potential: KeyError"):
        cs.ShapeReward(gym.make(ID), {"values": [1.0]})


@pytest.mark.parametrize("in_file", [True, False])
def test_the_spec_of_a_vector_makes_one_that_pays_the_same(tmp_path, in_file):
    phi = made_up(discount=0.9)
    phi.save(tmp_path / "phi.parquet")
    given = tmp_path / "phi.parquet" if in_file else phi
    vector = cs.VectorShapeReward(gym.make_vec(ID, num_envs=2), given, time_limit="terminal")
    again = gym.make_vec(gym.envs.registration.EnvSpec.from_json(vector.spec.to_json()))
    assert again.num_envs == 2
    plain = gym.make_vec(ID, num_envs=2)
    for one in (vector, again, plain):
        one.reset(seed=[1, 2])
    differ = 0
    for action in np.random.default_rng(0).integers(5, size=(60, 2)):
        paid, same, bare = (one.step(action)[1] for one in (vector, again, plain))
        assert paid.tolist() == same.tolist()
        differ += (paid != bare).sum()
    assert differ > 60  # so that the spec without its wrapper fails


def test_states_in_another_order_are_matched_by_label():
    phi = made_up()
    turned = cs.Space(EASY.states[::-1], EASY.actions, EASY.space.columns, terminal=EASY.space.terminal)
    moved = cs.Potential(phi.values[::-1], turned)
    one, other = cs.ShapeReward(gym.make(ID), phi), cs.ShapeReward(gym.make(ID), moved)
    for env in (one, other):
        env.reset(seed=0, options={"state": (1, 1)})
    assert [one.step(3)[1] for _ in range(2)] == [other.step(3)[1] for _ in range(2)]


def test_observations_of_other_environments_become_labels():
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    phi = cs.Potential(np.arange(16.0), cs.Space(range(16), range(4)), discount=0.5)
    env = cs.ShapeReward(lake, phi)
    env.reset(seed=0)
    assert env.step(1)[1] == pytest.approx(0.5 * 4 - 0)
    space = cs.Space(
        [(0, 0), (0, 1), (1, 0), (1, 1)],
        [0, 1],
        ["position", "velocity"],
        bins={"position": cs.Bins(edges=(-0.5,)), "velocity": cs.Bins(edges=(0.0,))},
    )
    phi = cs.Potential([1.0, 2.0, 3.0, 4.0], space)
    observation, value = first_phi(gym.make("MountainCar-v0"), phi)
    assert value == phi((int(observation[0] >= -0.5), int(observation[1] >= 0)))
    image = gym.make(ID, observation="image")
    _, value = first_phi(image, made_up(), label=lambda seen: tuple(np.argwhere(seen[..., 0] == 10)[0].tolist()))
    image.reset(seed=0)
    assert value == made_up()(image.unwrapped.label())


def first_phi(env, potential, seed=0, **options):
    """The first observation, and its phi: all that is taken off an episode which is cut after a step."""
    shaped = cs.ShapeReward(gym.wrappers.TimeLimit(env, 1), potential, time_limit="terminal", **options)
    observation, _ = shaped.reset(seed=seed)
    *_, info = shaped.step(0)
    return observation, -info["shaping"]


def test_a_label_of_ones_own_is_not_cut_into_bins_again():
    space = cs.Space([(0, 1), (1, 1)], [0, 1, 2], ["position", "side"], bins={"position": cs.Bins(edges=(-0.5,))})
    phi = cs.Potential([3.0, 7.0], space)
    cut = space.bins["position"]
    for seed in range(20):
        label = {"label": lambda seen: (int(cut(seen[0])), 1)}
        observation, value = first_phi(gym.make("MountainCar-v0"), phi, seed, **label)
        assert value == (7.0 if observation[0] >= -0.5 else 3.0)


def test_whole_numbers_that_come_as_real_ones_are_labels_and_others_name_their_column():
    space = cs.Space([(0, 6), (1, 6)], ["go"], ["age", "stage"], bins={"age": cs.Bins(edges=(65.0,))})
    assert space.label(np.array([80.0, 6.0], dtype=np.float32)) == (1, 6)
    with pytest.raises(CausalShapingError, match=r"6.5 in column 'stage', which has no bins.*pass label="):
        space.label([80.0, 6.5])


def test_the_first_state_that_the_potential_does_not_know_is_told_once():
    env = cs.ShapeReward(gym.make("FrozenLake-v1", is_slippery=False), cs.Potential([1.0], cs.Space([0], range(4))))
    env.reset(seed=0)
    with pytest.warns(cs.ShapingWarning, match="does not know the state of observation 1") as told:
        env.step(2)
    assert told[0].filename == __file__
    env.step(2)  # a second warning would be an error here


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_vector_warns_of_unknown_states_once_and_not_of_those_that_end_an_episode(mode):
    def lake():
        return gym.make("FrozenLake-v1", is_slippery=False, max_episode_steps=4)

    all_but_one = cs.Space([s for s in range(16) if s not in (1, 5)], range(4))
    phi = cs.Potential(np.ones(14), all_but_one, discount=0.5)
    vector = cs.VectorShapeReward(SyncVectorEnv([lake] * 2, autoreset_mode=mode), phi)
    assert vector.discount == 0.5
    vector.reset(seed=0)
    for action in (1, 2):  # down, then right into the hole 5, where the episode ends: a warning would be an error
        vector.step(np.array([action, 0]))
    vector.reset(seed=0)
    with pytest.warns(cs.ShapingWarning, match="does not know the state of observation (np.int64\\()?1") as told:
        vector.step(np.array([2, 2]))
    assert len(told) == 1
    vector.step(np.array([2, 2]))


def test_mismatches_are_told_by_the_line_that_makes_the_wrapper():
    lake = gym.wrappers.TimeLimit(gym.make("FrozenLake-v1").unwrapped, 14)  # a limit among the wrappers
    for make in (cs.ShapeReward, cs.check_potential):
        with pytest.warns(ShapingWarning, match="The potential has 3 steps, but an episode lasts up to 14"):
            make(lake, cs.Potential(np.zeros((3, 16)), cs.Space(range(16), range(4))))
    small = cs.Space(EASY.states[:10], EASY.actions, EASY.space.columns)
    for make, env in ((cs.ShapeReward, gym.make(ID)), (cs.VectorShapeReward, gym.make_vec(ID, num_envs=2))):
        with pytest.warns(ShapingWarning, match=r"discount of 0.9, but the potential was made for 1") as told:
            make(env, made_up(), discount=0.9)
        with pytest.warns(ShapingWarning, match="does not know 33 of the environment's states") as unknown:
            make(env, cs.Potential(np.zeros(10), small))
        assert [one.filename for one in (*told, *unknown)] == [__file__] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cs.ShapeReward(gym.make(ID), made_up(), time_limit="never"), "time_limit is 'never'"),
        (lambda: cs.ShapeReward(gym.make(ID), 3.0), "3.0 is no potential"),
        (lambda: cs.ShapeReward(gym.make(ID), "none.parquet"), "none.parquet does not exist"),
        (lambda: cs.ShapeReward(gym.make(ID), made_up(cs.load_world("walking-robot"))), "is of other states"),
        (lambda: cs.ShapeReward(gym.make(ID, observation="image"), made_up()), "observations are not its states"),
        (lambda: cs.ShapeReward(gym.make("Pendulum-v1"), made_up()), "cannot be states made of x, y"),
        (
            lambda: cs.ShapeReward(gym.make("Pendulum-v1"), angles(assumptions=("It is a ceiling.",))),
            "discrete actions",
        ),
        (lambda: cs.ShapeReward(gym.make("Pendulum-v1"), angles(), record=True), "discrete actions"),
        (lambda: cs.ShapeReward(gym.make("CartPole-v1"), made_up()), "cannot be states made of x, y"),
        (lambda: cs.ShapeReward(gym.make_vec(ID, num_envs=2), made_up()), "use VectorShapeReward"),
        (lambda: cs.VectorShapeReward(gym.make(ID), made_up()), "use ShapeReward"),
        (lambda: cs.ShapeReward(gym.make(ID), made_up(), discount=2.0), "discount is 2.0"),
        (lambda: cs.ShapeReward(gym.wrappers.Autoreset(gym.make(ID)), made_up()), "inside .*Autoreset"),
    ],
)
def test_what_cannot_be_shaped_is_refused(make, message):
    with pytest.raises(CausalShapingError, match=message):
        make()


def test_numbers_of_states_may_start_anywhere():
    space = cs.Space(list("abcdef"), [0, 1, 2])
    assert first_phi(Walk(start=1, space=space), cs.Potential(np.arange(1.0, 7.0), space))[1] == 1.0


def test_where_an_episode_ends_need_not_be_known():
    phi = cs.Potential(np.arange(5.0) + 1, cs.Space(range(5), [0, 1]), unseen=np.nan)
    assert cs.check_potential(Walk(), phi).terminated == 10
    vector = cs.VectorShapeReward(SyncVectorEnv([Walk] * 2), phi)
    vector.reset(seed=0)
    total = sum(vector.step(np.zeros(2, dtype=int))[1].sum() for _ in range(50))
    assert np.isfinite(total)


def test_environments_in_other_processes_are_matched_by_their_space():
    phi = made_up(discount=0.9)
    vectors = [gym.make_vec(ID, num_envs=2, vectorization_mode=mode) for mode in ("sync", "async")]
    alike = [cs.VectorShapeReward(vector, phi) for vector in vectors]
    try:
        for vector in alike:
            vector.reset(seed=[1, 2])
        actions = np.random.default_rng(0).integers(5, size=(20, 2))
        for action in actions:
            one, other = (vector.step(action)[1] for vector in alike)
            np.testing.assert_allclose(one, other)
    finally:
        for vector in alike:
            vector.close()


def test_observations_of_several_parts_need_a_label_and_work_with_one():
    class Pair(Walk):
        def __init__(self):
            super().__init__()
            self.observation_space = gym.spaces.Dict({"place": gym.spaces.Discrete(6)})

        def reset(self, **options):
            return {"place": super().reset(**options)[0]}, {}

        def step(self, action):
            place, *rest = super().step(action)
            return {"place": place}, *rest

    phi = cs.Potential(np.arange(6.0), cs.Space(range(6), [0, 1]))
    vector = cs.VectorShapeReward(SyncVectorEnv([Pair] * 2), phi, label=lambda seen: int(seen["place"]))
    vector.reset(seed=0)
    assert vector.step(np.zeros(2, dtype=int))[4]["shaping"].shape == (2,)


# Vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step_indexed", [False, True])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.filterwarnings("ignore:.*autoreset.*")
def test_a_vector_shapes_and_records_like_its_parts(mode, step_indexed):
    phi = made_up(horizon=20 if step_indexed else None, discount=0.9)
    vector, parts, _ = compare(lambda: gym.make(ID), lambda: phi, mode)
    alone = [one for part in parts for one in episodes_of(part.logs())]
    assert sorted(episodes_of(vector.logs()), key=str) == sorted(alone, key=str)


def episodes_of(logs):
    """The episodes, each as its rows by label, without its number."""
    frame = logs.to_pandas().drop(columns=["source", "episode"])
    rows = [tuple(row) for row in frame.itertuples(index=False)]
    return [tuple(rows[a:b]) for a, b in itertools.pairwise([*np.flatnonzero(logs.step == 0), len(logs)])]


# The check ----------------------------------------------------------------------------------------------


class ByHand(gym.Wrapper):
    """What people write by hand, right or wrong."""

    def __init__(self, env, phi, after_end):
        super().__init__(env)
        self.phi, self.after_end = phi, after_end

    def reset(self, **options):
        state, info = self.env.reset(**options)
        self.before = self.phi.values[state]
        return state, info

    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        after = self.after_end[state] if terminated else self.phi.values[state]
        shaped = reward + self.phi.discount * after - self.before
        self.before = after
        return state, shaped, terminated, truncated, {**info, "unshaped_reward": reward}


def test_the_check_finds_the_mistake_that_everybody_makes():
    phi, env = made_up(discount=0.9), gym.make(ID)
    found = cs.check_potential(env, phi, episodes=20)
    assert (found.episodes, found.unseen) == (20, 0.0)
    assert found.terminated > 0
    assert found.largest_error < 1e-9
    by_step = cs.check_potential(gym.make(ID), made_up(horizon=EASY.horizon), episodes=20)
    assert (by_step.largest_error < 1e-9, by_step.steps > 20, by_step.kept) == (True, True, 0.0)
    nothing = np.zeros(len(EASY.states))
    assert cs.check_potential(ByHand(env, phi, nothing), phi, episodes=20, shaped=True).steps > 20
    with pytest.raises(ArgumentError, match=r"not telescope: in episode \d+.*Is the potential 0 after termination"):
        cs.check_potential(ByHand(env, phi, nothing + 3.0), phi, episodes=20, shaped=True)
    with pytest.raises(ArgumentError, match="info must hold 'unshaped_reward'"):
        cs.check_potential(env, phi, shaped=True)


def test_the_check_counts_what_the_potential_does_not_know():
    small = cs.Space(EASY.states[:20], EASY.actions, EASY.space.columns)
    with pytest.warns(ShapingWarning):
        found = cs.check_potential(gym.make(ID), cs.Potential(np.zeros(20), small))
    assert 0 < found.unseen < 1


def test_the_check_plays_by_its_seed_and_an_episode_that_it_leaves_is_not_truncated():
    phi = made_up(discount=0.9)
    found = [cs.check_potential(gym.make(ID), phi, episodes=5, seed=seed, most_steps=3) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert (found[0].truncated, found[0].kept) == (0, 0.0)


# What the promise needs -------------------------------------------------------------------------------------------


class Fork(gym.Env):
    """Be paid 1 and go to a poor state, or nothing and go to a rich one, where nothing is paid before the limit."""

    action_space, observation_space = gym.spaces.Discrete(2), gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action):
        paid = 1.0 if self.state == 0 and action == 0 else 0.0
        self.state = (1, 2)[action] if self.state == 0 else self.state
        return self.state, paid, False, False, {}


def best_first_action(env, beyond):
    """The first action of the plan with the highest shaped return, and the value of the last state with it."""
    found = {}
    for plan in itertools.product(range(2), repeat=2):
        observation, _ = env.reset()
        earned = 0.0
        for action in plan:
            observation, reward, *_ = env.step(action)
            earned += reward
        found[plan] = earned + beyond[observation]
    return max(found, key=found.get)[0]


def test_an_agent_of_episodes_is_misled_by_a_potential_that_stays_at_the_time_limit_and_two_things_cure_it():
    fork, space = gym.wrappers.TimeLimit(Fork(), 2), cs.Space(range(3), range(2))
    values, nothing = np.array([0.0, 0.0, 10.0]), np.zeros(3)
    without = cs.Potential(values, space)
    with_steps = cs.Potential([values, values], space)
    assert best_first_action(fork, nothing) == 0
    assert best_first_action(cs.ShapeReward(fork, without), nothing) == 1  # the episode's return: another policy
    assert best_first_action(cs.ShapeReward(fork, without, time_limit="terminal"), nothing) == 0
    assert best_first_action(cs.ShapeReward(fork, with_steps), nothing) == 0
    # For an agent that bootstraps, the value beyond the limit is less by the potential, and nothing changes.
    for beyond in (np.array([0.0, 0.0, 0.5]), np.array([0.0, 0.0, 5.0])):
        plain = best_first_action(fork, beyond)
        assert best_first_action(cs.ShapeReward(fork, without), beyond - values) == plain


def test_the_check_says_for_which_agents_shaping_is_safe():
    fork, space = gym.wrappers.TimeLimit(Fork(), 2), cs.Space(range(3), range(2))
    values = np.array([0.0, 3.0, 10.0])
    kept = cs.check_potential(fork, cs.Potential(values, space))
    assert kept.kept == 10.0
    assert "A potential of up to 10 stayed where episodes were truncated." in kept.summary()
    assert "time_limit='terminal'" in kept.promise
    by_step, without = cs.Potential([values, values], space), cs.Potential(values, space)
    for potential, options in ((by_step, {}), (without, {"time_limit": "terminal"})):
        found = cs.check_potential(fork, potential, **options)
        assert found.kept == 0.0
        assert found.promise.endswith("do not change for an agent that maximises the return of an episode.")


def test_numbers_that_are_labels_are_matched_by_label():
    phi = cs.Potential(np.arange(16.0), cs.Space([*range(3, 16), 0, 1, 2], range(4)), discount=0.9)
    single = cs.ShapeReward(gym.make("FrozenLake-v1"), phi)
    vector = cs.VectorShapeReward(gym.make_vec("FrozenLake-v1", num_envs=2, vectorization_mode="sync"), phi)
    before = phi(single.reset(seed=5)[0])
    vector.reset(seed=[5, 6])
    for action in np.random.default_rng(0).integers(4, size=30).tolist():
        seen, paid, terminated, truncated, info = single.step(action)
        after = 0.0 if terminated else phi(int(seen))
        assert paid == pytest.approx(info["unshaped_reward"] + 0.9 * after - before)
        assert vector.step(np.array([action, 1]))[1][0] == pytest.approx(paid)
        before = after
        if terminated or truncated:
            break


class Doses(Walk):
    """Its actions are the numbers from `start` on; or those of two parts."""

    def __init__(self, actions):
        super().__init__()
        self.action_space = actions

    def step(self, action):
        return super().step(0)


def test_actions_may_start_anywhere_or_have_parts():
    claims = {"kind": "ceiling", "reward_min": -1.0, "reward_max": 1.0, "episode_steps": 9}
    for actions, taken, known in (
        (gym.spaces.Discrete(3, start=4), np.array([5, 4]), range(4, 7)),
        (gym.spaces.MultiDiscrete([2, 3]), np.array([[1, 2], [0, 0]]), range(6)),
    ):
        phi = cs.Potential(np.ones(6), cs.Space(range(6), known), **claims)
        single = cs.ShapeReward(Doses(actions), phi, record=True)
        vector = cs.VectorShapeReward(SyncVectorEnv([lambda actions=actions: Doses(actions)] * 2), phi, record=True)
        for env, action in ((single, taken[0]), (vector, taken)):
            env.reset(seed=0)
            env.step(action)
        first = 1 if known == range(4, 7) else 5
        assert (single.logs().action.tolist(), vector.logs().action.tolist()) == ([first], [first, 0])
