"""`causal-shaping theory`: the paper's statements for one world."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from causal_shaping._extras import needs_extra
from causal_shaping.cli._options import AsJson, Png, Table, check_files, option
from causal_shaping.cli._terminal import progress_bar, say_written, spoken_warnings, wide_console
from causal_shaping.cli._worlds import STANDING, WORLD, Coins, Horizon, Wind, complete_world, load


def theory(
    world: Annotated[str, typer.Argument(metavar="WORLD", help=WORLD, autocompletion=complete_world)],
    potential: Annotated[
        Path | None, option("A file of ceilings, or of a potential, to examine beside the usual four.", "FILE")
    ] = None,
    episodes: Annotated[int, option("Episodes of the runs and of the bounds.", "N")] = 1_000,
    seeds: Annotated[int, option("Runs of each learner.", "N")] = 20,
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
    from causal_shaping.io.files import replacing_together, write_table
    from causal_shaping.shaping.potentials import load_ceilings_or_potential

    check_files(output, png, inputs=[world, potential])
    with needs_extra("The paper's theory and its figures", "paper"):
        from causal_shaping.paper.theory import examine, usual_potentials
        from causal_shaping.paper.theory.picture import draw_bounds
        from causal_shaping.paper.theory.printing import print_examination
        from causal_shaping.plot import save_picture
    loaded = load(world, coins, horizon, wind)
    with progress_bar() as progress, spoken_warnings():
        given: dict[str, Any] = dict(usual_potentials(loaded))
        if potential is not None:
            given[potential.name] = load_ceilings_or_potential(potential)
        found = examine(
            loaded,
            given,
            episodes=episodes,
            seeds=seeds,
            progress=lambda done, total, what: progress(done, total, f"Examining {world}: {what}"),
        )
        with replacing_together():
            if output is not None:
                write_table(output, found.to_pandas())
            if png is not None:
                save_picture(draw_bounds(loaded, given), png)
    if as_json:
        print(found.to_json())
        return
    print_examination(found, wide_console(132))
    say_written({"Table": output, "Figure": png})
