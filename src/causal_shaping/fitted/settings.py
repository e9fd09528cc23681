"""What fitted ceilings are computed with: every constant, its default, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from causal_shaping._checks import LARGEST, check_choice, check_discount, check_finite, check_horizon, check_integer
from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import ArgumentError

SUPPORTS = ("observed", "observed-action", "any")

OF_NETWORKS = (
    "estimator", "network", "hidden", "layers", "first_gradient_steps", "gradient_steps", "batch", "rate", "threads",
)  # fmt: skip
"""Settings that went with the networks of version 0.2."""

LARGEST_VALUE = 1e37
"""Values are kept in single precision, which ends beyond."""

MOST_ATOMS, MOST_TREES, MOST_MEMBERS = 10_000, 10_000, 1_000
"""No more than these are fitted: time and memory grow with each."""


@dataclass(frozen=True)
class Settings:
    """What a fit is computed with; see `fit_ceilings` for the meaning of each.

    `side` is 1 for ceilings and -1 for floors, whose kernels see negated rewards.
    """

    reward_bound: float
    horizon: int | None = None
    discount: float = 1.0
    side: float = 1.0
    support: str = "observed"
    confounding: Mapping[str, float] | float = math.inf
    expectile: float = 0.99
    atoms: int = 51
    rarest_action: float = 0.001
    least_rows: float = 1.0
    trees: int = 8
    leaf: int = 60
    sample: int = 100_000
    kept: int = 50_000
    most_rows: int = 1_000_000
    members: int = 3
    quantile: float = 0.9
    held_out: float = 0.1
    settled: float = 1e-3
    seed: int = 0

    def checked(self, sources: tuple[str, ...]) -> Self:
        """Return the settings with Gamma by source; or say what is wrong."""
        name = "reward_max" if self.side > 0 else "reward_min"
        check_finite(name, self.reward_bound)
        check_discount(self.discount)
        if self.horizon is None and self.discount == 1:
            raise ArgumentError(
                "horizon is missing: set it to the steps of an episode of your agent, or discount below 1 for an "
                "infinite horizon."
            )
        if self.horizon is not None:
            check_horizon(self.horizon)
        check_choice("support", self.support, SUPPORTS)
        for field, least, most in (
            ("atoms", 2, MOST_ATOMS),
            ("trees", 1, MOST_TREES),
            ("leaf", 1, LARGEST),
            ("sample", 2, LARGEST),
            ("kept", 2, LARGEST),
            ("most_rows", 2, LARGEST),
            ("members", 1, MOST_MEMBERS),
            ("seed", 0, LARGEST),
        ):
            check_integer(field, getattr(self, field), least=least, most=most)
        for field in ("rarest_action", "least_rows", "settled"):
            if not 0 <= getattr(self, field) < math.inf:
                raise ArgumentError(f"{field} is {getattr(self, field)}; it must be 0 or more.")
        for field, low, high in (("expectile", 0.5, 1.0), ("quantile", 0.0, 1.0), ("held_out", 0.0, 0.5)):
            if not low <= getattr(self, field) <= high:
                raise ArgumentError(f"{field} is {getattr(self, field)}; it must be from {low:g} to {high:g}.")
        self.check_size(name, self.reward_bound)
        return replace(self, confounding=_by_source(sources, self.confounding))

    def check_size(self, name: str, reward: float) -> None:
        """Refuse a reward whose sum over the steps could not be kept in single precision."""
        steps = self.horizon if self.discount == 1 else 1 / (1 - self.discount)
        if abs(reward) * (steps or 1) > LARGEST_VALUE:
            raise ArgumentError(
                f"{name} is {reward:g}, and values of {steps:g} steps would be above {LARGEST_VALUE:g}, which fits do "
                "not keep. Give rewards in a larger unit."
            )

    def gammas(self, sources: tuple[str, ...]) -> FloatArray:
        """Return Gamma of each source, in their order, once the settings are checked."""
        assert isinstance(self.confounding, Mapping)
        return np.array([self.confounding[name] for name in sources])

    def vacuous(self, left: float) -> float:
        """Return the most that so many steps can pay, on the side of the bound."""
        best, discount = self.side * self.reward_bound, self.discount
        if left == 0 or best <= 0:  # one step, and then the end
            return best if left else 0.0
        return best * (left if discount == 1 else (1 - discount**left) / (1 - discount))

    @property
    def coarse(self) -> bool:
        """Whether these are ceilings with rewards above 0, whose free mass is worth an expectile of targets, not gains.

        There the gain of one state, added to the value of a similar state, can exceed every target; over many steps
        such errors would add up to values that nothing can pay.
        """
        return self.side > 0 and self.reward_bound > 0

    def as_plain(self) -> dict[str, Any]:
        """Return the settings as plain values, for JSON: inf as a string."""
        plain = asdict(self)
        if isinstance(self.confounding, Mapping):
            plain["confounding"] = {name: str(gamma) for name, gamma in self.confounding.items()}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the settings that `as_plain` wrote."""
        gammas = {name: float(gamma) for name, gamma in plain["confounding"].items()}
        return cls(**{**plain, "confounding": gammas})


def _by_source(sources: tuple[str, ...], confounding: Mapping[str, float] | float) -> dict[str, float]:
    if isinstance(confounding, Mapping):
        for name in confounding:
            if name not in sources:
                raise ArgumentError(f"confounding names {name!r}, but the sources are {', '.join(sources)}.")
        given = dict.fromkeys(sources, math.inf) | dict(confounding)
    else:
        given = dict.fromkeys(sources, confounding)
    for name, gamma in given.items():
        if not isinstance(gamma, (int, float)) or not gamma >= 1:
            raise ArgumentError(f"The confounding of {name!r} is {gamma!r}; it must be 1 (none) or more, up to inf.")
    return {name: float(gamma) for name, gamma in given.items()}
