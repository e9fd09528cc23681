"""Would the golden results notice a change of the code? Small changes of it, one at a time.

    python -m studies.mutants                     200 changes of bounds/; resumes
    python -m studies.mutants --count 20 --seed 3 --only bounds/_joint.py

Each change is written to a copy of the package, and `tests/golden/golden.py` compares the smallest worlds there,
without compiling, until the first difference. Changes that survive are printed at the end. A verdict is kept in
`studies/work/mutants`, by the checksum of the changed file: it holds as long as that stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from studies import parts

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "causal_shaping"
GOLDEN = ROOT / "tests" / "golden" / "golden.py"
KINDS = ("bounds", "more ceilings", "masks", "sensitivity", "contradictions")
WORLDS = "tiny,costs,unknown-by-step,by-step,both-signs,reward-bins,other-worlds,loops"
SECONDS = 600
"""A change after which the comparison takes longer than this is noticed by that."""

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmax": "argmin", "any": "all",
         "all": "any", "floor": "ceil", "zeros": "ones", "ones": "zeros"}  # fmt: skip


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield each place that can be changed, and what is done there."""
    skipped = set()
    for node in ast.walk(tree):  # docstrings, annotations, and what imports say are no behaviour
        if isinstance(node, ast.AnnAssign) and node.annotation:
            skipped.update(map(id, ast.walk(node.annotation)))
        if isinstance(node, ast.FunctionDef):
            parts = [a.annotation for a in node.args.args + node.args.kwonlyargs] + [node.returns]
            skipped.update(id(inner) for part in parts if part for inner in ast.walk(part))
        if isinstance(node, ast.Raise | ast.JoinedStr):
            skipped.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
            yield node, f"{type(node.op).__name__} -> {SWAPS[type(node.op)].__name__}"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield node, f"{type(node.ops[0]).__name__} -> {SWAPS[type(node.ops[0])].__name__}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield node, f"{node.value} -> {not node.value if isinstance(node.value, bool) else node.value + 1}"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
            yield node, f"without {type(node.op).__name__}"
        elif isinstance(node, ast.Attribute | ast.Name) and getattr(node, "attr", getattr(node, "id", "")) in NAMES:
            name = getattr(node, "attr", getattr(node, "id", ""))
            yield node, f"{name} -> {NAMES[name]}"


def change(node: ast.AST) -> ast.AST:
    """Change a node, and return what stands in its place."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.UnaryOp):
        return node.operand
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    return node


class At(ast.NodeTransformer):
    """Changes the node at one place of the tree."""

    def __init__(self, target: ast.AST) -> None:
        self.target = target

    def visit(self, node: ast.AST) -> ast.AST:
        """Change the node, or look inside."""
        return change(node) if node is self.target else self.generic_visit(node)


def mutants(only: str) -> list[str]:
    """Return the names of all changes: file, line, what is changed, checksum of the file, number in the file."""
    result = []
    for path in sorted(PACKAGE.glob("bounds/*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if only in name:
            text = path.read_text(encoding="utf-8")
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            for i, (node, what) in enumerate(changes(ast.parse(text))):
                result.append(f"{name}:{node.lineno} {what} ({digest}, {i})")  # type: ignore[attr-defined]
    return result


def mutated(name: str, number: int) -> str:
    """Return the text of a file with one change."""
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    target = [node for node, _ in changes(tree)][number]
    return ast.unparse(ast.fix_missing_locations(At(target).visit(tree)))


def verdict(mutant: str) -> dict[str, str]:
    """Return whether golden results notice a change, and what showed it."""
    name, number = mutant.split(":")[0], int(mutant.rstrip(")").rpartition(" ")[2])
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "causal_shaping"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied / name).write_text(mutated(name, number), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(GOLDEN), "--first", *KINDS, "--worlds", WORLDS]
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return {"verdict": "noticed", "by": "too slow"}
        if ran.returncode == 0:
            return {"verdict": "survived", "by": ""}
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        return {"verdict": "noticed", "by": lines[-1][:100]}


def main() -> None:
    """Try the changes that have no verdict yet, and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many changes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--only", default="", help="only files whose name holds this")
    parser.add_argument("--workers", type=int, default=2, help="how many at a time (default: %(default)s)")
    given = parser.parse_args()
    everything = mutants(given.only)
    chosen = random.Random(given.seed).sample(everything, min(given.count, len(everything)))
    found = parts.run(parts.WORK / "mutants", chosen, verdict, workers=given.workers)
    survived = [name for name in chosen if found[name]["verdict"] == "survived"]
    print("\n".join([f"{len(chosen)} tried, {len(survived)} survived", *survived]))


if __name__ == "__main__":
    main()
