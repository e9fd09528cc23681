"""Shaped rewards: Gymnasium wrappers, and a check that they do what shaping promises.

- `ShapeReward`: one environment.
- `VectorShapeReward`: a vector of them, in every autoreset mode.
- `check_potential`: plays episodes and verifies that shaping telescopes on an environment of one's own.

A step pays r + discount * phi_{h+1}(s') - phi_h(s), with phi = 0 after termination. Discounted returns then differ by
the potential of the last state minus that of the first, whatever happened in between, so that the optimal policies are
the same.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from causal_shaping._checks import check_discount
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, ShapingWarning

TIME_LIMITS = ("bootstrap", "terminal")
TOLERANCE = 1e-9
"""How far a telescoped sum may be off, relative to the sizes in it."""

Label = Callable[[Any], Any]


class _Shaper:
    """What a wrapper needs to know: the potential, its discount, and how observations become positions in it."""

    def __init__(
        self,
        env: Any,
        observations: gym.Space[Any],
        potential: Potential | str | os.PathLike[str],
        time_limit: str,
        discount: float | None,
        label: Label | None,
    ) -> None:
        if time_limit not in TIME_LIMITS:
            raise ArgumentError(f"time_limit is {time_limit!r}; use {' or '.join(map(repr, TIME_LIMITS))}.")
        if isinstance(potential, (str, os.PathLike)):
            potential = Potential.load(potential)
        if not isinstance(potential, Potential):
            raise ArgumentError(
                f"{potential!r} is no potential. Use Potential(values, space), or ceilings.potential()."
            )
        self.potential, self.bootstrap = potential, time_limit == "bootstrap"
        self.discount = potential.discount if discount is None else discount
        check_discount(self.discount)
        if self.discount != potential.discount:
            warnings.warn(
                f"Rewards are shaped with a discount of {self.discount:g}, but the potential was made for "
                f"{potential.discount:g}.",
                ShapingWarning,
                stacklevel=3,
            )
        limit = time_limit_of(env)
        if potential.horizon is not None and limit is not None and limit != potential.horizon:
            warnings.warn(
                f"The potential has {potential.horizon} steps, but an episode lasts up to {limit}. Compute it for that "
                "horizon, or use one without steps: ceilings.potential(step_indexed=False).",
                ShapingWarning,
                stacklevel=3,
            )
        self._label, self._told = label, False
        self._by_number = self._numbers(env, observations) if label is None else None
        # Plain lists: an environment steps one by one, and NumPy takes longer for one number than a list.
        self._number_list = None if self._by_number is None else self._by_number.tolist()
        self._start = int(getattr(observations, "start", 0))
        self._rows = potential.rows()

    def _numbers(self, env: Any, observations: gym.Space[Any]) -> LongArray | None:
        """Return where observations 0, 1, ... of an environment that knows its space stand in the potential."""
        space = getattr(env.unwrapped, "space", None)
        if not isinstance(space, Space):
            self._refuse_strange(observations)
            return None
        if not isinstance(observations, gym.spaces.Discrete):
            raise ArgumentError(
                "This environment's observations are not its states. Make it with observation='state', or pass label=, "
                "a function from an observation to a state's label."
            )
        found = self.potential.locate(space)
        lasting = ~space.is_terminal
        if self.potential.space.columns != space.columns or (found[lasting] == UNSEEN).all():
            raise ArgumentError(
                f"The potential is not of this environment: it has {self.potential.space!r}, the environment {space!r}."
            )
        if (found[lasting] == UNSEEN).any():
            missing = [space.states[s] for s in np.flatnonzero(lasting & (found == UNSEEN))]
            warnings.warn(
                f"The potential does not know {len(missing)} of the environment's states, {missing[0]} among them; "
                "they count as unseen.",
                ShapingWarning,
                stacklevel=4,
            )
        return found

    def _refuse_strange(self, observations: gym.Space[Any]) -> None:
        size = gym.spaces.flatdim(observations) if isinstance(observations, gym.spaces.Box) else 1
        columns = self.potential.space.columns
        fits = isinstance(observations, (gym.spaces.Box, gym.spaces.Discrete, gym.spaces.MultiDiscrete))
        if isinstance(observations, gym.spaces.MultiDiscrete):
            size = int(np.prod(observations.shape))
        if not fits or size != len(columns):
            raise ArgumentError(
                f"Observations of {observations} cannot be states made of {', '.join(columns)}. Pass label=, a "
                "function from an observation to a state's label."
            )

    def position(self, observation: Any) -> int:
        """Return where an observation stands in the potential."""
        if self._number_list is not None:
            return int(self._number_list[observation - self._start])
        if self._label is not None:
            return self.potential.position_of(self._label(observation))
        return self.potential.position(observation)

    def met(self, observation: Any) -> int:
        """Return where an observation that was met stands; the first one that is not known is told."""
        found = self.position(observation)
        if found == UNSEEN and not self._told:
            self._told = True
            warnings.warn(
                f"The potential does not know the state of observation {observation!r}; it counts as unseen, and so "
                "will others, without a word. If many do, look at the columns and bins of potential.space, or pass "
                "label=.",
                ShapingWarning,
                stacklevel=3,
            )
        return found

    def phi(self, position: int, h: int) -> float:
        """Return the potential of one state; 0 beyond the horizon."""
        value = self._rows[min(h, len(self._rows) - 1)][position]
        return value if value == value else float(self.potential.at(position, h))  # NaN: an error that says why

    def positions(self, observations: Any, space: gym.Space[Any]) -> LongArray:
        """Return where each of several observations stands."""
        if self._by_number is not None:
            return np.asarray(self._by_number[np.asarray(observations) - self._start])
        return np.array([self.position(one) for one in iterate(space, observations)], dtype=np.int64)

    def after(self, position: Any, h: Any, terminated: Any, truncated: Any) -> Any:
        """Return the potential of where a step led: 0 after the end, and at a time limit by the rule."""
        over = terminated if self.bootstrap else terminated | truncated
        return np.where(over, 0.0, self.potential.at(np.where(over, 0, position), h))


class ShapeReward(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Shapes the reward of an environment with a potential; any agent trains on it.

    `info` carries `unshaped_reward` and `shaping` of each step, and at the end of an episode `unshaped_return` and
    `shaped_return`, undiscounted.

    Args:
        env: an environment. Its observations must be states of the potential: the numbers of an environment that has
            a `space`, or values that the potential's space makes labels of; otherwise pass `label`.
        potential: a `Potential`, or the file of one, or of ceilings. With a file the wrapper can be written to JSON.
        time_limit: what phi is where an episode is cut: "bootstrap" keeps phi(s'), for a learner that bootstraps there;
            "terminal" takes 0. A step-indexed potential is 0 after its last step in any case.
        discount: the agent's; by default the potential's.
        label: a function from an observation to a state's label, one of `potential.space.states`: for a binned column
            the number of the bin, which `potential.space.bins[column]` gives.

    Examples:
        >>> import gymnasium as gym
        >>> import causal_shaping as cs
        >>> world = cs.load_world("lavacross-easy")
        >>> phi = cs.Potential(world.model.optimum().values, world)
        >>> env = cs.ShapeReward(gym.make("causal_shaping/LavaCrossEasy-v0"), phi)
        >>> _ = env.reset(seed=0)
        >>> *_, info = env.step(1)
        >>> sorted(info)
        ['shaping', 'unshaped_reward']
    """

    def __init__(
        self,
        env: Any,
        potential: Potential | str | os.PathLike[str],
        time_limit: str = "bootstrap",
        discount: float | None = None,
        label: Label | None = None,
    ) -> None:
        if isinstance(env, VectorEnv):
            raise ArgumentError("This is a vector of environments: use VectorShapeReward.")
        inner: Any = env
        while isinstance(inner, gym.Wrapper):
            if isinstance(inner, gym.wrappers.Autoreset):
                raise ArgumentError(
                    "Shape the reward inside gymnasium.wrappers.Autoreset: it hides where episodes end."
                )
            inner = inner.env
        potential = os.fspath(potential) if isinstance(potential, os.PathLike) else potential
        _refuse_continuous(env.action_space)
        RecordConstructorArgs.__init__(
            self, potential=potential, time_limit=time_limit, discount=discount, label=label, _disable_deepcopy=True
        )
        gym.Wrapper.__init__(self, env)
        self._shaper = _Shaper(env, env.observation_space, potential, time_limit, discount, label)
        self._before: float | None = None
        self._h = 0
        self._returns = (0.0, 0.0)

    @property
    def potential(self) -> Potential:
        """The potential."""
        return self._shaper.potential

    @property
    def discount(self) -> float:
        """The discount of the shaping."""
        return self._shaper.discount

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._h, self._returns = 0, (0.0, 0.0)
        self._before = self._shaper.phi(self._shaper.met(observation), 0)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act, and get the shaped reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._before is None:
            raise ArgumentError("The episode has not begun: call reset() before the first step.")
        self._h += 1
        if terminated or (truncated and not self._shaper.bootstrap):
            after = 0.0
        else:
            after = self._shaper.phi(self._shaper.met(observation), self._h)
        shaping = self._shaper.discount * after - self._before
        shaped = float(reward) + shaping
        self._before = after
        self._returns = (self._returns[0] + float(reward), self._returns[1] + shaped)
        info = {**info, "unshaped_reward": float(reward), "shaping": shaping}
        if terminated or truncated:
            info["unshaped_return"], info["shaped_return"] = self._returns
        return observation, shaped, terminated, truncated, info


