"""`causal-shaping worlds`: list the worlds, or show one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping.cli import _options as shared, _terminal as terminal
from causal_shaping.cli._worlds import load, world_argument
from causal_shaping.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from causal_shaping.models.cmdp import Values
    from causal_shaping.worlds import World


@shared.command
def worlds(
    world: Annotated[str | None, world_argument("")] = None,
    horizon: shared.Horizon = None,
    wind: shared.Wind = None,
    png: shared.File = None,
    as_json: shared.AsJson = False,
) -> None:
    """List the worlds, or show one: its map, winds, demonstrators and optimal values.

    Example: causal-shaping worlds lavacross-hard --png hard.png

    Options:
        world: A world of the paper, or the path of a text file with a map. All worlds if left out.
    """
    if world is not None:
        shared.check_files(png=png, inputs=[world])
        _show(load(world, horizon, wind), png, as_json)
    elif (png, wind, horizon) == (None, None, None):
        _list(as_json)
    else:
        example = "causal-shaping worlds lavacross-hard --png hard.png"
        raise ArgumentError(f"These options need a world: {example}")


def _list(as_json: bool) -> None:
    """Print a row for each world."""
    from rich.table import Column

    from causal_shaping._registration import ENVIRONMENTS
    from causal_shaping.worlds import list_worlds, load_world

    rows = []
    for name in list_worlds():
        world = load_world(name)
        row: dict[str, Any] = {"world": name, "environment": ENVIRONMENTS[name]}
        row |= {"states": len(world.states), "horizon": world.horizon}
        row["demonstrators"] = list(world.demonstrators)
        row["mean_optimal_value"] = float(world.model.optimum().values @ world.model.start)
        rows.append(row)
    if as_json:
        terminal.print_json(json.dumps(rows, indent=2))
        return
    for row in rows:
        row["demonstrators"] = ", ".join(row["demonstrators"])
        row["mean_optimal_value"] = f"{row['mean_optimal_value']:.4f}"
        del row["environment"]
    heads = (Column("world", no_wrap=True), "states", "horizon", "demonstrators", "V* at start")
    terminal.print_table(heads, [[*map(str, row.values())] for row in rows], width=0)
    terminal.say(
        "Show one with `causal-shaping worlds NAME`; log one with `causal-shaping collect NAME`."
    )


def _show(world: World, png: Path | None, as_json: bool) -> None:
    """Print one world, and draw it into a file if there is one."""
    best, note = _best(world)

    def draw(path: Path) -> None:
        from causal_shaping.plot import save_picture
        from causal_shaping.plot.worlds import draw_world

        save_picture(draw_world(world, values=best.values, policy=best.greedy()), path)

    terminal.write_together([("Figure", png, draw)])
    facts = _facts(world, best, note)
    if as_json:
        terminal.print_json(json.dumps(facts, indent=2))
        return
    _print(world, facts)
    terminal.say_written([("Figure", png, draw)])


def _best(world: World) -> tuple[Values, str]:
    """Return the optimum without a horizon; if there is none, the optimum at the first step."""
    from causal_shaping.models.cmdp import Values

    try:
        return world.model.optimum(), "without time limit"
    except ModelError:
        best = world.model.optimum(horizon=world.horizon)
        return Values(best.values[0], best.q_values[0]), f"with {world.horizon} steps to go"


def _facts(world: World, best: Values, note: str) -> dict[str, Any]:
    """Return everything there is to know about a world, as plain values."""
    from causal_shaping._registration import ENVIRONMENTS

    facts: dict[str, Any] = {"name": world.name, "environment": ENVIRONMENTS.get(world.name)}
    facts |= {"horizon": world.horizon, "map": None, "actions": world.actions}
    if world.grid:
        facts["map"] = str(world.grid).split("\n")
    facts |= {"noises": world.noises, "reward_range": world.model.reward_range}
    facts |= {"demonstrators": {}, "optimal_values": note, "states": []}
    for name, demonstrator in world.demonstrators.items():
        optimum = world.model.demonstrated(demonstrator).optimum(horizon=world.horizon)
        facts["demonstrators"][name] = {"return": float(optimum.values[0] @ world.model.start)}
    for s, label in enumerate(world.states):
        state: Any = {"state": label, "terminal": bool(world.model.terminal[s])}
        state |= {"noise": world.model.noise[s].tolist(), "value": float(best.values[s])}
        facts["states"].append(state | {"action": world.actions[best.greedy()[s]]})
    return facts


def _print(world: World, facts: dict[str, Any]) -> None:
    """Print the map, the optimum, the probabilities of the noise, and the demonstrators."""
    lines = [f"{world.title} ({world.name}): horizon {world.horizon}"]
    if facts["environment"]:
        lines.append(f'gymnasium.make("{facts["environment"]}")')
    terminal.say("\n".join([*lines, *(" ".join(row) for row in facts["map"] or ())]))
    rows = []
    for state in facts["states"]:
        if not state["terminal"]:
            values = f"{state['value']:.3f}", str(state["action"])
            rows.append((*map(str, state["state"]), *values, *(f"{p:g}" for p in state["noise"])))
    heads = (*world.space.columns, "value", "action", *map(str, world.noises))
    title = f"Optimal values and actions, {facts['optimal_values']}; probabilities of hidden noise"
    terminal.print_table(heads, rows, title=title, width=0)
    earned = [(name, f"{one['return']:.3f}") for name, one in facts["demonstrators"].items()]
    terminal.print_table(("demonstrator", "mean return, seeing the noise"), earned, width=0)
    limit = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    terminal.say(f"The best policy that does not see the noise earns {limit:.3f} an episode.")
