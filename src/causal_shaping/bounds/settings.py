"""What a bound is computed with, checked once against the counts that it is computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts, add_counts
from causal_shaping.data.space import Label
from causal_shaping.errors import ArgumentError, DataError

CEILING, FLOOR = 1.0, -1.0
"""The side of a bound. A floor is the ceiling of the negated values, except for the maximum over
actions, which is a maximum on both sides."""

SUPPORTS = ("any", "observed", "observed-action")
OBSERVED = SUPPORTS[1:]
"""Supports under which unproven mass does what was seen to happen."""

DEFAULT_RAREST = 0.01
"""By default no outcome is rarer than this, as a share of the visits to a cell.

Chosen by experiment, with a confidence of 0.95. In six states of which each pays 1 in a share of
the visits, all ceilings held in at least 98% of 60 samples for shares from 0.5% on; at 2% they held
in 88%, at 5% in 30%, and without any such rule in none. With 100,000 steps a source, four of the
paper's five worlds lose nothing by it; at 0.005 three of the five lose half of what `observed`
gains over `any`.
"""

SUPPORT_ERROR_SHARE = 0.2
"""The part of 1 - confidence that is spent on outcomes which the logs have not shown yet."""

TIE = 1e-9
"""Values that differ by less than this share of the largest reward are equally good."""

MAX_CONFOUNDING = 1e4
"""Breakdown points are searched for up to this Gamma. What holds there is said to hold at any
finite Gamma."""

Confounding: TypeAlias = float | Mapping[str, float]
"""Gamma of all sources, or by the name of the source; a mapping may leave out those with inf."""

Successors: TypeAlias = Iterable[Label | None]
Support: TypeAlias = (
    str | Mapping[Label, Successors | None] | Callable[[Label, Label], Successors | None]
)
"""The name of a support, or the user's own: by state the labels of all states that can follow it,
with None among them for an end without a next state, or a function of state and action that returns
these labels. States that a table leaves out, and None in place of the labels, allow anything."""

BYTES_A_VALUE = 16
"""Values and action values of a step take this many bytes a number, with one copy of each."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Settings:
    """What a bound is computed with.

    Attributes:
        horizon: the number of steps of an episode.
        reward_bound: the largest reward that a step can pay; for floors the smallest.
        method: "joint" or "paper".
        support: which outcomes unproven mass may have; in a result "given" for a user's own.
        confounding: Gamma from 1 (a randomised trial) to inf; after `checked`, by source.
        confidence: the probability that all bounds hold at once; None for plug-in estimates.
        discount: the factor on future reward.
        stationary: bound the infinite horizon instead of a finite one.
        rarest: the smallest share of the visits to a cell that a possible outcome has; after
            `checked`, None unless it is used.
        value_max: a known upper bound of the values, None if there is none.
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
        """Return the settings with Gamma by source; refuse what does not fit the counts."""
        check_choice("method", self.method, ("joint", "paper"))
        check_horizon(self.horizon)
        check_discount(self.discount)
        self._check_steps(counts)
        if self.value_max is not None:
            check_finite("value_max", self.value_max)
        if self.confidence is not None:
            check_probability("confidence", self.confidence)
            if counts.population:
                raise ArgumentError(
                    "Population counts are exact: there is no sampling error to be confident "
                    "about. "
                    "Leave confidence out."
                )
        gammas = _gamma_by_source(counts, self.confounding)
        rarest = self._checked_rarest()
        unlimited = self.confidence is None and self.value_max is None
        unlimited = unlimited and set(gammas.values()) == {math.inf}
        if self.method == "paper" and not unlimited:
            raise ArgumentError(
                "The paper's method has no confidence, no finite confounding and no value_max. "
                "Use the method 'joint'."
            )
        plain: dict[str, Any] = {
            "horizon": int(self.horizon),
            "stationary": bool(self.stationary),
            "reward_bound": float(self.reward_bound),
            "discount": float(self.discount),
        }
        for name in ("confidence", "value_max"):
            if getattr(self, name) is not None:
                plain[name] = float(getattr(self, name))
        return replace(self, confounding=gammas, rarest=rarest, **plain)

    def _check_steps(self, counts: Counts) -> None:
        """Refuse a horizon that does not fit the counts, or that does not fit into memory."""
        if self.stationary:
            if counts.step is not None:
                raise ArgumentError(
                    "An infinite-horizon bound needs steps pooled, but these counts are kept apart "
                    "by step. Count again with steps pooled: leave out step_indexed."
                )
            return
        longest = 0 if counts.step is None else int(counts.step.max()) + 1
        if longest > self.horizon:
            raise ArgumentError(
                f"horizon is {self.horizon}, but the logs hold episodes of {longest} steps. Set "
                f"horizon to {longest} or more, or pool the steps."
            )
        states, actions = counts.space.is_admissible.shape
        check_memory(
            f"A horizon of {self.horizon} with {states:,} states",
            BYTES_A_VALUE * self.horizon * states * (actions + 1),
        )

    def _checked_rarest(self) -> float | None:
        """Return the share of the rarest outcome, or None if no limit depends on it."""
        observed = isinstance(self.support, str) and self.support in OBSERVED
        if self.rarest is None:
            return DEFAULT_RAREST if observed and self.confidence is not None else None
        check_probability("rarest", self.rarest, "0.01")
        if not observed or self.confidence is None:
            raise ArgumentError(
                "rarest says how many visits show all outcomes of a state with confidence, so it "
                "needs a confidence, and the support 'observed' or 'observed-action'. Leave it out "
                "otherwise."
            )
        return float(self.rarest)

    @property
    def support_error(self) -> float:
        """The probability that the visits have not shown every outcome that they should have."""
        if self.confidence is None or self.rarest is None:
            return 0.0
        return SUPPORT_ERROR_SHARE * (1 - self.confidence)

    @property
    def limits_error(self) -> float:
        """The probability that some confidence limit of a mass is wrong."""
        if self.confidence is None:
            return 0.0
        return 1 - self.confidence - self.support_error

    def gamma(self, source: str) -> float:
        """Return the confounding of a source; only of settings that were checked."""
        assert isinstance(self.confounding, Mapping)
        return self.confounding[source]


def vacuous_values(settings: Settings, side: float) -> FloatArray:
    """Return bounds of values without any logs: float64 [steps], a number if stationary."""
    best, discount = side * settings.reward_bound, settings.discount
    steps_left = np.arange(settings.horizon, 0, -1.0)
    if settings.stationary:
        steps_left = np.array(math.inf)
    if best <= 0:  # the best is one step and then the end
        values = np.full(steps_left.shape, best)
    elif discount == 1:
        values = best * steps_left
    else:
        values = best * (1 - discount**steps_left) / (1 - discount)
    values = side * values
    if settings.value_max is not None:
        values = np.minimum(values, settings.value_max)
    return np.asarray(values)


def refuse_reward(name: str, bound: float, source: str, seen: float) -> None:
    """Refuse a `reward_max` or `reward_min` that a logged reward of a source breaks."""
    side, what, more = CEILING, "ceiling needs a true upper", "more"
    if name == "reward_min":
        side, what, more = FLOOR, "floor needs a true lower", "less"
    if side * seen <= side * bound:
        return
    advice = ""
    if side > 0 and bound <= 0 < seen:
        advice = " If the column holds costs, read it with a minus in front of its name: '-cost'."
    raise ArgumentError(
        f"{name} is {bound}, but source {source!r} holds a reward of {seen}. A {what} bound of the "
        f"reward: set {name} to {seen} or {more}.{advice}"
    )


def check_sources(what: str, names: Iterable[str], counts: Counts) -> None:
    """Refuse names that no source has."""
    for name in names:
        if name not in counts.sources:
            raise ArgumentError(
                f"{what} names {name!r}, but the sources are {', '.join(counts.sources)}."
            )


def merge_counts(counts: Counts | Sequence[Counts]) -> Counts:
    """Return one or several counts as one that is not empty."""
    parts = [counts] if isinstance(counts, Counts) else list(counts)
    if not parts:
        raise ArgumentError("There are no counts to bound values with.")
    merged = add_counts(parts)
    if not len(merged):
        raise DataError("The counts are empty: nothing was logged.")
    return merged


def _gamma_by_source(counts: Counts, confounding: Confounding) -> dict[str, float]:
    """Return Gamma of each source."""
    gammas: dict[str, Any] = dict.fromkeys(counts.sources, math.inf)
    if isinstance(confounding, Mapping):
        check_sources("confounding", confounding, counts)
        gammas |= confounding
    else:
        gammas = dict.fromkeys(counts.sources, confounding)
    for name, gamma in gammas.items():
        try:
            gammas[name] = float(gamma)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"confounding is {confounding!r}; give a number from 1 to inf, or one by source."
            ) from None
        if not gammas[name] >= 1:
            raise ArgumentError(
                f"The confounding of {name!r} is {gamma}; it must be 1 (none) or more, up to inf."
            )
    return gammas
