"""The Gymnasium environments: MiniGrid's walk against the tables, and the one stream of randomness."""

import copy
import pickle

import forked
import gymnasium as gym
import numpy as np
import pytest
from grid_walks import robot_step, windy_step
from gymnasium.utils.env_checker import check_env
from minigrid.minigrid_env import MiniGridEnv
from models import KINDS

import causal_shaping as cs
from causal_shaping._registration import ENVIRONMENTS
from causal_shaping.errors import CausalShapingError
from causal_shaping.worlds.environments import WorldEnv
from causal_shaping.worlds.simulate import cumulative, pick


def make(name, coins="standing", **arguments):
    options = {} if name == "walking-robot" else {"coins": coins}
    return gym.make(ENVIRONMENTS[name], **options, **arguments)


def test_the_ids_are_those_people_rely_on():
    assert ENVIRONMENTS == {
        "walking-robot": "causal_shaping/WalkingRobot-v0",
        "windy-empty": "causal_shaping/WindyEmpty-v0",
        "lavacross-easy": "causal_shaping/LavaCrossEasy-v0",
        "lavacross-hard": "causal_shaping/LavaCrossHard-v0",
        "lavacross-maze": "causal_shaping/LavaCrossMaze-v0",
        "lavacross-maze-fewer-coins": "causal_shaping/LavaCrossMazeFewerCoins-v0",
    }


# Warnings are errors in this suite.
@pytest.mark.parametrize("arguments", [{}, {"observation": "image"}], ids=str)
@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_check_env_passes_without_a_warning(name, coins, arguments):
    env = make(name, coins, **arguments)
    assert isinstance(env.unwrapped, MiniGridEnv)
    check_env(env.unwrapped)


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_minigrids_walk_agrees_with_the_tables_everywhere(name, coins):
    env = make(name, coins).unwrapped
    world, model = env.world, env.world.model
    walk = robot_step if name == "walking-robot" else windy_step
    env.reset(seed=0)
    for s in np.flatnonzero(~model.terminal):
        for x, action in enumerate(world.actions):
            for u, noise in enumerate(world.noises):
                env.place(world.states[s])
                assert env.state == s
                found = walk(env, action, noise)
                after = model.next_state[s, x, u]
                expected = (world.states[after], model.reward[s, x, u], model.terminal[after])
                assert found == expected, (world.states[s], action, noise)


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_two_environments_of_one_seed_walk_in_step(name, coins):
    one, two = make(name, coins), make(name, coins, render_mode="rgb_array")
    actions = np.random.default_rng(5)
    assert one.reset(seed=9) == two.reset(seed=9)
    for step in range(400):
        action = actions.integers(one.action_space.n)
        result = one.step(action)
        assert result == two.step(action)
        if step % 100 == 0:
            two.render()  # looking changes nothing
        if result[2] or result[3] or step % 200 == 0:  # not even if a reset follows
            assert one.reset() == two.reset()


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_the_stream_is_the_start_and_then_one_uniform_a_step(name, coins):
    """The documented order of draws, replayed on the tables alone."""
    env = make(name, coins)
    world, model = env.unwrapped.world, env.unwrapped.world.model
    noise, start = cumulative(model.noise), cumulative(model.start)
    rng, actions = np.random.default_rng(11), np.random.default_rng(6)
    for episode in range(100):
        state, _ = env.reset(seed=11 if episode == 0 else None)
        s = pick(start, rng.random())
        assert state == s
        for h in range(world.horizon):
            x = int(actions.integers(len(world.actions)))
            u = pick(noise[s], rng.random())
            state, reward, terminated, truncated, _ = env.step(x)
            after = model.next_state[s, x, u]
            assert (state, reward, terminated) == (after, model.reward[s, x, u], model.terminal[after])
            assert truncated == (not terminated and h + 1 == world.horizon)
            s = after
            if terminated or truncated:
                break


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_watching_in_the_environment_gives_the_collected_logs(name, coins):
    env = make(name, coins).unwrapped
    demonstrator = next(iter(env.world.demonstrators))
    rows = 1500
    beta = env.world.demonstrators[demonstrator]
    logs = env.world.collect(beta, rows, seed=3, source="x")
    # collect seeds with the seed and the checksum of the source's name; 0x8cdc1683 is crc32(b"x")
    env.np_random = np.random.default_rng([3, 0x8CDC1683])
    state, _ = env.reset()
    for row in range(rows):
        action, after, reward, terminated, truncated, _ = env.see(demonstrator)
        found = (state, action, reward, after, terminated)
        expected = tuple(getattr(logs, c)[row] for c in ("state", "action", "reward", "next_state", "terminated"))
        assert found == expected
        if row + 1 < rows:
            assert truncated == logs.truncated[row]
        state = env.reset()[0] if terminated or truncated else after


def test_the_noise_is_hidden():
    env = make("lavacross-easy")
    assert env.reset(seed=0)[1] == {}
    assert env.step(4)[4] == {}


def test_images_tell_states_apart_and_nothing_else():
    for name, coins in KINDS:
        env = make(name, coins, observation="image").unwrapped
        env.reset(seed=0)
        world, images = env.world, {}
        for s in np.flatnonzero(~world.model.terminal):
            env.place(world.states[s])
            image = env.observe()
            assert env.observation_space.contains(image)
            images[image.tobytes()] = s
        assert len(images) == (~world.model.terminal).sum()


