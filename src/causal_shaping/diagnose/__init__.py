"""What logs are worth, before anything is bounded: coverage, unseen outcomes, contradictions, and all of it at once."""

from causal_shaping.diagnose.contradictions import Contradiction, Contradictions, ExcessMass, contradictions
from causal_shaping.diagnose.coverage import Coverage, SourceCoverage, coverage, unseen_mass
from causal_shaping.diagnose.hidden_columns import HiddenColumn, HiddenColumns, confounding_of
from causal_shaping.diagnose.inspection import Inspection, inspect

__all__ = [
    "Contradiction",
    "Contradictions",
    "Coverage",
    "ExcessMass",
    "HiddenColumn",
    "HiddenColumns",
    "Inspection",
    "SourceCoverage",
    "confounding_of",
    "contradictions",
    "coverage",
    "inspect",
    "unseen_mass",
]
