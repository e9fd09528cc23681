"""Which actions cannot be optimal, as ceilings and floors together prove."""

from __future__ import annotations

import warnings

import numpy as np

from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError, AssumptionWarning, ContradictionError

ROUNDING = 1e-9
"""A ceiling must lie below a floor by more than this share of the larger value to count."""


def provably_suboptimal(ceilings: Ceilings, floors: Floors, *, plug_in: bool = False) -> BoolArray:
    """Return which actions cannot be optimal: bool [steps, states, actions].

    An action whose ceiling lies below the floor of the state is worse than what some policy is sure
    to earn, under the assumptions of both bounds. In every state at least one action remains; one
    that is not admissible is not masked.

    Plug-in bounds of a sample prove nothing: actions that are equally good look different by chance
    alone. Bounds with a `confidence` hold all at once, and ceilings and floors of the same counts
    and settings rest on the same limits, so the mask is wrong anywhere with a probability of
    1 - confidence at most.

    Args:
        ceilings: with a confidence, or from population counts. States and actions of the mask are
            in their order.
        floors: of the same counts; of others, the chances that either is wrong add up.
        plug_in: accept bounds that are not guaranteed, to study them; a warning says what the mask
            is worth.

    Raises:
        ArgumentError: if the two bounds are not of the same problem, are plug-in estimates, or are
            not guaranteed for another reason (`caveats`).
        ContradictionError: if a ceiling lies below its floor.
    """
    refuse_plug_in(plug_in, ceilings.plug_in or floors.plug_in)
    doubts = (*ceilings.caveats, *floors.caveats)
    if doubts and not plug_in:
        raise ArgumentError(
            f"Bounds that are not guaranteed prove no action suboptimal: {doubts[0]} Mend that, or "
            "set plug_in to study what such bounds would say."
        )
    result = masked(ceilings, floors)
    if doubts:
        warnings.warn(
            "This mask comes from bounds that are not guaranteed, and a masked action may be "
            f"best: {doubts[0]}",
            AssumptionWarning,
            stacklevel=2,
        )
    return result


def masked(ceilings: Ceilings, floors: Floors) -> BoolArray:
    """Return which actions have a ceiling below the floor of the state."""
    floor = refuse_crossing(ceilings, floors)
    result = ceilings.q_values < (floor - _margin(ceilings, floor))[..., None]
    result[..., ceilings.terminal, :] = False
    return result


def refuse_plug_in(accepted: bool, plug_in: bool) -> None:
    """Refuse to conclude from plug-in bounds that actions are suboptimal, unless told to."""
    if plug_in and not accepted:
        raise ArgumentError(
            "Plug-in bounds of a sample prove no action suboptimal: equally good ones look "
            "different by chance alone. Set confidence to 0.95 for ceilings and floors, or set "
            "plug_in to study plug-in estimates."
        )


def refuse_crossing(ceilings: Ceilings, floors: Floors) -> FloatArray:
    """Refuse a ceiling below its floor; return the floors in the order of the ceilings' space."""
    for name in ("horizon", "discount", "stationary"):
        ours, theirs = getattr(ceilings, name), getattr(floors, name)
        if ours != theirs:
            raise ArgumentError(
                f"The ceilings have {name} {ours}, the floors {theirs}. Compute both alike."
            )
    space, other = ceilings.space, floors.space
    if set(space.states) != set(other.states) or set(space.actions) != set(other.actions):
        raise ArgumentError("The ceilings and the floors are not of the same states and actions.")
    order, _ = other.positions(space)
    floor = np.asarray(floors.values[..., order])
    crossed = (ceilings.values < floor - _margin(ceilings, floor)) & ~ceilings.terminal
    if not crossed.any():
        return floor
    place = tuple(np.argwhere(crossed)[0].tolist())
    where, chance = repr(space.states[place[-1]]), ""
    if len(place) > 1:
        where += f" at step {place[0]}"
    if ceilings.plug_in or floors.plug_in:
        chance = (
            "These are plug-in bounds, which cross by sampling error, too: set confidence to 0.95. "
        )
    raise ContradictionError(
        f"The ceiling of {where} lies below its floor, {ceilings.values[place]:.4g} against "
        f"{floor[place]:.4g}: no world fits both. {chance}If both are of the same counts and "
        "settings, then either a source is more confounded than declared, or the sources did not "
        "watch the same world, or a hidden cause lasts over the episode."
    )


def _margin(ceilings: Ceilings, floor: FloatArray) -> FloatArray:
    """Return how far a ceiling must lie below a floor before anything is concluded from it."""
    return np.asarray(ROUNDING * np.maximum(ceilings.unit, np.abs(floor)))
