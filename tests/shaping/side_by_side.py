"""A vector of environments beside its parts, each in a wrapper of its own."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import causal_shaping as cs

COUNT = 3


def compare(make, potential, mode, steps=120, **options):
    """Play both with the same seeds and actions, and refuse any difference in what they see, pay and tell.

    Return the vector, its parts, and which of its episodes ended in each step; both have recorded what happened.
    """
    parts = [cs.ShapeReward(make(), potential(), record=True, **options) for _ in range(COUNT)]
    environments = SyncVectorEnv([make] * COUNT, autoreset_mode=mode)
    vector = cs.VectorShapeReward(environments, potential(), record=True, **options)
    seen, _ = vector.reset(seed=[5, 6, 7])
    np.testing.assert_array_equal(seen, [part.reset(seed=5 + i)[0] for i, part in enumerate(parts)])
    rng, over, ended = np.random.default_rng(1), np.zeros(COUNT, dtype=bool), []
    for _ in range(steps):
        if mode == AutoresetMode.DISABLED and over.any():
            vector.reset(options={"reset_mask": over})
            for i in np.flatnonzero(over):
                parts[i].reset()
        resets = over & (mode == AutoresetMode.NEXT_STEP)
        actions = rng.integers(parts[0].action_space.n, size=COUNT)
        seen, rewards, terminated, truncated, info = vector.step(actions)
        over = terminated | truncated
        for i, part in enumerate(parts):
            if resets[i]:
                np.testing.assert_array_equal(seen[i], part.reset()[0])
                assert (rewards[i], info["shaping"][i]) == (0.0, 0.0)
                continue
            following, reward, *ends, alone = part.step(int(actions[i]))
            assert rewards[i] == pytest.approx(reward)
            assert ends == [terminated[i], truncated[i]]
            assert info["unshaped_reward"][i] == alone["unshaped_reward"]
            if over[i]:
                assert info["_unshaped_return"][i]
                for name in ("unshaped_return", "shaped_return"):
                    assert info[name][i] == pytest.approx(alone[name])
                if mode == AutoresetMode.SAME_STEP:
                    following = part.reset()[0]
            np.testing.assert_array_equal(seen[i], following)
        ended.append(over & ~resets)
    assert np.sum(ended) > 10
    return vector, parts, np.array(ended)
