"""The compiled parts of `VectorShapeReward`: a step of a vector is a few numbers, and NumPy takes longer to begin."""

from __future__ import annotations

import numpy as np

from causal_shaping._compile import INLINED, njit
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.shaping._monitor import EVIDENCE, monitor_step
from causal_shaping.shaping.formula import shaped_reward

_shaped_reward = njit()(shaped_reward)


@njit(**INLINED)
def _shape_one(made, i, reward, phi, over, h, sums, discount, resets_next):  # type: ignore[no-untyped-def]
    """Shape a step of environment i, with phi of the state after it; see `shape_rewards`."""
    shaping = 0.0 if h[i] == 0 else _shaped_reward(0.0, discount, sums[0, i], phi)
    made[0, i], made[1, i], made[2, i] = reward, shaping, reward + shaping
    sums[0, i] = phi
    sums[1, i] = 0.0 if h[i] == 0 else sums[1, i] + made[0, i]
    sums[2, i] = 0.0 if h[i] == 0 else sums[2, i] + made[2, i]
    h[i] = 0 if over and resets_next else h[i] + 1


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
) -> tuple[bool, bool]:
    """Shape a step of several environments; return whether an episode ended, and whether phi is known where it counts.

    Args:
        made: float64 [3 or more, environments], whose first rows are filled with the rewards, what shaping adds to
            them, and shaped rewards.
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
    """
    ended, known = False, True
    for i in range(len(after)):
        over = terminated[i] or truncated[i]
        phi = 0.0 if final[i] else after[i]
        ended, known = ended or over, known and not np.isnan(phi)
        _shape_one(made, i, rewards[i], phi, over, h, sums, discount, resets_next)
    return ended, known


@njit()
def shape_states(
    made: FloatArray,
    rewards: FloatArray,
    table: FloatArray,
    places: LongArray,
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
) -> tuple[bool, bool]:
    """Do the same with phi of states, and test the step against ceilings, in one call.

    `table` is phi, float64 [steps, states], where unseen states come last and the last step lasts; `places` are the
    states after the step, `before` those before it, `taken` the actions. `reals` and `integers` are those of the
    monitor, see `Packed`: it fills the fourth row of `made` with the evidence. Where they are empty, nothing is tested.
    """
    ended, known = False, True
    for i in range(len(places)):
        over = terminated[i] or truncated[i]
        phi = 0.0 if final[i] else table[min(h[i], len(table) - 1), places[i]]
        ended, known = ended or over, known and not np.isnan(phi)
        if len(reals) and h[i] > 0:
            monitor_step(
                reals, integers, i, h[i] - 1, before[i], taken[i], rewards[i], places[i], terminated[i], truncated[i]
            )
        _shape_one(made, i, rewards[i], phi, over, h, sums, discount, resets_next)
    if len(reals):
        made[3] = reals[EVIDENCE]
    return ended, known


@njit()
def take(table: FloatArray, places: LongArray, h: LongArray, found: FloatArray) -> None:
    """Write phi of states: `table` [steps, states], unseen ones last; the last step lasts."""
    for i in range(len(places)):
        found[i] = table[min(h[i], len(table) - 1), places[i]]
