"""Ceilings for states that cannot be listed: vectors of numbers, or features of images (extra `fitted`)."""

from causal_shaping.fitted.fitting import fit_ceilings, fit_floors
from causal_shaping.fitted.results import FittedCeilings, FittedFloors, FittedPotential

__all__ = ["FittedCeilings", "FittedFloors", "FittedPotential", "fit_ceilings", "fit_floors"]
