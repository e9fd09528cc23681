"""`causal-shaping train`: learn online, seed by seed, beside learning without logs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from causal_shaping._checks import check_choice, check_integer
from causal_shaping.cli import _options as shared
from causal_shaping.cli._options import AsJson, Png, bound_option, check_files, flag, option, read_gammas
from causal_shaping.cli._terminal import (
    complain,
    print_table,
    progress_bar,
    say,
    say_written,
    spoken_warnings,
)
from causal_shaping.cli._worlds import Wind, complete_world, load
from causal_shaping.errors import ArgumentError, MissingExtraError

ZERO, WITHOUT_LOGS = "zero potential", "q-ucb-shaping"
NO_LOGS, SAMPLING = "no logs", "posterior"
ZERO_FOLDER, NO_LOGS_FOLDER, SEEDS_TABLE = "zero", "no-logs", "seeds.csv"
LEARNERS = "posterior, q-ucb, q-ucb-shaping"


def train(
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help="A world, a map, or the id of a Gymnasium environment, such as FrozenLake-v1 or package:Env-v0.",
            autocompletion=complete_world,
        ),
    ],
    output: Annotated[
        Path, option("The folder to keep the runs in; interrupted runs resume.", "FOLDER", "--output", "-o")
    ],
    counts: Annotated[
        Path | None,
        option(
            "A file of counts, for the learner posterior; `ceilings --counts` writes it.  (default: no logs)", "FILE"
        ),
    ] = None,
    potential: Annotated[
        Path | None,
        option(
            "A file of ceilings, or of a potential, for the other learners. If you have the "
            "counts, --counts is the better input.  (default: zero)",
            "FILE",
        ),
    ] = None,
    learner: Annotated[
        str | None, option(f"One of {LEARNERS}.  (default: the one we recommend for what is given)", "NAME")
    ] = None,
    steps: Annotated[int, option("Environment steps of a seed.", "N")] = 20_000,
    seeds: Annotated[int, option("How many seeds to run.", "N")] = 10,
    first_seed: Annotated[int, option("The number of the first seed.", "N")] = 0,
    step_indexed: Annotated[bool, flag("--step-indexed", "Learn one table per step of an episode.")] = False,
    horizon: Annotated[
        int | None,
        option("Steps after which an episode is cut off.  (default: the world's, or the environment's)", "STEPS"),
    ] = None,
    wind: Wind = None,
    no_compare: Annotated[
        bool, flag("--no-compare", "Do not run the learners without logs beside the given one.")
    ] = False,
    png: Png = None,
    as_json: AsJson = False,
    reward_max: Annotated[
        float | None,
        bound_option(
            "With --counts, or for the learner posterior: the most that a step can pay.  (default: the world's)",
            "NUMBER",
        ),
    ] = None,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    discount: shared.Discount = 1.0,
) -> None:
    """Train a learner online, seed by seed, and compare it with learning without logs; interrupted runs resume.

    With --counts it starts from the posterior: what the logs prove under --confounding, --support and --discount, and
    what they suggest as far as that turns out to be right. With --potential the reward is shaped. If you have the
    counts, --counts is the better input: the default learner with --potential, Q-UCB Shaping as printed in the paper,
    can lock in.

    The folder gets a file per seed, a subfolder for each learner without logs (`no-logs` for the
    same one, `zero` for a zero potential), and `seeds.csv`, a row per seed.

    Example: causal-shaping train lavacross-easy --counts counts.parquet -o runs/
    """
    from causal_shaping.data.potential import Potential
    from causal_shaping.learners import train_seeds
    from causal_shaping.learners.rules import CAN_LOCK_IN, recommended_learner
    from causal_shaping.shaping.potentials import load_ceilings_or_potential
    from causal_shaping.storage import replacing_together

    read = [world, counts, potential]
    check_files(png=png, more=[output / SEEDS_TABLE], folder=output, inputs=read)
    check_integer("--seeds", seeds, least=1)
    told = {"confounding": confounding, "support": support, "discount": discount}
    if counts is not None and potential is not None:
        raise ArgumentError("--counts is for the learner posterior, --potential for the others: give one of them.")
    if counts is None and told != {"confounding": "inf", "support": "observed", "discount": 1.0}:
        raise ArgumentError("--confounding, --support and --discount are for --counts: give a file of counts, too.")
    check_choice("--support", support, shared.SUPPORTS)
    loaded = _world_or_environment(world, horizon, wind)
    if png is not None and not hasattr(loaded, "model") and not hasattr(loaded.unwrapped, "world"):
        raise ArgumentError(f"--png draws regret, but the optimum of {world} is not known.")
    start: Any = None if potential is None else load_ceilings_or_potential(potential)
    if counts is not None:
        start = _posterior(loaded, counts, horizon, reward_max, told)
    chosen = learner or recommended_learner(start)
    file = counts or potential
    name = file.name if file is not None else NO_LOGS if chosen == SAMPLING else ZERO
    given = {f"{name} ({chosen})": (start, chosen, output)}
    if start is not None and not no_compare:
        if counts is not None:
            given[f"{NO_LOGS} ({SAMPLING})"] = (None, SAMPLING, output / NO_LOGS_FOLDER)
        factor = start.settings.discount if counts is not None else start.discount
        zero = Potential.zero(start, discount=factor)
        given[f"{ZERO} ({WITHOUT_LOGS})"] = (zero, WITHOUT_LOGS, output / ZERO_FOLDER)
    options: Any = {"steps": steps, "seeds": range(first_seed, first_seed + seeds), "step_indexed": step_indexed}
    options["horizon"] = None if hasattr(loaded, "model") else horizon
    if potential is not None and not learner:
        complain("warning", CAN_LOCK_IN)
    found = {}
    with progress_bar() as progress:
        for name, (known, rule, folder) in given.items():
            most = reward_max if known is None and rule == SAMPLING else None
            with spoken_warnings():
                found[name] = train_seeds(
                    loaded, known, learner=rule, folder=folder, reward_max=most, progress=progress, **options
                )
    with replacing_together():
        _write_seeds(found, output / SEEDS_TABLE)
        if png is not None:
            _draw(found, png)
    if as_json:
        print(json.dumps(_facts(found), indent=2))
        return
    _print_seeds(found, steps, seeds)
    say(f"Runs are kept in {output}, a row per seed in {output / SEEDS_TABLE}.")
    say_written({"Figure": png})


def _world_or_environment(name: str, horizon: int | None, wind: str | None) -> Any:
    """Return a world by name or map; a name with a version, such as FrozenLake-v1, is a Gymnasium id."""
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
        hint = ""
        if isinstance(error, gym.error.UnregisteredEnv) and ":" not in name:
            package = name.partition("/")[0].lower() if "/" in name else "package"
            hint = f" If a package registers it, name that, too, as in {package}:{name}"
        raise ArgumentError(f"Gymnasium cannot make {name!r}: {str(error).rstrip('.')}.{hint}") from error


def _posterior(loaded: Any, path: Path, horizon: int | None, reward_max: float | None, told: dict[str, Any]) -> Any:
    """Return what is believed from a file of counts, over the steps of an episode."""
    from causal_shaping.beliefs import posterior
    from causal_shaping.data.counts import Counts
    from causal_shaping.learners._problem import world_of
    from causal_shaping.shaping.environments import time_limit_of

    world = world_of(loaded)
    if reward_max is None:
        if world is None:
            raise ArgumentError("Give --reward-max, the most that a step can pay.")
        reward_max = world.model.reward_range[1]
    own = loaded.horizon if hasattr(loaded, "model") else horizon or time_limit_of(loaded)
    if own is None:
        raise ArgumentError("The environment has no time limit: give --horizon, the steps of an episode.")
    with spoken_warnings():
        return posterior(Counts.load(path), own, reward_max, **told | {"confounding": read_gammas(told["confounding"])})


def _facts(found: dict[str, Any]) -> dict[str, Any]:
    """Return the runs that were asked for, and those without logs beside them."""
    first, *others = (
        {"settings": seeds.settings, "seeds": [asdict(one) for one in seeds.results]} for seeds in found.values()
    )
    names = ("no_logs", "zero")[-len(others) :] if others else ()
    return first | dict(zip(names, others, strict=True))


def _write_seeds(found: dict[str, Any], path: Path) -> None:
    import pyarrow as pa

    from causal_shaping.storage import write_table

    rows = [
        {"potential": name.partition(" (")[0], "learner": seeds.settings["learner"]}
        | {key: value for key, value in asdict(one).items() if key != "curve"}
        for name, seeds in found.items()
        for one in seeds.results
    ]
    write_table(path, pa.Table.from_pylist(rows))


def _draw(found: dict[str, Any], png: Path) -> None:
    """Draw the regret of all learners into one figure."""
    from matplotlib.figure import Figure

    from causal_shaping.plot import save_picture

    figure = Figure(layout="constrained")
    axes = figure.add_subplot()
    for name, seeds in found.items():
        seeds.plot(axes, label=name)
    save_picture(figure, png)


def _print_seeds(found: dict[str, Any], steps: int, seeds: int) -> None:
    """Print what seeds came to: means and 95% intervals over them."""
    from causal_shaping.learners.seeds import MEASURES

    (first, *_) = found.values()
    say(f"{first.settings['world']}: {seeds} seeds of {steps:,} steps; means, and 95% intervals over seeds")
    rows = []
    for measure, text in MEASURES.items():
        intervals = [each.interval(measure) for each in found.values()]
        if all(interval is not None for interval in intervals):
            rows.append((text, *(f"{mean:.4g} ({low:.4g} to {high:.4g})" for mean, low, high in intervals)))
    print_table(("", *found), rows)
