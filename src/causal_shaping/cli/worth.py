"""`causal-shaping worth`: what logs are expected to save an agent."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import ListedLogs
from causal_shaping.cli._options import Bound, check_files, command, option
from causal_shaping.cli._terminal import finish, progress_bar, spoken_warnings

if TYPE_CHECKING:
    from causal_shaping.data.space import Label
    from causal_shaping.logs.table import LogTable


@command
def worth(
    logs: ListedLogs,
    bound: Bound,
    steps: Annotated[int, option("N", min=1)] = 20_000,
    seeds: Annotated[int, option("N", min=1)] = 40,
    trial: Annotated[int, option("ROWS", min=0)] = 0,
    folder: Annotated[Path | None, option("FOLDER")] = None,
    output: shared.Table = None,
    png: shared.File = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
) -> None:
    """Tell what logs are expected to save an agent that learns with them: regret, and episodes.

    The command simulates worlds that agree with what the logs prove, among them worlds in which
    the logs mislead; in each world, an agent learns with the logs and without.

    Example: causal-shaping worth good.parquet random.parquet --horizon 20 --reward-max -0.1
    --steps 20000 --trial 10

    Options:
        steps: The agent's budget of environment steps.
        seeds: How many worlds to simulate.
        trial: Ask what a randomised source would add that has this many rows of each action in each
            state.
        folder: Keep each world's results in this folder; interrupted runs resume.
        output: Write a row for each simulated world (.csv, .parquet).
    """
    from causal_shaping.beliefs import posterior
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import write_table

    check_files(table=output, png=png, folder=folder, inputs=logs.files)
    gammas = shared.read_gammas(confounding)
    simulated: Any = {"steps": steps, "seeds": seeds, "trial": trial, "folder": folder}
    with progress_bar() as progress:
        counts, tables = logs.count(progress, bound.step_indexed)
        with spoken_warnings():
            belief = posterior(
                counts, bound.horizon, bound.reward_max, confounding=gammas, **bound.settings
            )
        if not bound.step_indexed:
            simulated["start"] = _starts(tables)
        result = belief.worth(progress=progress, **simulated)

    def save(path: Path) -> None:
        if path.suffix.lower() == ".parquet":
            result.save(path)
        else:
            write_table(path, result.to_pandas())

    outputs = [
        ("Table", output, save),
        ("Figure", png, lambda path: save_picture(result, path)),
    ]
    finish(result, outputs, as_json)


def _starts(tables: list[LogTable]) -> dict[Label, float]:
    """Return how often logged episodes start in each state."""
    from causal_shaping.logs import count

    first = [replace(table, rows=table.rows.filter(table.rows.step == 0)) for table in tables]
    counts = count(first)
    starts: Counter[Label] = Counter()
    for state, n in zip(counts.state, counts.n, strict=True):
        starts[counts.space.states[state]] += float(n)  # type: ignore[assignment]
    return dict(starts)
