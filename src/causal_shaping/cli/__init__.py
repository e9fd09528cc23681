"""The command line: thin, it parses, calls and prints."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from causal_shaping import __version__
from causal_shaping.bounds import Ceilings, value_ceilings
from causal_shaping.bounds.sensitivity import GAMMAS, TABLES, sensitivity as sensitivity_of
from causal_shaping.cli._console import (
    best_values,
    print_examination,
    print_inspection,
    print_seeds,
    print_sensitivity,
    print_world,
    print_worlds,
    world_facts,
)
from causal_shaping.cli._log_arguments import open_all
from causal_shaping.data.counts import Counts
from causal_shaping.data.potential import Potential
from causal_shaping.data.space import Bins
from causal_shaping.diagnose.diagnostics import LEVEL
from causal_shaping.diagnose.inspection import inspect_counts
from causal_shaping.errors import (
    ArgumentError,
    AssumptionWarning,
    CausalShapingError,
    DroppedEpisodesWarning,
    ShapingWarning,
)
from causal_shaping.io.files import PARQUET, check_target
from causal_shaping.io.parquet import LOG_FILES
from causal_shaping.io.state_table import kind_of
from causal_shaping.learners import PRESETS, train_seeds
from causal_shaping.logs import check_logs, count
from causal_shaping.logs.summary import summarise
from causal_shaping.logs.table import LogTable
from causal_shaping.paper.study.plan import QUICK, SEEDS, Plan, read_only
from causal_shaping.plot.inspection import draw_inspection
from causal_shaping.plot.sensitivity import draw_sensitivity
from causal_shaping.worlds import World, list_worlds, load_world
from causal_shaping.worlds.grid import WINDS

app = typer.Typer(
    name="causal-shaping",
    help="Reward shaping from confounded logs: what somebody else's logs are worth, and how to use them.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"causal-shaping {__version__}")
        raise typer.Exit


JOBS = """\
causal-shaping {version}: reward shaping from confounded logs. Logs to try it with:

       causal-shaping collect lavacross-easy --demonstrator good -o good.parquet
       causal-shaping collect lavacross-easy --demonstrator random -o random.parquet

Three jobs, in the order that you meet them:

  1. What are my logs worth?
       causal-shaping inspect good.parquet random.parquet
  2. Turn them into a potential.
       causal-shaping ceilings good.parquet random.parquet --horizon 20 --reward-max -0.1 -o phi.parquet
  3. Shape the reward of any Gymnasium agent with it, in Python,
       env = causal_shaping.ShapeReward(env, causal_shaping.Potential.load("phi.parquet"))
     or learn in a table.
       causal-shaping train lavacross-easy --potential phi.parquet --learner q-ucb-shaping-tight -o runs/

For files of your own, say what their columns are:
       causal-shaping inspect ward-3.csv ward-7.csv --episode patient --step day --first-step 1 --state age,stage
                      --bins age=65: --action drug --reward score --terminated died --truncated discharged

