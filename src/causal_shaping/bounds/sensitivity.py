"""How bounds move with the confounding that is allowed for.

- `sensitivity`: ceilings, floors and what is provably suboptimal, for several Gamma; and the breakdown Gamma of each
  state's best action, the confounding at which the logs no longer single it out.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds import explanation
from causal_shaping.bounds._sweeps import best_of
from causal_shaping.bounds.ceilings import PLUG_IN, compute, masked, refuse_crossing, refuse_plug_in
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.bounds.settings import MOST_CONFOUNDING, TIE, Settings, check_sources, merge_counts
from causal_shaping.bounds.support import Support
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, checksum_of, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import Result, frame_by_state, json_text
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, AssumptionWarning, ContradictionError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from causal_shaping.io.container import Contents

GAMMAS = (1.0, 1.5, 2.0, 5.0, math.inf)
PRECISION = 0.02
"""How close a breakdown Gamma is found, relative to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Result):
    """Bounds at the first step, for several Gamma.

    Attributes:
        space: the states and actions.
        confounding: the Gammas, rising.
        ceilings: float64 [gammas, states]; NaN where the sources contradict each other.
        floors: float64 [gammas, states].
        suboptimal: float64 [gammas], the share of (step, state, admissible action) that is provably suboptimal.
        singled_out: bool [gammas, states], whether all actions but the best (and its equals) are provably suboptimal.
        contradictions: per Gamma, why it is impossible; None if it is possible.
        best_action: int32 [states], the best by the ceilings at the smallest possible Gamma.
        breakdown: float64 [states], the largest Gamma at which the best action is singled out; NaN if there is none.
        bounded: bool [states], states in which some source acted.
        plug_in: the bounds are plug-in estimates: what is called provably suboptimal may be so by chance.
        caveats: why else bounds at some Gamma are not guaranteed, even if every assumption holds, in sentences.
    """

    space: Space
    confounding: tuple[float, ...]
    ceilings: FloatArray
    floors: FloatArray
    suboptimal: FloatArray
    singled_out: BoolArray
    contradictions: tuple[str | None, ...]
    best_action: IntArray
    breakdown: FloatArray
    bounded: BoolArray
    plug_in: bool = False
    caveats: tuple[str, ...] = ()

    KIND: ClassVar[str] = "sensitivity"
    ARRAYS: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **dict.fromkeys(("ceilings", "floors", "suboptimal", "breakdown"), np.float64),
            **dict.fromkeys(("singled_out", "bounded"), np.bool_),
            "best_action": np.int32,
        }
    )

    def __post_init__(self) -> None:
        for name, dtype in self.ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, name))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of everything that it holds."""
        about = json_text([self.space.to_json(), self.confounding, self.contradictions, self.plug_in, self.caveats])
        return checksum_of(about, [getattr(self, name) for name in self.ARRAYS])

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per Gamma: means over the states in which some source acted."""
        result: list[dict[str, Any]] = []
        for i, gamma in enumerate(self.confounding):
            result.append({"confounding": gamma, "contradiction": self.contradictions[i]})
            if self.contradictions[i] is None:
                result[-1] |= {
                    "ceiling": float(self.ceilings[i, self.bounded].mean()),
                    "floor": float(self.floors[i, self.bounded].mean()),
                    "suboptimal": float(self.suboptimal[i]),
                    "singled_out": int(self.singled_out[i, self.bounded].sum()),
                }
        return result

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        return explanation.findings(self)

    def summary(self) -> str:
        """Return a line per Gamma and what follows, in words."""
        return explanation.sensitivity_summary(self)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known of each Gamma and state, by name: arrays [gammas, states]."""
        best = np.array([str(self.space.actions[action]) for action in self.best_action], dtype=object)
        best[np.isnan(self.breakdown)] = None
        columns = {
            "confounding": np.array(self.confounding)[:, None],
            "ceiling": self.ceilings,
            "floor": self.floors,
            "singled_out": self.singled_out,
            "best_action": best,
            "breakdown": self.breakdown,
            "bounded": self.bounded,
        }
        return {name: np.broadcast_to(column, self.ceilings.shape) for name, column in columns.items()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per Gamma and state; `best_action` is missing where no Gamma singles it out."""
        return frame_by_state(self.space, self.columns()).drop(columns="step")

    def to_json(self) -> str:
        """Return a row per Gamma, the findings, and the states in which some source acted, as JSON."""
        best = self.columns()["best_action"][0]
        columns = (self.space.states, best, self.breakdown, self.ceilings.T, self.floors.T)
        names = ("state", "best_action", "breakdown", "ceilings", "floors")
        rows = zip(self.bounded, *columns, strict=True)
        states = [dict(zip(names, row, strict=True)) for bounded, *row in rows if bounded]
        about = {
            "plug_in": self.plug_in,
            "caveats": self.caveats,
            "confounding": self.rows(),
            "findings": self.findings(),
        }
        return json_text(about | {"states": states})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a row per Gamma and state: to a Parquet file, which `load` reads, or to a CSV table."""
        import pyarrow as pa

        from causal_shaping.io import container, files, labels  # late, as bounds need no pyarrow

        states = np.tile(np.arange(len(self.space.states), dtype=np.int32), len(self.confounding))
        table: dict[str, Any] = dict(labels.state_columns(self.space, states))
        for name, column in self.columns().items():
            table[self.space.free_name(name)] = pa.array(column.ravel(), from_pandas=True)
        if files.check_target(path, files.TABLES).name.lower().endswith(files.CSV):
            files.write_table(path, table)
            return
        metadata = {
            "confounding": [str(gamma) for gamma in self.confounding],
            "suboptimal": [str(share) for share in self.suboptimal],
            "contradictions": self.contradictions,
            "best_action": self.best_action.tolist(),
            "plug_in": self.plug_in,
            "caveats": self.caveats,
        }
        container.save(path, self.KIND, table, metadata, space=self.space)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote to a Parquet file."""
        from causal_shaping.io.container import load

        return load(path, cls.KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: Contents) -> Self:
        from causal_shaping.io import labels

        table, space, held = contents.table, contents.space, contents.metadata
        gammas = tuple(map(float, held["confounding"]))
        place = labels.positions(table, space.columns, space.state_positions, "state").astype(np.int64)
        place += len(space.states) * np.searchsorted(gammas, table[space.free_name("confounding")].to_numpy())
        if not np.array_equal(np.sort(place), np.arange(len(gammas) * len(space.states))):
            raise DataError("it does not hold each Gamma and state once")
        order = np.argsort(place)

        def column(name: str) -> Any:
            return table[space.free_name(name)].to_numpy()[order].reshape(len(gammas), -1)

        return cls(
            space=space,
            confounding=gammas,
            ceilings=column("ceiling"),
            floors=column("floor"),
            suboptimal=np.array(held["suboptimal"], dtype=np.float64),
            singled_out=column("singled_out"),
            contradictions=tuple(held["contradictions"]),
            best_action=np.array(held["best_action"], dtype=np.int32),
            breakdown=column("breakdown")[0],
            bounded=column("bounded")[0],
            plug_in=held["plug_in"],
            caveats=tuple(held["caveats"]),
        )

    def __repr__(self) -> str:
        known = int((~np.isnan(self.breakdown[self.bounded])).sum())
        gammas = ", ".join(f"{gamma:g}" for gamma in self.confounding)
        kind = ", plug-in" if self.plug_in else ""
        return (
            f"Sensitivity(confounding {gammas}{kind}: best action singled out in {known} of {self.bounded.sum()} "
            "states)"
        )


