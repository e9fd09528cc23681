"""Do the tests notice wrong mathematics? Small changes of the code, one at a time, and the tests that pass there.

    python -m studies.mutants                          # a seeded sample of 500; resumes; prints what survived
    python -m studies.mutants --count 50 --seed 3 --only bounds/
    python -m studies.mutants --show            # only what is known so far

First every test of the packages runs once, without compiled code, and the lines that it passes are noted. Then each
mutant runs the tests that pass its line, the quickest first, until one fails; and if none does, some others of the same
files, which may share what was made there. It runs in a fork of a process that has collected all tests, and in which
the changed functions get their new code: so it takes no longer than its tests. What has run already when tests are
collected would keep its old effect: such a mutant runs in a fork of a process that has not imported this package, and
gets the changed text in place of the file. Nothing is written.

Verdicts are kept in `mutants.json` in `studies/figures`, by mutant, and hold as long as the file that is changed stays
as it is. One that survived is explained by an entry "explanation" there: why it changes nothing, or which slower test
notices it. To try one again, remove its entry.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
SOURCE, WORK = ROOT / "src" / "causal_shaping", ROOT / "studies" / "work"
KEPT = ROOT / "studies" / "figures" / "mutants.json"
PACKAGES = ("bounds", "beliefs", "shaping", "learners")
TESTS = [f"tests/{name}" for name in (*PACKAGES, "diagnose")]
SLOWEST = 2.0
"""Seconds after which a test is left out: without compiled code some take very long."""
ENOUGH, BUDGET = 300, 20.0
"""So many tests are tried, which take at most so many seconds together without the change."""
ALONE = 10
"""So many of the quickest come first; the others file by file, since what the tests of a file share is made once."""
PATIENCE, STARTING = 3.0, 5.0
"""A mutant whose test takes so many times as long, and seconds more, of the processor's time, is noticed by it."""
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
    place: str
    """Its text and which of that text in the file it is: holds although other parts of the file change."""

    def tree(self) -> tuple[ast.Module, int, str]:
        """Return the changed file, parsed, the line, and the change in words."""
        tree = ast.parse((SOURCE / self.file).read_text())
        node: Any = tree
        for step, index in self.trail:
            node = getattr(node, step) if index is None else getattr(node, step)[index]
        line, change = node.lineno, _apply(node, self.how)
        return ast.fix_missing_locations(tree), line, change

    def made(self) -> tuple[str, int, str]:
        """Return the text of the changed file, the line, and the change in words."""
        tree, line, change = self.tree()
        return ast.unparse(tree), line, change

    @property
    def name(self) -> str:
        """What it is known by, as long as the file stays as it is."""
        original = hashlib.sha256((SOURCE / self.file).read_bytes()).hexdigest()[:12]
        _, line, change = self.made()
        return f"{self.file}:{line} {change} (file {original}, {'/'.join(f'{i}' for _, i in self.trail)})"


# Changes -----------------------------------------------------------------------------------------------------------


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield all changes of a file; what runs only at import, messages and annotations are left alone."""
    seen = Counter[str]()
    for node, trail, how in _places(ast.parse(path.read_text()), []):
        text = f"{how} {ast.unparse(node)}"
        seen[text] += 1
        yield Mutant(path.relative_to(SOURCE).as_posix(), tuple(trail), how, f"{text} {seen[text]}")


def every_mutant(only: str = "") -> list[Mutant]:
    """Return all changes of the packages, or of the files there whose path holds a text."""
    files = sorted(path for name in PACKAGES for path in (SOURCE / name).rglob("*.py"))
    return [mutant for path in files if only in path.relative_to(SOURCE).as_posix() for mutant in mutants_of(path)]


def sample(every: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return so many of them; most stay the same ones when files change."""
    return sorted(every, key=lambda one: hashlib.sha256(f"{seed} {one.file} {one.place}".encode()).digest())[:count]


Trail = list[tuple[str, int | None]]


def _places(node: ast.AST, trail: Trail, inside: bool = False) -> Iterator[tuple[ast.AST, Trail, str]]:
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Assert)):
        return
    inside = inside or isinstance(node, (ast.FunctionDef, ast.Lambda))
    if inside:
        for how in _ways(node):
            yield node, trail, how
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


