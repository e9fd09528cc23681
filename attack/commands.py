"""Random command lines over all commands and options: an answer or a message, never a traceback, a hang or 2 GB.

`attack(seed, number)` returns what was tried and the defects. Most lines run in this process, which is fast; one in
`IN_A_PROCESS` runs as a user would start it. By hand: `python attack/commands.py --number 2000 --seed 1`.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import math
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import typer

SECONDS, GIGABYTES = 60.0, 2.0
"""A line that takes more than this, once its code is compiled, is a defect."""

IN_A_PROCESS = 200
"""One line in so many runs in a process of its own, unless it is the study, which takes minutes."""

TELLING = 500
"""So many lines between two notes of how far it is."""

SLOW = {
    "fit": ["--horizon=3", "--members=1"],
    "theory": ["--episodes=5", "--seeds=1", "--horizon=3"],
    "train": ["--steps=30", "--seeds=1"],
    "worth": ["--steps=30", "--seeds=1"],
}
"""Commands that take seconds even on next to nothing: they come less often, with less than their defaults."""

OUTPUTS = {
    "collect": ["new.parquet", "new.csv", "new.csv.gz", "new.csv.zst", "new.svg"],
    "diagram": ["new.svg", "new.png", "new.pdf", "new"],
    "fit": ["new", "new.csv"],
    "reproduce": ["new"],
    "field": ["new"],
    "train": ["new", "new.parquet"],
}
"""Outputs of a command, where they are not tables."""

USEFUL = {
    "ceilings": ["state"],
    "episode-ceilings": ["state"],
    "fit": ["state", "reward_max"],
    "inspect": ["state"],
    "sensitivity": ["state", "plug_in"],
    "worlds": ["world"],
    "worth": ["state"],
}
"""Options that a command mostly needs to go beyond its first checks; given as the needed ones are."""

SMALL = {  # what lets a command run to its end, and soon
    "logs": ["good.parquet", "random.parquet", "bad.csv", "NAME=good.parquet", "more.parquet,yet.parquet", "plain.csv"],
    "world": ["lavacross-easy", "walking-robot", "windy-field", "map.txt", "FrozenLake-v1"],
    "episode": ["episode"],
    "step": ["step"],
    "action": ["action"],
    "reward": ["reward"],
    "terminated": ["terminated"],
    "truncated": ["truncated"],
    "next_state": ["next_x,next_y"],
    "first_step": ["0"],
    "missing": ["none", "0"],
    "memory_limit": ["500MB"],
    "smallest_cell": ["11"],
    "rarest": ["0.01"],
    "level": ["0.05"],
    "fixed": ["good=1"],
    "seed": ["0", "7"],
    "first_seed": ["3"],
    "workers": ["1"],
    "counted_in": ["steps"],
    "expectile": ["0.9"],
    "mask": ["x"],
    "shape": ["2,1"],
    "more": ["method=zero", "coins=once"],
    "demonstrator": ["good", "random"],
    "horizon": ["20", "20", "25", "3"],
    "reward_max": ["1", "0.1", "1e100"],
    "reward_min": ["-2", "-1e100"],
    "value_max": ["5", "-1e100"],
    "steps": ["30", "1"],
    "seeds": ["1", "2"],
    "episodes": ["5"],
    "members": ["1"],
    "most_rows": ["300"],
    "trial": ["1"],
    "state": ["x,y", "x,y", "x"],
    "hidden": ["x"],
    "actions": ["up,down,left,right,still", "0,1"],
    "bins": ["x=2", "x=1.5:2.5", "y=3:"],
    "reward_bins": ["2", "0:"],
    "counts": ["counts.parquet"],
    "counts_file": ["counts-new.parquet"],
    "potential": ["phi.parquet"],
    "admissible": ["admissible.csv"],
    "learner": ["posterior", "q-ucb", "q-ucb-shaping"],
    "method": ["joint", "paper"],
    "support": ["observed", "observed-action", "any"],
    "confounding": ["1", "2", "good=1", "1,2,inf"],
    "confidence": ["0.95"],
    "discount": ["0.9", "1", "0.999999999"],
    "coins": ["standing", "once"],
    "wind": ["0,0.8,0,0,0.2"],
    "only": ["world=lavacross-easy"],
    "output": ["new.parquet", "new.csv", "new", "new.svg"],
    "png": ["new.png"],
    "html": ["new.html"],
    "folder": ["kept"],
}
NUMBERS = ["", "0", "-1", "-0.0", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "1e23", "10**9", "0x10"]
NUMBERS += [
    "1000000000",
    "1000000000000",
    "9" * 23,
    "9" * 5000,
    "²",
    "٣",
    "½",
    "\uff11",
    "1_000",
    " 1",
    "1,5",
    "--5",
    "+5",
]
TEXTS = [
    "a",
    "=",
    ",",
    ",,,",
    ":",
    "a=b=c",
    "=x",
    "x=",
    "-",
    "x=2,x=3",
    "'; DROP TABLE t; --",
    '"',
    "{}",
    "%s",
    "[red]",
]
TEXTS += [
    "\x1b[2J",
    "a\nb",
    "\u202eb",
    "\udcff",
    "😀",
    "é" * 300,
    "z" * 5000,
    "reward",
    "state,state",
    "x,x",
    ".",
    "..",
]
PATHS = ["missing.parquet", "folder", "text.txt", "text.parquet", "empty.csv", "empty.parquet", "phi.parquet", ".", ""]
PATHS += ["counts.parquet", "good.parquet", "map.txt", "/dev/null", "minari:a/b-v0", "http://example.invalid/a.csv"]
LONG = [":".join(map(str, range(3000))), ",".join(f"c{i}" for i in range(3000)), ",".join(["1"] * 3000)]
HOSTILE = [*NUMBERS, *TEXTS, *PATHS, *LONG, "x=" + LONG[0], "x=999999999", "x=²", "good=nan"]
MAP = "#####\n#L.G#\n#...#\n#####\n"


def main_group() -> Any:
    """Return the commands with their options, as Click knows them."""
    from causal_shaping.cli import app

    return typer.main.get_command(app)


def line(rng: random.Random, group: Any) -> list[str]:
    """Return a random command line: what a command needs, and a few options, some of them hostile."""
    names = sorted(group.commands)
    (name,) = rng.choices(names, [1 if name in SLOW else 6 for name in names])
    known = [item for item in group.commands[name].params if item.name != "help"]
    needed = [item for item in known if item.required or item.name in USEFUL.get(name, ())]
    others = [item for item in known if item not in needed]
    chosen = needed + [rng.choice(others) for _ in range(rng.choice([0, 1, 1, 2, 3, 6]) if others else 0)]
    hostile = rng.choice([0.0, 0.1, 0.2, 0.6])
    options, arguments = [], []
    for item in chosen:
        if rng.random() < 0.02:
            continue  # one that is needed is left out
        small = OUTPUTS.get(name, SMALL["output"]) if item.name == "output" else SMALL.get(item.name, HOSTILE)
        worst = NUMBERS if small[0].lstrip("-")[:1].isdigit() and rng.random() < 0.8 else HOSTILE
        value = rng.choice(worst if rng.random() < hostile else small)
        if item.param_type_name == "argument":
            arguments.append(value)
            if item.nargs != 1 or rng.random() < 0.02:
                arguments += rng.sample(small, rng.choice([0, 0, 1, 2]) % len(small))
        elif item.is_flag:
            options.append([item.opts[0]])
        else:
            options.append([f"{item.opts[0]}={value}"] if rng.random() < 0.5 else [item.opts[0], value])
    rng.shuffle(options)
    parts = [name, *arguments, *SLOW.get(name, []), *(part for option in options for part in option)]
    return parts if rng.random() < 0.98 else [*parts, rng.choice(HOSTILE)]


def materials(folder: Path) -> None:
    """Write the files that command lines name."""
    import causal_shaping as cs

    world = cs.load_world("lavacross-easy")
    for source in ("good", "random"):
        world.collect(source, 400).save(folder / f"{source}.parquet")
    for number, name in enumerate(("more", "yet")):
        rows = world.collect("good", 200, seed=1).to_pandas()
        rows.assign(episode=rows.episode + 1000 * number).to_parquet(folder / f"{name}.parquet")
    world.collect("bad", 400).save(folder / "bad.csv")
    rows = world.collect("random", 400, seed=2).to_pandas()
    plain = {"state": rows.x.astype(str) + "-" + rows.y.astype(str)}
    plain |= {"next_state": rows.next_x.astype(str) + "-" + rows.next_y.astype(str)}
    rows.assign(**plain).drop(columns=["x", "y", "next_x", "next_y"]).to_csv(folder / "plain.csv", index=False)
    counts = cs.count([cs.read_logs(folder / f"{source}.parquet") for source in ("good", "random")])
    counts.save(folder / "counts.parquet")
    cs.value_ceilings(counts, 3, 1.0).save(folder / "phi.parquet")
    (folder / "map.txt").write_text(MAP)
    (folder / "text.txt").write_text("hello\n")
    (folder / "text.parquet").write_text("hello\n")
    (folder / "empty.csv").write_text("")
    (folder / "empty.parquet").write_text("")
    (folder / "admissible.csv").write_text("x,y,action\n1,1,up\n1,1,down\n")
    (folder / "folder").mkdir()


class TooLongError(BaseException):
    """Raised by the alarm; no handler of the package may take it for its own."""


def _ring(*_: object) -> None:
    raise TooLongError


def run(arguments: list[str]) -> tuple[Any, str]:
    """Run a line in this process; return its exit code, or what ended it, and all that it printed."""
    from causal_shaping.cli import main

    printed = io.StringIO()
    sys.argv = ["causal-shaping", *arguments]
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    faulthandler.dump_traceback_later(10 * SECONDS, exit=True)  # compiled code does not hear the alarm
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
    except SystemExit as end:
        return end.code or 0, printed.getvalue()
    except TooLongError:
        return "hang", traceback.format_exc()
    except BaseException:
        return "traceback", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    return 0, printed.getvalue()


def run_apart(arguments: list[str]) -> tuple[Any, str]:
    """Run a line in a process of its own."""
    command = [sys.executable, "-m", "causal_shaping", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=5 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "hang", ""
    text = (done.stdout + done.stderr).decode(errors="replace")
    return "traceback" if "Traceback" in text else done.returncode, text


def peak() -> float:
    """Return the most memory since it was last asked for, in GB."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1e6


