"""Shaped rewards for any Gymnasium agent, and for those of Stable-Baselines3.

The formula, the wrappers, the monitor of ceilings, and a check that they do what shaping promises.
"""

from causal_shaping.shaping.check import PotentialCheck, check_potential
from causal_shaping.shaping.monitor import CeilingEvidence
from causal_shaping.shaping.potentials import load_potential
from causal_shaping.shaping.wrappers import ShapeReward, VectorShapeReward

__all__ = ["CeilingEvidence", "PotentialCheck", "ShapeReward"]
__all__ += ["VectorShapeReward", "check_potential", "load_potential"]
