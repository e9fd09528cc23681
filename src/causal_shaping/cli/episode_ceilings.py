"""`causal-shaping episode-ceilings`: what any policy earns in an episode, though a hidden cause may last over it."""

from __future__ import annotations

from typing import Annotated

from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, read_reward_bins, takes_logs
from causal_shaping.cli._options import bound_option, check_files, flag
from causal_shaping.cli._terminal import progress_bar, say, say_written, spoken_warnings


@takes_logs
def episode_ceilings(
    logs: LogArguments,
    horizon: shared.Steps,
    reward_max: shared.RewardMax,
    output: shared.Table = None,
    png: shared.Png = None,
    as_json: shared.AsJson = False,
    confidence: shared.Confidence = None,
    discount: shared.Discount = 1.0,
    reward_min: Annotated[
        float | None,
        bound_option("With confidence, the least that a step can pay.  (default: one in ten episodes tells)", "NUMBER"),
    ] = None,
    value_max: Annotated[
        float | None,
        bound_option("The most that an episode can pay from any step on.  (default: no limit)", "NUMBER"),
    ] = None,
    reward_bins: Annotated[
        str | None,
        bound_option("How coarsely the agent reads rewards: 3 for quantiles, 0:1 for edges, 0: for one.", "CUTS"),
    ] = None,
    ignore_rewards: Annotated[
        bool, flag("--ignore-rewards", "The agent decides without reading the rewards of its episode.", shared.BOUNDS)
    ] = False,
    fixed_length: Annotated[bool, flag("--fixed-length", "No episode ends before the horizon.", shared.BOUNDS)] = False,
) -> None:
    """Bound what any policy earns in an episode, by first state, though a hidden cause may last over the episode.

    For few steps; no potential. Example: causal-shaping episode-ceilings ward-3.csv ward-7.csv --horizon 3
    --reward-max 1 --reward-min 0 --value-max 1 --confidence 0.95
    """
    from causal_shaping.bounds import episode_ceilings
    from causal_shaping.io.files import replacing_together
    from causal_shaping.plot import save_picture

    check_files(output, png, inputs=logs.files)
    cuts = read_reward_bins(reward_bins)
    with progress_bar() as progress:
        tables = logs.open(progress)
        admissible = logs.admissible(tables)
        with spoken_warnings():
            found = episode_ceilings(
                tables,
                horizon,
                reward_max,
                confidence=confidence,
                discount=discount,
                reward_min=reward_min,
                value_max=value_max,
                reward_bins=cuts,
                ignore_rewards=ignore_rewards,
                fixed_length=fixed_length,
                admissible=admissible,
                progress=progress,
            )
        if admissible is not None:
            admissible.check(found.space)
        with replacing_together():
            if output is not None:
                found.save(output)
            if png is not None:
                save_picture(found, png)
    if as_json:
        print(found.to_json())
        return
    say(found)
    files = {"Table": output, "Figure": png}
    if any(files.values()):
        say("")
    say_written(files)
