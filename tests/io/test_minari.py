"""Minari data sets in both directions."""

import gymnasium as gym
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.mark.parametrize(("name", "coins"), [("lavacross-easy", "standing"), ("lavacross-hard", "once")])
def test_logs_survive_minari(name, coins):
    logs = cs.load_world(name, coins=coins).collect("good", 500, seed=1)
    cs.export_minari(logs, "test/good-v0")
    again = cs.read_logs("minari:test/good-v0")
    assert again.checksum == logs.checksum
    assert (again.source, again.metadata) == (logs.source, logs.metadata)
    assert by_label(cs.count("minari:test/good-v0")) == counted(logs)


def test_an_exported_data_set_is_an_ordinary_one():
    logs = cs.load_world("lavacross-easy").collect("good", 200, seed=1)
    cs.export_minari(logs, "test/good-v0", environment="causal_shaping/LavaCrossEasy-v0")
    dataset = minari.load_dataset("test/good-v0")
    assert dataset.total_steps == 200
    assert dataset.total_episodes == logs.episodes
    assert dataset.observation_space == gym.spaces.Discrete(49)
    assert dataset.env_spec.id == "causal_shaping/LavaCrossEasy-v0"
    assert np.concatenate([episode.rewards for episode in dataset]).tolist() == logs.reward.tolist()


def foreign(observations, space, dataset="test/foreign-v0", actions=(0, 1, 1), action_space=None):
    """A data set that we did not write: one episode of three steps."""
    action_space = action_space or gym.spaces.Discrete(2)
    buffer = EpisodeBuffer(
        observations=observations,
        actions=np.array(actions, dtype=action_space.dtype),
        rewards=np.array([0.1, 0.2, 0.3]),
        terminations=np.array([False, False, True]),
        truncations=np.array([False, False, False]),
        infos={},
    )
    minari.create_dataset_from_buffers(
        dataset, [buffer], observation_space=space, action_space=action_space, data_format="hdf5"
    )
    return f"minari:{dataset}"


def states(logs):
    return [logs.space.states[s] for s in (*logs.state, logs.next_state[-1])]


def test_discrete_observations():
    logs = cs.read_logs(foreign(np.array([0, 3, 1, 2]), gym.spaces.Discrete(4)), source="s")
    assert states(logs) == [0, 3, 1, 2]
    assert logs.terminated.tolist() == [False, False, True]
    assert logs.source == "s"


def test_tuples_and_integer_boxes():
    pair = gym.spaces.Tuple([gym.spaces.Discrete(4), gym.spaces.Discrete(2)])
    where = foreign((np.array([0, 3, 1, 2]), np.array([0, 1, 0, 1])), pair)
    assert states(cs.read_logs(where)) == [(0, 0), (3, 1), (1, 0), (2, 1)]
    box = gym.spaces.Box(0, 9, (2,), np.int64)
    where = foreign(np.array([[0, 0], [3, 1], [1, 0], [2, 1]]), box, "test/box-v0")
    assert states(cs.read_logs(where)) == [(0, 0), (3, 1), (1, 0), (2, 1)]


def test_boxes_of_floats_need_bins():
    box = gym.spaces.Box(-1, 5, (1,), np.float64)
    where = foreign(np.array([[0.2], [1.7], [-0.5], [0.9]]), box)
    with pytest.raises(CausalShapingError, match=r"Cut it: bins="):
        cs.read_logs(where)
    logs = cs.read_logs(where, bins={"state": cs.Bins(edges=(0.0, 1.0))})
    assert states(logs) == [1, 2, 0, 1]
    assert logs.space.label(np.array([0.3])) == 1


def test_continuous_actions_are_refused_with_what_to_do():
    box = gym.spaces.Box(-1, 1, (1,), np.float32)
    where = foreign(np.array([0, 3, 1, 2]), gym.spaces.Discrete(4), actions=[[0.5], [0.1], [0.2]], action_space=box)
    with pytest.raises(CausalShapingError, match=r"actions must be discrete, but.*Box.*Cut them into bins"):
        cs.read_logs(where)


def test_what_cannot_be_read_or_written_is_refused():
    with pytest.raises(CausalShapingError, match=r"minari:no/such-v0 cannot be read.*minari list local"):
        cs.read_logs("minari:no/such-v0")
    space = cs.Space([0, 1], [0])
    open_end = cs.Logs(space, "s", [0], [0], [0], [0], [1.0], [-1], [False], [False])
    with pytest.raises(CausalShapingError, match="no last observation"):
        cs.export_minari(open_end, "test/x-v0")
    logs = cs.load_world("walking-robot").collect("competent", 30)
    cs.export_minari(logs, "test/x-v0")
    with pytest.raises(CausalShapingError, match="cannot be written"):
        cs.export_minari(logs, "test/x-v0")
