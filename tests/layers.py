"""The imports of the package, read off its source: who uses whom, functions that import late included.

- `STAGES`: the packages and leaf modules in the order of the flow.
- `DELEGATING`: methods that look to the right because people look for them there; nothing else may.
- `imports`: every import inside the package.
- `backward`, `cycles`: what breaks the order.
"""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "causal_shaping"
PACKAGE = "causal_shaping"

STAGES = (
    "errors",
    "_checks",
    "_extras",
    "_progress",
    "_leave",
    "_compile",
    "_registration",
    "_removed",
    "data",
    "storage",
    "models",
    "worlds",
    "logs",
    "bounds",
    "diagnose",
    "beliefs",
    "fitted",
    "shaping",
    "learners",
    "plot",
    "demo",
    "cli",
)
"""From left to right: data flows this way, and imports go the other."""

DELEGATING = {
    ("data.result", "Result.plot", "plot"),
    ("worlds.world", "World.plot", "plot"),
    ("bounds.results", "Ceilings.save_html", "plot"),
    ("diagnose.inspection", "Inspection.save_html", "plot"),
    ("beliefs.inference", "Posterior.worth", "learners"),
    ("data.result", "Written.save", "storage"),
    ("data.result", "Saved.load", "storage"),
}
"""Module, method, and the stage on the right that it hands over to."""


class Import(NamedTuple):
    """One import: the module that imports, in which function (empty at the top), and what."""

    module: str
    function: str
    target: str

    @property
    def stages(self):
        """The stages of the two modules."""
        return self.module.split(".")[0], self.target.split(".")[0]


def modules():
    """Return the package's modules by name, without the package's own name; the facade `__init__` is left out."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in ("", "__main__"):
            found[name] = path
    return found


def imports():
    """Yield every import of one module of the package by another."""
    known = modules()
    for module, path in known.items():
        for function, node in _statements(path.read_text()):
            for target in _targets(node, known):
                if target != module:
                    yield Import(module, function, target)


@cache
def _statements(source):
    return list(_walk(ast.parse(source)))


def _walk(tree, name=""):
    """Yield import statements with the name of the function that they stand in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            yield name, node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue  # names for annotations, which nothing executes
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _walk(node, f"{name}.{node.name}".lstrip("."))
        else:
            yield from _walk(node, name)


def _targets(node, known):
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert node.level == 0, "imports inside the package are absolute"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        parts = name.split(".")
        if parts[0] == PACKAGE and len(parts) > 1:
            inside = ".".join(parts[1:])
            yield inside if inside in known else ".".join(parts[1:-1])


def backward():
    """Return imports of something further to the right, but for the methods that delegate."""
    order = {stage: i for i, stage in enumerate(STAGES)}
    late = [one for one in imports() if one.target and order[one.stages[0]] < order[one.stages[1]]]
    return [one for one in late if (one.module, one.function, one.stages[1]) not in DELEGATING]


def unused_exceptions():
    """Return entries of `DELEGATING` that no method needs."""
    return DELEGATING - {(one.module, one.function, one.stages[1]) for one in imports() if one.target}


def cycles():
    """Return modules that import each other in a circle, late imports included, but for methods that delegate."""
    follows = {}
    for one in imports():
        if (one.module, one.function, one.stages[1]) not in DELEGATING:
            # A package's own `__init__` gathers its modules; a module that imports from a package means those.
            follows.setdefault(one.module, set()).add(one.target)
    try:
        TopologicalSorter(follows).prepare()
    except CycleError as error:
        return error.args[1]
    return []
