"""Many seeds of one learner: run in parallel and kept in a folder; interrupted runs resume.

A folder holds `settings.json`, what is run; for each finished seed `seed-N.parquet`, a row per episode, and
`seed-N-table.parquet`, what was learned. Both are written under another name first, so that a seed is there completely
or not at all. A folder with other settings is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np

from causal_shaping._checks import check_integer, check_seeds
from causal_shaping._progress import Progress, in_threads, no_progress
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray, checksum_of
from causal_shaping.data.columns import label_column
from causal_shaping.data.potential import Potential
from causal_shaping.data.result import Contents, DataFrame, Result, data_frame
from causal_shaping.errors import FileError
from causal_shaping.learners._problem import name_of, world_of
from causal_shaping.learners.intervals import Interval, mean_interval
from causal_shaping.learners.rules import Rule, choose, warn_of_default_learner
from causal_shaping.learners.run import Run
from causal_shaping.learners.training import train
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.storage import claim_run_folder, load, save
from causal_shaping.worlds import World

VERSION = 3
"""Of what is kept of a seed: raised by any change after which old and new seeds cannot stand in one folder."""

POINTS = 200
"""Points of a regret curve that are kept and drawn."""

NEARLY = 1e-3
"""An action that costs less than this is optimal: Q*(s, x) >= V*(s) - 0.001."""


MEASURES = {
    "regret": "regret",
    "mean_return": "return, last tenth of the episodes",
    "optimal": "states with an optimal action",
    "argmax_match": "states with the first optimal action",
}
"""What is told of several seeds, in words."""


@dataclass(frozen=True)
class SeedResult:
    """One seed, in numbers.

    Attributes:
        seed: the seed.
        regret: the regret at the end; None where the optimum is not known.
        curve: the regret at `POINTS` even steps of the budget.
        episodes: the number of episodes.
        mean_return: the mean return of the last tenth of the episodes, unshaped.
        argmax_match: the share of states whose learned action is the first optimal one; None if not known.
        optimal: the share of states whose learned action is optimal, to within 0.001; None if not known.
    """

    seed: int
    regret: float | None
    curve: tuple[float, ...]
    episodes: int
    mean_return: float
    argmax_match: float | None
    optimal: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Seeds(Result):
    """The results of several seeds.

    Attributes:
        settings: what was run.
        results: one for each seed, in their order.
    """

    settings: Mapping[str, Any]
    results: tuple[SeedResult, ...]

    def interval(self, name: str) -> Interval | None:
        """Return the mean of a number over seeds and the ends of its 95% interval; None if it is not known."""
        values = [getattr(result, name) for result in self.results]
        if any(value is None for value in values):
            return None
        return mean_interval(np.array(values, dtype=np.float64))

    def curves(self) -> tuple[LongArray, FloatArray]:
        """Return steps and the regret of each seed there: int64 [points], float64 [seeds, points]."""
        return curve_points(self.settings["steps"]), np.array([result.curve for result in self.results])

    def __repr__(self) -> str:
        regret = self.interval("regret")
        return (
            f"Seeds({self.settings['learner']} in {self.settings['world']}, {self.settings['steps']:,} steps, "
            f"{len(self.results)} seeds{'' if regret is None else f', mean regret {regret[0]:.4g}'})"
        )

    def summary(self) -> str:
        """Return the means over seeds with their 95% intervals, in a few lines."""
        lines = [repr(self)]
        for name, words in MEASURES.items():
            found = self.interval(name)
            lines.append(f"{words}: " + ("not known" if found is None else "{:.4g} ({:.4g} to {:.4g})".format(*found)))
        return "\n".join(lines)

    def to_pandas(self) -> DataFrame:
        """Return a row per seed: the fields of `SeedResult` but the curve."""
        return data_frame([asdict(result) for result in self.results]).drop(columns="curve")


def train_seeds(
    world: World | gym.Env[Any, Any],
    potential: Posterior | Potential | Ceilings | None = None,
    *,
    learner: str | Rule | None = None,
    steps: int = 20_000,
    seeds: Iterable[int],
    folder: str | os.PathLike[str],
    step_indexed: bool = False,
    horizon: int | None = None,
    reward_max: float | None = None,
    progress: Progress = no_progress,
    **changes: Any,
) -> Seeds:
    """Run every seed that the folder does not hold yet, and return all of them.

    Args:
        world: see `train`.
        potential: see `train`.
        learner: see `train`.
        steps: see `train`.
        seeds: the seeds to run.
        folder: the folder to keep them in; made if it does not exist.
        step_indexed: see `train`.
        horizon: see `train`.
        reward_max: see `train`.
        progress: called with the number of seeds that are done, that of all seeds, and what is run.
        changes: constants of the rule to change; see `Rule`.
    """
    wanted, steps = check_seeds(seeds), check_integer("steps", steps, least=1)
    name, rule = choose(learner, potential, changes, train_seeds)
    settings = {
        "version": VERSION,
        "world": name_of(world),
        "tables": _tables(world) if isinstance(world, World) else repr(world.spec),
        "horizon": horizon,
        "learner": name,
        "rule": None if rule is None else asdict(rule),
        "steps": steps,
        "step_indexed": step_indexed,
        "potential": None if potential is None else potential.checksum,
        "reward_max": reward_max,
    }
    path, what = Path(folder), f"{name} in {settings['world']}"
    with claim_run_folder(path, settings, "seed-*.parquet"):
        warn_of_default_learner(learner, potential, stacklevel=2)  # once, not in each thread
        missing = [seed for seed in wanted if not _file(path, seed).exists()]
        options: dict[str, Any] = {"steps": steps, "step_indexed": step_indexed, "horizon": horizon}
        options |= {"learner": name if rule is None else rule, "reward_max": reward_max}

        def one(seed: int) -> None:
            run = train(world, potential, seed=seed, **options)
            _keep(run, _result(run, world), path)

        progress(len(wanted) - len(missing), len(wanted), what)
        # An environment is one object that steps: only tables can be learned side by side.
        workers = numba.get_num_threads() if isinstance(world, World) else 1
        for done, _ in enumerate(in_threads(one, missing, workers), len(wanted) - len(missing) + 1):
            progress(done, len(wanted), what)
        return Seeds(settings, tuple(_read(_file(path, seed)) for seed in wanted))


def _tables(world: World) -> str:
    """Return a checksum of a world's tables: its name does not tell a map of one's own, or other winds."""
    model = world.model
    metadata = json.dumps([world.space.to_json(), world.horizon])
    return checksum_of(metadata, [model.next_state, model.reward, model.noise, model.terminal, model.start])


def _file(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}.parquet"


def curve_points(steps: int) -> LongArray:
    """Return the steps of a budget at which a regret curve is kept: int64, at most `POINTS`, rising."""
    return np.unique(np.linspace(1, steps, min(POINTS, steps)).round().astype(np.int64))


def optimal_ratios(model: TabularCMDP, policy: IntArray, discount: float = 1.0) -> tuple[float, float]:
    """Return the share of states whose action is the first optimal one, and of those whose action is optimal.

    All states that are not terminal count, visited or not; an action is optimal, without a horizon, to within `NEARLY`.
    """
    best, alive = model.optimum(discount=discount), ~model.terminal
    chosen = np.take_along_axis(best.q_values, policy[:, None], axis=1)[:, 0]
    return float((policy == best.greedy())[alive].mean()), float((chosen >= best.values - NEARLY)[alive].mean())


def _result(run: Run, world: World | gym.Env[Any, Any]) -> SeedResult:
    known = not np.isnan(run.step_regret[-1])
    match = optimal = None
    true = world_of(world)
    if true is not None and known and run.q_values.ndim == 2:
        match, optimal = optimal_ratios(true.model, run.recommended, run.discount)
    curve = run.step_regret[curve_points(run.steps) - 1]
    return SeedResult(
        seed=run.seed,
        regret=float(run.step_regret[-1]) if known else None,
        curve=tuple(curve.tolist()) if known else (),
        episodes=len(run.returns),
        mean_return=run.mean_return,
        argmax_match=match,
        optimal=optimal,
    )


def _keep(run: Run, result: SeedResult, folder: Path) -> None:
    """Write a run; the episodes last, for their file says that the seed is done."""
    columns: dict[str, Any] = {}
    for name, values in (("q_value", run.q_values), ("visits", run.visits)):
        columns |= {f"{name} of {x} ({action})": values[..., x] for x, action in enumerate(run.space.actions)}
    table = folder / f"seed-{run.seed}-table.parquet"
    rows = run.space.columns_by_state(columns, label_column)
    steps = len(run.values) if run.values.ndim == 2 else None
    header = {"seed": run.seed, "steps": steps, "space": run.space.as_plain()}
    save(table, "learned table", rows, header)
    episodes = {"steps": run.episode_end, "regret": run.regret, "return": run.returns}
    save(_file(folder, run.seed), "run", episodes, {"result": asdict(result)})


def _read(path: Path) -> SeedResult:
    def build(contents: Contents) -> SeedResult:
        held = contents.metadata["result"]
        return SeedResult(**held | {"curve": tuple(held["curve"])})

    try:
        return load(path, "run", build)
    except FileError as error:
        raise FileError(f"{error} Remove it to run that seed again.") from error
