"""`causal-shaping theory`: the paper's statements for one world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_shaping.cli._options import AsJson, Png, Table, check_files, option
from causal_shaping.cli._paper import needs_paper
from causal_shaping.cli._terminal import print_list, print_table, progress_bar, say, say_written, spoken_warnings
from causal_shaping.cli._worlds import STANDING, WORLD, Coins, Horizon, Wind, complete_world, load

if TYPE_CHECKING:
    from causal_shaping.paper.theory import Examination, RegretBound


def theory(
    world: Annotated[str, typer.Argument(metavar="WORLD", help=WORLD, autocompletion=complete_world)],
    potential: Annotated[
        Path | None,
        option("A file of ceilings, or of a potential, to examine beside the usual four.", metavar="FILE"),
    ] = None,
    episodes: Annotated[int, option("Episodes of the runs and of the bounds.", metavar="N")] = 1_000,
    seeds: Annotated[int, option("Runs of each learner.", metavar="N")] = 20,
    coins: Coins = STANDING,
    horizon: Horizon = None,
    wind: Wind = None,
    output: Table = None,
    png: Png = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate the paper's definitions, lemmas and theorems for a world, as printed and corrected, beside what runs do.

    Conservative optimism, Sub_Delta, bounds of visits and of regret, the events that proofs rest on and the bonus at
    which they break, and the contraction of the causal Bellman operator of each source. Potentials come from the world
    itself, without sampling error. docs/theory.md explains each number. The table of -o has a row per potential.

    Example: causal-shaping theory lavacross-easy --potential phi.parquet
    """
    from causal_shaping.cli import _bridge

    check_files(output, png)
    with needs_paper("The paper's theory"):
        from causal_shaping.paper.theory import examine, usual_potentials
        from causal_shaping.paper.theory.picture import draw_bounds
        from causal_shaping.plot.worlds import save_picture
    loaded = load(world, coins, horizon, wind)
    with progress_bar() as progress, spoken_warnings():
        given: dict[str, Any] = dict(usual_potentials(loaded))
        if potential is not None:
            given[potential.name] = _bridge.load_potential(potential)
        found = examine(
            loaded,
            given,
            episodes,
            seeds,
            progress=lambda done, total, what: progress(done, total, f"Examining {world}: {what}"),
        )
        if output is not None:
            import pyarrow as pa

            _bridge.write_table(output, pa.Table.from_pylist([_flat(row) for row in found.as_json()["potentials"]]))
        if png is not None:
            save_picture(draw_bounds(loaded, given), png)
    if as_json:
        print(json.dumps(found.as_json(), indent=2, allow_nan=False))
        return
    print_examination(found)
    say_written({"Table": output, "Figure": png})


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return a row without its lists, with what is nested under longer names."""
    result: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            result |= _flat(value, f"{before}{name}_")
        elif not isinstance(value, list):
            result[before + name] = value
    return result


def print_examination(found: Examination) -> None:
    """Print the theory of one world."""
    from rich.table import Column

    from causal_shaping.paper.theory.regret import number_text

    def numbers(*heads: str) -> list[Column]:
        return [Column(head, justify="right") for head in heads]

    low, high = found.reward_range
    say(
        f"{found.world}: {found.horizon} steps, rewards from {low:g} to {high:g}, V* from {found.value_range[0]:.3g} "
        f"to {found.value_range[1]:.3g}, smallest gap {found.smallest_gap:.3g}; {found.episodes:,} episodes, "
        f"{found.seeds} runs each."
    )
    print_table(
        ("potential", "conservative optimism"),
        [(one.name, one.optimism.verdict) for one in found.potentials],
        title="Definition 4.1: V* <= phi <= H b, at every step",
        width=132,
    )
    measured = ("bound", "useful from", "regret", "bound / regret")
    print_table(
        ("potential", *numbers("in Sub_Delta", "visits / bound", *measured)),
        [
            (
                one.name,
                f"{one.in_sub_delta} of {one.pairs}",
                f"{one.printed_visits:.2g}",
                _bound(one.printed),
                number_text(one.printed_from),
                f"{one.printed_regret[0]:.4g}",
                number_text(one.printed_tightness),
            )
            for one in found.potentials
        ],
        title="As printed, for rewards from 0 to 1, in units of this world",
        width=132,
    )
    rows = [
        (
            one.name,
            "-" if one.settled is None else f"{one.settled:,} of {one.suboptimal:,}",
            "-" if one.visits is None else f"{one.visits:.2g}",
            _bound(one.bound),
            number_text(one.bound_from),
            f"{one.regret[0]:.4g}",
            number_text(one.tightness),
            f"{min(one.held.values()):.0%}",
            f"{one.needed:.2g}",
        )
        for one in found.potentials
    ]
    rows.append(("Q-UCB", "", "", _bound(found.q_ucb), number_text(found.q_ucb_from), "", "", "", ""))
    heads = numbers("settled", "visits / bound", *measured, "events held", "smallest c")
    print_table(("potential", *heads), rows, title="Corrected, for any sign", width=132)
    for title, sweeps in (
        (f"Smaller bonuses: corrected learner, {found.swept}; c = 1 is proven", found.smaller),
        (f"Smaller bonuses: printed learner, {found.swept}, rewards from 0 to 1", found.printed_smaller),
    ):
        names = list(sweeps[0].held)
        print_table(
            ("c", *numbers(*names, "regret")),
            [
                (f"{sweep.c:g}", *(f"{sweep.held[name]:.0%}" for name in names), f"{sweep.regret:.4g}")
                for sweep in sweeps
            ],
            title=title,
            width=132,
        )
    print_table(
        ("source", "the causal Bellman operator"),
        [(source, one.verdict) for source, one in found.contractions.items()],
        title="Proposition H.2: is it a contraction?",
        width=132,
    )
    print_list(found.findings())


def _bound(bound: RegretBound | None) -> str:
    """Return a bound of the regret, and whether it is vacuous."""
    if bound is None:
        return "-"
    return f"{bound.total:.2g}{' (vacuous)' if bound.vacuous else ''}"