class VectorShapeReward(VectorWrapper[Any, Any, Any, Any, Any], RecordConstructorArgs):
    """Shapes the rewards of a vector of environments, in every autoreset mode; see `ShapeReward`.

    `info` carries arrays: `unshaped_reward` and `shaping`, and for episodes that ended `unshaped_return` and
    `shaped_return` with the masks `_unshaped_return` and `_shaped_return`.
    """

    def __init__(
        self,
        env: Any,
        potential: Potential | str | os.PathLike[str],
        time_limit: str = "bootstrap",
        discount: float | None = None,
        label: Label | None = None,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise ArgumentError("This is one environment: use ShapeReward.")
        _refuse_continuous(env.single_action_space)
        RecordConstructorArgs.__init__(
            self, potential=potential, time_limit=time_limit, discount=discount, label=label, _disable_deepcopy=True
        )
        VectorWrapper.__init__(self, env)
        potential = os.fspath(potential) if isinstance(potential, os.PathLike) else potential
        inside = getattr(env.unwrapped, "envs", None)
        makers = getattr(env.unwrapped, "env_fns", None)  # of environments that live in other processes
        one = inside[0] if inside else makers[0]() if makers else env
        self._shaper = _Shaper(one, env.single_observation_space, potential, time_limit, discount, label)
        if makers and not inside:
            one.close()
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._before: FloatArray = np.zeros(env.num_envs)
        self._h: LongArray = np.zeros(env.num_envs, dtype=np.int64)
        self._returns: FloatArray = np.zeros((2, env.num_envs))
        self._ended: BoolArray = np.zeros(env.num_envs, dtype=bool)

    @property
    def potential(self) -> Potential:
        """The potential."""
        return self._shaper.potential

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the episodes, or with `options={"reset_mask": ...}` some of them."""
        mask = np.ones(self.num_envs, dtype=bool)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], dtype=bool).copy()
        observations, info = self.env.reset(seed=seed, options=options)
        self._begin(mask, observations)
        return observations, info

    def _positions(self, observations: Any) -> LongArray:
        return self._shaper.positions(observations, self.observation_space)

    def _begin(self, which: BoolArray, observations: Any) -> None:
        if which.any():
            first = self.potential.at(np.where(which, self._positions(observations), 0), 0)
            self._before = np.where(which, first, self._before)
            self._h = np.where(which, 0, self._h)
            self._returns = np.where(which, 0.0, self._returns)
            self._ended = self._ended & ~which

    def step(self, actions: Any) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Act, and get the shaped rewards."""
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        # With autoreset in the next step, a step after the end is a reset: it earns nothing and is not shaped.
        fresh = self._ended if self._mode == AutoresetMode.NEXT_STEP else np.zeros(self.num_envs, dtype=bool)
        over = terminated | truncated
        led = self._positions(observations)
        if self._mode == AutoresetMode.SAME_STEP and over.any():
            led = led.copy()
            for i in np.flatnonzero(over):  # the observation is that of the next episode
                led[i] = self._shaper.position(info["final_obs"][i])
        self._h = np.where(fresh, 0, self._h + 1)
        after = np.where(
            fresh,
            self.potential.at(np.where(fresh, led, 0), 0),
            self._shaper.after(led, self._h, terminated, truncated),
        )
        shaping = np.where(fresh, 0.0, self._shaper.discount * after - self._before)
        shaped = rewards + shaping
        self._returns = np.where(fresh, 0.0, self._returns + np.stack([rewards, shaped]))
        self._before, self._ended = after, over
        info = {**info, "unshaped_reward": np.array(rewards, dtype=np.float64), "shaping": shaping}
        if over.any():
            info |= {"unshaped_return": self._returns[0].copy(), "_unshaped_return": over.copy()}
            info |= {"shaped_return": self._returns[1].copy(), "_shaped_return": over.copy()}
        if self._mode == AutoresetMode.SAME_STEP:
            self._begin(over, observations)
        return observations, shaped, terminated, truncated, info


def time_limit_of(env: Any) -> int | None:
    """Return the steps after which an episode is cut, as far as an environment tells."""
    limits = [getattr(env.unwrapped, "horizon", None)]
    limits.append(None if env.spec is None else env.spec.max_episode_steps)
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    known = [int(limit) for limit in limits if isinstance(limit, (int, np.integer))]
    return min(known, default=None)


def _refuse_continuous(actions: gym.Space[Any]) -> None:
    if not isinstance(actions, (gym.spaces.Discrete, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)):
        raise ArgumentError(f"The actions are {actions}, but potentials of this kind are for discrete actions.")


@dataclass(frozen=True)
class PotentialCheck:
    """What `check_potential` found.

    Attributes:
        episodes: how many were played.
        steps: in all.
        terminated: episodes that the world ended.
        truncated: episodes that were cut.
        unseen: the share of states met that the potential does not know.
        largest_error: by how much a telescoped sum was off at most.
    """

    episodes: int
    steps: int
    terminated: int
    truncated: int
    unseen: float
    largest_error: float


def check_potential(
    env: gym.Env[Any, Any],
    potential: Potential | str | os.PathLike[str],
    episodes: int = 10,
    seed: int = 0,
    most_steps: int = 10_000,
    shaped: bool = False,
    **options: Any,
) -> PotentialCheck:
    """Play episodes at random and verify that shaping telescopes: the mistake that everybody makes.

    The discounted shaped return minus the discounted return must be the discounted potential of where an episode was
    cut, or 0 if it ended, minus the potential of where it began.

    Args:
        env: an environment, to be wrapped in `ShapeReward`.
        potential: what to shape it with.
        episodes: how many to play.
        seed: of the first episode and of the actions.
        most_steps: of an episode that does not end by itself.
        shaped: the environment shapes its reward already, by code of your own; its `info` must hold `unshaped_reward`.
        options: of `ShapeReward`.

    Raises:
        ArgumentError: if shaping does not telescope, with the episode that shows it.
    """
    wrapped = ShapeReward(env, potential, **options)
    shaper, played = wrapped._shaper, env if shaped else wrapped
    rng = np.random.default_rng(seed)
    ended = cut = steps = unseen = met = 0
    largest = 0.0
    for episode in range(episodes):
        observation, _ = played.reset(seed=seed if episode == 0 else None)
        position = shaper.position(observation)
        first = float(shaper.potential.at(position, 0))
        met, unseen = met + 1, unseen + (position == UNSEEN)
        difference, size, factor, h = 0.0, abs(first), 1.0, 0
        terminated = truncated = False
        while not (terminated or truncated) and h < most_steps:
            observation, reward, terminated, truncated, info = played.step(_sampled(env.action_space, rng))
            if "unshaped_reward" not in info:
                raise ArgumentError("With shaped=True, info must hold 'unshaped_reward', the reward before shaping.")
            difference += factor * (float(reward) - info["unshaped_reward"])
            factor, h = factor * shaper.discount, h + 1
            position = shaper.position(observation)
            met, unseen = met + 1, unseen + (position == UNSEEN and not terminated)
            size += abs(float(reward))
        last = float(shaper.after(position, h, terminated, truncated))
        error = abs(difference - (factor * last - first))
        steps, ended, cut = steps + h, ended + bool(terminated), cut + bool(truncated and not terminated)
        largest = max(largest, error)
        if error > TOLERANCE * max(1.0, size):
            raise ArgumentError(
                f"Shaping does not telescope: in episode {episode}, of {h} steps, shaped and unshaped return differ by "
                f"{difference:.6g} and not by {factor * last - first:.6g}. Is the potential 0 after termination, and "
                "the reward shaped once, with the agent's discount?"
            )
    return PotentialCheck(episodes, steps, ended, cut, unseen / met if met else 0.0, largest)


def _sampled(actions: gym.Space[Any], rng: np.random.Generator) -> Any:
    if isinstance(actions, gym.spaces.Discrete):
        return int(actions.start + rng.integers(actions.n))
    return actions.sample()
