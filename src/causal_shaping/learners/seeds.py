"""Many seeds of one learner: run in parallel, kept in a folder, resumed where they stopped.

A folder holds `settings.json`, what is run; for each seed that is done `seed-N.parquet`, a row per episode, and
`seed-N-table.parquet`, what was learned; both are written under another name first, so that a seed is there in full or
not at all. A folder with other settings is refused.

- `train_seeds`: run what is missing, return all.
- `Seeds`: what came out, with intervals.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import FloatArray, IntArray, LongArray, checksum_of
from causal_shaping.data.counts import Counts
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, FileError
from causal_shaping.io.by_state import save_by_state
from causal_shaping.io.container import Contents, load, save
from causal_shaping.io.files import claim_run_folder
from causal_shaping.learners.intervals import Interval, mean_interval
from causal_shaping.learners.rules import Rule, resolve
from causal_shaping.learners.training import Run, train
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds import World

RUN_VERSION = 2
POINTS = 200
"""Points of a regret curve that are kept and drawn."""

NEARLY = 1e-3
"""An action that costs less than this is optimal: Q*(s, x) >= V*(s) - 0.001."""


@dataclass(frozen=True)
class SeedResult:
    """One seed, in numbers.

    Attributes:
        seed: the seed.
        regret: at the end; None where the optimum is not known.
        curve: the regret at `POINTS` even steps of the budget.
        episodes: how many.
        mean_return: of the last tenth of the episodes, unshaped.
        argmax_match: share of states whose learned action is the first optimal one; None if not known.
        optimal: share of states whose learned action is optimal, to within 0.001; None if not known.
    """

    seed: int
    regret: float | None
    curve: tuple[float, ...]
    episodes: int
    mean_return: float
    argmax_match: float | None
    optimal: float | None


@dataclass(frozen=True, eq=False)
class Seeds:
    """What several seeds came to.

    Attributes:
        settings: what was run.
        results: by seed, rising.
    """

    settings: Mapping[str, Any]
    results: tuple[SeedResult, ...]

    def interval(self, name: str) -> Interval | None:
        """Return mean, lower and upper end of its 95% interval over seeds; None if it is not known."""
        values = [getattr(result, name) for result in self.results]
        if any(value is None for value in values):
            return None
        return mean_interval(np.array(values, dtype=np.float64))

    def curves(self) -> tuple[LongArray, FloatArray]:
        """Return steps and the regret of each seed there: int64 [points], float64 [seeds, points]."""
        steps = self.settings["steps"]
        return curve_points(steps), np.array([result.curve for result in self.results])


def train_seeds(
    world: World | gym.Env[Any, Any],
    potential: Potential | Ceilings | None,
    learner: str | Rule,
    steps: int,
    seeds: Iterable[int],
    folder: str | os.PathLike[str],
    *,
    step_indexed: bool = False,
    floors: Floors | None = None,
    counts: Counts | None = None,
    horizon: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **changes: Any,
) -> Seeds:
    """Run every seed that the folder does not hold yet, and return all of them.

    Args:
        world: see `train`.
        potential: see `train`.
        learner: see `train`.
        steps: see `train`.
        seeds: which to run.
        folder: where to keep them; made if it is not there.
        step_indexed: see `train`.
        floors: see `train`.
        counts: see `train`; the ceilings say which they are, so that the settings need not.
        horizon: see `train`.
        progress: called with the number of seeds done and in all.
        changes: constants of the rule.
    """
    wanted = sorted({check_integer("a seed", seed) for seed in seeds})
    steps = check_integer("steps", steps, least=1)
    if not wanted:
        raise ArgumentError("There are no seeds to run.")
    rule = resolve(learner, **changes)
    name = world.name if isinstance(world, World) else (world.spec.id if world.spec else type(world.unwrapped).__name__)
    settings = {
        "version": RUN_VERSION,
        "world": name,
        "tables": _tables(world) if isinstance(world, World) else repr(world.spec),
        "horizon": horizon,
        "floors": None if floors is None else floors.checksum,
        "learner": learner if isinstance(learner, str) else "own",
        "rule": asdict(rule),
        "steps": steps,
        "step_indexed": step_indexed,
        "potential": None if potential is None else potential.checksum,
    }
    path = Path(folder)
    claim_run_folder(path, settings, "seed-*.parquet")
    missing = [seed for seed in wanted if not _file(path, seed).exists()]
    progress(len(wanted) - len(missing), len(wanted))

    def one(seed: int) -> None:
        run = train(world, potential, rule, steps, seed, step_indexed, floors=floors, counts=counts, horizon=horizon)
        _keep(run, _result(run, world), path)

    # An environment is one thing that steps: only tables can be learned side by side.
    workers = numba.get_num_threads() if isinstance(world, World) else 1
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(one, seed) for seed in missing]
        try:
            for done, job in enumerate(as_completed(jobs), len(wanted) - len(missing) + 1):
                job.result()
                progress(done, len(wanted))
        except BaseException:
            for job in jobs:
                job.cancel()
            raise
    return Seeds(settings, tuple(_read(_file(path, seed)) for seed in wanted))


def _tables(world: World) -> str:
    """Return a checksum of what a world does: its name says little of a map of one's own, or of other winds."""
    model = world.model
    about = json.dumps([world.space.to_json(), world.horizon])
    return checksum_of(about, [model.next_state, model.reward, model.noise, model.terminal, model.start])


def _file(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}.parquet"


def curve_points(steps: int) -> LongArray:
    """Return the steps of a budget at which a regret curve is kept: int64, at most `POINTS`, rising."""
    return np.unique(np.linspace(1, steps, min(POINTS, steps)).round().astype(np.int64))


def optimal_ratios(model: TabularCMDP, policy: IntArray, discount: float = 1.0) -> tuple[float, float]:
    """Return the share of states whose action is the first optimal one, and of those whose action is optimal.

    All states count that are not terminal, visited or not; an action is optimal to within `NEARLY`.

    Args:
        model: whose optimum it is compared with, without a horizon.
        policy: int32 [states].
        discount: the factor on future reward.
    """
    best, alive = model.optimum(discount=discount), ~model.terminal
    chosen = np.take_along_axis(best.q_values, policy[:, None], axis=1)[:, 0]
    return float((policy == best.greedy())[alive].mean()), float((chosen >= best.values - NEARLY)[alive].mean())


def _result(run: Run, world: World | gym.Env[Any, Any]) -> SeedResult:
    known = not np.isnan(run.step_regret[-1])
    last = max(1, len(run.returns) // 10)
    match = optimal = None
    true = world if isinstance(world, World) else getattr(world.unwrapped, "world", None)
    if isinstance(true, World) and known and run.q_values.ndim == 2:
        match, optimal = optimal_ratios(true.model, run.recommended, run.discount)
    curve = run.step_regret[curve_points(run.steps) - 1]
    return SeedResult(
        seed=run.seed,
        regret=float(run.step_regret[-1]) if known else None,
        curve=tuple(curve.tolist()) if known else (),
        episodes=len(run.returns),
        mean_return=float(run.returns[-last:].mean()),
        argmax_match=match,
        optimal=optimal,
    )


def _keep(run: Run, result: SeedResult, folder: Path) -> None:
    """Write a run; the episodes last, for their file says that the seed is done."""
    columns: dict[str, Any] = {}
    for name, values in (("q_value", run.q_values), ("visits", run.visits)):
        columns |= {f"{name} of {x} ({action})": values[..., x] for x, action in enumerate(run.space.actions)}
    table = folder / f"seed-{run.seed}-table.parquet"
    save_by_state(table, "learned table", run.space, columns, {"seed": run.seed})
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
