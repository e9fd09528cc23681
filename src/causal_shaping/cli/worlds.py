"""`causal-shaping worlds`: list the worlds, or show one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_shaping.cli._options import AsJson, Png, check_files
from causal_shaping.cli._terminal import print_table, say, say_written
from causal_shaping.cli._worlds import WORLD, Horizon, Wind, complete_world, load
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.models.cmdp import Values
    from causal_shaping.worlds import World


def worlds(
    world: Annotated[
        str | None,
        typer.Argument(metavar="WORLD", help=WORLD + " All worlds if left out.", autocompletion=complete_world),
    ] = None,
    horizon: Horizon = None,
    wind: Wind = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """List the worlds, or show one: its map, winds, demonstrators and optimal values.

    Example: causal-shaping worlds lavacross-hard --png hard.png
    """
    if world is None and (png, wind, horizon) != (None, None, None):
        raise ArgumentError("These options need a world: causal-shaping worlds lavacross-hard --png hard.png")
    check_files(png=png, inputs=[world])
    if world is None:
        from causal_shaping.worlds import list_worlds

        rows = [_row(name) for name in list_worlds()]
        facts: Any = rows
    else:
        loaded = load(world, horizon, wind)
        best, note = _best(loaded)
        facts = _facts(loaded, best, note)
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
        _print_world(loaded, facts)
    say_written({"Figure": png})


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


def _print_world(world: World, facts: dict[str, Any]) -> None:
    """Print one world: map, optimum, probabilities of the noise, demonstrators."""
    say(f"{world.title} ({world.name}): horizon {world.horizon}")
    if facts["environment"]:
        say(f'gymnasium.make("{facts["environment"]}")')
    for row in facts["map"] or ():
        say(" ".join(row))
    rows = [
        (*map(str, state["state"]), f"{state['value']:.3f}", str(state["action"]), *(f"{p:g}" for p in state["noise"]))
        for state in facts["states"]
        if not state["terminal"]
    ]
    title = f"Optimal values and actions, {facts['optimal_values']}; probabilities of the hidden noise"
    print_table((*world.space.columns, "value", "action", *map(str, world.noises)), rows, title=title, width=0)
    earned = [(name, f"{found['return']:.3f}") for name, found in facts["demonstrators"].items()]
    print_table(("demonstrator", "mean return, with the noise in sight"), earned, width=0)
    limit = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    say(f"The best policy without the noise in sight earns {limit:.3f} an episode.")
