"""`causal-shaping reproduce`: the paper's study, rerun."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from causal_shaping._extras import needs_extra
from causal_shaping.cli._options import check_files, flag, option
from causal_shaping.cli._terminal import progress_bar, say, tell
from causal_shaping.errors import ArgumentError


def reproduce(
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="More of --only, after it.", show_default=False)
    ] = None,
    output: Annotated[Path, option("The folder for results and report.", "FOLDER", "--output", "-o")] = Path("report"),
    seeds: Annotated[int | None, option("How many seeds to run.  (default: 20, quick 2)", "N")] = None,
    quick: Annotated[bool, flag("--quick", "A tenth of every budget, two seeds: a few minutes.")] = False,
    only: Annotated[
        list[str] | None,
        option(
            "Run only some of it: world=, method=, coins=, seed=. What is there already stays in the report.",
            "KEY=VALUE,...",
        ),
    ] = None,
    counted_in: Annotated[
        str, option("Whether budgets count environment steps, as in the paper, or episodes.", "steps|episodes")
    ] = "steps",
    no_bcq: Annotated[bool, flag("--no-bcq", "Leave out BCQ.")] = False,
    workers: Annotated[int | None, option("Processes to use.  (default: one per core)", "N")] = None,
) -> None:
    """Run the paper's study again, with what is missing there, and write one HTML report.

    Interrupted runs resume when it is called again. Nothing is fetched from a network.

    Example: causal-shaping reproduce --only world=lavacross-easy method=zero,causal-bound,joint
    """
    with needs_extra("The paper's study and its figures", "paper"):
        from causal_shaping.paper.study.plan import QUICK, SEEDS, Plan, parse_only
        from causal_shaping.paper.study.report import reproduce as reproduce_study

    check_files(folder=output)
    chosen = parse_only([*(only or []), *(more or [])])
    if more and not only:
        raise ArgumentError(f"What is {more[0]!r}? Write --only {' '.join(more)}.")
    plan = Plan((QUICK.seeds if quick else SEEDS) if seeds is None else seeds, quick, counted_in, not no_bcq, chosen)
    tenths = 0
    with progress_bar() as progress:

        def running(done: float, total: float, what: str) -> None:
            nonlocal tenths
            progress(done, total, what)
            if not sys.stderr.isatty() and 10 * done >= (tenths + 1) * total > 0:  # a bar is for people
                tenths = int(10 * done / total)
                tell(f"{tenths}0% done")

        try:
            results, page = reproduce_study(plan, output, workers=workers, progress=running)
        except KeyboardInterrupt:
            tell(f"Stopped. What is done is kept in {output}; call again to resume.")
            raise
    say(f"{len(results.runs):,} runs and {len(results.potentials):,} potentials are in {output}.")
    say(f"Report written to {page}. Open it in a browser.")
