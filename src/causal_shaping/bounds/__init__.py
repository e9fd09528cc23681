"""Bounds of the optimal interventional value, from counts; `ceilings` is where to start reading."""

from causal_shaping.bounds.ceilings import value_ceilings, value_floors
from causal_shaping.bounds.masks import provably_suboptimal
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
