"""Bounds from counts, and what counts are worth before anything is bounded."""

from causal_shaping.bounds.diagnostics import Contradiction, Coverage, contradictions, coverage, unseen_mass

__all__ = ["Contradiction", "Coverage", "contradictions", "coverage", "unseen_mass"]