All commands: causal-shaping --help. One of them, with an example: causal-shaping COMMAND --help.
"""
"""What the command says if it is called alone."""


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(JOBS.format(version=__version__), end="")


def main() -> None:
    """Run the command line; what the package refuses ends with its message and exit code 2."""
    try:
        app()
    except (CausalShapingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _complete_world(incomplete: str) -> list[str]:
    return [name for name in list_worlds() if name.startswith(incomplete)]


Coins = Annotated[str, typer.Option(help="Coins pay on every visit (standing) or once an episode (once).")]
Horizon = Annotated[int | None, typer.Option(help="Steps after which an episode is cut.  (default: the world's)")]
Wind = Annotated[
    str | None,
    typer.Option(metavar="E,S,W,N,NONE", help="Probabilities of the air pushing each way, for a map of your own."),
]
WORLD_HELP = "A world of the paper, or the path of a text file with a map."


@app.command()
def worlds(
    world: Annotated[
        str | None,
        typer.Argument(help=WORLD_HELP + " All worlds if left out.", autocompletion=_complete_world),
    ] = None,
    coins: Coins = "standing",
    horizon: Horizon = None,
    wind: Wind = None,
    png: Annotated[
        Path | None,
        typer.Option(help="Draw map, winds, optimal values and actions into this file (.png, .svg, .pdf)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the worlds, or show one: its map, winds, demonstrators and optimal values.

    Example: causal-shaping worlds lavacross-hard --png hard.png
    """
    if world is None:
        if png is not None or wind is not None or horizon is not None or coins != "standing":
            raise ArgumentError("These options need a world: causal-shaping worlds lavacross-hard --png hard.png")
        print_worlds(as_json)
        return
    loaded = _load(world, coins, horizon, wind)
    best, note = best_values(loaded)
    if png is not None:
        from causal_shaping.plot.worlds import draw_world, save_picture

        save_picture(draw_world(loaded, values=best.values, policy=best.greedy()), png)
    if as_json:
        print(json.dumps(world_facts(loaded, best, note), indent=2))
    else:
        print_world(loaded, best, note)
        if png is not None:
            print(f"Picture written to {png}.")


@app.command()
def collect(
    world: Annotated[str, typer.Argument(help=WORLD_HELP, autocompletion=_complete_world)],
    demonstrator: Annotated[str, typer.Option(help="Who to watch; `causal-shaping worlds WORLD` lists them.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .parquet, .csv, .csv.gz or .csv.zst.")
    ],
    steps: Annotated[int, typer.Option(help="How many steps to log.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal logs.")] = 0,
    coins: Coins = "standing",
    horizon: Horizon = None,
    wind: Wind = None,
) -> None:
    """Watch a demonstrator of a world and write its logs, without the hidden noise, to a file.

    Example: causal-shaping collect lavacross-easy --demonstrator good --steps 100000 --seed 0 -o good.parquet
    """
    console = Console(stderr=True)
    check_target(output, LOG_FILES)
    loaded = _load(world, coins, horizon, wind)
    loaded.demonstrator(demonstrator)
    with console.status(f"Watching {demonstrator} in {loaded.name} for {steps:,} steps"):
        logs = loaded.collect(demonstrator, steps=steps, seed=seed)
        logs.save(output)
    print(f"{len(logs):,} steps in {logs.episodes:,} episodes of {demonstrator} written to {output}.")


COLUMNS = "Columns of your files"


@dataclass(frozen=True)
class LogArguments:
    """The logs that a command was given, and how to read them; see `takes_logs`."""

    names: list[str]
    bins: dict[str, Bins]
    columns: dict[str, Any]
    skip_bad_episodes: bool

    def open(self, look: Callable[[LogTable], None], working: Working) -> list[LogTable]:
        """Open and check each log, and look at it."""
        tables = []
        for opened in open_all(self.names, bins=self.bins, **self.columns):
            working.on(f"Checking {opened.origin}")
            with _spoken_warnings():
                tables.append(check_logs(opened, skip_bad_episodes=self.skip_bad_episodes))
            look(tables[-1])
            working.done()
        return tables

    def count(self, working: Working, step_indexed: bool = False) -> tuple[Counts, list[LogTable]]:
        """Return what the logs hold, counted, and the logs."""
        tables = self.open(lambda table: None, working)
        working.on("Counting")
        counts = count(tables, step_indexed=step_indexed)
        working.done()
        return counts, tables


