"""What logs are worth: how much regret, and how many episodes, they are expected to save an agent that uses them.

Worlds are drawn that agree with what the logs prove, from a wider prior than the learner's own: in some of them what
the logs suggest is right, in others it is wrong here and there, by a share or everywhere, and in some it is set against
the truth (`causal_shaping.beliefs.wide`). In each of them the learner "posterior" runs with the logs and without, with
the same randomness of the world, and its regret is known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from causal_shaping._checks import MOST_SEEDS, check_integer, check_memory, check_seeds
from causal_shaping._progress import Progress, in_threads, no_progress
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.beliefs.model import Model
from causal_shaping.beliefs.wide import GRAINS, Outcomes, WidePrior, solve, start_of
from causal_shaping.bounds.settings import Settings
from causal_shaping.data.arrays import FloatArray, LongArray, checksum_of
from causal_shaping.data.result import Contents, DataFrame, PlainResult, Saved, data_frame, text_table
from causal_shaping.data.space import MakeColumn, plain_column
from causal_shaping.data.words import state_text
from causal_shaping.errors import ArgumentError, FileError
from causal_shaping.learners._drawn import add_trial, run_in
from causal_shaping.learners._posterior import enough_steps, sampler_of
from causal_shaping.learners.seeds import curve_points
from causal_shaping.learners.training import BYTES_A_STEP
from causal_shaping.storage import claim_run_folder, read_json, write_json
from causal_shaping.worlds.simulate import cumulative

WORLDS = 40
"""How many worlds are drawn by default."""

COVERED = 0.9
"""The share of the worlds that an interval holds."""

ROUNDING = 1e-9
"""Regrets that differ by a smaller share are equal."""

SHOWN_STATES = 6
"""States that a summary names."""

KINDS = ("right", "partly right", "wrong", "set against the truth")


@dataclass(frozen=True)
class WorthWorld:
    """What logs were worth in one drawn world.

    Attributes:
        seed: the seed of the world and of the learner.
        doubt: how far the logs mislead in it: 0 nowhere, 1 everywhere.
        grain: where they do: the same share everywhere, by state, or by action.
        against: whether they are set against the truth there; otherwise they say nothing about it.
        regret_without: the regret of the learner without logs.
        regret_with: the same with logs.
        regret_trial: the same with logs and a randomised source; None if none was asked for.
        episodes: the episodes of the learner without logs.
        saved: the episodes that logs save, see `Worth`.
        saved_trial: the episodes that logs and a randomised source save; None if none was asked for.
        curve_without: the regret without logs at even steps of the budget, see `curve_points`.
        curve_with: the same with logs.
    """

    seed: int
    doubt: float
    grain: str
    against: bool
    regret_without: float
    regret_with: float
    regret_trial: float | None
    episodes: int
    saved: int
    saved_trial: int | None
    curve_without: tuple[float, ...]
    curve_with: tuple[float, ...]

    @property
    def share(self) -> float:
        """The share of the regret that logs save; see `saved_share`."""
        return saved_share(self.regret_without, self.regret_with)

    @property
    def kind(self) -> str:
        """What the logs are in this world, in words."""
        if self.doubt < 0.1:
            return KINDS[0]
        if self.against:
            return KINDS[3]
        return KINDS[1] if self.doubt < 0.9 else KINDS[2]


def saved_share(without: float, with_logs: float) -> float:
    """Return the share of the regret that logs save, from -1 to 1.

    Where they cost regret it is negative: minus the share of the regret with logs that is due to them.
    """
    most = max(without, with_logs)
    return (without - with_logs) / most if most > 0 else 0.0


def head_start(without: FloatArray, with_logs: FloatArray) -> int:
    """Return how many steps ahead of the one learner the other is: both are cumulative regrets by step.

    After so many steps of practice, the learner without logs pays no more for the rest of the budget than the one with
    logs pays for all of it. Negative if the learner without logs pays less.
    """
    if with_logs[-1] > without[-1]:
        return -head_start(with_logs, without)
    ahead = without[-1] - with_logs[-1] - ROUNDING * without[-1]
    return int(np.searchsorted(without, ahead, side="left") + 1) if ahead > 0 else 0


@dataclass(frozen=True, eq=False, repr=False)
class Worth(Saved, PlainResult):
    """What logs are expected to save, by simulation in worlds that agree with them.

    Episodes saved are a head start: after so many episodes of practice, a learner without logs pays no more regret for
    the rest of the budget than one with logs pays for all of it.

    Attributes:
        settings: what was simulated: the sources, budget, horizon, the rows per (state, action) of a trial, and where
            episodes start, in words.
        worlds: one for each drawn world.
        refuted: by source, the states in which others prove the opposite of what it suggests, in words.
    """

    KIND = "worth"

    settings: Mapping[str, Any]
    worlds: tuple[WorthWorld, ...]
    refuted: Mapping[str, tuple[str, ...]]

    def _column(self, name: str) -> FloatArray:
        return np.array([getattr(world, name) for world in self.worlds], dtype=np.float64)

    @property
    def share(self) -> float:
        """The share of all regret that logs save, from -1 to 1: negative if they cost more than they save."""
        return saved_share(float(self._column("regret_without").sum()), float(self._column("regret_with").sum()))

    @property
    def share_interval(self) -> tuple[float, float]:
        """The share of the regret that is saved in 90% of the worlds: from, to."""
        return _interval(self._column("share"))

    @property
    def episodes(self) -> float:
        """The episodes of the budget, without logs: the mean over worlds."""
        return float(self._column("episodes").mean())

    @property
    def episodes_saved(self) -> float:
        """The episodes that logs save: the mean over worlds."""
        return float(self._column("saved").mean())

    @property
    def episodes_interval(self) -> tuple[float, float]:
        """The episodes that are saved in 90% of the worlds: from, to."""
        return _interval(self._column("saved"))

    @property
    def chance_of_help(self) -> float:
        """The share of the worlds in which logs save regret."""
        return float((self._column("regret_with") < self._column("regret_without")).mean())

    @property
    def trial_adds(self) -> tuple[float, float] | None:
        """The further episodes, and the further share of the regret, that a randomised source saves; None: no trial."""
        if self.settings["trial"] == 0:
            return None
        without = float(self._column("regret_without").sum())
        share = saved_share(without, float(self._column("regret_trial").sum())) - self.share
        return float((self._column("saved_trial") - self._column("saved")).mean()), share

    def __repr__(self) -> str:
        return (
            f"Worth(about {_round(self.episodes_saved):,} of {_round(self.episodes):,} episodes, {self.share:.0%} of "
            f"the regret, over {len(self.worlds)} worlds)"
        )

    def summary(self) -> str:
        """Return what the logs are expected to save, in words."""
        held, (low, high), (least, most) = self.settings, self.episodes_interval, self.share_interval
        saved, whole = self.episodes_saved, _round(self.episodes)
        verb = "save" if saved >= 0 else "cost"
        lines = [
            f"The logs of {', '.join(held['sources'])} are expected to {verb} about {_round(abs(saved)):,} of "
            f"{whole:,} episodes ({COVERED:.0%} of worlds: {_round(low):,} to {_round(high):,}),",
            f"and {abs(self.share):.0%} of the regret ({COVERED:.0%} of worlds: {least:.0%} to {most:.0%}). "
            f"They help in {self.chance_of_help:.0%} of the worlds.",
        ]
        added = self.trial_adds
        if added is not None:
            more = "save a further" if added[0] >= 0 else "cost"
            lines.append(
                f"A randomised source of {held['trial']:,} rows of each action in each state ({held['trial_rows']:,} "
                f"rows) would {more} {_round(abs(added[0])):,} episodes, and {added[1]:.0%} of the regret."
            )
        lines += ["", text_table(["If the logs are", "worlds", "episodes saved", "regret saved"], self._by_kind()), ""]
        if self.refuted:
            for source, states in self.refuted.items():
                more = f" and {len(states) - SHOWN_STATES} more" if len(states) > SHOWN_STATES else ""
                shown = ", ".join(states[:SHOWN_STATES])
                lines.append(f"{source} misleads: what it suggests is refuted by other sources in {shown}{more}.")
        else:
            lines.append("No source's suggestion is refuted by another: who misleads, only acting can tell.")
        lines += [
            f"Simulated: {len(self.worlds)} worlds that agree with what the logs prove, {held['steps']:,} steps each "
            f"in episodes of at most {held['horizon']}, with and without the logs.",
            f"Episodes start {held['start']}.",
            "An episode saved is one of practice: after so many, a learner without logs pays no more for the rest of "
            "the budget than one with logs pays for all of it.",
        ]
        return "\n".join(lines)

    def _by_kind(self) -> list[list[str]]:
        rows = []
        for kind in KINDS:
            some = [world for world in self.worlds if world.kind == kind]
            if some:
                sums = (sum(world.regret_without for world in some), sum(world.regret_with for world in some))
                mean = float(np.mean([world.saved for world in some]))
                rows.append([kind, str(len(some)), f"{_round(mean):,}", f"{saved_share(*sums):.0%}"])
        return rows

    def to_pandas(self) -> DataFrame:
        """Return a row per drawn world: the fields of `WorthWorld` but the curves, with `kind` and `share`."""
        rows = [asdict(world) | {"kind": world.kind, "share": world.share} for world in self.worlds]
        return data_frame(rows).drop(columns=["curve_without", "curve_with"])

    def as_plain(self) -> dict[str, Any]:
        """Return everything but the curves as plain values, for JSON."""
        curves = ("curve_without", "curve_with")
        added = self.trial_adds
        return {
            "share": self.share,
            "share_interval": self.share_interval,
            "episodes": self.episodes,
            "episodes_saved": self.episodes_saved,
            "episodes_interval": self.episodes_interval,
            "chance_of_help": self.chance_of_help,
            "trial_adds": None if added is None else {"episodes": added[0], "share": added[1]},
            "refuted": {source: list(states) for source, states in self.refuted.items()},
            "settings": dict(self.settings),
            "worlds": [{k: v for k, v in asdict(world).items() if k not in curves} for world in self.worlds],
        }

    def curves(self) -> tuple[LongArray, FloatArray, FloatArray]:
        """Return steps, and the regret in each world there: int64 [points], float64 [worlds, points], without, with."""
        points = curve_points(self.settings["steps"])
        return points, self._column("curve_without"), self._column("curve_with")

    @property
    def checksum(self) -> str:
        """A SHA-256 of what was simulated and what came out."""
        return checksum_of(json.dumps([dict(self.settings), [asdict(world) for world in self.worlds]]), [])

    def labelled(self, make: MakeColumn = plain_column) -> dict[str, Any]:
        """Return a row per drawn world, curves among them."""
        rows = [asdict(world) for world in self.worlds]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @property
    def header(self) -> dict[str, Any]:
        """What a file holds beside the worlds."""
        return {"settings": dict(self.settings), "refuted": self.refuted}

    @classmethod
    def from_contents(cls, contents: Contents) -> Worth:
        """Return what a file holds."""
        held = contents.metadata
        refuted = {source: tuple(states) for source, states in held["refuted"].items()}
        return cls(held["settings"], tuple(map(_world, contents.table.to_pylist())), refuted)


def _world(row: Mapping[str, Any]) -> WorthWorld:
    curves = {name: tuple(row[name]) for name in ("curve_without", "curve_with")}
    return WorthWorld(**{**row, **curves})


def _interval(values: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - COVERED) / 2, (1 + COVERED) / 2])
    return float(low), float(high)


def _round(number: float) -> int:
    """Return a number with two digits that count, a third if the first is a 1."""
    whole = round(number)
    digits = len(str(abs(whole)))
    return round(whole, min(0, (3 if str(abs(whole))[0] == "1" else 2) - digits))


class _Simulation:
    """One posterior, ready to be simulated from."""

    def __init__(self, belief: Posterior, steps: int, start: FloatArray, trial: int) -> None:
        settings = belief.settings
        self.prior, self.model, self.steps, self.trial = WidePrior(belief.model), belief.model, steps, trial
        plain = Settings(horizon=settings.horizon, reward_bound=settings.reward_bound, discount=settings.discount)
        self.without = Model(belief.space, None, plain)
        self.without.edges = self.model.edges  # rewards are cut alike
        self.start, self.admissible = cumulative(start), belief.space.is_admissible.copy()

    def run(self, seed: int) -> WorthWorld:
        """Draw a world and run the learners in it."""
        world, lean = self.prior.draw(np.random.default_rng([seed, 3]))
        best = solve(self.model, world, self.admissible)
        costs = best.max(axis=-1, keepdims=True) - best
        costs[:, self.model.terminal] = 0.0
        without, ends = self._regret(world, self.without, costs, seed)
        with_logs, ends_with = self._regret(world, self.model, costs, seed)
        trial = ends_trial = None
        if self.trial:
            trial, ends_trial = self._regret(world, self.model, costs, seed, self.trial)
        points = curve_points(self.steps) - 1
        return WorthWorld(
            seed=seed,
            doubt=lean.doubt,
            grain=GRAINS[lean.grain],
            against=lean.against,
            regret_without=float(without[-1]),
            regret_with=float(with_logs[-1]),
            regret_trial=None if trial is None else float(trial[-1]),
            episodes=len(ends),
            saved=_episodes(head_start(without, with_logs), ends, ends_with),
            saved_trial=None if trial is None else _episodes(head_start(without, trial), ends, ends_trial),
            curve_without=tuple(without[points].tolist()),
            curve_with=tuple(with_logs[points].tolist()),
        )

    def _regret(self, world: Outcomes, model: Model, costs: FloatArray, seed: int, trial: int = 0) -> Any:
        room = self.steps + (len(world.after) if trial else 0)
        samples = enough_steps(room, self.admissible, model.terminal)  # the same way of planning, with logs and without
        sampler = sampler_of(model, room, seed, self.admissible, step_indexed=True, samples=samples)
        if trial:
            add_trial(np.random.default_rng([seed, 4]), sampler, world, trial)
        return run_in(world, sampler, self.start, costs, self.steps, seed)


def _episodes(steps: int, ends: LongArray, ends_with: Any) -> int:
    """Return a head start in episodes: of the learner without logs, or with logs if it is the one behind."""
    of = ends if steps >= 0 else ends_with
    return int(np.sign(steps)) * int(np.searchsorted(of, abs(steps), side="right"))


def simulate_worth(
    belief: Posterior,
    *,
    steps: int = 20_000,
    seeds: int | Iterable[int] = WORLDS,
    start: Any = None,
    trial: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Worth:
    """Return what logs are expected to save: what `Posterior.worth` calls; see there."""
    steps, trial = check_integer("steps", steps, least=1), check_integer("trial", trial)
    given = check_integer("seeds", seeds, least=1, most=MOST_SEEDS) if isinstance(seeds, (int, np.integer)) else seeds
    chosen = check_seeds(range(given) if isinstance(given, int) else given)
    check_memory(f"A run of {steps:,} steps", BYTES_A_STEP * steps * numba.get_num_threads())
    model, space = belief.model, belief.space
    where, words = start_of(model, belief.counts) if start is None else _start(belief, start)
    acting = int((space.is_admissible & ~model.terminal[:, None]).sum()) * model.shape.steps
    settings = {
        "sources": list(belief.counts.sources),
        "steps": steps,
        "horizon": belief.settings.horizon,
        "trial": trial,
        "trial_rows": trial * acting,
        "start": words,
        "posterior": checksum_of(belief.checksum, [where]),
    }
    path = None if folder is None else Path(folder)
    with nullcontext() if path is None else claim_run_folder(path, settings, "world-*.json"):
        done = {seed: found for seed in chosen if path is not None and (found := _read(_file(path, seed))) is not None}
        missing, what = [seed for seed in chosen if seed not in done], "Simulating worlds"
        progress(len(done), len(chosen), what)
        simulation = _Simulation(belief, steps, where, trial) if missing else None

        def one(seed: int) -> WorthWorld:
            assert simulation is not None
            found = simulation.run(seed)
            if path is not None:
                write_json(_file(path, seed), asdict(found))
            return found

        for found in in_threads(one, missing, numba.get_num_threads()):
            done[found.seed] = found
            progress(len(done), len(chosen), what)
        return Worth(settings, tuple(done[seed] for seed in chosen), _refuted(model))


def _file(folder: Path, seed: int) -> Path:
    return folder / f"world-{seed}.json"


def _read(path: Path) -> WorthWorld | None:
    if not path.exists():
        return None
    hint = "Remove it to run that world again."
    try:
        return _world(read_json(path, hint))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError(f"{path} cannot be read ({error}). {hint}") from error


def _start(belief: Posterior, start: Any) -> tuple[FloatArray, str]:
    """Return where episodes start, of a state or of states with weights, and the same in words: float64 [states]."""
    space, known = belief.space, np.zeros(len(belief.space.states))
    for state, weight in (start if isinstance(start, Mapping) else {start: 1.0}).items():
        at = space.find(state)
        if at < 0:
            raise ArgumentError(f"start names {state!r}, which is not one of the states.")
        if belief.model.terminal[at]:
            raise ArgumentError(f"start names {state!r}, in which episodes end.")
        if not 0 <= weight < np.inf:
            raise ArgumentError(f"start gives {state!r} a weight of {weight}; it must be 0 or more.")
        known[at] += weight
    if not known.sum() > 0:
        raise ArgumentError("start gives no state any weight. Pass a state, or states with weights.")
    known /= known.sum()
    most = int(known.argmax())
    states, often = int((known > 0).sum()), "" if known[most] == 1 else f" ({known[most]:.0%})"
    return known, f"in {f'one of {states} states, most often ' if states > 1 else ''}{state_text(space, most)}{often}"


def _refuted(model: Model) -> dict[str, tuple[str, ...]]:
    """Return by source the states in which what it suggests is refuted by what others prove."""
    found = {}
    for c, source in enumerate(model.sources):
        cells = np.flatnonzero(model.refuted[:, c])
        states = np.unique(cells // model.shape.actions % model.shape.states)
        if len(states):
            found[source] = tuple(state_text(model.space, int(s)) for s in states)
    return found
