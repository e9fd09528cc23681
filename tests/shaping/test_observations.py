"""Rewards shaped by potentials of observations: vectors and images, in one environment and in several."""

import copy
import pickle
from dataclasses import dataclass, field

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, TimeLimit, TransformObservation
from side_by_side import compare

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, DataError, ShapingWarning
from causal_shaping.logs.transitions import read_transitions

DISCOUNT = 0.9


class Drift(gym.Env):
    """Two numbers drift with the action; beyond 1 the episode ends."""

    def __init__(self, limit=8, dtype=np.float32):
        self.observation_space = gym.spaces.Box(-3, 3, (2,), dtype)
        self.action_space = gym.spaces.Discrete(2)
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.h = self.np_random.uniform(-0.5, 0.5, 2).astype(self.observation_space.dtype), 0
        return self.state.copy(), {}

    def step(self, action):
        moved = self.state + np.array([0.3 * (2 * action - 1), self.np_random.normal(0, 0.1)])
        self.state, self.h = moved.astype(self.observation_space.dtype), self.h + 1
        ended = bool(abs(self.state[0]) > 1)
        return self.state.copy(), float(self.state[1]), ended, not ended and self.h >= self.limit, {}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Bump(cs.ObservationPotential):
    """A potential without meaning, which counts its calls."""

    calls: list = field(default_factory=list)

    def values(self, observations, h):
        self.calls.append(len(observations))
        flat = np.asarray(observations, dtype=float).reshape(len(observations), -1)
        found, steps = 1 + flat @ np.arange(1, flat.shape[1] + 1), np.broadcast_to(h, len(flat))
        return found if self.horizon is None else np.where(steps < self.horizon, found + 0.1 * steps, 0.0)


def bump(**options):
    return Bump(**{"shape": (2,), "discount": DISCOUNT, "actions": (0, 1), **options})


def play(env, episodes=20, seed=0):
    """Yield each episode: first observation, rows of (observation, reward, terminated, truncated, info)."""
    rng = np.random.default_rng(seed)
    for episode in range(episodes):
        first, _ = env.reset(seed=seed if episode == 0 else None)
        rows = []
        while not rows or not (rows[-1][2] or rows[-1][3]):
            rows.append(env.step(int(rng.integers(2))))
        yield first, rows


# One environment ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("time_limit", ["bootstrap", "terminal"])
@pytest.mark.parametrize("horizon", [None, 8])
def test_discounted_shaped_returns_telescope(time_limit, horizon):
    phi = bump(horizon=horizon)
    ends = set()
    for first, rows in play(cs.ShapeReward(TimeLimit(Drift(), 8), phi, time_limit=time_limit)):
        factors = DISCOUNT ** np.arange(len(rows) + 1)
        difference = sum(f * (row[1] - row[4]["unshaped_reward"]) for f, row in zip(factors, rows, strict=False))
        last, _, terminated, _, info = rows[-1]
        keeps = not terminated and time_limit == "bootstrap"
        end = phi.value(last, len(rows)) if keeps else 0.0
        assert difference == pytest.approx(factors[-1] * end - phi.value(first, 0))
        assert info["unshaped_return"] == pytest.approx(sum(row[4]["unshaped_reward"] for row in rows))
        assert "ceiling_evidence" not in info
        ends.add(terminated)
    assert ends == {True, False}


def test_phi_is_evaluated_once_a_step():
    phi = bump()
    steps = sum(len(rows) + (not rows[-1][2]) for _, rows in play(cs.ShapeReward(Drift(), phi)))
    assert phi.calls == [1] * steps  # the first state, and all that follow but terminal ones


def test_a_ceiling_of_observations_is_not_monitored():
    assert cs.ShapeReward(Drift(), bump(kind="ceiling", reward_min=-1.0)).monitor is None


def test_check_potential_takes_potentials_of_observations():
    found = cs.check_potential(Drift(), bump(), episodes=30)
    assert found.terminated
    assert found.kept > 0
    assert found.unseen == 0


def test_observe_turns_observations_into_what_the_potential_takes():
    shown = gym.spaces.Dict(seen=gym.spaces.Box(-6, 6, (2,)))
    images = TransformObservation(Drift(), lambda seen: {"seen": 2 * seen}, shown)
    given = [row[1] for _, rows in play(cs.ShapeReward(Drift(), bump())) for row in rows]
    through = cs.ShapeReward(images, bump(), observe=lambda seen: seen["seen"] / 2)
    assert [row[1] for _, rows in play(through) for row in rows] == pytest.approx(given)