def test_an_episode_can_be_started_in_a_given_state():
    env = make("lavacross-easy")
    state, _ = env.reset(seed=0, options={"state": (3, 4)})
    assert env.unwrapped.label() == (3, 4)
    assert state == env.unwrapped.space.state_position((3, 4))
    with pytest.raises(CausalShapingError, match="terminal"):
        env.reset(options={"state": (4, 4)})


def test_the_wind_is_that_of_the_given_start():
    env = make("lavacross-maze")
    env.reset(seed=0)
    reached = set()
    for _ in range(20):
        env.reset(options={"state": (7, 5)})
        env.step(1)
        reached.add(env.unwrapped.label())
    assert reached == {(6, 6), (7, 6)}  # only a wind from the east, or none, blows there


def test_environments_can_be_copied_and_pickled():
    env = make("lavacross-maze", "once")
    env.reset(seed=0)
    twins = [env, copy.deepcopy(env), pickle.loads(pickle.dumps(env.unwrapped))]
    assert len({str([twin.step(3)[:4] for _ in range(3)]) for twin in twins}) == 1


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_vector_environments(vectorization):
    envs = gym.make_vec(ENVIRONMENTS["lavacross-easy"], num_envs=2, vectorization_mode=vectorization)
    states, _ = envs.reset(seed=0)
    assert states.shape == (2,)
    envs.step(np.array([4, 4]))
    envs.close()


def test_a_step_after_the_end_is_refused():
    env = make("lavacross-easy", horizon=1)
    env.reset(seed=0)
    assert env.step(4)[3]
    for act in (lambda: env.step(4), lambda: env.unwrapped.see("good")):
        with pytest.raises(gym.error.ResetNeeded, match="call reset"):
            act()


def test_bad_arguments_are_answered_with_an_error():
    with pytest.raises(CausalShapingError, match="observation is 'pixels'"):
        make("lavacross-easy", observation="pixels")
    env = make("lavacross-easy")
    env.reset(seed=0)
    for action, message in ((7, "no action 7"), (2.7, "action is 2.7"), ("3", "action is '3'"), (-1, "action is -1")):
        with pytest.raises(CausalShapingError, match=message):
            env.unwrapped.step(action)
    with pytest.raises(CausalShapingError, match="horizon can be set when a world is loaded"):
        WorldEnv(cs.load_world("lavacross-easy"), horizon=3)
    with pytest.raises(CausalShapingError, match="no demonstrator 'nobody'"):
        env.unwrapped.see("nobody")


def test_a_users_own_map_can_be_played(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("#####\n#.cG#\n#####\n")
    env = gym.make(ENVIRONMENTS["lavacross-easy"], world=str(path), wind=(0, 0, 0, 0, 1))
    env.reset(seed=0, options={"state": (1, 1)})
    assert [env.step(3)[1:3] for _ in range(2)] == [(0.1, False), (-0.1, True)]


@pytest.mark.parametrize(("name", "coins"), KINDS)
def test_pictures_show_the_agent(name, coins):
    env = make(name, coins, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (env.height * env.tile_size, env.width * env.tile_size, 3)
    x, y = (int(i) * env.tile_size + env.tile_size // 2 for i in env.agent_pos)
    red, green, _ = frame[y, x]
    assert red > 100
    assert green < 50


def test_a_window_opens():
    with pytest.warns(UserWarning, match="HumanRendering"):  # Gymnasium's, which shows pictures in a window
        env = make("walking-robot", render_mode="human")
    env.reset(seed=0)
    env.step(0)
    assert env.window.get_size() == (13 * 32, 3 * 32)
    env.close()


WITHOUT_MINIGRID = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("minigrid", "pygame", "matplotlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import gymnasium as gym
import causal_shaping as cs
import causal_shaping.worlds

world = cs.load_world("lavacross-easy")
world.collect("good", 100)
assert cs.train(world, steps=100).steps == 100
for make in (
    lambda: gym.make("causal_shaping/LavaCrossEasy-v0"),
    lambda: gym.make("causal_shaping/WalkingRobot-v0"),
    lambda: cs.train(world, steps=100, compiled=False),
):
    try:
        make()
    except cs.MissingExtraError as error:
        assert error.extra == "worlds"
        print(error)
assert not {"minigrid", "pygame", "matplotlib"} & set(sys.modules)
"""


def test_without_minigrid_worlds_work_and_their_environments_name_the_extra():
    done = forked.run(WITHOUT_MINIGRID, prepared=forked.REQUIRED)
    assert done.returncode == 0, done.stderr
    line = "The worlds as Gymnasium environments need an extra: pip install 'causal-shaping[worlds]'."
    assert done.stdout.splitlines() == [line] * 3


@pytest.mark.parametrize("name", ["lavacross-easy", "walking-robot"])
def test_a_refused_question_takes_no_draw(name):
    """An unknown demonstrator or action leaves the episode as it is: what follows is what would have followed."""
    asked, silent = make(name).unwrapped, make(name).unwrapped
    for env in (asked, silent):
        env.reset(seed=3)
    for refused in (lambda: asked.see("nobody"), lambda: asked.step(99)):
        with pytest.raises(CausalShapingError):
            refused()
    for _ in range(4):
        assert asked.step(0)[:4] == silent.step(0)[:4]
