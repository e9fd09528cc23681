"""Why ceilings mislead an agent in LavaCross as images: exact ceilings of its table do, too.

    python -m studies.calibration.image_ceilings     # seconds

From as many rows of one demonstrator as the agents' fits have: the correlation of the first step's ceiling with V*,
weighed by the visits of the logs, and the verdict.
"""

import warnings

import numpy as np

import causal_shaping as cs

ROWS, SEED = 20_000, 3


def correlation(demonstrator):
    """Return the correlation of ceilings with V*, and the ceilings' verdict."""
    world = cs.load_world("lavacross-hard", coins="once")
    counts = cs.count(world.collect(demonstrator, ROWS, seed=SEED))
    ceilings = cs.value_ceilings(counts, world.horizon, world.model.reward_range[1])
    visits = np.bincount(counts.state, counts.n, minlength=len(counts.space.states))
    optimum = np.atleast_2d(world.model.optimum().values)[0][world.space.find_all(counts.space)]
    met = visits > 0
    covariance = np.cov(ceilings.values[0][met], optimum[met], aweights=visits[met])
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]), ceilings.verdict


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in ("good", "bad"):
        found, verdict = correlation(name)
        print(f"{name}: {found:.2f}. {verdict.split(':')[0]}.")
