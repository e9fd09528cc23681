"""What logs are worth, before anything is bounded: coverage, contradictions, hidden causes that last, and all at once."""

from causal_shaping.diagnose.contradictions import Contradiction, Contradictions, contradictions
from causal_shaping.diagnose.coverage import Coverage, SourceCoverage, coverage, unseen_mass
from causal_shaping.diagnose.inspection import Inspection, inspect
from causal_shaping.diagnose.persistence import PersistenceTest, persistence_test

__all__ = [
    "Contradiction",
    "Contradictions",
    "Coverage",
    "Inspection",
    "PersistenceTest",
    "SourceCoverage",
    "contradictions",
    "coverage",
    "inspect",
    "persistence_test",
    "unseen_mass",
]
