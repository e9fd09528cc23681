"""Kill every command that writes, and let its surroundings fail: each file afterwards is the old or the complete one.

    python attack/kills.py [--rounds 3] [--seed 0] [--only collect,train] [--renames 8]

- *Kills*: kill -9 before and after every rename, and `rounds` times at a random moment. Then each output is as it was,
  or as an undisturbed run writes it; no process of the command lives on; the same command succeeds, ends in the same
  bytes as an undisturbed run, and leaves nothing else.
- *Faults*: a disk that is full after so many bytes, a read-only folder, one that vanishes, two processes on one output,
  a clock in 1970, closed streams, and an environment without HOME, TERM or locale. Then the command succeeds in the
  same bytes, or says why not, without a traceback, and leaves what was there.

Commands run in forks of a process that has imported everything, so that kills hit their work and not their start. It
counts what it tried; `attack` returns that and the defects.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import io
import json
import os
import pkgutil
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOGS = "good.parquet random.parquet"
BOUNDS = "--horizon 20 --reward-max 0.1"
STUDY = "--quick --seeds 1 --only world=lavacross-easy method=zero coins=standing"
COMMANDS = {
    "collect": "collect lavacross-easy --demonstrator good --steps 2000 -o out/a.parquet",
    "collect-csv": "collect lavacross-easy --demonstrator good --steps 2000 -o out/a.csv.gz",
    "ceilings": f"ceilings {LOGS} {BOUNDS} -o out/phi.parquet --counts out/counts.parquet --png out/phi.png",
    "inspect": f"inspect {LOGS} -o out/table.csv --html out/page.html",
    "episode-ceilings": f"episode-ceilings {LOGS} --horizon 3 --reward-max 0.1 -o out/e.parquet",
    "sensitivity": f"sensitivity {LOGS} {BOUNDS} --reward-min -1.1 --plug-in -o out/s.csv --png out/s.svg",
    "worth": f"worth {LOGS} {BOUNDS} --steps 300 --seeds 2 --folder out/worlds -o out/w.parquet",
    "train": "train lavacross-easy --counts counts.parquet --steps 300 --seeds 2 -o out/runs",
    "fit": "fit field.parquet --state x,y --horizon 4 --reward-max -0.1 --members 1 -o out/fit",
    "theory": "theory walking-robot --episodes 3 --seeds 1 -o out/t.csv --png out/t.pdf",
    "worlds": "worlds walking-robot -o out/w.csv --png out/w.png",
    "diagram": "diagram -o out/d.svg",
    "reproduce": f"reproduce {STUDY} --workers 1 -o out/report",
    "reproduce-workers": f"reproduce {STUDY} --workers 2 -o out/report",
    "field": "field --quick --families clinic --workers 1 -o out/field",
}
OLD = b"what was there before\n"
UNSURE = ("timings.csv", ".unfinished")
"""Files that differ from run to run, and those of work that is not done: they are only to be gone, or complete."""
TIMES = ("seconds", "cpu_seconds", "minutes", "date", "dates")
"""What a part of a study, or its summary, says of the time that it took, and of the day."""
STARTED_ANEW = ("ceilings", "train")
"""Commands that are also started in other surroundings, which takes seconds each."""
KILLED_ONLY = ("reproduce-workers",)
"""Commands that are only killed at random moments, to see what becomes of their workers: they take long."""
MESSAGE = 2000
"""Bytes that a full disk still takes, for the message."""
PATIENCE = 300
"""Seconds after which a command hangs."""


@dataclass
class Found:
    """What was tried, by kind, and what was wrong."""

    tried: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def check(self, right: bool, text: str) -> None:
        """Note a defect, unless all is right."""
        if not right:
            self.defects.append(text)
            print(f"DEFECT {text}", file=sys.stderr, flush=True)


class Run:
    """A command in a fork, in its own folder; what it prints goes to files beside it."""

    def __init__(self, command: str, folder: Path, prepare: Callable[[], None] = lambda: None) -> None:
        self.mark, self.errors = f"ATTACK_{random.getrandbits(64):x}", folder / "errors.txt"
        self.begun, self.process = time.monotonic(), os.fork()
        if self.process == 0:
            try:
                self._child(command, folder, prepare)
            finally:
                os._exit(99)

    def _child(self, command: str, folder: Path, prepare: Callable[[], None]) -> None:
        from causal_shaping.cli import main

        os.environ[self.mark] = "1"  # its workers inherit it
        os.chdir(folder)
        for number, name in ((1, "output.txt"), (2, "errors.txt")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.argv = ["causal-shaping", *command.split()]
        prepare()
        code: Any = 1
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        with contextlib.suppress(Exception):
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def end(self, until: float = PATIENCE) -> int | None:
        """Return how it ended; None if it hangs, and is killed for it."""
        code = self.wait(until)
        if code is None:
            self.kill()
        return code

    def wait(self, until: float) -> int | None:
        """Return the exit code, or minus the signal that ended it; None if it takes longer, and still runs."""
        while time.monotonic() < self.begun + until:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        return None

    def kill(self) -> int:
        """Kill it, if it still runs, and return how it ended."""
        os.kill(self.process, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def orphans(self) -> list[int]:
        """Return its workers that are still there after ten seconds."""
        left: list[int] = []
        for _ in range(100):
            left = [int(item.name) for item in Path("/proc").iterdir() if item.name.isdigit() and self._is_ours(item)]
            if not left:
                break
            time.sleep(0.1)
        return left

    def _is_ours(self, process: Path) -> bool:
        try:
            return self.mark.encode() in (process / "environ").read_bytes()
        except OSError:
            return False


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder; what differs from run to run is left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not any(part in UNSURE for part in path.relative_to(folder).parts):
            found[name] = path.read_bytes()
            timed = "parts/" in name or path.name == "summary.json"
            if timed and path.suffix == ".json" and not path.name.startswith("."):
                found[name] = _part(path) or found[name]
    return found


def _part(path: Path) -> bytes:
    """Return what a part of a study, or its summary, holds beside times; nothing if its checksum does not fit."""
    from causal_shaping.errors import FileError
    from causal_shaping.io.inputs import read_json

    try:
        return json.dumps(read_json(path) | dict.fromkeys(TIMES, 0)).encode()
    except FileError:
        return b""


def temporary(name: str) -> bool:
    """Return whether a file is one that a killed process may leave until the next one."""
    return name.rpartition("/")[2].startswith((".causal-shaping-", ".lock"))


class Case:
    """A command, and how it ends undisturbed."""

    def __init__(self, name: str, workshop: Path, found: Found) -> None:
        self.name, self.command, self.workshop, self.found = name, COMMANDS[name], workshop, found
        self.folder = workshop / name
        self.renames = 0
        if name.startswith("reproduce"):
            shorten_the_study()
        self.fresh()
        Run(self.command, self.folder).end(10 * PATIENCE)  # compiles what is not compiled yet
        self.fresh()
        counted = self.folder / "renames"
        counted.touch()
        begun = time.monotonic()
        code = Run(self.command, self.folder, lambda: on_rename(lambda n, after: counted.write_text(str(n)))).end()
        self.seconds = time.monotonic() - begun
        found.check(code == 0, f"{name}: an undisturbed run ends with {code}: {self.said()}")
        self.renames = int(counted.read_text() or 0)
        self.whole = contents(self.folder / "out") if code == 0 else {}
        self.files = [part.removeprefix("out/") for part in self.command.split() if part.startswith("out/")]
        self.files = [part for part in self.files if (self.folder / "out" / part).is_file()]

    def fresh(self, old: bool = False) -> None:
        """Begin with an empty folder, or with old files in the places of the outputs."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "out").mkdir(parents=True)
        (self.folder / "errors.txt").touch()
        for item in self.workshop.glob("*.parquet"):
            (self.folder / item.name).symlink_to(item)
        self.begin(self.files if old else ())

    def begin(self, names: Iterable[str] = ()) -> None:
        """Put old files into the places of the outputs."""
        for name in names:
            (self.folder / "out" / name).write_bytes(OLD)

    def said(self) -> str:
        """Return the last line of errors."""
        return (self.folder / "errors.txt").read_text(errors="replace").strip().rpartition("\n")[2]

    def check(self, what: str, code: int | None, codes: Sequence[int] = (0, 2), rerun: bool = True) -> None:
        """Check what is there after something went wrong, and that the same command mends it."""
        about, out = f"{self.name}: {what}", self.folder / "out"
        self.found.check(code in codes, f"{about}: ended with {code}: {self.said()}")
        errors = (self.folder / "errors.txt").read_text(errors="replace")
        self.found.check("Traceback" not in errors, f"{about}: {self.said()}")
        held = contents(out) if out.is_dir() else {}
        for name, bytes_ in held.items():
            old = bytes_ == OLD and name in self.files
            right = temporary(name) or bytes_ == self.whole.get(name) or old
            self.found.check(right, f"{about}: {name} is neither the old nor the complete file")
        for name in self.files if old_expected(what) else ():
            self.found.check(name in held, f"{about}: {name} is gone")
        if code != -signal.SIGKILL:
            left = [name for name in held if temporary(name)]
            self.found.check(not left, f"{about}: {left} stayed")
        if rerun:
            again = Run(self.command, self.folder).end()
            self.found.check(again == 0, f"{about}: the same command again ends with {again}: {self.said()}")
            self.same(f"{about}: the same command again")

    def same(self, about: str) -> None:
        """Check that the files are those of an undisturbed run."""
        held = contents(self.folder / "out")
        other = sorted(name for name in held.keys() | self.whole.keys() if held.get(name) != self.whole.get(name))
        self.found.check(not other, f"{about} ends in other files: {', '.join(other[:5])}")