def sensitivity(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_max: float,
    reward_min: float,
    *,
    support: Support = "observed",
    confounding: Sequence[float] = GAMMAS,
    fixed: Mapping[str, float] | None = None,
    confidence: float | None = None,
    discount: float = 1.0,
    rarest: float | None = None,
    value_max: float | None = None,
    plug_in: bool = False,
    progress: Progress = no_progress,
) -> Sensitivity:
    """Return how ceilings, floors and provably suboptimal actions move with Gamma.

    Args:
        counts: of one or several sources.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay.
        reward_min: the least that a step can pay.
        support: see `value_ceilings`.
        confounding: the Gammas to look at, each for all sources alike.
        fixed: sources whose Gamma is known, by name; they keep it.
        confidence: the probability that all bounds of one Gamma hold at once, such as 0.95; needed unless the counts
            are those of a population.
        discount: see `value_ceilings`.
        rarest: see `value_ceilings`.
        value_max: a known upper bound on values, for the ceilings.
        plug_in: accept plug-in estimates instead of a confidence, to study them; the result is marked.
        progress: called after each Gamma, those of the search for the breakdown among them; how many they are in all
            becomes known during the search.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> sensitivity(counts, 20, -0.1, -1.1, confounding=(5, float("inf")), confidence=0.95)
        Sensitivity(confounding 5, inf: best action singled out in ... of 43 states)
    """
    held = merge_counts(counts)
    gammas = sorted({float(gamma) for gamma in confounding})
    if not gammas:
        raise ArgumentError("Sensitivity needs at least one Gamma.")
    check_sources("fixed", fixed or {}, held)
    estimated = confidence is None and not held.population
    refuse_plug_in(plug_in, estimated)
    options: dict[str, Any] = {"horizon": horizon, "support": support, "confidence": confidence, "discount": discount}
    options["rarest"] = rarest
    done, caveats = 0, dict[str, None]()

    def bounds(gamma: float, left: int) -> tuple[Ceilings, Floors]:
        nonlocal done
        given = dict.fromkeys(held.sources, gamma) | dict(fixed or {})
        above = Settings(reward_bound=reward_max, confounding=given, value_max=value_max, **options)
        below = Settings(reward_bound=reward_min, confounding=given, **options)
        try:
            with warnings.catch_warnings(action="ignore", category=AssumptionWarning):  # the result holds the caveats
                pair = compute(Ceilings, held, above, doubts=False), compute(Floors, held, below, doubts=False)
            refuse_crossing(*pair)
            caveats.update(dict.fromkeys(caveat for one in pair for caveat in one.caveats if caveat != PLUG_IN))
            return pair
        finally:
            done += 1
            progress(done, done + left, f"Bounding values at a confounding of {gamma:.4g}")

    found: dict[float, tuple[Ceilings, Floors]] = {}
    why: dict[float, str] = {}
    for i, gamma in enumerate(gammas, 1):
        try:
            found[gamma] = bounds(gamma, left=len(gammas) - i)
        except ContradictionError as error:
            why[gamma] = str(error)
    if not found:
        raise ContradictionError(f"No confounding that was asked for is possible. {why[gammas[-1]]}")
    lowest = found[min(found)][0]
    q_values = lowest.q_values[0]
    others = q_values < best_of(q_values)[:, None] - TIE * lowest.unit
    exist = held.space.is_admissible & ~lowest.terminal[:, None]

    def singles_out(worse: BoolArray) -> BoolArray:
        return np.asarray((worse[0] | ~others).all(axis=-1) & others.any(axis=-1))

    nothing, none = np.full(len(others), np.nan), np.zeros(len(others), dtype=bool)
    masks = {gamma: masked(*pair) for gamma, pair in found.items()}
    tested = {gamma: singles_out(worse) for gamma, worse in masks.items()}
    return Sensitivity(
        space=held.space,
        confounding=tuple(gammas),
        ceilings=np.array([found[g][0].values[0] if g in found else nothing for g in gammas]),
        floors=np.array([found[g][1].values[0] if g in found else nothing for g in gammas]),
        suboptimal=np.array([masks[g][:, exist].mean() if g in found else np.nan for g in gammas]),
        singled_out=np.array([tested.get(g, none) for g in gammas]),
        contradictions=tuple(why.get(g) for g in gammas),
        best_action=np.nanargmax(q_values, axis=-1).astype(np.int32),
        breakdown=_breakdown(tested, lambda gamma, left: singles_out(masked(*bounds(gamma, left)))),
        bounded=~lowest.vacuous[0] & ~lowest.terminal,
        plug_in=estimated,
        caveats=tuple(caveats),
    )


