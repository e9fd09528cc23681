"""`causal-shaping collect`: logs of a demonstrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from causal_shaping.cli._options import check_files, option
from causal_shaping.cli._terminal import progress_bar, say
from causal_shaping.cli._worlds import WORLD, Horizon, Wind, complete_world, load_any


def collect(
    world: Annotated[str, typer.Argument(metavar="WORLD", help=WORLD, autocompletion=complete_world)],
    demonstrator: Annotated[str, option("Whom to watch; `causal-shaping worlds WORLD` lists them.", "NAME")],
    output: Annotated[
        Path, option("The file to write: .parquet, .csv, .csv.gz or .csv.zst.", "FILE", "--output", "-o")
    ],
    steps: Annotated[int, option("How many steps to log.", "N")] = 100_000,
    seed: Annotated[int, option("Equal seeds give equal logs.", "N")] = 0,
    horizon: Horizon = None,
    wind: Wind = None,
) -> None:
    """Watch a demonstrator of a world and write its logs, without the hidden noise, to a file.

    Example: causal-shaping collect lavacross-easy --demonstrator good --steps 100000 --seed 0 -o good.parquet
    """
    loaded = load_any(world, horizon, wind)
    from causal_shaping.data.logs import Logs
    from causal_shaping.storage import TABLES as LOG_FILES, write_table

    check_files(output, endings=LOG_FILES, inputs=[world])
    loaded.demonstrator(demonstrator)
    with progress_bar() as progress:
        progress(0, 2, f"Watching {demonstrator} in {loaded.name}")
        logs = loaded.collect(demonstrator, steps=steps, seed=seed)
        progress(1, 2, f"Writing {output}")
        if isinstance(logs, Logs):
            logs.save(output)
        else:
            write_table(output, logs, exact=True)
    episodes = logs.episodes if isinstance(logs, Logs) else len(logs["episode"].unique())
    say(f"{len(logs):,} steps in {episodes:,} episodes of {demonstrator} written to {output}.")
