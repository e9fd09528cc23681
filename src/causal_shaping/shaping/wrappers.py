"""Wrappers that shape rewards with a potential: of one environment, and of a Gymnasium vector.

Both tell `ShapingWrapper` what happened, and add what it returns to the reward and to `info`.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.errors import ArgumentError
from causal_shaping.shaping import environments
from causal_shaping.shaping.actions import ADMISSIBLE, MASK
from causal_shaping.shaping.base import ShapingWrapper


class _TakesVecEnvs:
    """Makes a wrapper of another kind around Stable-Baselines3's vectors of environments."""

    def __new__(cls, env: Any = None, *arguments: Any, **options: Any) -> Any:
        if not environments.is_vec_env(env):
            return super().__new__(cls)
        from causal_shaping.shaping.stable_baselines import ShapedVecEnv

        return ShapedVecEnv(env, *arguments, **options)


class ShapeReward(ShapingWrapper, _TakesVecEnvs, gym.Wrapper[Any, Any, Any, Any]):
    """Shapes the reward of an environment with a potential; any agent trains on it.

    Shaping does not change which policies are optimal, whatever the potential. This holds for an
    agent with the same discount that maximises what the rule at the time limit assumes:

    - With a potential that has steps, or `time_limit="terminal"`: the return of an episode.
    - With one without steps and `time_limit="bootstrap"`: the return, plus the value of the state
      where the episode was truncated. An agent that maximises the return of an episode of limited
      length, such as one that learns from whole episodes, is drawn to end where phi is high.

    The wrapper cannot see what an agent maximises; `check_potential` reports what phi remains at
    the time limit.

    `info` carries `unshaped_reward` and `shaping` of each step, and at the end of an episode
    `unshaped_return` and `shaped_return`, undiscounted. With ceilings it also carries
    `ceiling_evidence`, an e-value against them: the wrapper tests whether what the agent sees
    contradicts what the ceilings assume, and warns once when the evidence reaches 20. If they hold,
    this happens in at most 5% of runs, however long these are. The test bets on what steps earn,
    for which it needs `value_ceilings(..., reward_min=)`. The evidence is infinite as soon as
    something happens that the ceilings exclude; see `causal_shaping.shaping.monitor`. A fit claims
    nothing that could be tested, so it has no evidence.

    The spec holds the potential, or the path of its file. It can be written to JSON unless there is
    a `label` or `observe`, which is code, or a fit that was not saved.

    Around a vector of Stable-Baselines3 (`make_vec_env`, `DummyVecEnv`, `SubprocVecEnv`) this makes
    a `VecEnv` with the same `potential`, `discount`, `monitor` and `logs()`, for their agents.

    Args:
        env: an environment. For a `Potential`, its observations must be states: the numbers of an
            environment that has a `space`, or values from which the potential's space makes labels;
            otherwise pass `label`. For an `ObservationPotential` they must be arrays of its shape
            and type; otherwise pass `observe`. Actions must be discrete if the potential claims
            something about them, as ceilings do; others fit any.
        potential: a `Potential`, an `ObservationPotential`, or a path for `load_potential`.
        time_limit: what phi is where an episode is truncated. "bootstrap" keeps phi(s'), for a
            learner that bootstraps there; "terminal" takes 0, for one that maximises the return of
            the episode. A step-indexed potential is 0 after its last step in any case.
        discount: the agent's; by default the potential's.
        label: a function from an observation to a state's label, one of `potential.space.states`:
            for a binned column the number of the bin, which `potential.space.bins[column]` gives.
        observe: a function from an observation to the array that an `ObservationPotential` takes,
            such as `lambda seen: seen[-1]` for a stack of frames.
        actions: the names of the environment's actions in the order of their numbers, where the
            logs name actions and the environment does not. Recording needs them, and comparing
            admissible actions.
        record: keep what the agent does, about 30 bytes a step, or the arrays; `logs` returns it as
            one more source.
        monitor: test ceilings while the agent acts; other potentials claim nothing to be tested.

    Raises:
        ArgumentError: if the potential comes from ceilings, and the environment has an action that
            they do not count; in a step, if its `info["action_mask"]` admits one that the
            potential's space excludes there, or the agent takes such an action.

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

    def _facts_of(self, env: Any) -> environments.EnvironmentFacts:
        if isinstance(env, VectorEnv):
            raise ArgumentError("This is a vector of environments: use VectorShapeReward.")
        for wrapper in environments.wrappers_of(env):
            if isinstance(wrapper, gym.wrappers.Autoreset):
                raise ArgumentError(
                    "Shape the reward inside Autoreset: it hides where episodes end."
                )
        return environments.facts_of_env(env)

    def _wrap(self, env: Any) -> None:
        gym.Wrapper.__init__(self, env)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._begin(0, observation, info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act, and get the shaped reward."""
        if self._guarded:
            self._refuse_inadmissible(0, action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        step = action, float(reward), observation, terminated, truncated
        facts = self._step(0, step, info)
        return observation, step[1] + facts["shaping"], terminated, truncated, {**info, **facts}


class VectorShapeReward(ShapingWrapper, _TakesVecEnvs, VectorWrapper[Any, Any, Any, Any, Any]):
    """Shapes the rewards of a vector of environments, in every autoreset mode.

    The arguments are those of `ShapeReward`. `info` carries arrays: `unshaped_reward`, `shaping`
    and `ceiling_evidence`, and for episodes that ended `unshaped_return` and `shaped_return` with
    the masks `_unshaped_return` and `_shaped_return`.
    """

    def _facts_of(self, env: Any) -> environments.EnvironmentFacts:
        if not isinstance(env, VectorEnv):
            raise ArgumentError("This is one environment: use ShapeReward.")
        return environments.facts_of_vector(env)

    def _wrap(self, env: Any) -> None:
        VectorWrapper.__init__(self, env)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        # Whose episode ended in the last step, so that the next step resets it instead.
        self._fresh: BoolArray = np.zeros(env.num_envs, dtype=bool)

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The spec of a vector that pays the same: its environments are wrapped one by one."""
        spec = copy.deepcopy(self.env.spec)
        if spec is not None:
            spec.additional_wrappers += (ShapeReward.wrapper_spec(**self._saved_kwargs),)
        return spec

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start the episodes, or with `options={"reset_mask": ...}` some of them."""
        which = np.ones(self.num_envs, dtype=bool)
        if options is not None and "reset_mask" in options:
            which = np.array(options["reset_mask"], dtype=bool)
        observations, info = self.env.reset(seed=seed, options=options)
        seen = list(iterate(self.observation_space, observations))
        self._begin_all(np.flatnonzero(which), seen, self._infos(info))
        self._fresh = self._fresh & ~which
        return observations, info

    def step(self, actions: Any) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Act, and get the shaped rewards."""
        fresh, taken = self._fresh, list(iterate(self.action_space, actions))
        for i in np.flatnonzero(~fresh & self._guarded).tolist():
            self._refuse_inadmissible(i, taken[i])
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        over = terminated | truncated

        # In one mode the observation is the next episode's already, and the last one is in `info`.
        seen = list(iterate(self.observation_space, observations))
        last, ended = seen.copy(), np.flatnonzero(over).tolist()
        if self._mode == AutoresetMode.SAME_STEP:
            for i in ended:
                last[i] = info["final_obs"][i]
        rewards, infos = np.array(rewards, dtype=np.float64), self._infos(info)
        ends = terminated.tolist(), truncated.tolist()
        steps = list(zip(taken, rewards.tolist(), last, *ends, strict=True))
        facts = self._step_all(steps, infos, fresh)
        if self._mode == AutoresetMode.SAME_STEP:
            self._begin_all(ended, seen, infos)
        self._fresh = over & (self._mode == AutoresetMode.NEXT_STEP)

        shaping = np.array([one["shaping"] for one in facts])
        info = {**info, "unshaped_reward": rewards, "shaping": shaping}
        if self._monitor is not None:  # one test of all environments together
            info["ceiling_evidence"] = np.full(self.num_envs, self._monitor.evidence)
        if len(ended):
            for name in ("unshaped_return", "shaped_return"):
                info[name] = np.array([one.get(name, 0.0) for one in facts])
                info[f"_{name}"] = over
        return observations, rewards + shaping, terminated, truncated, info

    def _infos(self, info: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what `info` says about the actions that each environment admits."""
        names = [name for name in (MASK, ADMISSIBLE) if name in info]
        if not names:
            return [info] * self.num_envs
        return [{name: info[name][i] for name in names} for i in range(self.num_envs)]
