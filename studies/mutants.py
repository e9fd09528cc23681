"""Do the tests notice changed code? One small change at a time, in a copy of the package, until a test fails.

    python -m studies.mutants bounds/ --count 200 --tests tests/golden
    python -m studies.mutants shaping/ --tests tests/shaping --workers 2

Changes are a seeded sample of all: a comparison, an operator, a number, a truth value, a minimum for a maximum. Tests
run without compiled code, so that changes of it count at once. What was found is kept, and holds as long as the changed
file stays as it is; what survived is printed at the end.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies import ROOT, parts

PACKAGE = ROOT / "src" / "causal_shaping"
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
PATIENCE = 900
"""Seconds after which a change is noticed, since the tests hang."""


@dataclass(frozen=True)
class Mutant:
    """A change of one node of a file, which is numbered as `ast.walk` meets it."""

    file: str
    node: int

    def text(self) -> str:
        """Return the changed file."""
        tree = ast.parse((PACKAGE / self.file).read_text())
        changed(list(ast.walk(tree))[self.node])
        return ast.unparse(tree)

    def name(self) -> str:
        """Return which node is changed, and of which version of the file."""
        version = hashlib.sha256((PACKAGE / self.file).read_bytes()).hexdigest()[:8]
        return f"{self.file}, {self.node}, {version}"

    def change(self) -> str:
        """Return where the change is, and what it is."""
        node = list(ast.walk(ast.parse((PACKAGE / self.file).read_text())))[self.node]
        after = copy.deepcopy(node)
        changed(after)
        line = getattr(node, "lineno", 0)
        return f"{self.file}:{line}: {ast.unparse(node)} becomes {ast.unparse(after)}"


def changed(node: ast.AST) -> bool:
    """Change a node in place; return whether there is a change for it."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        node.ops[0] = SWAPPED[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPPED:
        node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value += 1
    elif isinstance(node, ast.Name) and node.id in NAMES:
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        node.attr = NAMES[node.attr]
    else:
        return False
    return True


def mutants(folder: str) -> Iterator[Mutant]:
    """Yield every change of the files in a folder of the package."""
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for number, node in enumerate(ast.walk(ast.parse(path.read_text()))):
            if changed(node):
                yield Mutant(path.relative_to(PACKAGE).as_posix(), number)


@dataclass(frozen=True)
class Trial:
    """Runs tests on a changed copy of the package."""

    by_name: dict[str, Mutant]
    tests: tuple[str, ...]

    def __call__(self, name: str) -> dict[str, str | bool]:
        """Return whether a test noticed a change, and the last line that it printed."""
        mutant = self.by_name[name]
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(PACKAGE, Path(folder) / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
            (Path(folder) / PACKAGE.name / mutant.file).write_text(mutant.text())
            command = [sys.executable, "-m", "pytest", "-x", "-n0", "-q", "-p", "no:cacheprovider", *self.tests]
            environment = {**os.environ, "PYTHONPATH": folder, "NUMBA_DISABLE_JIT": "1"}
            try:
                ran = subprocess.run(
                    command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                return {"noticed": True, "end": "it took too long"}
        return {"noticed": ran.returncode != 0, "end": (ran.stdout.strip().splitlines() or [""])[-1]}


def main(arguments: Sequence[str]) -> int:
    """Try a sample of changes, print those that no test noticed; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="of the package: bounds/, beliefs/, ...")
    parser.add_argument("--count", type=int, default=200, help="how many changes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="what pytest runs (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    given = parser.parse_args(arguments)
    every = list(mutants(given.folder))
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))
    by_name = {mutant.name(): mutant for mutant in chosen}
    trial = Trial(by_name, tuple(given.tests))
    tests = hashlib.sha256(" ".join(given.tests).encode()).hexdigest()[:8]
    found = parts.run(parts.WORK / f"mutants-{tests}", list(by_name), trial, workers=given.workers)
    survived = [by_name[name].change() for name, one in found.items() if not one["noticed"]]
    print(*survived, f"{len(found)} of {len(every)} changes: {len(survived)} survived", sep="\n")
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