def old_expected(what: str) -> bool:
    """Return whether old files were there, and must be."""
    return "vanishes" not in what


def on_rename(act: Callable[[int, bool], Any]) -> None:
    """Call a function with the number of each rename of a file of ours, before and after it."""
    original, count = os.replace, 0

    def replace(source: Any, target: Any, **options: Any) -> None:
        nonlocal count
        ours = Path(source).name.startswith(".causal-shaping-")
        count += ours
        if ours:
            act(count, False)
        original(source, target, **options)
        if ours:
            act(count, True)

    os.replace = replace  # type: ignore[assignment]


def kill_at(number: int, after: bool) -> Callable[[], None]:
    """Return what makes a process kill itself at a rename."""

    def act(n: int, is_after: bool) -> None:
        if (n, is_after) == (number, after):
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: on_rename(act)


def kills(case: Case, rounds: int, rng: random.Random, renames: int = sys.maxsize) -> None:
    """Kill a command at every rename, or so many of them, and at random moments."""
    for number in sorted(rng.sample(range(1, case.renames + 1), min(renames, case.renames))):
        for after in (False, True):
            what = f"killed {'after' if after else 'before'} rename {number} of {case.renames}"
            case.fresh(old=True)
            run = Run(case.command, case.folder, kill_at(number, after))
            finish_kill(case, run, what, run.end())
            case.found.tried["kills at renames"] += 1
    for _ in range(rounds):
        moment = rng.uniform(0, case.seconds)
        case.fresh(old=True)
        run = Run(case.command, case.folder)
        code = run.wait(moment)
        finish_kill(case, run, f"killed after {moment:.2f} s", run.kill() if code is None else code)
        case.found.tried["kills at random moments"] += 1


