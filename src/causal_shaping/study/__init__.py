"""The study: the paper's experiments, rerun, corrected and extended."""

from causal_shaping.study.plan import METHODS, Plan
from causal_shaping.study.run import Results, load_results, run_study

__all__ = ["METHODS", "Plan", "Results", "load_results", "run_study"]
