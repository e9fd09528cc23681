"""The study: the paper's experiments, rerun, corrected and extended."""

from causal_shaping.paper.study.plan import METHODS, Plan

__all__ = ["METHODS", "Plan"]
