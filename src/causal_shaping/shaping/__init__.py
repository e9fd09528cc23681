"""Shaped rewards for any Gymnasium agent."""

from causal_shaping.shaping.wrappers import ShapeReward, VectorShapeReward, check_potential

__all__ = ["ShapeReward", "VectorShapeReward", "check_potential"]
