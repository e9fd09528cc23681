"""The command line: one file for each command, which parses, calls the library and prints.

Files that begin with an underscore serve several commands. A command imports what it needs when it
is called, so that `--version` and `--help` answer at once.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from causal_shaping._leave import INTERRUPTED, leave_quietly
from causal_shaping._removed import REMOVED_COMMANDS
from causal_shaping.cli._options import flag
from causal_shaping.cli._terminal import complain, say, warned_safely
from causal_shaping.errors import CausalShapingError

COMMANDS = (
    *("demo", "worlds", "collect", "inspect", "ceilings", "fit"),
    *("sensitivity", "worth", "train"),
)
"""In the order of `--help`; the command NAME is the function NAME of the module NAME here."""

JOBS = (Path(__file__).parent / "jobs.txt").read_text(encoding="utf-8")
"""What `causal-shaping` prints without a command."""

UsageError: Any = typer.BadParameter.__base__
"""Click's error for wrong arguments; some versions of Typer contain a Click of their own."""


class _PlainFlags:
    """Shows flags without the type of a value that they do not take."""

    def get_params(self, context: Any) -> Any:
        """Return the parameters."""
        parameters = super().get_params(context)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_PlainFlags, TyperCommand):
    """A command."""


class Group(_PlainFlags, TyperGroup):
    """The commands together."""


app = typer.Typer(
    name="causal-shaping",
    cls=Group,
    help="Reward shaping from confounded logs: what they are worth, and how to use them.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name in COMMANDS:
    app.command(cls=Command)(getattr(import_module(f"causal_shaping.cli.{_name}"), _name))


@app.callback()
def _root(
    context: typer.Context,
    show_version: Annotated[bool, flag("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        say(f"causal-shaping {version('causal-shaping')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(JOBS.format(version=version("causal-shaping")).rstrip("\n"))


def command() -> None:
    """Run the command line in a process of its own, which ends quietly."""
    try:
        main()
    except SystemExit as end:
        code = end.code
        if not isinstance(code, int):
            code = int(code is not None)
        leave_quietly(code)
        raise


def main() -> None:
    """Run the command line: exit code 2 for what the package refuses, 130 for Ctrl-C."""
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the terminal cannot show must not stop a command.
            stream.reconfigure(errors="backslashreplace")
    _refuse_removed_commands()
    try:
        with warned_safely():
            sys.exit(_parser()(prog_name="causal-shaping", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except UsageError as error:
        where = "causal-shaping"
        if error.ctx:
            where = error.ctx.command_path
        complain("error", f"{error.format_message()} See {where} --help.")
    except CausalShapingError as error:
        complain("error", error)
    except OSError as error:
        message: object = error
        if error.filename and error.strerror:
            message = f"{error.filename}: {error.strerror}."
        complain("error", message)
    sys.exit(2)


@cache
def _parser() -> Any:
    """Return what parses and runs a command; it is built once, however often `main` is called."""
    return typer.main.get_command(app)


def _replace_closed_streams() -> None:
    """Replace streams that the caller closed; otherwise the next opened file gets their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - open till the end
            setattr(sys, name, stream)


def _refuse_removed_commands() -> None:
    """Name what replaces a command of an earlier version, whatever options follow it."""
    name = "".join(sys.argv[1:2])
    if name in REMOVED_COMMANDS:
        complain("error", f"causal-shaping {name} is {REMOVED_COMMANDS[name]}")
        sys.exit(2)