def _log_arguments(
    logs: Annotated[list[str], typer.Argument(metavar="LOGS", help="Logs, one source each: [NAME=]FILE[,FILE...].")],
    state: Annotated[
        str | None, typer.Option(help="State columns, commas between them.  (default: state)", rich_help_panel=COLUMNS)
    ] = None,
    action: Annotated[str, typer.Option(help="The action taken.", rich_help_panel=COLUMNS)] = "action",
    reward: Annotated[str, typer.Option(help="The reward.", rich_help_panel=COLUMNS)] = "reward",
    next_state: Annotated[
        str | None,
        typer.Option(help="Columns of the state after.  (default: next_ and the state's)", rich_help_panel=COLUMNS),
    ] = None,
    episode: Annotated[str, typer.Option(help="What tells episodes apart.", rich_help_panel=COLUMNS)] = "episode",
    step: Annotated[str, typer.Option(help="The number of the step.", rich_help_panel=COLUMNS)] = "step",
    first_step: Annotated[int, typer.Option(help="The number of a first step.", rich_help_panel=COLUMNS)] = 0,
    terminated: Annotated[str, typer.Option(help="Did the world end?", rich_help_panel=COLUMNS)] = "terminated",
    truncated: Annotated[str, typer.Option(help="Was the episode cut?", rich_help_panel=COLUMNS)] = "truncated",
    actions: Annotated[
        str | None, typer.Option(help="All actions, also those that nobody tried.", rich_help_panel=COLUMNS)
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN=CUT,...",
            help="Cut columns of real numbers: age=8 into 8 quantiles of the first log, age=18:65 at 18 and 65, and "
            "age=65: at 65.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    skip_bad_episodes: Annotated[bool, typer.Option("--skip-bad-episodes", help="Leave out bad episodes.")] = False,
    memory_limit: Annotated[str | None, typer.Option(help="The most memory to use, such as 2GB.")] = None,
) -> LogArguments:
    columns = {
        "state": None if state is None else state.split(","),
        "action": action,
        "reward": reward,
        "next_state": None if next_state is None else next_state.split(","),
        "episode": episode,
        "step": step,
        "first_step": first_step,
        "terminated": terminated,
        "truncated": truncated,
        "actions": None if actions is None else [int(a) if a.lstrip("-").isdigit() else a for a in actions.split(",")],
        "memory_limit": memory_limit,
    }
    return LogArguments(logs, _bins(bins), columns, skip_bad_episodes)


def takes_logs(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments of `_log_arguments`; it gets them as its first one, a `LogArguments`."""
    shared = list(signature(_log_arguments, eval_str=True).parameters.values())
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(_log_arguments(**{item.name: given.pop(item.name) for item in shared}), **given)

    every = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in (shared[0], *own, *shared[1:])]
    run.__signature__ = Signature(every)  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in every}
    return run


class Working:
    """A bar that says what is being worked on, on the error stream, if a person is looking."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._task = progress, progress.add_task("", total=total)

    def on(self, what: str) -> None:
        """Say what comes next."""
        self._progress.update(self._task, description=what)

    def reached(self, done: float, total: float | None = None) -> None:
        """Say how much is done, and of how much if that was not known before."""
        self._progress.update(self._task, completed=done, total=total)

    def done(self, steps: int = 1) -> None:
        """Go on by some steps of the total."""
        self._progress.advance(self._task, steps)


@contextmanager
def _working(total: int) -> Iterator[Working]:
    console, quiet = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*Progress.get_default_columns(), console=console, transient=True, disable=quiet) as progress:
        yield Working(progress, total)


Png = Annotated[Path | None, typer.Option(help="Draw it into this file (.png, .svg, .pdf).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command()
@takes_logs
def inspect(
    logs: LogArguments,
    level: Annotated[float, typer.Option(help="Chance of any false contradiction.")] = LEVEL,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Tell what logs cover, whether sources contradict each other, and what they can prove.

    Example: causal-shaping inspect good.parquet bad.parquet trial=random.csv
    """
    from causal_shaping.plot.worlds import FORMATS, save_picture

    if png is not None:
        check_target(png, FORMATS)
    if not 0 < level < 1:
        raise ArgumentError(f"--level is {level}; it must be between 0 and 1.")
    with _working(len(logs.names) + 2) as working:
        summaries: list[Any] = []
        tables = logs.open(lambda table: summaries.extend(summarise(table)), working)
        working.on("Counting")
        counts = count(tables)
        working.done()
        working.on("Comparing sources")
        dropped = {table.origin: table.dropped for table in tables if table.dropped is not None}
        found = inspect_counts(counts, summaries, level, dropped)
    if png is not None:
        save_picture(draw_inspection(found), png)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
        return
    print_inspection(found)
    if png is not None:
        print(f"Picture written to {png}.")


Steps = Annotated[int, typer.Option("--horizon", help="How many steps an episode has.")]
RewardMax = Annotated[float, typer.Option(help="The most that a step can pay.")]
Supported = Annotated[
    str,
    typer.Option(help="What may follow a state: what was observed to follow it, or any state.", metavar="observed|any"),
]
Confidence = Annotated[
    float | None, typer.Option(help="That all bounds hold at once, such as 0.95.  (default: a plug-in estimate)")
]
Discount = Annotated[float, typer.Option(help="The factor on future reward.")]
MinVisits = Annotated[int, typer.Option(help="States with fewer visits get any support.")]
ByStep = Annotated[bool, typer.Option("--by-step", help="Keep the steps of an episode apart: the world may change.")]


@app.command()
@takes_logs
def ceilings(
    logs: LogArguments,
    horizon: Steps,
    reward_max: RewardMax,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write the ceilings to (.parquet).")
    ] = None,
    support: Supported = "observed",
    confounding: Annotated[
        str,
        typer.Option(
            metavar="GAMMA|NAME=GAMMA,...",
            help="How confounded sources may be: 1 for a randomised trial, up to inf. One number for all, or by name.",
        ),
    ] = "inf",
    confidence: Confidence = None,
    discount: Discount = 1.0,
    method: Annotated[str, typer.Option(help="The joint bound, or the one that the paper prints.")] = "joint",
    stationary: Annotated[bool, typer.Option("--stationary", help="The fixed point instead of a pass.")] = False,
    min_visits: MinVisits = 0,
    value_max: Annotated[
        float | None, typer.Option(help="What no state is worth more than, if you know it.  (default: nothing)")
    ] = None,
    by_step: ByStep = False,
    counts_file: Annotated[
        Path | None,
        typer.Option("--counts", help="Write the counts, too, for `train --learner ucbvi-causal` (.parquet)."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw the first step's ceilings of a grid world (.png, .svg, .pdf).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bound the optimal value from above, whatever the demonstrators saw: a potential for reward shaping.

    Example: causal-shaping ceilings good.parquet trial=random.parquet --horizon 20 --reward-max -0.1 --confounding
    trial=1 --confidence 0.95 -o phi.parquet
    """
    from causal_shaping.plot.bounds import draw_values
    from causal_shaping.plot.worlds import FORMATS, save_picture

    for target in (output, counts_file):
        if target is not None:
            check_target(target, PARQUET)
    if png is not None:
        check_target(png, FORMATS)
    gammas = _gammas(confounding)
    with _working(len(logs.names) + 1 + horizon) as working:
        counts, tables = logs.count(working, by_step)
        working.on("Bounding values")
        with _spoken_warnings():
            found = value_ceilings(
                counts,
                horizon,
                reward_max,
                method=method,
                support=support,
                confounding=gammas,
                confidence=confidence,
                discount=discount,
                stationary=stationary,
                min_visits=min_visits,
                value_max=value_max,
                progress=lambda done, total, what: working.done(),
            )
    if output is not None:
        found.save(output)
    if counts_file is not None:
        counts.save(counts_file)
    if png is not None:
        save_picture(draw_values(found, [table.metadata for table in tables]), png)
    if as_json:
        print(found.to_json())
        return
    print(found)
    if output is not None:
        print(f"\nCeilings written to {output}.")
    if counts_file is not None:
        print(f"Counts written to {counts_file}.")
    if png is not None:
        print(f"Picture written to {png}.")


@app.command()
@takes_logs
def sensitivity(
    logs: LogArguments,
    horizon: Steps,
    reward_max: RewardMax,
    reward_min: Annotated[float, typer.Option(help="The least that a step can pay.")],
    confounding: Annotated[
        str, typer.Option(metavar="GAMMA,...", help="How confounded all sources may be: the values to look at.")
    ] = ",".join(f"{gamma:g}" for gamma in GAMMAS),
    fixed: Annotated[
        str | None, typer.Option(metavar="NAME=GAMMA,...", help="Sources whose confounding is known, and stays.")
    ] = None,
    support: Supported = "observed",
    confidence: Confidence = None,
    discount: Discount = 1.0,
    min_visits: MinVisits = 0,
    by_step: ByStep = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a row per Gamma and state (.parquet, .csv).")
    ] = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Tell how bounds and provably suboptimal actions move with confounding, and when each best action breaks down.

    Example: causal-shaping sensitivity good.parquet random.parquet --horizon 20 --reward-max 0.1 --reward-min -1.1
    --confounding 1,1.5,2,5,inf --png gamma.png
    """
    from causal_shaping.plot.worlds import FORMATS, save_picture

    if output is not None:
        check_target(output, TABLES)
    if png is not None:
        check_target(png, FORMATS)
    gammas = [_gamma(part) for part in confounding.split(",")]
    known = _gammas(fixed) if fixed is not None else {}
    if not isinstance(known, dict):
        raise ArgumentError(f"--fixed is {fixed!r}; write it as random=1.")
    with _working(len(logs.names) + 20) as working:
        counts, _ = logs.count(working, by_step)
        working.on("Bounding values")
        found = sensitivity_of(
            counts,
            horizon,
            reward_max,
            reward_min,
            support=support,
            confounding=gammas,
            fixed=known,
            confidence=confidence,
            discount=discount,
            min_visits=min_visits,
            progress=lambda done, total, what: working.done(),
        )
    if output is not None:
        found.save(output)
    if png is not None:
        save_picture(draw_sensitivity(found), png)
    if as_json:
        print(found.to_json())
        return
    print_sensitivity(found)
    for what, path in (("Table", output), ("Picture", png)):
        if path is not None:
            print(f"{what} written to {path}.")


@app.command()
def train(
    world: Annotated[
        str,
        typer.Argument(help="A world, a map, or the id of a Gymnasium environment.", autocompletion=_complete_world),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to keep the runs in.")],
    potential: Annotated[
        Path | None, typer.Option(help="A file of ceilings or of a potential.  (default: phi = 0)")
    ] = None,
    learner: Annotated[str, typer.Option(help=f"One of {', '.join(PRESETS)}.")] = "q-ucb-shaping",
    counts: Annotated[
        Path | None, typer.Option(help="For ucbvi-causal, the counts that `ceilings --counts` wrote with the ceilings.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Environment steps of a seed.")] = 20_000,
    seeds: Annotated[int, typer.Option(help="How many seeds to run.")] = 10,
    first_seed: Annotated[int, typer.Option(help="The number of the first seed.")] = 0,
    step_indexed: Annotated[bool, typer.Option("--step-indexed", help="One table per step of an episode.")] = False,
    coins: Coins = "standing",
    horizon: Horizon = None,
    wind: Wind = None,
    png: Annotated[Path | None, typer.Option(help="Draw the regret into this file (.png, .svg, .pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a learner online, seed by seed; stopped, it goes on where it was when called again.

    Example: causal-shaping train lavacross-easy --potential phi.parquet --learner q-ucb-shaping-tight -o runs/
    """
    from causal_shaping.plot.regret import draw_regret
    from causal_shaping.plot.worlds import FORMATS, save_picture

    if png is not None:
        check_target(png, FORMATS)
    if seeds < 1:
        raise ArgumentError(f"--seeds is {seeds}; it must be at least 1.")
    loaded = _world_or_environment(world, coins, horizon, wind)
    with _working(seeds) as working:
        working.on(f"Training {learner} in {world}")
        with _spoken_warnings():
            found = train_seeds(
                loaded,
                _potential(potential),
                learner,
                steps,
                range(first_seed, first_seed + seeds),
                output,
                step_indexed=step_indexed,
                counts=None if counts is None else Counts.load(counts),
                progress=lambda done, total: working.reached(done),
            )
    if png is not None:
        save_picture(draw_regret({learner: found}), png)
    if as_json:
        print(json.dumps({"settings": found.settings, "seeds": [asdict(result) for result in found.results]}, indent=2))
        return
    print_seeds(found)
    print(f"Runs are kept in {output}.")
    if png is not None:
        print(f"Picture written to {png}.")


@app.command()
def theory(
    world: Annotated[str, typer.Argument(help="A world, or a map.", autocompletion=_complete_world)],
    potential: Annotated[
        Path | None, typer.Option(help="A file of ceilings or of a potential to examine beside the usual four.")
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of the runs and of the bounds.")] = 1_000,
    seeds: Annotated[int, typer.Option(help="Runs of each learner.")] = 20,
    coins: Coins = "standing",
    horizon: Horizon = None,
    wind: Wind = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw the bounds over episodes into this file (.png, .svg, .pdf).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate the paper's definitions, lemmas and theorems for a world, as printed and corrected, beside what runs do.

    Conservative optimism, Sub_Delta, bounds of visits and of regret, the events that proofs rest on and the bonus at
    which they break, and the contraction of the causal Bellman operator of each source. Potentials come from the world
    itself, without sampling error. docs/theory.md explains each number.

    Example: causal-shaping theory lavacross-easy --potential phi.parquet
    """
    from causal_shaping.paper.theory import examine, usual_potentials
    from causal_shaping.paper.theory.picture import draw_bounds
    from causal_shaping.plot.worlds import FORMATS, save_picture

    if png is not None:
        check_target(png, FORMATS)
    loaded = _load(world, coins, horizon, wind)
    with _working(1) as working, _spoken_warnings():

        def watching(done: int, total: int, what: str) -> None:
            working.reached(done, total)
            working.on(f"Examining {world}: {what}")

        given: dict[str, Any] = dict(usual_potentials(loaded))
        if potential is not None:
            given[potential.name] = _potential(potential)
        found = examine(loaded, given, episodes, seeds, progress=watching)
        if png is not None:
            save_picture(draw_bounds(loaded, given), png)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
        return
    print_examination(found)
    if png is not None:
        print(f"Picture written to {png}.")


@app.command()
def reproduce(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="More of --only, after it.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for results and report.")] = Path("report"),
    seeds: Annotated[
        int | None, typer.Option(help=f"How many seeds to run.  (default: {SEEDS}, quick {QUICK.seeds})")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of every budget, two seeds: about a minute.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Run only some of it: world=, method=, coins=, seed=. What is there already stays in the report.",
        ),
    ] = None,
    counted_in: Annotated[
        str, typer.Option(help="Whether budgets count environment steps, as in the paper, or episodes.")
    ] = "steps",
    bcq: Annotated[bool, typer.Option("--bcq/--no-bcq", help="With BCQ, which needs the extra `deep`.")] = True,
    workers: Annotated[int | None, typer.Option(help="Processes to use.  (default: one per core)")] = None,
) -> None:
    """Run the paper's study again, with what is missing there, and write one HTML report.

    Stopped, it goes on where it was when called again. Nothing is fetched from a network.

    Example: causal-shaping reproduce --only world=lavacross-easy method=zero,causal-bound,tight
    """
    from causal_shaping.paper.study.report import write_report
    from causal_shaping.paper.study.run import run_study

    chosen = read_only([*(only or []), *(more or [])])
    if more and not only:
        raise ArgumentError(f"What is {more[0]!r}? Write --only {' '.join(more)}.")
    plan = Plan((QUICK.seeds if quick else SEEDS) if seeds is None else seeds, quick, counted_in, bcq, chosen)
    tenths = 0
    with _working(1) as working:

        def running(done: float, total: float, jobs: Sequence[str]) -> None:
            nonlocal tenths
            working.reached(done, total)
            working.on(" | ".join(jobs) or "Merging")
            if not sys.stderr.isatty() and 10 * done >= (tenths + 1) * total > 0:  # a bar is for people
                tenths = int(10 * done / total)
                print(f"{tenths}0% done", file=sys.stderr, flush=True)

        def drawing(done: int, total: int, name: str) -> None:
            working.reached(done, total)
            working.on(f"Drawing {name}")

        try:
            results = run_study(plan, output, workers, running)
            page = write_report(results, workers=workers, progress=drawing)
        except KeyboardInterrupt:
            print(f"Stopped. What is done is kept in {output}; call again to go on.", file=sys.stderr)
            raise
    print(f"{len(results.runs):,} runs and {len(results.potentials):,} potentials are in {output}.")
    print(f"Report written to {page}. Open it in a browser.")


@app.command()
def diagram(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to draw into (.svg, .png, .pdf).")],
) -> None:
    """Draw the causal diagram of a CMDP, offline and under intervention.

    Example: causal-shaping diagram -o cmdp.svg
    """
    from causal_shaping.paper.diagram import draw_diagram
    from causal_shaping.plot.worlds import save_picture

    save_picture(draw_diagram(), output)
    print(f"Diagram written to {output}.")


@contextmanager
def _spoken_warnings() -> Iterator[None]:
    """Print warnings as one line each on the error stream."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DroppedEpisodesWarning)
        warnings.simplefilter("always", AssumptionWarning)
        warnings.simplefilter("always", ShapingWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"warning: {message}", file=sys.stderr)


def _bins(text: str | None) -> dict[str, Bins]:
    """Read age=8,weight=50:70 as 8 quantiles of age and two edges of weight."""

    def cut(how: str) -> Bins:
        edges = how.removesuffix(":").split(":")  # 65: is one edge
        return Bins(quantiles=int(how)) if how.isdigit() else Bins(edges=tuple(float(edge) for edge in edges))

    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")] if text else []
        return {name: cut(how) for name, how in pairs}
    except ValueError:
        raise ArgumentError(
            f"--bins is {text!r}; write it as age=8 for quantiles, age=18:65 for edges, or age=65: for one."
        ) from None


def _load(name: str, coins: str, horizon: int | None, wind: str | None) -> World:
    try:
        given = None if wind is None else [float(part) for part in wind.split(",")]
    except ValueError:
        raise ArgumentError(
            f"--wind is {wind!r}; give five probabilities for east, south, west, north and none, such as 0,0.8,0,0,0.2."
        ) from None
    if given is not None and len(given) != len(WINDS):
        raise ArgumentError(f"--wind is {wind!r}; it must be {len(WINDS)} probabilities, for {', '.join(WINDS)}.")
    return load_world(name, coins=coins, horizon=horizon, wind=given)


def _world_or_environment(name: str, coins: str, horizon: int | None, wind: str | None) -> Any:
    """Return a world by name or map; a name with a version, such as FrozenLake-v1, is a Gymnasium id."""
    if name in list_worlds() or Path(name).exists() or "-v" not in name:
        return _load(name, coins, horizon, wind)
    import gymnasium as gym

    if coins != "standing" or horizon is not None or wind is not None:
        raise ArgumentError("--coins, --horizon and --wind are for worlds; a Gymnasium id has its own.")
    try:
        return gym.make(name)
    except (gym.error.Error, ImportError) as error:
        raise ArgumentError(f"Gymnasium cannot make {name!r}: {error}") from error


def _potential(path: Path | None) -> Potential | Ceilings | None:
    """Return what a file holds: ceilings as they are, for their tables per action, or a potential."""
    if path is None:
        return None
    return Ceilings.load(path) if kind_of(path) == Ceilings.KIND else Potential.load(path)


def _gammas(text: str) -> float | dict[str, float]:
    """Read 2 as one Gamma for all sources, and random=1,bad=3 as one each."""
    if "=" not in text:
        return _gamma(text)
    pairs = [part.rpartition("=") for part in text.split(",")]
    return {name: _gamma(gamma) for name, _, gamma in pairs}


def _gamma(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{text!r} is no Gamma; give a number from 1 to inf, or random=1 for one source.") from None
