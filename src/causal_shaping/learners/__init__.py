"""Online learners: tables, compiled over a world or step by step in any discrete Gymnasium environment."""

from causal_shaping.learners.rules import PRESETS, Rule, recommended_learner
from causal_shaping.learners.run import Run
from causal_shaping.learners.seeds import SeedResult, Seeds, train_seeds
from causal_shaping.learners.training import train
from causal_shaping.learners.worth import Worth, WorthWorld

__all__ = [
    "PRESETS",
    "Rule",
    "Run",
    "SeedResult",
    "Seeds",
    "Worth",
    "WorthWorld",
    "recommended_learner",
    "train",
    "train_seeds",
]
