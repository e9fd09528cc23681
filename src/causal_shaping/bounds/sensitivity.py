"""How bounds move with the confounding that is allowed for.

`sensitivity` computes ceilings, floors and what is provably suboptimal for several Gamma, and the
breakdown Gamma of each state's best action: the confounding at which the logs no longer single it
out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds import words
from causal_shaping.bounds.ceilings import PLUG_IN, bare_bounds
from causal_shaping.bounds.masks import masked, refuse_crossing, refuse_plug_in
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.bounds.settings import (
    MAX_CONFOUNDING,
    TIE,
    Settings,
    Support,
    check_sources,
    merge_counts,
)
from causal_shaping.bounds.solution import best_of
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, checksum_of, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import Contents, Result, Saved, json_text
from causal_shaping.data.space import MakeColumn, Space, plain_column
from causal_shaping.errors import ArgumentError, ContradictionError, DataError

GAMMAS = (1.0, 1.5, 2.0, 5.0, math.inf)
"""The Gammas that are looked at unless others are asked for."""

PRECISION = 0.02
"""How close a breakdown Gamma is found, relative to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Saved, Result):
    """Bounds at the first step, for several Gamma.

    Attributes:
        space: the states and actions.
        confounding: the Gammas, rising.
        ceilings: float64 [gammas, states]; NaN where the sources contradict each other.
        floors: float64 [gammas, states].
        suboptimal: float64 [gammas], the share of (step, state, admissible action) that is provably
            suboptimal.
        singled_out: bool [gammas, states], whether all actions but the best (and its equals) are
            provably suboptimal.
        contradictions: per Gamma, why it is impossible; None if it is possible.
        best_action: int32 [states], the best by the ceilings at the smallest possible Gamma.
        breakdown: float64 [states], the largest Gamma at which the best action is singled out; NaN
            if there is none.
        bounded: bool [states], states in which some source acted.
        plug_in: whether the bounds are plug-in estimates: what is called provably suboptimal may be
            so by chance.
        caveats: why else bounds at some Gamma are not guaranteed, even if every assumption holds.
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

    KIND = "sensitivity"
    EXACT_CSV = False  # a CSV file is for people
    ARRAYS = MappingProxyType(
        dict.fromkeys(("ceilings", "floors", "suboptimal", "breakdown"), np.float64)
        | dict.fromkeys(("singled_out", "bounded"), np.bool_)
        | {"best_action": np.int32}
    )

    def __post_init__(self) -> None:
        for name, dtype in self.ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, name))

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of everything that it holds."""
        about = [self.space.to_json(), self.confounding, self.contradictions, self.plug_in]
        text = json_text([*about, self.caveats])
        return checksum_of(text, [getattr(self, name) for name in self.ARRAYS])

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
        return words.findings(self)

    def summary(self) -> str:
        """Return a line per Gamma and what follows from it."""
        return words.sensitivity_summary(self)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known of each Gamma and state, by name: arrays [gammas, states]."""
        columns = {
            "confounding": np.array(self.confounding)[:, None],
            "ceiling": self.ceilings,
            "floor": self.floors,
            "singled_out": self.singled_out,
            "best_action": self._best_actions(),
            "breakdown": self.breakdown,
            "bounded": self.bounded,
        }
        shape = self.ceilings.shape
        return {name: np.broadcast_to(column, shape) for name, column in columns.items()}

    def _best_actions(self) -> npt.NDArray[Any]:
        """Return the best action of each state; None where no Gamma singles it out."""
        best = [str(self.space.actions[action]) for action in self.best_action]
        result = np.array(best, dtype=object)
        result[np.isnan(self.breakdown)] = None
        return result

    def to_json(self) -> str:
        """Return a row per Gamma, the findings, and the states in which some source acted."""
        names = ("state", "best_action", "breakdown", "ceilings", "floors")
        columns = (self.space.states, self._best_actions(), self.breakdown)
        rows = zip(*columns, self.ceilings.T, self.floors.T, strict=True)
        states = [
            dict(zip(names, row, strict=True))
            for row, bounded in zip(rows, self.bounded, strict=True)
            if bounded
        ]
        return json_text(
            {
                "plug_in": self.plug_in,
                "caveats": self.caveats,
                "confounding": self.rows(),
                "findings": self.findings(),
                "states": states,
            }
        )

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return a row per Gamma and state, with the label of the state."""
        table = self.space.columns_by_state(self.columns(), make)
        del table["step"]  # the Gammas take the place of steps, and have a column of their own
        return table

    @property
    def header(self) -> dict[str, Any]:
        """What a file holds beside the space and the table."""
        return {
            "confounding": [str(gamma) for gamma in self.confounding],
            "suboptimal": [str(share) for share in self.suboptimal],
            "contradictions": self.contradictions,
            "best_action": self.best_action.tolist(),
            "plug_in": self.plug_in,
            "caveats": self.caveats,
        }

    @classmethod
    def from_contents(cls, contents: Contents) -> Self:
        """Return what a Parquet file holds."""
        from causal_shaping.data.columns import positions  # late, as it imports Arrow

        table, space, metadata = contents.table, contents.space, contents.metadata
        gammas = tuple(map(float, metadata["confounding"]))
        state = positions(table, space.columns, space.state_positions, "state")
        gamma = np.searchsorted(gammas, table[space.free_name("confounding")].to_numpy())
        place = gamma * len(space.states) + state
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
            suboptimal=np.array(metadata["suboptimal"], dtype=np.float64),
            singled_out=column("singled_out"),
            contradictions=tuple(metadata["contradictions"]),
            best_action=np.array(metadata["best_action"], dtype=np.int32),
            breakdown=column("breakdown")[0],
            bounded=column("bounded")[0],
            plug_in=metadata["plug_in"],
            caveats=tuple(metadata["caveats"]),
        )

    def __repr__(self) -> str:
        known = int((~np.isnan(self.breakdown[self.bounded])).sum())
        about = "confounding " + ", ".join(f"{gamma:g}" for gamma in self.confounding)
        if self.plug_in:
            about += ", plug-in"
        states = self.bounded.sum()
        return f"Sensitivity({about}: best action singled out in {known} of {states} states)"


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
        confidence: the probability that all bounds of one Gamma hold at once, such as 0.95; needed
            unless the counts are those of a population.
        discount: see `value_ceilings`.
        rarest: see `value_ceilings`.
        value_max: a known upper bound on values, for the ceilings.
        plug_in: accept plug-in estimates instead of a confidence, to study them; the result is
            marked.
        progress: called after each Gamma, those of the search for the breakdown among them; how
            many they are in all becomes known during the search.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> sensitivity(counts, 20, -0.1, -1.1, confounding=(5, float("inf")), confidence=0.95)
        Sensitivity(confounding 5, inf: best action singled out in ... of 43 states)
    """
    counts = merge_counts(counts)
    gammas = sorted({float(gamma) for gamma in confounding})
    if not gammas:
        raise ArgumentError("Sensitivity needs at least one Gamma.")
    check_sources("fixed", fixed or {}, counts)
    estimated = confidence is None and not counts.population
    refuse_plug_in(plug_in, estimated)
    options: dict[str, Any] = {
        "horizon": horizon,
        "support": support,
        "confidence": confidence,
        "discount": discount,
        "rarest": rarest,
    }
    above = Settings(reward_bound=reward_max, value_max=value_max, **options)
    below = Settings(reward_bound=reward_min, **options)
    search = _Search(counts, above, below, fixed or {}, progress)

    # The bounds at each Gamma that was asked for.
    pairs: dict[float, tuple[Ceilings, Floors]] = {}
    impossible: dict[float, str] = {}
    for i, gamma in enumerate(gammas, 1):
        try:
            pairs[gamma] = search.bounds(gamma, len(gammas) - i)
        except ContradictionError as error:
            impossible[gamma] = str(error)
    if not pairs:
        raise ContradictionError(
            f"No confounding that was asked for is possible. {impossible[gammas[-1]]}"
        )

    # The best action at the smallest of them, and where it is the only one that can be optimal.
    lowest = pairs[min(pairs)][0]
    q_values = lowest.q_values[0]
    others = q_values < best_of(q_values)[:, None] - TIE * lowest.unit
    exist = counts.space.is_admissible & ~lowest.terminal[:, None]
    masks = {gamma: masked(*pair) for gamma, pair in pairs.items()}
    tested = {gamma: _singles_out(mask, others) for gamma, mask in masks.items()}
    breakdown = _breakdown(
        tested, lambda gamma, left: _singles_out(masked(*search.bounds(gamma, left)), others)
    )

    def by_gamma(values: Mapping[float, Any], missing: Any) -> npt.NDArray[Any]:
        return np.array([values.get(gamma, missing) for gamma in gammas])

    nothing = np.full(len(others), np.nan)
    return Sensitivity(
        space=counts.space,
        confounding=tuple(gammas),
        ceilings=by_gamma({gamma: pair[0].values[0] for gamma, pair in pairs.items()}, nothing),
        floors=by_gamma({gamma: pair[1].values[0] for gamma, pair in pairs.items()}, nothing),
        suboptimal=by_gamma({g: mask[:, exist].mean() for g, mask in masks.items()}, np.nan),
        singled_out=by_gamma(tested, np.zeros(len(others), dtype=bool)),
        contradictions=tuple(impossible.get(gamma) for gamma in gammas),
        best_action=np.nanargmax(q_values, axis=-1).astype(np.int32),
        breakdown=breakdown,
        bounded=~lowest.vacuous[0] & ~lowest.terminal,
        plug_in=estimated,
        caveats=tuple(search.caveats),
    )


class _Search:
    """Computes bounds at one Gamma after another, and remembers their caveats."""

    def __init__(
        self,
        counts: Counts,
        above: Settings,
        below: Settings,
        fixed: Mapping[str, float],
        progress: Progress,
    ) -> None:
        self.counts, self.above, self.below, self.fixed = counts, above, below, fixed
        self.progress, self.done, self.caveats = progress, 0, dict[str, None]()

    def bounds(self, gamma: float, left: int) -> tuple[Ceilings, Floors]:
        """Return ceilings and floors at a Gamma; `left` says how many more will be asked for."""
        gammas = dict.fromkeys(self.counts.sources, gamma) | dict(self.fixed)
        above, below = (replace(one, confounding=gammas) for one in (self.above, self.below))
        try:
            pair = (
                bare_bounds(Ceilings, self.counts, above),
                bare_bounds(Floors, self.counts, below),
            )
            refuse_crossing(*pair)
        finally:
            self.done += 1
            what = f"Bounding values at a confounding of {gamma:.4g}"
            self.progress(self.done, self.done + left, what)
        caveats = (*pair[0].caveats, *pair[1].caveats)
        self.caveats |= dict.fromkeys(one for one in caveats if one != PLUG_IN)
        return pair


def _singles_out(mask: BoolArray, others: BoolArray) -> BoolArray:
    """Return the states whose actions are all masked at the first step, but for the best."""
    return np.asarray((mask[0] | ~others).all(axis=-1) & others.any(axis=-1))


def _breakdown(
    tested: Mapping[float, BoolArray], test: Callable[[float, int], BoolArray]
) -> FloatArray:
    """Return the largest Gamma at which each state passes a test that it fails at all larger ones.

    Halves the interval of log Gamma in which a state breaks down, for all states with the same
    interval together.

    Args:
        tested: what passes, bool [states], at Gammas tested so far.
        test: returns the same at another Gamma, and is told how many more there will be.
    """
    tested = dict(tested)
    ends = math.inf, max(MAX_CONFOUNDING, min(tested))
    missing = [end for end in ends if end not in tested]
    for i, end in enumerate(missing, 1):
        tested[end] = test(end, len(missing) - i)
    gammas = sorted(tested)
    passed = np.array([tested[gamma] for gamma in gammas])
    last = len(passed) - 1 - passed[::-1].argmax(axis=0)  # the largest that passes, if any does
    result = np.where(passed.any(axis=0), np.array(gammas)[last], np.nan)
    # The intervals to halve, with the states that break down within; inf cannot be halved.
    pairs = itertools.pairwise(gammas[:-1])
    work = [(below, above, result == below) for below, above in pairs]
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
