"""The command line: thin, it parses, calls and prints."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from causal_shaping import __version__
from causal_shaping.bounds.diagnostics import LEVEL
from causal_shaping.cmdp import Values
from causal_shaping.data import Bins
from causal_shaping.errors import CausalShapingError, ModelError
from causal_shaping.files import check_target
from causal_shaping.inspection import Inspection, draw_inspection, inspect_counts
from causal_shaping.logs import DroppedEpisodes, check_logs, count
from causal_shaping.logs.arguments import open_all
from causal_shaping.logs.parquet import LOG_FILES
from causal_shaping.logs.summary import summarise
from causal_shaping.worlds import World, list_worlds, load_world
from causal_shaping.worlds.grid import ACTIONS, WALL
from causal_shaping.worlds.registration import ENVIRONMENTS

app = typer.Typer(
    name="causal-shaping",
    help="Reward shaping from confounded logs: what somebody else's logs are worth, and how to use them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "still": "·"}


def _version(wanted: bool) -> None:
    if wanted:
        print(f"causal-shaping {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


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
Horizon = Annotated[int | None, typer.Option(help="Steps after which an episode is cut.  [default: the world's]")]
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
            raise ModelError("These options need a world: causal-shaping worlds lavacross-hard --png hard.png")
        _print_worlds(as_json)
        return
    loaded = _load(world, coins, horizon, wind)
    best, note = _best(loaded)
    if png is not None:
        from causal_shaping.worlds.picture import draw_world, save_picture

        save_picture(draw_world(loaded, values=best.values, policy=best.greedy()), png)
    if as_json:
        print(json.dumps(_facts(loaded, best, note), indent=2))
    else:
        _print_world(loaded, best, note)
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
        logs.write(output)
    print(f"{len(logs):,} steps in {logs.episodes:,} episodes of {demonstrator} written to {output}.")


Listed = Annotated[list[str], typer.Argument(metavar="LOGS", help="Logs, one source each: [NAME=]FILE[,FILE...].")]
COLUMNS = "Columns of your files"


@app.command()
def inspect(
    logs: Listed,
    state: Annotated[
        str | None, typer.Option(help="State columns, commas between them.  [default: state]", rich_help_panel=COLUMNS)
    ] = None,
    action: Annotated[str, typer.Option(help="The action taken.", rich_help_panel=COLUMNS)] = "action",
    reward: Annotated[str, typer.Option(help="The reward.", rich_help_panel=COLUMNS)] = "reward",
    next_state: Annotated[
        str | None,
        typer.Option(help="Columns of the state after.  [default: next_ and the state's]", rich_help_panel=COLUMNS),
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
            help="Cut columns of real numbers: age=8 into 8 quantiles of the first log, age=18:65 at 18 and 65.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Chance of any false contradiction.")] = LEVEL,
    skip_bad_episodes: Annotated[bool, typer.Option("--skip-bad-episodes", help="Leave out bad episodes.")] = False,
    memory_limit: Annotated[str | None, typer.Option(help="The most memory to use, such as 2GB.")] = None,
    png: Annotated[Path | None, typer.Option(help="Draw coverage into this file (.png, .svg, .pdf).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Tell what logs cover, whether sources contradict each other, and what they can prove.

    Example: causal-shaping inspect good.parquet bad.parquet trial=random.csv
    """
    from causal_shaping.worlds.picture import FORMATS, save_picture

    if png is not None:
        check_target(png, FORMATS)
    if not 0 < level < 1:
        raise ModelError(f"--level is {level}; it must be between 0 and 1.")
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
    tables, summaries = [], []
    console, quiet = Console(stderr=True), not sys.stderr.isatty()
    with Progress(*Progress.get_default_columns(), console=console, transient=True, disable=quiet) as progress:
        work = progress.add_task("", total=2 * len(logs) + 2)
        for opened in open_all(logs, bins=_bins(bins), **columns):
            progress.update(work, description=f"Checking {opened.origin}")
            with _spoken_warnings():
                tables.append(check_logs(opened, skip_bad_episodes=skip_bad_episodes))
            progress.advance(work)
            summaries += summarise(tables[-1])
            progress.advance(work)
        progress.update(work, description="Counting")
        counts = count(tables)
        progress.update(work, description="Comparing sources", advance=1)
        dropped = {table.origin: table.dropped for table in tables if table.dropped is not None}
        found = inspect_counts(counts, summaries, level, dropped)
    if png is not None:
        save_picture(draw_inspection(found), png)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
        return
    _print_inspection(found)
    if png is not None:
        print(f"Picture written to {png}.")