def _breakdown(tested: dict[float, BoolArray], test: Callable[[float, int], BoolArray]) -> FloatArray:
    """Return the largest Gamma at which each state passes a test that it fails at all larger ones.

    Halves the interval of log Gamma in which a state breaks down, for all states with the same interval together.
    `tested` holds what passes, bool [states], at Gammas tested so far. A test is also told how many more there will be.
    """
    tested = dict(tested)
    missing = [end for end in (math.inf, max(MOST_CONFOUNDING, min(tested))) if end not in tested]
    for i, end in enumerate(missing, 1):
        tested[end] = test(end, len(missing) - i)
    gammas = sorted(tested)
    passed = np.array([tested[gamma] for gamma in gammas])
    last = passed.shape[0] - 1 - passed[::-1].argmax(axis=0)  # the largest Gamma that passes, if any does
    result = np.where(passed.any(axis=0), np.array(gammas)[last], np.nan)
    # The intervals to halve, with the states that break down within; inf cannot be halved.
    work = [(below, above, result == below) for below, above in itertools.pairwise(gammas[:-1])]
    work = [part for part in work if part[2].any()]
    while work:
        below, above, within = work.pop()
        result[within] = below
        if above <= below * (1 + PRECISION):
            continue
        middle = math.sqrt(below * above)
        left = _halvings(below, above) - 1 + sum(_halvings(low, high) for low, high, _ in work)
        passes = test(middle, left)
        halves = ((middle, above, within & passes), (below, middle, within & ~passes))
        work += [half for half in halves if half[2].any()]
    return result


def _halvings(below: float, above: float) -> int:
    """Return how often an interval of log Gamma is halved until it is precise enough."""
    return max(0, math.ceil(math.log2(math.log(above / below) / math.log1p(PRECISION))))
