"""What the command line prints: results, tables, warnings and progress; only this file prints.

Labels, names and messages can hold anything, so nothing that comes from a user is read as markup,
and control characters are shown as escapes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from causal_shaping._checks import escaped
from causal_shaping._progress import Progress
from causal_shaping.errors import AssumptionWarning, DroppedEpisodesWarning, ShapingWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column
    from rich.text import Text

MOST_SHOWN = 4_000
"""Characters of a message that are shown: a message may name thousands of columns."""

COMPILING = "compiling on first use"
"""What the progress bar adds while Numba compiles: on later runs it loads what is compiled."""

SAVED = "what they are expected to save an agent"
"""What the command `worth` tells."""

Output: TypeAlias = tuple[str, Path | None, Callable[[Path], object]]
"""What a file holds, such as "Figure"; the file, or None if not asked for; and how to write it."""


# Results -----------------------------------------------------------------------------------------


def finish(
    result: Any,
    outputs: Sequence[Output],
    as_json: bool,
    next_steps: str = "",
    above: object = None,
) -> None:
    """Write the files of a command, all or none, and print its result, as text or as JSON.

    Args:
        result: prints as text, and has `to_json`.
        outputs: the files.
        as_json: print the result as JSON and nothing else.
        next_steps: what can be done next, see `next_commands`.
        above: text to print above the result.
    """
    write_together(outputs)
    if as_json:
        print_json(result.to_json())
        return
    if above is not None:
        say(f"{above}\n")
    say(result)
    if next_steps:
        say(next_steps)
    if any(path for _, path, _ in outputs):
        say("")
    say_written(outputs)


def write_together(outputs: Sequence[Output]) -> None:
    """Write files so that all of them take their places, or none."""
    from causal_shaping.storage import replacing_together

    with progress_bar() as progress, replacing_together():
        for i, (_, path, write) in enumerate(outputs):
            if path is not None:
                progress(i, len(outputs), f"Writing {path}")
                write(path)


def say_written(outputs: Sequence[Output]) -> None:
    """Say where results are."""
    for what, path, _ in outputs:
        if path is not None:
            say(f"{what} written to {path}.")


def next_commands(commands: Mapping[str, str], note: str) -> str:
    """Return text that names the next commands, what each of them tells, and a note on them."""
    width = max(map(len, commands))
    lines = [f"  causal-shaping {name:{width}}  {tells}" for name, tells in commands.items()]
    return "\n".join(["\nNext, with the same logs and columns:", *lines, note]).rstrip("\n")


def exact(number: float) -> str:
    """Return the shortest text of a number that reads as the same number: nothing is rounded."""
    return repr(float(number)).removesuffix(".0")


# Lines -------------------------------------------------------------------------------------------


def say(text: object) -> None:
    """Print text at once: also people who read a pipe follow long work."""
    print(escaped(str(text), keep="\n"), flush=True)


def print_json(text: str) -> None:
    """Print JSON, in which control characters are escapes already."""
    print(text)


def complain(kind: str, message: object) -> None:
    """Print an error or a warning as one line on the error stream."""
    tell(f"{kind}: {shortened(str(message))}")


def warn(message: str) -> None:
    """Warn of an assumption that the logs do not meet."""
    warnings.warn(message, AssumptionWarning, stacklevel=3)


def tell(line: str) -> None:
    """Print one line on the error stream."""
    print(escaped(line), file=sys.stderr, flush=True)


def shortened(text: str) -> str:
    """Return text without its middle if it is longer than anybody reads."""
    left_out, half = len(text) - MOST_SHOWN, MOST_SHOWN // 2
    if left_out <= 0:
        return text
    return f"{text[:half]} ... ({left_out:,} characters left out) ... {text[-half:]}"


# Tables ------------------------------------------------------------------------------------------


def print_table(
    heads: Sequence[str | Column],
    rows: Iterable[Sequence[str | Text]],
    *,
    title: str | None = None,
    width: int = 100,
    **layout: Any,
) -> None:
    """Print rows under heads; `layout` are options of `rich.table.Table`."""
    from rich.table import Table

    table = Table(*heads, title=title, **layout)
    for row in rows:
        table.add_row(*row)
    wide_console(width).print(table)


def wide_console(width: int = 0) -> Console:
    """Return a console at least `width` wide, which escapes text and reads none as markup."""
    console = _safe_console()
    console.width = max(console.width, width)
    return console


def _safe_console(**options: Any) -> Console:
    """Return a console that escapes every string, also that of a cell or a title."""
    from rich.console import Console

    plain: Any = {"markup": False, "emoji": False, "highlight": False}

    class SafeConsole(Console):
        def render_str(self, text: str, **style: Any) -> Text:
            return super().render_str(escaped(text), **style | plain)

    return SafeConsole(**plain, **options)


# Warnings ----------------------------------------------------------------------------------------


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print each warning of this package once, as one line on the error stream."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            for kind in (AssumptionWarning, DroppedEpisodesWarning, ShapingWarning):
                warnings.simplefilter("always", kind)
            yield
    finally:  # also before an error: a warning may explain it
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            complain("warning", message)


@contextmanager
def warned_safely() -> Iterator[None]:
    """Print warnings of other packages, such as matplotlib's, as one safe line each, too."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: complain("warning", message)
        yield


# Progress ----------------------------------------------------------------------------------------


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give a progress callback that draws a bar on the error stream, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.markup import escape
    from rich.progress import Progress as Bar

    columns, console = Bar.get_default_columns(), _safe_console(stderr=True)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("Starting", total=None)

        def show(done: float, total: float, what: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(escaped(what)))

        def compiling() -> None:
            shown = bar.tasks[0].description
            if COMPILING not in shown:
                bar.update(task, description=f"{shown} ({COMPILING})", refresh=True)

        with _noticed_compilation(compiling):
            yield show


@contextmanager
def _noticed_compilation(notice: Callable[[], None]) -> Iterator[None]:
    """Call `notice` whenever Numba begins to compile; it does not when it loads from its cache."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            notice()

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
