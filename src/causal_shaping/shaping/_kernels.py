"""The compiled part of `VectorShapeReward`: a step of a vector is a few numbers, and NumPy takes longer to begin."""

from __future__ import annotations

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.shaping.formula import shaped_reward

_shaped_reward = njit()(shaped_reward)


@njit()
def shape_rewards(
    rewards: FloatArray,
    discount: float,
    before: FloatArray,
    after: FloatArray,
    needed: BoolArray,
    fresh: BoolArray,
    returns: FloatArray,
    made: FloatArray,
) -> None:
    """Shape a step of several environments.

    Args:
        rewards: float64 [environments].
        discount: that of the shaping.
        before: phi of the states before the step; replaced by those after it.
        after: phi of the states after it.
        needed: where it counts; it is 0 elsewhere.
        fresh: where the step was a reset, which is not shaped.
        returns: float64 [2, environments], unshaped and shaped returns so far; the step is added.
        made: float64 [2, environments]; filled with shaped rewards, and what shaping added to them.
    """
    for i in range(len(rewards)):
        phi = after[i] if needed[i] else 0.0
        shaping = 0.0 if fresh[i] else _shaped_reward(0.0, discount, before[i], phi)
        before[i] = phi
        made[0, i], made[1, i] = rewards[i] + shaping, shaping
        returns[0, i] = 0.0 if fresh[i] else returns[0, i] + rewards[i]
        returns[1, i] = 0.0 if fresh[i] else returns[1, i] + made[0, i]
