"""`causal-shaping worlds`: list the worlds, or show one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_shaping.cli._options import AsJson, Png, Table, check_files
from causal_shaping.cli._terminal import print_table, say, say_written, wide_console
from causal_shaping.cli._worlds import STANDING, WORLD, Coins, Horizon, Wind, complete_world, load
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.models.cmdp import Values
    from causal_shaping.worlds import World

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "still": "·"}


def worlds(
    world: Annotated[
        str | None,
        typer.Argument(metavar="WORLD", help=WORLD + " All worlds if left out.", autocompletion=complete_world),
    ] = None,
    coins: Coins = STANDING,
    horizon: Horizon = None,
    wind: Wind = None,
    output: Table = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """List the worlds, or show one: its map, winds, demonstrators and optimal values.

    Example: causal-shaping worlds lavacross-hard --png hard.png
    """
    if world is None and (png, wind, horizon, coins) != (None, None, None, STANDING):
        raise ArgumentError("These options need a world: causal-shaping worlds lavacross-hard --png hard.png")
    from causal_shaping.io.files import replacing_together, write_table

    check_files(output, png, inputs=[world])
    if world is None:
        from causal_shaping.worlds import list_worlds

        rows = [_row(name) for name in list_worlds()]
        facts: Any = rows
    else:
        from causal_shaping.data.result import state_parts

        loaded = load(world, coins, horizon, wind)
        best, note = _best(loaded)
        facts = _facts(loaded, best, note)
        rows = [
            state_parts(loaded.space, s) | {name: state[name] for name in ("terminal", "value", "action")}
            for s, state in enumerate(facts["states"])
        ]
    with replacing_together():
        if output is not None:
            import pyarrow as pa

            plain = [row | {"demonstrators": ", ".join(row["demonstrators"])} if world is None else row for row in rows]
            write_table(output, pa.Table.from_pylist(plain))
        if png is not None:
            from causal_shaping.plot import save_picture
            from causal_shaping.plot.worlds import draw_world

            save_picture(draw_world(loaded, values=best.values, policy=best.greedy()), png)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    if world is None:
        _print_worlds(rows)
    else:
        _print_world(loaded, best, facts)
    say_written({"Table": output, "Figure": png})


def _row(name: str) -> dict[str, Any]:
    """Return what the list says of a world."""
    from causal_shaping._registration import ENVIRONMENTS
    from causal_shaping.worlds import load_world

    world = load_world(name)
    return {
        "world": name,
        "environment": ENVIRONMENTS[name],
        "states": len(world.states),
        "horizon": world.horizon,
        "demonstrators": list(world.demonstrators),
        "mean_optimal_value": float(world.model.optimum().values @ world.model.start),
    }


def _best(world: World) -> tuple[Values, str]:
    """Return the optimum without a horizon, or where there is none that of the first step."""
    from causal_shaping.errors import ModelError
    from causal_shaping.models.cmdp import Values

    try:
        return world.model.optimum(), "without time limit"
    except ModelError:
        best = world.model.optimum(horizon=world.horizon)
        return Values(best.values[0], best.q_values[0]), f"with {world.horizon} steps to go"


def _facts(world: World, best: Values, note: str) -> dict[str, Any]:
    """Return what there is to know about a world."""
    from causal_shaping._registration import ENVIRONMENTS

    def earned(beta: Any) -> float:
        watched = world.model.demonstrated(beta).optimum(horizon=world.horizon)
        return float(watched.values[0] @ world.model.start)

    return {
        "name": world.name,
        "environment": ENVIRONMENTS.get(world.name),
        "horizon": world.horizon,
        "coins": world.coins,
        "map": str(world.grid).split("\n") if world.grid else None,
        "actions": world.actions,
        "noises": world.noises,
        "reward_range": world.model.reward_range,
        "demonstrators": {name: {"return": earned(beta)} for name, beta in world.demonstrators.items()},
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


def _print_worlds(rows: list[dict[str, Any]]) -> None:
    from rich.table import Column

    heads = (Column("world", no_wrap=True), "states", "horizon", "demonstrators", "V* at start")
    shown = []
    for row in rows:
        watched, value = ", ".join(row["demonstrators"]), f"{row['mean_optimal_value']:.4f}"
        shown.append((row["world"], str(row["states"]), str(row["horizon"]), watched, value))
    print_table(heads, shown, width=0)
    say("Show one with `causal-shaping worlds NAME`; log one with `causal-shaping collect NAME`.")


def _print_world(world: World, best: Values, facts: dict[str, Any]) -> None:
    """Print one world: map, winds, optimum, demonstrators."""
    title = f"{world.title} ({world.name}): horizon {world.horizon}"
    wide_console(world.grid.width * 11 if world.grid else 0).print(title, style="bold")
    if facts["environment"]:
        say(f'gymnasium.make("{facts["environment"]}")')
    if world.grid is not None:
        _print_grid(world, best, facts["optimal_values"])
    else:
        rows = [
            (*map(str, state["state"]), f"{state['value']:.3f}", str(state["action"]))
            for state in facts["states"]
            if not state["terminal"]
        ]
        title = f"Optimal values and actions, {facts['optimal_values']}"
        print_table((*world.space.columns, "value", "action"), rows, title=title, width=0)
    earned = [(name, f"{found['return']:.3f}") for name, found in facts["demonstrators"].items()]
    print_table(("demonstrator", "mean return, with the noise in sight"), earned, width=0)
    limit = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    say(f"The best policy without the noise in sight earns {limit:.3f} an episode.")


def _print_grid(world: World, best: Values, note: str) -> None:
    from rich.text import Text

    from causal_shaping.worlds.grid import ACTIONS, WALL

    grid = world.grid
    assert grid is not None
    console = wide_console(grid.width * 11)
    styles = {"L": "red", "c": "yellow", "G": "green", WALL: "dim"}
    console.print()
    for row in grid.rows:
        console.print(Text.assemble(*((f"{mark} ", styles.get(mark, "")) for mark in row)))
    winds: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    for cell in grid.starts:
        winds.setdefault(tuple(world.model.noise[world.state_at(*cell)].tolist()), []).append(cell)
    rows = []
    for shares, cells in winds.items():
        where = "everywhere" if len(winds) == 1 else " ".join(f"({x},{y})" for x, y in cells)
        rows.append((where, *(f"{p:g}" for p in shares)))
    title = "Wind: probabilities of the air pushing each way"
    print_table(("wind at", *world.noises), rows, title=title, width=grid.width * 11)
    policy, arrows = best.greedy(), _arrows(console.encoding)

    def shown(x: int, y: int) -> Text | str:
        if (x, y) not in grid.starts:
            return Text(grid[x, y], styles[grid[x, y]])
        state = world.state_at(x, y)
        return f"{best.values[state]:.3f} {arrows[ACTIONS[policy[state]]]}"

    values = [[shown(x, y) for x in range(1, grid.width - 1)] for y in range(1, grid.height - 1)]
    title = f"Optimal values and actions, {note}"
    print_table([""] * len(values[0]), values, title=title, width=grid.width * 11, show_header=False, show_lines=True)


def _arrows(encoding: str) -> dict[str, str]:
    """Return a sign for each action that the terminal can show."""
    try:
        "".join(ARROWS.values()).encode(encoding)
    except UnicodeEncodeError:
        return {action: action[0] for action in ARROWS}
    return ARROWS
