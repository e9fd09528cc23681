"""Results: ceilings and floors with the settings, the counts and the assumptions they rest on."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from causal_shaping.bounds import words
from causal_shaping.bounds.settings import CEILING, FLOOR, TIE, Settings, vacuous_values
from causal_shaping.bounds.verdict import Outlook
from causal_shaping.data.arrays import BoolArray, FloatArray, checksum_of, frozen
from causal_shaping.data.result import Result, SavedByState, json_text
from causal_shaping.data.space import Space
from causal_shaping.data.successors import AllowedSuccessors
from causal_shaping.errors import AssumptionWarning

if TYPE_CHECKING:
    from causal_shaping.data.potential import Potential


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Origin:
    """The counts that a bound was computed from.

    Attributes:
        space: the states and actions.
        sources: the sources' names.
        discrete_rewards: rewards were part of the outcome; otherwise they were in bins.
        rewards_seen: the lowest and the highest reward of a step.
        population: the counts were exact masses, not a sample.
        step_indexed: the counts were kept apart by step.
        inferred_terminal: how many states were taken to be terminal because they were only entered
            to end there.
        counts_checksum: that of the counts.
    """

    space: Space
    sources: tuple[str, ...]
    discrete_rewards: bool
    rewards_seen: tuple[float, float]
    population: bool
    step_indexed: bool
    inferred_terminal: int
    counts_checksum: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Bounds(Settings, Origin, SavedByState, Result):
    """Bounds of one side, with their `Settings` and their `Origin`.

    Attributes:
        values: float64 [steps, states], h = 0 the first step; [states] if stationary.
        q_values: float64 [..., states, actions], the bound of taking x once and acting optimally
            from then on; NaN for an action that is not admissible in a state, and where the paper's
            method skips one.
        vacuous: bool like `values`, states in which no source acted (at that step): their bound is
            the vacuous value.
        unrestricted: bool like `values`, states in which some action that a source tried may do
            anything: all of them under support "any"; under an observed support those of which the
            logs show too little.
        terminal: bool [states], states that end an episode; their value is 0.
        caveats: why the bounds are not guaranteed even if every assumption holds, in sentences.
        sweeps: how many sweeps an infinite-horizon bound took, None for any other.
        contraction: the factor by which such a sweep shrank the change, on average.
        no_other_states: whether the bound relies on the declaration that no other states exist:
            somewhere anything may follow, and an unknown state would be worth more than all others.
        scaled: of how many actions in states the sources prove more mass than 1, which was scaled.
        largest_total: the most mass that they prove of one; 1 if it is nowhere more.
    """

    support: str
    confounding: Mapping[str, float]
    values: FloatArray
    q_values: FloatArray
    vacuous: BoolArray
    unrestricted: BoolArray
    terminal: BoolArray
    caveats: tuple[str, ...]
    sweeps: int | None
    contraction: float | None
    no_other_states: bool
    scaled: int
    largest_total: float

    KIND = ""
    ARRAYS = MappingProxyType(
        dict.fromkeys(("values", "q_values"), np.float64)
        | dict.fromkeys(("vacuous", "unrestricted", "terminal"), np.bool_)
    )
    SIDE = CEILING

    def __post_init__(self) -> None:
        for name, dtype in self.ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, name))
        object.__setattr__(self, "rewards_seen", tuple(self.rewards_seen))
        object.__setattr__(self, "confounding", MappingProxyType(dict(self.confounding)))

    @property
    def guaranteed(self) -> bool:
        """Whether the bounds hold wherever the assumptions do, up to the stated confidence."""
        return not self.caveats

    @property
    def plug_in(self) -> bool:
        """Whether the bounds are estimates from a sample that do not allow for sampling error."""
        return self.confidence is None and not self.population

    @property
    def first_step(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Values, action values and vacuous states of the first step, or of all if stationary."""
        if self.stationary:
            return self.values, self.q_values, self.vacuous
        return self.values[0], self.q_values[0], self.vacuous[0]

    @property
    def vacuous_values(self) -> FloatArray:
        """What can be said without any logs: float64 [steps], or a number if stationary."""
        return vacuous_values(self, self.SIDE)

    @property
    def unit(self) -> float:
        """The size of the largest reward: differences far below it are rounding."""
        return max(abs(self.reward_bound), *map(abs, self.rewards_seen))

    @property
    def states_bounded(self) -> tuple[int, int, int]:
        """How many states are bounded better than without logs, no better, and never logged.

        At the first step; terminal states are left out.
        """
        values, _, not_logged = self.first_step
        vacuous = float(np.ravel(self.vacuous_values)[0])
        logged = ~not_logged & ~self.terminal
        better = logged & np.isfinite(values)
        if math.isfinite(vacuous):
            better &= self.SIDE * (vacuous - values) > TIE * max(self.unit, abs(vacuous))
        never = not_logged & ~self.terminal
        return int(better.sum()), int((logged & ~better).sum()), int(never.sum())

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the bounds rest on, in sentences."""
        return tuple(words.assumptions(self))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the space, the arrays and all that they rest on."""
        about = json.dumps(self.metadata, sort_keys=True)
        return checksum_of(about, [getattr(self, name) for name in self.ARRAYS])

    @property
    def metadata(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values for JSON."""
        fields = (field.name for field in dataclasses.fields(self))
        result = {name: getattr(self, name) for name in fields if name not in self.ARRAYS}
        result["space"] = json.loads(self.space.to_json())
        result["confounding"] = dict(self.confounding)
        for name, gamma in self.confounding.items():
            if math.isinf(gamma):
                result["confounding"][name] = "inf"
        return result

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known of each step and state, by name: arrays like `values`."""
        columns = {name: getattr(self, name) for name in ("vacuous", "unrestricted")}
        columns = {"value": self.values, **columns}
        columns["terminal"] = np.broadcast_to(self.terminal, self.values.shape)
        return columns | {
            name: self.q_values[..., x] for x, name in enumerate(_q_names(self.space))
        }

    def to_json(self) -> str:
        """Return the settings, what they mean in words, and the first step's bounds as JSON."""
        names = ("state", "value", "q_values", "vacuous", "terminal")
        rows = zip(self.space.states, *self.first_step, self.terminal, strict=True)
        about = self.metadata | {
            "guaranteed": self.guaranteed,
            "assumptions": self.assumptions,
            "states": [dict(zip(names, row, strict=True)) for row in rows],
        }
        for name in ("space", "successors"):
            about.pop(name, None)
        return json_text(about)

    def summary(self) -> str:
        """Return what the bounds are, what they are worth and what they assume."""
        return words.summary(self)

    @property
    def header(self) -> dict[str, Any]:
        """The metadata, the number of steps and the assumptions."""
        return super().header | {"assumptions": self.assumptions}

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Any], space: Space, metadata: Mapping[str, Any]
    ) -> Self:
        """Return bounds from their `columns`, space and `metadata`."""
        names = [field.name for field in dataclasses.fields(cls) if field.name not in cls.ARRAYS]
        fields = {name: metadata[name] for name in names}
        fields |= {name: tuple(metadata[name]) for name in ("sources", "caveats")}
        fields |= {name: columns[name] for name in ("vacuous", "unrestricted")}
        if fields.get("outlook"):
            fields["outlook"] = Outlook(**fields["outlook"])
        if fields.get("successors"):
            fields["successors"] = AllowedSuccessors.from_plain(fields["successors"])
        gammas = {name: float(gamma) for name, gamma in metadata["confounding"].items()}
        q_values = np.stack([columns[name] for name in _q_names(space)], axis=-1)
        fields |= {"space": space, "values": columns["value"], "q_values": q_values}
        terminal = columns["terminal"].reshape(-1, len(space.states))[0]
        return cls(**fields | {"confounding": gammas, "terminal": terminal})

    def __repr__(self) -> str:
        return words.one_line(self)


