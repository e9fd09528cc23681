"""Ceilings of whole episodes, which hold although a hidden cause lasts over the episode.

- `episode_ceilings`: from logs; `EpisodeCeilings`: what it returns.
- `bound_episodes`: the same from rows in memory, which may have masses instead of being a sample.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from causal_shaping._checks import check_discount, check_finite, check_horizon, check_probability
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds._histories import (
    TERMINATED,
    TRUNCATED,
    UNKNOWN_END,
    Episodes,
    Tree,
    least_values,
    stops,
    vacuous_values,
)
from causal_shaping.bounds.explanation import other_actions
from causal_shaping.bounds.settings import refuse_reward
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray, checksum_of, frozen
from causal_shaping.data.logs import Logs
from causal_shaping.data.result import Result, frame_by_state, json_text, text_table
from causal_shaping.data.space import UNKNOWN, Admissible, Bins, Space
from causal_shaping.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from causal_shaping.io.container import Contents
    from causal_shaping.logs.counting import Item
    from causal_shaping.logs.table import LogTable

USEFUL = 0.1
"""A ceiling is called useful if it closes at least this share of the gap between the vacuous value and the logs."""

HELD_OUT = 10
"""One in so many episodes chooses the least reward and the bins, where the user gives none, and is not used again."""

ROUNDING = 1e-9
"""Differences below this, relative to what is compared, are rounding."""

SHOWN_HORIZONS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
"""The horizons that a summary shows, and that of the result."""

NO_POTENTIAL = (
    "later states are not covered. That a demonstrator came to a state tells what it knew of a hidden cause, so an "
    "agent would meet other episodes there."
)


class EpisodeSettings(NamedTuple):
    """What episode ceilings are computed with; see `episode_ceilings`."""

    horizon: int
    reward_max: float
    confidence: float | None = None
    discount: float = 1.0
    reward_min: float | None = None
    value_max: float | None = None
    reward_bins: Bins | None = None
    ignore_rewards: bool = False
    fixed_length: bool = False

    def vacuous_values(self) -> FloatArray:
        """Return the most that 0, 1, ..., horizon steps can pay."""
        return vacuous_values(self.reward_max, self.horizon, self.discount, self.fixed_length, self.value_max)

    def checked(self, population: bool) -> EpisodeSettings:
        """Return the settings in plain Python, or say what is wrong."""
        check_horizon(self.horizon)
        check_finite("reward_max", self.reward_max)
        check_discount(self.discount)
        if self.confidence is not None:
            check_probability("confidence", self.confidence)
            if population:
                raise ArgumentError("Masses are exact: there is no sampling error to be confident about.")
        if self.reward_min is not None:
            check_finite("reward_min", self.reward_min)
            if self.confidence is None:
                raise ArgumentError("reward_min is for confidence limits. Pass confidence=0.95, too, or leave it out.")
            if self.reward_min > self.reward_max:
                raise ArgumentError(f"reward_min is {self.reward_min}, which is more than reward_max.")
        if self.value_max is not None:
            check_finite("value_max", self.value_max)
        if self.reward_bins is not None and self.ignore_rewards:
            raise ArgumentError("reward_bins says how an agent reads rewards. Leave it out if it reads none.")
        plain: dict[str, Any] = {"horizon": int(self.horizon)}
        for name in ("reward_max", "confidence", "discount", "reward_min", "value_max"):
            value = getattr(self, name)
            plain[name] = None if value is None else float(value)
        return self._replace(**plain)


def episode_ceilings(
    logs: Item | Iterable[Item],
    horizon: int,
    reward_max: float,
    *,
    confidence: float | None = None,
    discount: float = 1.0,
    reward_min: float | None = None,
    value_max: float | None = None,
    reward_bins: Bins | None = None,
    ignore_rewards: bool = False,
    fixed_length: bool = False,
    states: Iterable[Any] | None = None,
    actions: Iterable[Any] | None = None,
    admissible: Admissible | None = None,
    missing: str | None = None,
    skip_bad_episodes: bool = False,
    memory_limit: str | None = None,
    progress: Progress = no_progress,
) -> EpisodeCeilings:
    """Return upper bounds of what any policy earns in an episode, by first state, whatever hidden causes last.

    `value_ceilings` needs hidden causes that are drawn afresh each step, and Markov states. These bounds need neither.
    Let W be the most that the steps left can pay, pi a policy that decides by the history (states, its own actions,
    rewards so far), and tau the first step at which the demonstrator departs from pi. Up to tau the logged episode is
    the one that pi itself would have met; after it, pi earns W at most. So pi is worth, from a first state, at most

        E[ rewards before tau + discount^tau W_tau ],      W of the steps left if the log stops first, 0 after an end,

    in the logs, and the largest over pi bounds the optimum. It is a recursion over histories:

        V(history) = max over x of  p(x | history) E[r + discount V(history') | history, x] + (1 - p(x | history)) W.

    An action that exists but was never tried after a history makes it W there; so **declare all actions**. Several
    sources: the smallest bound. The more decisions an episode has, the sooner a demonstrator departs: these bounds are
    for few of them, as in treatment regimes, and `EpisodeCeilings.verdict` says up to how many.

    They are no potential. Later states are not covered: that a demonstrator came to a state tells what it knew of the
    hidden cause, so that the episodes logged from there on are not those that an agent would meet there. So `values`
    of later steps are vacuous.

    **Which policies.** All that read no more of their episode than the logs hold: the states as they are in the logs,
    bins included, their own actions, and the rewards. Policies that read less, such as those of the state alone, are
    among them. Rewards of many values make hardly any two histories alike, and then the bound is vacuous from the
    second step on; `reward_bins` or `ignore_rewards` bound agents that read rewards in bins, or not at all. An
    agent that reads more than is stated can earn more than the bound.

    **Finite samples.** No second half of the episodes is needed. Let pi be the *optimal* policy: unknown, but fixed.
    Its Z = rewards before tau + discount^tau W_tau, cut where they exceed the W of a step, lies between known numbers,
    L and W_0. In each episode its mean, given all earlier episodes, is at least the optimum V*, whatever demonstrators
    do or learn meanwhile, and the recursion gives no less than the mean of the logged Z, whatever pi is. So with m the
    mean of Z over n episodes and kl the relative entropy of two coins, the bound of Chernoff and Hoeffding gives

        P( U(m) < V* ) <= alpha,     U(m) = the largest u in [L, W_0] with  n kl((m - L)/(W_0 - L), (u - L)/(W_0 - L))
                                            <= log(1 / alpha).

    U rises with m, and the recursion's maximum over all policies is at least m: so U of that maximum holds, too. A
    maximum over policies errs to the safe side, and no union over them is needed. Given the first states, this is so
    for the n episodes that begin in each, so half of 1 - confidence is split evenly over the pairs of a source and a
    first state, and half over the sources' bounds of the mean over first states; all hold at once. L is what the steps
    pay at least if rewards below `reward_min` count as `reward_min`: max(r, c) >= r, so any c makes a valid ceiling, if
    the logs had no part in choosing it. Without `reward_min`, c is the lowest reward in every tenth episode, and these
    are not used again.

    All rows are read into memory. The work is about that of sorting them.

    Args:
        logs: whatever `count` takes: files, data frames, `Logs`, what `open_logs` returned; or several.
        horizon: how many steps an episode has; later rows of longer episodes are not used.
        reward_max: the most that a step can pay; an error if a source saw more.
        confidence: the probability that all ceilings hold at once, such as 0.95; None gives a plug-in estimate.
        discount: the factor on future reward.
        reward_min: with confidence, the least that a reward counts as: best the least that a step can pay.
        value_max: the most that an episode can pay from any step on, such as 1 where survival pays 1 at the end. It
            bounds what is earned in every single episode, not on average: whether a demonstrator departs depends on
            hidden causes. It is a limit of W, and often makes the difference.
        reward_bins: the agent reads rewards no finer than in these bins. Quantiles are those of the logs (with
            confidence, those of every tenth episode).
        ignore_rewards: the agent decides without reading the rewards of its episode. (What it learns between episodes
            is not meant.)
        fixed_length: no episode ends before the horizon. It matters where `reward_max` is negative: otherwise the next
            step may be the last, and pays it once.
        states: see `count`.
        actions: all actions, tried or not; by default those that the logs declare or show.
        admissible: the actions that exist in each state, where not all do; see `count`.
        missing: see `count`.
        skip_bad_episodes: see `count`.
        memory_limit: see `count`.
        progress: called after each log and each horizon.

    Examples:
        >>> from causal_shaping import load_world
        >>> robot = load_world("walking-robot")
        >>> logs = [robot.collect(name, 10_000) for name in robot.demonstrators]
        >>> episode_ceilings(logs, horizon=3, reward_max=1.0, confidence=0.95)
        EpisodeCeilings(3 steps from competent, incompetent: 1 of 1 first states bounded, from ... to ...)
    """
    from causal_shaping.logs.counting import opened_logs  # late, as bounds of counts need no engine

    states, actions = (None if given is None else list(given) for given in (states, actions))
    settings = EpisodeSettings(
        horizon, reward_max, confidence, discount, reward_min, value_max, reward_bins, ignore_rewards, fixed_length
    ).checked(population=False)
    tables = opened_logs(logs, states=states, actions=actions, missing=missing, memory_limit=memory_limit)
    held = _read(tables, skip_bad_episodes, progress)
    space = reduce(Space.merge, [one.space for one in held]).declared(states, actions, admissible)
    return bound_episodes([_moved(one, space) for one in held], settings, progress=progress)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EpisodeCeilings(Result):
    """Upper bounds of what any policy earns in an episode; made by `episode_ceilings`.

    Attributes:
        space: the states and actions.
        sources: the sources' names.
        horizon: the number of steps.
        reward_max: the largest possible reward.
        confidence: the probability that all ceilings hold at once; None for a plug-in estimate, or a population.
        discount: the factor on future reward.
        reward_min: rewards below it counted as it; None if there is no confidence.
        value_max: the most that an episode can pay from any step on; None if only reward_max limits it.
        reward_edges: the edges of the bins in which the agent reads rewards; None if it reads them exactly, or not.
        ignore_rewards: the agent does not read the rewards of its episode.
        fixed_length: no episode ends before the horizon.
        population: the episodes had exact masses, not a sample.
        by_source: float64 [sources, states], the ceiling of each first state; NaN where no episode of a source began.
        episodes: int64 [sources, states], how many episodes were used.
        tried: bool [sources, states], whether the source tried every action as the first one.
        means: float64 [horizon, sources], for a horizon of 1, 2, ... steps, the ceiling of the mean over first states,
            as the source's episodes began; of each horizon by itself.
        logged: float64 [horizon, sources], what the episodes themselves earned on average, for the same horizons; steps
            of which nobody knows what they paid count as a mean reward.
        open_ends: int64 [sources], episodes that stop before the horizon without having ended.
        held_out: how many episodes chose `reward_min` and bins, and were not used again.
        distinct_rewards: how many different rewards, or bins, the agent can read.
    """

    space: Space
    sources: tuple[str, ...]
    horizon: int
    reward_max: float
    confidence: float | None
    discount: float
    reward_min: float | None
    value_max: float | None
    reward_edges: tuple[float, ...] | None
    ignore_rewards: bool
    fixed_length: bool
    population: bool
    by_source: FloatArray
    episodes: LongArray
    tried: BoolArray
    means: FloatArray
    logged: FloatArray
    open_ends: LongArray
    held_out: int
    distinct_rewards: int

    KIND: ClassVar[str] = "episode ceilings"
    BY_STATE: ClassVar[dict[str, Any]] = {"by_source": np.float64, "episodes": np.int64, "tried": np.bool_}
    ARRAYS: ClassVar[dict[str, Any]] = BY_STATE | {"means": np.float64, "logged": np.float64, "open_ends": np.int64}

    def __post_init__(self) -> None:
        for name, dtype in self.ARRAYS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), dtype, name))

    @cached_property
    def vacuous_values(self) -> FloatArray:
        """What can be said without any logs, with 1, 2, ... steps left: float64 [horizon]."""
        return vacuous_values(self.reward_max, self.horizon, self.discount, self.fixed_length, self.value_max)[1:]

    @cached_property
    def values(self) -> FloatArray:
        """The ceilings, float64 [horizon, states]: at the first step by first state, at later ones vacuous."""
        result = np.repeat(self.vacuous_values[::-1, None], len(self.space.states), axis=1)
        for ceiling in self.by_source:
            result[0] = np.fmin(result[0], ceiling)
        result[:, self.space.is_terminal] = 0.0
        result.flags.writeable = False
        return result

    @property
    def mean(self) -> float:
        """The ceiling of the mean over first states, as the logged episodes began."""
        return float(self.means[-1].min())

    @cached_property
    def began(self) -> BoolArray:
        """The states in which an episode began that was used: bool [states]."""
        return np.asarray(self.episodes.sum(axis=0) > 0)

    @cached_property
    def bounded(self) -> BoolArray:
        """The states whose ceiling as a first state is tighter than the vacuous value: bool [states]."""
        vacuous = self.vacuous_values[-1]
        return np.asarray(self.began & (vacuous - self.values[0] > ROUNDING * max(abs(vacuous), abs(self._lowest))))

    @property
    def _lowest(self) -> float:
        return float(np.nanmin(self.logged)) if np.isfinite(self.logged).any() else 0.0

    @cached_property
    def shares(self) -> FloatArray:
        """How much of the gap between the vacuous value and what was logged the ceiling closes, by horizon: [horizon].

        It lies between 0 and 1, and stays the same if rewards and their bounds are multiplied by a number, or, in
        episodes of fixed length, shifted. NaN where the logs earn the vacuous value.
        """
        best = self.means.argmin(axis=1)
        steps = np.arange(self.horizon)
        means, logged = self.means[steps, best], self.logged[steps, best]
        gap = self.vacuous_values - logged
        open_gap = gap > ROUNDING * np.maximum(np.abs(self.vacuous_values), np.abs(logged))
        return np.where(open_gap, np.clip((self.vacuous_values - means) / np.where(open_gap, gap, 1.0), 0, 1), np.nan)

    @cached_property
    def useful_horizon(self) -> int:
        """The horizon up to which the ceilings are useful: they close at least a tenth of the gap; 0 for none."""
        return int(np.argmin(np.append(self.shares >= USEFUL, False)))

    @property
    def guaranteed(self) -> bool:
        """Whether the ceilings hold wherever the assumptions do, up to the stated confidence."""
        return self.population or self.confidence is not None

    @property
    def verdict(self) -> str:
        """For how many steps these logs bound what an episode can earn, in words."""
        here, useful = self.shares[-1], self.useful_horizon
        if not self.episodes.any():
            return "No episode is left to bound anything with."
        if np.isnan(here):
            return "The logged episodes earn the most that is possible: no ceiling can be below that."
        words = f"At {_steps(self.horizon)} the ceiling closes {_percent(here)} of the gap between the vacuous value "
        words += "and what the logged episodes earned. "
        if useful >= self.horizon:
            words += "Useful at this horizon."
        elif useful:
            words += f"Useful for a horizon of up to {_steps(useful)} with these logs."
        else:
            words += "Not useful with these logs at any horizon."
        if not (self.tried & (self.episodes > 0)).any():
            words += " No source tried every action in a first state: what was never tried may earn anything."
        elif not self.ignore_rewards and self.reward_edges is None and self.distinct_rewards > self.episodes.sum() / 10:
            words += (
                f" The agent may read {self.distinct_rewards:,} different rewards, so that hardly two episodes have "
                "the same history. Say how coarsely it reads them (reward_bins), or that it does not (ignore_rewards)."
            )
        elif useful < self.horizon:
            words += " The longer the episode, the sooner a demonstrator departs from any policy."
        return words

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the ceilings rest on, in plain words."""
        watched = "All sources" if len(self.sources) > 1 else "The logs"
        rewards = "neither the rewards nor anything else"
        if not self.ignore_rewards:
            rewards = (
                "the rewards" if self.reward_edges is None else f"the rewards in {len(self.reward_edges) + 1} bins"
            )
            rewards += ", nothing else"
        result = [
            f"No step pays more than {self.reward_max:g}.",
            f"{watched} and the online world are the same world, and their episodes come from one population: first "
            "states and hidden causes are drawn alike.",
            "Nothing about hidden causes: they may last over the episode, and demonstrators may have seen them. Nor "
            "must states be Markov.",
            "Episodes were not selected by their outcome.",
            other_actions(self.space),
            "The agent decides by what the logs hold of its episode so far: the states as they stand in the logs, its "
            f"own actions, {rewards}. One that reads more can earn more.",
            f"Only the first {_steps(self.horizon)} of an episode count.",
        ]
        if self.value_max is not None:
            result.insert(1, f"No episode pays more than {self.value_max:g} from any step on.")
        if self.fixed_length:
            result.append("No episode ends before the horizon.")
        if self.confidence is not None:
            result.append(
                "Each episode is a fresh draw, whatever happened in earlier ones, and what happened in them did not "
                "decide how many were logged."
            )
            chosen = [] if self.held_out else ["reward_min", *(["the bins of rewards"] if self.reward_edges else [])]
            chosen += ["the bins of states"] if self.space.bins else []
            if chosen:
                result.append(f"Chosen without looking at these logs: {', '.join(chosen)}.")
        return tuple(result)

    def summary(self) -> str:
        """Return what the ceilings are, by horizon, what they are worth and what they assume, in words."""
        sure = "population" if self.population else f"confidence {self.confidence}" if self.confidence else "plug-in"
        began, tried = int(self.began.sum()), int((self.tried & (self.episodes > 0)).any(axis=0).sum())
        lines = [
            f"Episode ceilings of {_steps(self.horizon)} from {', '.join(self.sources)}: {self._range()}",
            f"{sure}, discount {self.discount:g}, vacuous value {self.vacuous_values[-1]:.4g}, mean over first states "
            f"at most {self.mean:.4g}",
            f"{began:,} first states, {self.bounded.sum():,} bounded below the vacuous value; in {began - tried:,} "
            "some action was never the first one",
        ]
        if self.open_ends.any() and not self.population:
            lines.append(
                f"{self.open_ends.sum():,} of {self.episodes.sum():,} episodes stop before the horizon without having "
                "ended: the rest counts as vacuous."
            )
        if self.held_out:
            lines.append(
                f"{self.held_out:,} more episodes only chose the range of rewards. Pass reward_min, the least that a "
                "step can pay, to use them all."
            )
        if not self.guaranteed:
            lines.append("Not guaranteed: a plug-in estimate, sampling error is not allowed for.")
        shown = sorted({k for k in SHOWN_HORIZONS if k < self.horizon} | {self.horizon})
        heads = ("horizon", "vacuous", "ceiling", "logged", "gap closed")
        lines += ["", text_table(heads, [self._row(k) for k in shown]), "", self.verdict, ""]
        lines += [f"No potential: {NO_POTENTIAL}", "", "This assumes:"]
        return "\n".join([*lines, *(f"- {sentence}" for sentence in self.assumptions)])

    def _row(self, horizon: int) -> list[str]:
        k = horizon - 1
        best = self.means[k].argmin()
        numbers = (self.vacuous_values[k], self.means[k, best], self.logged[k, best])
        return [str(horizon), *(f"{number:.4g}" for number in numbers), _percent(self.shares[k])]

    def _range(self) -> str:
        values = self.values[0][self.bounded]
        return f"from {values.min():.4g} to {values.max():.4g}" if len(values) else "nowhere below the vacuous value"

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return what is known of each first state, by name: arrays [states]."""
        columns = {"value": self.values[0], "bounded": self.bounded}
        for name, *held in zip(self.sources, *(getattr(self, name) for name in self.BY_STATE), strict=True):
            heads = (f"ceiling of {name}", f"episodes of {name}", f"every action tried by {name}")
            columns |= dict(zip(heads, held, strict=True))
        return columns

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per state in which an episode began: its ceiling, and what each source says of it."""
        return frame_by_state(self.space, self.columns())[self.began].reset_index(drop=True)

    def by_horizon(self) -> pd.DataFrame:
        """Return a row per horizon from 1 on: vacuous value, ceiling of the mean, what was logged, share closed."""
        import pandas as pd

        columns = {"horizon": np.arange(1, self.horizon + 1), "vacuous": self.vacuous_values, "share": self.shares}
        for i, name in enumerate(self.sources):
            columns |= {f"ceiling of {name}": self.means[:, i], f"logged by {name}": self.logged[:, i]}
        return pd.DataFrame(columns)

    @property
    def metadata(self) -> dict[str, Any]:
        """Everything but the arrays and the space, as plain values for JSON."""
        fields = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in fields if name not in (*self.ARRAYS, "space")}

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of everything that it holds."""
        about = json.dumps([json.loads(self.space.to_json()), self.metadata], sort_keys=True)
        return checksum_of(about, [getattr(self, name) for name in self.ARRAYS])

    def to_json(self) -> str:
        """Return the settings, what they mean in words, the ceilings by first state and those by horizon as JSON."""
        states = [
            {"state": self.space.states[s], "value": self.values[0, s], "bounded": self.bounded[s]}
            for s in np.flatnonzero(self.began)
        ]
        names = ("vacuous", "means", "logged", "share")
        rows = zip(self.vacuous_values, self.means, self.logged, self.shares, strict=True)
        horizons = [{"horizon": k, **dict(zip(names, row, strict=True))} for k, row in enumerate(rows, 1)]
        words = {"guaranteed": self.guaranteed, "verdict": self.verdict, "assumptions": self.assumptions}
        words |= {"mean": self.mean, "useful_horizon": self.useful_horizon}
        return json_text(self.metadata | words | {"states": states, "horizons": horizons})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a row per state to a Parquet file, which `load` reads; or a CSV table of the first states."""
        from causal_shaping.io import by_state, files  # late, as bounds need no pyarrow

        if files.check_target(path, files.TABLES).name.lower().endswith(files.CSV):
            files.write_table(path, self.to_pandas())
            return
        about = {name: getattr(self, name).tolist() for name in self.ARRAYS if name not in self.BY_STATE}
        by_state.save_by_state(path, self.KIND, self.space, self.columns(), self.metadata | about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote to a Parquet file."""
        from causal_shaping.io.container import load

        return load(path, cls.KIND, cls._from_contents)

    @classmethod
    def _from_contents(cls, contents: Contents) -> Self:
        from causal_shaping.io.by_state import columns_by_state

        columns, held = columns_by_state(contents), contents.metadata
        names = [field.name for field in dataclasses.fields(cls) if field.name not in (*cls.BY_STATE, "space")]
        made = {name: held[name] for name in names}
        made["sources"] = tuple(made["sources"])
        edges = made["reward_edges"]
        made["reward_edges"] = None if edges is None else tuple(edges)
        heads = ("ceiling of", "episodes of", "every action tried by")
        for name, head in zip(cls.BY_STATE, heads, strict=True):
            made[name] = np.array([columns[f"{head} {source}"] for source in made["sources"]])
        return cls(space=contents.space, **made)

    def __repr__(self) -> str:
        bounded = f"{self.bounded.sum():,} of {self.began.sum():,} first states bounded"
        names = ", ".join(self.sources)
        return f"EpisodeCeilings({_steps(self.horizon)} from {names}: {bounded}, {self._range()})"


def _steps(n: int) -> str:
    return f"{n} step{'' if n == 1 else 's'}"


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.0%}" if share >= USEFUL or share == 0 else f"{share:.1%}"


def _read(tables: Sequence[LogTable], skip_bad_episodes: bool, progress: Progress) -> list[Logs]:
    """Return the logs of each source, checked, in memory."""
    from causal_shaping.logs.check import check_logs
    from causal_shaping.logs.counting import keep_origin
    from causal_shaping.logs.table import fetch

    result: list[Logs] = []
    origins: dict[str, str] = {}
    for i, table in enumerate(tables):
        progress(i, len(tables), f"Reading {table.origin}")
        table = check_logs(table, skip_bad_episodes=skip_bad_episodes)
        parts = [table]
        if table.source is None:
            names = sorted(fetch(table.rows.select("source").distinct(), table.origin)["source"].to_pylist())
            parts = [replace(table, rows=table.rows.filter(table.rows.source == name), source=name) for name in names]
        for part in parts:
            result.append(part.read())
            keep_origin(origins, result[-1].source, table)
    return result


def _moved(logs: Logs, space: Space) -> Logs:
    """Return logs with their labels in another space."""
    if logs.space == space:
        return logs
    states, actions = space.positions(logs.space)
    after = np.where(logs.next_state == UNKNOWN, UNKNOWN, states[logs.next_state])
    return replace(logs, space=space, state=states[logs.state], action=actions[logs.action], next_state=after)


def bound_episodes(
    logs: Sequence[Logs],
    settings: EpisodeSettings,
    masses: Sequence[npt.ArrayLike] | None = None,
    progress: Progress = no_progress,
) -> EpisodeCeilings:
    """Return the ceilings of logs that share a space.

    Args:
        logs: one for each source.
        settings: what to compute them with.
        masses: for each of the logs, the mass of each episode, if they are the whole population and not a sample.
        progress: called after each horizon.
    """
    settings = settings.checked(population=masses is not None)
    space = logs[0].space
    for one in logs:
        refuse_reward("reward_max", settings.reward_max, one.source, float(one.reward.max()))
    held_out = [np.zeros(one.episodes, dtype=bool) for one in logs]
    if settings.confidence is not None and _must_choose(settings):
        for chosen in held_out:
            chosen[::HELD_OUT] = True
    settings = _chosen(settings, logs, held_out)
    codes = _read_rewards(logs, settings)
    distinct = max(int(code.max()) for code in codes) + 1
    trees = []
    for i, (one, code) in enumerate(zip(logs, codes, strict=True)):
        weight = np.ones(one.episodes) if masses is None else np.asarray(masses[i], dtype=np.float64)
        episodes = _episodes(one, code, weight, settings)
        trees.append(Tree.grown(episodes.chosen(~held_out[i]), space.is_admissible, settings.horizon))
        _refuse_returns(one, trees[-1], settings)
    by_state, means = _bounds(trees, len(space.states), settings, progress)
    counts, tried = np.zeros(by_state.shape, dtype=np.int64), np.zeros(by_state.shape, dtype=bool)
    for i, tree in enumerate(trees):
        counts[i, tree.first_states], tried[i, tree.first_states] = tree.sizes, tree.tried
    about = settings._asdict()
    bins = about.pop("reward_bins")
    return EpisodeCeilings(
        **about,
        reward_edges=None if bins is None else bins.edges,
        space=space,
        sources=tuple(one.source for one in logs),
        population=masses is not None,
        by_source=by_state,
        episodes=counts,
        tried=tried,
        means=means,
        logged=np.stack([tree.logged(settings.discount, settings.horizon) for tree in trees], axis=1),
        open_ends=np.array([_open_ends(tree.episodes, settings.horizon) for tree in trees]),
        held_out=int(sum(chosen.sum() for chosen in held_out)),
        distinct_rewards=distinct,
    )


def _bounds(
    trees: Sequence[Tree], n_states: int, settings: EpisodeSettings, progress: Progress
) -> tuple[FloatArray, FloatArray]:
    """Return the ceilings by first state [sources, states] and of the mean, by horizon [horizon, sources]."""
    horizon, discount, confidence = settings.horizon, settings.discount, settings.confidence
    vacuous = settings.vacuous_values()
    by_state, means = np.full((len(trees), n_states), np.nan), np.empty((horizon, len(trees)))
    alpha = least = None
    if confidence is not None:
        assert settings.reward_min is not None
        least = least_values(settings.reward_min, horizon, discount, settings.fixed_length)
        alpha = (1 - confidence) / 2
    pairs = sum(len(tree.first_states) for tree in trees)
    for i, tree in enumerate(trees):
        reward = tree.episodes.reward
        if settings.reward_min is not None:
            reward = np.maximum(reward, settings.reward_min)
        total = tree.weight.sum()
        for k in range(1, horizon + 1):
            progress(i * horizon + k, len(trees) * horizon, "Bounding episodes")
            means[k - 1, i] = vacuous[k]
            if not total:
                continue
            found = tree.values(reward, vacuous, discount, k)
            mean = (tree.weight * found).sum() / total
            if alpha is not None and least is not None:
                ends = least[k], vacuous[k]
                mean = _upper_limit(mean, tree.sizes.sum(), alpha / len(trees), *ends)
                if k == horizon:
                    found = _upper_limit(found, tree.sizes, alpha / pairs, *ends)
            means[k - 1, i] = min(mean, vacuous[k])
            if k == horizon:
                by_state[i, tree.first_states] = found
    return by_state, means


def _upper_limit(mean: Any, n: Any, alpha: float, low: float, high: float) -> FloatArray:
    """Return upper limits of means of n trials between `low` and `high`."""
    if high <= low:
        return np.full(np.shape(mean), high)[()]
    share = np.clip((np.asarray(mean) - low) / (high - low), 0.0, 1.0)
    return np.asarray(low + (high - low) * mean_limit(share, n, alpha))[()]


def mean_limit(mean: npt.ArrayLike, n: npt.ArrayLike, alpha: float) -> FloatArray:
    """Return upper limits of the mean of n trials in [0, 1]: wrong with probability at most alpha.

    The bound of Chernoff and Hoeffding: the largest p with n kl(mean, p) <= log(1 / alpha). Given all earlier trials,
    each must have that mean or a larger one.

    Examples:
        >>> mean_limit([0.0, 0.5, 1.0], 100, 0.05).round(4)
        array([0.0295, 0.6206, 1.    ])
    """
    mean = np.asarray(mean, dtype=np.float64)
    allowed = -math.log(alpha) / np.asarray(n, dtype=np.float64)
    low, high = np.broadcast_arrays(mean, allowed)[0].copy(), np.ones(np.broadcast(mean, allowed).shape)
    for _ in range(60):
        middle = (low + high) / 2
        inside = rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) <= allowed
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def _refuse_returns(logs: Logs, tree: Tree, settings: EpisodeSettings) -> None:
    """Refuse a bound of what episodes pay that the logs break."""
    if settings.value_max is None:
        return
    highest = tree.highest_return(settings.discount, settings.horizon)
    if highest > settings.value_max + ROUNDING * max(abs(highest), abs(settings.value_max)):
        raise ArgumentError(
            f"value_max is {settings.value_max}, but an episode of source {logs.source!r} pays {highest} from some "
            f"step on. Pass value_max={highest} or more, or leave it out."
        )


def _must_choose(settings: EpisodeSettings) -> bool:
    """Whether the logs have to choose something that confidence needs to be fixed."""
    bins = settings.reward_bins
    return settings.reward_min is None or (bins is not None and bins.quantiles is not None)


def _chosen(settings: EpisodeSettings, logs: Sequence[Logs], held_out: Sequence[BoolArray]) -> EpisodeSettings:
    """Return the settings with what is left to the logs: the least reward, the edges of bins.

    Without confidence all rows choose, otherwise those of the episodes that are held out.
    """
    if settings.confidence is None:
        rows = [one.reward for one in logs]
    else:
        rows = [one.reward[chosen[np.cumsum(one.step == 0) - 1]] for one, chosen in zip(logs, held_out, strict=True)]
    rewards = np.concatenate(rows)
    if settings.confidence is not None and settings.reward_min is None:
        settings = settings._replace(reward_min=float(rewards.min()))
    if settings.reward_min is not None and settings.value_max is not None:
        # A step that pays more than an episode can is cut anyway; so the range of what is cut stays known.
        settings = settings._replace(reward_min=min(settings.reward_min, settings.value_max))
    if settings.reward_bins is not None:
        settings = settings._replace(reward_bins=settings.reward_bins.fit(rewards))
    return settings


def _read_rewards(logs: Sequence[Logs], settings: EpisodeSettings) -> list[LongArray]:
    """Return what the agent reads of each row's reward, as numbers from 0 that mean the same in all logs."""
    if settings.ignore_rewards:
        return [np.zeros(len(one), dtype=np.int64) for one in logs]
    if settings.reward_bins is not None:
        return [settings.reward_bins(one.reward) for one in logs]
    _, codes = np.unique(np.concatenate([one.reward for one in logs]), return_inverse=True)
    return np.split(codes, np.cumsum([len(one) for one in logs])[:-1])


def _episodes(logs: Logs, code: LongArray, weight: FloatArray, settings: EpisodeSettings) -> Episodes:
    """Return the episodes of logs; rows that break what was declared are refused."""
    excluded = np.flatnonzero(~logs.space.is_admissible[logs.state, logs.action])
    if len(excluded):
        row = excluded[0]
        raise DataError(
            f"Source {logs.source!r}, episode {logs.episode[row]}, step {logs.step[row]}: action "
            f"{logs.space.actions[logs.action[row]]!r} is not admissible in {logs.space.states[logs.state[row]]!r}."
        )
    begin = np.flatnonzero(logs.step == 0)
    length = np.diff(np.append(begin, len(logs)))
    last = begin + length - 1
    # A next state that is known says that the episode was cut: it would have gone on from there.
    stop = stops(logs.terminated[last], logs.truncated[last] | (logs.next_state[last] != UNKNOWN))
    if settings.fixed_length:
        early = np.flatnonzero((stop == TERMINATED) & (length < settings.horizon))
        if len(early):
            raise DataError(
                f"Source {logs.source!r}, episode {logs.episode[begin[early[0]]]} ended after {length[early[0]]} "
                f"step(s), but fixed_length says that none ends before {settings.horizon}. Leave it out."
            )
        stop = np.where(stop == UNKNOWN_END, TRUNCATED, stop)
    return Episodes(begin, length, stop.astype(np.int8), weight, logs.state, logs.action, logs.reward, code)


def _open_ends(episodes: Episodes, horizon: int) -> int:
    return int(((episodes.stop != TERMINATED) & (episodes.length < horizon)).sum())