def watcher() -> Any:
    """Return what notes lines of the packages, once it is started."""
    import coverage

    return coverage.Coverage(data_file=None, config_file=False, source=[str(SOURCE / name) for name in PACKAGES])


def passed_lines(watch: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines that were passed, and the tests that did."""
    data = watch.get_data()
    for file in data.measured_files():
        for line, tests in data.contexts_by_lineno(file).items():
            yield f"{Path(file).relative_to(SOURCE).as_posix()}:{line}", tests


def note(items: Sequence[Any], path: Path) -> int:
    """Run tests of one file, and write which of them passed in time, how long they took, and the lines of each."""
    watch, seconds = watcher(), dict[str, float]()
    watch.start()
    for place, item in enumerate(items):
        watch.switch_context(item.nodeid)
        begun = time.process_time()
        if not failure(item, items[place + 1] if place + 1 < len(items) else None, SLOWEST):
            seconds[item.nodeid] = time.process_time() - begun
    watch.stop()
    lines = {line: [test for test in tests if test in seconds] for line, tests in passed_lines(watch)}
    path.write_text(json.dumps({"seconds": seconds, "lines": lines}))
    return 0


def failure(item: Any, following: Any, seconds: float) -> bool:
    """Run a collected test; return whether it, or what it needs, fails or takes longer. A skipped one has failed."""
    from _pytest.runner import runtestprotocol
    from _pytest.warnings import catch_warnings_for_item

    marked = catch_warnings_for_item(config=item.config, ihook=item.ihook, when="runtest", item=item)
    try:
        with _in_time(seconds), marked:  # which warnings a test ignores
            reports = runtestprotocol(item, nextitem=following, log=False)
    except (TimeoutError, Warning):  # a warning of the report that the bell interrupted
        return True
    return any(not report.passed for report in reports)


@contextlib.contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """Interrupt what takes too long by the processor's time, or waits for long."""

    def ring(*_: Any) -> None:
        raise TimeoutError("too slow without compiled code")

    timers = {signal.ITIMER_VIRTUAL: (signal.SIGVTALRM, seconds), signal.ITIMER_REAL: (signal.SIGALRM, 10 * seconds)}
    for timer, (bell, limit) in timers.items():
        signal.signal(bell, ring)
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)


