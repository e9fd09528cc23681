"""One run of a learner: what it learned and what that cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from causal_shaping.beliefs.trust import Trust
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray, checksum_of, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.result import Contents, DataFrame, Result, Saved, data_frame
from causal_shaping.data.space import MakeColumn, Space, plain_column
from causal_shaping.learners.rules import PRESETS, Rule

_PLAIN = ("name", "learner", "seed", "horizon", "discount")
_ARRAYS: dict[str, Any] = {
    **dict.fromkeys(("step_regret", "returns", "q_values", "values"), np.float64),
    **dict.fromkeys(("episode_end", "visits", "checkpoints"), np.int64),
    **dict.fromkeys(("policies", "recommended"), np.int32),
}


@dataclass(frozen=True, eq=False, repr=False)
class Run(Saved, Result):
    """One run of a learner.

    Attributes:
        name: the name of the world or the environment.
        learner: the name of the learner, "custom" for a `Rule` of one's own.
        rule: the learner's constants; None for a learner that has none.
        seed: the seed of the run.
        space: the states and actions.
        horizon: the number of steps after which an episode was truncated.
        discount: the factor on future reward.
        step_regret: float64 [steps], the regret so far: the sum of V*(s) - Q*(s, x), stationary, or with step index of
            that step, all with the discount; NaN where there is no such optimum, or it is not known.
        episode_end: int64 [episodes], the steps taken when each episode ended; the last one may be cut by the budget.
        returns: float64 [episodes], unshaped and undiscounted.
        q_values: float64 [states, actions], or [steps, states, actions] with step index; under shaping of the shaped
            reward. NaN for actions that are not admissible.
        values: float64 like `q_values` without actions.
        visits: int64 like `q_values`.
        checkpoints: int64 [checkpoints], the numbers of steps after which the policy was kept.
        policies: int32 [checkpoints, states], or [checkpoints, steps, states]: the best actions at each checkpoint.
        recommended: int32 [states] or [steps, states], the actions to take once learning is over; the same as `policy`
            for every learner that is a `Rule`.
        alarm: the number of steps at which what the learner saw contradicted what it had from logs, and it dropped
            that. Ceilings: it began again with a potential of 0 and without clip, so that `visits` are those since;
            they are tested if they have a `reward_min`, see `causal_shaping.shaping.monitor`. A posterior: it went on
            with what it saw itself. None without an alarm.
        trust: how far the learner "posterior" trusted each source of the logs in the end; None without logs, and for
            other learners.
        logs: what the agent did, as logs of source "agent"; None unless it was recorded. They are not saved with the
            run: `run.logs.save(path)`.
    """

    KIND = "training run"

    name: str
    learner: str
    rule: Rule | None
    seed: int
    space: Space
    horizon: int
    discount: float
    step_regret: FloatArray
    episode_end: LongArray
    returns: FloatArray
    q_values: FloatArray
    values: FloatArray
    visits: LongArray
    checkpoints: LongArray
    policies: IntArray
    recommended: IntArray
    alarm: int | None = None
    trust: Trust | None = None
    logs: Logs | None = None

    def __post_init__(self) -> None:
        for name, dtype in _ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype))

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return len(self.step_regret)

    @property
    def regret(self) -> FloatArray:
        """The regret at the end of each episode: float64 [episodes], cumulative."""
        return np.asarray(self.step_regret[self.episode_end - 1])

    @property
    def policy(self) -> IntArray:
        """The best actions at the end, the lowest number among equals: int32 [states] or [steps, states]."""
        known = np.where(np.isnan(self.q_values), -np.inf, self.q_values)
        return np.asarray(np.argmax(known, axis=-1), dtype=np.int32)

    @property
    def mean_return(self) -> float:
        """The mean return of the last tenth of the episodes, unshaped."""
        return float(self.returns[-max(1, len(self.returns) // 10) :].mean())

    @property
    def _what(self) -> str:
        episodes = f"{self.steps:,} steps in {len(self.returns):,} episodes"
        return f"{self.learner} in {self.name}, seed {self.seed}: {episodes}"

    @property
    def _regret(self) -> str:
        return "" if np.isnan(self.step_regret[-1]) else f"regret {self.step_regret[-1]:.4g}"

    def __repr__(self) -> str:
        regret = f", {self._regret}" if self._regret else ""
        return f"Run({self._what}{regret})"

    def summary(self) -> str:
        """Return what was run and what came out, in a few lines."""
        usual, held = asdict(PRESETS.get(self.learner, Rule())), {} if self.rule is None else asdict(self.rule)
        changed = [f"{name}={value!r}" for name, value in held.items() if value != usual[name]]
        table = "one table per step" if self.q_values.ndim == 3 else "one table for all steps"
        lines = [
            f"{self._what} of at most {self.horizon}, {table}, discount {self.discount:g}",
            f"Constants changed: {', '.join(changed)}" if changed else "",
            f"Return, mean of the last tenth of the episodes: {self.mean_return:.4g}",
            f"What the logs had said was contradicted after {self.alarm:,} steps, and dropped"
            if self.alarm is not None
            else "",
            f"Cumulative {self._regret}" if self._regret else "Regret: not known, since the optimum is not",
            "" if self.trust is None else self.trust.summary(),
        ]
        return "\n".join(filter(None, lines))

    def to_pandas(self) -> DataFrame:
        """Return a row per episode: `episode`, `steps` and `regret` up to its end, and its `return`."""
        episodes = np.arange(len(self.returns))
        columns = {"episode": episodes, "steps": self.episode_end, "regret": self.regret, "return": self.returns}
        return data_frame(columns)

    @property
    def _metadata(self) -> dict[str, Any]:
        shapes = {name: getattr(self, name).shape for name in _ARRAYS}
        rule = None if self.rule is None else asdict(self.rule)
        more: dict[str, Any] = {} if self.trust is None else {"trust": self.trust.as_plain()}
        if self.alarm is not None:
            more["alarm"] = self.alarm
        return {**{name: getattr(self, name) for name in _PLAIN}, "rule": rule, "shapes": shapes, **more}

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of what was run and what came out."""
        text = json.dumps([self._metadata, self.space.to_json()], sort_keys=True)
        return checksum_of(text, [getattr(self, name) for name in _ARRAYS])

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return one row: a list for each array."""
        return {name: [getattr(self, name).ravel()] for name in _ARRAYS}

    @property
    def header(self) -> dict[str, Any]:
        """What a file holds beside the space and the arrays."""
        return self._metadata

    @classmethod
    def from_contents(cls, contents: Contents) -> Run:
        """Return the run that a file holds."""
        held = contents.metadata
        found = {name: contents.table[name][0].values.to_numpy() for name in _ARRAYS}
        arrays: dict[str, Any] = {name: values.reshape(held["shapes"][name]) for name, values in found.items()}
        plain = {name: held[name] for name in _PLAIN}
        rule = None if held["rule"] is None else Rule(**held["rule"])
        trust = Trust.restore(contents.space, held["trust"]) if "trust" in held else None
        plain["alarm"] = held.get("alarm")
        return cls(**plain, rule=rule, space=contents.space, trust=trust, **arrays)
