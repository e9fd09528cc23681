"""Do the tests notice wrong mathematics? Small changes of the code, one at a time, and the tests that pass there.

    make mutants                          # a seeded sample of 500; resumes; prints what survived
    make mutants ARGS='--count 50 --seed 3 --only bounds/'
    make mutants ARGS='--show'            # only what is known so far

First every test of the packages runs once, without compiled code, and the lines that it passes are noted. Then each
mutant runs the tests that pass its line, the quickest first, until one fails; and if none does, some others of the same
files, which may share what was made there. It runs in a fork of a process that has imported what tests need beside this
package, and gets the changed text in place of the file: nothing is written.

Verdicts are kept in `mutants.json` in `attack/figures`, by mutant, and hold as long as the file that is changed stays
as it is. One that survived is explained by an entry "explanation" there: why it changes nothing, or which slower test
notices it. To try one again, remove its entry.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, WORK = ROOT / "src" / "causal_shaping", ROOT / "attack" / "work"
KEPT = ROOT / "attack" / "figures" / "mutants.json"
PACKAGES = ("bounds", "beliefs", "shaping", "learners")
TESTS = [f"tests/{name}" for name in (*PACKAGES, "diagnose")]
SLOWEST = 2.0
"""Seconds after which a test is left out: without compiled code some take very long."""
ENOUGH, BUDGET = 60, 20.0
"""So many tests are tried, which take at most so many seconds together without the change."""
PATIENCE, STARTING = 3.0, 20.0
"""A mutant whose tests take so many times as long, and seconds to start, of the processor's time, is noticed by it."""
PRELOADED = ("hypothesis", "numba", "pandas", "pyarrow.parquet", "scipy.optimize", "scipy.stats", "ibis")
PRELOADED += ("duckdb", "gymnasium", "joblib", "matplotlib.pyplot", "hypothesis.extra.numpy", "rich.progress", "torch")

COMPARED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
UNEXPLAINED = ("survived", "no test")
"""How a mutant ends that no test noticed."""
LEFT_ALONE = ("annotation", "returns", "decorator_list", "defaults", "kw_defaults")
CALLED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
CALLED |= {"argmax": "argmin", "argmin": "argmax", "ceil": "floor", "floor": "ceil", "fmin": "fmax", "fmax": "fmin"}


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file."""

    file: str
    trail: tuple[tuple[str, int | None], ...]
    how: str

    def made(self) -> tuple[str, int, str]:
        """Return the text of the changed file, the line, and the change in words."""
        tree = ast.parse((SOURCE / self.file).read_text())
        node: Any = tree
        for step, index in self.trail:
            node = getattr(node, step) if index is None else getattr(node, step)[index]
        line, change = node.lineno, _apply(node, self.how)
        return ast.unparse(ast.fix_missing_locations(tree)), line, change

    @property
    def name(self) -> str:
        """What it is known by, as long as the file stays as it is."""
        original = hashlib.sha256((SOURCE / self.file).read_bytes()).hexdigest()[:12]
        _, line, change = self.made()
        return f"{self.file}:{line} {change} (file {original}, {'/'.join(f'{i}' for _, i in self.trail)})"


# Changes -----------------------------------------------------------------------------------------------------------


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all changes of a file; what runs only at import, messages and annotations are left alone."""
    for trail, how in _places(ast.parse(path.read_text()), []):
        yield Mutant(path.relative_to(SOURCE).as_posix(), tuple(trail), how)


def every_mutant(only: str = "") -> list[Mutant]:
    """Return all changes of the packages, or of the files there whose path holds a text."""
    files = sorted(path for name in PACKAGES for path in (SOURCE / name).rglob("*.py"))
    return [mutant for path in files if only in path.relative_to(SOURCE).as_posix() for mutant in mutants_of(path)]


Trail = list[tuple[str, int | None]]


def _places(node: ast.AST, trail: Trail, inside: bool = False) -> Iterator[tuple[Trail, str]]:
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):
        return
    inside = inside or isinstance(node, (ast.FunctionDef, ast.Lambda))
    if inside:
        for how in _ways(node):
            yield trail, how
    for name, value in ast.iter_fields(node):
        if name in LEFT_ALONE:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield from _places(child, [*trail, (name, index)], inside)


