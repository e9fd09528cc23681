"""Gymnasium wrappers that shape rewards with a potential: of one environment, and of a vector of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate

from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.logs import Logs
from causal_shaping.data.observed import ObservationPotential
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.errors import ArgumentError
from causal_shaping.shaping._actions import ADMISSIBLE, MASK, require_discrete
from causal_shaping.shaping._kernels import UNWATCHED, shape_rewards
from causal_shaping.shaping._monitor import ALARM
from causal_shaping.shaping._observations import ObservationShaper, Observe
from causal_shaping.shaping._recording import Recording
from causal_shaping.shaping._shaper import Shaper, wrappers_of
from causal_shaping.shaping._states import Label, StateShaper
from causal_shaping.shaping.formula import is_final, shaped_reward
from causal_shaping.shaping.monitor import CeilingEvidence, Monitor
from causal_shaping.shaping.potentials import GivenPotential, as_potential, for_spec

if TYPE_CHECKING:
    import pyarrow as pa


class _Shaping(RecordConstructorArgs):
    """What both wrappers share: their arguments, recorded for the spec, and what they are asked for."""

    _shaper: Shaper
    _recording: Recording | None
    _monitor: Monitor | None

    def _set_up(
        self,
        env: Any,
        action_space: Any,
        observations: Any,
        potential: GivenPotential,
        environments: int,
        record: bool,
        monitor: bool,
        **options: Any,
    ) -> None:
        """Keep the arguments and match the potential with an environment; `options` are those of `Shaper`."""
        require_discrete(action_space)
        found = as_potential(potential)
        kept = {**options, "record": record, "monitor": monitor}
        RecordConstructorArgs.__init__(self, potential=for_spec(potential), **kept, _disable_deepcopy=True)
        names = options.pop("actions")
        kind: Any = ObservationShaper if isinstance(found, ObservationPotential) else StateShaper
        self._shaper = kind(env, action_space, observations, found, **options, names=names)
        self._recording = self._shaper.recording(environments) if record else None
        self._monitor = self._shaper.monitor(environments) if monitor else None

    @property
    def monitor(self) -> CeilingEvidence | None:
        """What contradicts the ceilings so far; None for a potential that claims nothing, and with `monitor=False`."""
        return None if self._monitor is None else self._monitor.report()

    @property
    def potential(self) -> Potential | ObservationPotential:
        """The potential."""
        return self._shaper.potential

    @property
    def discount(self) -> float:
        """The discount of the shaping."""
        return self._shaper.discount

    def logs(self, source: str = "agent") -> Logs | pa.Table:
        """Return what the agent did so far, with unshaped rewards, as logs of one more source (needs `record=True`).

        Beside a potential of observations this is a table for `fit_ceilings`: source, episode, step, the potential's
        columns, or one of flat lists, `state`, if it has none, action, reward, the same columns of what followed as
        `next_...`, terminated, truncated.

        An agent that sees no more than the state draws its actions without the hidden noise, however it learns: its
        logs are unconfounded, `confounding={"agent": 1.0}`. Merged with the counts of the demonstrators, they tighten
        the ceilings while it learns. What to mind:

        - Pass `confidence=`, and leave steps pooled. After a few visits a share is no bound, and an agent that is told
          so would not look again; the limits of pooled counts hold although what it saw decides what it tries.
        - An agent that sees more than the state, such as the numbers behind bins or an image, may act on what the
          state leaves out: then it is a source like any other, with a confounding of more than 1.
        - These are all steps so far. Merge them with the counts of the demonstrators, not with counts that hold the
          agent already: rows that count twice make limits too narrow.
        - A state that the potential does not know is added to the space of the logs.

        Args:
            source: the name of the source.

        Examples:
            >>> import gymnasium as gym
            >>> import causal_shaping as cs
            >>> world = cs.load_world("lavacross-easy")
            >>> counts = cs.count([world.collect(name, 20_000) for name in ("good", "random")])
            >>> phi = cs.value_ceilings(counts, 20, 0.1, confidence=0.95).potential()
            >>> env = cs.ShapeReward(gym.make("causal_shaping/LavaCrossEasy-v0"), phi, record=True)
            >>> _ = env.action_space.seed(0), env.reset(seed=0)
            >>> for _ in range(1000):  # an agent of your own
            ...     *_, terminated, truncated, _ = env.step(env.action_space.sample())
            ...     if terminated or truncated:
            ...         _ = env.reset()
            >>> more = counts + cs.count(env.logs())
            >>> cs.value_ceilings(more, 20, 0.1, confidence=0.95, confounding={"agent": 1.0}).sources
            ('good', 'random', 'agent')
        """
        if self._recording is None:
            raise ArgumentError("Nothing was recorded: make the wrapper with record=True.")
        return self._recording.logs(source)


class ShapeReward(_Shaping, gym.Wrapper[Any, Any, Any, Any]):
    """Shapes the reward of an environment with a potential; any agent trains on it.

    Shaping does not change which policies are optimal, whatever the potential, for an agent with the same discount that
    maximises what the rule at the time limit assumes:

    - with a potential that has steps, or `time_limit="terminal"`: the return of an episode;
    - with one without steps and `time_limit="bootstrap"`: the return and the value of the state where the episode was
      truncated. An agent that maximises the return of an episode of limited length, as one that learns from whole
      episodes does, is drawn to end where phi is high.

    The wrapper cannot see what an agent maximises; `check_potential` says what stays at the time limit.

    `info` carries `unshaped_reward` and `shaping` of each step, and at the end of an episode `unshaped_return` and
    `shaped_return`, undiscounted. With ceilings it also carries `ceiling_evidence`, an e-value against them: the
    wrapper tests whether what the agent sees contradicts what they assume, and warns once when it reaches 20, which
    happens in at most 5% of runs if they hold, however long these are. It bets on what steps earn, which takes
    `value_ceilings(..., reward_min=)`, and it is infinite as soon as something happens that they exclude; see
    `causal_shaping.shaping.monitor`. A fit claims nothing that could be tested, so that there is no evidence. The spec
    holds the potential, or the path of its file, and can be written to JSON unless there is a `label` or `observe`,
    which is code, or a fit that was not saved.

    Args:
        env: an environment. For a `Potential`, its observations must be states: the numbers of an environment that has
            a `space`, or values from which the potential's space makes labels; otherwise pass `label`. For an
            `ObservationPotential` they must be arrays of its shape and type; otherwise pass `observe`.
        potential: a `Potential`, an `ObservationPotential`, or a path for `load_potential`.
        time_limit: what phi is where an episode is truncated: "bootstrap" keeps phi(s'), for a learner that bootstraps
            there; "terminal" takes 0, for one that maximises the return of the episode. A step-indexed potential is 0
            after its last step in any case.
        discount: the agent's; by default the potential's.
        label: a function from an observation to a state's label, one of `potential.space.states`: for a binned column
            the number of the bin, which `potential.space.bins[column]` gives.
        observe: a function from an observation to the array that an `ObservationPotential` takes, such as
            `lambda seen: seen[-1]` for a stack of frames.
        actions: the names of the environment's actions in the order of their numbers, where the logs name actions and
            the environment does not; needed to record, and to compare admissible actions.
        record: keep what the agent does, about 22 bytes a step, or the arrays; `logs` returns it as one more source.
        monitor: test ceilings while the agent acts; other potentials claim nothing that could be tested.

    Raises:
        ArgumentError: if the potential comes from ceilings, and the environment has an action that they do not count;
            in a step, if its `info["action_mask"]` admits one that the potential's space excludes there, or the agent
            takes such an action.

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
        potential: GivenPotential,
        *,
        time_limit: str = "bootstrap",
        discount: float | None = None,
        label: Label | None = None,
        observe: Observe | None = None,
        actions: Sequence[Any] | None = None,
        record: bool = False,
        monitor: bool = True,
    ) -> None:
        if isinstance(env, VectorEnv):
            raise ArgumentError("This is a vector of environments: use VectorShapeReward.")
        if any(isinstance(one, gym.wrappers.Autoreset) for one in wrappers_of(env)):
            raise ArgumentError("Shape the reward inside gymnasium.wrappers.Autoreset: it hides where episodes end.")
        names = None if actions is None else list(actions)
        options = {"time_limit": time_limit, "discount": discount, "label": label, "observe": observe, "actions": names}
        spaces = (env.action_space, env.observation_space)
        self._set_up(env, *spaces, potential, 1, bool(record), bool(monitor), **options)
        gym.Wrapper.__init__(self, env)
        self._guarded = self._recording is not None or self._shaper.restricted
        # Steps so far, the present state, its phi, and unshaped and shaped returns so far: looked up once a step.
        self._now: tuple[int, Any, float, float, float] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        place, phi = self._shaper.meet(observation, 0)
        self._now = 0, place, phi, 0.0, 0.0
        if self._shaper.restricted:
            self._shaper.compare(place, info)
        if self._recording is not None:
            self._recording.begin(observation, place=place)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act, and get the shaped reward."""
        if self._guarded:
            self._refuse_inadmissible(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        now, shaper = self._now, self._shaper
        if now is None:
            raise ArgumentError("The episode has not begun: call reset() before the first step.")
        h, started, before, unshaped_return, shaped_return = now
        paid, place, after = float(reward), UNSEEN, 0.0
        if not is_final(terminated, truncated, shaper.bootstrap):
            place, after = shaper.meet(observation, h + 1)
        shaping = shaped_reward(0.0, shaper.discount, before, after)
        shaped = paid + shaping
        unshaped_return += paid
        shaped_return += shaped
        self._now = h + 1, place, after, unshaped_return, shaped_return
        info = {**info, "unshaped_reward": paid, "shaping": shaping}
        if self._guarded:
            self._look_at(action, paid, observation, terminated, truncated, info)
        monitor = self._monitor
        if monitor is not None:
            if truncated and not terminated and not shaper.bootstrap:  # its potential was not needed, but it followed
                place = shaper.place(observation)
            x = shaper.taken(action)
            info["ceiling_evidence"] = evidence = monitor.test(0, h, started, x, paid, place, terminated, truncated)
            if evidence >= ALARM or paid < monitor.lowest_reward:
                monitor.tell(stacklevel=2)
        if terminated or truncated:
            info["unshaped_return"], info["shaped_return"] = unshaped_return, shaped_return
        return observation, shaped, terminated, truncated, info

    def _refuse_inadmissible(self, action: Any) -> None:
        """Refuse an action that the space excludes in the present state."""
        if self._recording is not None:
            self._recording.refuse_inadmissible(action)
        else:
            self._shaper.refuse_inadmissible(UNSEEN if self._now is None else self._now[1], action)

    def _look_at(
        self, action: Any, paid: float, observation: Any, terminated: bool, truncated: bool, info: Mapping[str, Any]
    ) -> None:
        """Compare the actions that the environment admits now with those of the space, and record the step."""
        assert self._now is not None
        _, place, *_ = self._now
        if self._shaper.restricted and not (terminated or truncated):
            self._shaper.compare(place, info)
        if self._recording is not None:
            self._recording.add(action, paid, observation, (terminated, truncated), place=place)


class VectorShapeReward(_Shaping, VectorWrapper[Any, Any, Any, Any, Any]):
    """Shapes the rewards of a vector of environments, in every autoreset mode; see `ShapeReward` for the arguments.

    `info` carries arrays: `unshaped_reward` and `shaping`, and for episodes that ended `unshaped_return` and
    `shaped_return` with the masks `_unshaped_return` and `_shaped_return`.
    """

    def __init__(
        self,
        env: Any,
        potential: GivenPotential,
        *,
        time_limit: str = "bootstrap",
        discount: float | None = None,
        label: Label | None = None,
        observe: Observe | None = None,
        actions: Sequence[Any] | None = None,
        record: bool = False,
        monitor: bool = True,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise ArgumentError("This is one environment: use ShapeReward.")
        inside = getattr(env.unwrapped, "envs", None)
        makers = getattr(env.unwrapped, "env_fns", None)  # of environments that live in other processes
        one = inside[0] if inside else makers[0]() if makers else env
        names = None if actions is None else list(actions)
        options = {"time_limit": time_limit, "discount": discount, "label": label, "observe": observe, "actions": names}
        spaces = (env.single_action_space, env.single_observation_space)
        self._set_up(one, *spaces, potential, env.num_envs, bool(record), bool(monitor), **options)
        if makers and not inside:
            one.close()
        VectorWrapper.__init__(self, env)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._resets_next = self._mode == AutoresetMode.NEXT_STEP
        self._resets_at_once = self._mode == AutoresetMode.SAME_STEP
        # Where the environments are, for what only potentials of states need: the monitor, and admissible actions.
        self._places: LongArray | None = None
        if self._monitor is not None or self._shaper.restricted:
            self._places = np.full(env.num_envs, UNSEEN)
        # The steps before the observation that comes next; 0 if the next step is a reset.
        self._h: LongArray = np.ones(env.num_envs, dtype=np.int64)
        # Phi of the present states, unshaped and shaped returns so far.
        self._sums: FloatArray = np.zeros((3, env.num_envs))
        self._none: BoolArray = np.zeros(env.num_envs, dtype=bool)

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]
        """The spec of a vector that pays the same: `gymnasium.make_vec` wraps each environment in `ShapeReward`."""
        spec = copy.deepcopy(self.env.spec)
        if spec is not None:
            spec.additional_wrappers += (ShapeReward.wrapper_spec(**self._saved_kwargs),)
        return spec

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the episodes, or with `options={"reset_mask": ...}` some of them."""
        mask = np.ones(self.num_envs, dtype=bool)
        if options is not None and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], dtype=bool).copy()
        observations, info = self.env.reset(seed=seed, options=options)
        self._begin(mask, observations)
        if self._shaper.restricted:
            self._compare(mask, observations, info)
        return observations, info

    def _begin(self, which: BoolArray, observations: Any) -> None:
        if which.any():
            places = self._shaper.all_met(observations, self.observation_space, ~which)
            if self._places is not None:
                self._places = np.where(which, places, self._places)
            phi = self._shaper.phis(places, np.zeros_like(self._h))
            self._refuse_unknown(which & np.isnan(phi), places)
            self._sums[:, which] = 0.0
            self._sums[0, which] = phi[which]
            self._h[which] = 1
            self._record_beginnings(which, observations)

    def _refuse_unknown(self, which: BoolArray, places: npt.NDArray[Any]) -> None:
        for i in np.flatnonzero(which):
            self._shaper.refuse_unknown(places[i])

    def _compare(self, which: BoolArray, observations: Any, info: Mapping[str, Any]) -> None:
        """Compare the actions that environments admit with those of the space."""
        told = [name for name in (MASK, ADMISSIBLE) if name in info]
        if told:
            places = self._shaper.all_met(observations, self.observation_space, np.ones_like(which))
            for i in np.flatnonzero(which):
                self._shaper.compare(places[i], {name: info[name][i] for name in told})

    def _refuse_inadmissible(self, action: Any, i: int) -> None:
        """Refuse an action that the space excludes in the state of environment i."""
        if self._recording is not None:
            self._recording.refuse_inadmissible(action, i)
        else:
            assert self._places is not None
            self._shaper.refuse_inadmissible(int(self._places[i]), action)

    def _record_beginnings(self, which: BoolArray, observations: Any) -> None:
        if self._recording is not None and which.any():
            for i, one in enumerate(iterate(self.observation_space, observations)):
                if which[i]:
                    self._recording.begin(one, i)

    def step(self, actions: Any) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Act, and get the shaped rewards."""
        if self._recording is not None or self._shaper.restricted:
            for j, action in enumerate(iterate(self.action_space, actions)):
                if self._h[j]:
                    self._refuse_inadmissible(action, j)
        observations, rewards, terminated, truncated, info = self.env.step(actions)
        shaper = self._shaper
        final = is_final(terminated, truncated, shaper.bootstrap)
        replaced = self._none  # with autoreset in the same step, by the observation of the next episode
        if self._resets_at_once and np.count_nonzero(terminated | truncated):
            replaced = terminated | truncated
            places = shaper.all_met(observations, self.observation_space, final | replaced)
            places = places.copy()  # not to change what the agent sees
            for i in np.flatnonzero(replaced & ~terminated):
                places[i] = (shaper.place if final[i] else shaper.met)(info["final_obs"][i])
        else:
            places = shaper.all_met(observations, self.observation_space, final)
        watched: Any = UNWATCHED
        h = self._h if self._recording is None else self._h.copy()
        if self._monitor is not None:
            taken = shaper.all_taken(actions, self.action_space)
            watched = *self._monitor.packed, self._places, taken, places
        paid, shaping, shaped, evidence = made = np.empty((4, self.num_envs))
        given = np.asarray(rewards, dtype=np.float64)
        after = shaper.phis(places, self._h)
        counted = terminated, truncated, final, self._h, self._sums, shaper.discount, self._resets_next
        ended, known = shape_rewards(made, given, after, *counted, *watched)
        if not known:
            self._refuse_unknown(np.isnan(self._sums[0]), places)
        if self._recording is not None:
            self._record(h, actions, paid, observations, terminated, truncated, info, replaced)
        info = {**info, "unshaped_reward": paid, "shaping": shaping}
        if self._monitor is not None:
            info["ceiling_evidence"] = evidence
            self._monitor.tell(stacklevel=2)
        if self._places is not None:
            self._places = places
        if ended:
            info["unshaped_return"], info["shaped_return"] = self._sums[1:].copy()
            info["_unshaped_return"] = info["_shaped_return"] = terminated | truncated
            if self._resets_at_once:
                self._begin(replaced, observations)
        if shaper.restricted:
            self._compare(~(terminated | truncated) | replaced, observations, info)
        return observations, shaped, terminated, truncated, info

    def _record(
        self,
        h: LongArray,
        actions: Any,
        rewards: FloatArray,
        observations: Any,
        terminated: BoolArray,
        truncated: BoolArray,
        info: Mapping[str, Any],
        replaced: BoolArray,
    ) -> None:
        """Record a step; a reset is none."""
        assert self._recording is not None
        fresh = h == 0
        seen = list(iterate(self.observation_space, observations))
        for j, action in enumerate(iterate(self.action_space, actions)):
            if not fresh[j]:
                found = info["final_obs"][j] if replaced[j] else seen[j]
                self._recording.add(action, rewards[j], found, (terminated[j], truncated[j]), j)
        self._record_beginnings(fresh, observations)
