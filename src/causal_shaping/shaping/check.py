"""A check that shaping does what it promises in an environment of one's own: returns telescope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_names
from causal_shaping.errors import ArgumentError
from causal_shaping.shaping._actions import admitted
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.shaping.potentials import GivenPotential
from causal_shaping.shaping.wrappers import ShapeReward

TOLERANCE = 1e-9
"""How far a telescoped sum may be off, relative to the sizes in it."""


@dataclass(frozen=True)
class PotentialCheck:
    """What `check_potential` found.

    Attributes:
        episodes: the number of episodes played.
        steps: the number of steps in all of them.
        terminated: the number of episodes that terminated.
        truncated: the number of episodes that were truncated.
        unseen: the share of states met that the potential does not know.
        largest_error: the largest error of a telescoped sum.
        kept: the largest potential, in size, that stayed where an episode was truncated; 0 if none did.
    """

    episodes: int
    steps: int
    terminated: int
    truncated: int
    unseen: float
    largest_error: float
    kept: float = field(default=0.0, repr=False)

    def summary(self) -> str:
        """Return what was found, and for which agents shaping leaves the optimal policies as they are."""
        return (
            f"Shaping telescopes, in {self.episodes:,} episodes of {self.steps:,} steps ({self.terminated:,} "
            f"terminated, {self.truncated:,} truncated); the potential does not know {self.unseen:.1%} of the states "
            f"met.\n{self.promise}"
        )

    @property
    def promise(self) -> str:
        """For which agents shaping leaves the optimal policies as they are, as far as these episodes show."""
        if self.kept:
            return (
                f"A potential of up to {self.kept:.4g} stayed where episodes were truncated. The optimal policies do "
                "not change for an agent that bootstraps there, which values what would have followed. They can change "
                "for one that maximises the return of the episode: use a potential with steps, "
                "ceilings.potential(), or time_limit='terminal'."
            )
        return "The optimal policies do not change for an agent that maximises the return of an episode."


def check_potential(
    env: gym.Env[Any, Any],
    potential: GivenPotential,
    *,
    episodes: int = 10,
    seed: int = 0,
    most_steps: int = 10_000,
    shaped: bool = False,
    **options: Any,
) -> PotentialCheck:
    """Play episodes at random and verify that shaping telescopes: a potential kept after termination is found here.

    The discounted shaped return minus the discounted return must be the discounted potential of the state where an
    episode was truncated, or 0 if it terminated, minus the potential of its first state. Whether a potential stays
    where episodes are truncated decides for which agents shaping is safe: `check_potential(...).summary()` says so.

    Args:
        env: an environment, to be wrapped in `ShapeReward`.
        potential: what to shape it with.
        episodes: the number of episodes to play.
        seed: of the first episode and of the actions.
        most_steps: the length at which an episode is given up that does not end by itself.
        shaped: the environment shapes its reward already, by code of your own; its `info` must hold `unshaped_reward`.
        options: of `ShapeReward`.

    Raises:
        ArgumentError: if shaping does not telescope, with the episode that shows it.
    """
    check_names(options, "check_potential", check_potential, ShapeReward)
    wrapped = ShapeReward(env, potential, **options)
    shaper, played = wrapped._shaper, env if shaped else wrapped
    rng = np.random.default_rng(seed)
    ended = cut = steps = unseen = met = 0
    largest = kept = 0.0
    for episode in range(episodes):
        observation, info = played.reset(seed=seed if episode == 0 else None)
        place, first = shaper.meet(observation, 0)
        met, unseen = met + 1, unseen + (not shaper.knows(place))
        difference, size, factor, h = 0.0, abs(first), 1.0, 0
        terminated = truncated = False
        while not (terminated or truncated) and h < most_steps:
            observation, reward, terminated, truncated, info = played.step(_sampled(env.action_space, rng, info))
            if "unshaped_reward" not in info:
                raise ArgumentError("With shaped=True, info must hold 'unshaped_reward', the reward before shaping.")
            difference += factor * (float(reward) - info["unshaped_reward"])
            factor, h = factor * shaper.discount, h + 1
            place = shaper.place(observation)
            met, unseen = met + 1, unseen + (not shaper.knows(place) and not terminated)
            size += abs(float(reward))
        last = 0.0 if is_final(terminated, truncated, shaper.bootstrap) else shaper.meet(observation, h)[1]
        if truncated and not terminated:
            kept = max(kept, abs(last))
        expected = shaped_reward(0.0, factor, first, last)  # an episode as one long step
        error = abs(difference - expected)
        steps, ended, cut = steps + h, ended + bool(terminated), cut + bool(truncated and not terminated)
        largest = max(largest, error)
        if error > TOLERANCE * max(1.0, size):
            raise ArgumentError(
                f"Shaping does not telescope: in episode {episode}, of {h} steps, shaped and unshaped return differ by "
                f"{difference:.6g} and not by {expected:.6g}. Is the potential 0 after termination, and the reward "
                "shaped once, with the agent's discount?"
            )
    return PotentialCheck(episodes, steps, ended, cut, unseen / met if met else 0.0, largest, kept)


def _sampled(actions: gym.Space[Any], rng: np.random.Generator, info: Mapping[str, Any]) -> Any:
    """Return an action at random, one that the environment admits if it tells."""
    if isinstance(actions, gym.spaces.Discrete):
        mask = admitted(info, int(actions.n))
        if mask is not None and mask.any():
            return int(actions.start + rng.choice(np.flatnonzero(mask)))
        return int(actions.start + rng.integers(actions.n))
    return actions.sample()