def test_frames_are_stacked_outside_or_the_last_one_is_observed():
    plain = [row[1] for _, rows in play(cs.ShapeReward(Drift(), bump())) for row in rows]
    outside = FrameStackObservation(cs.ShapeReward(Drift(), bump()), 3)
    inside = cs.ShapeReward(FrameStackObservation(Drift(), 3), bump(), observe=lambda seen: seen[-1])
    for env in (outside, inside):
        assert [row[1] for _, rows in play(env) for row in rows] == plain
        assert env.reset(seed=0)[0].shape == (3, 2)


# What does not fit --------------------------------------------------------------------------------------


def transformed(function, space):
    return TransformObservation(Drift(), function, space)


BYTES = gym.spaces.Box(0, 255, (2,), np.uint8)


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        (FrameStackObservation(Drift(), 3), {}, "stack of 3: shape the reward before frames are stacked"),
        (transformed(lambda seen: seen.astype(np.uint8), BYTES), {}, "of uint8 and shape"),
        (Drift(), {"dtype": "uint8"}, "bytes from 0 to 255"),
        (transformed(lambda seen: {"seen": seen}, gym.spaces.Dict(seen=BYTES)), {}, r"observe=lambda seen: seen\["),
        (Drift(), {"shape": (3,)}, r"shape \(3,\)"),
        (Drift(), {"actions": (0,)}, r"2 actions, 0 among them|1 among them"),
        (gym.make("Pendulum-v1"), {"shape": (3,)}, "only discrete actions"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(env, options, message):
    with pytest.raises(ArgumentError, match=message):
        cs.ShapeReward(env, bump(**options))


def test_what_observe_returns_is_checked():
    env = cs.ShapeReward(Drift(), bump(), observe=lambda seen: seen[:1])
    with pytest.raises(ArgumentError, match=r"What observe= returns does not fit.*shape \(1,\)"):
        env.reset()


def test_label_is_for_states_and_observe_for_observations():
    with pytest.raises(ArgumentError, match="pass observe="):
        cs.ShapeReward(Drift(), bump(), label=tuple)
    table = cs.Potential(np.arange(16.0), cs.Space(range(16), range(4)))
    with pytest.raises(ArgumentError, match="pass label="):
        cs.ShapeReward(gym.make("FrozenLake-v1"), table, observe=int)


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"low": [-0.01, -1], "high": [0.01, 1]}, {}, "another scale"),
        ({"horizon": 5}, {}, "5 steps, but an episode lasts up to 8"),
        ({}, {"discount": 0.5}, "discount of 0.5"),
    ],
)
def test_what_looks_wrong_gives_a_warning_where_the_wrapper_is_made(options, given, message):
    with pytest.warns(ShapingWarning, match=message) as told:
        cs.ShapeReward(TimeLimit(Drift(), 8), bump(**options), **given)
    assert [one.filename for one in told] == [__file__]


# Vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observe", [None, lambda seen: seen + 0])
@pytest.mark.parametrize("time_limit", ["bootstrap", "terminal"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_pays_and_records_what_its_environments_do_alone(mode, time_limit, observe):
    options = {"time_limit": time_limit, "observe": observe}
    vector, parts, ended = compare(lambda: TimeLimit(Drift(), 8), lambda: bump(horizon=8), mode, **options)
    resets = {AutoresetMode.SAME_STEP: ended, AutoresetMode.DISABLED: ended[:-1], AutoresetMode.NEXT_STEP: ended[:0]}
    batches = 1 + len(ended) + resets[mode].any(axis=1).sum()  # not observations: none where all episodes ended
    assert batches - 10 < len(vector.potential.calls) <= batches
    alone = [one for part in parts for one in episodes_of(part.logs())]
    assert sorted(episodes_of(vector.logs()), key=str) == sorted(alone, key=str)


def episodes_of(table):
    """The rows of each episode, without its number."""
    episodes = table["episode"].to_numpy()
    rows = table.drop_columns("episode")
    return [rows.filter(pa.array(episodes == number)).to_pylist() for number in np.unique(episodes)]


# Specs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fit():
    world = cs.load_world("windy-field")
    logs = [world.collect(name, 1000, seed=0) for name in world.demonstrators]
    options = {"reward_max": -0.1, "members": 1, "trees": 2, "atoms": 5}
    return cs.fit_ceilings(logs, state=["x", "y"], horizon=20, **options)


def rewards_of(env):
    return [row[1] for _, rows in play(env, 2) for row in rows]


def windy():
    return gym.make("causal_shaping/WindyField-v0")


@pytest.mark.parametrize("kind", ["ceiling", "mean"])
@pytest.mark.parametrize("step_indexed", [True, False])
def test_a_spec_holds_the_folder_of_a_fit(fit, tmp_path, kind, step_indexed):
    fit.save(tmp_path / "phi")
    loaded = cs.load_potential(tmp_path / "phi", kind=kind, step_indexed=step_indexed)
    for phi in (loaded, fit.potential(kind, step_indexed=step_indexed)):
        env = cs.ShapeReward(windy(), phi)
        again = gym.make(EnvSpec.from_json(env.spec.to_json()))
        assert rewards_of(again) == rewards_of(env)
    assert (loaded.kind, loaded.horizon) == ("guess" if kind == "mean" else "ceiling", 20 if step_indexed else None)


def test_a_folder_is_a_potential(fit, tmp_path):
    fit.save(tmp_path / "phi")
    env = cs.ShapeReward(windy(), tmp_path / "phi")
    assert rewards_of(env) == rewards_of(cs.ShapeReward(windy(), fit.potential()))
    assert rewards_of(gym.make(EnvSpec.from_json(env.spec.to_json()))) == rewards_of(env)


def test_a_fit_must_be_saved_before_a_spec_is_written():
    env = FrameStackObservation(cs.ShapeReward(windy(), bump(actions=range(5))), 2)
    for spec in (env.spec, copy.deepcopy(env.spec), pickle.loads(pickle.dumps(env.spec))):
        with pytest.raises(ArgumentError, match=r"Save the fit first, fitted.save\('folder'\)"):
            spec.to_json()
    assert rewards_of(gym.make(env.spec)) == rewards_of(env)  # in this process it makes the same


def test_only_a_fit_has_kinds(tmp_path):
    cs.Potential.zero(cs.Space(["a"], ["go"])).save(tmp_path / "phi.parquet")
    with pytest.raises(ArgumentError, match="is a file: kind, step_indexed and observe are for fits"):
        cs.load_potential(tmp_path / "phi.parquet", kind="mean")


def test_one_observation_has_the_value_that_it_has_among_many(fit):
    seen = np.random.default_rng(0).uniform(-1, 9, size=(200, 2)).astype(np.float32)
    assert fit.is_beyond(seen).any()
    assert not fit.is_beyond(seen).all()
    for phi in (fit.potential(), fit.potential("mean"), fit.potential(step_indexed=False)):
        for h in (0, 5, 19, 20, 25):
            assert [phi.value(one, h) for one in seen] == phi.values(seen, h).tolist()


# Recording ----------------------------------------------------------------------------------------------


def test_what_an_agent_does_is_one_more_source_of_a_fit(fit):
    env = cs.ShapeReward(windy(), fit.potential(), record=True)
    with pytest.raises(DataError, match="no logs"):
        env.logs()
    total = sum(row[4]["unshaped_reward"] for _, rows in play(env, 30) for row in rows)
    table, world = env.logs("agent"), cs.load_world("windy-field")
    assert table.column_names == world.collect("good", 10).column_names
    assert sum(table["reward"].to_pylist()) == pytest.approx(total)
    assert max(table["episode"].to_pylist()) == 29
    read = read_transitions([world.collect("good", 100), table], state=["x", "y"])
    own = read.rows_of("agent")
    following = read.observations[read.next_state[own]]
    assert np.array_equal(following, np.stack([table["next_x"], table["next_y"]], axis=1))


class Sick(Drift):
    """In the third step the second number is NaN; the episode ends there or not."""

    def __init__(self, ends):
        super().__init__()
        self.ends = ends

    def step(self, action):
        state, reward, _, _, info = super().step(action)
        if self.h == 3:
            state[1], reward = np.nan, 0.0
        return state, reward, self.ends and self.h == 3, False, info


@pytest.mark.parametrize("several", [False, True])
def test_a_potential_of_nan_is_an_error_but_where_nothing_follows(several):
    for ends in (True, False):
        if several:
            env = cs.VectorShapeReward(SyncVectorEnv([Drift, lambda ends=ends: Sick(ends)]), bump())
            actions = np.zeros(2, dtype=int)
        else:
            env, actions = cs.ShapeReward(Sick(ends), bump()), 0
        env.reset(seed=0)
        for _ in range(2):
            env.step(actions)
        if ends:
            assert np.isfinite(env.step(actions)[1]).all()
        else:
            with pytest.raises(DataError, match=r"is NaN: array\(\[[^\]]*nan"):  # that of the sick one
                env.step(actions)
