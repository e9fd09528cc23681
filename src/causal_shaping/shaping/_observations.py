"""Potentials of observations in an environment: vectors and images, as they are or through a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import iterate

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.shaping._recording import ObservationRecording
from causal_shaping.shaping._shaper import Shaper

Observe = Callable[[Any], Any]


class ObservationShaper(Shaper):
    """How observations become the arrays that a potential takes."""

    potential: ObservationPotential

    def _match(
        self, own: Space | None, observations: gym.Space[Any], label: Any, observe: Any, names: Sequence[Any] | None
    ) -> None:
        if label is not None:
            raise ArgumentError("label= is for potentials of states. This is one of observations: pass observe=.")
        claims = self.potential.actions is not None
        known = self.potential.actions or self.numbers.all
        own = None if all(isinstance(one, int) for one in known) else own
        self._name_actions(known, own, names, claims=claims, verb="fit_ceilings")
        self._observe, self._checked = observe, False
        if observe is None:
            self.potential.check_observations(observations)

    def place(self, observation: Any) -> npt.NDArray[Any]:
        """Return what the potential takes for an observation."""
        if self._observe is None:
            return observation  # type: ignore[no-any-return]
        seen = np.asarray(self._observe(observation))
        if not self._checked:
            try:
                self.potential.check_observation(seen)
            except ArgumentError as error:
                raise ArgumentError(f"What observe= returns does not fit. {error}") from None
            self._checked = True
        return seen

    met = place

    def all_met(self, observations: Any, space: gym.Space[Any], final: BoolArray) -> npt.NDArray[Any]:
        """Return what the potential takes for several observations; anything for `final` ones."""
        if self._observe is None:
            return np.asarray(observations)
        found = np.zeros((len(final), *self.potential.shape), dtype=self.potential.dtype)
        for i, one in enumerate(iterate(space, observations)):
            if not final[i]:
                found[i] = self.place(one)
        return found

    def meet(self, observation: Any, h: int) -> tuple[npt.NDArray[Any], float]:
        """Return what the potential takes for an observation, and its potential."""
        place = observation if self._observe is None else self.place(observation)
        value = self.potential.value(place, h)
        if value != value:
            self.refuse_unknown(place)
        return place, value

    def phis(self, places: npt.NDArray[Any], h: LongArray) -> FloatArray:
        """Return the potential of several observations: one call for all of them."""
        return np.ascontiguousarray(self.potential.values(places, h), dtype=np.float64)

    def refuse_unknown(self, place: npt.NDArray[Any]) -> NoReturn:
        """Say that an observation has no potential."""
        raise DataError(
            f"The potential of an observation is NaN: {np.asarray(place)!r}. If it holds NaN, look at the environment, "
            "else at the potential."
        )

    def recording(self, environments: int) -> ObservationRecording:
        """Return what keeps the steps of environments."""
        return ObservationRecording(self, environments)