def finish_kill(case: Case, run: Run, what: str, code: int | None) -> None:
    """Check what a kill left."""
    left = run.orphans()
    case.found.check(not left, f"{case.name}: {what}: {len(left)} processes live on")
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    case.check(what, code, (0, -signal.SIGKILL))


def full_after(size: int) -> Callable[[], None]:
    """Return what makes every file that is written end at some size."""

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return prepare


def without_powers() -> None:
    """Let permissions of files hold for the superuser, too."""
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, none):
        raise OSError(ctypes.get_errno(), "capset")


def in_1970() -> None:
    """Set the clock of this process back."""
    begun, now = time.time(), time.time
    time.time = lambda: now() - begun  # type: ignore[assignment]


def faults(case: Case, rng: random.Random) -> None:
    """Let the surroundings of a command fail."""
    out = case.folder / "out"
    largest = max((len(held) for held in case.whole.values()), default=1)
    for size in {max(size, MESSAGE) for size in (0, rng.randrange(largest), largest - 1)}:
        case.fresh(old=True)
        code = Run(case.command, case.folder, full_after(size)).end()
        case.check(f"a disk that is full after {size} bytes", code)
        case.found.tried["full disks"] += 1
    case.fresh(old=True)
    out.chmod(0o555)
    code = Run(case.command, case.folder, without_powers).end()
    out.chmod(0o755)
    case.check("a read-only folder", code, (2,))
    case.found.tried["read-only folders"] += 1
    case.fresh(old=True)

    def vanish(number: int, after: bool) -> None:
        if (number, after) == (1, False):
            shutil.rmtree(out)

    code = Run(case.command, case.folder, lambda: on_rename(vanish)).end()
    out.mkdir(exist_ok=True)
    case.begin()
    case.check("a folder that vanishes", code)
    case.found.tried["folders that vanish"] += 1
    case.fresh(old=True)
    pair = [Run(case.command, case.folder) for _ in range(2)]
    codes = sorted(code if (code := run.end()) is not None else 99 for run in pair)
    case.found.check(codes[0] == 0, f"{case.name}: of two processes on one output none succeeds: {codes}")
    case.check("two processes on one output", codes[1])
    case.found.tried["two processes on one output"] += 1
    case.fresh(old=True)
    case.check("a clock in 1970", Run(case.command, case.folder, in_1970).end(), (0,))
    case.same(f"{case.name}: a clock in 1970")
    case.found.tried["other clocks"] += 1


