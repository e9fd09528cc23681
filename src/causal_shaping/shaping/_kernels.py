"""The compiled parts of `VectorShapeReward`: a step of a vector is a few numbers, and NumPy takes longer to begin."""

from __future__ import annotations

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.shaping._monitor import EVIDENCE, monitor_step
from causal_shaping.shaping.formula import shaped_reward

_shaped_reward = njit()(shaped_reward)


_NOWHERE = np.zeros(0, dtype=np.int64)
UNWATCHED = (np.zeros(0), _NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE)
"""What `shape_rewards` takes where no monitor tests the steps."""


@njit()
def shape_rewards(
    made: FloatArray,
    rewards: FloatArray,
    after: FloatArray,
    terminated: BoolArray,
    truncated: BoolArray,
    final: BoolArray,
    h: LongArray,
    sums: FloatArray,
    discount: float,
    resets_next: bool,
    reals: FloatArray,
    integers: LongArray,
    before: LongArray,
    taken: LongArray,
    places: LongArray,
) -> tuple[bool, bool]:
    """Shape a step of several environments; return whether an episode ended, and whether phi is known where it counts.

    Args:
        made: float64 [4, environments], whose rows are filled with the rewards, what shaping adds to them, shaped
            rewards and, if steps are tested, the evidence against the ceilings.
        rewards: float64 [environments].
        after: phi of the states after the step.
        terminated: where the world ended the episode.
        truncated: where it was cut.
        final: where nothing follows: phi counts as 0.
        h: the steps before the observations that came; replaced by those before the next ones. 0 where the step was a
            reset, which is not shaped.
        sums: float64 [3, environments]: phi of the states before the step, replaced by those after it; unshaped and
            shaped returns so far, to which the step is added.
        discount: that of the shaping.
        resets_next: whether the step after the end of an episode is a reset.
        reals: those of the monitor, see `Packed`; where they are empty, nothing is tested.
        integers: the monitor's.
        before: the positions of the states before the step.
        taken: the positions of the actions.
        places: the positions of the states after the step.
    """
    ended, known = False, True
    for i in range(len(after)):
        over = terminated[i] or truncated[i]
        phi = 0.0 if final[i] else after[i]
        ended, known = ended or over, known and not np.isnan(phi)
        if len(reals) and h[i] > 0:
            monitor_step(
                reals, integers, i, h[i] - 1, before[i], taken[i], rewards[i], places[i], terminated[i], truncated[i]
            )
        shaping = 0.0 if h[i] == 0 else _shaped_reward(0.0, discount, sums[0, i], phi)
        made[0, i], made[1, i], made[2, i] = rewards[i], shaping, rewards[i] + shaping
        sums[0, i] = phi
        sums[1, i] = 0.0 if h[i] == 0 else sums[1, i] + made[0, i]
        sums[2, i] = 0.0 if h[i] == 0 else sums[2, i] + made[2, i]
        h[i] = 0 if over and resets_next else h[i] + 1
    if len(reals):
        made[3] = reals[EVIDENCE]
    return ended, known


@njit()
def take(table: FloatArray, places: LongArray, h: LongArray, found: FloatArray) -> None:
    """Write phi of states: `table` [steps, states], unseen ones last; the last step lasts."""
    for i in range(len(places)):
        found[i] = table[min(h[i], len(table) - 1), places[i]]
