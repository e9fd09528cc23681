"""Worlds whose states cannot be listed: coordinates instead of labels, with the same hidden noise.

`ContinuousWorld` collects logs of demonstrators with the step function that its environment and
expectations use, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.worlds.constants import BYTES_A_CONTINUOUS_STEP, EPISODES_AT_ONCE
from causal_shaping.worlds.dynamics import Moved, Numbers, SeeingRule, States, pick_rows
from causal_shaping.worlds.recording import demonstrator_of, source_of, stream_of

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("episode", "step", "state", "action", "next_state", "reward", "terminated", "truncated")


class ContinuousWorld(ABC):
    """A world with real coordinates and hidden noise, which demonstrators see.

    The noise is drawn afresh each step.

    Attributes:
        name: the name by which `load_world` knows it.
        horizon: the number of steps after which an episode is truncated.
        demonstrators: name to rule: states to probabilities [states, noises, actions].
        columns: the names of the coordinates.
        actions: the names of the actions, in the order of their numbers.
        noises: the names of the hidden noise's values.
        low: float32 [coordinates], the least that the coordinates can be.
        high: float32 [coordinates], the most.
        reward_range: the smallest and the largest reward of a step.
        discount: the factor on future reward.
        start_draws: uniforms that the start of an episode takes.
        step_draws: uniforms that a step takes beside those for noise and action.
    """

    name: str
    horizon: int
    columns: tuple[str, ...]
    actions: tuple[str, ...]
    noises: tuple[str, ...]
    low: States
    high: States
    reward_range: tuple[float, float]
    demonstrators: Mapping[str, SeeingRule]
    discount: float = 1.0
    start_draws: int = 0
    step_draws: int = 0

    @abstractmethod
    def start(self, draws: FloatArray) -> States:
        """Return the states in which episodes start, by uniforms [episodes, start_draws]."""

    @abstractmethod
    def noise(self, states: States) -> FloatArray:
        """Return the distribution of the hidden noise in states, [states, noises]."""

    @abstractmethod
    def step(self, states: States, actions: Numbers, noises: Numbers, draws: FloatArray) -> Moved:
        """Return where actions lead under noises, by uniforms [states, step_draws]."""

    @abstractmethod
    def terminal(self, states: States) -> BoolArray:
        """Return whether states end an episode."""

    @property
    def reward_min(self) -> float:
        """The smallest reward of a step."""
        return self.reward_range[0]

    @property
    def reward_max(self) -> float:
        """The largest reward of a step."""
        return self.reward_range[1]

    def demonstrator(self, name: str | SeeingRule) -> SeeingRule:
        """Return a demonstrator's rule by its name; a rule is returned as it is."""
        if callable(name):
            return name
        rule: SeeingRule = demonstrator_of(self, name)
        return rule

    def collect(
        self, demonstrator: str | SeeingRule, steps: int, seed: int = 0, source: str | None = None
    ) -> pa.Table:
        """Watch a demonstrator for a number of steps and return its logs, without the hidden noise.

        Episodes are truncated at the world's horizon, the last one where the steps end. Equal
        arguments give equal logs, and fewer steps the beginning of them. The stream is seeded with
        the seed and the source's name, so that sources of one seed are independent.

        Args:
            demonstrator: a name, or a rule of your own, which also needs a source.
            steps: the number of rows.
            seed: any non-negative integer.
            source: the name of the logs' origin; by default the demonstrator's.

        Returns:
            A row per step: source, episode, step, the coordinates (float32), action (its number),
            reward, the coordinates that follow as `next_...`, terminated, truncated.

        Examples:
            >>> from causal_shaping import load_world
            >>> load_world("windy-field").collect("good", steps=1000, seed=0).num_rows
            1000
        """
        source = source_of(demonstrator, source)
        rng = stream_of(steps, seed, source, BYTES_A_CONTINUOUS_STEP)
        rule = self.demonstrator(demonstrator)
        parts: list[dict[str, npt.NDArray[Any]]] = []
        rows = 0
        while rows < steps:
            part = self._watch(rng, rule)
            part["episode"] += len(parts) * EPISODES_AT_ONCE
            parts.append(part)
            rows += len(part["episode"])
        columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
        columns = {name: column[:steps] for name, column in columns.items()}
        columns["truncated"][-1] |= not columns["terminated"][-1]
        return log_table(source, self.columns, columns)

    def _watch(self, rng: np.random.Generator, rule: SeeingRule) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of some whole episodes, ordered by episode and step."""
        states = self.start(rng.random((EPISODES_AT_ONCE, self.start_draws)))
        episode = np.arange(EPISODES_AT_ONCE)
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        for h in range(self.horizon):
            size = len(states)
            noises = pick_rows(self.noise(states), rng.random(size))
            actions = pick_rows(rule(states)[np.arange(size), noises], rng.random(size))
            moved = self.step(states, actions, noises, rng.random((size, self.step_draws)))
            goes_on = ~moved.terminated
            cut = goes_on & (h + 1 == self.horizon)
            parts.append((episode, np.full(size, h), states, actions, *moved, cut))
            states, episode = moved.states[goes_on], episode[goes_on]
            if not len(states):
                break
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return {name: column[order] for name, column in zip(COLUMNS, columns, strict=True)}

    def __repr__(self) -> str:
        sizes = f"{len(self.actions)} actions, horizon {self.horizon}"
        names = f"coordinates {', '.join(self.columns)}, {sizes}, demonstrators"
        return f"{type(self).__name__}({self.name!r}, {names} {', '.join(self.demonstrators)})"


def log_table(
    source: str,
    names: tuple[str, ...],
    columns: Mapping[str, npt.NDArray[Any]],
) -> pa.Table:
    """Return rows as `ContinuousWorld.collect` does; `state` and `next_state` are [rows, names]."""
    import pyarrow as pa

    rows = len(columns["step"])
    table = {
        "source": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), [source]).cast("string"),
        "episode": columns["episode"].astype(np.int64),
        "step": columns["step"].astype(np.int32),
    }
    table |= {name: columns["state"][:, i] for i, name in enumerate(names)}
    table |= {"action": columns["action"].astype(np.int32), "reward": columns["reward"]}
    table |= {"next_" + name: columns["next_state"][:, i] for i, name in enumerate(names)}
    table |= {name: columns[name] for name in ("terminated", "truncated")}
    return pa.table(table)
