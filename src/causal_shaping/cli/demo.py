"""`causal-shaping demo`: what the package does, shown on logs that mislead."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from causal_shaping._checks import LARGEST, check_integer, escaped
from causal_shaping.cli._options import AsJson, option
from causal_shaping.cli._terminal import print_table, progress_bar, say, tell

if TYPE_CHECKING:
    from causal_shaping.demo.folder import DemoFolder

CONFIDENCE = 0.95
LARGEST_SEED = LARGEST - 1_000
"""The seeds of agents are counted upwards from the given one."""

NEXT = (
    "  causal-shaping inspect LOGS.csv COLUMNS",
    "  causal-shaping ceilings LOGS.csv COLUMNS --horizon STEPS --reward-max R --counts counts.parquet",
    "  causal-shaping train YOUR_ENV-v0 --counts counts.parquet --reward-max R -o runs/",
)


def demo(
    output: Annotated[Path, option("The folder to write to; made if need be.", "FOLDER", "--output", "-o")] = Path(
        "demo"
    ),
    seed: Annotated[int, option("Equal seeds give equal logs and agents.", "N")] = 1,
    as_json: AsJson = False,
) -> None:
    """Show the main job in a minute: logs that mislead, what they prove, and what that saves an agent.

    Writes the CSV files of three operators of a rover, inspects them, computes ceilings, trains
    agents with and without the logs, and makes a page with pictures and commands.

    Example: causal-shaping demo --output demo
    """
    from causal_shaping.demo.folder import demo_folder

    check_integer("--seed", seed, most=LARGEST_SEED)
    try:
        with demo_folder(output) as folder:
            facts = _show(folder, seed, (lambda *lines: None) if as_json else _report)
    except KeyboardInterrupt:
        tell(f"Interrupted. Run the same command again: it starts afresh in {output}.")
        raise
    if as_json:
        print(json.dumps(facts, indent=2))


def _report(*lines: str) -> None:
    """Print lines now, also through a pipe."""
    say("\n".join(map(escaped, lines)))


def _show(folder: DemoFolder, seed: int, report: Callable[..., None]) -> dict[str, Any]:
    """Run the demo, report what it finds, and return that as plain values."""
    from causal_shaping.beliefs import posterior
    from causal_shaping.bounds import value_ceilings
    from causal_shaping.demo import agents, rover, words
    from causal_shaping.diagnose import inspect

    with progress_bar() as progress:
        progress(0, 1, "Writing the logs of three operators")
        world = rover.rover_world()
        paths = {name: folder.file(f"{name}.csv") for name in rover.OPERATORS}
        rover.write_logs(world, paths, seed)
    report(
        "Three operators steered a rover past lava, and chose their moves by a wind that they felt.",
        "Their logs hold positions, moves and scores, but not the wind, and an agent cannot feel it.",
        *(f"  {path}: {name} {rover.OPERATORS[name].habit}" for name, path in paths.items()),
        "",
        "1. What do the logs cover, and do they contradict each other?",
    )
    with progress_bar() as progress:
        found = inspect(rover.open_files(paths), progress=progress)
        found.counts.save(folder.file("counts.parquet"))
    report(*words.coverage_words(found), "", "2. What can an agent gain at most, whatever the operators felt?")
    with progress_bar() as progress:
        bound = found.counts, rover.HORIZON, rover.REWARD_MAX
        ceilings = value_ceilings(*bound, progress=progress)
        verdict = words.ceiling_words(ceilings, value_ceilings(*bound, confidence=CONFIDENCE, progress=progress))
    budget = f"{agents.STEPS:,} steps, {agents.SEEDS} seeds"
    report(*verdict, "", f"3. What do the logs save an agent? Regret: optimal return minus the agent's ({budget}).")
    with progress_bar() as progress:
        trained = agents.train_agents(world, posterior(*bound), seed, progress)
    if report is _report:
        heads = "agent", "regret (95% interval)", f"falls into the lava in {agents.STEPS:,} steps"
        print_table(heads, words.agent_rows(trained), box=None, pad_edge=False)
    shares, in_logs = rover.shares_in_logs(found.counts)
    for_agent = rover.share_for_agent(world)
    conclusion = words.conclusion(trained, in_logs, for_agent)
    facts = {"shares": shares, "in_logs": in_logs, "for_agent": for_agent}
    texts = {"verdict": " ".join(verdict[1:]), "conclusion": conclusion[0]}
    page = None
    if find_spec("matplotlib") and find_spec("jinja2"):
        from causal_shaping.demo.page import write_page

        with progress_bar() as progress:
            page = folder.file("index.html")
            progress(0, 1, f"Writing {page}")
            write_page(page, world, ceilings, trained, **facts, **texts, commands=_commands(folder.path, seed))
    where = f"Pictures: {page}." if page else "For pictures: pip install matplotlib jinja2."
    report(*conclusion, f"{where} On your own logs (COLUMNS: see inspect --help; R: largest reward of a step):", *NEXT)
    return {
        "seed": seed,
        "files": list(map(str, paths.values())),
        "contradictions": len(found.contradictions),
        "right_beside_lava": facts,
        "ceilings": " ".join(verdict),
        "agents": {name: _named(one.intervals()) for name, one in trained.items()},
        "page": page and str(page),
    }


def _named(intervals: dict[str, Any]) -> dict[str, Any]:
    return {what: dict(zip(("mean", "low", "high"), one, strict=True)) for what, one in intervals.items()}


def _commands(folder: Path, seed: int) -> dict[str, str]:
    """Return commands that show on the files what the page shows, as one types them."""
    from causal_shaping.demo.agents import SEEDS, STEPS
    from causal_shaping.demo.rover import HORIZON, OPERATORS, OPTIONS, REWARD_MAX, WORLD

    def file(name: str) -> str:
        return shlex.quote((folder / name).as_posix())

    logs = f"{' '.join(file(f'{name}.csv') for name in OPERATORS)} {OPTIONS}"
    bound = f"--horizon {HORIZON} --reward-max {REWARD_MAX} --counts {file('counts.parquet')}"
    budget = f"--steps {STEPS} --seeds {SEEDS} --first-seed {seed}"
    return {
        "demo": f"causal-shaping demo --output {shlex.quote(folder.as_posix())} --seed {seed}",
        "inspect": f"causal-shaping inspect {logs} --html {file('logs.html')}",
        "ceilings": f"causal-shaping ceilings {logs} {bound} --png {file('ceilings.png')}",
        "train": f"causal-shaping train {WORLD} --counts {file('counts.parquet')} {budget} -o {file('runs')} "
        f"--png {file('regret.png')}",
    }
