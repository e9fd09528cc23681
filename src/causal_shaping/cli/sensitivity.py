"""`causal-shaping sensitivity`: how bounds change with the assumed confounding."""

from __future__ import annotations

import json
from typing import Annotated, Any

from causal_shaping.cli import _options as shared
from causal_shaping.cli._logs import ListedLogs
from causal_shaping.cli._options import BOUNDS, Bound, check_files, command, flag, option
from causal_shaping.cli._terminal import finish, print_json, progress_bar, write_together
from causal_shaping.errors import ArgumentError


@command
def sensitivity(
    logs: ListedLogs,
    bound: Bound,
    reward_min: Annotated[float, option("NUMBER")],
    output: shared.Table = None,
    png: shared.File = None,
    as_json: shared.AsJson = False,
    confounding: Annotated[str, option("GAMMA,...", panel=BOUNDS)] = "1,1.5,2,5,inf",
    fixed: Annotated[str | None, option("NAME=GAMMA,...", panel=BOUNDS)] = None,
    value_max: shared.Number = None,
    hidden: shared.Hidden = None,
    plug_in: Annotated[bool, flag("--plug-in", BOUNDS)] = False,
) -> None:
    """Tell how bounds, provably suboptimal actions and best actions change with confounding.

    The table of -o has a row for each value of confounding and state. How much confounding is
    plausible? --hidden tells how much leaving out columns that were logged would amount to.

    Example: causal-shaping sensitivity good.parquet random.parquet --horizon 20 --reward-max 0.1
    --reward-min -1.1 --confidence 0.95 --confounding 1,1.5,2,5,inf --png gamma.png

    Options:
        reward_min: The least that a step can pay.
        confounding: How confounded all sources may be: the values to compare.
        fixed: Sources whose confounding is known, and does not vary.
        plug_in: Accept estimates without --confidence, to study them.
    """
    from causal_shaping.bounds import sensitivity as sensitivity_of
    from causal_shaping.data.result import json_text
    from causal_shaping.diagnose import confounding_of
    from causal_shaping.plot import save_picture

    check_files(table=output, png=png, inputs=logs.files)
    options: Any = {"value_max": value_max, "plug_in": plug_in, **bound.settings}
    options["confounding"] = [shared.read_gamma(part) for part in confounding.split(",")]
    if fixed is not None:
        options["fixed"] = shared.read_gammas(fixed, "--fixed")
        if "=" not in fixed:
            raise ArgumentError(f"--fixed is {fixed!r}; write it as NAME=GAMMA, such as random=1.")
    yardstick = None
    with progress_bar() as progress:
        counts, tables = logs.count(progress, bound.step_indexed, hidden)
        if hidden is not None:
            yardstick = confounding_of(tables, hidden.split(","), progress=progress)
        limits = bound.horizon, bound.reward_max, reward_min
        analysis = sensitivity_of(counts, *limits, progress=progress, **options)
    outputs = [
        ("Table", output, analysis.save),
        ("Figure", png, lambda path: save_picture(analysis, path)),
    ]
    if yardstick is not None and as_json:
        write_together(outputs)
        everything = {"hidden": yardstick.as_plain()} | json.loads(analysis.to_json())
        print_json(json_text(everything))
        return
    finish(analysis, outputs, as_json, above=yardstick)
