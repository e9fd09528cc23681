"""Bounds of the optimal interventional value, from counts."""

from causal_shaping.bounds.ceilings import provably_suboptimal, value_ceilings, value_floors
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.bounds.sensitivity import Sensitivity, sensitivity

__all__ = [
    "Ceilings",
    "Floors",
    "Sensitivity",
    "provably_suboptimal",
    "sensitivity",
    "value_ceilings",
    "value_floors",
]
