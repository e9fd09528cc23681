"""What an environment says about itself: its spaces, its states, its time limit, its wrappers.

Shaping reads these facts once, when a wrapper is made, and compares them with the potential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from causal_shaping.data.space import Space

VEC_ENV_MODULE = "stable_baselines3.common.vec_env"
"""Where Stable-Baselines3 defines its vectors. They are known by the module of their class, so that
nobody needs Stable-Baselines3 to use this package."""


class EnvironmentFacts(NamedTuple):
    """What shaping needs to know of an environment, or of each environment of a vector."""

    actions: gym.Space[Any]
    observations: gym.Space[Any]
    space: Space | None  # its states and actions by label, as the worlds of this package have
    time_limit: int | None  # the number of steps after which it cuts an episode


def facts_of_env(env: Any) -> EnvironmentFacts:
    """Return the facts of one environment."""
    spaces = env.action_space, env.observation_space
    return EnvironmentFacts(*spaces, space_of(env), time_limit_of(env))


def facts_of_vector(vector: Any) -> EnvironmentFacts:
    """Return the facts of the environments in a Gymnasium vector."""
    one, makers = vector, getattr(vector.unwrapped, "env_fns", None)
    if getattr(vector.unwrapped, "envs", None):
        one = vector.unwrapped.envs[0]
    elif makers:  # they live in other processes: make one more
        one = makers[0]()
        one.close()
    spaces = vector.single_action_space, vector.single_observation_space
    return EnvironmentFacts(*spaces, space_of(one), time_limit_of(one))


def facts_of_vec_env(vec_env: Any) -> EnvironmentFacts:
    """Return the facts of the environments in a Stable-Baselines3 vector, in any process."""
    names = ("space", "horizon", "_max_episode_steps")  # the last is that of a `TimeLimit` wrapper
    held = {name: vec_env.get_attr(name, 0)[0] for name in names if vec_env.has_attr(name)}
    space, spaces = held.pop("space", None), (vec_env.action_space, vec_env.observation_space)
    return EnvironmentFacts(*spaces, _if_space(space), _smallest(held.values()))


def is_vec_env(env: Any) -> bool:
    """Return whether an environment is a vector of Stable-Baselines3."""
    return any(base.__module__.startswith(VEC_ENV_MODULE) for base in type(env).__mro__)


def space_of(env: Any) -> Space | None:
    """Return the `Space` of an environment that has one, as the worlds of this package have."""
    return _if_space(getattr(env.unwrapped, "space", None))


def wrappers_of(env: Any) -> Iterator[gym.Wrapper[Any, Any, Any, Any]]:
    """Yield the wrappers around an environment, from the outside."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def time_limit_of(env: Any) -> int | None:
    """Return the number of steps after which an environment cuts an episode; None if unknown."""
    limits = [getattr(env.unwrapped, "horizon", None), getattr(env.spec, "max_episode_steps", None)]
    wrappers = (one for one in wrappers_of(env) if isinstance(one, gym.wrappers.TimeLimit))
    return _smallest([*limits, *(one._max_episode_steps for one in wrappers)])


def _if_space(space: Any) -> Space | None:
    return space if isinstance(space, Space) else None


def _smallest(limits: Iterable[Any]) -> int | None:
    return min((int(n) for n in limits if isinstance(n, (int, np.integer))), default=None)
