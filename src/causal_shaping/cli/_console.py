"""What the command line prints: tables for people."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from causal_shaping._registration import ENVIRONMENTS
from causal_shaping.bounds.sensitivity import Sensitivity
from causal_shaping.errors import ModelError
from causal_shaping.learners import Seeds
from causal_shaping.models.cmdp import Values
from causal_shaping.paper.theory import Examination, RegretBound
from causal_shaping.worlds import World, list_worlds, load_world
from causal_shaping.worlds.grid import ACTIONS, WALL

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "still": "·"}


def wide_console(width: int = 0) -> Console:
    """Return where tables go: at least `width` wide, and text taken as it is, not as markup."""
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, width)
    return console


def arrows_of(console: Console) -> dict[str, str]:
    """Return a sign for each action that the terminal can show."""
    try:
        "".join(ARROWS.values()).encode(console.encoding)
    except UnicodeEncodeError:
        return {action: action[0] for action in ARROWS}
    return ARROWS


def best_values(world: World) -> tuple[Values, str]:
    """Return the optimum without a horizon, or where there is none that of the first step."""
    try:
        return world.model.optimum(), "without time limit"
    except ModelError:
        best = world.model.optimum(horizon=world.horizon)
        return Values(best.values[0], best.q_values[0]), f"with {world.horizon} steps to go"


def earned(world: World, name: str) -> float:
    """Return what a demonstrator earns an episode, with the noise in sight."""
    watched = world.model.demonstrated(world.demonstrators[name]).optimum(horizon=world.horizon)
    return float(watched.values[0] @ world.model.start)


def world_facts(world: World, best: Values, note: str) -> dict[str, Any]:
    """Return what there is to know about a world, for JSON."""
    return {
        "name": world.name,
        "environment": ENVIRONMENTS.get(world.name),
        "horizon": world.horizon,
        "coins": world.coins,
        "map": str(world.grid).split("\n") if world.grid else None,
        "actions": world.actions,
        "noises": world.noises,
        "reward_range": world.model.reward_range,
        "demonstrators": {name: {"return": earned(world, name)} for name in world.demonstrators},
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


def print_worlds(as_json: bool) -> None:
    """Print a row per world."""
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
    console = wide_console()
    console.print(table)
    console.print("Show one with `causal-shaping worlds NAME`; log one with `causal-shaping collect NAME`.")


def print_world(world: World, best: Values, note: str) -> None:
    """Print one world: map, winds, optimum, demonstrators."""
    console = wide_console(width=world.grid.width * 11 if world.grid else 0)
    console.print(f"{world.title} ({world.name}): horizon {world.horizon}", style="bold")
    if world.name in ENVIRONMENTS:
        console.print(f'gymnasium.make("{ENVIRONMENTS[world.name]}")')
    if world.grid is not None:
        _print_grid(console, world, best, note)
    else:
        _print_states(console, world, best, note)
    table = Table("demonstrator", "earns an episode, the noise in sight")
    for name in world.demonstrators:
        table.add_row(name, f"{earned(world, name):.3f}")
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
    policy, arrows = best.greedy(), arrows_of(console)
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


def print_sensitivity(found: Sensitivity) -> None:
    """Print a row per Gamma and what follows."""
    console = wide_console(width=100)
    states = int(found.bounded.sum())
    table = Table(
        "confounding",
        "mean ceiling",
        "mean floor",
        "provably suboptimal",
        f"best action singled out (of {states} states)",
    )
    for row in found.rows():
        shown = "inf" if math.isinf(row["confounding"]) else f"{row['confounding']:g}"
        if row["contradiction"]:
            table.add_row(shown, "the sources", "contradict", "each other", "")
        else:
            numbers = (f"{row['ceiling']:.4f}", f"{row['floor']:.4f}", f"{row['suboptimal']:.1%}")
            table.add_row(shown, *numbers, f"{row['singled_out']}")
    console.print(table)
    for sentence in found.findings():
        console.print(f"- {sentence}")


def print_seeds(found: Seeds) -> None:
    """Print what seeds came to: means and 95% intervals over them."""
    console = wide_console(width=80)
    settings = found.settings
    console.print(
        f"{settings['learner']} in {settings['world']}: {len(found.results)} seeds of {settings['steps']:,} steps"
    )
    table = Table("", "mean", "95% interval over seeds")
    for name, shown in (
        ("regret", "regret"),
        ("mean_return", "return, last tenth of the episodes"),
        ("optimal", "states with an optimal action"),
        ("argmax_match", "states with the first optimal action"),
    ):
        interval = found.interval(name)
        if interval is not None:
            mean, low, high = (f"{value:.4g}" for value in interval)
            table.add_row(shown, mean, f"{low} to {high}")
    console.print(table)


def print_examination(found: Examination) -> None:
    """Print the theory of one world."""
    console = wide_console(width=132)
    low, high = found.reward_range
    console.print(
        f"{found.world}: {found.horizon} steps, rewards from {low:g} to {high:g}, V* from {found.value_range[0]:.3g} "
        f"to {found.value_range[1]:.3g}, smallest gap {found.smallest_gap:.3g}; {found.episodes:,} episodes, "
        f"{found.seeds} runs each."
    )
    table = Table("potential", "conservative optimism", title="Definition 4.1: V* <= phi <= H b, at every step")
    for one in found.potentials:
        table.add_row(one.name, one.optimism.verdict)
    console.print(table)
    measured = ("bound", "useful from", "regret", "bound / regret")
    table = Table(
        "potential",
        *(Column(head, justify="right") for head in ("in Sub_Delta", "visits / bound", *measured)),
        title="As printed, for rewards from 0 to 1, in units of this world",
    )
    for one in found.potentials:
        table.add_row(
            one.name,
            f"{one.in_sub_delta} of {one.pairs}",
            f"{one.printed_visits:.2g}",
            bound_text(one.printed),
            number_text(one.printed_from),
            f"{one.printed_regret[0]:.4g}",
            number_text(one.printed_tightness),
        )
    console.print(table)
    heads = ("settled", "visits / bound", *measured, "events held", "smallest c")
    table = Table("potential", *(Column(head, justify="right") for head in heads), title="Corrected, for any sign")
    for one in found.potentials:
        table.add_row(
            one.name,
            "-" if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
            "-" if one.visits is None else f"{one.visits:.2g}",
            bound_text(one.bound),
            number_text(one.bound_from),
            f"{one.regret[0]:.4g}",
            number_text(one.tightness),
            f"{min(one.held.values()):.0%}",
            f"{one.needed:.2g}",
        )
    table.add_row("Q-UCB", "", "", bound_text(found.q_ucb), number_text(found.q_ucb_from), "", "", "", "")
    console.print(table)
    for title, sweeps in (
        (f"Smaller bonuses: corrected learner, {found.swept}; c = 1 is proven", found.smaller),
        (f"Smaller bonuses: printed learner, {found.swept}, rewards from 0 to 1", found.printed_smaller),
    ):
        names = list(sweeps[0].held)
        table = Table("c", *(Column(name, justify="right") for name in (*names, "regret")), title=title)
        for sweep in sweeps:
            table.add_row(f"{sweep.c:g}", *(f"{sweep.held[name]:.0%}" for name in names), f"{sweep.regret:.4g}")
        console.print(table)
    table = Table("source", "the causal Bellman operator", title="Proposition H.2: is it a contraction?")
    for source, one_source in found.contractions.items():
        table.add_row(source, one_source.verdict)
    console.print(table)
    for sentence in found.findings():
        console.print(f"- {sentence}")


def bound_text(bound: RegretBound | None) -> str:
    """Return a bound of the regret, and whether it says anything."""
    if bound is None:
        return "-"
    return f"{bound.total:.2g}{' (vacuous)' if bound.vacuous else ''}"


def number_text(number: float | None) -> str:
    """Return two digits, or a dash if there is no such number."""
    return f"{number:.2g}" if number is not None and math.isfinite(number) else "-"
