"""The settings of a bound: stated, checked and resolved once.

- `Settings`: what a bound is computed with; `Ceilings` and `Floors` are settings, too, and remember theirs.
- `merge_counts`: what a user passes as counts, as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from causal_shaping._checks import (
    check_choice,
    check_discount,
    check_finite,
    check_horizon,
    check_memory,
    check_probability,
)
from causal_shaping.bounds.support import OBSERVED, RAREST, SUPPORT_SHARE, Support
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts, add_counts
from causal_shaping.errors import ArgumentError, DataError

CEILING, FLOOR = 1.0, -1.0
"""Which way a bound errs. A floor is a ceiling of the negated values, but for the choice of the best action."""

TIE = 1e-9
"""Values that differ by less than this share of the largest reward are equally good."""

MOST_CONFOUNDING = 1e4
"""A breakdown Gamma is searched for up to this, and beyond it counts as this, unless the action holds even at inf."""

Confounding: TypeAlias = float | Mapping[str, float]
"""Gamma of all sources, or by name; sources that a mapping leaves out have inf."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Settings:
    """What a bound is computed with.

    Attributes:
        horizon: the number of steps.
        reward_bound: the largest possible reward, for floors the smallest.
        method: "joint" or "paper".
        support: which outcomes are possible; in a result "any", "observed", "observed-action", or "given" for a
            user's own.
        confounding: Gamma of all sources, or by name; in checked settings always by name.
        confidence: the probability that all bounds hold at once; None for a plug-in estimate, or population counts.
        discount: the factor on future reward.
        stationary: an infinite-horizon bound, without an axis for the step.
        rarest: the smallest share of the visits to a cell that an outcome can have, which decides where an observed
            support has seen enough; in checked settings None unless it is used. See `bounds.support`.
        value_max: a known upper bound on values; None if there is none.
    """

    horizon: int
    reward_bound: float
    method: str = "joint"
    support: Support = "observed"
    confounding: Confounding = math.inf
    confidence: float | None = None
    discount: float = 1.0
    stationary: bool = False
    rarest: float | None = None
    value_max: float | None = None

    def checked(self, counts: Counts) -> Self:
        """Return the settings for these counts, Gamma by source and numbers in plain Python; or say what is wrong."""
        check_choice("method", self.method, ("joint", "paper"))
        check_horizon(self.horizon)
        check_discount(self.discount)
        gammas = _confounding_by_source(counts, self.confounding)
        if self.value_max is not None:
            check_finite("value_max", self.value_max)
        if self.confidence is not None:
            check_probability("confidence", self.confidence)
            if counts.population:
                raise ArgumentError("Population counts are exact: there is no sampling error to be confident about.")
        rarest = self._checked_rarest()
        unlimited = self.confidence is None and self.value_max is None and set(gammas.values()) == {math.inf}
        if self.method == "paper" and not unlimited:
            raise ArgumentError(
                "The paper's method has no confidence, no finite confounding and no value_max. Use the method 'joint'."
            )
        if counts.step is not None:
            if self.stationary:
                raise ArgumentError(
                    "An infinite-horizon bound needs steps pooled, but these counts are kept apart by step."
                )
            longest = int(counts.step.max()) + 1
            if longest > self.horizon:
                raise ArgumentError(
                    f"horizon is {self.horizon}, but the logs hold episodes of {longest} steps. Set horizon to "
                    f"{longest} or more, or pool the steps."
                )
        if not self.stationary:
            states, actions = counts.space.is_admissible.shape
            check_memory(
                f"A horizon of {self.horizon} with {states:,} states", 16 * self.horizon * states * (actions + 1)
            )
        plain: dict[str, Any] = {"horizon": int(self.horizon), "stationary": bool(self.stationary)}
        for name in ("reward_bound", "confidence", "discount", "value_max"):
            value = getattr(self, name)
            plain[name] = None if value is None else float(value)
        return replace(self, confounding=gammas, rarest=rarest, **plain)

    def _checked_rarest(self) -> float | None:
        """Return the share that the rarest outcome has at least, None if nothing depends on it."""
        used = isinstance(self.support, str) and self.support in OBSERVED
        if self.rarest is None:
            return RAREST if used and self.confidence is not None else None
        check_probability("rarest", self.rarest, "0.01")
        if not used:
            raise ArgumentError(
                "rarest says when visits have shown all that an observed support allows; leave it out for any other."
            )
        if self.confidence is None:
            raise ArgumentError(
                "rarest says how many visits show all outcomes with confidence: set confidence, too, or leave it out."
            )
        return float(self.rarest)

    @property
    def support_error(self) -> float:
        """The probability, in checked settings, that visits have not shown all that they should have."""
        return 0.0 if self.confidence is None or self.rarest is None else SUPPORT_SHARE * (1 - self.confidence)

    @property
    def limits_error(self) -> float:
        """The probability, in checked settings, that some limit of a mass is wrong."""
        return 0.0 if self.confidence is None else 1 - self.confidence - self.support_error

    def gamma(self, source: str) -> float:
        """Return the confounding of a source, once the settings are checked."""
        assert isinstance(self.confounding, Mapping)
        return self.confounding[source]