ENVIRONMENT = {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "HYPOTHESIS_PROFILE": "brief"}
settings.register_profile(  # that of the suite, without a search for the simplest example, which nobody reads
    "brief", derandomize=True, deadline=None, max_examples=200, database=None, phases=[Phase.explicit, Phase.generate]
)
OPTIONS = ["-n0", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", str(ROOT)]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


def note_lines(items: Sequence[Any]) -> dict[str, Any]:
    """Return seconds by test and tests by line; of each file of tests from what was kept, if it has run already."""
    kept, files = WORK / "lines", dict[Path, list[Any]]()
    kept.mkdir(parents=True, exist_ok=True)
    sources = b"".join(path.read_bytes() for name in PACKAGES for path in sorted((SOURCE / name).rglob("*.py")))
    for item in items:
        files.setdefault(item.path, []).append(item)
    noted: dict[str, Any] = {"seconds": {}, "lines": {}}
    for file, tests in files.items():
        chosen = "\n".join(test.nodeid for test in tests).encode()
        digest = hashlib.sha256(chosen + file.read_bytes() + sources).hexdigest()[:12]
        path = kept / f"{file.stem}-{digest}.json"
        if not path.exists():
            print(f"Noting which lines {file.relative_to(ROOT)} passes, without compiled code", flush=True)
            _end_of(_forked(lambda tests=tests, path=path: note(tests, path)))
        if path.exists():
            held = json.loads(path.read_text())
            noted["seconds"] |= held["seconds"]
            for line, names in held["lines"].items():
                noted["lines"].setdefault(line, []).extend(names)
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


# Runs in a process that has collected the tests ---------------------------------------------------------------------


class Collected:
    """A plug-in of pytest: does some work instead of running the tests that were collected."""

    def __init__(self, work: Callable[[Sequence[Any]], Any]) -> None:
        self.work = work

    def pytest_runtestloop(self, session: Any) -> bool:
        """Do the work."""
        self.work(session.items)
        return True


def _key(code: CodeType) -> tuple[Any, ...]:
    return code.co_filename, code.co_qualname, tuple(code.co_positions())


def _functions(code: CodeType, inside: bool = False) -> Iterator[tuple[CodeType, bool]]:
    """Yield the functions of a module in their order, and whether another one is around them."""
    for held in code.co_consts:
        if isinstance(held, CodeType):
            is_function = bool(held.co_flags & inspect.CO_OPTIMIZED)
            if is_function:
                yield held, inside
            yield from _functions(held, inside or is_function)


class Live:
    """The functions of the packages in this process, which can get other code."""

    def __init__(self, before: set[str]) -> None:
        self.before = before  # lines that were passed already
        self.functions: dict[Any, list[FunctionType]] = {}
        for held in gc.get_objects():
            if type(held) is FunctionType and held.__code__.co_filename.startswith(str(SOURCE)):
                self.functions.setdefault(_key(held.__code__), []).append(held)

    def change(self, mutant: Mutant) -> bool:
        """Change the functions of a mutant in their places; return whether that is all that it changes."""
        path, (tree, line, _) = SOURCE / mutant.file, mutant.tree()
        if f"{mutant.file}:{line}" in self.before:
            return False
        codes = (compile(source, str(path), "exec", dont_inherit=True) for source in (path.read_text(), tree))
        complete = True
        for (original, nested), (changed, _) in zip(*map(_functions, codes), strict=True):
            if original != changed:
                found = self.functions.get(_key(original), [])
                complete &= bool(found) or nested
                for function in found:
                    function.__code__ = changed
        return complete


def try_in_place(mutant: Mutant, live: Live, items: dict[str, Any], noted: dict[str, Any], budget: float) -> Any:
    """Return whether a test notices a mutant, and which; None if that cannot be told here."""
    tests = chosen_tests(mutant, mutant.tree()[1], noted, budget)
    if not tests:
        return {"result": "no test"}
    told, noticed, elsewhere = WORK / "failed.txt", 1, 2

    def work(tests: Sequence[str], change: bool) -> int:
        if change and not live.change(mutant):
            return elsewhere
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            told.write_text(test)
            seconds = STARTING + PATIENCE * noted["seconds"][test]
            if failure(items[test], items.get(following or ""), seconds):
                return noticed
        return 0

    def code_of(tests: Sequence[str], change: bool) -> int | None:
        limit = 10 * sum(STARTING + PATIENCE * noted["seconds"][test] for test in tests)
        return _end_of(_forked(lambda: work(tests, change)), limit)

    while True:
        code = code_of(tests, True)
        if code == 0:
            return {"result": "survived", "tests": len(tests), "budget": budget}
        if code == elsewhere:
            return None
        by = told.read_text()
        if code_of(tests[: tests.index(by) + 1], False) == 0:  # what fails without the change says nothing
            return {"result": "noticed", "by": by}
        tests.remove(told.read_text())


# Runs in a new process ---------------------------------------------------------------------------------------------


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


def chosen_tests(mutant: Mutant, line: int, noted: dict[str, Any], budget: float) -> list[str]:
    """Return the tests to run: those that pass the line, then others of their files; the quickest first."""
    seconds = noted["seconds"]
    passing = sorted(noted["lines"].get(f"{mutant.file}:{line}", []), key=seconds.__getitem__)
    files = {test.split("::")[0] for test in passing}
    others = sorted((test for test in seconds if test.split("::")[0] in files), key=seconds.__getitem__)
    tests, spent = list[str](), 0.0
    for test in dict.fromkeys([*passing, *others]):
        spent += seconds[test]
        if len(tests) == ENOUGH or (tests and spent > budget):
            break
        tests.append(test)
    return tests[:ALONE] + sorted(tests[ALONE:], key=lambda test: test.split("::")[0])


def try_anew(mutant: Mutant, noted: dict[str, Any], budget: float) -> dict[str, Any]:
    """Return whether a test notices a mutant, and which, in a process that imports the changed file."""
    text, line, _ = mutant.made()
    tests = chosen_tests(mutant, line, noted, budget)
    if not tests:
        return {"result": "no test"}
    told = WORK / "failed.txt"
    told.unlink(missing_ok=True)
    seconds = 4 * STARTING + PATIENCE * sum(noted["seconds"][test] for test in tests)

    def work() -> Any:
        import numba

        numba.config.CACHE_DIR = str(WORK / "compiled" / hashlib.sha256(text.encode()).hexdigest())
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
        sys.meta_path.insert(0, Finder(mutant.file, text))
        return pytest.main(["-x", *OPTIONS, *tests], plugins=[First(told)])

    code = _end_of(_forked(work), 10 * seconds)
    if code == 0:
        return {"result": "survived", "tests": len(tests), "budget": budget}
    late = code in (None, -signal.SIGKILL, -signal.SIGXCPU)
    by = "its time" if late else told.read_text() if told.exists() else f"exit code {code}"
    return {"result": "noticed", "by": by}


class Verdicts:
    """What is known of mutants, kept in a file."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}

    def left(self, chosen: Sequence[Mutant], budget: float) -> list[Mutant]:
        """Return those that are to be tried: unknown, or survived fewer tests, unexplained."""
        return [mutant for mutant in chosen if self._is_left(self.known.get(mutant.name), budget)]

    def _is_left(self, known: dict[str, Any] | None, budget: float) -> bool:
        return known is None or (verdict(known) == "survived" and known.get("budget", BUDGET) < budget)

    def keep(self, mutant: Mutant, result: dict[str, Any], seconds: float) -> None:
        """Keep a verdict; that other tests do not pass a mutant tells nothing new."""
        if result["result"] == "no test" and mutant.name in self.known:
            return
        self.known[mutant.name] = result
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.with_suffix(".new").write_text(json.dumps(self.known, indent=1, ensure_ascii=False) + "\n")
        KEPT.with_suffix(".new").replace(KEPT)
        print(f"{result['result']}, {seconds:.1f} s: {mutant.name}", flush=True)


def try_all(chosen: Sequence[Mutant], folders: Sequence[str], budget: float, minutes: float) -> None:
    """Try mutants that are not known: most in forks of a process with all tests, the others one by one."""
    noted_file, until = WORK / "noted.json", time.monotonic() + 60 * minutes
    WORK.mkdir(exist_ok=True)

    def with_tests(items: Sequence[Any]) -> None:
        watch.stop()
        live = Live({line for line, _ in passed_lines(watch)})
        noted, by_name = note_lines(items), {item.nodeid: item for item in items}
        noted_file.write_text(json.dumps(noted))
        gc.freeze()
        verdicts = Verdicts()
        for mutant in verdicts.left(chosen, budget):
            begun = os.times()
            if time.monotonic() < until and (result := try_in_place(mutant, live, by_name, noted, budget)):
                verdicts.keep(mutant, result, os.times().children_user - begun.children_user)

    child = os.fork()
    if child == 0:
        watch = watcher()
        watch.start()
        os._exit(pytest.main(["-s", *OPTIONS, f"--basetemp={WORK / 'tmp'}", *folders], plugins=[Collected(with_tests)]))
    os.waitpid(child, 0)
    noted, verdicts = json.loads(noted_file.read_text()), Verdicts()
    for mutant in verdicts.left(chosen, budget):
        begun = os.times()
        if time.monotonic() < until:
            result = try_anew(mutant, noted, budget)
            verdicts.keep(mutant, result, os.times().children_user - begun.children_user)


def main() -> int:
    """Run a sample; return 1 if a mutant that is not explained survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="how many mutants (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path holds this text")
    parser.add_argument("--tests", default=",".join(TESTS), metavar="FOLDERS", help="of tests (default: %(default)s)")
    parser.add_argument(
        "--budget", type=float, default=BUDGET, help="seconds of tests for each; who survived fewer is tried again"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further mutant after so many")
    parser.add_argument("--show", action="store_true", help="only print what is known")
    given = parser.parse_args()
    every = every_mutant(given.only)
    chosen = sample(every, given.count, given.seed)
    if not given.show:
        os.environ.update(ENVIRONMENT)
        os.chdir(ROOT)
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        try_all(chosen, given.tests.split(","), given.budget, given.minutes)
    known = Verdicts().known
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
