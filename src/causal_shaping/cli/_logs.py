"""Logs on the command line: `[NAME=]FILE[,FILE...]` for each source, and what the columns mean.

A command that takes logs has a parameter of the type `Logs`, or `ListedLogs` if it needs states
that can be listed; both open and check the logs, and the second counts them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_shaping._progress import Progress
from causal_shaping.cli._admissible import read_admissible
from causal_shaping.cli._options import COLUMNS, flag, option, parts_of
from causal_shaping.cli._terminal import spoken_warnings
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.data.counts import Counts
    from causal_shaping.data.space import Bins
    from causal_shaping.logs.table import LogTable

Column = Annotated[str, option("COLUMN", panel=COLUMNS)]
Columns = Annotated[str | None, option("COLUMN,...", panel=COLUMNS)]
Flags = Annotated[str, option("COLUMN[=VALUE],...", panel=COLUMNS)]


@dataclass(frozen=True, kw_only=True)
class NamedColumns:
    """What the columns of logs mean.

    Options:
        state: The state: one column, or several with commas. (default: state)
        action: The action taken.
        reward: The reward of the step. For a column of costs: --reward=-cost.
        next_state: The state after the step. (default: next_ and the name of the state, if there is
            such a column)
        episode: Which episode a row belongs to.
        step: The number of the step in its episode.
        first_step: The number that the first step has.
        terminated: Whether the episode terminated with this row. Several columns: died,cured.
            Values of one column: outcome=died,cured.
        truncated: Whether the episode was cut off after this row; written like --terminated.
        partitions: Columns that the folders of files name: day for day=3/logs.parquet.
    """

    state: Columns = None
    action: Column = "action"
    reward: Column = "reward"
    next_state: Columns = None
    episode: Column = "episode"
    step: Column = "step"
    first_step: Annotated[int, option("N", panel=COLUMNS)] = 0
    terminated: Flags = "terminated"
    truncated: Flags = "truncated"
    partitions: Columns = None


@dataclass(frozen=True, kw_only=True)
class Logs(NamedColumns):
    """The logs that a command was given, one source each, and how to read them.

    Options:
        logs: Logs, one source each: [NAME=]FILE[,FILE...].
        actions: All actions, also those that nobody tried. (default: those in the logs)
        skip_bad_episodes: Leave out episodes that hold a bad row, with a warning.
        memory_limit: The most memory to read logs with, such as 2GB.
    """

    logs: Annotated[list[str], typer.Argument(metavar="LOGS")]
    actions: Annotated[str | None, option("ACTION,...", panel=COLUMNS)] = None
    skip_bad_episodes: Annotated[bool, flag("--skip-bad-episodes", COLUMNS)] = False
    memory_limit: Annotated[str | None, option("SIZE", panel=COLUMNS)] = None

    @property
    def files(self) -> list[str]:
        """All files that may be read, however an argument is understood."""
        files = []
        for text in self.logs:
            for whole in (text, text.rpartition("=")[2]):
                files += [whole, *whole.split(",")]
        return files

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `open_logs`."""
        plain = ("action", "reward", "episode", "step", "first_step", "memory_limit")
        arguments = {name: getattr(self, name) for name in plain}
        for name in ("state", "next_state", "partitions"):
            arguments[name] = parts_of(getattr(self, name))
        for name in ("terminated", "truncated"):
            arguments[name] = read_flags(f"--{name}", getattr(self, name))
        if self.actions is not None:
            arguments["actions"] = [_action(part) for part in self.actions.split(",")]
        arguments["partitions"] = arguments["partitions"] or ()
        return arguments

    def open(self, progress: Progress, **more: Any) -> list[LogTable]:
        """Open and check each log; `more` are arguments of `open_logs` besides the options."""
        from causal_shaping.logs import check_logs

        arguments = self.arguments() | more
        bins = arguments.pop("bins", None)
        opened: list[LogTable] = []
        # All logs are opened before the first is checked, which reads every row.
        for text in self.logs:
            with spoken_warnings():
                table = _open(text, bins=bins, **arguments)
            for other in opened:
                if table.source is not None and table.source == other.source:
                    raise ArgumentError(
                        f"{other.origin} and {table.origin} are both called {other.source!r}. "
                        f"Name them, as in NAME={table.origin}, or put a comma between the parts "
                        "of one source."
                    )
            opened.append(table)
            if bins:  # quantiles are those of the first log, so that all logs are cut alike
                bins = {name: opened[0].declared["bins"][name] for name in bins}
        checked = []
        for i, table in enumerate(opened):
            progress(i, len(opened), f"Checking {table.origin}")
            with spoken_warnings():
                checked.append(check_logs(table, skip_bad_episodes=self.skip_bad_episodes))
        return checked


