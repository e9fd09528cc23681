"""Logs from and to Minari data sets, in HDF5, episode by episode (extra `minari`)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping._extras import needs_extra
from causal_shaping.data.arrays import checksum_of
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.errors import CausalShapingError, DataError, FileError
from causal_shaping.io.inputs import InputFile, parse_json
from causal_shaping.io.labels import label_column

METADATA_KEY = "causal_shaping"
VERSION = 2
"""Of what we add to a data set; the first had no mark in its HDF5 file."""
MAIN_FILE, METADATA_FILE = "main_data.hdf5", "metadata.json"  # of a data set in Minari's format

CHANGED = "was changed after it was written: its checksum does not fit."

SEALED = ("step", "state", "action", "reward", "next_state", "terminated", "truncated")
"""The columns of our own data sets that their checksum is of."""

MAX_RATIO = 1100
"""HDF5 compresses by no more than this; what declares more was not written by it."""
FREE_BYTES = 2**20

WRITTEN_BYTES = 2**25
"""About so many bytes are written at a time, as one row group."""


def export_minari(logs: Logs, dataset: str, *, environment: str | None = None, description: str | None = None) -> None:
    """Write logs as a local Minari data set.

    Observations are state numbers, `Discrete`; their labels travel in the data set's metadata, so that
    `read_logs("minari:...")` gives back the same logs.

    Args:
        logs: every episode must end with a known next state, since Minari keeps the last observation.
        dataset: the name, such as "ward/clinicians-v0".
        environment: the id of the Gymnasium environment that the logs come from.
        description: a text for people.
    """
    minari = _minari()
    lost = logs.episode[logs.next_state == UNKNOWN]
    if len(lost):
        raise DataError(f"Episode {lost[0]} of {logs.source!r} has no last observation, which Minari needs. Drop it.")
    first = np.flatnonzero(logs.step == 0)
    buffers = [
        minari.data_collector.EpisodeBuffer(
            id=number,
            observations=np.append(logs.state[begin:end], logs.next_state[end - 1]).astype(np.int64),
            actions=logs.action[begin:end].astype(np.int64),
            rewards=logs.reward[begin:end],
            terminations=logs.terminated[begin:end],
            truncations=logs.truncated[begin:end],
            infos={},
        )
        for number, (begin, end) in enumerate(zip(first, [*first[1:], len(logs)], strict=True))
    ]
    metadata = {
        "version": VERSION,
        "source": logs.source,
        "space": logs.space.to_json(),
        "metadata": dict(logs.metadata),
    }
    seal = metadata["seal"] = _seal(metadata, {name: getattr(logs, name) for name in SEALED})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # advice for those who publish a data set
            made = minari.create_dataset_from_buffers(
                dataset_id=dataset,
                buffer=buffers,
                env=environment,
                observation_space=gym.spaces.Discrete(len(logs.space.states)),
                action_space=gym.spaces.Discrete(len(logs.space.actions)),
                algorithm_name=logs.source,
                description=description or f"Logs of {logs.source}.",
                data_format="hdf5",
            )
        made.storage.update_metadata({METADATA_KEY: json.dumps(metadata)})
        _mark(_folder(minari, dataset) / MAIN_FILE, seal)
    except (ValueError, OSError) as error:
        raise FileError(f"minari:{dataset} cannot be written: {error}") from error


def minari_table(dataset: str) -> tuple[pa.Table, tuple[str, ...], dict[str, Any] | None]:
    """Return a local data set as an Arrow table, the columns of its state, and its metadata if it is ours."""
    found, metadata, files = _opened(dataset)
    pieces: list[dict[str, npt.NDArray[Any]]] = []
    for observations, table in _episodes(found, dataset):
        parts = _parts(observations, dataset)
        names = ("state",) if len(parts) == 1 else tuple(f"state_{i}" for i in range(len(parts)))
        for name, part in zip(names, parts, strict=True):
            table[name], table[f"next_{name}"] = part[:-1], part[1:]
        pieces.append(table)
    for file in files:
        file.check_unchanged()
    if not pieces:
        raise DataError(f"minari:{dataset} has no episodes.")
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in table}
    if metadata is not None:  # ours: numbers are turned back into labels
        if metadata.pop("seal", None) not in (None, _seal(metadata, joined) if "state" in joined else None):
            raise FileError(f"minari:{dataset} {CHANGED}")
        try:
            space = Space.from_json(metadata["space"])
            metadata = {**metadata, "space": json.loads(metadata["space"])}
            state, action, after = (joined.pop(name).astype(np.int32) for name in ("state", "action", "next_state"))
            for held, labels in ((state, space.states), (action, space.actions), (after, space.states)):
                if held.min() < 0 or held.max() >= len(labels):
                    raise DataError(f"there are {len(labels)} labels, but numbers from {held.min()} to {held.max()}")
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise FileError(f"minari:{dataset} cannot be read by its labels: {error}. Was it changed?") from error
        joined |= space.row_columns(state, action, after, label_column)
    return pa.table(joined), names, metadata


def write_minari(dataset: str, path: Path) -> tuple[int, ...] | None:
    """Write a local data set as Parquet, a part at a time, and return the shape of its observations.

    Observations are flat lists in a column `state`; `next_state` holds the last one of each episode. Where they are no
    arrays nothing is written, and None returned.
    """
    found, metadata, files = _opened(dataset)
    space = found.observation_space
    if metadata is not None or not isinstance(space, gym.spaces.Box) or space.shape == ():
        return None
    lists = pa.large_list(pa.from_numpy_dtype(space.dtype))
    writer: pq.ParquetWriter | None = None
    held: list[pa.Table] = []

    def write() -> None:
        nonlocal writer
        table = pa.concat_tables(held)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        held.clear()

    for observations, columns in _episodes(found, dataset):
        rows, flat = len(columns["step"]), np.asarray(observations, dtype=space.dtype).reshape(len(observations), -1)
        size = flat.shape[1]
        listed = pa.LargeListArray.from_arrays(np.arange(rows + 2) * size, flat.reshape(-1), lists)
        after = pa.concat_arrays([pa.nulls(rows - 1, lists), listed[rows:]])
        held.append(pa.table(columns | {"state": listed[:rows], "next_state": after}))
        if sum(table.nbytes for table in held) > WRITTEN_BYTES:
            write()
    for file in files:
        file.check_unchanged()
    if held:
        write()
    if writer is None:
        raise DataError(f"minari:{dataset} has no episodes.")
    writer.close()
    return tuple(space.shape)


def _opened(dataset: str) -> tuple[Any, dict[str, Any] | None, list[InputFile]]:
    """Return a local data set, what we wrote into its metadata, and its files."""
    minari = _minari()
    mark = None
    try:
        folder = _folder(minari, dataset)
        files = [InputFile.at(folder / name) for name in (METADATA_FILE, MAIN_FILE) if (folder / name).exists()]
        for file in files:
            if file.path.name == MAIN_FILE:
                mark = _check_hdf5(file)
            else:
                _check_metadata(file)
        found = minari.load_dataset(dataset)
        text = found.storage.metadata.get(METADATA_KEY)
    except Exception as error:  # Minari raises many kinds for a missing or broken data set
        raise FileError(
            f"minari:{dataset} cannot be read: {str(error).rstrip('.')}. Is it on this machine? `minari list local`"
        ) from error
    return found, _own_metadata(text, mark, dataset), files


def _folder(minari: Any, dataset: str) -> Path:
    return Path(minari.storage.datasets_root_dir.get_dataset_path(dataset)) / "data"


def _check_metadata(file: InputFile) -> None:
    """Refuse a data set that says nothing of its spaces: Minari would run code that it names, to find out."""
    with file.open() as opened:
        held = parse_json(opened.read())
    if not all(isinstance(held.get(name), str) for name in ("observation_space", "action_space")):
        raise DataError("its metadata do not hold the spaces of observations and actions")


def _mark(path: Path, seal: str) -> None:
    """Write a seal into an HDF5 file, too: what is removed from one of two files is missed by the other."""
    import h5py

    with h5py.File(path, "r+") as file:
        file.attrs[METADATA_KEY] = np.bytes_(seal)


def _check_hdf5(file: InputFile) -> str | None:
    """Refuse an HDF5 file that leads to other files, or declares more than it can hold; return the seal in it."""
    import h5py

    def check(group: Any) -> None:
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, h5py.HardLink):
                raise DataError(f"{group.name}/{name} is a link. Write the data set without links")
            held = group[name]
            if isinstance(held, h5py.Group):
                check(held)
                continue
            if held.is_virtual or held.external:
                raise DataError(f"{held.name} lies in other files. Write the data set as one file")
            if held.nbytes > MAX_RATIO * (held.id.get_storage_size() + FREE_BYTES):
                raise DataError(f"{held.name} declares {held.nbytes:,} bytes, far more than the file holds")

    with h5py.File(file.path, "r") as opened:
        check(opened)
        if METADATA_KEY not in opened.attrs:
            return None
        held = opened.attrs.get_id(METADATA_KEY)
        fits = held.shape == () and held.dtype.kind == "S" and held.dtype.itemsize < FREE_BYTES
        return opened.attrs[METADATA_KEY].decode("latin-1") if fits else ""


def _own_metadata(text: Any, mark: str | None, dataset: str) -> dict[str, Any] | None:
    """Return what we wrote into the metadata of a data set, None if it is not ours; it has the seal of the rows."""
    if text is None and mark is None:
        return None
    try:
        metadata = parse_json(text or "{}")
    except (ValueError, TypeError) as error:
        raise FileError(f"The metadata of minari:{dataset} cannot be read: {error}. Were they changed?") from error
    if (mark is not None or "version" in metadata) and mark != metadata.get("seal"):
        raise FileError(f"minari:{dataset} {CHANGED}")
    return metadata


def _seal(metadata: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a SHA-256 of the rows of logs, and of what is known of them."""
    arrays: list[npt.NDArray[Any]] = [np.asarray(columns[name], Logs.COLUMNS[name]) for name in SEALED]
    return checksum_of(json.dumps(dict(metadata), sort_keys=True), arrays)


