"""Bounds of the optimal interventional value, from counts; those of whole episodes, from logs."""

from causal_shaping.bounds.ceilings import provably_suboptimal, value_ceilings, value_floors
from causal_shaping.bounds.episodes import EpisodeCeilings, episode_ceilings
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.bounds.sensitivity import Sensitivity, sensitivity

__all__ = [
    "Ceilings",
    "EpisodeCeilings",
    "Floors",
    "Sensitivity",
    "episode_ceilings",
    "provably_suboptimal",
    "sensitivity",
    "value_ceilings",
    "value_floors",
]
