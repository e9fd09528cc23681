"""`causal-shaping sensitivity`: how bounds move with confounding."""

from __future__ import annotations

import json
from typing import Annotated, Any

from causal_shaping._checks import check_choice
from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import LogArguments, takes_logs
from causal_shaping.cli._options import SUPPORTS, bound_option, check_files, flag, option, read_gamma, read_gammas
from causal_shaping.cli._terminal import progress_bar, say, say_result
from causal_shaping.errors import ArgumentError


@takes_logs()
def sensitivity(
    logs: LogArguments,
    horizon: shared.Steps,
    reward_max: shared.RewardMax,
    reward_min: Annotated[float, option("The least that a step can pay.", "NUMBER")],
    output: shared.Table = None,
    png: shared.Png = None,
    as_json: shared.AsJson = False,
    confounding: Annotated[
        str, bound_option("How confounded all sources may be: the values to look at.", "GAMMA,...")
    ] = "1,1.5,2,5,inf",
    fixed: Annotated[
        str | None, bound_option("Sources whose confounding is known, and stays.", "NAME=GAMMA,...")
    ] = None,
    support: shared.Support = "observed",
    confidence: shared.Confidence = None,
    discount: shared.Discount = 1.0,
    rarest: shared.Rarest = None,
    value_max: shared.ValueMax = None,
    step_indexed: shared.StepIndexed = False,
    hidden: shared.Hidden = None,
    plug_in: Annotated[
        bool, flag("--plug-in", "Accept estimates without --confidence, to study them.", shared.BOUNDS)
    ] = False,
) -> None:
    """Tell how bounds and provably suboptimal actions move with confounding, and when each best action breaks down.

    The table of -o has a row per value of confounding and state. How large a confounding is plausible? --hidden tells
    what leaving out columns that were logged would amount to.

    Example: causal-shaping sensitivity good.parquet random.parquet --horizon 20 --reward-max 0.1 --reward-min -1.1
    --confidence 0.95 --confounding 1,1.5,2,5,inf --png gamma.png
    """
    from causal_shaping.bounds import sensitivity as sensitivity_of
    from causal_shaping.data.result import json_text
    from causal_shaping.diagnose import confounding_of
    from causal_shaping.plot import save_picture
    from causal_shaping.storage import replacing_together

    check_choice("--support", support, SUPPORTS)
    check_files(output, png, inputs=logs.files)
    gammas = [read_gamma(part) for part in confounding.split(",")]
    known = read_gammas(fixed, "--fixed") if fixed is not None and "=" in fixed else {}
    if fixed is not None and not known:
        raise ArgumentError(f"--fixed is {fixed!r}; write it as NAME=GAMMA, such as random=1.")
    options: Any = {"confounding": gammas, "fixed": known, "support": support, "confidence": confidence}
    options |= {"discount": discount, "rarest": rarest, "value_max": value_max, "plug_in": plug_in}
    with progress_bar() as progress:
        counts, tables = logs.with_hidden(hidden).count(progress, step_indexed)
        guide = None if hidden is None else confounding_of(tables, hidden.split(","), progress=progress)
        found = sensitivity_of(counts, horizon, reward_max, reward_min, progress=progress, **options)
        with replacing_together():
            if output is not None:
                found.save(output)
            if png is not None:
                save_picture(found, png)
    if as_json:
        extra = {} if guide is None else {"hidden": guide.as_plain()}
        print(json_text(extra | json.loads(found.to_json())))
        return
    if guide is not None:
        say(guide)
        say("")
    say_result(found, {"Table": output, "Figure": png}, as_json)
