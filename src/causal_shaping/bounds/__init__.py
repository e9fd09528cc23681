"""Bounds from counts, and what counts are worth before anything is bounded."""

from causal_shaping.bounds.ceilings import provably_suboptimal, value_ceilings, value_floors
from causal_shaping.bounds.diagnostics import Contradiction, Coverage, contradictions, coverage, unseen_mass
from causal_shaping.bounds.results import AssumptionWarning, Ceilings, Floors
from causal_shaping.bounds.sensitivity import Sensitivity, sensitivity

__all__ = [
    "AssumptionWarning",
    "Ceilings",
    "Contradiction",
    "Coverage",
    "Floors",
    "Sensitivity",
    "contradictions",
    "coverage",
    "provably_suboptimal",
    "sensitivity",
    "unseen_mass",
    "value_ceilings",
    "value_floors",
]