@app.command()
def diagram(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to draw into (.svg, .png, .pdf).")],
) -> None:
    """Draw the causal diagram of a CMDP, offline and under intervention.

    Example: causal-shaping diagram -o cmdp.svg
    """
    from causal_shaping.diagram import draw_diagram
    from causal_shaping.worlds.picture import save_picture

    save_picture(draw_diagram(), output)
    print(f"Diagram written to {output}.")


def _console(width: int = 0) -> Console:
    """Return where tables go: at least `width` wide, and text taken as it is, not as markup."""
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, width)
    return console


def _arrows(console: Console) -> dict[str, str]:
    """Return a sign for each action that the terminal can show."""
    try:
        "".join(ARROWS.values()).encode(console.encoding)
    except UnicodeEncodeError:
        return {action: action[0] for action in ARROWS}
    return ARROWS


@contextmanager
def _spoken_warnings() -> Iterator[None]:
    """Print warnings as one line each on the error stream."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DroppedEpisodes)
        yield
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)


def _bins(text: str | None) -> dict[str, Bins]:
    """Read age=8,weight=50:70 as 8 quantiles of age and two edges of weight."""

    def cut(how: str) -> Bins:
        return Bins(quantiles=int(how)) if how.isdigit() else Bins(edges=tuple(float(edge) for edge in how.split(":")))

    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")] if text else []
        return {name: cut(how) for name, how in pairs}
    except ValueError:
        raise ModelError(f"--bins is {text!r}; write it as age=8 for quantiles or age=18:65 for edges.") from None


def _print_inspection(found: Inspection) -> None:
    console = _console(width=100)
    table = Table("source", "episodes", "steps", "length", "ended", "cut", "return", "rewards", title="Episodes")
    for item in found.summaries:
        table.add_row(
            item.source,
            f"{item.episodes:,}",
            f"{item.steps:,}",
            f"{item.mean_length:.1f} (most {item.longest})",
            f"{item.terminated:,}",
            f"{item.truncated:,}",
            f"{item.mean_return:.3g} ({item.lowest_return:.3g} to {item.highest_return:.3g})",
            f"{item.lowest_reward:.3g} to {item.highest_reward:.3g}",
        )
    console.print(table)
    table = Table("source", "states left", "few visits", "untried actions", "most frequent action", title="Coverage")
    for covered in found.coverage:
        table.add_row(
            covered.source,
            f"{covered.states}",
            f"{len(covered.few)}",
            f"{len(covered.untried)}",
            f"{covered.action_share:.0%}",
        )
    console.print(table)
    for sentence in found.findings():
        console.print(f"- {sentence}")


def _load(name: str, coins: str, horizon: int | None, wind: str | None) -> World:
    try:
        given = None if wind is None else [float(part) for part in wind.split(",")]
    except ValueError:
        raise ModelError(
            f"--wind is {wind!r}; give five probabilities for east, south, west, north and none, such as 0,0.8,0,0,0.2."
        ) from None
    return load_world(name, coins=coins, horizon=horizon, wind=given)


def _best(world: World) -> tuple[Values, str]:
    """Return the optimum without a horizon, or where there is none that of the first step."""
    try:
        return world.model.optimum(), "without time limit"
    except ModelError:
        best = world.model.optimum(horizon=world.horizon)
        return Values(best.values[0], best.q_values[0]), f"with {world.horizon} steps to go"


def _earned(world: World, name: str) -> float:
    """Return what a demonstrator earns an episode, with the noise in sight."""
    watched = world.model.demonstrated(world.demonstrators[name]).optimum(horizon=world.horizon)
    return float(watched.values[0] @ world.model.start)


def _facts(world: World, best: Values, note: str) -> dict[str, Any]:
    return {
        "name": world.name,
        "environment": ENVIRONMENTS.get(world.name),
        "horizon": world.horizon,
        "coins": world.coins,
        "map": str(world.grid).split("\n") if world.grid else None,
        "actions": world.actions,
        "noises": world.noises,
        "reward_range": world.model.reward_range,
        "demonstrators": {name: {"return": _earned(world, name)} for name in world.demonstrators},
        "optimal_values": note,
        "states": [
            {
                "state": label,
                "terminal": bool(world.model.terminal[s]),
                "noise": world.model.noise[s].tolist(),
                "value": float(best.values[s]),
                "action": world.actions[best.greedy()[s]],
            }
            for s, label in enumerate(world.states)
        ],
    }


def _print_worlds(as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for name in list_worlds():
        world = load_world(name)
        best = world.model.optimum()
        rows.append(
            {
                "world": name,
                "environment": ENVIRONMENTS[name],
                "states": len(world.states),
                "horizon": world.horizon,
                "demonstrators": list(world.demonstrators),
                "mean_optimal_value": float(best.values @ world.model.start),
            }
        )
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(Column("world", no_wrap=True), "states", "horizon", "demonstrators", "V* at start")
    for row in rows:
        table.add_row(
            row["world"],
            f"{row['states']}",
            f"{row['horizon']}",
            ", ".join(row["demonstrators"]),
            f"{row['mean_optimal_value']:.4f}",
        )
    console = _console()
    console.print(table)
    console.print("Show one with `causal-shaping worlds NAME`; log one with `causal-shaping collect NAME`.")


def _print_world(world: World, best: Values, note: str) -> None:
    console = _console(width=world.grid.width * 11 if world.grid else 0)
    console.print(f"{world.title} ({world.name}): horizon {world.horizon}", style="bold")
    if world.name in ENVIRONMENTS:
        console.print(f'gymnasium.make("{ENVIRONMENTS[world.name]}")')
    if world.grid is not None:
        _print_grid(console, world, best, note)
    else:
        _print_states(console, world, best, note)
    table = Table("demonstrator", "earns an episode, the noise in sight")
    for name in world.demonstrators:
        table.add_row(name, f"{_earned(world, name):.3f}")
    console.print(table)
    limit = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    console.print(f"The best policy without the noise in sight earns {limit:.3f}.")


def _print_grid(console: Console, world: World, best: Values, note: str) -> None:
    grid = world.grid
    assert grid is not None
    styles = {"L": "red", "c": "yellow", "G": "green", WALL: "dim"}
    console.print()
    for row in grid.rows:
        console.print(Text.assemble(*((f"{mark} ", styles.get(mark, "")) for mark in row)))
    winds: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    for cell in grid.starts:
        state = world.state_at(*cell)
        winds.setdefault(tuple(world.model.noise[state].tolist()), []).append(cell)
    table = Table("wind at", *world.noises, title="Wind: how likely the air pushes which way")
    for distribution, cells in winds.items():
        where = "everywhere" if len(winds) == 1 else " ".join(f"({x},{y})" for x, y in cells)
        table.add_row(where, *(f"{p:g}" for p in distribution))
    console.print(table)
    policy, arrows = best.greedy(), _arrows(console)
    table = Table(title=f"Optimal values and actions, {note}", show_header=False, show_lines=True)
    for y, row in enumerate(grid.rows[1:-1], 1):
        shown: list[Text | str] = []
        for x, mark in enumerate(row[1:-1], 1):
            if (x, y) in grid.starts:
                state = world.state_at(x, y)
                shown.append(f"{best.values[state]:.3f} {arrows[ACTIONS[policy[state]]]}")
            else:
                shown.append(Text(mark, styles[mark]))
        table.add_row(*shown)
    console.print(table)


def _print_states(console: Console, world: World, best: Values, note: str) -> None:
    table = Table(*world.space.columns, "value", "action", title=f"Optimal values and actions, {note}")
    policy = best.greedy()
    for s in np.flatnonzero(~world.model.terminal):
        label = world.states[s]
        assert isinstance(label, tuple)
        table.add_row(*map(str, label), f"{best.values[s]:.3f}", str(world.actions[policy[s]]))
    console.print(table)
