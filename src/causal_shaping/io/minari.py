"""Logs from and to Minari data sets, in HDF5, episode by episode (extra `minari`)."""

from __future__ import annotations

import json
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from causal_shaping._extras import needs_extra
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.errors import DataError, FileError
from causal_shaping.io.labels import label_column

METADATA_KEY = "causal_shaping"


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
    metadata = {"source": logs.source, "space": logs.space.to_json(), "metadata": dict(logs.metadata)}
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
    except (ValueError, OSError) as error:
        raise FileError(f"minari:{dataset} cannot be written: {error}") from error


def minari_table(dataset: str) -> tuple[pa.Table, tuple[str, ...], dict[str, Any] | None]:
    """Return a local data set as an Arrow table, the columns of its state, and its metadata if it is ours."""
    minari = _minari()
    try:
        found = minari.load_dataset(dataset)
        text = found.storage.metadata.get(METADATA_KEY)
    except Exception as error:  # Minari raises many kinds for a missing or broken data set
        raise FileError(
            f"minari:{dataset} cannot be read: {error}. Is it on this machine? `minari list local`"
        ) from error
    metadata = json.loads(text) if text else None
    if metadata:
        metadata["space"] = json.loads(metadata["space"])
    pieces: list[dict[str, npt.NDArray[Any]]] = []
    for number, episode in enumerate(found.iterate_episodes()):
        actions, rows = np.asarray(episode.actions), len(episode.rewards)
        if actions.ndim != 1 or not np.issubdtype(actions.dtype, np.integer):
            raise DataError(
                f"minari:{dataset}: actions must be discrete, but the action space is {found.action_space}. Cut them "
                "into bins: write the data set as a table, with a column of bins for the action, and read that."
            )
        parts = _parts(episode.observations, dataset)
        names = ("state",) if len(parts) == 1 else tuple(f"state_{i}" for i in range(len(parts)))
        table = {
            "episode": np.full(rows, number),
            "step": np.arange(rows),
            "action": actions,
            "reward": np.asarray(episode.rewards, dtype=np.float64),
            "terminated": np.asarray(episode.terminations, dtype=bool),
            "truncated": np.asarray(episode.truncations, dtype=bool),
        }
        for name, part in zip(names, parts, strict=True):
            table[name], table[f"next_{name}"] = part[:-1], part[1:]
        pieces.append(table)
    if not pieces:
        raise DataError(f"minari:{dataset} has no episodes.")
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in table}
    if metadata:  # ours: numbers are turned back into labels
        space = Space.from_json(json.dumps(metadata["space"]))
        state, action, after = (joined.pop(name).astype(np.int32) for name in ("state", "action", "next_state"))
        joined |= space.row_columns(state, action, after, label_column)
    return pa.table(joined), names, metadata


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
    return minari