SURROUNDINGS: Mapping[str, tuple[str, Mapping[str, str | None]]] = {
    "closed streams": ("<&- >&- 2>&-", {}),
    "no errors": ("2>&-", {}),
    "a full output": (">/dev/full", {}),
    "a poor environment": ("", {"HOME": None, "TERM": "dumb", "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}),
}


def surroundings(case: Case) -> None:
    """Start a command anew, in other surroundings."""
    for what, (streams, changes) in SURROUNDINGS.items():
        case.fresh(old=True)
        given = {name: value for name, value in (os.environ | changes).items() if value is not None}
        line = f"'{sys.executable}' -m causal_shaping {case.command} {streams}"
        with (case.folder / "errors.txt").open("wb") as errors, (case.folder / "output.txt").open("wb") as output:
            told: Any = {"cwd": case.folder, "env": given, "stdout": output, "stderr": errors}
            code = subprocess.run(["/bin/sh", "-c", line], check=False, **told).returncode
        case.check(what, code, (0, 2) if "full" in what else (0,), rerun=False)
        case.same(f"{case.name}: {what}")
        case.found.tried["other surroundings"] += 1


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """Give a folder with what the commands read."""
    with tempfile.TemporaryDirectory(prefix="attack_") as name:
        folder = Path(name)
        made = [
            *(
                f"collect lavacross-easy --demonstrator {who} --steps 3000 -o {who}.parquet"
                for who in ("good", "random")
            ),
            "collect windy-field --demonstrator good --steps 2000 -o field.parquet",
            f"ceilings {LOGS} {BOUNDS} --counts counts.parquet",
        ]
        for command in made:
            if Run(command, folder).end(10 * PATIENCE) != 0:
                raise SystemExit((folder / "errors.txt").read_text())
        yield folder


def _import_everything() -> None:
    """Import what commands would import, and parse a command line, so that forks begin with their work."""
    import matplotlib.figure
    import pandas as pd  # noqa: F401

    import causal_shaping
    from causal_shaping.cli import app

    for module in pkgutil.walk_packages(causal_shaping.__path__, "causal_shaping."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    with contextlib.redirect_stdout(io.StringIO()):
        app(["worlds", "--help"], standalone_mode=False)
    matplotlib.figure.Figure().add_subplot()
    world = causal_shaping.load_world("lavacross-easy")  # loads compiled code, and starts no thread
    counts = world.model.observe(world.demonstrators["good"], source="good", horizon=20)
    causal_shaping.value_ceilings(counts, 20, 0.1, support="any")
    causal_shaping.train(world, steps=20)


def shorten_the_study() -> None:
    """Let forks begin with what a report always holds, and draw each figure once: a run takes two seconds, not ten.

    Its workers are new processes, and begin without that.
    """
    from causal_shaping.paper.study import figures, tables

    made = tables.robot_tables()
    tables.robot_tables = lambda: made
    figures.FORMATS = (".svg",)
    for world in (tables.ROBOT, "lavacross-easy"):
        tables.examined(world)


def attack(seed: int = 0, rounds: int = 3, only: Sequence[str] = (), renames: int = sys.maxsize) -> Found:
    """Kill and disturb commands; return what was tried, and the defects.

    Args:
        seed: of the random moments.
        rounds: random moments for each command.
        only: the commands; all if there are none.
        renames: kill at so many renames of each command; the study has dozens, and takes long.
    """
    _import_everything()
    found, rng = Found(), random.Random(seed)
    print(f"kills: seed {seed}, {rounds} rounds", flush=True)
    with workshop() as folder:
        for name in only or COMMANDS:
            begun, before = time.monotonic(), sum(found.tried.values())
            case = Case(name, folder, found)
            if case.whole:
                kills(case, rounds, rng, 0 if name in KILLED_ONLY else renames)
                if name not in KILLED_ONLY:
                    faults(case, rng)
                if name in STARTED_ANEW:
                    surroundings(case)
            tried, seconds = sum(found.tried.values()) - before, time.monotonic() - begun
            print(f"{name}: {tried} tried in {seconds:.0f} s, {len(found.defects)} defects so far", flush=True)
    return found


def main() -> None:
    """Run the attack; a defect fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--renames", type=int, default=sys.maxsize)
    given = parser.parse_args()
    found = attack(given.seed, given.rounds, [name for name in given.only.split(",") if name], given.renames)
    print(", ".join(f"{number} {what}" for what, number in found.tried.items()))
    print(f"{len(found.defects)} defects")
    sys.exit(bool(found.defects))


if __name__ == "__main__":
    main()