@dataclass(frozen=True, kw_only=True)
class ListedLogs(Logs):
    """Logs whose states can be listed.

    Options:
        admissible: Where not every action exists in every state: a file with a row for each action
            that exists in a state, and the columns of state and action (.csv, .parquet). States
            that the file leaves out admit all actions.
        complete: No other states exist than those in the logs. (default: some may)
        bins: Cut columns of real numbers: age=8 into 8 quantiles of the first log, age=18:65 at 18
            and 65, age=65: at 65.
        missing: Label for missing values in state columns, such as unknown. (default: an error)
    """

    admissible: Annotated[Path | None, option("FILE", panel=COLUMNS)] = None
    complete: Annotated[bool, flag("--complete", COLUMNS)] = False
    bins: Annotated[str | None, option("COLUMN=CUTS,...", panel=COLUMNS)] = None
    missing: Annotated[str | None, option("LABEL", panel=COLUMNS)] = None

    @property
    def files(self) -> list[str]:
        """All files that may be read."""
        return super().files + [str(path) for path in (self.admissible,) if path is not None]

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of `open_logs`."""
        return super().arguments() | {"bins": read_bins(self.bins) or None, "missing": self.missing}

    def declared(self, tables: list[LogTable]) -> dict[str, Any]:
        """Return what the options declare of the states, as arguments of `count` and `inspect`."""
        admissible = None
        if self.admissible is not None:
            admissible = read_admissible(self.admissible, tables[0].columns, self.action)
        return {"admissible": admissible, "complete": self.complete}

    def count(
        self, progress: Progress, step_indexed: bool = False, hidden: str | None = None
    ) -> tuple[Counts, list[LogTable]]:
        """Return the counts of all logs, and the logs.

        Args:
            progress: called before each log.
            step_indexed: whether each step of an episode is counted by itself.
            hidden: logged columns that are no part of the state, such as age,severity.
        """
        from causal_shaping.logs import count

        tables = self.open(progress, hidden=parts_of(hidden) or ())
        progress(0, 1, "Counting")
        declared = self.declared(tables)
        counts = count(tables, step_indexed=step_indexed, **declared)
        if declared["admissible"] is not None:
            declared["admissible"].check(counts.space)
        return counts, tables


def _open(text: str, **columns: Any) -> LogTable:
    """Open what an argument names; text that is the name of a file is that file."""
    from causal_shaping.logs import open_logs
    from causal_shaping.logs.finding import MINARI

    if Path(text).exists():
        return open_logs(text, **columns)
    name, equals, where = text.rpartition("=")
    if equals and not (name and where):
        raise ArgumentError(f"{text!r} must have a name in front of '=' and a file behind it.")
    files: Any = where
    if not where.startswith(MINARI) and not Path(where).exists():
        files = [part for part in where.split(",") if part]
    return open_logs(files, source=name or None, **columns)


def _action(text: str) -> int | str:
    """Return the label of an action: a whole number if it is written as one."""
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    return text


def read_flags(name: str, text: str) -> str | list[str] | dict[str, list[str]]:
    """Read which rows end an episode.

    `text` is a column, or columns such as died,cured, or values of columns such as
    outcome=died,cured or died=1,cured=1.
    """
    names, values = list[str](), dict[str, list[str]]()
    for part in text.split(","):
        column, equals, value = part.partition("=")
        if equals:
            values.setdefault(column, []).append(value)
        elif values:  # another value of the column before
            values[next(reversed(values))].append(part)
        else:
            names.append(part)
    empty = not all([*names, *values, *(value for many in values.values() for value in many)])
    if (names and values) or empty:
        raise ArgumentError(
            f"{name} is {text!r}; write a column, columns such as died,cured, or values such as "
            "outcome=died,cured."
        )
    if values:
        return values
    if len(names) > 1:
        return names
    return text


def read_bins(text: str | None) -> dict[str, Bins]:
    """Read age=8,weight=50:70 as 8 quantiles of age, and two edges of weight."""
    from causal_shaping.data.space import Bins

    bins: dict[str, Bins] = {}
    for part in parts_of(text or None) or ():
        name, _, cuts = part.rpartition("=")
        how: dict[str, Any] = {}
        try:
            if cuts.isdigit():
                how["quantiles"] = int(cuts)
            else:  # 65: is one edge
                how["edges"] = tuple(float(edge) for edge in cuts.removesuffix(":").split(":"))
        except ValueError:
            name = ""  # refused below, like a part without a column
        if not name:
            raise ArgumentError(
                f"--bins is {text!r}; write it as age=8 for quantiles, age=18:65 for edges, or "
                "age=65: for one."
            )
        bins[name] = Bins(**how)
    return bins
