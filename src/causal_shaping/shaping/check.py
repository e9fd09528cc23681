"""A check that shaping does what it promises in an environment of one's own: returns telescope."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_names
from causal_shaping.errors import ArgumentError
from causal_shaping.shaping.actions import admitted
from causal_shaping.shaping.environments import is_vec_env
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.shaping.potentials import PotentialLike
from causal_shaping.shaping.wrappers import ShapeReward

TOLERANCE = 1e-9
"""How far a telescoped sum may be off, relative to its terms: rounding."""

SINGLE_TOLERANCE = 1e-6
"""The same for the vectors of Stable-Baselines3, whose rewards are in single precision."""


@dataclass(frozen=True)
class PotentialCheck:
    """The result of `check_potential`.

    Attributes:
        episodes: the number of episodes played.
        steps: the number of steps in all of them.
        terminated: the number of episodes that terminated.
        truncated: the number of episodes that were truncated.
        unseen: the share of observed states that the potential does not know.
        largest_error: the largest error of a telescoped sum.
        kept: the largest potential, in size, that stayed where an episode was truncated; 0 without.
    """

    episodes: int
    steps: int
    terminated: int
    truncated: int
    unseen: float
    largest_error: float
    kept: float = field(default=0.0, repr=False)

    def summary(self) -> str:
        """Return the result, and for which agents shaping keeps the optimal policies."""
        return (
            f"Shaping telescopes, in {self.episodes:,} episodes of {self.steps:,} steps "
            f"({self.terminated:,} terminated, {self.truncated:,} truncated); the potential does "
            f"not know {self.unseen:.1%} of the states met.\n{self.promise}"
        )

    @property
    def promise(self) -> str:
        """For which agents shaping keeps the optimal policies, as far as these episodes show."""
        if not self.kept:
            agent = "an agent that maximises the return of an episode"
            return f"The optimal policies do not change for {agent}."
        return (
            f"A potential of up to {self.kept:.4g} stayed where episodes were truncated. The "
            "optimal policies do not change for an agent that bootstraps there, which values what "
            "would have followed. They can change for one that maximises the return of the "
            "episode: use a potential with steps, ceilings.potential(), or time_limit='terminal'."
        )


def check_potential(
    env: Any,
    potential: PotentialLike,
    *,
    episodes: int = 10,
    seed: int = 0,
    most_steps: int = 10_000,
    shaped: bool = False,
    **options: Any,
) -> PotentialCheck:
    """Play random episodes and verify that shaping telescopes.

    The discounted shaped return minus the discounted return must be the discounted potential of the
    state where an episode was truncated, or 0 if it terminated, minus the potential of its first
    state. A common mistake, a potential that stays after termination, is found here. Whether a
    potential stays where episodes are truncated decides for which agents shaping is safe:
    `check_potential(...).summary()` says so.

    Args:
        env: an environment, to be wrapped in `ShapeReward`. Of a Stable-Baselines3 vector, all
            environments take the same actions, and the episodes of the first one are checked.
        potential: what to shape it with.
        episodes: the number of episodes to play.
        seed: of the first episode and of the actions.
        most_steps: the length at which an episode is abandoned that does not end by itself.
        shaped: the environment shapes its reward already, by code of your own; its `info` must hold
            `unshaped_reward`.
        options: of `ShapeReward`.

    Raises:
        ArgumentError: if shaping does not telescope, with the episode that shows it.
    """
    tolerance = TOLERANCE
    if is_vec_env(env):
        from causal_shaping.shaping.stable_baselines import FirstOfVecEnv

        env, tolerance = FirstOfVecEnv(env), SINGLE_TOLERANCE
    check_names(options, "check_potential", check_potential, ShapeReward)
    wrapped = ShapeReward(env, potential, **options)
    lookup, played = wrapped._lookup, wrapped
    if shaped:
        played = env
    rng, actions = np.random.default_rng(seed), copy.deepcopy(env.action_space)
    actions.seed(seed)
    steps = ended = cut = unseen = states = 0
    largest = kept = 0.0
    for episode in range(episodes):
        observation, info = played.reset(seed=seed if episode == 0 else None)
        place = lookup.place(observation)
        first = lookup.phi(place, 0)
        states, unseen = states + 1, unseen + lookup.is_unseen(place)
        difference, size, factor, h = 0.0, abs(first), 1.0, 0
        terminated = truncated = False
        while not (terminated or truncated) and h < most_steps:
            action = _sample(actions, rng, info)
            observation, reward, terminated, truncated, info = played.step(action)
            if "unshaped_reward" not in info:
                missing = "info must hold 'unshaped_reward', the reward before shaping"
                raise ArgumentError(f"With shaped=True, {missing}.")
            difference += factor * (float(reward) - info["unshaped_reward"])
            factor, h, size = factor * wrapped.discount, h + 1, size + abs(float(reward))
            states += 1
            if not terminated:
                place = lookup.place(observation)
                unseen += lookup.is_unseen(place)
        # The episode as one long step: what it must have added.
        last = 0.0
        if not is_final(terminated, truncated, wrapped._bootstrap):
            last = lookup.phi(place, h)
        expected = shaped_reward(0.0, factor, first, last)
        error = abs(difference - expected)
        if error > tolerance * max(1.0, size):
            raise ArgumentError(
                f"Shaping does not telescope: in episode {episode}, of {h} steps, shaped and "
                f"unshaped return differ by {difference:.6g} and not by {expected:.6g}. Is the "
                "potential 0 after termination, and the reward shaped once, with the agent's "
                "discount?"
            )
        largest, steps, ended = max(largest, error), steps + h, ended + bool(terminated)
        if truncated and not terminated:
            cut, kept = cut + 1, max(kept, abs(last))
    return PotentialCheck(episodes, steps, ended, cut, unseen / max(states, 1), largest, kept)


def _sample(actions: gym.Space[Any], rng: np.random.Generator, info: Mapping[str, Any]) -> Any:
    """Return a random action, one that `info` admits if it says which are."""
    if not isinstance(actions, gym.spaces.Discrete):
        return actions.sample()
    mask = admitted(info, int(actions.n))
    if mask is not None and mask.any():
        return int(actions.start + rng.choice(np.flatnonzero(mask)))
    return int(actions.start + rng.integers(actions.n))
