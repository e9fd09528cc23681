"""How bounds move with the confounding that is allowed for.

- `sensitivity`: ceilings, floors and what is provably suboptimal, for several Gamma; and the breakdown Gamma of each
  state's best action, the confounding that it takes before the logs no longer single it out.
"""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from causal_shaping.bounds.ceilings import merge_counts, provably_suboptimal, value_ceilings, value_floors
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, AssumptionWarning, ContradictionError
from causal_shaping.io.files import write_table
from causal_shaping.io.labels import state_columns

GAMMAS = (1.0, 1.5, 2.0, 5.0, math.inf)
MOST_CONFOUNDING = 1e4
"""A breakdown Gamma is looked for up to this; beyond it counts as this, unless even inf does not break it."""

PRECISION = 0.02
"""How close a breakdown Gamma is found, relative to it."""

TIE = 1e-9
"""Actions whose values differ by less than this are equally good."""


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Bounds at the first step, for several Gamma.

    Attributes:
        space: the states and actions.
        confounding: the Gammas, rising.
        ceilings: float64 [gammas, states]; NaN where the sources contradict each other.
        floors: float64 [gammas, states].
        suboptimal: float64 [gammas], the share of (step, state, action) that is provably suboptimal.
        singled_out: bool [gammas, states], whether all actions but the best (and its equals) are provably suboptimal.
        contradictions: per Gamma, why it is impossible; None if it is possible.
        best_action: int32 [states], the best by the ceilings at the smallest possible Gamma.
        breakdown: float64 [states], the largest Gamma at which the best action is singled out; NaN if none does.
        bounded: bool [states], states that some source left.
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

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per Gamma: means over the states that some source left."""
        result: list[dict[str, Any]] = []
        for i, gamma in enumerate(self.confounding):
            row: dict[str, Any] = {"confounding": gamma, "contradiction": self.contradictions[i]}
            if self.contradictions[i] is None:
                row |= {
                    "ceiling": float(self.ceilings[i, self.bounded].mean()),
                    "floor": float(self.floors[i, self.bounded].mean()),
                    "suboptimal": float(self.suboptimal[i]),
                    "singled_out": int(self.singled_out[i, self.bounded].sum()),
                }
            result.append(row)
        return result

    def findings(self) -> list[str]:
        """Return what matters most, in sentences."""
        known = self.breakdown[self.bounded & ~np.isnan(self.breakdown)]
        states = int(self.bounded.sum())
        result = []
        impossible = [gamma for gamma, why in zip(self.confounding, self.contradictions, strict=True) if why]
        if impossible:
            shown = ", ".join(f"{gamma:g}" for gamma in impossible)
            result.append(f"At a confounding of {shown} the sources contradict each other.")
        possible = [why is None for why in self.contradictions]
        ceilings, floors = self.ceilings[possible][:, self.bounded], self.floors[possible][:, self.bounded]
        if (np.diff(ceilings, axis=0) < -TIE).any() or (np.diff(floors, axis=0) > TIE).any():
            result.append(
                "Some bounds tighten as confounding grows, which only sampling error can do: at small confounding the "
                "sources differ within it, and were scaled to agree. Use confidence=0.95 (--confidence 0.95)."
            )
        if not len(known):
            return [*result, f"In none of {states} states do the logs single out a best action."]
        result.append(
            f"In {len(known)} of {states} states the logs single out a best action, if confounding is small enough."
        )
        finite = known[known < MOST_CONFOUNDING]
        if len(finite):
            weakest = int(np.argmin(np.where(np.isnan(self.breakdown) | ~self.bounded, np.inf, self.breakdown)))
            action, state = self.space.actions[self.best_action[weakest]], self.space.states[weakest]
            result.append(
                f"Break at a finite confounding: {len(finite)}, half of them at {np.median(finite):.3g} or less; the "
                f"first is {action} in {state} at {self.breakdown[weakest]:.3g}."
            )
        result.append(
            "Hold at any finite confounding, which takes what never followed an action for impossible or rare: "
            f"{len(known) - len(finite) - np.isinf(known).sum()}; hold even without that: {np.isinf(known).sum()}."
        )
        return result

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values, for other programs; inf as a string."""

        def plain(number: float) -> float | str | None:
            return None if math.isnan(number) else "inf" if math.isinf(number) else float(number)

        states = [
            {
                "state": label,
                "best_action": None if np.isnan(self.breakdown[s]) else self.space.actions[self.best_action[s]],
                "breakdown": plain(self.breakdown[s]),
                "ceilings": [plain(value) for value in self.ceilings[:, s]],
                "floors": [plain(value) for value in self.floors[:, s]],
            }
            for s, label in enumerate(self.space.states)
            if self.bounded[s]
        ]
        rows = [row | {"confounding": plain(row["confounding"])} for row in self.rows()]
        return {"confounding": rows, "findings": self.findings(), "states": states}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a row per Gamma and state to a Parquet or CSV file."""
        gammas, states = len(self.confounding), len(self.space.states)
        actions = np.array([str(action) for action in self.space.actions])
        known = ~np.isnan(self.breakdown)
        write_table(
            path,
            {
                "confounding": np.repeat(self.confounding, states),
                **state_columns(self.space, np.tile(np.arange(states, dtype=np.int32), gammas)),
                "ceiling": self.ceilings.ravel(),
                "floor": self.floors.ravel(),
                "singled_out": self.singled_out.ravel(),
                "best_action": pa.array(np.tile(actions[self.best_action], gammas), mask=np.tile(~known, gammas)),
                "breakdown": pa.array(np.tile(self.breakdown, gammas), mask=np.tile(~known, gammas)),
            },
        )

    def __repr__(self) -> str:
        return f"Sensitivity at {', '.join(f'{gamma:g}' for gamma in self.confounding)}. {' '.join(self.findings())}"


def sensitivity(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_max: float,
    reward_min: float,
    confounding: Sequence[float] = GAMMAS,
    *,
    fixed: Mapping[str, float] | None = None,
    progress: Callable[[], None] = lambda: None,
    **options: Any,
) -> Sensitivity:
    """Return how ceilings, floors and provably suboptimal actions move with Gamma.

    Args:
        counts: of one or several sources.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay.
        reward_min: the least.
        confounding: the Gammas to look at, for all sources alike.
        fixed: sources whose Gamma is known, by name, and stays.
        progress: called after each Gamma that was computed, also those on the way to the breakdown.
        options: support, confidence, discount, min_visits: see `value_ceilings`.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> sensitivity(counts, 20, -0.1, -1.1, confounding=(5, float("inf")))
        Sensitivity at 5, inf. In ... of 43 states ...
    """
    held = merge_counts(counts)
    gammas = sorted({float(gamma) for gamma in confounding})
    if not gammas or options.get("stationary"):
        raise ArgumentError("Sensitivity needs at least one Gamma and a horizon, not a fixed point.")
    for name in fixed or {}:
        if name not in held.sources:
            raise ArgumentError(f"fixed names {name!r}, but the sources are {', '.join(held.sources)}.")

    def bounds(gamma: float) -> tuple[Ceilings, Floors]:
        given = dict.fromkeys(held.sources, gamma) | dict(fixed or {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)  # of a single source: it would come with every Gamma
            pair = (
                value_ceilings(held, horizon, reward_max, confounding=given, **options),
                value_floors(held, horizon, reward_min, confounding=given, **options),
            )
        progress()
        return pair

    states = len(held.space.states)
    found: dict[float, tuple[Ceilings, Floors]] = {}
    why: dict[float, str] = {}
    for gamma in gammas:
        try:
            found[gamma] = bounds(gamma)
        except ContradictionError as error:
            why[gamma] = str(error)
    if not found:
        raise ContradictionError(f"No confounding that was asked for is possible. {why[gammas[-1]]}")
    lowest = found[min(found)][0]
    best = lowest.q_values[0].argmax(axis=-1).astype(np.int32)
    others = lowest.q_values[0] < lowest.q_values[0].max(axis=-1, keepdims=True) - TIE

    def holds(pair: tuple[Ceilings, Floors]) -> BoolArray:
        worse = provably_suboptimal(*pair)[0]
        return np.asarray((worse | ~others).all(axis=-1) & others.any(axis=-1))

    nothing = np.full(states, np.nan)
    tested = {gamma: holds(pair) for gamma, pair in found.items()}
    return Sensitivity(
        space=held.space,
        confounding=tuple(gammas),
        ceilings=np.array([found[g][0].values[0] if g in found else nothing for g in gammas]),
        floors=np.array([found[g][1].values[0] if g in found else nothing for g in gammas]),
        suboptimal=np.array(
            [provably_suboptimal(*found[g])[:, ~lowest.terminal].mean() if g in found else np.nan for g in gammas]
        ),
        singled_out=np.array([tested.get(g, np.zeros(states, dtype=bool)) for g in gammas]),
        contradictions=tuple(why.get(g) for g in gammas),
        best_action=best,
        breakdown=_breakdown(tested, lambda gamma: holds(bounds(gamma))),
        bounded=~lowest.vacuous[0] & ~lowest.terminal,
    )


def _breakdown(tested: dict[float, BoolArray], test: Callable[[float], BoolArray]) -> FloatArray:
    """Return the largest Gamma at which each state passes a test that larger ones never pass again.

    Halves the interval of log Gamma that the states are known to break in, together for states with the same one.
    """
    lowest = min(tested)
    tested = dict(tested)
    for end in (math.inf, max(MOST_CONFOUNDING, lowest)):
        if end not in tested:
            tested[end] = test(end)
    gammas = sorted(tested)
    passed = np.array([tested[gamma] for gamma in gammas])
    last = passed.shape[0] - 1 - passed[::-1].argmax(axis=0)  # the largest Gamma that passes, if any does
    result = np.where(passed.any(axis=0), np.array(gammas)[last], np.nan)
    work = []
    for below, above in itertools.pairwise(gammas[:-1]):  # inf cannot be halved
        within = passed.any(axis=0) & (result == below)
        if within.any():
            work.append((below, above, within))
    while work:
        below, above, within = work.pop()
        result[within] = below
        if above <= below * (1 + PRECISION):
            continue
        middle = math.sqrt(below * above)
        passes = test(middle)
        work += [
            (low, high, part)
            for low, high, part in ((middle, above, within & passes), (below, middle, within & ~passes))
            if part.any()
        ]
    return result
