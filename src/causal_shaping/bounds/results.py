"""What bounds are when they are done: arrays that know what they assume, say it in words, and have a file."""

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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from causal_shaping.bounds._joint import CEILING, FLOOR
from causal_shaping.data.arrays import BoolArray, FloatArray, checksum_of, frozen
from causal_shaping.data.space import Space
from causal_shaping.errors import AssumptionWarning

if TYPE_CHECKING:
    from causal_shaping.data.potential import Potential

FLAT = 0.1
"""A ceiling whose spread over states is a smaller share of its distance to zero than this is called flat."""

HARDLY = 0.5
"""A ceiling that takes a smaller share than this off the vacuous bound is called weak."""


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Bounds of one side, with all that they rest on. `print` tells it in words.

    Attributes:
        space: the states and actions.
        values: float64 [steps, states], h = 0 the first step; [states] if stationary.
        q_values: float64 [..., states, actions], the bound of taking x once and going on as well as can be; NaN where
            the paper's method skips an action.
        vacuous: bool like `values`, states that no source ever left (at that step): theirs is what any could have.
        terminal: bool [states], states that end an episode; their value is 0.
        sources: the sources' names.
        confounding: Gamma of each source.
        horizon: the number of steps.
        reward_bound: the largest possible reward, for floors the smallest.
        discount: the factor on future reward.
        method: "joint" or "paper".
        support: "any", "observed", or "given" for a user's own.
        confidence: that all bounds hold at once; None for a plug-in estimate, or for population counts.
        min_visits: states with fewer visits had `any` support.
        discrete_rewards: rewards were part of the outcome.
        rewards_seen: the lowest and the highest reward of a step.
        population: the counts were exact masses, not a sample.
        step_indexed: the counts were kept apart by step.
        stationary: a fixed point, not a pass over the horizon.
        inferred_terminal: how many states were taken to be terminal because they were only entered to end there.
        caveats: why the bounds are not guaranteed even if every assumption holds, in sentences.
        sweeps: of a fixed point, how many it took.
        contraction: of a fixed point, by how much a sweep shrank the change, on average.
        counts_checksum: of the counts.
        value_max: what no state is worth more than, as was said; None if nothing was.
    """

    space: Space
    values: FloatArray
    q_values: FloatArray
    vacuous: BoolArray
    terminal: BoolArray
    sources: tuple[str, ...]
    confounding: Mapping[str, float]
    horizon: int
    reward_bound: float
    discount: float
    method: str
    support: str
    confidence: float | None
    min_visits: float
    discrete_rewards: bool
    rewards_seen: tuple[float, float]
    population: bool
    step_indexed: bool
    stationary: bool
    inferred_terminal: int
    caveats: tuple[str, ...]
    sweeps: int | None
    contraction: float | None
    counts_checksum: str
    value_max: float | None

    KIND: ClassVar[str]
    SIDE: ClassVar[float]
    ARRAYS: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"values": np.float64, "q_values": np.float64, "vacuous": np.bool_, "terminal": np.bool_}
    )

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
    def vacuous_values(self) -> FloatArray:
        """What can be said without any logs: float64 [steps], or a number if stationary."""
        b, d = self.SIDE * self.reward_bound, self.discount
        left = np.array(math.inf) if self.stationary else np.arange(self.horizon, 0, -1.0)
        if b <= 0:  # one step, and then the end
            result = self.SIDE * np.full(left.shape, b)
        else:
            with np.errstate(invalid="ignore"):
                result = self.SIDE * b * (left if d == 1 else (1 - d**left) / (1 - d))
        return result if self.value_max is None else np.minimum(result, self.value_max)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the bounds rest on, in plain words."""
        return tuple(_assumptions(self))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the space, the arrays and all that they rest on."""
        about = json.dumps(self.about(), sort_keys=True)
        return checksum_of(about, [getattr(self, name) for name in self.ARRAYS])

    def about(self) -> dict[str, Any]:
        """Return everything but the arrays as plain values, for JSON."""
        fields = (field.name for field in dataclasses.fields(self))
        result = {name: getattr(self, name) for name in fields if name not in (*self.ARRAYS, "space")}
        confounding = {name: "inf" if math.isinf(gamma) else gamma for name, gamma in self.confounding.items()}
        return result | {"space": json.loads(self.space.to_json()), "confounding": confounding}

    def as_json(self) -> dict[str, Any]:
        """Return the settings, what they mean in words, and the first step's bounds, for other programs."""
        first = (self.values, self.q_values, self.vacuous) if self.stationary else ()
        values, q_values, vacuous = first or (self.values[0], self.q_values[0], self.vacuous[0])
        about = {key: value for key, value in self.about().items() if key != "space"}
        states = [
            {
                "state": label,
                "value": float(values[s]),
                "q_values": [None if np.isnan(q) else float(q) for q in q_values[s]],
                "vacuous": bool(vacuous[s]),
                "terminal": bool(self.terminal[s]),
            }
            for s, label in enumerate(self.space.states)
        ]
        return about | {"guaranteed": self.guaranteed, "assumptions": self.assumptions, "states": states}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bounds to a Parquet file: a row per step and state, all else in the metadata."""
        from causal_shaping.bounds._files import save_bounds

        save_bounds(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the bounds that `save` wrote, checked against their checksum."""
        from causal_shaping.bounds._files import load_bounds

        return load_bounds(cls, path)

    def __repr__(self) -> str:
        return "\n".join((*_three_lines(self), *(f"Not guaranteed: {caveat}" for caveat in self.caveats)))

    def __str__(self) -> str:
        lines = [repr(self)]
        if verdict := getattr(self, "verdict", None):
            lines += ["", verdict]
        return "\n".join([*lines, "", "This assumes:", *(f"- {sentence}" for sentence in self.assumptions)])