def _ways(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        yield "compare"
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in COMPUTED:
        yield "compute"
    elif isinstance(node, ast.BoolOp):
        yield "and/or"
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "negate"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        yield "constant"
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in CALLED:
            yield "call"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield "sign"
    elif isinstance(node, ast.Break):
        yield "break"


def _apply(node: Any, how: str) -> str:
    """Change a node in its place; return the change in words."""
    before = ast.unparse(node).split("\n")[0]
    if how == "compare":
        node.ops[0] = COMPARED[type(node.ops[0])]()
    elif how == "compute":
        node.op = COMPUTED[type(node.op)]()
    elif how == "and/or":
        node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
    elif how == "negate":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif how == "constant":
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
    elif how == "call" and isinstance(node.func, ast.Name):
        node.func.id = CALLED[node.func.id]
    elif how == "call":
        node.func.attr = CALLED[node.func.attr]
    elif how == "sign":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
        if isinstance(node.op, (ast.Not, ast.Invert)):
            node.operand = ast.UnaryOp(type(node.op)(), node.operand)
    elif how == "break":
        node.__class__ = ast.Continue
    return f"{before}  ->  {ast.unparse(node).splitlines()[0]}"


# Which test passes which line --------------------------------------------------------------------------------------


class Noted:
    """A plug-in of pytest: notes seconds and lines of every test that passes in time."""

    def __init__(self, path: Path) -> None:
        import coverage

        self.path, self.tests = path, {}
        self.seconds: dict[str, float] = {}
        self.watch = coverage.Coverage(
            data_file=None, config_file=False, source=[str(SOURCE / name) for name in PACKAGES]
        )

    def pytest_sessionstart(self) -> None:
        """Watch lines from now on."""
        self.watch.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: Any) -> Iterator[None]:
        """Lines are this test's from now on."""
        self.watch.switch_context(item.nodeid)
        with _in_time():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Stop a test that takes too long."""
        with _in_time():
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the seconds of a test that passed."""
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        """Write everything to the file."""
        self.watch.stop()
        data, lines = self.watch.get_data(), {}
        for file in data.measured_files():
            inside = Path(file).relative_to(SOURCE).as_posix()
            for line, tests in data.contexts_by_lineno(file).items():
                lines[f"{inside}:{line}"] = [test for test in tests if test in self.seconds]
        if self.seconds:
            self.path.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """Interrupt what takes too long by the processor's time, or waits for long."""

    def ring(*_: Any) -> None:
        raise TimeoutError("too slow without compiled code")

    timers = {signal.ITIMER_VIRTUAL: (signal.SIGVTALRM, SLOWEST), signal.ITIMER_REAL: (signal.SIGALRM, 10 * SLOWEST)}
    for timer, (bell, seconds) in timers.items():
        signal.signal(bell, ring)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)


ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
OPTIONS = [
    "-n0",
    "-q",
    "-p",
    "no:cacheprovider",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-o",
    "addopts=",
    "--rootdir",
    str(ROOT),
]


def note_lines(folders: Sequence[str]) -> dict[str, Any]:
    """Return seconds by test and tests by line; of each file of tests from what was kept, if it has run already."""
    kept = WORK / "lines"
    kept.mkdir(parents=True, exist_ok=True)
    noted: dict[str, Any] = {"seconds": {}, "lines": {}}
    for file in sorted(path.relative_to(ROOT) for name in folders for path in (ROOT / name).rglob("test_*.py")):
        path = kept / f"{file.stem}.json"
        if not path.exists():
            print(f"Noting which lines {file} passes, without compiled code", flush=True)
            _end_of(_forked(lambda test=str(file), path=path: pytest.main([*OPTIONS, test], plugins=[Noted(path)])))
        if path.exists():
            held = json.loads(path.read_text())
            noted["seconds"] |= held["seconds"]
            for line, tests in held["lines"].items():
                noted["lines"].setdefault(line, []).extend(tests)
    return noted


