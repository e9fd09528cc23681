"""What people do with logs without asking about hidden causes."""

from causal_shaping.paper.baselines.bcq import BCQ, train_bcq
from causal_shaping.paper.baselines.behaviour import behaviour_potential, behaviour_values

__all__ = ["BCQ", "behaviour_potential", "behaviour_values", "train_bcq"]