def attack(seed: int = 0, number: int = 300, minutes: float = math.inf) -> tuple[Counter[str], list[str]]:
    """Try random command lines, as many as fit the time; return how they ended, counted, and the defects in words."""
    from causal_shaping.paper.field import page
    from causal_shaping.paper.study import report

    rng, group, ends, defects = random.Random(seed), main_group(), Counter[str](), list[str]()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.signal(signal.SIGALRM, _ring)
    report.reproduce = page.study_field = _no_study  # the studies themselves take minutes
    before, until = Path.cwd(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        try:
            materials(Path(folder))
            files = list(Path(folder).iterdir())
            for i in range(number):
                if time.monotonic() > until:
                    break
                with tempfile.TemporaryDirectory(prefix="work-", dir=folder) as work:
                    for file in files:
                        (Path(work) / file.name).symlink_to(file)
                    os.chdir(work)
                    arguments = line(rng, group)
                    apart = i % IN_A_PROCESS == IN_A_PROCESS - 1 and arguments[0] not in ("reproduce", "field")
                    code, wrong = tried(arguments, apart)
                    os.chdir(folder)
                ends[f"{arguments[0]} {code}"] += 1
                print(*wrong, sep="\n", end="\n" * bool(wrong), flush=True)
                defects += wrong
                if (i + 1) % TELLING == 0:
                    print(f"{i + 1:,} command lines, {len(defects)} defects so far", flush=True)
        finally:
            os.chdir(before)
    return ends, defects


def tried(arguments: list[str], apart: bool) -> tuple[Any, list[str]]:
    """Return how a line ended, and what is wrong with that."""
    from causal_shaping._checks import escaped

    begin = time.monotonic()
    code, text = (run_apart if apart else run)(arguments)
    shown = f"{shlex.join(arguments)[:400]!r} ({time.monotonic() - begin:.0f} s)"
    wrong = []
    if code not in (0, 1, 2):
        wrong.append(f"{code}: {shown}\n{text[-800:]}")
    elif escaped(text, keep="\n") != text:
        wrong.append(f"control characters: {shown}\n{text[-800:]!r}")
    if (used := peak()) > GIGABYTES:
        wrong.append(f"{used:.1f} GB: {shown}")
    return code, wrong


def _no_study(*_: object, **__: object) -> None:
    from causal_shaping.errors import ArgumentError

    raise ArgumentError("This is an attack, and no study.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="a line that takes longer is a defect")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further line after so many")
    given = parser.parse_args()
    SECONDS = given.seconds
    ended, found = attack(given.seed, given.number, given.minutes)
    print(dict(sorted(ended.items())))
    print(f"seed {given.seed}: {ended.total():,} command lines, {len(found)} defects")
    sys.exit(bool(found))
