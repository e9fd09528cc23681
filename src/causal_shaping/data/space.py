"""The states and actions: their labels and their order, and how real numbers become labels.

- `Space`: what an agent and a log agree on; `Bins`: cut points of a column of real numbers.
- `plain`: a label in plain Python; `plain_column`: labels as a column of a table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import MOST_BINS, check_integer, check_line
from causal_shaping.data.arrays import BoolArray, IntArray, LongArray
from causal_shaping.errors import ArgumentError, DataError, UnknownNameError

Label: TypeAlias = int | str | tuple[int | str, ...]

MakeColumn: TypeAlias = Callable[[str, Sequence[Any], IntArray], Any]
"""Makes a column of a table of its name, of labels, and of each row's position among them."""

Admissible: TypeAlias = Mapping[Any, Iterable[Any]] | Callable[[Label, Label], bool] | Any
"""Which actions exist in a state, as a user may give it; see `Space.restricted`."""

ROW_COLUMNS = ("source", "episode", "step", "action", "reward", "terminated", "truncated")
"""The columns of a log row beside those of its state and next state."""

UNKNOWN = -1
"""The position of a label that is not in a space, or not in a log: the last entry of an array."""

NEXT = "next_"
"""The prefix that makes the column of a next state from that of the state."""

SHOWN_LABELS = 8
"""Labels in one line of text: more are cut off."""

_PLAIN = frozenset((int, str, np.int32, np.int64))
"""Types whose values equal a label only if they mean it; 1.0 and True equal 1, too."""


def plain(label: Any) -> Label:
    """Return a label in plain Python: integers, strings, and tuples of them."""
    if isinstance(label, str):
        return check_line("The label", str(label))
    if isinstance(label, (bool, np.bool_, int, np.integer)) and abs(int(label)) < 2**63:
        return int(label)
    if isinstance(label, (tuple, list)) and len(label) > 1:
        parts = tuple(plain(part) for part in label)
        if not any(isinstance(part, tuple) for part in parts):
            return parts  # type: ignore[return-value]
    raise DataError(
        f"{label!r} cannot be a label. Use an integer, a string, or a tuple of two or more of "
        "them; bin real numbers first."
    )


def plain_column(name: str, labels: Sequence[Any], where: IntArray) -> npt.NDArray[Any]:
    """Return the labels at some positions as integers, or as objects with None for `UNKNOWN`."""
    values = np.array([*labels, None], dtype=object)[where]  # UNKNOWN is the last position
    whole = all(isinstance(value, int) for value in values)
    return values.astype(np.int64) if whole else values


def shortened(labels: Iterable[Label], most: int = SHOWN_LABELS) -> str:
    """Return labels, or names, as text: only the first of them if there are many."""
    names = [str(label) for label in labels]
    if len(names) > most:
        names[most - 1 :] = [f"... ({len(names)} in all)"]
    return ", ".join(names)


@dataclass(frozen=True, kw_only=True)
class Bins:
    """How a column of real numbers becomes labels 0, 1, 2, ...: by cut points, or by quantiles.

    A number belongs to bin i if exactly i edges are at or below it.

    Args:
        edges: rising cut points.
        quantiles: in place of edges, how many bins of equal mass to cut the logs into; the edges
            are computed when the logs are read, and are part of their space from then on.

    Examples:
        >>> Bins(edges=(0.0, 1.5))([-3.0, 0.0, 1.0, 9.0]).tolist()
        [0, 1, 1, 2]
        >>> Bins(quantiles=2).fit([1.0, 2.0, 3.0, 4.0]).edges
        (2.5,)
    """

    edges: tuple[float, ...] = ()
    quantiles: int | None = None

    def __post_init__(self) -> None:
        edges = tuple(float(edge) for edge in self.edges)
        object.__setattr__(self, "edges", edges)
        if bool(edges) == (self.quantiles is not None):
            raise ArgumentError("Bins need either edges=(...) or quantiles=N.")
        if self.quantiles is not None:
            check_integer("quantiles", self.quantiles, least=2, most=MOST_BINS)
        if len(edges) >= MOST_BINS:
            most = f"a column can be cut into {MOST_BINS} bins at most"
            raise ArgumentError(f"There are {len(edges):,} edges; {most}.")
        if not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ArgumentError(f"The edges of bins must be finite and rise, but are {edges}.")

    def fit(self, values: npt.ArrayLike) -> Bins:
        """Return these bins with edges: quantiles are those of the values, equal ones once."""
        if self.quantiles is None:
            return self
        shares = np.arange(1, self.quantiles) / self.quantiles
        return Bins(edges=tuple(np.unique(np.quantile(np.asarray(values, np.float64), shares))))

    def __call__(self, values: npt.ArrayLike) -> LongArray:
        """Return the bin of each number."""
        if self.quantiles is not None:
            raise ArgumentError(
                "These bins are quantiles of logs and have no edges yet: call fit() first."
            )
        numbers = np.asarray(values, dtype=np.float64)
        if np.isnan(numbers).any():
            raise DataError("A number to be binned is NaN.")
        return np.asarray(np.searchsorted(self.edges, numbers, side="right"), dtype=np.int64)


