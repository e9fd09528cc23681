"""Logs as the command line names them: `[NAME=]FILE[,FILE...]`, and what their columns mean."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from causal_shaping._progress import Progress
from causal_shaping.cli._admissible import AdmissibleActions, read_admissible
from causal_shaping.cli._options import COLUMNS, flag, option
from causal_shaping.cli._terminal import spoken_warnings
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.data.counts import Counts
    from causal_shaping.data.space import Bins
    from causal_shaping.logs.table import LogTable


@dataclass(frozen=True)
class LogArguments:
    """The logs that a command was given, one source each, and how to read them."""

    names: list[str]
    bins: dict[str, Bins]  # quantiles are those of the first log, so that all are cut alike
    columns: dict[str, Any]  # see `open_logs`
    skip_bad_episodes: bool
    admissible_file: Path | None = None
    complete: bool = False

    @property
    def files(self) -> list[Path]:
        """All that may be read, however an argument is understood."""
        found = [] if self.admissible_file is None else [self.admissible_file]
        for text in self.names:
            for whole in (text, text.rpartition("=")[2]):
                found += [Path(part) for part in (whole, *whole.split(","))]
        return found

    def admissible(self, tables: list[LogTable]) -> AdmissibleActions | None:
        """Return which actions exist in which state, None if all do."""
        if self.admissible_file is None:
            return None
        return read_admissible(self.admissible_file, tables[0].columns, self.columns["action"])

    def with_hidden(self, hidden: str | None) -> LogArguments:
        """Return the same logs, opened with columns that are no part of the state, such as age,severity."""
        return self if hidden is None else replace(self, columns=self.columns | {"hidden": hidden.split(",")})

    def open(self, progress: Progress) -> list[LogTable]:
        """Open and check each log."""
        from causal_shaping.logs import check_logs

        opened: list[LogTable] = []
        for text in self.names:
            cuts = {name: opened[0].declared["bins"][name] for name in self.bins} if opened else self.bins
            with spoken_warnings():
                opened.append(_open(text, bins=cuts or None, **self.columns))
            for other in opened[:-1]:
                if opened[-1].source is not None and opened[-1].source == other.source:
                    raise ArgumentError(
                        f"{other.origin} and {opened[-1].origin} are both called {other.source!r}. Name them, as in "
                        f"NAME={opened[-1].origin}, or put a comma between the parts of one source."
                    )
        checked = []
        for i, table in enumerate(opened):
            progress(i, len(opened), f"Checking {table.origin}")
            with spoken_warnings():
                checked.append(check_logs(table, skip_bad_episodes=self.skip_bad_episodes))
        return checked

    def count(self, progress: Progress, step_indexed: bool = False) -> tuple[Counts, list[LogTable]]:
        """Return what the logs hold, counted, and the logs."""
        from causal_shaping.logs import count

        tables = self.open(progress)
        progress(0, 1, "Counting")
        admissible = self.admissible(tables)
        counts = count(tables, step_indexed=step_indexed, admissible=admissible, complete=self.complete)
        if admissible is not None:
            admissible.check(counts.space)
        return counts, tables


def _open(text: str, **columns: Any) -> LogTable:
    """Open what an argument names; a name that exists as a file is that file, whatever signs it holds."""
    from causal_shaping.logs import open_logs
    from causal_shaping.logs.finding import MINARI

    if Path(text).exists():
        return open_logs(text, **columns)
    name, equals, where = text.rpartition("=")
    if equals and not (name and where):
        raise ArgumentError(f"{text!r} must have a name in front of '=' and a file behind it.")
    single = where.startswith(MINARI) or Path(where).exists()
    files: Any = where if single else [part for part in where.split(",") if part]
    return open_logs(files, source=name or None, **columns)


def _action(text: str) -> int | str:
    """Return the label of an action: a whole number where it is one in plain digits, otherwise text."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def _column(text: str, metavar: str = "COLUMN") -> Any:
    return option(text, metavar, panel=COLUMNS)


