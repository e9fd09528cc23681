"""Baselines that learn from logs and ignore hidden causes.

- `behaviour_values`, `behaviour_potential`: the mean return of the demonstrators, per state.
- `train_bcq`, `BCQ`: discrete batch-constrained Q-learning.
"""

from studies.paper.baselines.bcq import BCQ, train_bcq
from studies.paper.baselines.behaviour import behaviour_potential, behaviour_values

__all__ = ["BCQ", "behaviour_potential", "behaviour_values", "train_bcq"]