@dataclass(frozen=True, init=False)
class Space:
    """The declared states and actions: labels, their order, and the columns of a state's label.

    Two spaces with the same labels in another order describe the same thing; what is stored by
    label moves from one to the other with `Space.positions`.

    Attributes:
        states: labels in table order, each an integer, a string, or a tuple of them.
        actions: names in table order, integers or strings.
        columns: the log columns that make a state label, one per part of it; by default `state`, or
            `state_0`, ...
        bins: by column of real numbers, the bins that turn them into parts of a label.
        terminal: the states that are known to end an episode, whether logs show it or not.
        missing: by column in which a value may be missing, the part of a label that stands for it.
        complete: no other states exist. True for a list that somebody declared, False for one that
            was read off logs: an agent can meet a state that no log holds.
        admissible: the actions that exist in a state, by state; all exist in a state that it leaves
            out.
        reward_bins: the bins into which rewards of many values are cut; None where each reward is
            kept as it is.

    Examples:
        >>> space = Space(states=[(1, 1), (2, 1)], actions=["left", "right"], columns=("x", "y"))
        >>> space.state_position((2, 1))
        1
        >>> Space.from_plain(space.as_plain()) == space
        True
    """

    states: tuple[Label, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...] = ()
    bins: Mapping[str, Bins] = field(default_factory=dict, hash=False)
    terminal: frozenset[Label] = frozenset()
    missing: Mapping[str, int | str] = field(default_factory=dict, hash=False)
    complete: bool = True
    admissible: Mapping[Label, frozenset[Label]] = field(default_factory=dict, hash=False)
    reward_bins: Bins | None = None

    def __init__(
        self,
        states: Iterable[Any],
        actions: Iterable[Any],
        columns: Sequence[str] = (),
        *,
        bins: Mapping[str, Bins] | None = None,
        terminal: Iterable[Any] = (),
        missing: Mapping[str, int | str] | None = None,
        complete: bool = True,
        admissible: Mapping[Any, Iterable[Any]] | None = None,
        reward_bins: Bins | None = None,
    ) -> None:
        states, actions = _labels("states", states), _labels("actions", actions)
        bins, missing = dict(bins or {}), dict(missing or {})
        columns = _state_columns(states, columns)
        for name, cut in bins.items():
            if name not in columns or cut.quantiles is not None:
                needs = f"need edges and a state column of that name; there are {columns}"
                raise DataError(f"Bins of {name!r} {needs}.")
        if unknown := set(missing) - set(columns):
            raise DataError(
                f"missing names {sorted(unknown)}, but the state columns are {columns}."
            )
        for label in actions:
            if isinstance(label, tuple):
                hint = "Name actions by an integer or a string."
                raise DataError(f"Action {label!r} is a tuple. {hint}")
        if reward_bins is not None and reward_bins.quantiles is not None:
            why = "quantiles are found when logs are counted"
            raise DataError(f"The bins of rewards need edges: {why}.")
        vars(self).update(states=states, actions=actions, columns=columns, bins=bins)
        vars(self).update(missing=missing, complete=bool(complete), reward_bins=reward_bins)
        vars(self).update(terminal=frozenset(plain(label) for label in terminal))
        for label in self.terminal:
            self.state_position(label)  # or an error that names it
        vars(self).update(admissible=self._restrictions(admissible or {}))

    def _restrictions(
        self, admissible: Mapping[Any, Iterable[Any]]
    ) -> dict[Label, frozenset[Label]]:
        """Return the admissible actions of the states in which not all are."""
        result = {}
        for state, actions in admissible.items():
            if isinstance(actions, str) or not isinstance(actions, Iterable):
                what = f"The admissible actions of {state!r} are {actions!r}"
                raise DataError(f"{what}. Give a list of them.")
            label = self.states[self.state_position(state)]
            own = frozenset(self.actions[self.action_position(action)] for action in actions)
            if not own and label not in self.terminal:
                hint = "Name one, or declare the state terminal."
                raise DataError(f"No action is admissible in {label!r}. {hint}")
            if own and len(own) < len(self.actions):
                result[label] = own
        return result

    @cached_property
    def is_admissible(self) -> BoolArray:
        """Whether an action exists in a state: bool [states, actions]."""
        mask = np.ones((len(self.states), len(self.actions)), dtype=bool)
        for state, actions in self.admissible.items():
            mask[self.find(state)] = [action in actions for action in self.actions]
        mask.flags.writeable = False
        return mask

    @property
    def is_terminal(self) -> BoolArray:
        """Whether a state is known to end an episode: bool [states]."""
        return np.array([label in self.terminal for label in self.states])

    def restricted(self, admissible: Admissible) -> Space:
        """Return the space with its admissible actions.

        Args:
            admissible: the actions that exist, by state; a function of state and action that says
                whether it does; a mask [states, actions] in the order of the space; or an
                environment that has such a mask, as `action_masks` or `admissible`, a method
                `action_mask(state)`, in its `dynamics` the `admissible_actions` of each state, as
                ICU-Sepsis has, or a space, as worlds have.
        """
        source: Any = getattr(
            admissible, "unwrapped", admissible
        )  # inside an environment's wrappers
        by_state = _admissible_by_state(self, source)
        if by_state is None:
            mask = np.asarray(_admissible_mask(self, source))
            shape = (len(self.states), len(self.actions))
            if mask.shape != shape or mask.dtype.kind not in "bui":
                raise ArgumentError(
                    "admissible must be a mapping from states to actions, a function of state and "
                    f"action, a mask of shape {shape}, or an environment that has one, but is "
                    f"{type(admissible).__name__}"
                    + f" of shape {mask.shape}" * bool(mask.ndim)
                    + "."
                )
            actions = np.array([*self.actions, None], dtype=object)[:-1]
            rows = zip(self.states, mask.astype(bool), strict=True)
            by_state = {state: actions[row].tolist() for state, row in rows}
        return replace(self, admissible=by_state)

    def declared(
        self,
        states: Iterable[Any] | None,
        actions: Iterable[Any] | None,
        admissible: Admissible | None,
        *,
        terminal: Iterable[Any] | None = None,
        complete: bool = False,
    ) -> Space:
        """Return the space with what a user declares of it, see `count`; None keeps what it has."""
        changes: dict[str, Any] = {"complete": complete or self.complete or states is not None}
        if states is not None:
            labels = tuple(map(plain, states))
            changes |= {"states": labels, "terminal": self.terminal.intersection(labels)}
        if actions is not None:
            changes["actions"] = tuple(map(plain, actions))
        if states is not None or actions is not None:
            changes["admissible"] = {}
        if terminal is not None:
            changes["terminal"] = frozenset(map(plain, terminal))
        space = replace(self, **changes)
        return space if admissible is None else space.restricted(admissible)

    @property
    def next_columns(self) -> tuple[str, ...]:
        """The log columns that make the label of the next state."""
        return tuple(NEXT + column for column in self.columns)

    @cached_property
    def parts(self) -> list[tuple[int | str, ...]]:
        """The states' labels, each as the parts that its columns hold."""
        return [label_parts(label) for label in self.states]

    @cached_property
    def state_positions(self) -> Mapping[Label, int]:
        """The position of each state, by label: for many plain labels faster than `find`."""
        return {label: i for i, label in enumerate(self.states)}

    @cached_property
    def action_positions(self) -> Mapping[Label, int]:
        """The position of each action, by label."""
        return {label: i for i, label in enumerate(self.actions)}

    def find(self, state: Any) -> int:
        """Return the position of a state, `UNKNOWN` if the space does not hold it."""
        # Environments ask at every step, so plain labels are looked up as they are.
        if _PLAIN.issuperset(map(type, label_parts(state))):
            position = self.state_positions.get(state)
            if position is not None:
                return position
        return self.state_positions.get(plain(state), UNKNOWN)

    def find_action(self, action: Any) -> int:
        """Return the position of an action, `UNKNOWN` if the space does not hold it."""
        return self.action_positions.get(plain(action), UNKNOWN)

    def find_all(self, other: Space) -> LongArray:
        """Return the positions of another space's states, `UNKNOWN` for those not in this one."""
        found = [self.state_positions.get(label, UNKNOWN) for label in other.states]
        return np.array(found, dtype=np.int64)

    def state_position(self, label: Any) -> int:
        """Return the position of a state; one that the space does not hold is an error."""
        return _known(self.find(label), "state", label, self.states)

    def action_position(self, label: Any) -> int:
        """Return the position of an action; one that the space does not hold is an error."""
        return _known(self.find_action(label), "action", label, self.actions)

    def positions(self, other: Space) -> tuple[IntArray, IntArray]:
        """Return the positions of another space's states and actions; this one must hold them."""
        states = self.find_all(other)
        if (states == UNKNOWN).any():
            self.state_position(other.states[int((states == UNKNOWN).argmax())])  # names it
        actions = [self.action_position(label) for label in other.actions]
        return states.astype(np.int32), np.array(actions, dtype=np.int32)

    def label(self, observation: Any) -> Label:
        """Return the label of a live observation: one value, or one per column.

        Real numbers go into their bins; None and NaN are missing values where the space has a
        label for them. The label need not be one of `states`: an agent can meet others.
        """
        parts = np.ravel(np.asarray(observation, dtype=object)).tolist()
        if len(parts) != len(self.columns):
            raise DataError(
                f"The observation {observation!r} has {len(parts)} part(s), but a state of this "
                f"space has {len(self.columns)}: {', '.join(self.columns)}."
            )
        named = zip(self.columns, parts, strict=True)
        label = tuple(self._part(name, part) for name, part in named)
        return plain(label[0] if len(label) == 1 else label)

    def _part(self, column: str, part: Any) -> Any:
        """Return a part of a label: a bin, or a whole number that came as a real one."""
        if column in self.missing and (part is None or part != part):
            return self.missing[column]
        if column in self.bins:
            return int(self.bins[column](part))
        if isinstance(part, (float, np.floating)):
            if not float(part).is_integer():
                raise DataError(
                    f"The observation has {part!r} in column {column!r}, which has no bins. Cut it "
                    "when logs are read, or pass label=, a function from observations to labels."
                )
            return int(part)
        return part

    def state_columns(self, states: IntArray, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return the columns of states, by label, for tables."""
        parts = zip(*self.parts, strict=True)
        columns = zip(self.columns, parts, strict=True)
        return {name: make(name, part, states) for name, part in columns}

    def row_columns(
        self,
        states: IntArray,
        actions: IntArray,
        next_states: IntArray,
        make: MakeColumn = plain_column,
    ) -> dict[str, Any]:
        """Return the columns of states, actions and next states, by label, for tables."""
        columns = self.state_columns(states, make)
        columns["action"] = make("action", self.actions, actions)
        followers = self.state_columns(next_states, make).items()
        return columns | {NEXT + name: column for name, column in followers}

    def columns_by_state(
        self, arrays: Mapping[str, npt.NDArray[Any]], make: MakeColumn = plain_column
    ) -> dict[str, Any]:
        """Return arrays [states] or [steps, states] as columns: a row per (step and) state.

        An array whose name is that of a state's column has underscores in front.
        """
        indices = np.indices(next(iter(arrays.values())).shape)
        columns: dict[str, Any] = {}
        if len(indices) == 2:
            columns["step"] = indices[0].ravel()
        columns |= self.state_columns(indices[-1].ravel().astype(np.int32), make)
        return columns | {self.free_name(name): np.ravel(array) for name, array in arrays.items()}

    def free_name(self, name: str) -> str:
        """Return a name for a column beside those of states: with underscores if one has it."""
        while name in (*self.columns, *self.next_columns):
            name = "_" + name
        return name

    def merge(self, other: Space) -> Space:
        """Return a space with the labels of both: this one's order, then what the other adds."""
        if self == other:
            return self
        _refuse_differences(self, other)
        states = tuple(dict.fromkeys(self.states + other.states))
        return replace(
            self,
            states=states,
            actions=tuple(dict.fromkeys(self.actions + other.actions)),
            terminal=self.terminal | other.terminal,
            missing={**self.missing, **other.missing},
            complete=any(one.complete and len(one.states) == len(states) for one in (self, other)),
            admissible={**self.admissible, **other.admissible},
            reward_bins=self.reward_bins or other.reward_bins,
        )

    def to_json(self) -> str:
        """Return the space as JSON, for the metadata of a file."""
        return json.dumps(self.as_plain())

    def as_plain(self) -> dict[str, Any]:
        """Return the space as plain values for JSON."""
        content: dict[str, Any] = {
            "states": self.states,
            "actions": self.actions,
            "columns": self.columns,
            "bins": {name: cut.edges for name, cut in self.bins.items()},
        }
        # By position, as JSON has no mappings from tuples.
        restricted = [s for s, label in enumerate(self.states) if label in self.admissible]
        more = {
            "terminal": tuple(label for label in self.states if label in self.terminal),
            "missing": self.missing,
            "complete": self.complete,
            "admissible": [[s, np.flatnonzero(self.is_admissible[s]).tolist()] for s in restricted],
            "reward_bins": self.reward_bins and self.reward_bins.edges,
        }
        return content | {name: value for name, value in more.items() if value}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Space:
        """Return the space that `as_plain` gave, from JSON or not."""
        try:
            states, actions = content["states"], content["actions"]
            more = {name: content[name] for name in ("terminal", "missing") if name in content}
            if "reward_bins" in content:
                more["reward_bins"] = Bins(edges=content["reward_bins"])
            return cls(
                states,
                actions,
                content["columns"],
                bins={name: Bins(edges=edges) for name, edges in content["bins"].items()},
                complete=content.get("complete", False),
                admissible={
                    plain(states[s]): [actions[x] for x in own]
                    for s, own in content.get("admissible", ())
                },
                **more,
            )
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(f"This is not the JSON of a space: {error!r}.") from error

    def __repr__(self) -> str:
        by = ", ".join(self.columns)
        return f"Space({len(self.states)} states by ({by}), actions {shortened(self.actions)})"


def _labels(kind: str, labels: Iterable[Any]) -> tuple[Label, ...]:
    """Return distinct labels in plain Python; `kind` is "states" or "actions"."""
    if isinstance(labels, str):
        raise DataError(f"{kind} is the string {labels!r}. Give a list of labels.")
    result = tuple(labels)
    if (
        set(map(type, result)) != {int} or max(map(abs, result)) >= 2**63
    ):  # others are plain already
        result = tuple(plain(label) for label in result)
    if not result:
        raise DataError(f"The space has no {kind}. Give at least one.")
    if len(set(result)) < len(result):
        ((twice, _),) = Counter(result).most_common(1)
        raise DataError(f"The {kind} hold {twice!r} twice. Each label must stand for one thing.")
    return result


def _state_columns(states: Sequence[Label], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of states; refuse names that do not fit or are taken."""
    widths = {len(label_parts(label)) for label in states}
    if len(widths) > 1:
        raise DataError(f"State labels have {sorted(widths)} parts; all must have the same number.")
    (width,) = widths
    if isinstance(columns, str):
        raise DataError(f"columns is the string {columns!r}. Give a list of names.")
    default = ("state",) * (width == 1) or tuple(f"state_{i}" for i in range(width))
    columns = tuple(columns) or default
    if len(columns) != width:
        raise DataError(
            f"State labels have {width} part(s), but columns names {len(columns)}: {columns}."
        )
    # SQL column names are case-insensitive.
    followers = (NEXT + column for column in columns)
    names = [name.lower() for name in (*ROW_COLUMNS, *columns, *followers)]
    for name in columns:
        check_line("The column", name)
        if not name or names.count(name.lower()) > 1:
            raise DataError(
                f"A state column cannot be called {name!r}: the name is empty, used twice, or "
                f"taken by another column of a log row ({', '.join(ROW_COLUMNS)}, {NEXT}...)."
            )
    return columns


def label_parts(label: Any) -> tuple[Any, ...]:
    """Return a label's parts: of a label that is no tuple, itself."""
    return label if type(label) is tuple else (label,)


def _admissible_by_state(space: Space, source: Any) -> Mapping[Any, Any] | None:
    """Return admissible actions by state, if that is what a user's declaration holds."""
    own, dynamics = getattr(source, "space", None), getattr(source, "dynamics", None)
    if isinstance(own, Space):
        return {state: own.admissible[state] for state in space.states if state in own.admissible}
    if isinstance(dynamics, Mapping) and "admissible_actions" in dynamics:
        return {state: dynamics["admissible_actions"][state] for state in space.states}
    if isinstance(source, Mapping):
        return source
    return None


def _admissible_mask(space: Space, source: Any) -> Any:
    """Return the mask [states, actions] that a user's declaration is, has, or computes."""
    if hasattr(source, "action_mask"):
        return [source.action_mask(state) for state in space.states]
    for name in ("action_masks", "admissible"):
        if hasattr(source, name):
            masks = getattr(source, name)
            return masks() if callable(masks) else masks
    if callable(source):
        return [[bool(source(state, x)) for x in space.actions] for state in space.states]
    return source


def _known(position: int, kind: str, label: Any, labels: Sequence[Label]) -> int:
    if position == UNKNOWN:
        raise UnknownNameError(
            f"There is no {kind} {label!r}. The {kind}s are {shortened(labels)}."
        )
    return position


def _refuse_differences(one: Space, other: Space) -> None:
    """Raise DataError if two spaces say different things of the same column, state or reward."""
    columns = f"({', '.join(one.columns)} against {', '.join(other.columns)})"
    cut = [name for name in one.columns if one.bins.get(name) != other.bins.get(name)]
    missing = [name for name, own in one.missing.items() if other.missing.get(name, own) != own]
    states = [s for s, own in one.admissible.items() if other.admissible.get(s, own) != own]
    problems = (
        (one.columns != other.columns, f"their states are made of different columns {columns}."),
        (
            cut,
            f"{', '.join(cut)} is cut into different bins. Quantiles differ from file to file: "
            "read the others with the bins of the first one (first.space.bins), or give edges.",
        ),
        (
            missing,
            f"missing values of {', '.join(missing)} have different labels. Set missing to one "
            "label for both.",
        ),
        (
            states,
            f"different actions are admissible in {', '.join(map(repr, states[:1]))}. Declare them "
            "once, for all logs.",
        ),
        (
            one.reward_bins and other.reward_bins and one.reward_bins != other.reward_bins,
            "rewards are cut into different bins. Count the others with the bins of the first one, "
            "first.space.reward_bins, or count all logs together.",
        ),
    )
    for differs, problem in problems:
        if differs:
            raise DataError(f"Two spaces cannot be merged: {problem}")
