"""What the command line writes for people: safe text, tables, warnings, and a progress bar.

Labels, names and messages can hold anything, so nothing that comes from a user is read as markup, and control
characters are shown as escapes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causal_shaping._checks import escaped
from causal_shaping._progress import Progress
from causal_shaping.errors import AssumptionWarning, DroppedEpisodesWarning, ShapingWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column
    from rich.text import Text


MOST_SHOWN = 4_000
"""Characters of a message that are shown: it may name thousands of columns."""


SAVED = "what they are expected to save an agent"
"""What the command `worth` tells."""


def say(text: object) -> None:
    """Print text of one or several lines, at once: through a pipe, too, people follow long work."""
    print(escaped(str(text), keep="\n"), flush=True)


def complain(kind: str, message: object) -> None:
    """Print an error or a warning as one line on the error stream."""
    tell(f"{kind}: {shortened(str(message))}")


def tell(line: str) -> None:
    """Print one line on the error stream."""
    print(escaped(line), file=sys.stderr, flush=True)


def shortened(text: str) -> str:
    """Return text whose middle is left out if it is longer than anybody reads."""
    left_out = len(text) - MOST_SHOWN
    half = MOST_SHOWN // 2
    return text if left_out <= 0 else f"{text[:half]} ... ({left_out:,} characters left out) ... {text[-half:]}"


def say_written(files: Mapping[str, Path | None]) -> None:
    """Say where results are: what was written to the file, for those files that were asked for."""
    for what, path in files.items():
        if path is not None:
            say(f"{what} written to {path}.")


def say_result(
    result: Any, files: Mapping[str, Path | None], as_json: bool, then: Callable[[], None] | None = None
) -> None:
    """Print a result in words, what `then` adds, and where its files are; or nothing but the result as JSON."""
    if as_json:
        print(result.to_json())
        return
    say(result)
    if then is not None:
        then()
    if any(files.values()):
        say("")
    say_written(files)


def say_next(commands: Mapping[str, str], note: str = "") -> None:
    """Point to what can be done next: commands with what they tell, and what to know of them."""
    say("\nNext, with the same logs and columns:")
    width = max(map(len, commands))
    for command, tells in commands.items():
        say(f"  causal-shaping {command:{width}}  {tells}")
    if note:
        say(note)


def wide_console(width: int = 0) -> Console:
    """Return where tables go: at least `width` wide; text is escaped, and taken as it is, not as markup."""
    console = _safe_console()
    console.width = max(console.width, width)
    return console


def _safe_console(**options: Any) -> Console:
    """Return a console that escapes every string, that of a cell or a title among them, and reads none as markup."""
    from rich.console import Console

    class SafeConsole(Console):
        def render_str(self, text: str, **style: Any) -> Text:
            return super().render_str(escaped(text), **style | {"markup": False, "emoji": False, "highlight": False})

    return SafeConsole(markup=False, highlight=False, emoji=False, **options)


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


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print the package's warnings as one line each on the error stream."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            for kind in (AssumptionWarning, DroppedEpisodesWarning, ShapingWarning):
                warnings.simplefilter("always", kind)
            yield
    finally:  # what was warned of may explain the error that follows
        for message in dict.fromkeys(str(warning.message) for warning in caught):
            complain("warning", message)


@contextmanager
def warned_safely() -> Iterator[None]:
    """Print other warnings, such as those of figures about letters that a font lacks, as one safe line each, too."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: complain("warning", message)
        yield


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give a progress callback that draws a bar on the error stream, if a person is looking."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.markup import escape
    from rich.progress import Progress as Bar

    with Bar(*Bar.get_default_columns(), console=_safe_console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: float, total: float, what: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(escaped(what)))

        yield show
