"""Worlds whose states cannot be listed: coordinates instead of labels, with the same hidden noise and demonstrators.

- `ContinuousWorld`: what they have in common. One step function is behind logs, environments and expectations.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_integer, check_memory
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.worlds.dynamics import Moved, Numbers, SeeingRule, States, pick_rows

if TYPE_CHECKING:
    import pyarrow as pa

BYTES_A_STEP = 300
"""What a logged step takes in memory, about, until it is written."""

EPISODES_AT_ONCE = 1024
"""Episodes that `collect` walks through together. A change alters the logs of every seed."""


class ContinuousWorld(ABC):
    """A world with real coordinates, hidden noise that is drawn afresh each step, and demonstrators who see it.

    Attributes:
        name: the name that was given to `load_world`.
        horizon: the number of steps after which an episode is truncated.
        demonstrators: name to rule: states to probabilities [states, noises, actions].
        columns: the names of the coordinates.
        actions: the names of the actions, in the order of their numbers.
        noises: the names of the hidden noise's values.
        low: float32 [coordinates], the least that the coordinates can be.
        high: float32 [coordinates], the most.
        reward_min: no reward is smaller.
        reward_max: no reward is larger.
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
    reward_min: float
    reward_max: float
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
        """Return where actions lead under noises, by uniforms [states, step_draws]; all of one length."""

    @abstractmethod
    def terminal(self, states: States) -> BoolArray:
        """Return in which states no episode goes on."""

    def demonstrator(self, name: str | SeeingRule) -> SeeingRule:
        """Return a demonstrator's rule by its name; a rule is returned as it is."""
        if callable(name):
            return name
        if name not in self.demonstrators:
            raise UnknownNameError(f"{self.name} has no demonstrator {name!r}. It has {', '.join(self.demonstrators)}.")
        return self.demonstrators[name]

    def collect(self, demonstrator: str | SeeingRule, steps: int, seed: int = 0, source: str | None = None) -> pa.Table:
        """Watch a demonstrator for a number of steps and return its logs, without the hidden noise.

        Episodes are truncated at the world's horizon, the last one where the steps end. Equal arguments give equal
        logs, and fewer steps the beginning of them. The stream is seeded with the seed and the source's name, so that
        sources of one seed are independent.

        Args:
            demonstrator: a name, or a rule of one's own, which also needs a source.
            steps: the number of rows.
            seed: any non-negative integer.
            source: the name of the logs' origin; by default the demonstrator's.

        Returns:
            A row per step: source, episode, step, the coordinates (float32), action (its number), reward, the
            coordinates that follow as `next_...`, terminated, truncated.

        Examples:
            >>> from causal_shaping import load_world
            >>> load_world("windy-field").collect("good", steps=1000, seed=0).num_rows
            1000
        """
        if source is None:
            if not isinstance(demonstrator, str):
                raise ArgumentError("Logs of a demonstrator of one's own need a name: pass source=.")
            source = demonstrator
        steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
        check_memory(f"A log of {steps:,} steps", BYTES_A_STEP * steps)
        rng, rule = np.random.default_rng([seed, zlib.crc32(source.encode())]), self.demonstrator(demonstrator)
        parts: list[dict[str, npt.NDArray[Any]]] = []
        rows = episodes = 0
        while rows < steps:
            parts.append(self._watch(rng, rule))
            parts[-1]["episode"] += episodes
            episodes += EPISODES_AT_ONCE
            rows += len(parts[-1]["episode"])
        columns = {name: np.concatenate([part[name] for part in parts])[:steps] for name in parts[0]}
        columns["truncated"][-1] |= not columns["terminated"][-1]
        return log_table(source, self.columns, columns)

    def _watch(self, rng: np.random.Generator, rule: SeeingRule) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of some whole episodes, ordered by episode and step."""
        states, episode = self.start(rng.random((EPISODES_AT_ONCE, self.start_draws))), np.arange(EPISODES_AT_ONCE)
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        for h in range(self.horizon):
            noises = pick_rows(self.noise(states), rng.random(len(states)))
            actions = pick_rows(rule(states)[np.arange(len(states)), noises], rng.random(len(states)))
            moved = self.step(states, actions, noises, rng.random((len(states), self.step_draws)))
            last = np.full(len(states), h + 1 == self.horizon)
            parts.append((episode, np.full(len(states), h), states, actions, *moved, last & ~moved.terminated))
            states, episode = moved.states[~moved.terminated], episode[~moved.terminated]
            if not len(states):
                break
        names = ("episode", "step", "state", "action", "next_state", "reward", "terminated", "truncated")
        order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
        return {
            name: np.concatenate(column)[order] for name, column in zip(names, zip(*parts, strict=True), strict=True)
        }

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.name!r}, coordinates {', '.join(self.columns)}, {len(self.actions)} actions, "
            f"horizon {self.horizon}, demonstrators {', '.join(self.demonstrators)})"
        )


def log_table(source: str, names: tuple[str, ...], columns: Mapping[str, npt.NDArray[Any]]) -> pa.Table:
    """Return the rows of a source as `ContinuousWorld.collect` does; `state` and `next_state` are [rows, names]."""
    import pyarrow as pa

    def coordinates(name: str, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
        return {prefix + column: columns[name][:, i] for i, column in enumerate(names)}

    rows = {
        "source": pa.DictionaryArray.from_arrays(np.zeros(len(columns["step"]), np.int32), [source]).cast("string"),
        "episode": columns["episode"].astype(np.int64),
        "step": columns["step"].astype(np.int32),
        **coordinates("state"),
        "action": columns["action"].astype(np.int32),
        "reward": columns["reward"],
        **coordinates("next_state", "next_"),
        "terminated": columns["terminated"],
        "truncated": columns["truncated"],
    }
    return pa.table(rows)