def _episodes(found: Any, dataset: str) -> Iterator[tuple[Any, dict[str, npt.NDArray[Any]]]]:
    """Yield the observations of each episode, one more than it has rows, and the other columns."""
    try:
        for number, episode in enumerate(found.iterate_episodes()):
            actions, rows = np.asarray(episode.actions), len(episode.rewards)
            if actions.ndim != 1 or not np.issubdtype(actions.dtype, np.integer):
                raise DataError(
                    f"minari:{dataset}: actions must be discrete, but the action space is {found.action_space}. Cut "
                    "them into bins: write it as a table, with a column of bins for the action, and read that."
                )
            yield (
                episode.observations,
                {
                    "episode": np.full(rows, number),
                    "step": np.arange(rows),
                    "action": actions,
                    "reward": np.asarray(episode.rewards, dtype=np.float64),
                    "terminated": np.asarray(episode.terminations, dtype=bool),
                    "truncated": np.asarray(episode.truncations, dtype=bool),
                },
            )
    except CausalShapingError:
        raise
    except Exception as error:  # HDF5 and Minari have many kinds
        raise FileError(f"The episodes of minari:{dataset} cannot be read: {error}. Was it changed?") from error


def _parts(observations: Any, dataset: str) -> list[npt.NDArray[Any]]:
    """Return the observations of an episode part by part: one for Discrete, several for Tuple and Box."""
    if isinstance(observations, tuple):
        return [part for one in observations for part in _parts(one, dataset)]
    if isinstance(observations, dict):
        raise DataError(
            f"minari:{dataset}: observations are dictionaries. Flatten them into a tuple or a vector first."
        )
    array = np.asarray(observations)
    flat = array.reshape(len(array), -1)
    return [flat[:, i] for i in range(flat.shape[1])]


def _minari() -> Any:
    with needs_extra("Minari data sets", "minari"):
        import minari
        import minari.data_collector
        import minari.storage.datasets_root_dir
    return minari
