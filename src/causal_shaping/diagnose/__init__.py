"""What logs are worth, before anything is bounded: coverage, unseen outcomes, contradictions, lasting causes."""

from causal_shaping.diagnose.continuous import ContinuousInspection, inspect_continuous
from causal_shaping.diagnose.contradictions import Contradiction, Contradictions, ExcessMass, contradictions
from causal_shaping.diagnose.coverage import Coverage, SourceCoverage, coverage, rarest_seen, unseen_limit, unseen_mass
from causal_shaping.diagnose.hidden_columns import HiddenColumn, HiddenColumns, confounding_of
from causal_shaping.diagnose.inspection import Inspection, inspect
from causal_shaping.diagnose.persistence import PersistenceTest, persistence_test

__all__ = [
    "ContinuousInspection",
    "Contradiction",
    "Contradictions",
    "Coverage",
    "ExcessMass",
    "HiddenColumn",
    "HiddenColumns",
    "Inspection",
    "PersistenceTest",
    "SourceCoverage",
    "confounding_of",
    "contradictions",
    "coverage",
    "inspect",
    "inspect_continuous",
    "persistence_test",
    "rarest_seen",
    "unseen_limit",
    "unseen_mass",
]
