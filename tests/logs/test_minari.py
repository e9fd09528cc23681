"""Minari data sets as logs."""

import json

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError, FileError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


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
    with pytest.raises(CausalShapingError, match=r"Cut it, bins="):
        cs.read_logs(where)
    logs = cs.read_logs(where, bins={"state": cs.Bins(edges=(0.0, 1.0))})
    assert states(logs) == [1, 2, 0, 1]
    assert logs.space.label(np.array([0.3])) == 1


def test_continuous_actions_are_refused_with_what_to_do():
    box = gym.spaces.Box(-1, 1, (1,), np.float32)
    where = foreign(np.array([0, 3, 1, 2]), gym.spaces.Discrete(4), actions=[[0.5], [0.1], [0.2]], action_space=box)
    with pytest.raises(CausalShapingError, match=r"actions must be discrete, but.*Box.*Cut them into bins"):
        cs.read_logs(where)


def test_what_is_not_there_is_refused():
    with pytest.raises(CausalShapingError, match=r"minari:no/such-v0 cannot be read.*minari list local"):
        cs.read_logs("minari:no/such-v0")


# What leads elsewhere, and what was changed -----------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    """A data set, its HDF5 file, and its metadata file."""
    foreign(np.array([0, 3, 1, 2]), gym.spaces.Discrete(4))
    data = tmp_path / "test" / "foreign-v0" / "data"
    return data / "main_data.hdf5", data / "metadata.json"


@pytest.mark.parametrize("where", ["rows", "metadata"])
def test_what_version_0_2_wrote_is_refused_with_what_to_do(written, where):
    rows, metadata = written
    if where == "rows":
        with h5py.File(rows, "r+") as file:
            file.attrs["causal_shaping"] = "0" * 64
    else:
        metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"causal_shaping": "{}"}))
    for use in (cs.count, cs.read_transitions):
        with pytest.raises(FileError, match=r"written by version 0\.2.*save\('logs\.parquet'\)"):
            use("minari:test/foreign-v0")


def external_link(file, tmp_path):
    file["episode_0/rewards"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/rewards")


def soft_link(file, _):
    file["episode_0/rewards"] = h5py.SoftLink("/episode_0/actions")


def virtual(file, tmp_path):
    layout = h5py.VirtualLayout(shape=(3,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.hdf5"), "rewards", shape=(3,))
    file.create_virtual_dataset("episode_0/rewards", layout)


def other_file(file, tmp_path):
    file["episode_0"].create_dataset("rewards", (3,), "f8", external=[(str(tmp_path / "other.raw"), 0, 24)])


def too_large(file, _):
    file["episode_0"].create_dataset("rewards", (10**11,), "f8", chunks=(1024,))


@pytest.mark.parametrize(
    ("replace", "why"),
    [
        (external_link, "is a link"),
        (soft_link, "is a link"),
        (virtual, "lies in other files"),
        (other_file, "lies in other files"),
        (too_large, "far more than the file holds"),
    ],
)
@pytest.mark.parametrize("use", [cs.count, cs.read_transitions])
def test_what_leads_to_other_files_or_declares_too_much_is_refused(written, tmp_path, replace, why, use):
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["rewards"] = np.ones(3)
    (tmp_path / "other.raw").write_bytes(bytes(24))
    with h5py.File(written[0], "r+") as file:
        del file["episode_0/rewards"]
        replace(file, tmp_path)
    with pytest.raises(FileError, match=why):
        use("minari:test/foreign-v0")


def test_no_code_is_run_that_metadata_name(written, tmp_path):
    metadata, touched = written[1], tmp_path / "touched"
    held = json.loads(metadata.read_text())
    del held["observation_space"]
    spec = {"id": "Evil-v0", "entry_point": "pathlib:Path.touch", "kwargs": {"self": str(touched)}}
    metadata.write_text(json.dumps(held | {"env_spec": json.dumps(spec)}))
    with pytest.raises(FileError, match="do not hold the spaces"):
        cs.count("minari:test/foreign-v0")


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", "[]", "{", '{"observation_space": 3}'])
def test_metadata_that_cannot_be_read_are_told(written, text):
    written[1].write_text(text)
    with pytest.raises(FileError, match="minari:test/foreign-v0 cannot be read"):
        cs.count("minari:test/foreign-v0")