class Ceilings(Bounds):
    """Upper bounds of the optimal interventional value; see `Bounds` for what they hold."""

    KIND, SIDE = "ceilings", CEILING

    def potential(self, step_indexed: bool = True, shift: float = 0.0) -> Potential:
        """Return the ceiling as a potential for reward shaping; states that it does not know have the vacuous value.

        Args:
            step_indexed: one per step; otherwise that of the first step, which bounds the stationary optimum where
                rewards are costs, and every step's optimum where they are never negative; elsewhere it warns.
            shift: a constant to add.
        """
        from causal_shaping.data.potential import Potential  # the stage to the right: a method people look for

        mixed = self.reward_bound > 0 and self.rewards_seen[0] < 0
        if not step_indexed and not self.stationary and mixed:
            warnings.warn(
                "Rewards have both signs: the ceiling of the first step bounds neither the stationary optimum nor that "
                "of later steps. Shaping stays sound; its optimism does not.",
                AssumptionWarning,
                stacklevel=2,
            )
        first = not step_indexed and not self.stationary
        vacuous = np.where(np.isfinite(self.vacuous_values), self.vacuous_values, np.nan)
        made = Potential(
            self.values[0] if first else self.values,
            self.space,
            self.discount,
            vacuous[0] if first else vacuous,
            f"ceilings of {', '.join(self.sources)} by {self.method}",
            (*self.assumptions, *(f"Not guaranteed: {caveat}" for caveat in self.caveats)),
        )
        return made.shifted(shift) if shift else made

    @cached_property
    def informative(self) -> bool | None:
        """Whether the ceiling tells states apart usefully, by a rule of thumb; None if that is doubtful."""
        return _verdict(self)[0]

    @cached_property
    def verdict(self) -> str:
        """What the ceiling is worth as a potential, in words."""
        return _verdict(self)[1]

    def save_html(
        self,
        path: str | os.PathLike[str],
        *,
        floors: Floors | None = None,
        sensitivity: Any = None,
        inspection: Any = None,
        smallest_cell: int | None = None,
    ) -> None:
        """Write one self-contained page for people who will not run anything (extra `plot`).

        Args:
            path: the file, which ends in .html.
            floors: of the same counts, to stand beside the ceilings.
            sensitivity: what `sensitivity` found in the same counts.
            inspection: what `inspect` found in the same logs.
            smallest_cell: show no count of rows, visits or episodes from 1 to one below this; see `inspect`.
        """
        from causal_shaping.plot import save_page  # the stage to the right: a method people look for

        parts = {"floors": floors, "sensitivity": sensitivity, "inspection": inspection}
        save_page(self, path, **parts, smallest_cell=smallest_cell)


class Floors(Bounds):
    """Lower bounds of the optimal interventional value; see `Bounds` for what they hold."""

    KIND, SIDE = "floors", FLOOR


