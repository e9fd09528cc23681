"""What every stage hands to the next: frozen, validated, no input or output.

- `Space`: the states and actions, their labels and their order; `Bins`: how real numbers become labels.
- `Logs`: the trajectories of one source.
- `Counts`: the sufficient statistics of the logs of one or several sources.

States and actions are labels for people and files, and positions in the `Space` inside arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.errors import DataError, UnknownNameError

Label: TypeAlias = int | str | tuple[int | str, ...]
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int32]
LongArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

UNKNOWN = -1
"""The position that stands for a next state that the log does not hold."""

MAX_REWARDS = 64
"""Rewards of a source are told apart, as part of the outcome, if they take no more values than this."""

ROW_COLUMNS = ("source", "episode", "step", "action", "reward", "terminated", "truncated")
"""The columns of a log row beside those of its state and next state."""

NEXT = "next_"
"""What the column of a next state has in front of the column of the state."""


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike, what: str = "an array") -> npt.NDArray[Any]:
    """Return `values` as a contiguous array of `dtype` that nobody can write to.

    An array that is read-only already is taken as it is; anything else is copied. Numbers must survive the change of
    type: 1.5 is no integer, 2 no boolean.

    Raises:
        DataError: names `what` and the first entry that does not fit.
    """
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} is not a table: its rows have different lengths.") from error
    if given.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold {np.dtype(dtype).name} numbers, but holds {_sample(given)}.")
    if given.dtype == dtype and given.flags.c_contiguous and _is_read_only(given):
        return given
    with np.errstate(invalid="ignore", over="ignore"):
        result = np.array(given, dtype=dtype, order="C")
    if result.dtype.kind != "f" and given.dtype != result.dtype and not np.array_equal(result, given):
        raise DataError(f"{what} must hold {result.dtype.name} numbers, but holds {_sample(given[result != given])}.")
    result.flags.writeable = False
    return result


def _is_read_only(array: Any) -> bool:
    """Whether nobody holds a writable view of an array's memory, as far as NumPy knows."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return True


def _sample(values: npt.NDArray[Any]) -> str:
    return (
        repr(values.flat[0].item() if hasattr(values.flat[0], "item") else values.flat[0]) if values.size else "nothing"
    )