def _forked(work: Callable[[], Any]) -> int:
    """Do work in a fork that prints to a file and ends with its exit code; return its number."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            quiet = os.open(WORK / "said.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            for stream in range(3):
                os.dup2(quiet, stream)
            code = int(work())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def _end_of(child: int, seconds: float = 3600.0) -> int | None:
    """Return how a fork ends; None if it takes longer, and is killed with all that it started."""
    limit = time.monotonic() + seconds
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        time.sleep(0.02)
        if time.monotonic() > limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
    return os.waitstatus_to_exitcode(ended[1])


# Runs --------------------------------------------------------------------------------------------------------------


class Changed(importlib.machinery.SourceFileLoader):
    """Loads a module of another text than its file holds."""

    text = ""

    def get_data(self, path: str) -> bytes:
        """Return the changed text."""
        return self.text.encode()

    def path_stats(self, path: str) -> Any:
        """Let no compiled file be read or written."""
        raise OSError


class Finder(importlib.abc.MetaPathFinder):
    """Finds the changed module; all others are found as ever."""

    def __init__(self, file: str, text: str) -> None:
        parts = ("causal_shaping", *Path(file).with_suffix("").parts)
        self.package = parts[-1] == "__init__"
        self.name, self.path, self.text = ".".join(parts[: -1 if self.package else None]), str(SOURCE / file), text

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return the changed module's spec."""
        if fullname != self.name:
            return None
        loader = Changed(fullname, self.path)
        loader.text = self.text
        inside = [str(Path(self.path).parent)] if self.package else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=loader, submodule_search_locations=inside
        )


class First:
    """A plug-in of pytest: writes the first test that fails to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails."""
        if report.failed:
            self.path.write_text(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot even be imported."""
        if report.failed:
            self.path.write_text(report.nodeid)


def chosen_tests(mutant: Mutant, line: int, noted: dict[str, Any]) -> list[str]:
    """Return the tests to run: those that pass the line, then others of their files; the quickest first."""
    seconds = noted["seconds"]
    passing = sorted(noted["lines"].get(f"{mutant.file}:{line}", []), key=seconds.__getitem__)
    files = {test.split("::")[0] for test in passing}
    others = sorted((test for test in seconds if test.split("::")[0] in files), key=seconds.__getitem__)
    tests, spent = list[str](), 0.0
    for test in dict.fromkeys([*passing, *others]):
        spent += seconds[test]
        if len(tests) == ENOUGH or (tests and spent > BUDGET):
            break
        tests.append(test)
    return tests


def run(mutant: Mutant, noted: dict[str, Any]) -> dict[str, Any]:
    """Return whether a test notices a mutant, and which."""
    text, line, _ = mutant.made()
    tests = chosen_tests(mutant, line, noted)
    if not tests:
        return {"result": "no test"}
    note = WORK / "failed.txt"
    note.unlink(missing_ok=True)

    seconds = STARTING + PATIENCE * sum(noted["seconds"][test] for test in tests)

    def work() -> Any:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
        sys.meta_path.insert(0, Finder(mutant.file, text))
        return pytest.main(["-x", *OPTIONS, *tests], plugins=[First(note)])

    code = _end_of(_forked(work), 10 * seconds)
    if code == 0:
        return {"result": "survived", "tests": len(tests)}
    late = code in (None, -signal.SIGKILL, -signal.SIGXCPU)
    by = "its time" if late else note.read_text() if note.exists() else f"exit code {code}"
    return {"result": "noticed", "by": by}


def main() -> int:
    """Run a sample; return 1 if a mutant that is not explained survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many mutants (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path holds this text")
    parser.add_argument("--tests", default=",".join(TESTS), metavar="FOLDERS", help="of tests (default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="only print what is known")
    given = parser.parse_args()
    every = every_mutant(given.only)
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))
    known: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not given.show:
        os.environ.update(ENVIRONMENT)
        os.chdir(ROOT)
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        noted = note_lines(given.tests.split(","))
        for number, mutant in enumerate(chosen):
            if (name := mutant.name) not in known:
                began = time.monotonic()
                known[name] = run(mutant, noted)
                KEPT.parent.mkdir(exist_ok=True)
                KEPT.with_suffix(".new").write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")
                KEPT.with_suffix(".new").replace(KEPT)
                seconds = time.monotonic() - began
                print(f"{number + 1}/{len(chosen)} {known[name]['result']}, {seconds:.0f} s: {name}", flush=True)
    results = {mutant.name: verdict(known[mutant.name]) for mutant in chosen if mutant.name in known}
    for name, result in sorted(results.items()):
        if result in UNEXPLAINED:
            print(f"{result}: {name}")
    counted = {what: list(results.values()).count(what) for what in ("noticed", "explained", *UNEXPLAINED)}
    print(f"{len(results)} of {len(every)} mutants (seed {given.seed}): {counted}")
    return int(any(result in UNEXPLAINED for result in results.values()))


def verdict(known: dict[str, Any]) -> str:
    """Return how a mutant ended: one that no test noticed may be explained."""
    return "explained" if "explanation" in known else known["result"]


if __name__ == "__main__":
    sys.exit(main())
