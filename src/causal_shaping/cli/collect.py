"""`causal-shaping collect`: logs of a demonstrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from causal_shaping.cli._options import Count, Horizon, Wind, check_files, command, option
from causal_shaping.cli._terminal import progress_bar, say
from causal_shaping.cli._worlds import load_any, world_argument


@command
def collect(
    world: Annotated[str, world_argument()],
    demonstrator: Annotated[str, option("NAME")],
    output: Annotated[Path, option("FILE", "--output", "-o")],
    steps: Count = 100_000,
    seed: Count = 0,
    horizon: Horizon = None,
    wind: Wind = None,
) -> None:
    """Watch a demonstrator of a world and write its logs, without the hidden noise, to a file.

    Example: causal-shaping collect lavacross-easy --demonstrator good --steps 100000
    --seed 0 -o good.parquet

    Options:
        demonstrator: Whom to watch; `causal-shaping worlds WORLD` lists the demonstrators.
        output: The file to write: .parquet, .csv, .csv.gz or .csv.zst.
        steps: How many steps to log.
        seed: Equal seeds give equal logs.
    """
    loaded = load_any(world, horizon, wind)
    from causal_shaping.data.logs import Logs
    from causal_shaping.storage import TABLES, write_table

    check_files(table=output, endings=TABLES, inputs=[world])
    loaded.demonstrator(demonstrator)  # refuses an unknown one
    with progress_bar() as progress:
        progress(0, 2, f"Watching {demonstrator} in {loaded.name}")
        logs = loaded.collect(demonstrator, steps=steps, seed=seed)
        progress(1, 2, f"Writing {output}")
        if isinstance(logs, Logs):
            episodes = logs.episodes
            logs.save(output)
        else:
            episodes = len(logs["episode"].unique())
            write_table(output, logs, exact=True)
    say(f"{len(logs):,} steps in {episodes:,} episodes of {demonstrator} written to {output}.")
