"""Statistics of runs for `bootstrap_interval`: pure functions on arrays [runs, tasks].

After Agarwal et al. (2021), "Deep Reinforcement Learning at the Edge of the Statistical Precipice".
"""

from __future__ import annotations

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.learners.intervals import mean


def interquartile_mean(values: FloatArray) -> FloatArray:
    """Return the mean of the middle half over runs and tasks: float64 [...] of [..., runs, tasks]."""
    flat = np.sort(values.reshape(*values.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    return np.asarray(flat[..., cut : flat.shape[-1] - cut].mean(axis=-1))


def ratio_of_means(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the mean of the one over the mean of the other, both [..., runs, tasks]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(mean(one) / mean(other))
