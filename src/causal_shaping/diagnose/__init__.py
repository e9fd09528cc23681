"""What counts are worth, before anything is bounded: coverage, unseen outcomes, contradictions."""

from causal_shaping.diagnose.diagnostics import Contradiction, Coverage, contradictions, coverage, unseen_mass

__all__ = ["Contradiction", "Coverage", "contradictions", "coverage", "unseen_mass"]
