"""`causal-shaping field`: what logs save outside of the paper's worlds, against the tools people would use instead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from causal_shaping._extras import needs_extra
from causal_shaping.cli._options import check_files, flag, option
from causal_shaping.cli._terminal import progress_bar, say, tell


def field(
    output: Annotated[Path, option("The folder for results and page.", "FOLDER", "--output", "-o")] = Path("field"),
    families: Annotated[
        str | None, option("Run only these: random, problems, sepsis, lalonde, clinic.", "NAME,...")
    ] = None,
    networks: Annotated[
        bool, flag("--networks", "Run rivals with networks, and all others in the same 25 cases, and nothing else.")
    ] = False,
    continuous: Annotated[
        Path | None, option("Show these figures of make field-continuous on the page, too.", "FILE")
    ] = None,
    quick: Annotated[bool, flag("--quick", "Few worlds, a quarter of every budget: a few minutes.")] = False,
    workers: Annotated[int | None, option("Processes to use.  (default: one per core)", "N")] = None,
) -> None:
    """Measure what confounded logs save, and where they do harm, outside of the paper's worlds.

    Interrupted runs resume when it is called again. Nothing is fetched from a network. A family whose data are not
    installed is left out, with a note on what to install. Rivals with networks are a part of their own: --networks runs
    them, and the page shows them beside whatever else the folder holds.

    Example: causal-shaping field --quick --families random,clinic -o field
    """
    with needs_extra("The field study and its page", "paper"):
        from causal_shaping.paper.field.page import study_field
        from causal_shaping.paper.field.plan import FAMILIES, Plan

    check_files(folder=output)
    chosen = tuple(FAMILIES) if families is None else tuple(dict.fromkeys(families.split(",")))
    with progress_bar() as progress:
        try:
            results, page, missing = study_field(
                Plan(quick, chosen, networks), output, continuous=continuous, workers=workers, progress=progress
            )
        except KeyboardInterrupt:
            tell(f"Stopped. What is done is kept in {output}; call again to resume.")
            raise
    for why in missing:
        tell(f"Left out: {why}")
    say(f"{len(results.runs):,} runs and {len(results.claims):,} claims are in {output}.")
    say(f"Page written to {page}. Open it in a browser.")