def checksum_of(text: str, arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return a SHA-256 of a text and of arrays, the same on every machine."""
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).data)
    return digest.hexdigest()


def groups(key: Sequence[npt.NDArray[Any]]) -> tuple[LongArray, LongArray]:
    """Return the order that sorts rows by a key of several columns, and where in it each distinct key begins."""
    order = np.lexsort(key[::-1])
    begins = np.zeros(len(order), dtype=bool)
    begins[:1] = True
    for column in key:
        begins[1:] |= column[order][1:] != column[order][:-1]
    return order, np.flatnonzero(begins)


def plain(label: Any) -> Label:
    """Return a label in plain Python: integers, strings, and tuples of them."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (bool, np.bool_, int, np.integer)) and abs(int(label)) < 2**63:
        return int(label)
    if isinstance(label, (tuple, list)) and len(label) > 1:
        parts = tuple(plain(part) for part in label)
        if not any(isinstance(part, tuple) for part in parts):
            return parts  # type: ignore[return-value]
    raise DataError(
        f"{label!r} cannot be a label. Use an integer, a string, or a tuple of two or more of them; "
        "bin real numbers first."
    )


def _labels(kind: str, labels: Iterable[Any]) -> tuple[Label, ...]:
    if isinstance(labels, str):
        raise DataError(f"{kind} is the string {labels!r}. Give a list of labels.")
    result = tuple(plain(label) for label in labels)
    if not result:
        raise DataError(f"The space has no {kind}. Give at least one.")
    seen: set[Label] = set()
    for label in result:
        if label in seen:
            raise DataError(f"The {kind} hold {label!r} twice. Each label must stand for one thing.")
        seen.add(label)
    return result


@dataclass(frozen=True)
class Bins:
    """How a column of real numbers becomes labels 0, 1, 2, ...: by cut points, or by quantiles of the logs.

    A number belongs to bin i if exactly i edges are at or below it.

    Args:
        edges: rising cut points.
        quantiles: in place of edges, how many bins of equal mass to cut the logs into; the edges are found when
            the logs are read, and are part of their space from then on.

    Examples:
        >>> Bins(edges=(0.0, 1.5))([-3.0, 0.0, 1.0, 9.0]).tolist()
        [0, 1, 1, 2]
        >>> Bins(quantiles=2).found([1.0, 2.0, 3.0, 4.0]).edges
        (2.5,)
    """

    edges: tuple[float, ...] = ()
    quantiles: int | None = None

    def __post_init__(self) -> None:
        edges = tuple(float(edge) for edge in self.edges)
        object.__setattr__(self, "edges", edges)
        if bool(edges) == (self.quantiles is not None):
            raise DataError("Bins need either edges=(...) or quantiles=N.")
        if self.quantiles is not None and self.quantiles < 2:
            raise DataError(f"quantiles is {self.quantiles}; it takes at least 2 bins to tell numbers apart.")
        if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise DataError(f"The edges of bins must be finite and rise, but are {edges}.")

    def found(self, values: npt.ArrayLike) -> Bins:
        """Return these bins with edges; quantiles are taken of the values, equal ones once."""
        if self.quantiles is None:
            return self
        cuts = np.quantile(np.asarray(values, dtype=np.float64), np.arange(1, self.quantiles) / self.quantiles)
        return Bins(edges=tuple(np.unique(cuts)))

    def __call__(self, values: npt.ArrayLike) -> LongArray:
        """Return the bin of each number."""
        if self.quantiles is not None:
            raise DataError("These bins wait for the logs that they take quantiles of: call found() first.")
        numbers = np.asarray(values, dtype=np.float64)
        if np.isnan(numbers).any():
            raise DataError("A number to be binned is NaN.")
        return np.asarray(np.searchsorted(self.edges, numbers, side="right"), dtype=np.int64)


@dataclass(frozen=True, init=False)
class Space:
    """The declared states and actions: labels, their order, and the columns that make a state label.

    Two spaces with the same labels in another order describe the same thing; what is stored by label
    moves from one to the other with `Space.positions`.

    Attributes:
        states: labels in table order, each an integer, a string, or a tuple of them.
        actions: names in table order, integers or strings.
        columns: the log columns that make a state label, one per part of it. By default `state`, or
            `state_0`, `state_1`, ... for tuples.
        bins: the columns that hold real numbers, and the bins that turn them into parts of a label.
        terminal: the states that are known to end an episode, whether logs show it or not.

    Examples:
        >>> space = Space(states=[(1, 1), (2, 1)], actions=["left", "right"], columns=("x", "y"))
        >>> space.state_position((2, 1))
        1
        >>> Space.from_json(space.to_json()) == space
        True
    """

    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...] = ()
    bins: Mapping[str, Bins] = field(default_factory=dict, hash=False)
    terminal: frozenset[Label] = frozenset()

    def __init__(
        self,
        states: Iterable[Any],
        actions: Iterable[Any],
        columns: Sequence[str] = (),
        bins: Mapping[str, Bins] | None = None,
        terminal: Iterable[Any] = (),
    ) -> None:
        states, actions = _labels("states", states), _labels("actions", actions)
        widths = {len(label) if isinstance(label, tuple) else 1 for label in states}
        if len(widths) > 1:
            raise DataError(f"State labels have {sorted(widths)} parts; all must have the same number.")
        (width,) = widths
        if isinstance(columns, str):
            raise DataError(f"columns is the string {columns!r}. Give a list of names.")
        columns = tuple(columns) or (("state",) if width == 1 else tuple(f"state_{i}" for i in range(width)))
        if len(columns) != width:
            raise DataError(f"State labels have {width} part(s), but columns names {len(columns)}: {columns}.")
        # Engines take names that differ in case alone for one.
        names = [name.lower() for name in (*ROW_COLUMNS, *columns, *self.next_columns_of(columns))]
        for name in columns:
            if not name or names.count(name.lower()) > 1:
                raise DataError(
                    f"A state column cannot be called {name!r}: the name is empty, used twice, or taken by "
                    f"another column of a log row ({', '.join(ROW_COLUMNS)}, {NEXT}...)."
                )
        for name, cut in (bins or {}).items():
            if name not in columns or cut.quantiles is not None:
                raise DataError(f"Bins of {name!r} need edges and a state column of that name; there are {columns}.")
        for label in actions:
            if isinstance(label, tuple):
                raise DataError(f"Action {label!r} is a tuple. Name actions by an integer or a string.")
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "bins", dict(bins or {}))
        object.__setattr__(self, "terminal", frozenset(plain(label) for label in terminal))
        for label in self.terminal:
            self.state_position(label)  # or an error that names it

    @staticmethod
    def next_columns_of(columns: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the columns that hold the next state's label."""
        return tuple(NEXT + column for column in columns)

    @property
    def next_columns(self) -> tuple[str, ...]:
        """The log columns that make the label of the next state."""
        return self.next_columns_of(self.columns)

    @cached_property
    def _state_positions(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.states)}

    @cached_property
    def _action_positions(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.actions)}

    def state_position(self, label: Any) -> int:
        """Return the position of a state in the tables."""
        return _position("state", self._state_positions, label)

    def action_position(self, label: Any) -> int:
        """Return the position of an action in the tables."""
        return _position("action", self._action_positions, label)

    def positions(self, other: Space) -> tuple[IntArray, IntArray]:
        """Return where the states and the actions of `other` stand in this space."""
        return (
            np.array([self.state_position(label) for label in other.states], dtype=np.int32),
            np.array([self.action_position(label) for label in other.actions], dtype=np.int32),
        )

    def label(self, observation: Any) -> Label:
        """Return the label of a live observation: one value, or one per column; real numbers go into their bins.

        The label need not be one of `states`: an agent can meet a state that no log holds.
        """
        parts = np.ravel(np.asarray(observation, dtype=object)).tolist()
        if len(parts) != len(self.columns):
            raise DataError(
                f"The observation {observation!r} has {len(parts)} part(s), but a state of this space has "
                f"{len(self.columns)}: {', '.join(self.columns)}."
            )
        cut = [
            int(self.bins[name](part)) if name in self.bins else self._whole(name, part)
            for name, part in zip(self.columns, parts, strict=True)
        ]
        return plain(cut[0] if len(cut) == 1 else tuple(cut))

    @staticmethod
    def _whole(column: str, part: Any) -> Any:
        """Return a part of an observation that is no bin: a whole number that came as a real one is that number."""
        if isinstance(part, (float, np.floating)):
            if not float(part).is_integer():
                raise DataError(
                    f"The observation has {part!r} in column {column!r}, which has no bins. Cut it when the logs are "
                    f"read, bins={{{column!r}: Bins(...)}}, or pass label=, a function from observations to labels."
                )
            return int(part)
        return part

    def merge(self, other: Space) -> Space:
        """Return a space that holds the labels of both: this one's order, then what the other adds."""
        if self == other:
            return self
        if self.columns != other.columns:
            raise DataError(
                "Two spaces cannot be merged: their states are made of different columns "
                f"({', '.join(self.columns)} against {', '.join(other.columns)})."
            )
        if self.bins != other.bins:
            names = [name for name in self.columns if self.bins.get(name) != other.bins.get(name)]
            raise DataError(
                f"Two spaces cannot be merged: {', '.join(names)} is cut into different bins. Quantiles differ from "
                "file to file: read the others with the bins of the first one, bins=first.space.bins, or give edges."
            )
        return Space(
            dict.fromkeys((*self.states, *other.states)),
            dict.fromkeys((*self.actions, *other.actions)),
            self.columns,
            self.bins,
            self.terminal | other.terminal,
        )

    @property
    def is_terminal(self) -> BoolArray:
        """Whether a state is known to end an episode: bool [states]."""
        return np.array([label in self.terminal for label in self.states])

    def to_json(self) -> str:
        """Return the space as JSON, for the metadata of a file."""
        bins = {name: cut.edges for name, cut in self.bins.items()}
        content: dict[str, Any] = {
            "states": self.states,
            "actions": self.actions,
            "columns": self.columns,
            "bins": bins,
        }
        if self.terminal:
            content["terminal"] = tuple(label for label in self.states if label in self.terminal)
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Return the space that `to_json` wrote."""
        try:
            content = json.loads(text)
            bins = {name: Bins(edges=edges) for name, edges in content["bins"].items()}
            terminal = [tuple(label) if isinstance(label, list) else label for label in content.get("terminal", ())]
            return cls(content["states"], content["actions"], content["columns"], bins, terminal)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"This is not the JSON of a space: {error!r}.") from error

    def __repr__(self) -> str:
        columns = ", ".join(self.columns)
        return f"Space({len(self.states)} states by ({columns}), actions {_shortened(self.actions)})"


def _position(kind: str, positions: Mapping[Label, int], label: Any) -> int:
    known = plain(label)
    if known not in positions:
        raise UnknownNameError(f"There is no {kind} {label!r}. The {kind}s are {_shortened(positions)}.")
    return positions[known]


def _shortened(labels: Iterable[Label], most: int = 8) -> str:
    names = [str(label) for label in labels]
    return ", ".join(names if len(names) <= most else [*names[: most - 1], f"... ({len(names)} in all)"])


class _Table:
    """Columns of one length, and the words to refuse the first bad row with."""

    def _where(self, row: int) -> str:
        raise NotImplementedError

    def _refuse(self, bad: BoolArray, why: str, values: npt.NDArray[Any]) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"{self._where(row)}: {why}; found {values[row]}.")

    def _check_positions(self, name: str, low: int, high: int) -> None:
        values = getattr(self, name)
        self._refuse((values < low) | (values >= high), f"{name} must be in {low} .. {high - 1}", values)

    def _check_terminal(self) -> None:
        columns: Any = self
        terminal = np.append(columns.space.is_terminal, False)  # and UNKNOWN is not
        self._refuse(terminal[columns.state], "the space says that the state is terminal: it ends there", columns.state)
        goes_on = terminal[columns.next_state] & ~columns.terminated
        self._refuse(goes_on, "the space says that the next state is terminal, but it goes on", columns.next_state)


@dataclass(frozen=True, eq=False, repr=False)
class Logs(_Table):
    """The trajectories of one source, row by row, ordered by episode and step.

    Arrays have one entry a row; states and actions are positions in `space`. The next state of a row is
    the state of the episode's next row. `UNKNOWN` as next state says that the log does not hold it: with
    `terminated` the episode ended, without it the outcome is unknown and nothing is proven by the row but
    that the action was taken.

    Attributes:
        space: the states and actions.
        source: the name of the logs' origin.
        episode: int64 [rows], rising.
        step: int32 [rows], 0, 1, 2, ... within an episode.
        state: int32 [rows].
        action: int32 [rows].
        reward: float64 [rows], finite.
        next_state: int32 [rows], or `UNKNOWN`.
        terminated: bool [rows], the world ended the episode: nothing can follow.
        truncated: bool [rows], the episode was cut, by a time limit or the end of the recording.
        metadata: where the logs come from (world, demonstrator, seed, ...), strings.
    """

    space: Space
    source: str
    episode: LongArray
    step: IntArray
    state: IntArray
    action: IntArray
    reward: FloatArray
    next_state: IntArray
    terminated: BoolArray
    truncated: BoolArray
    metadata: Mapping[str, str] = field(default_factory=dict)

    COLUMNS = MappingProxyType(
        {
            "episode": np.int64,
            "step": np.int32,
            "state": np.int32,
            "action": np.int32,
            "reward": np.float64,
            "next_state": np.int32,
            "terminated": np.bool_,
            "truncated": np.bool_,
        }
    )

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source:
            raise DataError(f"Logs need the name of their source, such as 'ward-3', but got {self.source!r}.")
        for name, dtype in self.COLUMNS.items():
            what = f"Source {self.source!r}, column {name}"
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, what))
        object.__setattr__(self, "metadata", {str(key): str(value) for key, value in self.metadata.items()})
        self._check_columns()
        self._check_episodes()

    def _check_columns(self) -> None:
        shapes = {name: getattr(self, name).shape for name in self.COLUMNS}
        if len(set(shapes.values())) > 1 or len(self.episode.shape) != 1:
            raise DataError(f"Source {self.source!r}: columns must be of one length, but have {shapes}.")
        if len(self) == 0:
            raise DataError(f"Source {self.source!r} has no rows.")
        self._check_positions("state", 0, len(self.space.states))
        self._check_positions("action", 0, len(self.space.actions))
        self._check_positions("next_state", UNKNOWN, len(self.space.states))
        self._check_terminal()
        self._refuse(~np.isfinite(self.reward), "the reward is not finite", self.reward)

    def _check_episodes(self) -> None:
        goes_on = np.zeros(len(self), dtype=bool)  # the row goes on the episode of the row before
        np.equal(self.episode[1:], self.episode[:-1], out=goes_on[1:])
        self._refuse(
            ~goes_on & (self.step != 0),
            "an episode must begin with step 0 (rows are ordered by episode and step)",
            self.step,
        )
        self._refuse(
            goes_on & (np.diff(self.step, prepend=self.step[0]) != 1),
            "the steps of an episode must be 0, 1, 2, ... without a gap or a repetition",
            self.step,
        )
        self._refuse(
            ~goes_on & (np.diff(self.episode, prepend=self.episode[0] - 1) <= 0),
            "episode numbers must rise, each standing for one episode",
            self.episode,
        )
        before = np.roll(self.terminated | self.truncated, 1)
        self._refuse(goes_on & before, "the episode goes on after it was terminated or truncated", self.step)
        self._refuse(
            goes_on & (np.roll(self.next_state, 1) != self.state),
            "the state is not the next state of the row before",
            self.state,
        )

    def _where(self, row: int) -> str:
        return f"Source {self.source!r}, row {row} (episode {self.episode[row]}, step {self.step[row]})"

    def __len__(self) -> int:
        return len(self.episode)

    @cached_property
    def episodes(self) -> int:
        """The number of episodes."""
        return int(np.count_nonzero(self.step == 0))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the rows and the space: equal exactly if the logs are equal."""
        return checksum_of(self.space.to_json(), [getattr(self, name) for name in self.COLUMNS])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the logs to a Parquet file; see `causal_shaping.logs.write_logs`."""
        from causal_shaping.logs import write_logs  # the one step to the right: a method people look for

        write_logs(self, path)

    def __repr__(self) -> str:
        return f"Logs(source={self.source!r}, {len(self):,} steps in {self.episodes:,} episodes, {self.space!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Counts(_Table):
    """What the logs of one or several sources show, counted per distinct outcome.

    One entry per (source, [step,] state, action, next state, terminated) and, for a source whose
    rewards take few values, reward. Entries are brought into the order of that key. `UNKNOWN` as next
    state means what it means in `Logs`.

    Attributes:
        space: the states and actions.
        sources: the sources' names.
        discrete_rewards: per source, whether the reward is part of the key. If so, `reward_min` and
            `reward_max` of an entry are both that reward.
        source: int32 [entries], position in `sources`.
        step: int32 [entries], or None where steps are pooled.
        state: int32 [entries].
        action: int32 [entries].
        next_state: int32 [entries], or `UNKNOWN`.
        terminated: bool [entries].
        n: float64 [entries], how often: whole numbers, or masses if `population`.
        reward_sum: float64 [entries].
        reward_min: float64 [entries].
        reward_max: float64 [entries].
        population: the entries are exact masses of a known model, not a sample.
    """

    space: Space
    sources: tuple[str, ...]
    discrete_rewards: tuple[bool, ...]
    source: IntArray
    step: IntArray | None
    state: IntArray
    action: IntArray
    next_state: IntArray
    terminated: BoolArray
    n: FloatArray
    reward_sum: FloatArray
    reward_min: FloatArray
    reward_max: FloatArray
    population: bool = False

    COLUMNS = MappingProxyType(
        {
            "source": np.int32,
            "step": np.int32,
            "state": np.int32,
            "action": np.int32,
            "next_state": np.int32,
            "terminated": np.bool_,
            "n": np.float64,
            "reward_sum": np.float64,
            "reward_min": np.float64,
            "reward_max": np.float64,
        }
    )
    KEY = ("source", "step", "state", "action", "next_state", "terminated", "reward_min")

    @classmethod
    def combined(
        cls,
        space: Space,
        sources: Sequence[str],
        discrete_rewards: Sequence[bool],
        columns: Mapping[str, npt.ArrayLike | None],
        *,
        population: bool = False,
        max_rewards: int = MAX_REWARDS,
    ) -> Counts:
        """Return counts of rows that may repeat: equal outcomes are added up.

        Args:
            space: the states and actions.
            sources: the sources' names.
            discrete_rewards: per source, whether each row has one reward (`reward_min` is `reward_max`). The reward
                then becomes part of the key, unless the source has more than `max_rewards` distinct ones.
            columns: those of `COLUMNS`; step may be None.
            population: whether `n` are masses of a known model.
            max_rewards: the most distinct rewards that are told apart.
        """
        table: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(columns[name], dtype) for name, dtype in cls.COLUMNS.items() if columns[name] is not None
        }
        table["reward_min"] = table["reward_min"] + 0.0  # -0 and 0 are one reward
        table["reward_max"] = table["reward_max"] + 0.0
        discrete = np.array(discrete_rewards, dtype=bool)
        for i in np.flatnonzero(discrete):
            discrete[i] = len(np.unique(table["reward_min"][table["source"] == i])) <= max_rewards
        in_key = discrete[table["source"]]
        reward = np.where(in_key, table["reward_min"], 0.0)
        key = [reward if name == "reward_min" else table[name] for name in cls.KEY if name in table]
        order, first = groups(key)

        def grouped(how: np.ufunc, name: str) -> npt.NDArray[Any]:
            return np.asarray(how.reduceat(table[name][order], first)) if len(first) else table[name]

        result: dict[str, Any] = {name: column[order][first] for name, column in table.items()}
        result["n"] = grouped(np.add, "n")
        result["reward_min"], result["reward_max"] = (
            grouped(np.minimum, "reward_min"),
            grouped(np.maximum, "reward_max"),
        )
        sums = grouped(np.add, "reward_sum")
        result["reward_sum"] = np.where(in_key[order][first], result["n"] * result["reward_min"], sums)
        result.setdefault("step", None)
        return cls(space, tuple(sources), tuple(discrete), **result, population=population)

    def merge(self, *others: Counts, max_rewards: int = MAX_REWARDS) -> Counts:
        """Return these counts and others as one: by label and source, added up where they overlap.

        Merging is associative: parts of a source may come in any grouping. Counts are exact; sums of rewards that
        are not part of the key depend on the order in the last bits.
        """
        parts = (self, *others)
        if len({part.step_indexed for part in parts}) > 1:
            raise DataError("Counts by step and counts with steps pooled cannot be merged. Count again in one way.")
        if len({part.population for part in parts}) > 1:
            raise DataError("Population masses and counts of a sample cannot be merged: their n mean different things.")
        space = self.space
        for part in others:
            space = space.merge(part.space)
        sources = tuple(dict.fromkeys(name for part in parts for name in part.sources))
        if self.population and len(sources) < sum(len(part.sources) for part in parts):
            raise DataError("Two population counts have a source in common: their masses would count twice.")
        discrete = [
            all(
                flag
                for part in parts
                for held, flag in zip(part.sources, part.discrete_rewards, strict=True)
                if held == name
            )
            for name in sources
        ]
        moved = [part._moved(space, sources) for part in parts]
        columns = {
            name: None if name == "step" and not self.step_indexed else np.concatenate([part[name] for part in moved])
            for name in self.COLUMNS
        }
        return self.combined(space, sources, discrete, columns, population=self.population, max_rewards=max_rewards)

    def to_space(self, space: Space) -> Counts:
        """Return the same counts with states and actions in the order of another space that holds their labels."""
        columns = self._moved(space, self.sources)
        return Counts(space, self.sources, self.discrete_rewards, **columns, population=self.population)

    def _moved(self, space: Space, sources: Sequence[str]) -> dict[str, Any]:
        states, actions = space.positions(self.space)
        columns = {name: getattr(self, name) for name in self.COLUMNS}
        columns["source"] = np.array([sources.index(name) for name in self.sources])[self.source]
        columns["state"], columns["action"] = states[self.state], actions[self.action]
        columns["next_state"] = np.append(states, UNKNOWN)[self.next_state]  # UNKNOWN is the last position
        return columns

    def __post_init__(self) -> None:
        given: Any = self.sources
        if isinstance(given, str):
            raise DataError(f"sources is the string {given!r}. Give a list of names.")
        object.__setattr__(self, "sources", tuple(str(name) for name in self.sources))
        object.__setattr__(self, "discrete_rewards", tuple(bool(flag) for flag in self.discrete_rewards))
        if not self.sources or not all(self.sources) or len(set(self.sources)) < len(self.sources):
            raise DataError(f"Counts need distinct, non-empty source names, but have {self.sources}.")
        if len(self.discrete_rewards) != len(self.sources):
            raise DataError(f"discrete_rewards has {len(self.discrete_rewards)} flags for {len(self.sources)} sources.")
        columns = {
            name: frozen(getattr(self, name), dtype, f"Counts, column {name}")
            for name, dtype in self.COLUMNS.items()
            if getattr(self, name) is not None
        }
        shapes = {name: column.shape for name, column in columns.items()}
        if len(set(shapes.values())) > 1 or columns["n"].ndim != 1:
            raise DataError(f"The columns of counts must be of one length, but have {shapes}.")
        order = np.lexsort([columns[name] for name in reversed(self.KEY) if name in columns])
        for name, column in columns.items():
            object.__setattr__(self, name, frozen(column[order], column.dtype))
        self._check()

    def _check(self) -> None:
        self._check_positions("source", 0, len(self.sources))
        if self.step is not None:
            self._check_positions("step", 0, np.iinfo(np.int32).max)
        self._check_positions("state", 0, len(self.space.states))
        self._check_positions("action", 0, len(self.space.actions))
        self._check_positions("next_state", UNKNOWN, len(self.space.states))
        self._check_terminal()
        self._refuse(~(np.isfinite(self.n) & (self.n > 0)), "n must be positive and finite", self.n)
        if not self.population:
            self._refuse(self.n != np.floor(self.n), "n of a sample must be a whole number", self.n)
        for name in ("reward_sum", "reward_min", "reward_max"):
            values = getattr(self, name)
            self._refuse(~np.isfinite(values), f"{name} must be finite", values)
        # A sum of n rewards may round away from n times their mean.
        slack = 1e-9 * self.n * (1.0 + np.maximum(np.abs(self.reward_min), np.abs(self.reward_max)))
        outside = (self.reward_sum < self.n * self.reward_min - slack) | (
            self.reward_sum > self.n * self.reward_max + slack
        )
        self._refuse(outside, "the mean reward lies outside reward_min .. reward_max", self.reward_sum)
        in_key = np.array(self.discrete_rewards)[self.source]
        self._refuse(
            in_key & (self.reward_min != self.reward_max),
            "the source has the reward in the key, but reward_min is not reward_max",
            self.reward_max,
        )
        repeats = np.ones(len(self), dtype=bool)
        repeats[:1] = False
        for name in self.KEY:
            values = getattr(self, name)
            if values is not None:
                same = values[1:] == values[:-1]
                repeats[1:] &= (same | ~in_key[1:]) if name == "reward_min" else same
        self._refuse(repeats, "the same outcome stands in two entries; add them up", self.n)

    def _where(self, entry: int) -> str:
        step = "" if self.step is None else f", step {self.step[entry]}"
        return (
            f"Counts, entry {entry} (source {self.source[entry]}{step}, state {self.state[entry]}, "
            f"action {self.action[entry]}, next state {self.next_state[entry]})"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a Parquet file; `causal_shaping.read_counts` reads it back."""
        from causal_shaping.logs import write_counts  # as for logs

        write_counts(self, path)

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the entries and the space: equal exactly if the counts are equal."""
        about = [self.space.to_json(), self.sources, self.discrete_rewards, self.population]
        columns = (getattr(self, name) for name in self.COLUMNS)
        return checksum_of(json.dumps(about), [column for column in columns if column is not None])

    @property
    def outcome_known(self) -> BoolArray:
        """Whether an entry proves an outcome, a next state or an end: bool [entries]."""
        return np.asarray((self.next_state != UNKNOWN) | self.terminated)

    @property
    def step_indexed(self) -> bool:
        """Whether the entries are kept apart by step."""
        return self.step is not None

    def __repr__(self) -> str:
        kind = "population masses" if self.population else f"{self.n.sum():,.0f} steps"
        steps = "by step" if self.step_indexed else "steps pooled"
        return f"Counts({len(self):,} entries, {kind} of {', '.join(self.sources)}, {steps}, {self.space!r})"
