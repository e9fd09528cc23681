"""Minari data sets in both directions."""

import json

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer
from reference import by_label, counted

import causal_shaping as cs
from causal_shaping.errors import CausalShapingError, FileError
from causal_shaping.io.minari import SEALED, _seal

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


# What leads elsewhere, and what was changed -----------------------------------------------------------------------


@pytest.fixture
def ours(tmp_path):
    """A data set of ours, its HDF5 file, and its metadata file."""
    cs.export_minari(cs.load_world("lavacross-easy").collect("good", 60, seed=1), "test/ours-v0")
    data = tmp_path / "test" / "ours-v0" / "data"
    return data / "main_data.hdf5", data / "metadata.json"


def test_changed_rows_and_metadata_are_refused(ours):
    rows, metadata = ours
    held = metadata.read_text()
    metadata.write_text(held.replace('\\"source\\": \\"good\\"', '\\"source\\": \\"evil\\"'))
    assert metadata.read_text() != held
    with pytest.raises(FileError, match="changed after it was written"):
        cs.count("minari:test/ours-v0")
    metadata.write_text(held)
    with h5py.File(rows, "r+") as file:
        file["episode_0/rewards"][0] += 1.0
    with pytest.raises(FileError, match="changed after it was written"):
        cs.count("minari:test/ours-v0")


def edited(metadata, own=lambda own: json.dumps(own), **changes):
    """Change the metadata of a data set, and what we wrote into them; None removes a key."""
    held = json.loads(metadata.read_text())
    held |= {"causal_shaping": own(json.loads(held["causal_shaping"]))} | changes
    metadata.write_text(json.dumps({key: value for key, value in held.items() if value is not None}))


def without(*names):
    return lambda own: json.dumps({key: value for key, value in own.items() if key not in names})


@pytest.mark.parametrize(
    "own",
    [
        lambda own: None,
        without("seal"),
        without("version"),
        without("space"),
        lambda own: json.dumps(own | {"seal": "0" * 64}),
        lambda own: "{}",
        lambda own: 7,
        lambda own: "[]",
    ],
)
def test_metadata_of_ours_that_are_removed_or_changed_are_missed(ours, own):
    edited(ours[1], own)
    with pytest.raises(FileError, match=r"minari:test/ours-v0 (was changed|cannot be read)"):
        cs.count("minari:test/ours-v0")


@pytest.mark.parametrize("mark", [None, b"0" * 64, b"", "text", np.zeros(3), b"x" * 10_000])
def test_a_mark_that_is_removed_or_changed_is_missed(ours, mark):
    with h5py.File(ours[0], "r+") as file:
        del file.attrs["causal_shaping"]
        if mark is not None:
            file.attrs["causal_shaping"] = np.bytes_(mark) if isinstance(mark, bytes) and mark else mark
    with pytest.raises(FileError, match="changed after it was written"):
        cs.count("minari:test/ours-v0")


def test_rows_of_ours_are_checked_whatever_their_space_is_called(ours):
    box = {"type": "Box", "shape": [1], "dtype": "int64", "low": [0], "high": [99]}
    edited(ours[1], observation_space=json.dumps(box))
    with h5py.File(ours[0], "r+") as file:
        file["episode_0/rewards"][0] += 1.0
    with pytest.raises(FileError, match=r"changed after it was written|cannot be read"):
        cs.read_transitions("minari:test/ours-v0")


def test_a_description_of_one_s_own_does_no_harm(ours):
    edited(ours[1], description="Logs of a ward.", author="A person")
    assert cs.count("minari:test/ours-v0").n.sum() == 60


def unmarked(ours, own):
    """Make a data set of ours one of the first version, with other metadata."""
    edited(ours[1], own)
    with h5py.File(ours[0], "r+") as file:
        del file.attrs["causal_shaping"]


@pytest.mark.parametrize("own", [lambda own: "{}", lambda own: json.dumps({"space": 3}), lambda own: few(own)])
def test_a_data_set_without_a_seal_whose_labels_do_not_fit_is_refused(ours, own):
    unmarked(ours, own)
    with pytest.raises(FileError, match="cannot be read by its labels"):
        cs.count("minari:test/ours-v0")


def few(own):
    """Return our metadata without a seal, and with two labels of states alone."""
    return json.dumps({"source": "s", "metadata": {}, "space": cs.Space([0, 1], range(4)).to_json()})


@pytest.mark.parametrize("missing", [("version",), ("version", "seal")])
def test_data_sets_of_older_versions_have_no_mark_and_perhaps_no_seal(ours, missing):
    logs = cs.read_logs("minari:test/ours-v0")

    def old(own):
        own = {key: value for key, value in own.items() if key not in ("version", "seal")}
        own["seal"] = _seal(own, {name: getattr(logs, name) for name in SEALED})
        return without(*missing)(own)

    unmarked(ours, old)
    assert cs.count("minari:test/ours-v0").n.sum() == 60


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
def test_what_leads_to_other_files_or_declares_too_much_is_refused(ours, tmp_path, replace, why, use):
    with h5py.File(tmp_path / "other.hdf5", "w") as other:
        other["rewards"] = np.ones(3)
    (tmp_path / "other.raw").write_bytes(bytes(24))
    with h5py.File(ours[0], "r+") as file:
        del file["episode_0/rewards"]
        replace(file, tmp_path)
    with pytest.raises(FileError, match=why):
        use("minari:test/ours-v0")


def test_no_code_is_run_that_metadata_name(ours, tmp_path):
    metadata, touched = ours[1], tmp_path / "touched"
    held = json.loads(metadata.read_text())
    del held["observation_space"]
    spec = {"id": "Evil-v0", "entry_point": "pathlib:Path.touch", "kwargs": {"self": str(touched)}}
    metadata.write_text(json.dumps(held | {"env_spec": json.dumps(spec)}))
    with pytest.raises(FileError, match="do not hold the spaces"):
        cs.count("minari:test/ours-v0")


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", "[]", "{", '{"observation_space": 3}'])
def test_metadata_that_cannot_be_read_are_told(ours, text):
    ours[1].write_text(text)
    with pytest.raises(FileError, match="minari:test/ours-v0 cannot be read"):
        cs.count("minari:test/ours-v0")
