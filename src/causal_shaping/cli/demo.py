"""`causal-shaping demo`: what the package does, shown on logs that mislead."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_shaping._checks import LARGEST, check_integer, escaped
from causal_shaping.cli._options import AsJson, Count, Folder, command
from causal_shaping.cli._terminal import print_json, print_table, progress_bar, say, tell

if TYPE_CHECKING:
    from causal_shaping.demo.folder import DemoFolder

CONFIDENCE = 0.95
"""Of the second ceilings: the one that the docs recommend."""

LARGEST_SEED = LARGEST - 1_000
"""The seeds of agents are counted upwards from --seed, and must stay numbers that files hold."""

INTRODUCTION = """\
Three operators steered a rover past lava, and chose their moves by a wind that they felt.
Their logs hold positions, moves and scores, but not the wind, and an agent cannot feel it."""

NEXT = """\
  causal-shaping inspect LOGS.csv COLUMNS
  causal-shaping ceilings LOGS.csv COLUMNS --horizon STEPS --reward-max R --counts counts.parquet
  causal-shaping train YOUR_ENV-v0 --counts counts.parquet --reward-max R -o runs/"""
"""The commands for files of one's own."""


@command
def demo(
    output: Folder = Path("demo"),
    seed: Count = 1,
    as_json: AsJson = False,
) -> None:
    """Show the main job in a minute: logs that mislead, what they prove, what that saves an agent.

    Writes the CSV files of three operators of a rover, inspects them, computes ceilings, trains
    agents with and without the logs, and makes a page with pictures and commands.

    Example: causal-shaping demo --output demo

    Options:
        output: The folder to write to; made if need be.
        seed: Equal seeds give equal logs and agents.
    """
    from causal_shaping.demo.folder import demo_folder

    check_integer("--seed", seed, most=LARGEST_SEED)
    try:
        with demo_folder(output) as folder:
            facts = _show(folder, seed, as_json)
    except KeyboardInterrupt:
        tell(f"Interrupted. Run the same command again: it starts afresh in {output}.")
        raise
    if as_json:
        print_json(json.dumps(facts, indent=2))


def _show(folder: DemoFolder, seed: int, silent: bool) -> dict[str, Any]:
    """Run the demo, print each stage unless silent, and return the results as plain values."""
    from causal_shaping.beliefs import posterior
    from causal_shaping.bounds import value_ceilings
    from causal_shaping.demo import agents, rover, words
    from causal_shaping.diagnose import inspect

    def report(*lines: str) -> None:
        if not silent:
            say("\n".join(lines))

    with progress_bar() as progress:
        progress(0, 1, "Writing the logs of three operators")
        world = rover.rover_world()
        paths = {name: folder.file(f"{name}.csv") for name in rover.OPERATORS}
        rover.write_logs(world, paths, seed)
    files = [f"  {path}: {name} {rover.OPERATORS[name].habit}" for name, path in paths.items()]
    title = "1. What do the logs cover, and do they contradict each other?"
    report(INTRODUCTION, *map(escaped, files), "", title)
    with progress_bar() as progress:
        inspection = inspect(rover.open_files(paths), progress=progress)
        inspection.counts.save(folder.file("counts.parquet"))
    title = "2. What can an agent gain at most, whatever the operators felt?"
    report(*words.coverage_words(inspection), "", title)
    with progress_bar() as progress:
        bounded = inspection.counts, rover.HORIZON, rover.REWARD_MAX
        ceilings = value_ceilings(*bounded, progress=progress)
        confident = value_ceilings(*bounded, confidence=CONFIDENCE, progress=progress)
        verdict = words.ceiling_words(ceilings, confident)
    title = "3. What do the logs save an agent? Regret: optimal return minus the agent's"
    report(*verdict, "", f"{title} ({agents.STEPS:,} steps, {agents.SEEDS} seeds).")
    with progress_bar() as progress:
        trained = agents.train_agents(world, posterior(*bounded), seed, progress)
    if not silent:
        falls = f"falls into the lava in {agents.STEPS:,} steps"
        heads = "agent", "regret (95% interval)", falls
        print_table(heads, words.agent_rows(trained), box=None, pad_edge=False)
    shares, in_logs = rover.shares_in_logs(inspection.counts)
    for_agent = rover.share_for_agent(world)
    conclusion = words.conclusion(trained, in_logs, for_agent)
    facts = {"shares": shares, "in_logs": in_logs, "for_agent": for_agent}
    texts: Any = {"verdict": " ".join(verdict[1:]), "conclusion": conclusion[0]}
    texts["commands"] = _commands(folder.path, seed)
    page, where = None, "For pictures: pip install matplotlib jinja2."
    if find_spec("matplotlib") and find_spec("jinja2"):
        from causal_shaping.demo.page import write_page

        with progress_bar() as progress:
            page = str(folder.file("index.html"))
            progress(0, 1, f"Writing {page}")
            write_page(Path(page), world, ceilings, trained, **facts, **texts)
        where = f"Pictures: {page}."
    own = "On your own logs (COLUMNS: see inspect --help; R: largest reward of a step):"
    report(*conclusion, escaped(f"{where} {own}"), NEXT)
    return {
        "seed": seed,
        "files": list(map(str, paths.values())),
        "contradictions": len(inspection.contradictions),
        "right_beside_lava": facts,
        "ceilings": " ".join(verdict),
        "agents": {name: _named(one.intervals()) for name, one in trained.items()},
        "page": page,
    }


def _named(intervals: dict[str, Any]) -> dict[str, Any]:
    """Return intervals as mean, low and high."""
    names = ("mean", "low", "high")
    return {what: dict(zip(names, one, strict=True)) for what, one in intervals.items()}


def _commands(folder: Path, seed: int) -> dict[str, str]:
    """Return the commands that show on the files what the page shows, as one types them."""
    from causal_shaping.demo.agents import SEEDS, STEPS
    from causal_shaping.demo.rover import HORIZON, OPERATORS, OPTIONS, REWARD_MAX, WORLD

    def file(name: str) -> str:
        return shlex.quote((folder / name).as_posix())

    counts = f"--counts {file('counts.parquet')}"
    logs = f"{' '.join(file(f'{name}.csv') for name in OPERATORS)} {OPTIONS}"
    bounded = f"--horizon {HORIZON} --reward-max {REWARD_MAX} {counts} --png {file('ceilings.png')}"
    budget = f"--steps {STEPS} --seeds {SEEDS} --first-seed {seed}"
    files = f"-o {file('runs')} --png {file('regret.png')}"
    return {
        "demo": f"causal-shaping demo --output {shlex.quote(folder.as_posix())} --seed {seed}",
        "inspect": f"causal-shaping inspect {logs} --html {file('logs.html')}",
        "ceilings": f"causal-shaping ceilings {logs} {bounded}",
        "train": f"causal-shaping train {WORLD} {counts} {budget} {files}",
    }