def _log_arguments(
    logs: Annotated[list[str], typer.Argument(metavar="LOGS", help="Logs, one source each: [NAME=]FILE[,FILE...].")],
    state: Annotated[
        str | None, _column("The state: one column, or several with commas.  (default: state)", "COLUMN,...")
    ] = None,
    action: Annotated[str, _column("The action taken.")] = "action",
    reward: Annotated[str, _column("The reward of the step. For a column of costs: --reward=-cost.")] = "reward",
    next_state: Annotated[
        str | None,
        _column("The state after the step.  (default: next_ and the name of the state, if present)", "COLUMN,..."),
    ] = None,
    episode: Annotated[str, _column("Which episode a row belongs to.")] = "episode",
    step: Annotated[str, _column("The number of the step in its episode.")] = "step",
    first_step: Annotated[int, _column("The number that the first step has.", "N")] = 0,
    terminated: Annotated[
        str,
        _column(
            "Whether the episode terminated with this row. Several columns: died,cured. Values of one: "
            "outcome=died,cured.",
            "COLUMN[=VALUE],...",
        ),
    ] = "terminated",
    truncated: Annotated[
        str, _column("Whether the episode was cut off after this row; written alike.", "COLUMN[=VALUE],...")
    ] = "truncated",
    actions: Annotated[
        str | None, _column("All actions, also those that nobody tried.  (default: those in the logs)", "ACTION,...")
    ] = None,
    admissible: Annotated[
        Path | None,
        _column(
            "Actions that exist in a state, where not all do: a row for each, with the columns of state and action "
            "(.csv, .parquet). States that do not occur admit all.",
            "FILE",
        ),
    ] = None,
    complete: Annotated[
        bool,
        flag("--complete", "No other states exist than those in the logs.  (default: some may)", COLUMNS),
    ] = False,
    bins: Annotated[
        str | None,
        _column(
            "Cut columns of real numbers: age=8 into 8 quantiles of the first log, age=18:65 at 18 and 65, "
            "age=65: at 65.",
            "COLUMN=CUTS,...",
        ),
    ] = None,
    missing: Annotated[
        str | None, _column("Label for missing values in state columns, such as unknown.  (default: an error)", "LABEL")
    ] = None,
    skip_bad_episodes: Annotated[
        bool, flag("--skip-bad-episodes", "Leave out episodes that hold a bad row, with a warning.", COLUMNS)
    ] = False,
    partitions: Annotated[
        str | None, _column("Columns that the folders of files name: day for day=3/logs.parquet.", "COLUMN,...")
    ] = None,
    memory_limit: Annotated[str | None, _column("The most memory to read logs with, such as 2GB.", "SIZE")] = None,
) -> LogArguments:
    columns: dict[str, Any] = {
        "state": None if state is None else state.split(","),
        "action": action,
        "reward": reward,
        "next_state": None if next_state is None else next_state.split(","),
        "episode": episode,
        "step": step,
        "first_step": first_step,
        "terminated": read_flags("--terminated", terminated),
        "truncated": read_flags("--truncated", truncated),
        "actions": None if actions is None else [_action(part) for part in actions.split(",")],
        "partitions": partitions.split(",") if partitions else (),
        "memory_limit": memory_limit,
    }
    if missing is not None:
        columns["missing"] = missing
    return LogArguments(logs, read_bins(bins), columns, skip_bad_episodes, admissible, complete)


def takes_logs(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the arguments of `_log_arguments`; it gets them as its first one, a `LogArguments`.

    Args:
        without: arguments that make no sense for this command.
    """
    shared = [item for item in signature(_log_arguments, eval_str=True).parameters.values() if item.name not in without]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = list(signature(command, eval_str=True).parameters.values())[1:]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(_log_arguments(**{item.name: given.pop(item.name) for item in shared}), **given)

        every = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in (shared[0], *own, *shared[1:])]
        run.__signature__ = Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in every}
        return run

    return decorated


def read_flags(name: str, text: str) -> str | list[str] | dict[str, list[str]]:
    """Read a column, columns such as died,cured, or values of columns such as outcome=died,cured and died=1,cured=1."""
    names, values = [], dict[str, list[str]]()
    for part in text.split(","):
        column, equals, value = part.partition("=")
        if equals:
            values.setdefault(column, []).append(value)
        elif values:  # one more value of the last column
            values[next(reversed(values))].append(part)
        else:
            names.append(part)
    if (names and values) or not all([*names, *values, *(value for held in values.values() for value in held)]):
        raise ArgumentError(
            f"{name} is {text!r}; write a column, columns such as died,cured, or values such as outcome=died,cured."
        )
    return values or (names if len(names) > 1 else text)


def read_bins(text: str | None) -> dict[str, Bins]:
    """Read age=8,weight=50:70 as 8 quantiles of age and two edges of weight."""
    from causal_shaping.data.space import Bins

    def cut(how: str) -> dict[str, Any]:
        edges = how.removesuffix(":").split(":")  # 65: is one edge
        return {"quantiles": int(how)} if how.isdigit() else {"edges": tuple(float(edge) for edge in edges)}

    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")] if text else []
        cuts = {name: cut(how) for name, how in pairs}
    except ValueError:
        raise ArgumentError(
            f"--bins is {text!r}; write it as age=8 for quantiles, age=18:65 for edges, or age=65: for one."
        ) from None
    return {name: Bins(**how) for name, how in cuts.items()}
