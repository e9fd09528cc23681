"""What the logs of one or several sources show, counted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import LARGEST_REWARD, check_line
from causal_shaping.data.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    begins,
    checksum_of,
    frozen,
    groups,
)
from causal_shaping.data.result import Contents, Result, Saved
from causal_shaping.data.rows import Table
from causal_shaping.data.space import UNKNOWN, Bins, MakeColumn, Space, plain_column
from causal_shaping.errors import DataError

MAX_REWARDS = 64
"""Distinct rewards up to which each is an outcome of its own; more are cut into bins."""

REWARD_BINS = 32
"""How many bins, of equal mass: half of what is kept apart. `logs.counting` finds their edges."""

SLACK = 1e-9
"""Relative rounding error of a sum of rewards that is no error of whoever counted them."""

REWARDS = ("reward_sum", "reward_min", "reward_max")


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Table, Saved, Result):
    """What the logs of one or several sources show, counted per distinct outcome.

    One entry per (source, [step,] state, action, next state, terminated, reward); rewards of many
    values are cut into the bins of the space, and an entry holds all rewards of a bin. Entries are
    sorted by that key. `UNKNOWN` as next state is that of `Logs`.

    Attributes:
        space: the states and actions.
        sources: the sources' names.
        source: int32 [entries], position in `sources`.
        step: int32 [entries], or None where steps are pooled.
        state: int32 [entries].
        action: int32 [entries].
        next_state: int32 [entries], or `UNKNOWN`.
        terminated: bool [entries].
        n: float64 [entries], how often it occurred: whole numbers, or masses if `population`.
        reward_sum: float64 [entries].
        reward_min: float64 [entries], the smallest reward; without bins the reward.
        reward_max: float64 [entries], the largest reward; without bins the reward.
        population: the entries are exact masses of a known model, not a sample.
    """

    space: Space
    sources: tuple[str, ...]
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

    KIND = "counts"
    COLUMNS = MappingProxyType(
        dict.fromkeys(("source", "step", "state", "action", "next_state"), np.int32)
        | {"terminated": np.bool_}
        | dict.fromkeys(("n", *REWARDS), np.float64)
    )
    KEY = ("source", "step", "state", "action", "next_state", "terminated", "reward_min")

    @classmethod
    def combined(
        cls,
        space: Space,
        sources: Sequence[str],
        columns: Mapping[str, npt.ArrayLike | None],
        *,
        population: bool = False,
    ) -> Counts:
        """Return counts of rows that may repeat: equal outcomes are added up.

        Args:
            space: the states and actions, and the bins of rewards if there are any.
            sources: the sources' names.
            columns: those of `COLUMNS`; step may be None.
            population: whether `n` are masses of a known model.
        """
        table: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(columns[name], dtype)
            for name, dtype in cls.COLUMNS.items()
            if columns[name] is not None
        }
        for name in ("reward_min", "reward_max"):
            table[name] = table[name] + 0.0  # -0 and 0 are one reward
        # Rows with one key, the last part of which is the reward or its bin, make one entry.
        key = {name: table[name] for name in cls.KEY if name in table}
        if space.reward_bins is not None:
            key["reward_min"] = space.reward_bins(table["reward_min"])
        order, first = groups(list(key.values()))
        rows = {name: column[order] for name, column in table.items()}
        entries: dict[str, Any] = {"step": None} | {name: rows[name][first] for name in rows}
        if len(first):
            entries["n"] = np.add.reduceat(rows["n"], first)
            entries["reward_min"] = np.minimum.reduceat(rows["reward_min"], first)
            entries["reward_max"] = np.maximum.reduceat(rows["reward_max"], first)
            with np.errstate(over="ignore"):  # rewards that large are refused
                if space.reward_bins is None:
                    entries["reward_sum"] = entries["n"] * entries["reward_min"]
                else:
                    entries["reward_sum"] = np.add.reduceat(rows["reward_sum"], first)
        return cls(space, tuple(sources), **entries, population=population)

    def __add__(self, other: Counts) -> Counts:
        """Return these counts and others as one; `sum` of a list of counts works, too.

        Sources, states and actions are matched by their labels; what only one of the two knows is
        added behind. So logs can be counted day by day: if no episode is split, the sum is what one
        count of all days gives, in any order. Rewards that one of the two holds in bins and the
        other as they are go into these bins. Sums of rewards in bins depend on the order in their
        last bits, everything else is exact.

        Nothing tells whether two counts hold the same episodes: logs added twice count twice.

        Raises:
            DataError: if the two were counted in different ways; it names the option to count both
                with.

        Examples:
            >>> import causal_shaping as cs
            >>> world = cs.load_world("lavacross-easy")
            >>> days = [world.collect("good", 1000, seed=seed) for seed in (1, 2, 3)]
            >>> sum(cs.count(day) for day in days).n.sum()
            np.float64(3000.0)
        """
        if not isinstance(other, Counts):
            return NotImplemented
        return add_counts([self, other])

    def __radd__(self, start: object) -> Counts:
        """Return these counts, if they are added to the 0 with which `sum` starts."""
        if not isinstance(start, int) or start != 0:
            return NotImplemented
        return self

    def to_space(self, space: Space) -> Counts:
        """Return the same counts in another space, which must hold their states and actions.

        Bins of rewards stay: rewards that are in bins cannot leave them.
        """
        bins = self.space.reward_bins or space.reward_bins
        if space.reward_bins not in (None, bins):
            raise DataError(
                "The rewards of these counts are in other bins than those of the space."
            )
        space = replace(space, reward_bins=bins)
        columns = self._moved(space, self.sources)
        return self.combined(space, self.sources, columns, population=self.population)

    def with_reward_bins(self, bins: Bins) -> Counts:
        """Return the same counts with rewards cut into bins.

        Examples:
            >>> from causal_shaping import load_world
            >>> world = load_world("lavacross-easy")
            >>> counts = world.model.observe(world.demonstrators["good"], "good")
            >>> counts.with_reward_bins(Bins(edges=(-0.5,))).space.reward_bins
            Bins(edges=(-0.5,), quantiles=None)
        """
        return self.to_space(replace(self.space, reward_bins=bins))

    def actions_taken(self) -> FloatArray:
        """Return how often each source took each action: float64 [sources, states, actions]."""
        shape = len(self.sources), len(self.space.states), len(self.space.actions)
        place = np.ravel_multi_index((self.source, self.state, self.action), shape)
        taken = np.bincount(place, self.n, minlength=math.prod(shape))
        return taken.astype(np.float64).reshape(shape)

    @property
    def discrete_rewards(self) -> bool:
        """Whether each reward is kept as it is; otherwise rewards are in the bins of the space."""
        return self.space.reward_bins is None

    def _columns(self) -> dict[str, Any]:
        """Return the columns by name, without `step` where steps are pooled."""
        columns = {name: getattr(self, name) for name in self.COLUMNS}
        return {name: column for name, column in columns.items() if column is not None}

    def _moved(self, space: Space, sources: Sequence[str]) -> dict[str, Any]:
        """Return the columns with positions in another space and another list of sources."""
        states, actions = space.positions(self.space)
        places = np.array([sources.index(name) for name in self.sources], dtype=np.int64)
        return (
            {"step": None}
            | self._columns()
            | {
                "source": places[self.source],
                "state": states[self.state],
                "action": actions[self.action],
                "next_state": np.append(states, UNKNOWN)[
                    self.next_state
                ],  # UNKNOWN is the last one
            }
        )

    def __post_init__(self) -> None:
        names: Any = self.sources
        if isinstance(names, str):
            raise DataError(f"sources is the string {names!r}. Give a list of names.")
        sources = tuple(map(str, names))
        if not sources or not all(sources) or len(set(sources)) < len(sources):
            raise DataError(f"Counts need distinct, non-empty source names, but have {sources}.")
        for name in sources:
            check_line("The source", name)
        vars(self).update(sources=sources)
        self._freeze("Counts")
        columns = self._columns()
        order = np.lexsort([columns[name] for name in reversed(self.KEY) if name in columns])
        for name, column in columns.items():
            vars(self)[name] = frozen(column[order], column.dtype)
        self._check_positions("source", 0, len(self.sources))
        if self.step is not None:
            self._check_positions("step", 0, np.iinfo(np.int32).max)
        self._check_labels()
        self._check_numbers()
        self._check_admissible()

    def _check_numbers(self) -> None:
        """Refuse numbers and rewards that no count can have, and outcomes that stand twice."""
        self._refuse(~(np.isfinite(self.n) & (self.n > 0)), "n must be positive and finite", self.n)
        if not self.population:
            whole = self.n == np.floor(self.n)
            self._refuse(~whole, "n of a sample must be a whole number", self.n)
        for name in REWARDS:
            values = getattr(self, name)
            self._refuse(~np.isfinite(values), f"{name} must be finite", values)
        size = np.maximum(np.abs(self.reward_min), np.abs(self.reward_max))
        why = f"a reward is beyond {LARGEST_REWARD:g}; give rewards in a larger unit"
        self._refuse(size > LARGEST_REWARD, why, size)
        # A sum of n rewards may round away from n times their mean.
        slack = SLACK * self.n * size
        least, most = self.n * self.reward_min - slack, self.n * self.reward_max + slack
        outside = (self.reward_sum < least) | (self.reward_sum > most)
        why = "the mean reward lies outside reward_min .. reward_max"
        self._refuse(outside, why, self.reward_sum)
        # Without bins each reward is a bin of its own.
        low: npt.NDArray[Any] = self.reward_min
        high: npt.NDArray[Any] = self.reward_max
        why = "reward_min is not reward_max"
        if self.space.reward_bins is not None:
            low, high = (self.space.reward_bins(values) for values in (low, high))
            why = "reward_min and reward_max lie in different bins"
        self._refuse(low != high, why, self.reward_max)
        key = self._columns() | {"reward_min": low}
        repeats = ~begins(*(key[name] for name in self.KEY if name in key))
        self._refuse(repeats, "the same outcome stands in two entries; add them up", self.n)

    def _check_admissible(self) -> None:
        """Refuse an action in a state in which the space does not have it."""
        excluded = np.flatnonzero(~self.space.is_admissible[self.state, self.action])
        if len(excluded):
            entry = excluded[0]
            source, state = self.sources[self.source[entry]], self.space.states[self.state[entry]]
            raise DataError(
                f"Source {source!r} took {self.space.actions[self.action[entry]]!r} in {state!r}, "
                "where it is not admissible. Correct the admissible actions, or the logs."
            )

    def _where(self, entry: int) -> str:
        step = "" if self.step is None else f", step {self.step[entry]}"
        return (
            f"Counts, entry {entry} (source {self.source[entry]}{step}, state {self.state[entry]}, "
            f"action {self.action[entry]}, next state {self.next_state[entry]})"
        )

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the entries and the space: equal exactly if the counts are equal."""
        exact = [self.discrete_rewards] * len(self.sources)
        header = [self.space.to_json(), self.sources, exact, self.population]
        return checksum_of(json.dumps(header), self._columns().values())

    @cached_property
    def outcome_known(self) -> BoolArray:
        """Whether an entry proves an outcome, a next state or an end: bool [entries]."""
        known: BoolArray = (self.next_state != UNKNOWN) | self.terminated
        known.flags.writeable = False
        return known

    @property
    def step_indexed(self) -> bool:
        """Whether each step of an episode is counted on its own."""
        return self.step is not None

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return the entries by column, with sources, states and actions by label."""
        columns = {"source": make("source", self.sources, self.source)}
        if self.step is not None:
            columns["step"] = self.step
        columns |= self.space.row_columns(self.state, self.action, self.next_state, make)
        columns["terminated"] = self.terminated
        return columns | {
            self.space.free_name(name): getattr(self, name) for name in ("n", *REWARDS)
        }

    @property
    def header(self) -> dict[str, Any]:
        """What a file of counts holds beside the space and the entries."""
        exact = dict.fromkeys(self.sources, self.discrete_rewards)
        return {"sources": exact, "population": self.population}

    @classmethod
    def from_contents(cls, contents: Contents) -> Counts:
        """Return the counts that a file holds, alone or as a part of it."""
        from causal_shaping.data.columns import positions, row_positions  # late: they import Arrow

        table, space, sources = contents.table, contents.space, contents.metadata["sources"]
        known = {name: i for i, name in enumerate(sources)}
        columns: dict[str, Any] = {"step": None}
        columns["source"] = positions(table, ["source"], known, "source")
        if "step" in table.column_names:
            columns["step"] = table["step"].to_numpy()
        for name in ("terminated", "n", *REWARDS):
            columns[name] = table[space.free_name(name)].to_numpy()
        columns |= row_positions(table, space, space.columns, space.next_columns)
        return cls(space, tuple(sources), **columns, population=contents.metadata["population"])

    def summary(self) -> str:
        """Return what each source shows, a line each."""
        lines = [repr(self)]
        for i, name in enumerate(self.sources):
            own = self.source == i
            n, ends, known = self.n[own], self.terminated[own], self.outcome_known[own]
            steps = "population masses" if self.population else f"{n.sum():,.0f} steps"
            distinct = f"{len(np.unique(self.reward_min[own])):,} distinct"
            rewards = distinct if self.discrete_rewards else "binned"
            pairs = len(groups([self.state[own], self.action[own]])[1])
            total = n.sum() or 1.0
            lines.append(
                f"{name}: {steps}, {len(np.unique(self.state[own])):,} of "
                f"{len(self.space.states):,} states, {pairs:,} state-action pairs, {rewards} "
                f"rewards; {n[ends].sum() / total:.1%} of the steps terminated, "
                f"{n[~known].sum() / total:.1%} with unknown outcome"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        kind = "population masses" if self.population else f"{self.n.sum():,.0f} steps"
        steps = "by step" if self.step_indexed else "steps pooled"
        names = ", ".join(self.sources)
        return f"Counts({len(self):,} entries, {kind} of {names}, {steps}, {self.space!r})"


def add_counts(parts: Sequence[Counts]) -> Counts:
    """Return the sum of one or several counts, added up at once; see `Counts.__add__`."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if len({part.step_indexed for part in parts}) > 1:
        raise DataError(
            "Counts by step and counts with steps pooled cannot be added. Count both with the same "
            "step_indexed."
        )
    if len({part.population for part in parts}) > 1:
        raise DataError(
            "Population masses and counts of a sample cannot be added: their n mean different "
            "things."
        )
    space = reduce(Space.merge, [part.space for part in parts])
    sources = tuple(dict.fromkeys(name for part in parts for name in part.sources))
    if first.population and len(sources) < sum(len(part.sources) for part in parts):
        raise DataError(
            "Two population counts have a source in common: their masses would count twice."
        )
    moved = [part._moved(space, sources) for part in parts]
    columns: dict[str, Any] = {"step": None}
    for name in Counts.COLUMNS:
        if name != "step" or first.step_indexed:
            columns[name] = np.concatenate([part[name] for part in moved])
    return Counts.combined(space, sources, columns, population=first.population)
