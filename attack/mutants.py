"""Do the tests notice wrong mathematics? Small changes of the code, one at a time, and the tests that pass there.

    make mutants                          # a seeded sample of 500; resumes; prints what survived
    make mutants ARGS='--count 50 --seed 3 --only bounds/'
    make mutants ARGS='--show'            # only what is known so far

First every test of the packages runs once, without compiled code, and the lines that it passes are noted. Then each
mutant runs the tests that pass its line, the quickest first, until one fails. Figures are kept in
`attack/work/mutants.json`, by mutant, and hold as long as the file that is changed stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE, WORK = ROOT / "src" / "causal_shaping", ROOT / "attack" / "work"
PACKAGES = ("bounds", "beliefs", "shaping", "learners")
TESTS = [f"tests/{name}" for name in PACKAGES]
SLOWEST = 20.0
"""Seconds after which a test is left out: without compiled code some take very long."""
ENOUGH, LONGEST = 60, 90.0
"""So many tests of a line are tried, for at most so many seconds; a mutant that takes longer is noticed, too."""

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
        self.watch = coverage.Coverage(data_file=None, source=[str(SOURCE / name) for name in PACKAGES])

    def pytest_sessionstart(self) -> None:
        """Watch lines from now on."""
        self.watch.start()

    def pytest_runtest_setup(self, item: Any) -> None:
        """Lines are this test's, until it takes too long."""
        self.watch.switch_context(item.nodeid)
        signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, SLOWEST)

    def pytest_runtest_teardown(self) -> None:
        """Do not interrupt what comes after a test."""
        signal.setitimer(signal.ITIMER_REAL, 0)

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
        self.path.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def _too_long(*_: Any) -> None:
    raise TimeoutError("too slow without compiled code")


ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
OPTIONS = ["-n0", "-q", "-p", "no:cacheprovider", "-p", "no:doctest", "-o", "addopts=", "--rootdir", str(ROOT)]


def note_lines() -> dict[str, Any]:
    """Return seconds by test and tests by line, from the file if the tests have run already."""
    path = WORK / "lines.json"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        code = f"import sys; sys.path.insert(0, {str(ROOT / 'attack')!r}); import pytest; from pathlib import Path; "
        code += "from mutants import Noted; "
        code += f"pytest.main({[*OPTIONS, *TESTS]!r}, plugins=[Noted(Path({str(path)!r}))])"
        print("Noting which test passes which line, without compiled code; this takes a while.", flush=True)
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | ENVIRONMENT, check=False)
    return dict(json.loads(path.read_text()))


# Runs --------------------------------------------------------------------------------------------------------------


def run(mutant: Mutant, noted: dict[str, Any], tree: Path) -> dict[str, Any]:
    """Return whether a test notices a mutant, and which."""
    text, line, _ = mutant.made()
    tests = sorted(noted["lines"].get(f"{mutant.file}:{line}", []), key=noted["seconds"].__getitem__)
    if not tests:
        return {"result": "no test"}
    target = tree / "causal_shaping" / mutant.file
    original = target.read_text()
    target.write_text(text)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", *OPTIONS, *tests[:ENOUGH]],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"result": "noticed", "by": "its time"}
    finally:
        target.write_text(original)
    if ran.returncode == 0:
        return {"result": "survived", "tests": len(tests)}
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    return {"result": "noticed", "by": found.group(1) if found else ran.stdout[-200:]}


def main() -> int:
    """Run a sample; return 1 if a mutant that is not explained survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many mutants (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path holds this text")
    parser.add_argument("--show", action="store_true", help="only print what is known")
    given = parser.parse_args()
    files = sorted(path for name in PACKAGES for path in (SOURCE / name).rglob("*.py") if given.only in str(path))
    every = [mutant for path in files for mutant in mutants_of(path)]
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))
    kept = WORK / "mutants.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if not given.show:
        noted, tree = note_lines(), WORK / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(SOURCE, tree / "causal_shaping", ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(chosen):
            if (name := mutant.name) not in known:
                began = time.monotonic()
                known[name] = run(mutant, noted, tree)
                kept.with_suffix(".new").write_text(json.dumps(known, indent=1))
                kept.with_suffix(".new").replace(kept)
                seconds = time.monotonic() - began
                print(f"{number + 1}/{len(chosen)} {known[name]['result']}, {seconds:.0f} s: {name}", flush=True)
    results = {mutant.name: known[mutant.name]["result"] for mutant in chosen if mutant.name in known}
    for name, result in sorted(results.items()):
        if result != "noticed":
            print(f"{result}: {name}")
    counted = {what: list(results.values()).count(what) for what in ("noticed", "survived", "no test")}
    print(f"{len(results)} of {len(every)} mutants (seed {given.seed}): {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
