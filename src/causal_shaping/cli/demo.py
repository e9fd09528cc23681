"""`causal-shaping demo`: what the package does, shown on logs that mislead."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from causal_shaping._checks import check_integer
from causal_shaping.cli._options import AsJson, option
from causal_shaping.cli._terminal import print_table, progress_bar, say, tell

CONFIDENCE = 0.95


def demo(
    output: Annotated[Path, option("The folder to write to; made if need be.", "FOLDER", "--output", "-o")] = Path(
        "demo"
    ),
    seed: Annotated[int, option("Equal seeds give equal logs and agents.", "N")] = 1,
    as_json: AsJson = False,
) -> None:
    """Show the main job in a minute: logs that mislead, what they prove, and what that saves an agent.

    Writes the CSV files of three operators of a rover, inspects them, computes ceilings, trains
    agents with and without the files, and makes a page with pictures and the commands behind them.

    Example: causal-shaping demo --output demo
    """
    from causal_shaping.demo.folder import claim_folder

    check_integer("--seed", seed)
    claim_folder(output)
    try:
        facts = _show(output, seed, silent=as_json)
    except KeyboardInterrupt:
        tell(f"Interrupted. Run the same command again: it starts afresh in {output}.")
        raise
    if as_json:
        print(json.dumps(facts, indent=2))


def _show(folder: Path, seed: int, *, silent: bool) -> dict[str, Any]:
    """Run the demo and print what it finds, unless it is to be silent; return that as plain values."""
    from causal_shaping.beliefs import posterior
    from causal_shaping.bounds import value_ceilings
    from causal_shaping.demo import agents, rover, words
    from causal_shaping.demo.folder import COUNTS, PAGE
    from causal_shaping.diagnose import inspect

    def report(*lines: str) -> None:
        if not silent:
            say("\n".join(lines))

    with progress_bar() as progress:
        progress(0, 1, "Writing the files of three operators")
        world = rover.rover_world()
        paths = rover.write_logs(world, folder, seed)
    report(
        "Three operators steered a rover past lava. They felt the wind, and chose their moves by it.",
        "Their logs hold positions, moves and scores, but not the wind. An agent cannot feel it.",
        *(f"  {path}: {name} {rover.OPERATORS[name].habit}" for name, path in paths.items()),
        "",
        "1. What do the logs cover, and do they contradict each other?",
    )
    with progress_bar() as progress:
        found = inspect(rover.open_files(paths), progress=progress)
        found.counts.save(folder / COUNTS)
    shares, agent = rover.share_in_logs(found.counts), rover.share_for_agent(world)
    report(*words.coverage_words(found), "", "2. What can an agent gain at most, whatever the operators felt?")

    with progress_bar() as progress:
        bound = found.counts, rover.HORIZON, rover.REWARD_MAX
        ceilings = value_ceilings(*bound, progress=progress)
        sure = value_ceilings(*bound, confidence=CONFIDENCE, progress=progress)
        belief = posterior(*bound)
    report(
        *words.ceiling_words(ceilings, sure),
        "",
        f"3. What do the logs save an agent? Means of {agents.SEEDS} seeds; regret: return lost against the best agent",
    )
    with progress_bar() as progress:
        trained = agents.train_agents(world, belief, seed, progress)
    if not silent:
        heads = "agent", "regret (95% interval)", f"falls into the lava in {agents.STEPS:,} steps"
        print_table(heads, words.agent_rows(trained), box=None, pad_edge=False)
    report(*words.conclusion(trained, shares["all"], agent))

    page = folder / PAGE if find_spec("matplotlib") and find_spec("jinja2") else None
    if page is not None:
        from causal_shaping.demo.page import write_page

        with progress_bar() as progress:
            progress(0, 1, f"Writing {page}")
            made = _commands(folder, seed, paths)
            write_page(page, world, shares, agent, ceilings, sure, trained, made)
    where = f"Pictures: {page}." if page else "For pictures: pip install 'causal-shaping[plot]'."
    report(
        f"{where} On your own logs (COLUMNS: see inspect --help; R: the most that a step pays):",
        "  causal-shaping inspect LOGS.csv COLUMNS",
        "  causal-shaping ceilings LOGS.csv COLUMNS --horizon STEPS --reward-max R --counts counts.parquet",
        "  causal-shaping train YOUR_ENV-v0 --counts counts.parquet --reward-max R -o runs/",
    )
    return {
        "seed": seed,
        "files": {name: str(path) for name, path in paths.items()},
        "contradictions": len(found.contradictions),
        "right_beside_lava": {"logs": shares, "agent": agent},
        "ceilings_help": {"estimated": ceilings.informative, "guaranteed": sure.informative},
        "agents": {
            name: {
                what: dict(zip(("mean", "low", "high"), one, strict=True)) for what, one in result.intervals().items()
            }
            for name, result in trained.items()
        },
        "page": None if page is None else str(page),
    }


def _commands(folder: Path, seed: int, paths: dict[str, Path]) -> dict[str, str]:
    """Return the commands that make the pictures, as one types them."""
    from causal_shaping.demo.agents import SEEDS, STEPS
    from causal_shaping.demo.folder import COUNTS
    from causal_shaping.demo.rover import HORIZON, OPTIONS, REWARD_MAX, WORLD

    logs = f"{shlex.join(map(str, paths.values()))} {OPTIONS}"
    here, counts, runs = (shlex.quote(str(path)) for path in (folder, folder / COUNTS, folder / "runs"))
    budget = f"--steps {STEPS} --seeds {SEEDS} --first-seed {seed}"
    return {
        "demo": f"causal-shaping demo --output {here} --seed {seed}",
        "inspect": f"causal-shaping inspect {logs}",
        "ceilings": f"causal-shaping ceilings {logs} --horizon {HORIZON} --reward-max {REWARD_MAX} --counts {counts}",
        "train": f"causal-shaping train {WORLD} --counts {counts} {budget} -o {runs}",
    }
