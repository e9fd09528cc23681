"""A replay buffer of which half of each batch comes from logs: what a practitioner would do with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from causal_shaping.data.transitions import Transitions


class HalfLogged(ReplayBuffer):
    """Takes half of each batch from logs, as symmetric sampling does."""

    def __init__(self, *arguments: Any, logs: Transitions, scaled: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        usable = np.flatnonzero(logs.terminated | (logs.next_state >= 0))
        seen = scaled(np.asarray(logs.observations))
        self._logged = (
            seen[logs.state[usable]],
            np.asarray(logs.action[usable], dtype=np.int64)[:, None],
            seen[np.maximum(logs.next_state[usable], 0)],
            np.asarray(logs.terminated[usable], dtype=np.float32)[:, None],
            np.asarray(logs.reward[usable], dtype=np.float32)[:, None],
        )

    def sample(self, batch_size: int, env: Any = None) -> ReplayBufferSamples:
        """Return a batch, half of it logged."""
        import torch

        own = super().sample(batch_size - batch_size // 2, env)
        some = np.random.randint(len(self._logged[0]), size=batch_size // 2)  # noqa: NPY002, the stream that SB3 seeds
        logged = (self.to_torch(column[some]) for column in self._logged)
        names = ("observations", "actions", "next_observations", "dones", "rewards")
        return ReplayBufferSamples(
            **{name: torch.cat([getattr(own, name), one]) for name, one in zip(names, logged, strict=True)}
        )
