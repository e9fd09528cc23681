"""Logs from Minari data sets, in HDF5, episode by episode (extra `minari`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from causal_shaping._extras import needs_extra
from causal_shaping.errors import CausalShapingError, DataError, FileError
from causal_shaping.storage import InputFile, parse_json

OWN_KEY = "causal_shaping"
"""Where version 0.2 marked the data sets that it wrote, in which states and actions are numbers of labels."""

MAIN_FILE, METADATA_FILE = "main_data.hdf5", "metadata.json"  # of a data set in Minari's format

MAX_RATIO = 1100
"""HDF5 compresses by no more than this; what declares more was not written by it."""
FREE_BYTES = 2**20

WRITTEN_BYTES = 2**25
"""About so many bytes are written at a time, as one row group."""


def minari_table(dataset: str) -> tuple[pa.Table, tuple[str, ...]]:
    """Return a local data set as an Arrow table, and the columns of its state."""
    found, files = _opened(dataset)
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
    return pa.table({name: np.concatenate([piece[name] for piece in pieces]) for name in table}), names


def write_minari(dataset: str, path: Path) -> tuple[int, ...] | None:
    """Write a local data set as Parquet, a part at a time, and return the shape of its observations.

    Observations are flat lists in a column `state`; `next_state` holds the last one of each episode. Where they are no
    arrays nothing is written, and None returned.
    """
    found, files = _opened(dataset)
    space = found.observation_space
    if not isinstance(space, gym.spaces.Box) or space.shape == ():
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


def _opened(dataset: str) -> tuple[Any, list[InputFile]]:
    """Return a local data set and its files."""
    minari = _minari()
    own = False
    try:
        folder = Path(minari.storage.datasets_root_dir.get_dataset_path(dataset)) / "data"
        files = [InputFile.at(folder / name) for name in (METADATA_FILE, MAIN_FILE) if (folder / name).exists()]
        for file in files:
            own |= (_check_hdf5 if file.path.name == MAIN_FILE else _check_metadata)(file)
        found = minari.load_dataset(dataset)
    except Exception as error:  # Minari raises many kinds for a missing or broken data set
        raise FileError(
            f"minari:{dataset} cannot be read: {str(error).rstrip('.')}. Is it on this machine? `minari list local`"
        ) from error
    if own:
        raise FileError(
            f"minari:{dataset} was written by version 0.2, which keeps its labels apart. Turn it into a file with that "
            f"version: causal_shaping.read_logs('minari:{dataset}').save('logs.parquet')."
        )
    return found, files


def _check_metadata(file: InputFile) -> bool:
    """Refuse a data set that says nothing of its spaces: Minari would run code that it names, to find out.

    Return whether version 0.2 wrote it.
    """
    with file.open() as opened:
        held = parse_json(opened.read())
    if not all(isinstance(held.get(name), str) for name in ("observation_space", "action_space")):
        raise DataError("its metadata do not hold the spaces of observations and actions")
    return OWN_KEY in held


def _check_hdf5(file: InputFile) -> bool:
    """Refuse an HDF5 file that leads to other files, or declares more than it can hold.

    Return whether version 0.2 wrote it.
    """
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
        return OWN_KEY in opened.attrs


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
        import minari.storage.datasets_root_dir
    return minari
