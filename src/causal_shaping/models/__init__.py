"""The structural model: a confounded Markov decision process over finite tables, solved exactly."""

from causal_shaping.models.cmdp import TabularCMDP, Values

__all__ = ["TabularCMDP", "Values"]
