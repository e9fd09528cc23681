"""Shaping, apart from the interface of any environment: what all wrappers share.

`ShapingWrapper` matches a potential with an environment, follows its episodes, and says what to add
to each reward. The wrappers hand it what happened: one for single environments, one for the vectors
of Gymnasium, one for those of Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from gymnasium.utils import RecordConstructorArgs

from causal_shaping._checks import check_choice, check_discount
from causal_shaping.data.arrays import BoolArray
from causal_shaping.data.logs import Logs
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.shaping.actions import EnvironmentActions
from causal_shaping.shaping.environments import EnvironmentFacts
from causal_shaping.shaping.formula import TIME_LIMITS, is_final, shaped_reward
from causal_shaping.shaping.monitor import ALARM, CeilingEvidence, Monitor
from causal_shaping.shaping.observations import Function, ObservationLookup, StateLookup
from causal_shaping.shaping.potentials import PotentialLike, as_potential, for_spec
from causal_shaping.shaping.recording import ObservationRecording, StateRecording, Step
from causal_shaping.shaping.warn import warn_user

if TYPE_CHECKING:
    import pyarrow as pa

Info: TypeAlias = Mapping[str, Any]
"""The `info` of an environment."""

Facts: TypeAlias = dict[str, float]
"""What a wrapper adds to `info`."""


class ShapingWrapper(RecordConstructorArgs):
    """The base of the wrappers, whatever interface they wrap; `ShapeReward` has the arguments.

    Attributes:
        potential: the potential.
        discount: that of the shaping.
    """

    def __init__(
        self,
        env: Any,
        potential: PotentialLike,
        *,
        time_limit: str = "bootstrap",
        discount: float | None = None,
        label: Function | None = None,
        observe: Function | None = None,
        actions: Sequence[Any] | None = None,
        record: bool = False,
        monitor: bool = True,
    ) -> None:
        facts, environments = self._facts_of(env), getattr(env, "num_envs", 1)
        self._wrap(env)
        self.potential = phi = as_potential(potential)
        check_choice("time_limit", time_limit, TIME_LIMITS)
        names = None if actions is None else list(actions)
        options: dict[str, Any] = {"time_limit": time_limit, "discount": discount, "label": label}
        options |= {"observe": observe, "actions": names, "record": record, "monitor": monitor}
        saved = {"potential": for_spec(potential), **options}
        RecordConstructorArgs.__init__(self, **saved, _disable_deepcopy=True)
        self.discount = phi.discount
        if discount is not None:
            check_discount(discount)
            self.discount = discount
        if self.discount != phi.discount:
            warn_user(
                f"Rewards are shaped with a discount of {self.discount:g}, but the potential was "
                f"made for {phi.discount:g}.",
                ShapingWarning,
            )
        if phi.horizon is not None and facts.time_limit not in (None, phi.horizon):
            warn_user(
                f"The potential has {phi.horizon} steps, but an episode lasts up to "
                f"{facts.time_limit}. Compute it for that horizon, or use one without steps: "
                "ceilings.potential(step_indexed=False).",
                ShapingWarning,
            )
        self._bootstrap = time_limit == "bootstrap"
        self._actions = EnvironmentActions(phi, facts.actions, facts.space, names)
        kinds: Any = ObservationLookup, ObservationRecording
        if isinstance(phi, Potential):
            kinds = StateLookup, StateRecording
        self._lookup = kinds[0](phi, facts, label, observe)
        self._recording = self._monitor = None
        if record:
            self._recording = kinds[1](self._lookup, self._actions, environments)
        if monitor and isinstance(phi, Potential) and phi.kind == "ceiling":
            self._monitor = Monitor(phi, self._actions.named, environments)
        self._guarded = self._actions.restricted or record
        # Of each environment's episode: steps so far, place and phi of its present state, and
        # unshaped and shaped return so far.
        self._episodes: list[Any] = [None] * environments

    def _facts_of(self, env: Any) -> EnvironmentFacts:
        """Return the facts of an environment; refuse one that this wrapper is not for."""
        raise NotImplementedError

    def _wrap(self, env: Any) -> None:
        """Call the constructor of the library's own wrapper."""
        raise NotImplementedError

    @property
    def monitor(self) -> CeilingEvidence | None:
        """The evidence against the ceilings so far; None without a monitor."""
        if self._monitor is None:
            return None
        return self._monitor.report()

    def logs(self, source: str = "agent") -> Logs | pa.Table:
        """Return what the agent did so far, with unshaped rewards, as the logs of one more source.

        This needs `record=True`. Beside a potential of observations it is a table for
        `fit_ceilings`: source, episode, step, the potential's columns (or one of flat lists,
        `state`, if it has none), action, reward, the same columns of what followed as `next_...`,
        terminated, truncated.

        An agent that sees no more than the state draws its actions without the hidden noise,
        however it learns: its logs are unconfounded, `confounding={"agent": 1.0}`. Merged with the
        counts of the demonstrators, they tighten the ceilings while it learns. What to mind:

        - Pass `confidence=`, and leave steps pooled. After a few visits an observed share is no
          bound, and an agent that takes it for one would not look again. The limits of pooled
          counts hold although what the agent saw decides what it tries.
        - An agent that sees more than the state, such as the numbers behind bins or an image, may
          act on what the state leaves out. Then it is a source like any other, with a confounding
          above 1.
        - These are all steps so far. Merge them with the counts of the demonstrators, not with
          counts that hold the agent already: rows that count twice make limits too narrow.
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
            >>> cs.value_ceilings(
            ...     more, 20, 0.1, confidence=0.95, confounding={"agent": 1.0}
            ... ).sources
            ('good', 'random', 'agent')
        """
        if self._recording is None:
            raise ArgumentError("Nothing was recorded: make the wrapper with record=True.")
        return self._recording.logs(source)

    def _begin(self, i: int, observation: Any, info: Info, found: Any = None) -> None:
        """Begin an episode of environment i; `found` is its first phi, if it was looked up."""
        place, phi = found or self._lookup.look_up(observation, 0)
        self._episodes[i] = 0, place, phi, 0.0, 0.0
        if self._actions.restricted:
            self._actions.compare(place, info)
        if self._recording is not None:
            self._recording.begin(i, observation, place)

    def _begin_all(self, which: Iterable[int], observations: Any, infos: Sequence[Info]) -> None:
        """Begin an episode of each environment in `which`: one call of the potential."""
        which = list(which)
        found = self._lookup.look_up_all([observations[i] for i in which], [0] * len(which))
        for i, one in zip(which, found, strict=True):
            self._begin(i, observations[i], infos[i], one)

    def _refuse_inadmissible(self, i: int, action: Any) -> None:
        """Refuse an action that the potential's space excludes in environment i's state."""
        if self._guarded and self._episodes[i] is not None:
            self._actions.refuse_inadmissible(self._episodes[i][1], action)

    def _step(self, i: int, step: Step, info: Info, found: Any = None) -> Facts:
        """Return what `info` is to say about a step of environment i; `shaping` is to be added."""
        if self._episodes[i] is None:
            raise ArgumentError("The episode has not begun: call reset() before the first step.")
        h, state, before, unshaped_return, shaped_return = self._episodes[i]
        action, reward, observation, terminated, truncated = step

        # Phi is 0 where nothing follows a step: after termination, and by `time_limit="terminal"`
        # also at a time limit. There nothing is looked up, as the observation may have no label.
        place: Any = UNSEEN
        after = 0.0
        if not is_final(terminated, truncated, self._bootstrap):
            place, after = found or self._lookup.look_up(observation, h + 1)
        shaping = shaped_reward(0.0, self.discount, before, after)
        unshaped_return, shaped_return = unshaped_return + reward, shaped_return + reward + shaping
        self._episodes[i] = h + 1, place, after, unshaped_return, shaped_return
        facts = {"unshaped_reward": reward, "shaping": shaping}
        if terminated or truncated:
            facts["unshaped_return"], facts["shaped_return"] = unshaped_return, shaped_return
        elif self._actions.restricted:
            self._actions.compare(place, info)
        if self._recording is not None:
            self._recording.add(i, step, place)

        # The monitor wants the state at a time limit also where its phi counts as 0.
        if self._monitor is not None:
            if truncated and not terminated and not self._bootstrap:
                place = self._lookup.place(observation)
            x = self._actions.position(action)
            evidence = self._monitor.step(i, h, state, x, reward, place, terminated, truncated)
            facts["ceiling_evidence"] = evidence
            if evidence >= ALARM or reward < self._monitor.lowest_reward:
                self._monitor.tell()
        return facts

    def _step_all(self, steps: list[Step], infos: Sequence[Info], fresh: BoolArray) -> list[Facts]:
        """Return what `_step` does for each environment: one call of the potential.

        Where `fresh`, the environment was reset instead: its episode begins, and pays nothing.
        """
        wanted = [not is_final(step[3], step[4], self._bootstrap) for step in steps]
        new = fresh.tolist()
        hs = [0 if new[i] else self._episodes[i][0] + 1 for i, want in enumerate(wanted) if want]
        seen = [step[2] for step, want in zip(steps, wanted, strict=True) if want]
        found = iter(self._lookup.look_up_all(seen, hs))
        facts = []
        for i, step in enumerate(steps):
            known = next(found) if wanted[i] else None
            if new[i]:
                self._begin(i, step[2], infos[i], known)
                facts.append({"unshaped_reward": step[1], "shaping": 0.0})
            else:
                facts.append(self._step(i, step, infos[i], known))
        return facts
