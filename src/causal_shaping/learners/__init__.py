"""Online learners: tables, compiled over a world or plain over any discrete Gymnasium environment."""

from causal_shaping.learners.rules import PRESETS, Rule
from causal_shaping.learners.seeds import SeedResult, Seeds, train_seeds
from causal_shaping.learners.training import Run, train

__all__ = ["PRESETS", "Rule", "Run", "SeedResult", "Seeds", "train", "train_seeds"]