def vacuous_values(settings: Settings, side: float) -> FloatArray:
    """Return what can be said of values without any logs: float64 [steps], or a number if stationary."""
    b, d = side * settings.reward_bound, settings.discount
    left = np.array(math.inf) if settings.stationary else np.arange(settings.horizon, 0, -1.0)
    if b <= 0:  # one step, and then the end
        result = side * np.full(left.shape, b)
    else:
        with np.errstate(invalid="ignore"):
            result = side * b * (left if d == 1 else (1 - d**left) / (1 - d))
    return np.asarray(result if settings.value_max is None else np.minimum(result, settings.value_max))


def _confounding_by_source(counts: Counts, confounding: Confounding) -> dict[str, float]:
    """Return Gamma of each source: one number for all, or a mapping by name in which the others are unlimited."""
    if isinstance(confounding, Mapping):
        check_sources("confounding", confounding, counts)
        given = dict.fromkeys(counts.sources, math.inf) | dict(confounding)
    else:
        given = dict.fromkeys(counts.sources, confounding)
    try:
        gammas = {name: float(gamma) for name, gamma in given.items()}
    except (TypeError, ValueError):
        raise ArgumentError(f"confounding is {confounding!r}; give a number from 1 to inf, or one by source.") from None
    for name, gamma in gammas.items():
        if not gamma >= 1:
            raise ArgumentError(f"The confounding of {name!r} is {gamma}; it must be 1 (none) or more, up to inf.")
    return gammas


def refuse_reward(name: str, bound: float, source: str, seen: float) -> None:
    """Refuse a `reward_max` or `reward_min` that a reward of a source breaks."""
    side, what, more = (1, "ceiling needs a true upper", "more")
    if name == "reward_min":
        side, what, more = (-1, "floor needs a true lower", "less")
    if side * bound < side * seen:
        cost = ""
        if side > 0 and bound <= 0 < seen:
            cost = " If the column holds costs, read it with a minus in front of its name: '-cost'."
        raise ArgumentError(
            f"{name} is {bound}, but source {source!r} holds a reward of {seen}. A {what} bound of the reward: set "
            f"{name} to {seen} or {more}.{cost}"
        )


def check_sources(what: str, given: Iterable[str], counts: Counts) -> None:
    """Refuse names that no source has."""
    for name in given:
        if name not in counts.sources:
            raise ArgumentError(f"{what} names {name!r}, but the sources are {', '.join(counts.sources)}.")


def merge_counts(counts: Counts | Sequence[Counts]) -> Counts:
    """Return one or several counts as one that is not empty."""
    parts = [counts] if isinstance(counts, Counts) else list(counts)
    if not parts:
        raise ArgumentError("There are no counts to bound values with.")
    merged = add_counts(parts)
    if not len(merged):
        raise DataError("The counts are empty: nothing was logged.")
    return merged
