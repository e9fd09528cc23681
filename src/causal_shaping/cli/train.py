"""`causal-shaping train`: learn online, seed by seed, beside learning without logs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from causal_shaping._checks import check_choice
from causal_shaping.cli import _options as shared, _terminal as terminal
from causal_shaping.cli._options import Count, check_files, command, flag, option
from causal_shaping.cli._worlds import load, world_argument
from causal_shaping.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from causal_shaping.learners import Seeds

LEARNERS = ("posterior", "q-ucb", "q-ucb-shaping")
"""The values of --learner."""

SAMPLING, PRINTED = "posterior", "q-ucb-shaping"
"""The learners that start without logs beside the one that was asked for."""

NO_LOGS, ZERO = "no logs", "zero potential"
"""The names of learning without logs in tables: with the learner `posterior`, with the others."""


class Arm(NamedTuple):
    """One of the learners that are compared.

    Attributes:
        start: what the learner knows at its first step; None if it knows nothing.
        learner: its rule.
        folder: where its seeds are kept.
    """

    start: Any
    learner: str
    folder: Path


@command
def train(
    world: Annotated[str, world_argument("")],
    output: shared.Folder,
    counts: Annotated[Path | None, option("FILE")] = None,
    potential: Annotated[Path | None, option("FILE")] = None,
    learner: Annotated[str | None, option("|".join(LEARNERS))] = None,
    steps: Count = 20_000,
    seeds: Annotated[int, option("N", min=1)] = 10,
    first_seed: Count = 0,
    step_indexed: Annotated[bool, flag("--step-indexed")] = False,
    horizon: shared.Horizon = None,
    wind: shared.Wind = None,
    no_compare: Annotated[bool, flag("--no-compare")] = False,
    png: shared.File = None,
    as_json: shared.AsJson = False,
    reward_max: shared.Number = None,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    discount: shared.Discount = 1.0,
) -> None:
    """Train a learner online, seed by seed, and compare it with learning without logs.

    An interrupted run resumes with the same command. With --counts the learner starts from the
    posterior: what the logs prove under --confounding, --support and --discount, and what they
    suggest, as far as that turns out to be right. With --potential the reward is shaped. If you
    have the counts, --counts is the better input: the default learner with --potential, Q-UCB
    Shaping as printed in the paper, can keep its first action for ever.

    The folder gets a file for each seed, a subfolder for each learner without logs (`no-logs` for
    the same learner, `zero` for a zero potential), and `seeds.csv`, a row for each seed.

    Example: causal-shaping train lavacross-easy --counts counts.parquet -o runs/

    Options:
        world: A world, a map, or the id of a Gymnasium environment, such as FrozenLake-v1 or
            package:Env-v0.
        output: The folder to keep the runs in; interrupted runs resume.
        counts: A file of counts, for the learner posterior; `ceilings --counts` writes it.
            (default: no logs)
        potential: A file of ceilings, or of a potential, for the other learners. If you have the
            counts, --counts is the better input. (default: zero)
        learner: How to learn. (default: the learner that we recommend for the other options)
        steps: Environment steps of a seed.
        seeds: How many seeds to run.
        first_seed: The number of the first seed.
        step_indexed: Learn one table for each step of an episode.
        horizon: Steps after which an episode is cut off. (default: the world's, or the
            environment's)
        no_compare: Do not run the learners without logs beside the one that was asked for.
        reward_max: With --counts, or for the learner posterior: the most that a step can pay.
            (default: the world's)
    """
    from causal_shaping.learners.rules import CAN_LOCK_IN, recommended_learner
    from causal_shaping.shaping.potentials import load_ceilings_or_potential

    table = output / "seeds.csv"
    check_files(inputs=[world, counts, potential], png=png, folder=output, inside=table)
    if counts is not None and potential is not None:
        raise ArgumentError("--counts is for posterior, --potential for others: give one of them.")
    if counts is None and (confounding, support, discount) != ("inf", "observed", 1.0):
        bound = "--confounding, --support and --discount are for --counts"
        raise ArgumentError(f"{bound}: give a file of counts, too.")
    check_choice("--support", support, shared.SUPPORTS)
    environment = _world_or_environment(world, horizon, wind)
    is_world = hasattr(environment, "model")
    if png is not None and not is_world and not hasattr(environment.unwrapped, "world"):
        raise ArgumentError(f"--png draws regret, but the optimum of {world} is not known.")
    start: Any = None
    if potential is not None:
        start = load_ceilings_or_potential(potential)
        if learner is None:
            terminal.complain("warning", CAN_LOCK_IN)
    if counts is not None:
        bounded: Any = {"confounding": shared.read_gammas(confounding), "support": support}
        bounded["discount"] = discount
        start = _posterior(environment, counts, horizon, reward_max, **bounded)
    arms = _arms(start, counts or potential, learner or recommended_learner(start), output)
    if no_compare:
        arms = dict(list(arms.items())[:1])
    options: Any = {"steps": steps, "seeds": range(first_seed, first_seed + seeds)}
    if not is_world:  # a world has its horizon already
        options["horizon"] = horizon
    results = _train(environment, arms, reward_max, step_indexed=step_indexed, **options)
    figure = ("Figure", png, lambda path: _draw(results, path))
    terminal.write_together([("Table", table, lambda path: _write_seeds(results, path)), figure])
    if as_json:
        terminal.print_json(_as_json(results))
        return
    _print(results, steps, seeds)
    terminal.say(f"Runs are kept in {output}, a row per seed in {table}.")
    terminal.say_written([figure])


def _world_or_environment(name: str, horizon: int | None, wind: str | None) -> Any:
    """Return a world by name or map, or make the Gymnasium environment with that id."""
    if Path(name).exists() or "-v" not in name:
        return load(name, horizon, wind)
    import gymnasium as gym

    if wind is not None:
        raise ArgumentError("--wind is for worlds; a Gymnasium environment has its own.")
    try:
        return gym.make(name)
    except MissingExtraError:
        raise
    except (gym.error.Error, ImportError) as error:
        message = f"Gymnasium cannot make {name!r}: {str(error).rstrip('.')}."
        if isinstance(error, gym.error.UnregisteredEnv) and ":" not in name:
            package = "package"
            if "/" in name:
                package = name.partition("/")[0].lower()
            message += f" If a package registers it, name that, too, as in {package}:{name}"
        raise ArgumentError(message) from error


def _posterior(
    environment: Any, counts: Path, horizon: int | None, reward_max: float | None, **bound: Any
) -> Any:
    """Return the posterior of a file of counts, over the steps of an episode."""
    from causal_shaping.beliefs import posterior
    from causal_shaping.data.counts import Counts
    from causal_shaping.learners._problem import world_of
    from causal_shaping.shaping.environments import time_limit_of

    if reward_max is None:
        world = world_of(environment)
        if world is None:
            raise ArgumentError("Give --reward-max, the most that a step can pay.")
        reward_max = world.model.reward_range[1]
    if hasattr(environment, "model"):
        horizon = environment.horizon  # of a world
    steps = horizon or time_limit_of(environment)
    if steps is None:
        message = "The environment has no time limit: give --horizon, the steps of an episode."
        raise ArgumentError(message)
    with terminal.spoken_warnings():
        return posterior(Counts.load(counts), steps, reward_max, **bound)


def _arms(start: Any, file: Path | None, learner: str, output: Path) -> dict[str, Arm]:
    """Return the learners to compare, by name: first the one that was asked for."""
    from causal_shaping.beliefs import Posterior
    from causal_shaping.data.potential import Potential

    name, arms = {SAMPLING: NO_LOGS}.get(learner, ZERO), {}
    if file is not None:
        name = file.name
    arms[f"{name} ({learner})"] = Arm(start, learner, output)
    settings = start
    if isinstance(start, Posterior):
        settings = start.settings
        arms[f"{NO_LOGS} ({SAMPLING})"] = Arm(None, SAMPLING, output / "no-logs")
    if start is not None:
        zero = Potential.zero(start, discount=settings.discount)
        arms[f"{ZERO} ({PRINTED})"] = Arm(zero, PRINTED, output / "zero")
    return arms


def _train(
    environment: Any, arms: dict[str, Arm], reward_max: float | None, **options: Any
) -> dict[str, Seeds]:
    """Return the seeds of each learner."""
    from causal_shaping.learners import train_seeds

    results = {}
    with terminal.progress_bar() as progress, terminal.spoken_warnings():
        for name, arm in arms.items():
            own: Any = {"learner": arm.learner, "folder": arm.folder, "progress": progress}
            if arm.start is None and arm.learner == SAMPLING:
                own["reward_max"] = reward_max
            results[name] = train_seeds(environment, arm.start, **own, **options)
    return results


def _as_json(results: dict[str, Seeds]) -> str:
    """Return the seeds that were asked for, and beside them those without logs, as JSON."""
    first, *others = (
        {"settings": seeds.settings, "seeds": [asdict(one) for one in seeds.results]}
        for seeds in results.values()
    )
    names = ("no_logs", "zero")[2 - len(others) :]
    return json.dumps(first | dict(zip(names, others, strict=True)), indent=2)


def _write_seeds(results: dict[str, Seeds], path: Path) -> None:
    """Write a row for each seed of each learner."""
    import pyarrow as pa

    from causal_shaping.storage import write_table

    rows = []
    for name, seeds in results.items():
        start = {"potential": name.partition(" (")[0], "learner": seeds.settings["learner"]}
        rows += [start | asdict(result) for result in seeds.results]
    write_table(path, pa.Table.from_pylist(rows).drop_columns("curve"))


def _draw(results: dict[str, Seeds], path: Path) -> None:
    """Draw the regret of all learners into one figure."""
    from matplotlib.figure import Figure

    from causal_shaping.plot import save_picture

    figure = Figure(layout="constrained")
    axes = figure.add_subplot()
    for name, seeds in results.items():
        seeds.plot(axes, label=name)
    save_picture(figure, path)


def _print(results: dict[str, Seeds], steps: int, seeds: int) -> None:
    """Print a table of means and 95% intervals over seeds, a column for each learner."""
    from causal_shaping.learners.seeds import MEASURES

    world = next(iter(results.values())).settings["world"]
    terminal.say(f"{world}: {seeds} seeds of {steps:,} steps; means, and 95% intervals over seeds")
    rows = []
    for measure, title in MEASURES.items():
        intervals: list[Any] = [each.interval(measure) for each in results.values()]
        if None not in intervals:
            rows.append((title, *("{:.4g} ({:.4g} to {:.4g})".format(*one) for one in intervals)))
    terminal.print_table(("", *results), rows)