def _q_names(space: Space) -> list[str]:
    """Return a column name for each action; labels that look alike, as 1 and "1", get a number."""
    names = [f"q_value of {action}" for action in space.actions]
    for x, name in enumerate(list(names)):
        if names.count(name) > 1:
            names[x] = f"{name} ({x})"
    return names


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ceilings(Bounds):
    """Upper bounds of the optimal interventional value; `Bounds` explains the arrays.

    Attributes:
        outlook: what the verdict rests on; None for ceilings that are a step to another result.
        reward_min: the least that a step can pay, for the monitor of `ShapeReward`; None if it was
            not declared.
        successors: what is taken to be possible after a state and action; None if nothing is
            excluded.
    """

    outlook: Outlook | None = None
    reward_min: float | None = None
    successors: AllowedSuccessors | None = None

    KIND = "ceilings"

    @property
    def metadata(self) -> dict[str, Any]:
        """Everything but the arrays, as plain values for JSON."""
        plain: dict[str, Any] = {}
        if self.outlook is not None:
            # Version 0.2 lacked the fields with defaults; without them its checksums stay the same.
            defaults = {one.name: one.default for one in dataclasses.fields(self.outlook)}
            outlook = dataclasses.asdict(self.outlook).items()
            plain["outlook"] = {name: own for name, own in outlook if own is not defaults[name]}
        if self.successors is not None:
            plain["successors"] = self.successors.as_plain()
        return super().metadata | plain

    def potential(self, *, step_indexed: bool = True) -> Potential:
        """Return the ceiling as a potential for reward shaping.

        States that no log holds have the vacuous value.

        Args:
            step_indexed: one potential per step; otherwise that of the first step, which bounds the
                stationary optimum where rewards are costs, and every step's optimum where they are
                never negative; elsewhere it warns.
        """
        from causal_shaping.data.potential import Potential

        first = not step_indexed and not self.stationary
        values = self.values
        vacuous = np.where(np.isfinite(self.vacuous_values), self.vacuous_values, np.nan)
        if first:
            values, vacuous = values[0], vacuous[0]
        if first and self.reward_bound > 0 and self.rewards_seen[0] < 0:
            warnings.warn(
                "Rewards have both signs: the ceiling of the first step bounds neither the "
                "stationary optimum nor that of later steps. Shaping stays sound; its optimism "
                "does not.",
                AssumptionWarning,
                stacklevel=2,
            )
        return Potential(
            values,
            self.space,
            discount=self.discount,
            unseen=vacuous,
            origin=f"ceilings of {', '.join(self.sources)} by {self.method}",
            assumptions=(*self.assumptions, *(f"Not guaranteed: {one}" for one in self.caveats)),
            kind="ceiling",
            reward_min=self.reward_min,
            reward_max=self.reward_bound,
            successors=self.successors,
            episode_steps=self._episode_steps(first),
        )

    def _episode_steps(self, first: bool) -> int | None:
        """Return what the potential bounds, see `Potential.episode_steps`.

        A backup of the joint bound is a maximum over all outcome distributions that are possible,
        so that no action earns more than the ceiling in the mean. Values that `value_max` cut, and
        those of the paper's method, bound the optimum without that: the ceilings of what follows
        may be looser.

        Args:
            first: whether the potential is that of the first step at every step.
        """
        cut = False
        if self.value_max is not None:
            largest = self.reward_bound + self.discount * max(self.value_max, 0.0)
            reached = (self.values[..., ~self.terminal] >= self.value_max).any()
            cut = bool(reached) and largest > self.value_max
        if not first and not cut and self.method == "joint":
            return None
        if self.stationary:
            return 0
        return self.horizon

    @cached_property
    def _verdict(self) -> tuple[bool | None, str]:
        return words.judge(self)

    @property
    def informative(self) -> bool | None:
        """Whether the ceilings make a useful potential, by what they leave to learn.

        None if that is doubtful.
        """
        return self._verdict[0]

    @property
    def verdict(self) -> str:
        """What the ceiling is worth as a potential, in words."""
        return self._verdict[1]

    def save_html(
        self,
        path: str | os.PathLike[str],
        *,
        floors: Floors | None = None,
        sensitivity: Any = None,
        hidden: Any = None,
        inspection: Any = None,
    ) -> None:
        """Write one self-contained page for people who will not run anything (extra `plot`).

        Args:
            path: the file, which ends in .html.
            floors: of the same counts, to stand beside the ceilings.
            sensitivity: what `sensitivity` found in the same counts.
            hidden: what `confounding_of` found in the same logs.
            inspection: what `inspect` found in the same logs; `inspection.without_small_cells(11)`
                shows no smaller count.
        """
        from causal_shaping.plot import save_page  # the stage to the right: people look for it here

        save_page(
            self, path, floors=floors, sensitivity=sensitivity, hidden=hidden, inspection=inspection
        )


class Floors(Bounds):
    """Lower bounds of the optimal interventional value; `Bounds` explains the arrays."""

    KIND = "floors"
    SIDE = FLOOR
