"""What people do with logs without asking about hidden causes."""

from causal_shaping.baselines.behaviour import behaviour_potential, behaviour_values

__all__ = ["behaviour_potential", "behaviour_values"]