def _three_lines(bounds: Bounds) -> list[str]:
    length = "without time limit" if bounds.stationary else f"of {bounds.horizon} steps"
    gammas = sorted(set(bounds.confounding.values()))
    gamma = (
        f"{gammas[0]:g}"
        if len(gammas) == 1
        else ", ".join(f"{name} {gamma:g}" for name, gamma in bounds.confounding.items())
    )
    sure = "population" if bounds.population else f"confidence {bounds.confidence}" if bounds.confidence else "plug-in"
    first = bounds.values if bounds.stationary else bounds.values[0]
    vacuous = bounds.vacuous if bounds.stationary else bounds.vacuous[0]
    bounded = ~vacuous & ~bounds.terminal
    shown = f"from {first[bounded].min():.4g} to {first[bounded].max():.4g}" if bounded.any() else "nowhere bounded"
    if bounds.sweeps is not None:
        shown += f", a fixed point after {bounds.sweeps} sweeps, contraction {bounds.contraction:.3f}"
    return [
        f"{type(bounds).__name__} {length} by {bounds.method} from {', '.join(bounds.sources)}: {shown}",
        f"support {bounds.support}, confounding {gamma}, {sure}, discount {bounds.discount:g}, "
        f"{'steps kept apart' if bounds.step_indexed else 'steps pooled'}",
        f"{bounded.sum():,} states bounded, {vacuous.sum():,} fell back to the vacuous value, "
        f"{bounds.terminal.sum():,} terminal" + ("" if bounds.stationary else " (at the first step)"),
    ]


def _assumptions(bounds: Bounds) -> list[str]:
    ceiling = bounds.SIDE == CEILING
    result = [
        f"No step pays {'more' if ceiling else 'less'} than {bounds.reward_bound:g}.",
        "All sources and the online world are the same world.",
        "Hidden causes are drawn afresh each step. One that lasts over an episode, such as a patient's severity, "
        "breaks every bound of this kind.",
    ]
    if bounds.value_max is not None:
        result.append(
            f"No state is worth more than {bounds.value_max:g}{'' if bounds.stationary else ', at any step'}."
        )
    if not bounds.step_indexed:
        result.append("The world does not change from step to step, for the steps were pooled.")
    unlimited = [name for name, gamma in bounds.confounding.items() if math.isinf(gamma)]
    if unlimited:
        result.append(f"Nothing about confounding: {', '.join(unlimited)} may have seen anything.")
    for name, gamma in bounds.confounding.items():
        if math.isinf(gamma):
            continue
        result.append(
            f"{name} is unconfounded: what it saw and the log does not hold did not move its actions."
            if gamma == 1
            else f"{name}: given the outcome that an action would have, the odds of taking it differ from the odds "
            f"given the state alone by a factor of at most {gamma:g}."
        )
        unseen = "impossible" if bounds.confidence is None else "rare"
        result.append(f"{name}: what never followed an action that it took is {unseen} after that action (overlap).")
    if bounds.support == "observed":
        where = " at that step" if bounds.step_indexed else ""
        result.append(
            f"Whatever can follow a state{where}, after an action that somebody tried there, was seen to follow it at "
            "least once, in some source and a row that tells what followed."
        )
        if bounds.min_visits:
            result[-1] += f" States with fewer than {bounds.min_visits:g} visits are left out of this."
    elif bounds.support == "given":
        result.append(
            "Nothing follows a state but the successors that were given; and in one that somebody left, episodes end "
            "only if somebody saw one end there."
        )
    if bounds.inferred_terminal:
        result.append(
            f"What always ended an episode always ends it ({bounds.inferred_terminal} states). Declare terminal "
            "states, count(..., terminal=[...]), to have this said by you."
        )
    if bounds.confidence is not None:
        if bounds.step_indexed:
            result.append("The number of episodes was fixed before they were logged.")
        if not bounds.discrete_rewards:
            far = "below the lowest" if ceiling else "above the highest"
            result.append(f"No reward lies {far} one that was seen, for their means were limited by that.")
        result.append(
            f"With that, all {bounds.KIND} hold at once with a chance of {bounds.confidence:.4g} or more, over samples "
            "like this one."
        )
    return result


def _verdict(ceilings: Ceilings) -> tuple[bool | None, str]:
    first = ceilings.values if ceilings.stationary else ceilings.values[0]
    vacuous = float(np.ravel(ceilings.vacuous_values)[0])
    fell_back = ceilings.vacuous if ceilings.stationary else ceilings.vacuous[0]
    shown = first[~fell_back & ~ceilings.terminal]
    if not len(shown):
        return False, "These logs do not help here, use phi = 0: no state is bounded better than without logs."
    level, spread = float(shown.mean()), float(shown.std())
    facts = f"the ceiling is {level:.3g} on average (vacuous: {vacuous:.3g}), and spreads by {spread:.3g} over states"
    if spread < FLAT * abs(level) or spread == 0:
        return False, f"These logs do not help here, use phi = 0: {facts}, which is nearly flat."
    if vacuous > 0 and math.isfinite(vacuous) and vacuous - level < HARDLY * vacuous:
        return False, f"These logs do not help here, use phi = 0: {facts}. Most of it is what anybody could have said."
    if abs(level) < spread:
        return None, (
            f"It is doubtful whether these logs help: {facts}, to both sides of zero, so that zero is as good a guess. "
            "Compare with phi = 0."
        )
    return True, f"These logs help: {facts}."
