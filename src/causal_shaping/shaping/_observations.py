"""Potentials of observations in an environment: vectors and images, as they are or through a function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import iterate

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.errors import ArgumentError, DataError
from causal_shaping.shaping._actions import space_of
from causal_shaping.shaping._recording import ObservationRecording
from causal_shaping.shaping._shaper import Shaper

Observe = Callable[[Any], Any]

KEPT = 10_000
"""The values that are kept of a costly potential, about 200 bytes each."""


class ObservationShaper(Shaper):
    """How observations become the arrays that a potential takes."""

    potential: ObservationPotential

    def __init__(
        self,
        env: Any,
        actions: gym.Space[Any],
        observations: gym.Space[Any],
        potential: ObservationPotential,
        *,
        time_limit: str,
        discount: float | None,
        label: Any,
        observe: Observe | None,
        names: Sequence[Any] | None,
    ) -> None:
        super().__init__(env, actions, potential, time_limit=time_limit, discount=discount)
        if label is not None:
            raise ArgumentError("label= is for potentials of states. This is one of observations: pass observe=.")
        known = self.numbers.all if potential.actions is None else potential.actions
        own = None if all(isinstance(one, int) for one in known) else space_of(env)
        self._name_actions(known, own, names, claims=potential.actions is not None, verb="fit_ceilings")
        self._observe, self._checked = observe, False
        if observe is None:
            potential.check_observations(observations)
        kept = _Kept(potential) if potential.costly else potential
        self._value, self._values = kept.value, kept.values

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

    def knows(self, place: Any) -> bool:
        """Return True: a potential of observations has a value for each."""
        return True

    def phi(self, place: npt.NDArray[Any], h: int) -> float:
        """Return the potential of one observation; 0 beyond the horizon."""
        return self._value(place, h)

    def meet(self, observation: Any, h: int) -> tuple[npt.NDArray[Any], float]:
        """Return what the potential takes for an observation, and its potential."""
        place = observation if self._observe is None else self.place(observation)
        value = self._value(place, h)
        if value != value:
            self.refuse_unknown(place)
        return place, value

    def phis(self, places: npt.NDArray[Any], h: LongArray) -> FloatArray:
        """Return the potential of several observations: one call for all of them."""
        return np.ascontiguousarray(self._values(places, h), dtype=np.float64)

    def refuse_unknown(self, place: npt.NDArray[Any]) -> NoReturn:
        """Say that an observation has no potential."""
        raise DataError(
            f"The potential of an observation is NaN: {np.asarray(place)!r}. If it holds NaN, look at the environment, "
            "else at the potential."
        )

    def recording(self, environments: int) -> ObservationRecording:
        """Return what keeps the steps of environments."""
        return ObservationRecording(self, environments)


class _Kept:
    """The latest values of a potential that takes longer to evaluate than an observation to be found again."""

    def __init__(self, potential: ObservationPotential) -> None:
        self._potential = potential
        self._kept: dict[tuple[bytes, int], float] = {}

    def value(self, observation: npt.NDArray[Any], h: int) -> float:
        """Return phi of one observation at step h."""
        seen = np.ascontiguousarray(observation)
        found = self._kept.get((_digest(seen), h if self._potential.horizon is not None else 0))
        return float(self.values(seen[None], h)[0]) if found is None else found

    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations; those that are not known yet are evaluated together."""
        steps = np.broadcast_to(h if self._potential.horizon is not None else 0, len(observations)).tolist()
        seen = np.ascontiguousarray(observations)
        keys = [(_digest(one), step) for one, step in zip(seen, steps, strict=True)]
        new = list({key: i for i, key in enumerate(keys) if key not in self._kept}.values())
        found = {key: self._kept[key] for key in keys if key in self._kept}
        if new:
            values = self._potential.values(seen[new], np.array([steps[i] for i in new])).tolist()
            found |= {keys[i]: value for i, value in zip(new, values, strict=True)}
            self._kept |= found
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]  # the oldest
        return np.array([found[key] for key in keys])


def _digest(observation: Any) -> bytes:
    return hashlib.blake2b(observation, digest_size=16).digest()
