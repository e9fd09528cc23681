"""The potential of observations that cannot be listed: vectors and images.

- `ObservationPotential`: phi_h as a function of an observation, and what it checks of an
  environment before its observations are taken for those of the logs.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_horizon, check_integer
from causal_shaping.data.arrays import FloatArray, frozen
from causal_shaping.data.potential import check_claims, with_assumptions
from causal_shaping.data.result import DataFrame, Result, data_frame
from causal_shaping.data.space import Label, plain
from causal_shaping.errors import ArgumentError, DataError, ShapingWarning

if TYPE_CHECKING:
    import gymnasium as gym

DTYPES = ("float32", "uint8")
"""What an observation is made of: real numbers, or the bytes of an image."""

UNBOUNDED = 1e30
"""Bounds of an environment beyond this say nothing: many write the largest float for infinity."""

OUTSIDE = 0.1
"""By which share of their own range logs may lie outside an environment's bounds without a warning:
noisy sensors overshoot a little, another unit by far more."""

WIDER = 20.0
"""How many times as wide as the logs bounds may be without a warning: logs rarely go everywhere,
but degrees are 57 times as wide as radians."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ObservationPotential(Result, ABC):
    """A potential of observations: `phi(observations, h)` for one observation or many.

    A subclass defines `values`, and `value` if it has something faster for one observation. Both
    take what fits `shape` and `dtype`, and check nothing; `phi(...)` checks.

    Attributes:
        shape: of one observation: (4,) for a vector of 4 numbers, (84, 84, 3) for an image with its
            channels last.
        dtype: "float32" or "uint8".
        discount: the factor on future reward that it was made for.
        horizon: the number of steps of a step-indexed potential, None for one without.
        actions: the actions that it was made for, in the order of the logs; None if it claims
            nothing of actions.
        origin: where it comes from, in words.
        assumptions: the assumptions that it rests on, in sentences.
        kind: "ceiling", meant as an upper bound of the optimal values; "guess", a best guess of
            them; "other", anything else.
        reward_min: the least that a step can pay; None if it was not declared.
        reward_max: the most that a step can pay; None if it was not declared.
        low: the least of each coordinate in the logs, float64 of `shape`; None if not known.
        high: the most of each coordinate in the logs.
        columns: the names of the coordinates of a vector; empty if they have none.
        path: the file or folder that it was saved to or loaded from, for the spec of an
            environment; None if there is none.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    discount: float = 1.0
    horizon: int | None = None
    actions: tuple[Label, ...] | None = None
    origin: str = "given"
    assumptions: tuple[str, ...] = ()
    kind: str = "other"
    reward_min: float | None = None
    reward_max: float | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    columns: tuple[str, ...] = ()
    path: str | None = None

    def __post_init__(self) -> None:
        own = vars(self)
        own["shape"] = tuple(check_integer("shape", size, least=1) for size in self.shape)
        check_choice("dtype", self.dtype, DTYPES)
        check_claims(self)
        own["discount"] = float(self.discount)
        if self.horizon is not None:
            check_horizon(self.horizon)
        for name in ("low", "high"):
            if own[name] is not None:
                own[name] = frozen(own[name], np.float64, name)
                if own[name].shape != self.shape:
                    found = f"{name} has shape {own[name].shape}"
                    raise ArgumentError(f"{found}, but observations have {self.shape}.")
        if self.actions is not None:
            own["actions"] = tuple(plain(label) for label in self.actions)
        if self.path is not None:
            own["path"] = os.fspath(self.path)
        own.update(assumptions=tuple(self.assumptions), columns=tuple(self.columns))

    @abstractmethod
    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations.

        Args:
            observations: [n, *shape].
            h: the step, or one for each observation; beyond the horizon phi is 0.

        Returns:
            float64 [n].
        """

    def value(self, observation: Any, h: int) -> float:
        """Return phi of one observation at step h."""
        return float(self.values(np.asarray(observation)[None], h)[0])

    def __call__(self, observations: npt.ArrayLike, h: npt.ArrayLike = 0) -> Any:
        """Return phi of one observation as a number, or of many, [n, *shape], as an array.

        h is the step, or one for each of many observations.
        """
        seen = np.asarray(observations)
        if seen.shape == self.shape:
            self.check_observation(seen)
            return self.value(seen, check_integer("h", h))
        if seen.shape[1:] != self.shape or seen.ndim == 0:
            raise ArgumentError(
                f"Observations of shape {seen.shape} do not fit. Pass one of shape {self.shape}, "
                f"or many: {('n', *self.shape)}."
            )
        if len(seen):
            self.check_observation(seen[0])
        if not np.isfinite(seen).all():
            first = int(np.argwhere(~np.isfinite(seen))[0, 0])
            raise DataError(f"Observation {first} holds what is not a number.")
        return self.values(seen, h)

    def check_observation(self, observation: Any) -> None:
        """Refuse an array that is no observation of this potential, by its shape and type."""
        seen = np.asarray(observation)
        self._check_fits(seen.shape, seen.dtype)

    def check_observations(self, space: gym.Space[Any]) -> None:
        """Refuse an environment whose observations are not what this potential was made for.

        Args:
            space: the environment's `observation_space`.

        Raises:
            ArgumentError: if they are no arrays of `shape` and `dtype`; says what to do.
        """
        from gymnasium.spaces import Box, Dict

        if not isinstance(space, Box):
            example = ", such as observe=lambda seen: seen['name']" * isinstance(space, Dict)
            raise ArgumentError(
                f"The potential takes arrays of {self.dtype} and shape {self.shape}, but the "
                f"environment's observations are {space}. Pass observe=, a function from an "
                f"observation to such an array{example}."
            )
        self._check_fits(space.shape, space.dtype)
        self._compare_scales(space)

    def _check_fits(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Refuse observations of another shape or type; bytes are not mixed with other numbers."""
        kind = np.dtype(dtype)
        is_same_type = (kind == np.uint8) == (self.dtype == "uint8") and kind.kind in "biuf"
        if shape != self.shape or not is_same_type:
            raise ArgumentError(
                f"The potential takes arrays of {self.dtype} and shape {self.shape}, but the "
                f"environment's observations are of {kind.name} and shape {shape}. "
                + self._conversion(shape)
            )

    def _conversion(self, shape: tuple[int, ...]) -> str:
        """Return how to turn observations of another shape or type into those of the logs."""
        if shape == self.shape and self.dtype == "uint8":
            return (
                "The logs held bytes from 0 to 255: remove what scales the images, or pass "
                "observe=, a function that turns them back, such as "
                "observe=lambda seen: (255 * seen).round().astype('uint8')."
            )
        if shape == self.shape:
            return (
                "Pass observe=, a function that gives real numbers in the scale of the logs, such "
                "as observe=lambda seen: seen.astype('float32')."
            )
        for order, there, ours in (((1, 2, 0), "first", "last"), ((2, 0, 1), "last", "first")):
            is_image = len(shape) == len(self.shape) == 3
            if is_image and tuple(shape[i] for i in order) == self.shape:
                return (
                    f"The channels come {there} there, and {ours} in the logs: pass "
                    f"observe=lambda seen: seen.transpose{order}."
                )
        if shape[1:] == self.shape:
            return (
                f"That is a stack of {shape[0]}: shape the reward before frames are stacked, "
                "FrameStackObservation(ShapeReward(env, potential), ...), or take the last one, "
                "observe=lambda seen: seen[-1]."
            )
        return "Pass observe=, a function from an observation to such an array."

    def _compare_scales(self, space: Any) -> None:
        """Warn of an environment whose bounds suggest other units than those of the logs."""
        if self.low is None or self.high is None or self.dtype == "uint8":
            return
        least, most = space.low.astype(np.float64), space.high.astype(np.float64)
        bounded = (least > -UNBOUNDED) & (most < UNBOUNDED)
        width = self.high - self.low
        # Constant coordinates have no width, but float32 has rounded them.
        rounding = np.finfo(np.float32).eps * np.maximum(abs(self.low), abs(self.high))
        beyond = np.maximum(least - self.low, self.high - most)
        outside = beyond > np.maximum(OUTSIDE * width, rounding)
        wider = (width > 0) & (most - least > WIDER * width)
        odd = bounded & (outside | wider)
        if not odd.any():
            return
        where = np.unravel_index(int(np.argmax(odd)), self.shape)
        name = repr(self.columns[where[0]]) if self.columns else str(list(map(int, where)))
        warnings.warn(
            f"The environment's observations may be of another scale than the logs: coordinate "
            f"{name} goes from {least[where]:.4g} to {most[where]:.4g} in the environment, and "
            f"from {self.low[where]:.4g} to {self.high[where]:.4g} in the logs ({odd.sum()} of "
            f"{odd.size} coordinates are affected). If the units differ, pass observe=, a function "
            "that converts them.",
            ShapingWarning,
            stacklevel=5,
        )

    def __repr__(self) -> str:
        steps = f"{self.horizon} steps, " * (self.horizon is not None)
        return (
            f"{type(self).__name__}({self.origin}: {self.kind}, {steps}observations {self.dtype} "
            f"{list(self.shape)}, discount {self.discount:g})"
        )

    def summary(self) -> str:
        """Return what it is and what it rests on, in a few lines."""
        return with_assumptions(self)

    def to_pandas(self) -> DataFrame:
        """Return a row per coordinate: its name or position, and what range it has in the logs."""
        places = self.columns or [", ".join(map(str, place)) for place in np.ndindex(self.shape)]
        columns: dict[str, Any] = {"coordinate": places}
        for name in ("low", "high"):
            columns[name] = np.full(self.shape, np.nan).ravel()
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name).ravel()
        return data_frame(columns)
