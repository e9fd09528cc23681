"""Logs from data sets of Minari, in HDF5, converted episode by episode (extra `minari`)."""

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
from causal_shaping.logs.constants import HDF5_FREE_BYTES, HDF5_RATIO, MINARI_BYTES
from causal_shaping.storage import InputFile, parse_json

OWN_KEY = "causal_shaping"
"""Where version 0.2 marked the data sets that it wrote, whose states and actions are numbers of
labels."""

MAIN_FILE, METADATA_FILE = "main_data.hdf5", "metadata.json"  # of a data set in Minari's format


def write_minari(
    dataset: str, path: Path, whole: bool
) -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """Write a local data set as a Parquet file.

    Returns the columns of the state, and the shapes of those that hold flat lists: with `whole`,
    observations that are arrays are lists in a column `state`; otherwise there is a column for each
    of their numbers.
    """
    found, files = _opened(dataset)
    space = found.observation_space
    whole = whole and isinstance(space, gym.spaces.Box) and space.shape != ()
    state: tuple[str, ...] = ("state",)
    writer: pq.ParquetWriter | None = None
    waiting: list[pa.Table] = []
    try:
        for observations, columns in _episodes(found, dataset):
            if whole:
                columns |= _lists(np.asarray(observations, dtype=space.dtype))
            else:
                state, numbers = _numbers(observations, dataset)
                columns |= numbers
            waiting.append(pa.table(columns))
            if sum(table.nbytes for table in waiting) > MINARI_BYTES:
                writer = _write(waiting, writer, path)
        if waiting:
            writer = _write(waiting, writer, path)
    finally:
        if writer is not None:
            writer.close()
    for file in files:
        file.check_unchanged()
    if writer is None:
        raise DataError(f"minari:{dataset} has no episodes.")
    shapes: dict[str, tuple[int, ...]] = {}
    if whole:
        shapes["state"] = tuple(space.shape)
    return state, shapes


def _write(
    waiting: list[pa.Table], writer: pq.ParquetWriter | None, path: Path
) -> pq.ParquetWriter:
    """Write episodes as one row group, and return the writer."""
    table = pa.concat_tables(waiting)
    waiting.clear()
    writer = writer or pq.ParquetWriter(path, table.schema)
    writer.write_table(table)
    return writer


def _lists(observations: npt.NDArray[Any]) -> dict[str, pa.Array]:
    """Return observations, one more than rows, as flat lists; next states but the last are null."""
    rows, flat = len(observations) - 1, observations.reshape(len(observations), -1)
    kind = pa.large_list(pa.from_numpy_dtype(flat.dtype))
    starts = np.arange(rows + 2) * flat.shape[1]
    lists = pa.LargeListArray.from_arrays(starts, flat.reshape(-1), kind)
    following = pa.concat_arrays([pa.nulls(rows - 1, kind), lists[rows:]])
    return {"state": lists[:rows], "next_state": following}


def _numbers(observations: Any, dataset: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of the columns of a state, and those of states and next states."""
    parts = _parts(observations, dataset)
    names: tuple[str, ...] = ("state",)
    if len(parts) > 1:
        names = tuple(f"state_{i}" for i in range(len(parts)))
    columns = {name: part[:-1] for name, part in zip(names, parts, strict=True)}
    return names, columns | {
        f"next_{name}": part[1:] for name, part in zip(names, parts, strict=True)
    }


def _parts(observations: Any, dataset: str) -> list[npt.NDArray[Any]]:
    """Return the observations of an episode number by number: Tuple and Box hold several."""
    if isinstance(observations, tuple):
        return [part for one in observations for part in _parts(one, dataset)]
    if isinstance(observations, dict):
        raise DataError(
            f"minari:{dataset}: observations are dictionaries. Flatten them into a tuple or a "
            "vector first."
        )
    array = np.asarray(observations)
    flat = array.reshape(len(array), -1)
    return [flat[:, i] for i in range(flat.shape[1])]


def _episodes(found: Any, dataset: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the observations of each episode, one more than it has rows, and the other columns."""
    try:
        for number, episode in enumerate(found.iterate_episodes()):
            actions, rows = np.asarray(episode.actions), len(episode.rewards)
            if actions.ndim != 1 or not np.issubdtype(actions.dtype, np.integer):
                raise DataError(
                    f"minari:{dataset}: actions must be discrete, but the action space is "
                    f"{found.action_space}. Cut them into bins: write it as a table, with a "
                    "column of bins for the action, and read that."
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
    except Exception as error:  # HDF5 and Minari raise many kinds
        raise FileError(
            f"The episodes of minari:{dataset} cannot be read: {error}. Was it changed?"
        ) from error


def _opened(dataset: str) -> tuple[Any, list[InputFile]]:
    """Return a local data set and its files."""
    with needs_extra("Minari data sets", "minari"):
        import minari.storage.datasets_root_dir

        import minari
    own = False
    try:
        folder = Path(minari.storage.datasets_root_dir.get_dataset_path(dataset)) / "data"
        checks = {METADATA_FILE: _check_metadata, MAIN_FILE: _check_hdf5}
        files = [InputFile.at(folder / name) for name in checks if (folder / name).exists()]
        for file in files:
            own |= checks[file.path.name](file)
        found = minari.load_dataset(dataset)
    except Exception as error:  # Minari raises many kinds for a missing or broken data set
        raise FileError(
            f"minari:{dataset} cannot be read: {str(error).rstrip('.')}. Is it on this machine? "
            "`minari list local`"
        ) from error
    if own:
        raise FileError(
            f"minari:{dataset} was written by version 0.2, which keeps its labels apart. Turn it "
            "into a file with that version: "
            f"causal_shaping.read_logs('minari:{dataset}').save('logs.parquet')."
        )
    return found, files


def _check_metadata(file: InputFile) -> bool:
    """Return whether version 0.2 wrote a data set; refuse one that does not say its spaces.

    Without them, Minari would run code that the metadata name.
    """
    with file.open() as opened:
        held = parse_json(opened.read())
    if not all(isinstance(held.get(name), str) for name in ("observation_space", "action_space")):
        raise DataError("its metadata do not hold the spaces of observations and actions")
    return OWN_KEY in held


def _check_hdf5(file: InputFile) -> bool:
    """Return whether version 0.2 wrote an HDF5 file.

    Refuse one that leads to other files, or declares more than it can hold.
    """
    import h5py

    def check(group: Any) -> None:
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise DataError(f"{group.name}/{name} is a link. Write the data set without links")
            held = group[name]
            if isinstance(held, h5py.Group):
                check(held)
                continue
            if held.is_virtual or held.external:
                raise DataError(f"{held.name} lies in other files. Write the data set as one file")
            if held.nbytes > HDF5_RATIO * (held.id.get_storage_size() + HDF5_FREE_BYTES):
                raise DataError(
                    f"{held.name} declares {held.nbytes:,} bytes, far more than the file holds"
                )

    with h5py.File(file.path, "r") as opened:
        check(opened)
        return OWN_KEY in opened.attrs
