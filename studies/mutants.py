"""Would the golden results notice a change of the code? Small changes of it, one at a time.

    python -m studies.mutants                     200 changes of bounds/; resumes
    python -m studies.mutants --count 20 --seed 3 --only bounds/_joint.py
    python -m studies.mutants --show              what is known so far
    python -m studies.mutants --again --worlds by-step,both-signs,reward-bins,other-worlds,loops

Each change is written to a copy of the package, and `tests/golden/golden.py` compares the three
smallest worlds there, without compiling, until the first difference. A change that survives is
explained in `explanations` of `mutants.json`: why it changes no bound. Verdicts hold as long as
the changed file stays as it is.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "causal_shaping"
KEPT = Path(__file__).with_suffix(".json")
GOLDEN = ROOT / "tests" / "golden" / "golden.py"
KINDS = ("bounds", "more ceilings", "masks", "sensitivity", "contradictions")
WORLDS = "tiny,costs,unknown-by-step"
AFTER = {
    "bounds/verdict.py": "the verdict is computed after the bounds, from them",
    "bounds/words.py": "sentences about finished bounds",
}
"""Files that change no bound, and why: what survives there needs no other world."""

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


def mutants(only: str) -> list[tuple[str, str, str]]:
    """Return all changes: a name, the file, and its text with the change."""
    result = []
    for path in sorted(PACKAGE.glob("bounds/*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if only not in name:
            continue
        text = path.read_text(encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        for i, (node, what) in enumerate(changes(ast.parse(text))):
            result.append((f"{name}:{node.lineno} {what} ({digest}, {i})", name, str(i)))  # type: ignore[attr-defined]
    return result


def mutated(name: str, number: int) -> str:
    """Return the text of a file with one change."""
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    target = [node for node, _ in changes(tree)][number]
    return ast.unparse(ast.fix_missing_locations(At(target).visit(tree)))


def verdict(name: str, number: int, worlds: str) -> str:
    """Return whether golden results notice a change."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "causal_shaping"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied / name).write_text(mutated(name, number), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(GOLDEN), "--first", *KINDS, "--worlds", worlds]
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "noticed: too slow"
        if ran.returncode == 0:
            return "survived"
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        return f"noticed: {lines[-1][:100]}"


def keep(known: dict) -> None:
    """Replace the file of verdicts as a whole."""
    temporary = KEPT.with_suffix(".tmp")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, KEPT)


def show(known: dict, chosen: list[str]) -> None:
    """Print what survived, with the explanations."""
    tried = {one: known["verdicts"][one] for one in chosen if one in known["verdicts"]}
    survived = [one for one, what in tried.items() if what == "survived"]
    print(f"{len(tried)} of {len(chosen)} tried, {len(tried) - len(survived)} noticed, {len(survived)} survived")
    for one in survived:
        why = known["explanations"].get(one) or AFTER.get(one.partition(":")[0], "not explained")
        print(f"  {one}: {why}")


def main() -> None:
    """Try the changes that have no verdict yet, and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many changes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--only", default="", help="only files whose name holds this")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: %(default)s)")
    parser.add_argument("--worlds", default=WORLDS, help="golden results to compare (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="try those that survived again, in other worlds")
    parser.add_argument("--show", action="store_true", help="print what is known, try nothing")
    arguments = parser.parse_args()
    known = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"verdicts": {}, "explanations": {}}
    everything = mutants(arguments.only)
    sample = random.Random(arguments.seed).sample(everything, min(arguments.count, len(everything)))
    chosen = [name for name, *_ in sample]
    if not arguments.show:
        tried = known["verdicts"]
        left = [one for one in sample if one[0] not in tried]
        if arguments.again:
            left = [one for one in sample if tried.get(one[0]) == "survived" and one[1] not in AFTER]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            found = pool.map(lambda one: (one[0], verdict(one[1], int(one[2]), arguments.worlds)), left)
            for i, (name, what) in enumerate(found):
                known["verdicts"][name] = what
                keep(known)
                print(f"{i + 1}/{len(left)} {name}: {what}", flush=True)
    show(known, chosen)


if __name__ == "__main__":
    main()
