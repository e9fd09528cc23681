"""Types of the steps of a continuous world: arrays of many states at once.

Randomness is one stream of uniforms: `start_draws` for the start of an episode, then for each step
one for the hidden noise, one for the demonstrator's action and `step_draws` for chance that nobody
sees. An agent that acts by itself takes no draw for the action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.worlds.simulate import cumulative

States: TypeAlias = npt.NDArray[np.float32]
"""float32 [states, coordinates], as environments show them."""
Numbers: TypeAlias = npt.NDArray[np.int64]

SeeingRule: TypeAlias = Callable[[States], FloatArray]
"""A demonstrator: from states to probabilities of actions, [states, noises, actions]."""


class Moved(NamedTuple):
    """Where steps lead."""

    states: States  # [steps, coordinates]
    reward: FloatArray  # [steps]
    terminated: BoolArray  # [steps]


def pick_rows(probabilities: FloatArray, uniforms: FloatArray) -> Numbers:
    """Return for each row the first position whose running sum exceeds a uniform in [0, 1)."""
    return np.asarray(np.argmax(cumulative(probabilities) > uniforms[:, None], axis=1))
