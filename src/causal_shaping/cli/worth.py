"""`causal-shaping worth`: what logs are expected to save an agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._checks import check_choice, check_integer
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import SUPPORTS, check_files, file_option, option, read_gammas
from causal_shaping.cli._terminal import progress_bar, say_result, spoken_warnings

if TYPE_CHECKING:
    from causal_shaping.data.space import Label
    from causal_shaping.logs.table import LogTable


@takes_logs()
def worth(
    logs: LogArguments,
    horizon: shared.Steps,
    reward_max: shared.RewardMax,
    steps: Annotated[int, option("The agent's budget of environment steps.", "N")] = 20_000,
    seeds: Annotated[int, option("How many worlds to simulate.", "N")] = 40,
    trial: Annotated[
        int,
        option("Ask what a randomised source of so many rows of each action in each state would add.", "ROWS"),
    ] = 0,
    folder: Annotated[
        Path | None, option("Keep each world's results in this folder; interrupted runs resume.", "FOLDER")
    ] = None,
    output: Annotated[
        Path | None, file_option("Write a row per simulated world (.csv, .parquet).", "--output", "-o")
    ] = None,
    png: shared.Png = None,
    as_json: shared.AsJson = False,
    confounding: shared.Gammas = "inf",
    support: shared.Support = "observed",
    confidence: shared.Confidence = None,
    discount: shared.Discount = 1.0,
    rarest: shared.Rarest = None,
    step_indexed: shared.StepIndexed = False,
) -> None:
    """Tell what logs are expected to save an agent that learns with them: regret, and episodes.

    Worlds are simulated that agree with what the logs prove, worlds in which the logs mislead among them; in each, an
    agent learns with the logs and without.

    Example: causal-shaping worth good.parquet random.parquet --horizon 20 --reward-max -0.1 --steps 20000 --trial 10
    """
    from causal_shaping.beliefs import posterior
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import replacing_together, write_table

    check_choice("--support", support, SUPPORTS)
    check_files(output, png, folder=folder, inputs=logs.files)
    for name, number, least in (("--steps", steps, 1), ("--seeds", seeds, 1), ("--trial", trial, 0)):
        check_integer(name, number, least=least)
    options: Any = {"support": support, "confounding": read_gammas(confounding), "confidence": confidence}
    with progress_bar() as progress:
        counts, tables = logs.count(progress, step_indexed)
        with spoken_warnings():
            belief = posterior(counts, horizon, reward_max, discount=discount, rarest=rarest, **options)
        start = None if step_indexed else _starts(tables)
        found = belief.worth(steps=steps, seeds=seeds, start=start, trial=trial, folder=folder, progress=progress)
        with replacing_together():
            if output is not None and output.suffix.lower() == ".parquet":
                found.save(output)
            elif output is not None:
                write_table(output, found.to_pandas())
            if png is not None:
                save_picture(found, png)
    say_result(found, {"Table": output, "Figure": png}, as_json)


def _starts(tables: list[LogTable]) -> dict[Label, float]:
    """Return how often logged episodes start in each state."""
    from causal_shaping.logs import count

    first = count([replace(table, rows=table.rows.filter(table.rows.step == 0)) for table in tables])
    found: dict[Label, float] = {}
    for state, n in zip(first.state, first.n, strict=True):
        label = first.space.states[state]
        found[label] = found.get(label, 0.0) + float(n)
    return found
